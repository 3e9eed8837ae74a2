//! The copy of the sources that is rewritten and built, and what the results depend on.

use crate::crates::Crates;
use crate::find::{self, Site};
use crate::splice::{Chosen, rewritten};
use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A mutation of the sources.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// Its name, which stays the same while its function does: file, function, what stood there, what happens to it.
    pub key: String,
    /// The file, from the root of the project.
    pub file: String,
    /// What is mutated, and which of its choices.
    pub site: Site,
    /// Index of the choice.
    pub choice: usize,
}

impl Mutant {
    /// The crate in which it is.
    pub fn krate(&self) -> &str {
        crate_of(&self.file)
    }
}

/// `core` of `crates/core/src/lib.rs`.
pub fn crate_of(file: &str) -> &str {
    file.split('/').nth(1).unwrap_or_default()
}

/// Every mutation of the crates.
pub fn mutants(root: &Path, crates: &Crates) -> Result<Vec<Mutant>> {
    let mut all = Vec::new();
    let mut names = crates.mutated();
    names.sort();
    for name in names {
        for path in rust_files(&root.join("crates").join(name).join("src"))? {
            let file = path.strip_prefix(root)?.to_string_lossy().into_owned();
            // A program has no library's root in which the switch could stand, and what only tests use is no source.
            let tests = file.contains("/tests/") || file.ends_with("/tests.rs") || file.contains("/src/testing");
            if tests || file.contains("/src/bin/") {
                continue;
            }
            let text = fs::read_to_string(&path)?;
            let sites = find::sites(&text).with_context(|| file.clone())?;
            all.extend(named(&file, &text, &sites));
        }
    }
    Ok(all)
}

fn named(file: &str, text: &str, sites: &[Site]) -> Vec<Mutant> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut out = Vec::new();
    for site in sites {
        let line = text.lines().nth(site.line - 1).unwrap_or_default();
        let shown = if site.range.is_empty() { line.trim() } else { &text[site.range.clone()] };
        let shown: String = shown.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(60).collect();
        for choice in 0..site.choices.len() {
            let mut key = format!("{file} {}: `{shown}`: {}", site.function, site.says(choice));
            let count = seen.entry(key.clone()).or_default();
            *count += 1;
            if *count > 1 {
                key += &format!(" ({count})");
            }
            out.push(Mutant { key, file: file.to_string(), site: site.clone(), choice });
        }
    }
    out
}

/// Hashes of what the results depend on.
pub struct Inputs {
    /// Of each source of the crates that are mutated, without its tests.
    pub files: BTreeMap<String, String>,
    /// For each crate, of all crates which decide what becomes of its mutations.
    around: BTreeMap<String, String>,
    /// Of all crates, and the versions of their dependencies.
    pub all: String,
}

impl Inputs {
    /// Hash of the sources and tests which decide what becomes of mutations in this file.
    pub fn of(&self, file: &str) -> &str {
        self.around.get(crate_of(file)).map_or("", String::as_str)
    }
}

/// Hashes the tree. Inline tests count as tests: what stands under a last `#[cfg(test)]` is no source.
pub fn inputs(root: &Path, crates: &Crates) -> Result<Inputs> {
    let lock = fs::read(root.join("Cargo.lock"))?;
    let (mut files, mut each) = (BTreeMap::new(), BTreeMap::new());
    let mutated = crates.mutated();
    for name in &mutated {
        let mut whole = Sha256::new();
        let mut folders = vec![root.join("crates").join(name)];
        // Its programs are built from there.
        folders.extend((name == "linux").then(|| root.join("bpf")));
        for path in folders.iter().map(|folder| every_file(folder)).collect::<Result<Vec<_>>>()?.concat() {
            let file = path.strip_prefix(root)?.to_string_lossy().into_owned();
            let bytes = fs::read(&path)?;
            whole.update(file.as_bytes());
            whole.update(&bytes);
            if file.contains("/src/") && !file.contains("/tests/") && !file.ends_with("/tests.rs") {
                let text = String::from_utf8_lossy(&bytes);
                let source = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
                files.insert(file, short(Sha256::new().chain_update(source)));
            }
        }
        each.insert(name.clone(), short(whole));
    }
    let together = |names: &mut dyn Iterator<Item = &String>| {
        let hashes = names.filter_map(|name| each.get(name));
        short(hashes.fold(Sha256::new().chain_update(&lock), |hash, one| hash.chain_update(one)))
    };
    let around = mutated.iter().map(|name| (name.clone(), together(&mut crates.around(name).iter()))).collect();
    Ok(Inputs { all: together(&mut each.keys()), files, around })
}

fn short(hash: Sha256) -> String {
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Copies the project without what is built, with switches for these mutants of `count`. Returns the files with switches.
/// A file that would be the same is left alone, so that little is built again.
pub fn write(
    (root, tree): (&Path, &Path),
    crates: &Crates,
    count: usize,
    mutants: &[(u32, &Mutant)],
) -> Result<BTreeMap<PathBuf, String>> {
    let files: BTreeSet<&str> = mutants.iter().map(|(_, mutant)| mutant.file.as_str()).collect();
    // A round number: another sample of about the same size leaves the files without mutations as they are.
    let switch = include_str!("switch.rs.txt").replace("SWITCHES", &count.next_multiple_of(1024).to_string());
    let libraries: Vec<String> = crates.mutated().iter().map(|name| format!("crates/{name}/src/lib.rs")).collect();
    let (mut kept, mut written) = (BTreeSet::new(), BTreeMap::new());
    for path in copied(root)? {
        let relative = path.strip_prefix(root)?.to_path_buf();
        let file = relative.to_string_lossy().into_owned();
        let library = libraries.contains(&file);
        if library || files.contains(file.as_str()) {
            let mut text = with_switches(root, &file, mutants)?;
            text.extend(library.then_some(switch.as_str()));
            put(&tree.join(&relative), text.as_bytes())?;
            written.insert(relative.clone(), text);
        } else if file == "Cargo.toml" {
            // Lints judge what a person wrote.
            let text = fs::read_to_string(&path)?.replace("\"deny\"", "\"allow\"");
            put(&tree.join(&relative), text.as_bytes())?;
        } else {
            put(&tree.join(&relative), &fs::read(&path)?)?;
        }
        kept.insert(relative);
    }
    for path in every_file(&tree.join("crates"))? {
        if !kept.contains(path.strip_prefix(tree)?) {
            fs::remove_file(path)?;
        }
    }
    Ok(written)
}

/// The files of the project that tests may want.
fn copied(root: &Path) -> Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    for top in ["Cargo.lock", "Cargo.toml", "README.md", "bpf", "crates", "docs", "examples", "python", "tests"] {
        let from = root.join(top);
        out.extend(if from.is_dir() { every_file(&from)? } else { vec![from] });
    }
    Ok(out)
}

fn with_switches(root: &Path, file: &str, mutants: &[(u32, &Mutant)]) -> Result<String> {
    let text = fs::read_to_string(root.join(file))?;
    let sites = find::sites(&text)?;
    let mut chosen: Vec<Chosen<'_>> = sites.iter().map(|site| Chosen { site, switches: Vec::new() }).collect();
    for (number, mutant) in mutants.iter().filter(|(_, mutant)| mutant.file == file) {
        let site = &mutant.site;
        let same = |one: &&mut Chosen<'_>| one.site.range == site.range && one.site.choices == site.choices;
        chosen.iter_mut().find(same).context("a place has moved")?.switches.push((mutant.choice, *number));
    }
    chosen.retain(|one| !one.switches.is_empty());
    Ok(rewritten(&text, &chosen))
}

fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|now| now == bytes) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().context("a file has a folder")?)?;
    Ok(fs::write(path, bytes)?)
}

fn rust_files(folder: &Path) -> Result<Vec<PathBuf>> {
    Ok(every_file(folder)?.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs")).collect())
}

/// All files under a folder, in the order of their names.
fn every_file(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        bail!("{} is no folder", folder.display());
    }
    let mut entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    entries.sort();
    let mut out = Vec::new();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !matches!(name.as_str(), "target" | "__pycache__" | "node_modules" | ".venv") {
                out.extend(every_file(&path)?);
            }
        } else if !name.ends_with(".so") {
            out.push(path);
        }
    }
    Ok(out)
}
