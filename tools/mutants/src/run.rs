//! Runs tests: alone and unmutated to learn what each reaches and costs, then under a mutation until one fails.

use crate::apart::Apart;
use crate::compile::{Binary, Kind};
use anyhow::{Context, Result};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A test that takes more than so many times its time has failed.
const PATIENCE: u32 = 5;

/// A test and what it does when nothing is mutated.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Test {
    /// Its name, as the program lists it.
    pub name: String,
    /// Processor time it takes.
    pub cpu: Duration,
    /// Time it takes.
    pub time: Duration,
    /// True if it makes network namespaces: it needs root, and waits for real time to pass.
    pub waits: bool,
    /// The switches it comes past.
    pub reaches: BTreeSet<u32>,
}

/// The tests of a program, when nothing is mutated.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Known {
    /// Those which pass in time.
    pub tests: Vec<Test>,
    /// Names of those that fail, or take too long.
    pub left_out: Vec<String>,
    /// Names of those among them that say that they skip all or a part, because something is not here.
    pub skipped: Vec<String>,
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
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Passed,
    Failed,
    TooLong,
}

/// What a program may take.
#[derive(Clone, Copy)]
struct Limits {
    cpu: Duration,
    time: Duration,
}

/// The longest that tests may take when nothing is mutated, by what they are.
#[derive(Clone, Copy)]
pub struct Longest {
    /// Processor time of a test.
    pub cpu: Duration,
    /// Time of a test; those between namespaces mostly wait.
    pub waiting: Duration,
}

impl Longest {
    fn limits(self) -> Limits {
        // A busy machine may give a process a tenth of a processor; one that sleeps for ever ends as well.
        Limits { cpu: self.cpu, time: self.waiting }
    }
}

impl Limits {
    /// Those of tests that take so long when nothing is mutated.
    fn of(cpu: Duration, time: Duration) -> Self {
        let cpu = cpu * PATIENCE + Duration::from_secs(2);
        Self { cpu, time: (time * PATIENCE).max(cpu * 5) + Duration::from_secs(10) }
    }
}

/// Runs each of these tests of a program alone; one that fails is tried again.
pub fn covered(apart: &Apart, binary: &Binary, names: Vec<String>, longest: Longest) -> Result<Known> {
    let mut known = Known::default();
    for name in names {
        let mut found = tried(apart, binary, &name, longest.limits())?;
        if found.is_none() {
            found = tried(apart, binary, &name, longest.limits())?;
        }
        match found {
            Some((test, skipped)) => {
                known.skipped.extend(skipped.then(|| test.name.clone()));
                known.tests.push(test);
            }
            None => known.left_out.push(name),
        }
    }
    eprintln!("mutants: {}: {} tests", binary.name, known.tests.len());
    Ok(known)
}

/// Runs a test alone and unmutated; returns whether it skipped as well. `None` if it does not pass in time.
fn tried(apart: &Apart, binary: &Binary, name: &str, limits: Limits) -> Result<Option<(Test, bool)>> {
    let (begin, cpu) = (Instant::now(), spent()?);
    let reached = apart.reached()?;
    let cover = [("PENSTOCK_MUTANT_COVER", reached.to_string_lossy().into_owned())];
    let (end, said) = ended(apart, binary, &[name], &cover, limits)?;
    if end != End::Passed {
        return Ok(None);
    }
    let seen = fs::read_to_string(&reached).unwrap_or_default();
    let reaches = seen.lines().filter_map(|line| line.parse().ok()).collect();
    let (cpu, time, waits) = (spent()?.saturating_sub(cpu), begin.elapsed(), apart.made_namespaces());
    let test = Test { name: name.to_string(), cpu, time, waits, reaches };
    Ok(Some((test, said.lines().any(|line| line.starts_with("skipped: ")))))
}

/// The tests of these programs that reach a mutant, those between namespaces or all others, until one fails: the one which did
/// `before`, those of its own crate and in it those of its own module, then the cheap ones.
pub fn judged(
    apart: &Apart,
    programs: &[(&Binary, &Known)],
    waiting: bool,
    number: u32,
    before: &str,
    (krate, module): (&str, &str),
) -> Result<Outcome> {
    let pairs = programs.iter().flat_map(|(binary, known)| known.tests.iter().map(move |test| (*binary, test)));
    let pairs = pairs.filter(|(_, test)| test.waits == waiting && test.reaches.contains(&number));
    let mut reaching: Vec<(&Binary, &Test)> = pairs.collect();
    reaching.sort_by_cached_key(|(binary, test)| {
        let did = format!("{} {}", binary.name, test.name) == before;
        let own = binary.krate() == krate;
        let beside = own && binary.kind == Kind::Unit && test.name.starts_with(module);
        (!did, !beside, !own, binary.kind, test.time)
    });
    let switch = [("PENSTOCK_MUTANT", number.to_string())];
    for (binary, batch) in batches(&reaching) {
        let names: Vec<&str> = batch.iter().map(|test| test.name.as_str()).collect();
        let sum = |of: fn(&Test) -> Duration| batch.iter().map(|test| of(test)).sum::<Duration>();
        let limits = Limits::of(sum(|test| test.cpu), sum(|test| test.time));
        let mut end = ended(apart, binary, &names, &switch, limits)?.0;
        // Between namespaces real time passes: what fails once may have had a slow moment.
        if waiting && end == End::Failed {
            end = ended(apart, binary, &names, &switch, limits)?.0;
        }
        let who = format!("{} {}", binary.name, names[0]);
        match end {
            End::Passed => {}
            End::Failed => return Ok(Outcome::Killed(who)),
            End::TooLong => return Ok(Outcome::Timeout(who)),
        }
    }
    Ok(Outcome::Survived)
}

/// How long all tests between namespaces take that reach a mutant.
pub fn most(programs: &[(&Binary, &Known)], number: u32) -> Duration {
    let tests = programs.iter().flat_map(|(_, known)| &known.tests);
    tests.filter(|test| test.waits && test.reaches.contains(&number)).map(|test| test.time).sum()
}

/// Neighbours of one program that cost little are run together; the first few, which kill most mutants, alone.
fn batches<'a>(tests: &[(&'a Binary, &'a Test)]) -> Vec<(&'a Binary, Vec<&'a Test>)> {
    let mut out: Vec<(&Binary, Vec<&Test>)> = Vec::new();
    let mut by_binary: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, (binary, test)) in tests.iter().enumerate() {
        let room = |batch: &[&Test]| {
            batch.len() < 50
                && batch.iter().map(|test| test.cpu.max(test.time)).sum::<Duration>() < Duration::from_secs(1)
        };
        match by_binary.get(binary.name.as_str()) {
            Some(&at) if index >= 4 && room(&out[at].1) => out[at].1.push(test),
            _ => {
                by_binary.insert(&binary.name, out.len());
                out.push((binary, vec![test]));
            }
        }
    }
    out
}

/// The names of the tests of a program.
pub fn listed(binary: &Binary) -> Result<Vec<String>> {
    let all = |more: &[&str]| -> Result<BTreeSet<String>> {
        let mut command = Command::new(&binary.path);
        let output = command.args(["--list", "--format", "terse"]).args(more).current_dir(&binary.folder).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_string).collect())
    };
    let ignored = all(&["--ignored"])?;
    Ok(all(&[])?.into_iter().filter(|name| !ignored.contains(name)).collect())
}

/// Runs these tests of a program, one after the other; returns what they said as well.
fn ended(
    apart: &Apart,
    binary: &Binary,
    names: &[&str],
    environment: &[(&str, String)],
    limits: Limits,
) -> Result<(End, String)> {
    apart.ready()?;
    let said = apart.said();
    let mut command = apart.command(binary.apart, &binary.path, limits.cpu, limits.time);
    command.args(["--exact", "--test-threads=1", "--show-output"]).args(names);
    command.envs(environment.iter().map(|(name, value)| (name, value))).current_dir(&binary.folder);
    command.stdin(Stdio::null()).stdout(fs::File::create(&said)?).stderr(Stdio::null());
    let mut child = command.spawn().with_context(|| binary.path.display().to_string())?;
    let status = waited(&mut child, limits.time)?;
    if binary.apart {
        apart.clean();
    }
    let end = match status {
        Some(status) if status.success() => End::Passed,
        Some(status) if killed_by_limit(status) => End::TooLong,
        Some(_) => End::Failed,
        None => End::TooLong,
    };
    Ok((end, text(&said)))
}

/// The begin of a file; under a mutation a test may write much.
fn text(path: &Path) -> String {
    use std::io::Read;
    let mut bytes = Vec::new();
    let _ = fs::File::open(path).map(|file| file.take(1 << 20).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// By the signal itself, or by the code with which a shell tells it.
fn killed_by_limit(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    let limits = [Signal::SIGXCPU as i32, Signal::SIGKILL as i32];
    let signal = status.signal().or(status.code().map(|code| code - 128));
    signal.is_some_and(|signal| limits.contains(&signal))
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
