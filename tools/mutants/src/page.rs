//! Results: a line of JSON for each mutant, and the page that sums them up.

use crate::run::{Known, Outcome};
use crate::tree::{Inputs, crate_of};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::Path;

/// A line of the results.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Line {
    /// Name of the mutant.
    pub key: String,
    /// Where it is.
    pub place: String,
    /// `killed`, `timeout`, `survived` or `unviable`.
    pub outcome: String,
    /// The program and the first of the tests of which one failed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Processor time in milliseconds.
    pub cpu_ms: u64,
    /// Hash of the file that was mutated, without its tests.
    #[serde(default)]
    pub file: String,
    /// Hash of the sources and tests that decide the outcome.
    pub inputs: String,
}

impl Line {
    /// Whether it need not be found again: nothing has changed, or what was killed stands in a file that is the same.
    pub fn holds(&self, inputs: &Inputs, file: &str) -> bool {
        self.inputs == inputs.of(file) || (self.outcome != "survived" && inputs.files.get(file) == Some(&self.file))
    }

    /// The file that is mutated.
    pub fn file(&self) -> &str {
        self.key.split_once(' ').map_or("", |(file, _)| file)
    }

    /// The crate that is mutated.
    pub fn krate(&self) -> &str {
        crate_of(self.file())
    }

    /// Puts the outcome in.
    pub fn told(mut self, outcome: &Outcome) -> Line {
        let (word, by) = match outcome {
            Outcome::Killed(by) => ("killed", by.as_str()),
            Outcome::Timeout(by) => ("timeout", by.as_str()),
            Outcome::Survived => ("survived", ""),
        };
        self.outcome = word.to_string();
        self.by = by.to_string();
        self
    }
}

/// The last line of each mutant.
pub fn read(path: &Path) -> Result<BTreeMap<String, Line>> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
    Ok(lines.map(|line| (line.key.clone(), line)).collect())
}

/// Adds a line.
pub fn append(path: &Path, line: &Line) -> Result<()> {
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path)?;
    Ok(writeln!(file, "{}", serde_json::to_string(line)?)?)
}

/// What the page tells beside the results.
pub struct About {
    /// How the sample was drawn.
    pub sample: String,
    /// The commit.
    pub revision: String,
    /// Hash of the sources and tests.
    pub inputs: String,
    /// How many there are to draw from.
    pub all: usize,
    /// How many were drawn from each crate.
    pub drawn: BTreeMap<String, usize>,
    /// Drawn, but without a result.
    pub pending: usize,
    /// Drawn, and their result is of other sources.
    pub outdated: usize,
    /// The results that there are of other samples, and are of the present sources.
    pub others: Vec<Line>,
    /// The tests.
    pub baseline: Baseline,
}

/// The tests of each program without a mutation.
pub type Baseline = BTreeMap<String, Tests>;

/// The tests of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tests {
    /// How many were run.
    pub tests: usize,
    /// Those between network namespaces.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub waiting: BTreeSet<String>,
    /// Those that failed or took too long.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Those that skipped all or a part.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
}

impl From<&Known> for Tests {
    fn from(known: &Known) -> Self {
        let waiting = known.tests.iter().filter(|test| test.waits).map(|test| test.name.clone()).collect();
        let (left_out, skipped) = (known.left_out.clone(), known.skipped.clone());
        Self { tests: known.tests.len(), waiting, left_out, skipped }
    }
}

/// Reads what [`write_baseline`] wrote; nothing if there is no such file.
pub fn read_baseline(path: &Path) -> Result<Baseline> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(serde_json::from_str(&text)?),
        Err(_) => Ok(Baseline::default()),
    }
}

/// Writes how many tests there are, for a later page.
pub fn write_baseline(path: &Path, baseline: &Baseline) -> Result<()> {
    Ok(fs::write(path, serde_json::to_string_pretty(baseline)? + "\n")?)
}

/// Mutants that a person judged to be equivalent, with the reason.
pub fn equivalents(path: &Path) -> Result<BTreeMap<String, String>> {
    let text = fs::read_to_string(path).unwrap_or_default();
    toml::from_str(&text).with_context(|| path.display().to_string())
}

/// What became of some mutants.
struct Counts {
    killed: usize,
    timeout: usize,
    survived: usize,
    judged: usize,
    unviable: usize,
}

impl Counts {
    fn of<'a>(lines: impl Iterator<Item = &'a Line> + Clone, equivalents: &BTreeMap<String, String>) -> Self {
        let count = |word: &str| lines.clone().filter(|line| line.outcome == word).count();
        let judged = lines.clone().filter(|line| is_equivalent(line, equivalents)).count();
        Self {
            killed: count("killed"),
            timeout: count("timeout"),
            survived: count("survived") - judged,
            judged,
            unviable: count("unviable"),
        }
    }

    fn viable(&self) -> usize {
        self.killed + self.timeout + self.survived + self.judged
    }

    /// The part that tests notice, of those that are not equivalent, in percent.
    fn noticed(&self) -> String {
        match self.viable() - self.judged {
            0 => "-".to_string(),
            of => format!("{:.1} %", 100.0 * (self.killed + self.timeout) as f64 / of as f64),
        }
    }
}

fn is_equivalent(line: &Line, equivalents: &BTreeMap<String, String>) -> bool {
    line.outcome == "survived" && equivalents.contains_key(&line.key)
}

/// The page.
pub fn page(about: &About, lines: &[Line], equivalents: &BTreeMap<String, String>) -> String {
    let cpu = lines.iter().map(|line| line.cpu_ms).sum::<u64>() / 60_000;
    let of_all = |names: fn(&Tests) -> &Vec<String>| {
        let programs = about.baseline.iter();
        let all =
            programs.flat_map(|(program, tests)| names(tests).iter().map(move |name| format!("{program} {name}")));
        let all: Vec<String> = all.collect();
        if all.is_empty() { "none".to_string() } else { all.join(", ") }
    };
    let waiting: usize = about.baseline.values().map(|tests| tests.waiting.len()).sum();
    let mut out = format!("{HEAD}\n| | |\n| --- | --- |\n");
    for (name, value) in [
        ("sample", about.sample.clone()),
        ("revision", about.revision.clone()),
        ("hash of sources and tests", format!("`{}`", about.inputs)),
        ("mutations to draw from", about.all.to_string()),
        ("drawn and not yet run", about.pending.to_string()),
        ("run with an earlier state of the file, or survived earlier tests", about.outdated.to_string()),
        ("tests", about.baseline.values().map(|tests| tests.tests).sum::<usize>().to_string()),
        ("of these between network namespaces", waiting.to_string()),
        ("tests left out: they fail or take too long as it is", of_all(|tests| &tests.left_out)),
        ("tests that skipped, in whole or in part: the machine lacks something", of_all(|tests| &tests.skipped)),
        ("processor time", format!("{cpu} minutes")),
    ] {
        out += &format!("| {name} | {value} |\n");
    }
    let counts = Counts::of(lines.iter(), equivalents);
    out += "\n| outcome | mutants | share |\n| --- | ---: | ---: |\n";
    let share = |n: usize| 100.0 * n as f64 / counts.viable().max(1) as f64;
    for (name, n) in [
        ("killed", counts.killed),
        ("killed by time", counts.timeout),
        ("survived", counts.survived),
        ("judged equivalent", counts.judged),
    ] {
        out += &format!("| {name} | {n} | {:.1} % |\n", share(n));
    }
    out += &format!("| all that compile | {} | |\n| do not compile | {} | |\n", counts.viable(), counts.unviable);
    out += CRATES;
    for (name, drawn) in &about.drawn {
        let own = lines.iter().filter(|line| line.krate() == name);
        let run = Counts::of(own.clone(), equivalents);
        let others = about.others.iter().filter(|line| line.krate() == name);
        let every = Counts::of(own.chain(others), equivalents);
        out += &format!(
            "| `{name}` | {drawn} | {} | {} | {} | {} | {} | {} | {} |\n",
            run.viable(),
            run.killed + run.timeout,
            run.survived,
            run.judged,
            run.noticed(),
            every.viable(),
            every.noticed()
        );
    }
    out += "\n## Survivors\n\n";
    let survivors = |line: &&Line| line.outcome == "survived" && !equivalents.contains_key(&line.key);
    lines.iter().filter(survivors).for_each(|line| out += &format!("- {}\n", shown(line)));
    if about.others.iter().any(|line| survivors(&line)) {
        out += "\n## Survivors of other samples\n\n";
        about.others.iter().filter(survivors).for_each(|line| out += &format!("- {}\n", shown(line)));
    }
    out += "\n## Judged equivalent\n\n";
    for line in lines.iter().chain(&about.others).filter(|line| is_equivalent(line, equivalents)) {
        out += &format!("- {}. {}\n", shown(line), equivalents[&line.key]);
    }
    out
}

/// The place with its line, then the name without the file.
fn shown(line: &Line) -> String {
    let rest = line.key.split_once(' ').map_or(line.key.as_str(), |(_, rest)| rest);
    format!("{} {}", line.place, rest)
}

const HEAD: &str = "# What the tests notice

A mutant is the program with one small change: another operator, a condition that is always true, a function that returns
at once. A test that fails kills it; a mutant that survives is either a change that no test would notice, or it is
equivalent, which means that the program does the same. `make mutants` draws a random sample of every crate, builds all of it
at once with each mutation behind a switch, learns which tests reach which mutation and what they cost, and runs those tests
for each mutant until one fails: first those beside the code, then those of the crate and of the crates that use it, and last
those between network namespaces, one at a time. A failure between namespaces counts if it comes twice. A test that takes more
than five times its time counts as failed by time. As root, each program has namespaces and a control group of its own, so
that one which hangs is ended with all that it started. A mutant that was killed is not run again while its file is the same,
apart from the tests in it; survivors are run again when anything has changed that could kill them. A run that was stopped
goes on where it was.

```text
make mutants                                          # the sample of this page
tools/mutants/run --sample 100 --seed 7               # another one, of all crates together; --no-write leaves this page alone
tools/mutants/run --crate shaper --sample 60 --seed 7 # of one crate; --crate can be given more than once
tools/mutants/run --each 20 --seed 7                  # as many of each crate
tools/mutants/run --changed REVISION                  # all mutations of the lines that changed since
```

Only tests in Rust are run, each alone. The tests in Python (twins, experiments, claims) would kill more. `py` has no tests in
Rust and is not mutated; neither are the programs' `main` and the programs in C of `bpf/`.
";

const CRATES: &str = "
The columns on the right count all samples of the crate whose results are of the present sources, not only that of this page.

| crate | drawn | run, and compile | killed | survived | equivalent | noticed | all samples | noticed |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
";
