//! Mutates the sources of all crates that have tests in Rust and tells which mutations no test notices.

mod apart;
mod compile;
mod crates;
mod find;
mod page;
mod run;
mod session;
mod splice;
mod tree;

use anyhow::{Context, Result, bail};
use clap::Parser;
use compile::{Binary, Folders};
use crates::Crates;
use page::{About, Line, Tests};
use run::{Known, Longest, Outcome};
use session::Session;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tree::{Inputs, Mutant};

/// What the tests did without a mutation.
const BASELINE: &str = "tools/mutants/baseline.json";
/// What became of the mutants.
const RESULTS: &str = "tools/mutants/results.jsonl";
/// Which survivors are equivalent, and why.
const EQUIVALENT: &str = "tools/mutants/equivalent.toml";

/// Mutations of each crate that are drawn if nothing else is said.
const EACH: usize = 60;

/// Mutates the sources of all crates that have tests in Rust and tells which mutations no test notices.
#[derive(Parser)]
struct Arguments {
    /// How many mutations are drawn, of all crates that are asked for together; some of them do not compile.
    #[arg(long, conflicts_with = "each")]
    sample: Option<usize>,
    /// How many are drawn of each crate [default: 60].
    #[arg(long)]
    each: Option<usize>,
    /// Only mutations of this crate; can be given more than once.
    #[arg(long = "crate", value_name = "CRATE")]
    only_crates: Vec<String>,
    /// Decides which are drawn; as a rule the hash of a commit.
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
    /// A test that takes more seconds than this is left out; those between network namespaces mostly wait.
    #[arg(long, default_value_t = 180)]
    longest_wait: u64,
    /// Lists the mutations and runs nothing.
    #[arg(long)]
    list: bool,
    /// Runs nothing, and writes the page of the results that are there.
    #[arg(long)]
    page: bool,
    /// Leaves docs/results/mutants.md alone.
    #[arg(long)]
    no_write: bool,
    /// The root of the project.
    #[arg(long, default_value = ".")]
    root: PathBuf,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let root = arguments.root.canonicalize()?;
    let crates = Crates::read(&root)?;
    let all = tree::mutants(&root, &crates)?;
    let drawn = drawn(&arguments, &root, &crates, &all)?;
    if arguments.list {
        drawn.iter().for_each(|mutant| println!("{}:{} {}", mutant.file, mutant.site.line, mutant.key));
        return Ok(());
    }
    let inputs = tree::inputs(&root, &crates)?;
    let known = page::read(&root.join(RESULTS))?;
    let lacks = |mutant: &&Mutant| known.get(&mutant.key).is_none_or(|line| !line.holds(&inputs, &mutant.file));
    let mut missing: Vec<Mutant> = drawn.iter().filter(lacks).cloned().collect();
    missing.sort_by_key(|mutant| known.get(&mutant.key).is_some_and(|line| line.outcome != "survived"));
    eprintln!("mutants: {} of {} drawn, {} to run", drawn.len(), all.len(), missing.len());
    if !missing.is_empty() && !arguments.page {
        Judge::new(&arguments, &root, &crates, &inputs, &known, missing)?.run()?;
    }
    tell(&arguments, &root, &drawn, &all, inputs)
}

/// Writes the page, or prints it if it is not of the sample.
fn tell(arguments: &Arguments, root: &Path, drawn: &[Mutant], all: &[Mutant], inputs: Inputs) -> Result<()> {
    let known = page::read(&root.join(RESULTS))?;
    let line = |mutant: &Mutant| known.get(&mutant.key).map(|line| Line { place: place(mutant), ..line.clone() });
    let lines: Vec<Line> = drawn.iter().filter_map(line).collect();
    let mut each: BTreeMap<String, usize> = BTreeMap::new();
    drawn.iter().for_each(|mutant| *each.entry(mutant.krate().to_string()).or_default() += 1);
    let names: BTreeSet<&str> = drawn.iter().map(|mutant| mutant.key.as_str()).collect();
    let others = all.iter().filter(|mutant| !names.contains(mutant.key.as_str())).filter_map(line);
    let equivalents = page::equivalents(&root.join(EQUIVALENT))?;
    let about = About {
        sample: sample_says(arguments, drawn.len()),
        revision: output(root, &["describe", "--always", "--dirty"])?,
        inputs: inputs.all.clone(),
        all: all.len(),
        drawn: each,
        pending: drawn.len() - lines.len(),
        outdated: lines.iter().filter(|line| !line.holds(&inputs, line.file())).count(),
        others: others.filter(|line| line.holds(&inputs, line.file())).collect(),
        baseline: page::read_baseline(&root.join(BASELINE))?,
    };
    let text = page::page(&about, &lines, &equivalents);
    let part = arguments.only.is_some() || arguments.changed.is_some() || !arguments.only_crates.is_empty();
    if arguments.no_write || part {
        println!("{text}");
        return Ok(());
    }
    std::fs::write(root.join("docs/results/mutants.md"), text)?;
    if about.pending + about.outdated == 0 {
        let done = Command::new("tools/stale").args(["--note", "docs/results/mutants.md"]).current_dir(root).status()?;
        anyhow::ensure!(done.success(), "tools/stale: {done}");
    }
    Ok(())
}

fn sample_says(arguments: &Arguments, drawn: usize) -> String {
    let by = format!("by the hash of `{}` and the mutation's name", arguments.seed);
    match (&arguments.changed, arguments.sample) {
        (Some(revision), _) => format!("all {drawn} mutations of lines changed since {revision}"),
        (None, Some(_)) => format!("{drawn} {by}"),
        (None, None) => format!("{} of each crate, {drawn} in all, {by}", arguments.each.unwrap_or(EACH)),
    }
}

/// Those that are wanted, in the order of their files.
fn drawn(arguments: &Arguments, root: &Path, crates: &Crates, all: &[Mutant]) -> Result<Vec<Mutant>> {
    let mutated = crates.mutated();
    if let Some(name) = arguments.only_crates.iter().find(|name| !mutated.contains(name)) {
        bail!("there is no crate {name} with tests in Rust, but {}", mutated.join(", "));
    }
    let mut ranked: Vec<(Vec<u8>, usize)> = Vec::new();
    let changed = arguments.changed.as_deref().map(|revision| changed_lines(root, revision)).transpose()?;
    for (index, mutant) in all.iter().enumerate() {
        let named = arguments.only.as_ref().is_none_or(|text| mutant.key.contains(text));
        let lines = changed.as_ref().is_none_or(|lines| lines.contains(&(mutant.file.clone(), mutant.site.line)));
        let own = arguments.only_crates.is_empty() || arguments.only_crates.iter().any(|name| name == mutant.krate());
        if named && lines && own {
            ranked.push((Sha256::digest(format!("{} {}", arguments.seed, mutant.key)).to_vec(), index));
        }
    }
    ranked.sort();
    let most = if changed.is_some() { usize::MAX } else { arguments.sample.unwrap_or(usize::MAX) };
    let most_of_each =
        if changed.is_some() || arguments.sample.is_some() { usize::MAX } else { arguments.each.unwrap_or(EACH) };
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    ranked.retain(|(_, index)| {
        let count = counts.entry(all[*index].krate()).or_default();
        *count += 1;
        *count <= most_of_each
    });
    let mut chosen: Vec<usize> = ranked.into_iter().take(most).map(|(_, index)| index).collect();
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

/// Builds and runs mutants.
struct Judge<'a> {
    root: &'a Path,
    inputs: &'a Inputs,
    known: &'a BTreeMap<String, Line>,
    equivalents: BTreeMap<String, String>,
    longest: Longest,
    /// Those without a result.
    missing: Vec<Mutant>,
    session: Session,
    apart: apart::Apart,
    counts: BTreeMap<String, usize>,
}

impl<'a> Judge<'a> {
    /// Builds them, or goes on with what an earlier run has built.
    fn new(
        arguments: &Arguments,
        root: &'a Path,
        crates: &Crates,
        inputs: &'a Inputs,
        known: &'a BTreeMap<String, Line>,
        missing: Vec<Mutant>,
    ) -> Result<Self> {
        let home = root.join("target/mutants");
        let folders = Folders { root: root.to_path_buf(), tree: home.join("tree"), target: home.join("build") };
        let keys: Vec<String> = missing.iter().map(|mutant| mutant.key.clone()).collect();
        let longest = Longest {
            cpu: Duration::from_secs(arguments.longest),
            waiting: Duration::from_secs(arguments.longest_wait),
        };
        let (counts, apart) = (BTreeMap::new(), apart::Apart::new()?);
        let session = Session::going_on(&home, &inputs.all, &keys)?.unwrap_or_default();
        let equivalents = page::equivalents(&root.join(EQUIVALENT))?;
        let mut judge = Self { root, inputs, known, equivalents, longest, missing, session, apart, counts };
        if judge.session.binaries.is_empty() {
            judge.session = Session::begun(&home, &inputs.all, keys);
            let mut refused = BTreeSet::new();
            let built = compile::build(&folders, crates, &judge.missing, &mut refused);
            for number in &refused {
                let mutant = judge.missing[*number as usize - 1].clone();
                page::append(&root.join(RESULTS), &judge.line(&mutant, "unviable", Duration::ZERO))?;
            }
            (judge.session.binaries, judge.session.refused) = (built?, refused);
            judge.session.save()?;
        }
        Ok(judge)
    }

    /// Each result is written as soon as it is known. Tests between namespaces come last, and only for what is left then.
    fn run(mut self) -> Result<()> {
        let binaries = self.session.binaries.clone();
        for waiting in [false, true] {
            let missing = std::mem::take(&mut self.missing);
            let mut numbered: Vec<(u32, Mutant)> = self.session.numbered(missing);
            if !waiting {
                let passed = |(number, _): &(u32, Mutant)| self.session.passed.contains(number);
                let (outlived, left): (Vec<_>, Vec<_>) = numbered.into_iter().partition(passed);
                self.missing = outlived.into_iter().map(|(_, mutant)| mutant).collect();
                numbered = left;
            }
            if numbered.is_empty() {
                continue;
            }
            let known = self.learnt(&binaries, waiting)?;
            let programs: Vec<(&Binary, &Known)> = binaries.iter().zip(&known).collect();
            if waiting {
                // Who is reached by few tests is known soon, whenever the run is stopped.
                numbered.sort_by_key(|(number, _)| run::most(&programs, *number));
            }
            for (number, mutant) in numbered {
                if !self.judge(number, &mutant, &programs, waiting)? {
                    self.missing.push(mutant);
                }
            }
        }
        Ok(())
    }

    /// What tests do without a mutation: those that are not known to make namespaces, then the others as well.
    fn learnt(&mut self, binaries: &[Binary], waiting: bool) -> Result<Vec<Known>> {
        let mut baseline = page::read_baseline(&self.root.join(BASELINE)).unwrap_or_default();
        for binary in binaries {
            let Binary { name, .. } = binary;
            let waits = baseline.get(name).map(|tests| tests.waiting.clone()).unwrap_or_default();
            let names = run::listed(binary)?.into_iter().filter(|test| waits.contains(test) == waiting);
            if !self.session.known.contains_key(name) {
                let known = run::covered(&self.apart, binary, names.collect(), self.longest)?;
                self.session.known.insert(name.clone(), known);
                self.session.save()?;
            } else if waiting && !self.session.waited.contains(name) {
                let known = self.session.known.entry(name.clone()).or_default();
                let new =
                    |test: &String| known.tests.iter().all(|one| one.name != *test) && !known.left_out.contains(test);
                let more = run::covered(&self.apart, binary, names.filter(new).collect(), self.longest)?;
                known.tests.extend(more.tests);
                known.left_out.extend(more.left_out);
                known.skipped.extend(more.skipped);
                self.session.waited.insert(name.clone());
                self.session.save()?;
            }
            let known = &self.session.known[name];
            let mut tests = Tests::from(known);
            // Those that an earlier run has seen, and that this one has not needed yet.
            tests.tests += waits.iter().filter(|name| known.tests.iter().all(|one| one.name != **name)).count();
            tests.waiting.extend(waits);
            baseline.insert(name.clone(), tests);
        }
        page::write_baseline(&self.root.join(BASELINE), &baseline)?;
        Ok(binaries.iter().map(|binary| self.session.known[&binary.name].clone()).collect())
    }

    /// Runs a mutant; returns false if the tests between namespaces are left for it.
    fn judge(&mut self, number: u32, mutant: &Mutant, programs: &[(&Binary, &Known)], waiting: bool) -> Result<bool> {
        let begin = run::spent()?;
        let before = self.known.get(&mutant.key).map_or("", |line| line.by.as_str());
        let place = (mutant.krate(), module(&mutant.file));
        let outcome = run::judged(&self.apart, programs, waiting, number, before, (place.0, &place.1))?;
        // What a person has judged is not worth the long tests.
        if outcome == Outcome::Survived && !waiting && !self.equivalents.contains_key(&mutant.key) {
            self.session.passed.insert(number);
            self.session.save()?;
            return Ok(false);
        }
        let line = self.line(mutant, "", run::spent()?.saturating_sub(begin)).told(&outcome);
        page::append(&self.root.join(RESULTS), &line)?;
        *self.counts.entry(line.outcome.clone()).or_default() += 1;
        eprintln!("{number}/{} {} {} {:?}", self.session.keys.len(), line.outcome, mutant.key, self.counts);
        Ok(true)
    }

    fn line(&self, mutant: &Mutant, outcome: &str, cpu: Duration) -> Line {
        Line {
            key: mutant.key.clone(),
            place: place(mutant),
            outcome: outcome.to_string(),
            by: String::new(),
            cpu_ms: u64::try_from(cpu.as_millis()).unwrap_or(u64::MAX),
            file: self.inputs.files[&mutant.file].clone(),
            inputs: self.inputs.of(&mutant.file).to_string(),
        }
    }
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
