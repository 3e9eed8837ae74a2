//! Runs tests: alone and unmutated to learn what each reaches and costs, then under a mutation until one fails.

use crate::compile::Binary;
use anyhow::{Context, Result};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Kilobytes of memory that a test may ask for.
const MEMORY_KB: u64 = 6_000_000;

/// A test that takes more than so many times its processor time has failed.
const PATIENCE: u32 = 5;

/// A test and what it does when nothing is mutated.
#[derive(Clone, Debug)]
pub struct Test {
    /// Index of its program.
    pub binary: usize,
    /// Its name, as the program lists it.
    pub name: String,
    /// Processor time it takes.
    pub cpu: Duration,
    /// The switches it comes past.
    pub reaches: BTreeSet<u32>,
}

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A test failed: its program and name.
    Killed(String),
    /// A test did not end in [`PATIENCE`] times its time.
    Timeout(String),
    /// No test failed.
    Survived,
}

/// How a program ended.
enum End {
    Passed,
    Failed,
    TooLong,
}

/// Runs each test alone. A test that fails or takes longer than `longest` is left out.
pub fn covered(binaries: &[Binary], longest: Duration, scratch: &Path) -> Result<(Vec<Test>, Vec<String>)> {
    let (mut tests, mut left_out) = (Vec::new(), Vec::new());
    for (index, binary) in binaries.iter().enumerate() {
        for name in listed(binary)? {
            let _ = fs::remove_file(scratch);
            let begin = spent()?;
            let cover = [("PENSTOCK_MUTANT_COVER", scratch.to_string_lossy().into_owned())];
            let end = ended(binary, &[&name], &cover, longest)?;
            if !matches!(end, End::Passed) {
                left_out.push(format!("{} {name}", binary.name));
                continue;
            }
            let seen = fs::read_to_string(scratch).unwrap_or_default();
            let reaches = seen.lines().filter_map(|line| line.parse().ok()).collect();
            tests.push(Test { binary: index, name, cpu: spent()?.saturating_sub(begin), reaches });
        }
        eprintln!("mutants: {}: {} tests so far", binary.name, tests.len());
    }
    Ok((tests, left_out))
}

/// The tests that reach a mutant until one fails: the one which did `before`, those of its own module, then the cheap ones.
pub fn judged(binaries: &[Binary], tests: &[Test], number: u32, before: &str, module: &str) -> Result<Outcome> {
    let mut reaching: Vec<&Test> = tests.iter().filter(|test| test.reaches.contains(&number)).collect();
    let did = |test: &Test| format!("{} {}", binaries[test.binary].name, test.name) == before;
    reaching.sort_by_cached_key(|test| (!did(test), !test.name.starts_with(module), test.cpu));
    let switch = [("PENSTOCK_MUTANT", number.to_string())];
    for batch in batches(&reaching) {
        let binary = &binaries[batch[0].binary];
        let names: Vec<&str> = batch.iter().map(|test| test.name.as_str()).collect();
        let cpu: Duration = batch.iter().map(|test| test.cpu).sum();
        let who = || format!("{} {}", binary.name, names[0]);
        match ended(binary, &names, &switch, cpu * PATIENCE + Duration::from_secs(2))? {
            End::Passed => {}
            End::Failed => return Ok(Outcome::Killed(who())),
            End::TooLong => return Ok(Outcome::Timeout(who())),
        }
    }
    Ok(Outcome::Survived)
}

/// Neighbours of one program that cost little are run together; the first few, which kill most mutants, alone.
fn batches<'a>(tests: &[&'a Test]) -> Vec<Vec<&'a Test>> {
    let mut out: Vec<Vec<&Test>> = Vec::new();
    let mut by_binary: BTreeMap<usize, usize> = BTreeMap::new();
    for (index, test) in tests.iter().enumerate() {
        let room = |batch: &Vec<&Test>| {
            batch.len() < 50 && batch.iter().map(|test| test.cpu).sum::<Duration>() < Duration::from_secs(1)
        };
        match by_binary.get(&test.binary) {
            Some(&at) if index >= 4 && room(&out[at]) => out[at].push(test),
            _ => {
                by_binary.insert(test.binary, out.len());
                out.push(vec![test]);
            }
        }
    }
    out
}

fn listed(binary: &Binary) -> Result<Vec<String>> {
    let all = |more: &[&str]| -> Result<BTreeSet<String>> {
        let mut command = Command::new(&binary.path);
        let output = command.args(["--list", "--format", "terse"]).args(more).current_dir(&binary.folder).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_string).collect())
    };
    let ignored = all(&["--ignored"])?;
    Ok(all(&[])?.into_iter().filter(|name| !ignored.contains(name)).collect())
}

/// Runs these tests of a program, one after the other. The shell sets the limits and then becomes the program.
fn ended(binary: &Binary, names: &[&str], environment: &[(&str, String)], cpu: Duration) -> Result<End> {
    let seconds = cpu.as_secs() + 1;
    let mut command = Command::new("sh");
    command.args(["-c", &format!("ulimit -t {seconds} -v {MEMORY_KB} -c 0; exec \"$@\""), "sh"]);
    command.arg(&binary.path).args(["--exact", "--test-threads=1", "--quiet"]).args(names);
    command.envs(environment.iter().map(|(name, value)| (name, value))).current_dir(&binary.folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().with_context(|| binary.path.display().to_string())?;
    // A busy machine may give a process a tenth of a processor; one that sleeps for ever ends as well.
    let status = waited(&mut child, cpu * 10 + Duration::from_secs(60))?;
    Ok(match status {
        Some(status) if status.success() => End::Passed,
        Some(status) if killed_by_limit(status) => End::TooLong,
        Some(_) => End::Failed,
        None => End::TooLong,
    })
}

fn killed_by_limit(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    matches!(status.signal(), Some(signal) if signal == Signal::SIGXCPU as i32 || signal == Signal::SIGKILL as i32)
}

fn waited(child: &mut Child, longest: Duration) -> Result<Option<ExitStatus>> {
    let begin = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begin.elapsed() > longest {
            let _ = killpg(Pid::from_raw(i32::try_from(child.id())?), Signal::SIGKILL);
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

/// Processor time of all programs that were run and have ended.
pub fn spent() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let of = |time: nix::sys::time::TimeVal| Duration::from_micros((time.tv_sec() * 1_000_000 + time.tv_usec()) as u64);
    Ok(of(usage.user_time()) + of(usage.system_time()))
}
