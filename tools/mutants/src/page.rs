//! Results: a line of JSON for each mutant, and the page that sums them up.

use crate::run::Outcome;
use crate::tree::Inputs;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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
    /// Hash of the sources and all tests.
    pub inputs: String,
}

impl Line {
    /// Whether it need not be found again: nothing has changed, or what was killed stands in a file that is the same.
    pub fn holds(&self, inputs: &Inputs, file: &str) -> bool {
        self.inputs == inputs.all || (self.outcome != "survived" && inputs.files.get(file) == Some(&self.file))
    }

    /// The file that is mutated.
    pub fn file(&self) -> &str {
        self.key.split_once(' ').map_or("", |(file, _)| file)
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
    /// Drawn, but without a result.
    pub pending: usize,
    /// Drawn, and their result is of other sources.
    pub outdated: usize,
    /// The tests.
    pub baseline: Baseline,
}

/// The tests without a mutation.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Baseline {
    /// How many were run.
    pub tests: usize,
    /// Those that failed or took too long.
    pub left_out: Vec<String>,
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
    Ok(fs::write(path, serde_json::to_string(baseline)? + "\n")?)
}

/// Mutants that a person judged to be equivalent, with the reason.
pub fn equivalents(path: &Path) -> Result<BTreeMap<String, String>> {
    let text = fs::read_to_string(path).unwrap_or_default();
    toml::from_str(&text).with_context(|| path.display().to_string())
}

/// The page.
pub fn page(about: &About, lines: &[Line], equivalents: &BTreeMap<String, String>) -> String {
    let equivalent = |line: &&&Line| line.outcome == "survived" && equivalents.contains_key(&line.key);
    let count = |word: &str| lines.iter().filter(|line| line.outcome == word).count();
    let judged = lines.iter().filter(|line| equivalent(&line)).count();
    let viable = lines.len() - count("unviable");
    let cpu = lines.iter().map(|line| line.cpu_ms).sum::<u64>() / 60_000;
    let left_out = &about.baseline.left_out;
    let left_out = if left_out.is_empty() { "none".to_string() } else { left_out.join(", ") };
    let mut out = format!("{HEAD}\n| | |\n| --- | --- |\n");
    for (name, value) in [
        ("sample", about.sample.clone()),
        ("revision", about.revision.clone()),
        ("hash of sources and tests", format!("`{}`", about.inputs)),
        ("mutations to draw from", about.all.to_string()),
        ("drawn and not yet run", about.pending.to_string()),
        ("run with an earlier state of the file, or survived earlier tests", about.outdated.to_string()),
        ("tests", about.baseline.tests.to_string()),
        ("tests left out: they fail or take too long as it is", left_out),
        ("processor time", format!("{cpu} minutes")),
    ] {
        out += &format!("| {name} | {value} |\n");
    }
    out += "\n| outcome | mutants | share |\n| --- | ---: | ---: |\n";
    let share = |n: usize| 100.0 * n as f64 / viable.max(1) as f64;
    let survived = count("survived") - judged;
    let rows = [("killed", count("killed")), ("killed by time", count("timeout")), ("survived", survived)];
    for (name, n) in rows.into_iter().chain([("judged equivalent", judged)]) {
        out += &format!("| {name} | {n} | {:.1} % |\n", share(n));
    }
    out += &format!("| all that compile | {viable} | |\n| do not compile | {} | |\n", count("unviable"));
    out += "\n## Survivors\n\n";
    for line in lines.iter().filter(|line| line.outcome == "survived" && !equivalents.contains_key(&line.key)) {
        out += &format!("- {}\n", shown(line));
    }
    out += "\n## Judged equivalent\n\n";
    for line in lines.iter().filter(|line| equivalent(&line)) {
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
equivalent, which means that the program does the same. `make mutants` draws a random sample from core, emulator, linux,
shaper and sim, builds all of it at once with each mutation behind a switch, learns which tests reach which mutation and
what they cost, and runs those tests for each mutant until one fails. A test that takes more than five times its time counts as failed by time. A mutant that was killed
is not run again while its file is the same, apart from the tests in it; survivors are run again when anything has changed.

```text
make mutants                              # the sample of this page
tools/mutants/run --sample 100 --seed 7   # another one; --no-write leaves this page alone
tools/mutants/run --changed REVISION      # all mutations of the lines that changed since
```

Only tests in Rust are run, each alone. The tests in Python (twins, experiments, claims) would kill more.
";
