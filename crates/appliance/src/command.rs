//! A command that a file names: runs it, and returns what it prints.

use crate::guard::never_wait;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The longest output that is read.
const LONGEST: usize = 4096;
/// How often is looked whether the command has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Returns whether there is a program that can be run by this word: a path, or the name of a file in a folder of PATH.
pub fn is_there(program: &str) -> bool {
    let runs = |path: &Path| path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0);
    if program.contains('/') {
        return runs(Path::new(program));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| runs(&folder.join(program)))
}

/// Returns what the command prints before it ends. After `longest` it is killed, with all that it has started.
pub fn run(words: &[String], longest: Duration) -> Result<String, String> {
    let (program, rest) = words.split_first().ok_or("no command")?;
    let failed = |e: std::io::Error| format!("{program}: {e}");
    let mut command = Command::new(program);
    command.args(rest).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    let begin = Instant::now();
    let status = loop {
        match child.try_wait().map_err(failed)? {
            Some(status) => break status,
            None if begin.elapsed() > longest => {
                let _ = killpg(Pid::from_raw(child.id() as i32), Signal::SIGKILL);
                let _ = child.wait();
                return Err(format!("{program} did not end within {} s", longest.as_secs_f64()));
            }
            None => std::thread::sleep(LOOK),
        }
    };
    if !status.success() {
        return Err(format!("{program}: {status}"));
    }
    let mut stdout = child.stdout.take().ok_or("no output")?;
    // What it leaves in the background may have the pipe for ever.
    never_wait(&stdout).map_err(|e| failed(e.into()))?;
    let mut bytes = [0; LONGEST];
    let len = stdout.read(&mut bytes).unwrap_or_default();
    Ok(String::from_utf8_lossy(&bytes[..len]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(line: &str, longest: u64) -> Result<String, String> {
        run(&["sh", "-c", line].map(str::to_owned), Duration::from_millis(longest))
    }

    #[test]
    fn a_program_is_there_if_a_path_or_a_folder_of_path_has_it() {
        assert!(is_there("sh") && is_there("/bin/sh"));
        for word in ["no-such-program", "/nowhere/at/all", "/etc/passwd", "/bin", "bin/", ""] {
            assert!(!is_there(word), "{word:?}");
        }
    }

    #[test]
    fn a_command_that_fails_or_hangs_is_told() {
        assert_eq!(sh("echo 3Mbit/s; echo more", 20_000).unwrap(), "3Mbit/s\nmore\n");
        assert_eq!(sh("exec true", 20_000).unwrap(), "");
        assert!(sh("exit 3", 20_000).unwrap_err().contains('3'));
        assert!(sh("exec sleep 20", 300).unwrap_err().contains("did not end within 0.3 s"));
        let nowhere = run(&["/nowhere/at/all".to_owned()], Duration::from_secs(1));
        assert!(nowhere.unwrap_err().contains("/nowhere/at/all"));
    }

    /// Nobody waits for what a command leaves in the background, which has its output as well; what it waits for itself goes
    /// with it.
    #[test]
    fn what_a_command_has_started_holds_nobody_up() {
        let begin = Instant::now();
        assert_eq!(sh("echo 3Mbit/s; sleep 30 &", 20_000).unwrap(), "3Mbit/s\n");
        let left = std::env::temp_dir().join(format!("penstock-command-{}", std::process::id()));
        let line = format!("(sleep 1; echo > {}) ; true", left.display());
        assert!(sh(&line, 200).is_err());
        std::thread::sleep(Duration::from_millis(1500));
        assert!(!left.exists() && begin.elapsed() < Duration::from_secs(20));
    }
}
