//! Network namespaces: finding one, and running code inside it without leaving the namespace of this process.

use crate::error::Error;
use nix::sched::{CloneFlags, setns};
use penstock_core::suggest::nearest;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The directory in which `ip netns` keeps its namespaces.
const NAMED: &str = "/run/netns";

/// An open namespace.
#[derive(Debug)]
pub struct Namespace {
    label: String,
    file: File,
    identity: (u64, u64),
}

impl Namespace {
    /// Opens a namespace: by a name of `ip netns`, or by a path (a text with a slash). `None` is the namespace of this
    /// process. Fails if there is no such namespace; the message names those that exist.
    pub fn open(name: Option<&str>) -> Result<Self, Error> {
        let (label, path) = match name {
            None => ("the current namespace".to_owned(), PathBuf::from("/proc/thread-self/ns/net")),
            Some(path) if path.contains('/') => (path.to_owned(), PathBuf::from(path)),
            Some(name) => (format!("namespace {name}"), Path::new(NAMED).join(name)),
        };
        let file = File::open(&path).map_err(|error| unopened(name, &path, error))?;
        let about = file.metadata().map_err(|error| unopened(name, &path, error))?;
        Ok(Self { label, file, identity: (about.dev(), about.ino()) })
    }

    /// Returns the name of the namespace for messages.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// True if both are the same namespace, whatever names they were given.
    pub fn is(&self, other: &Self) -> bool {
        self.identity == other.identity
    }

    /// Runs `work` in the namespace, on a thread of its own which ends with it. File descriptors that it opens stay in
    /// that namespace. Fails if the namespace cannot be entered, or with the error of `work`.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
        let inside = || {
            let what = format!("cannot enter the network namespace {}", self.label);
            setns(&self.file, CloneFlags::CLONE_NEWNET).map_err(Error::refused(what, "is it a network namespace?"))?;
            work()
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().spawn_scoped(scope, inside);
            match thread.map_err(Error::io("cannot start a thread"))?.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }
}

fn unopened(name: Option<&str>, path: &Path, error: io::Error) -> Error {
    let path = path.display();
    if error.kind() != io::ErrorKind::NotFound {
        return Error::refused(format!("cannot open the network namespace {path}"), "")(error);
    }
    Error::Refused(format!(
        "there is no network namespace {path}{}; create one with `ip netns add NAME`, or give a path such as \
         /proc/PID/ns/net",
        hint(name.unwrap_or_default(), &named())
    ))
}

/// The names that `ip netns` knows.
fn named() -> Vec<String> {
    let entries = std::fs::read_dir(NAMED).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

fn hint(name: &str, names: &[String]) -> String {
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    match nearest(name, &known).as_slice() {
        [] if known.is_empty() => String::new(),
        [] => format!(" (there are: {})", known.join(", ")),
        near => format!(" (did you mean {}?)", near.join(" or ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_cannot_be_opened_is_not_one_that_is_not_there() {
        let told = |errno| unopened(Some("left"), Path::new("/run/netns/left"), io::Error::from_raw_os_error(errno));
        assert!(told(libc::ENOENT).to_string().starts_with("there is no network namespace /run/netns/left"));
        let few = told(libc::EMFILE).to_string();
        assert!(few.starts_with("cannot open") && few.contains("ulimit -n") && !few.contains("there is no"), "{few}");
    }

    #[test]
    fn the_nearest_name_is_told_or_all_of_them_or_none() {
        let names = ["left", "right", "middle"].map(str::to_owned);
        assert_eq!(hint("lefr", &names), " (did you mean left?)");
        assert_eq!(hint("gateway", &names), " (there are: left, right, middle)");
        assert_eq!(hint("gateway", &[]), "");
    }
}
