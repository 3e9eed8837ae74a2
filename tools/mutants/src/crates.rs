//! The crates of the workspace, and who depends on whom: tests of a crate can only see mutations of what it depends on.

use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The crates, by the names of their folders.
#[derive(Clone, Debug, Default)]
pub struct Crates {
    /// Each with what it depends on directly; dependencies of its tests count.
    depends: BTreeMap<String, BTreeSet<String>>,
    /// Those which have tests in Rust.
    tested: BTreeSet<String>,
    /// Those which have programs.
    programs: BTreeSet<String>,
}

impl Crates {
    /// Reads the members of the workspace.
    pub fn read(root: &Path) -> Result<Self> {
        let workspace: toml::Table = fs::read_to_string(root.join("Cargo.toml"))?.parse()?;
        let members = workspace["workspace"]["members"].as_array().context("members")?;
        let mut crates = Self::default();
        for member in members.iter().filter_map(toml::Value::as_str) {
            let folder = root.join(member);
            let name = member.rsplit('/').next().unwrap_or(member).to_string();
            let text = fs::read_to_string(folder.join("Cargo.toml")).with_context(|| member.to_string())?;
            let manifest: toml::Table = text.parse()?;
            crates.add(&name, &manifest, folder.join("tests").is_dir(), folder.join("src/bin").is_dir());
        }
        Ok(crates)
    }

    fn add(&mut self, name: &str, manifest: &toml::Table, tests: bool, programs: bool) {
        let mut depends = BTreeSet::new();
        for table in ["dependencies", "dev-dependencies"] {
            let keys = manifest.get(table).and_then(toml::Value::as_table).into_iter().flat_map(toml::Table::keys);
            depends.extend(keys.filter_map(|key| key.strip_prefix("penstock-")).map(str::to_string));
        }
        depends.remove(name);
        self.depends.insert(name.to_string(), depends);
        let off = manifest.get("lib").and_then(|lib| lib.get("test")).and_then(toml::Value::as_bool) == Some(false);
        if tests || !off {
            self.tested.insert(name.to_string());
        }
        if programs {
            self.programs.insert(name.to_string());
        }
    }

    /// Those whose sources are mutated: all that have tests in Rust. What a crate depends on comes before it.
    pub fn mutated(&self) -> Vec<String> {
        let mut out: Vec<String> = self.tested.iter().cloned().collect();
        out.sort_by_key(|name| (self.below(name).len(), name.clone()));
        out
    }

    /// This crate and all that it depends on.
    pub fn below(&self, name: &str) -> BTreeSet<String> {
        self.closure(name, |of| self.depends.get(of).into_iter().flatten().cloned().collect())
    }

    /// The crates whose tests can see a mutation of this one: itself and all that depend on it.
    pub fn above(&self, name: &str) -> BTreeSet<String> {
        let users =
            |of: &str| self.depends.iter().filter(|(_, on)| on.contains(of)).map(|(user, _)| user.clone()).collect();
        let mut out = self.closure(name, users);
        out.retain(|name| self.tested.contains(name));
        out
    }

    /// The crates whose sources or tests can change what becomes of a mutation of this one.
    pub fn around(&self, name: &str) -> BTreeSet<String> {
        self.above(name).iter().flat_map(|user| self.below(user)).collect()
    }

    /// Those of these crates and of what they depend on that have programs, which tests start.
    pub fn with_programs(&self, names: &BTreeSet<String>) -> BTreeSet<String> {
        let below: BTreeSet<String> = names.iter().flat_map(|name| self.below(name)).collect();
        below.intersection(&self.programs).cloned().collect()
    }

    /// True if tests of this crate may ask the kernel for more than files.
    pub fn asks_kernel(&self, name: &str) -> bool {
        self.below(name).contains("linux")
    }

    fn closure(&self, name: &str, next: impl Fn(&str) -> Vec<String>) -> BTreeSet<String> {
        let (mut out, mut open) = (BTreeSet::new(), vec![name.to_string()]);
        while let Some(name) = open.pop() {
            if out.insert(name.clone()) {
                open.extend(next(&name));
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(of: &BTreeSet<String>) -> Vec<&str> {
        of.iter().map(String::as_str).collect()
    }

    fn three() -> Crates {
        let mut crates = Crates::default();
        let manifest = |text: &str| text.parse::<toml::Table>().unwrap();
        crates.add("core", &manifest("[dev-dependencies]\npenstock-core = 1"), true, false);
        crates.add("linux", &manifest("[dependencies]\npenstock-core = 1"), false, false);
        crates.add("gate", &manifest("[dependencies]\npenstock-linux = 1\nserde = 1"), true, true);
        crates.add("sim", &manifest("[dev-dependencies]\npenstock-core = 1"), true, false);
        crates.add("py", &manifest("[dependencies]\npenstock-sim = 1\n[lib]\ntest = false"), false, false);
        crates
    }

    #[test]
    fn a_mutation_is_seen_by_the_crates_above_it() {
        let crates = three();
        assert_eq!(names(&crates.above("linux")), ["gate", "linux"]);
        assert_eq!(names(&crates.above("core")), ["core", "gate", "linux", "sim"]);
        assert_eq!(names(&crates.around("linux")), ["core", "gate", "linux"]);
    }

    #[test]
    fn what_a_crate_depends_on_comes_before_it() {
        assert_eq!(three().mutated(), ["core", "linux", "sim", "gate"]);
    }

    #[test]
    fn programs_are_built_for_the_tests_that_start_them() {
        let crates = three();
        assert_eq!(names(&crates.with_programs(&crates.above("core"))), ["gate"]);
        assert!(crates.with_programs(&crates.above("sim")).is_empty());
    }

    #[test]
    fn what_depends_on_linux_asks_the_kernel() {
        let crates = three();
        assert!(crates.asks_kernel("linux") && crates.asks_kernel("gate") && !crates.asks_kernel("sim"));
    }
}
