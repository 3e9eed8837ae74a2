//! Runs a program where it sees only what is its own: processes, network namespaces, control groups, the folder for temporary
//! files. What hangs is ended with all that it started, also what runs in sessions of its own, and leaves nothing behind.
//!
//! That needs root. Without it, tests that need namespaces skip, and a program is ended with its process group.

use anyhow::Result;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Kilobytes of memory that a test may ask for.
const MEMORY_KB: u64 = 6_000_000;
/// Blocks of 512 bytes that a file of a test may have.
const FILE_BLOCKS: u64 = 4_000_000;

/// What the shell does before it becomes the program: limits, then the control group.
const OUTSIDE: &str = r#"ulimit -t "$SECONDS_MOST" -v "$KILOBYTES_MOST" -f "$BLOCKS_MOST" -c 0
if [ -n "$GROUP" ]; then echo 0 > "$GROUP/cgroup.procs"; fi
exec timeout --foreground --signal=KILL "$TIME_MOST" "$@""#;

/// What the first process of the namespaces does: it makes their file systems, runs the program and ends as it did. It does not
/// become the program, because signals mean something else to the first process.
const INSIDE: &str = r#"mount -t tmpfs names /run/netns && mount -t tmpfs places /run/penstock || exit 120
if [ -n "$HIERARCHY" ]; then umount "$HIERARCHY" && mount -t cgroup2 groups "$HIERARCHY" || exit 120; fi
ip link set lo up
before=$(stat -c %y /run/netns)
"$@"
code=$?
if [ "$(stat -c %y /run/netns)" != "$before" ]; then echo > "$MADE"; fi
exit $code"#;

/// Where programs run.
pub struct Apart {
    /// True if namespaces can be made.
    possible: bool,
    /// The folder for temporary files, with a short name because sockets are there.
    home: PathBuf,
    /// Where control groups of version 2 are, and the one for the tests.
    group: Option<(PathBuf, PathBuf)>,
}

impl Apart {
    /// Finds out what is possible.
    pub fn new() -> Result<Self> {
        sweep(&std::env::temp_dir());
        hierarchy().iter().for_each(|root| sweep(root));
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("penstock-mutants-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let home = std::env::temp_dir().join(&name);
        fs::create_dir_all(&home)?;
        let mut apart = Self { possible: false, home, group: None };
        if nix::unistd::geteuid().is_root() {
            let made = fs::create_dir_all("/run/netns").and_then(|()| fs::create_dir_all("/run/penstock"));
            let group = hierarchy().map(|root| (root.clone(), root.join(name)));
            apart.group = group.filter(|(_, group)| fs::create_dir(group).is_ok());
            apart.possible = true;
            let works = apart
                .command(true, Path::new("true"), Duration::from_secs(1), Duration::from_secs(9))
                .stderr(Stdio::null())
                .status();
            apart.possible = made.is_ok() && works.is_ok_and(|status| status.success());
        }
        if !apart.possible {
            eprintln!("mutants: no namespaces can be made here: tests that need them will skip");
        }
        Ok(apart)
    }

    /// The file into which a program writes what it reaches, also after it has given up its rights.
    pub fn reached(&self) -> Result<PathBuf> {
        let path = self.home.join("reached");
        fs::write(&path, "")?;
        open_to_all(&path)?;
        Ok(path)
    }

    /// The file for what tests say.
    pub fn said(&self) -> PathBuf {
        self.home.join("said")
    }

    /// True if a program has made network namespaces since the folder for temporary files was made anew.
    pub fn made_namespaces(&self) -> bool {
        self.made().exists()
    }

    fn made(&self) -> PathBuf {
        self.home.join("made")
    }

    /// A command that runs this program with limits, in a process group of its own.
    pub fn command(&self, apart: bool, program: &Path, processor: Duration, time: Duration) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", OUTSIDE, "sh"]);
        let within = apart && self.possible;
        let (hierarchy, group) = match &self.group {
            Some((hierarchy, group)) if within => (hierarchy.as_path(), group.as_path()),
            _ => (Path::new(""), Path::new("")),
        };
        if within {
            command.args([
                "unshare",
                "--mount",
                "--pid",
                "--fork",
                "--kill-child",
                "--mount-proc",
                "--net",
                "--cgroup",
            ]);
            command.args(["sh", "-c", INSIDE, "sh"]);
        }
        command.arg(program).env("HIERARCHY", hierarchy).env("GROUP", group).env("TMPDIR", self.temporary());
        command.env("MADE", self.made());
        command.env("SECONDS_MOST", (processor.as_secs() + 1).to_string());
        // Who waits for it ends it before that, unless it was ended itself.
        command.env("TIME_MOST", (time.as_secs() + 60).to_string());
        command.env("KILOBYTES_MOST", MEMORY_KB.to_string()).env("BLOCKS_MOST", FILE_BLOCKS.to_string());
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command
    }

    fn temporary(&self) -> PathBuf {
        self.home.join("t")
    }

    /// Makes the folder for temporary files anew.
    pub fn ready(&self) -> Result<()> {
        let temporary = self.temporary();
        let _ = fs::remove_file(self.made());
        let _ = fs::remove_dir_all(&temporary);
        fs::create_dir_all(&temporary)?;
        open_to_all(&temporary)
    }

    /// Ends what a program has left: processes in its control group, and the groups that it made.
    pub fn clean(&self) {
        let Some((_, group)) = &self.group else { return };
        let _ = fs::write(group.join("cgroup.kill"), "1");
        for _ in 0..50 {
            if below(group).iter().all(|inner| fs::remove_dir(inner).is_ok()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Apart {
    fn drop(&mut self) {
        self.clean();
        if let Some((_, group)) = &self.group {
            let _ = fs::remove_dir(group);
        }
        let _ = fs::remove_dir_all(&self.home);
    }
}

/// Removes what runs have left in a folder that were killed: their folders and control groups.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
        let number = name.strip_prefix("penstock-mutants-").and_then(|rest| rest.split('-').next());
        if number.is_some_and(|number| !Path::new("/proc").join(number).exists()) {
            let _ = fs::write(path.join("cgroup.kill"), "1");
            below(&path).iter().for_each(|inner| drop(fs::remove_dir(inner)));
            let _ = fs::remove_dir(&path).or_else(|_| fs::remove_dir_all(&path));
        }
    }
}

/// The folders in this one, those within others first.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            out.extend(below(&entry.path()));
            out.push(entry.path());
        }
    }
    out
}

fn open_to_all(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o777))?)
}

/// Where control groups of version 2 are mounted.
fn hierarchy() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mut of_version_2 = mounts.lines().filter(|line| line.split(' ').nth(2) == Some("cgroup2"));
    Some(PathBuf::from(of_version_2.next()?.split(' ').nth(1)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    fn shell(apart: &Apart, script: &str) -> std::process::Output {
        apart.ready().unwrap();
        let mut command = apart.command(true, Path::new("sh"), Duration::from_secs(5), Duration::from_secs(9));
        let output = command.args(["-c", script]).output().unwrap();
        apart.clean();
        output
    }

    #[test]
    fn a_program_ends_as_it_would_alone() {
        let apart = Apart::new().unwrap();
        assert_eq!(shell(&apart, "exit 7").status.code(), Some(7));
        let died = shell(&apart, "kill -9 $$").status;
        assert!(died.code() == Some(137) || died.signal() == Some(9), "{died}");
    }

    #[test]
    fn what_killed_runs_have_left_goes() {
        let folder = std::env::temp_dir().join(format!("penstock-sweep-{}", std::process::id()));
        let own = format!("penstock-mutants-{}-0", std::process::id());
        for name in [own.as_str(), "penstock-mutants-4999999-1", "other"] {
            fs::create_dir_all(folder.join(name).join("t")).unwrap();
        }
        sweep(&folder);
        let mut left: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["other", own.as_str()]);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn nothing_is_left_of_a_program() {
        let apart = Apart::new().unwrap();
        if !apart.possible {
            return eprintln!("skipped: no namespaces");
        }
        let script = "ip netns add left && mkdir $HIERARCHY/left; touch $TMPDIR/left /run/penstock/left; \
            setsid sleep 987 & sleep 0.1; ip netns list";
        let output = shell(&apart, script);
        assert!(apart.made_namespaces());
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "left", "{output:?}");
        let list = |program: &str, arguments: &[&str]| {
            String::from_utf8_lossy(&Command::new(program).args(arguments).output().unwrap().stdout).into_owned()
        };
        assert!(!list("ip", &["netns", "list"]).lines().any(|name| name.starts_with("left")));
        assert!(!list("ps", &["-eo", "args"]).lines().any(|line| line == "sleep 987"));
        assert!(!Path::new("/run/penstock/left").exists());
        if let Some((_, group)) = &apart.group {
            assert!(group.exists() && below(group).is_empty());
        }
        apart.ready().unwrap();
        assert!(!apart.temporary().join("left").exists());
        shell(&apart, "ip netns list; true");
        assert!(!apart.made_namespaces());
    }
}
