//! Mutates the sources of `core`, `net` and `sim` and tells which mutations no test notices.

mod compile;
mod find;
mod page;
mod run;
mod splice;
mod tree;

use anyhow::{Context, Result, bail};
use clap::Parser;
use compile::Folders;
use page::{About, Baseline, Line};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tree::{Inputs, Mutant};

/// What the tests did without a mutation.
const BASELINE: &str = "tools/mutants/baseline.json";

/// Mutates the sources of core, net and sim and tells which mutations no test notices.
#[derive(Parser)]
struct Arguments {
    /// How many mutations are drawn; some of them do not compile.
    #[arg(long, default_value_t = 660)]
    sample: usize,
    /// Decides which; as a rule the hash of a commit.
    #[arg(long, default_value = "141bd95")]
    seed: String,
    /// All mutations of lines that changed since this revision, instead of a sample.
    #[arg(long)]
    changed: Option<String>,
    /// Only mutations whose name contains this text.
    #[arg(long)]
    only: Option<String>,
    /// A test that takes more seconds of processor time than this is left out.
    #[arg(long, default_value_t = 30)]
    longest: u64,
    /// Lists the mutations and runs nothing.
    #[arg(long)]
    list: bool,
    /// Runs nothing, and writes the page of the results that are there.
    #[arg(long)]
    page: bool,
    /// Leaves docs/mutants.md alone.
    #[arg(long)]
    no_write: bool,
    /// The root of the project.
    #[arg(long, default_value = ".")]
    root: PathBuf,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let root = arguments.root.canonicalize()?;
    let all = tree::mutants(&root)?;
    let drawn = drawn(&arguments, &root, &all)?;
    if arguments.list {
        drawn.iter().for_each(|mutant| println!("{}:{} {}", mutant.file, mutant.site.line, mutant.key));
        return Ok(());
    }
    let results = root.join("tools/mutants/results.jsonl");
    let inputs = tree::inputs(&root)?;
    let known = page::read(&results)?;
    let lacks = |mutant: &&Mutant| known.get(&mutant.key).is_none_or(|line| !line.holds(&inputs, &mutant.file));
    let mut missing: Vec<Mutant> = drawn.iter().filter(lacks).cloned().collect();
    missing.sort_by_key(|mutant| known.get(&mutant.key).is_some_and(|line| line.outcome != "survived"));
    eprintln!("mutants: {} of {} drawn, {} to run", drawn.len(), all.len(), missing.len());
    if !missing.is_empty() && !arguments.page {
        judge(&arguments, &root, &missing, &known, &inputs)?;
    }
    tell(&arguments, &root, &drawn, all.len(), inputs)
}

/// Writes the page, or prints it if it is not of the sample.
fn tell(arguments: &Arguments, root: &Path, drawn: &[Mutant], all: usize, inputs: Inputs) -> Result<()> {
    let known = page::read(&root.join("tools/mutants/results.jsonl"))?;
    let line = |mutant: &Mutant| known.get(&mutant.key).map(|line| Line { place: place(mutant), ..line.clone() });
    let lines: Vec<Line> = drawn.iter().filter_map(line).collect();
    let equivalents = page::equivalents(&root.join("tools/mutants/equivalent.toml"))?;
    let about = About {
        sample: sample_says(arguments, drawn.len()),
        revision: output(root, &["describe", "--always", "--dirty"])?,
        inputs: inputs.all.clone(),
        all,
        pending: drawn.len() - lines.len(),
        outdated: lines.iter().filter(|line| !line.holds(&inputs, line.file())).count(),
        baseline: page::read_baseline(&root.join(BASELINE))?,
    };
    let text = page::page(&about, &lines, &equivalents);
    if arguments.no_write || arguments.only.is_some() || arguments.changed.is_some() {
        println!("{text}");
        return Ok(());
    }
    std::fs::write(root.join("docs/mutants.md"), text)?;
    if about.pending + about.outdated == 0 {
        let done = Command::new("tools/stale").args(["--note", "docs/mutants.md"]).current_dir(root).status()?;
        anyhow::ensure!(done.success(), "tools/stale: {done}");
    }
    Ok(())
}

fn sample_says(arguments: &Arguments, drawn: usize) -> String {
    match &arguments.changed {
        Some(revision) => format!("all {drawn} mutations of lines changed since {revision}"),
        None => format!("{drawn} by the hash of `{}` and the mutation's name", arguments.seed),
    }
}

/// Those that are wanted, in the order of their files.
fn drawn(arguments: &Arguments, root: &Path, all: &[Mutant]) -> Result<Vec<Mutant>> {
    let mut ranked: Vec<(Vec<u8>, usize)> = Vec::new();
    let changed = arguments.changed.as_deref().map(|revision| changed_lines(root, revision)).transpose()?;
    for (index, mutant) in all.iter().enumerate() {
        let named = arguments.only.as_ref().is_none_or(|text| mutant.key.contains(text));
        let lines = changed.as_ref().is_none_or(|lines| lines.contains(&(mutant.file.clone(), mutant.site.line)));
        if named && lines {
            ranked.push((Sha256::digest(format!("{} {}", arguments.seed, mutant.key)).to_vec(), index));
        }
    }
    ranked.sort();
    let count = if changed.is_some() { ranked.len() } else { arguments.sample };
    let mut chosen: Vec<usize> = ranked.into_iter().take(count).map(|(_, index)| index).collect();
    chosen.sort_unstable();
    Ok(chosen.into_iter().map(|index| all[index].clone()).collect())
}

/// Files and lines that are not as they were in this revision.
fn changed_lines(root: &Path, revision: &str) -> Result<BTreeSet<(String, usize)>> {
    let text = output(root, &["diff", "-U0", "--no-color", revision, "--", "crates"])?;
    let (mut out, mut file) = (BTreeSet::new(), String::new());
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("+++ b/") {
            file = name.to_string();
        } else if let Some(hunk) = line.strip_prefix("@@ ") {
            let new = hunk.split_whitespace().nth(1).context("a hunk")?.trim_start_matches('+');
            let (begin, count) = new.split_once(',').unwrap_or((new, "1"));
            let begin: usize = begin.parse()?;
            out.extend((begin..begin + count.parse::<usize>()?).map(|line| (file.clone(), line)));
        }
    }
    Ok(out)
}

fn output(root: &Path, arguments: &[&str]) -> Result<String> {
    let output = Command::new("git").args(arguments).current_dir(root).output()?;
    if !output.status.success() {
        bail!("git {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// Builds and runs these mutants; each result is written as soon as it is known.
fn judge(
    arguments: &Arguments,
    root: &Path,
    mutants: &[Mutant],
    known: &BTreeMap<String, Line>,
    inputs: &Inputs,
) -> Result<()> {
    let home = root.join("target/mutants");
    let folders = Folders { root: root.to_path_buf(), tree: home.join("tree"), target: home.join("build") };
    let results = root.join("tools/mutants/results.jsonl");
    let line = |mutant: &Mutant, outcome: &str, cpu: Duration| Line {
        key: mutant.key.clone(),
        place: place(mutant),
        outcome: outcome.to_string(),
        by: String::new(),
        cpu_ms: u64::try_from(cpu.as_millis()).unwrap_or(u64::MAX),
        file: inputs.files[&mutant.file].clone(),
        inputs: inputs.all.clone(),
    };
    let (binaries, refused) = compile::build(&folders, mutants)?;
    for number in &refused {
        page::append(&results, &line(&mutants[*number as usize - 1], "unviable", Duration::ZERO))?;
    }
    let (tests, left_out) = run::covered(&binaries, Duration::from_secs(arguments.longest), &home.join("reached"))?;
    eprintln!("mutants: {} tests; left out: {}", tests.len(), left_out.join(", "));
    page::write_baseline(&root.join(BASELINE), &Baseline { tests: tests.len(), left_out })?;
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (number, mutant) in (1..).zip(mutants).filter(|(number, _)| !refused.contains(number)) {
        let begin = run::spent()?;
        let before = known.get(&mutant.key).map_or("", |line| line.by.as_str());
        let outcome = run::judged(&binaries, &tests, number, before, &module(&mutant.file))?;
        let line = line(mutant, "", run::spent()?.saturating_sub(begin)).told(&outcome);
        page::append(&results, &line)?;
        *counts.entry(line.outcome.clone()).or_default() += 1;
        eprintln!("{number}/{} {} {} {:?}", mutants.len(), line.outcome, mutant.key, counts);
    }
    Ok(())
}

fn place(mutant: &Mutant) -> String {
    format!("{}:{}", mutant.file, mutant.site.line)
}

/// `aqm::codel::` of `crates/core/src/aqm/codel.rs`: how the names of its tests begin.
fn module(file: &str) -> String {
    let inner = file.split_once("/src/").map_or(file, |(_, inner)| inner);
    let path = inner.trim_end_matches(".rs").trim_end_matches("/mod").replace('/', "::");
    format!("{path}::")
}
