//! Builds the copied tree, and leaves out the mutations that the compiler refuses.

use crate::splice::blamed;
use crate::tree::{self, MUTATED, Mutant, TESTED};
use anyhow::{Context, Result, bail};
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

/// A program of tests.
#[derive(Clone, Debug)]
pub struct Binary {
    /// `core`, or `sim/ladders` for a file of its own under `tests/`.
    pub name: String,
    /// The folder of its crate, in which it runs.
    pub folder: PathBuf,
    /// The program.
    pub path: PathBuf,
}

/// Writes and builds the tree until it builds. Returns the programs and the switches that had to go.
pub fn build(folders: &Folders, mutants: &[Mutant]) -> Result<(Vec<Binary>, BTreeSet<u32>)> {
    let mut refused = BTreeSet::new();
    for name in MUTATED {
        loop {
            let written = write(folders, mutants, &refused)?;
            let package = format!("penstock-{name}");
            let Err(messages) = cargo(folders, &["check", "--lib", "--keep-going", "-p", &package])? else { break };
            refuse(&messages, &written, &mut refused)?;
        }
    }
    loop {
        let written = write(folders, mutants, &refused)?;
        let packages: Vec<String> = TESTED.iter().map(|name| format!("--package=penstock-{name}")).collect();
        let mut arguments = vec!["test", "--no-run", "--lib", "--tests", "--bins"];
        arguments.extend(packages.iter().map(String::as_str));
        match cargo(folders, &arguments)? {
            Ok(messages) => return Ok((binaries(&messages)?, refused)),
            Err(messages) => refuse(&messages, &written, &mut refused)?,
        }
    }
}

fn write(folders: &Folders, mutants: &[Mutant], refused: &BTreeSet<u32>) -> Result<BTreeMap<PathBuf, String>> {
    let numbered = (1..).zip(mutants).filter(|(number, _)| !refused.contains(number));
    let numbered: Vec<(u32, &Mutant)> = numbered.collect();
    tree::write(&folders.root, &folders.tree, mutants.len(), &numbered)
}

/// The messages of cargo: an error if it failed.
fn cargo(folders: &Folders, arguments: &[&str]) -> Result<std::result::Result<Vec<Value>, Vec<Value>>> {
    let mut command = Command::new("cargo");
    command.args(arguments).args(["--locked", "--message-format=json"]);
    command.current_dir(&folders.tree).env("CARGO_TARGET_DIR", &folders.target).env("CARGO_INCREMENTAL", "1");
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

fn binaries(messages: &[Value]) -> Result<Vec<Binary>> {
    let mut out = Vec::new();
    for message in messages.iter().filter(|message| message["profile"]["test"] == true) {
        let Some(path) = message["executable"].as_str() else { continue };
        let manifest = Path::new(message["manifest_path"].as_str().context("a manifest")?);
        let folder = manifest.parent().context("a folder")?.to_path_buf();
        let name = folder.file_name().context("a name")?.to_string_lossy().into_owned();
        let target = message["target"]["name"].as_str().unwrap_or_default();
        let library = message["target"]["kind"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "lib"));
        let name = if library { name } else { format!("{name}/{target}") };
        out.push(Binary { name, folder, path: PathBuf::from(path) });
    }
    out.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(out)
}
