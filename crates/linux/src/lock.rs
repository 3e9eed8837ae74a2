//! Lock files: who holds one is in charge of what it stands for. The file goes with its holder; of one that is killed
//! it stays, and the next one takes it.

use std::fs::{File, TryLockError};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

/// A lock that this process holds. Its file is removed when this is dropped.
#[derive(Debug)]
pub struct Lock {
    path: PathBuf,
    file: File,
}

impl Lock {
    /// Takes the lock of a file, which only the user of this process may open: who may open it may lock it. Fails with
    /// `WouldBlock` if another process holds it.
    pub fn take(path: &Path) -> Result<Self, TryLockError> {
        loop {
            let file = File::options().create(true).read(true).write(true).truncate(false).mode(0o600).open(path);
            let file = file.map_err(TryLockError::Error)?;
            file.try_lock()?;
            // The holder before may have removed what was opened here.
            if is_at(&file, path).map_err(TryLockError::Error)? {
                return Ok(Self { path: path.to_owned(), file });
            }
        }
    }

    /// Writes who holds the lock into its file.
    pub fn write(&mut self, text: &str) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The lock is still held, so the file is this one's.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let own = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(there) => Ok((own.dev(), own.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// Four threads take a lock in turns, which each of them removes: never two have it, and at the end nothing is
    /// left.
    #[test]
    fn one_holds_a_lock_at_a_time_and_its_file_goes() {
        let path = std::env::temp_dir().join(format!("penstock-lock-{}", std::process::id()));
        let (holders, taken) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    while taken.load(Ordering::SeqCst) < 1000 {
                        let Ok(mut lock) = Lock::take(&path) else { continue };
                        assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                        lock.write("me").unwrap();
                        assert_eq!(std::fs::read_to_string(&path).unwrap(), "me");
                        assert_eq!(holders.fetch_sub(1, Ordering::SeqCst), 1);
                        taken.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert!(!path.exists());
    }
}
