//! Builds the copied tree, and leaves out the mutations that the compiler refuses.

use crate::crates::Crates;
use crate::splice::blamed;
use crate::tree::{self, Mutant};
use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folders of a run.
pub struct Folders {
    /// The project.
    pub root: PathBuf,
    /// Its copy.
    pub tree: PathBuf,
    /// What is built.
    pub target: PathBuf,
}

/// What tests cost, the cheap ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// Beside the code, in the library.
    Unit,
    /// In a program of its own.
    Integration,
}

/// A program of tests.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Binary {
    /// `core`, or `sim/ladders` for a file of its own under `tests/`.
    pub name: String,
    /// The folder of its crate, in which it runs.
    pub folder: PathBuf,
    /// The program.
    pub path: PathBuf,
    /// What its tests are.
    pub kind: Kind,
    /// True if it must not see the namespaces, processes and control groups of others.
    pub apart: bool,
}

impl Binary {
    /// The crate.
    pub fn krate(&self) -> &str {
        self.name.split('/').next().unwrap_or_default()
    }
}

/// Writes and builds the tree until it builds. Returns the programs of tests that can see the mutants, and the switches that
/// had to go.
pub fn build(
    folders: &Folders,
    crates: &Crates,
    mutants: &[Mutant],
    refused: &mut BTreeSet<u32>,
) -> Result<Vec<Binary>> {
    let seen: BTreeSet<String> = mutants.iter().flat_map(|mutant| crates.above(mutant.krate())).collect();
    let built: BTreeSet<String> = seen.union(&crates.with_programs(&seen)).cloned().collect();
    loop {
        let written = write(folders, crates, mutants, refused)?;
        let packages: Vec<String> = built.iter().map(|name| format!("--package=penstock-{name}")).collect();
        // With the programs that tests start.
        let mut arguments = vec!["build", "--tests", "--keep-going"];
        arguments.extend(packages.iter().map(String::as_str));
        match cargo(folders, &arguments)? {
            Ok(messages) => return binaries(crates, &messages, &seen),
            Err(messages) => refuse(&messages, &written, refused)?,
        }
    }
}

fn write(
    folders: &Folders,
    crates: &Crates,
    mutants: &[Mutant],
    refused: &BTreeSet<u32>,
) -> Result<BTreeMap<PathBuf, String>> {
    let numbered = (1..).zip(mutants).filter(|(number, _)| !refused.contains(number));
    let numbered: Vec<(u32, &Mutant)> = numbered.collect();
    tree::write((&folders.root, &folders.tree), crates, mutants.len(), &numbered)
}

/// The messages of cargo: an error if it failed.
fn cargo(folders: &Folders, arguments: &[&str]) -> Result<std::result::Result<Vec<Value>, Vec<Value>>> {
    let mut command = Command::new("cargo");
    command.args(arguments).args(["--locked", "--message-format=json"]);
    command.current_dir(&folders.tree).env("CARGO_TARGET_DIR", &folders.target).env("CARGO_INCREMENTAL", "1");
    // Nobody reads where a test has failed.
    command.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_PROFILE_TEST_DEBUG", "0");
    let output = command.stderr(Stdio::inherit()).output().context("cargo")?;
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let messages = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    Ok(if output.status.success() { Ok(messages) } else { Err(messages) })
}

/// Finds who is to blame for the errors.
fn refuse(messages: &[Value], written: &BTreeMap<PathBuf, String>, refused: &mut BTreeSet<u32>) -> Result<()> {
    let before = refused.len();
    let mut unexplained = String::new();
    for message in messages.iter().map(|message| &message["message"]) {
        if message["level"] != "error" || message["spans"].as_array().is_none_or(Vec::is_empty) {
            continue;
        }
        let found = blame(message, written);
        if found.is_empty() {
            unexplained += message["rendered"].as_str().unwrap_or_default();
        }
        refused.extend(found);
    }
    eprintln!("mutants: {} do not compile", refused.len());
    if refused.len() == before {
        bail!("the tree does not build, and no mutation is to blame:\n{unexplained}");
    }
    Ok(())
}

/// The switches around the places that an error names, the primary ones first.
fn blame(message: &Value, written: &BTreeMap<PathBuf, String>) -> Vec<u32> {
    let empty = Vec::new();
    let spans = message["spans"].as_array().unwrap_or(&empty);
    for primary in [true, false] {
        for span in spans.iter().filter(|span| span["is_primary"] == primary) {
            let Some(text) = span["file_name"].as_str().and_then(|file| written.get(Path::new(file))) else { continue };
            let number = |name: &str| span[name].as_u64().unwrap_or(0) as usize;
            let found = blamed(text, &(number("byte_start")..number("byte_end")));
            if !found.is_empty() {
                return found;
            }
        }
    }
    Vec::new()
}

fn binaries(crates: &Crates, messages: &[Value], seen: &BTreeSet<String>) -> Result<Vec<Binary>> {
    let mut out = Vec::new();
    for message in messages.iter().filter(|message| message["profile"]["test"] == true) {
        let Some(path) = message["executable"].as_str() else { continue };
        let manifest = Path::new(message["manifest_path"].as_str().context("a manifest")?);
        let folder = manifest.parent().context("a folder")?.to_path_buf();
        let name = folder.file_name().context("a name")?.to_string_lossy().into_owned();
        if !seen.contains(&name) {
            continue;
        }
        let target = message["target"]["name"].as_str().unwrap_or_default();
        let kinds = message["target"]["kind"].as_array().cloned().unwrap_or_default();
        let (apart, path) = (crates.asks_kernel(&name), PathBuf::from(path));
        let (name, kind) = if kinds.iter().any(|kind| kind == "test") {
            (format!("{name}/{target}"), Kind::Integration)
        } else if kinds.iter().any(|kind| kind == "bin") {
            (format!("{name}/{target}"), Kind::Unit)
        } else {
            (name, Kind::Unit)
        };
        out.push(Binary { name, folder, path, kind, apart });
    }
    out.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    Ok(out)
}
