//! What was built and learnt, so that a run which was stopped goes on where it was.

use crate::compile::Binary;
use crate::run::Known;
use crate::tree::Mutant;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Mutants that were built together.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Session {
    /// Where it is kept.
    #[serde(skip)]
    path: PathBuf,
    /// Hash of the sources and tests.
    inputs: String,
    /// Names of the mutants; the first has number 1.
    pub keys: Vec<String>,
    /// Numbers of those that do not compile.
    pub refused: BTreeSet<u32>,
    /// The programs of tests.
    pub binaries: Vec<Binary>,
    /// What tests do without a mutation, by the name of their program.
    pub known: BTreeMap<String, Known>,
    /// Programs of which the tests between namespaces are known as well.
    pub waited: BTreeSet<String>,
    /// Numbers of those that outlived all tests but those between namespaces.
    pub passed: BTreeSet<u32>,
}

impl Session {
    /// The session that was stopped, if it has these mutants and nothing has changed.
    pub fn going_on(home: &Path, inputs: &str, keys: &[String]) -> Result<Option<Self>> {
        let path = home.join("session.json");
        let Some(mut session) = fs::read(&path).ok().and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok())
        else {
            return Ok(None);
        };
        session.path = path;
        let has = keys.iter().all(|key| session.keys.contains(key));
        let there = session.binaries.iter().all(|binary| binary.path.exists());
        Ok((session.inputs == inputs && has && there).then_some(session))
    }

    /// A new one, with no program yet. What another left is gone from now on.
    pub fn begun(home: &Path, inputs: &str, keys: Vec<String>) -> Self {
        let path = home.join("session.json");
        let _ = fs::remove_file(&path);
        Self { path, inputs: inputs.to_string(), keys, ..Self::default() }
    }

    /// Keeps it.
    pub fn save(&self) -> Result<()> {
        let new = self.path.with_extension("new");
        fs::write(&new, serde_json::to_vec(self)?)?;
        Ok(fs::rename(&new, &self.path)?)
    }

    /// These mutants with their numbers, without those that do not compile.
    pub fn numbered(&self, mutants: Vec<Mutant>) -> Vec<(u32, Mutant)> {
        let numbers: BTreeMap<&str, u32> = self.keys.iter().map(String::as_str).zip(1..).collect();
        let each = mutants.into_iter().filter_map(|mutant| Some((*numbers.get(mutant.key.as_str())?, mutant)));
        each.filter(|(number, _)| !self.refused.contains(number)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::Kind;

    #[test]
    fn a_run_goes_on_unless_something_changed() {
        let home = std::env::temp_dir().join(format!("penstock-session-{}", std::process::id()));
        fs::create_dir_all(&home).unwrap();
        let names = |all: &str| all.split(' ').map(str::to_string).collect::<Vec<_>>();
        let mut session = Session::begun(&home, "abc", names("a b c"));
        let path = std::env::current_exe().unwrap();
        session.binaries.push(Binary { name: "x".into(), folder: home.clone(), path, kind: Kind::Unit, apart: false });
        session.passed.insert(2);
        session.save().unwrap();
        let found = Session::going_on(&home, "abc", &names("c b")).unwrap().unwrap();
        assert_eq!(found.passed, BTreeSet::from([2]));
        assert!(Session::going_on(&home, "abd", &names("c b")).unwrap().is_none());
        assert!(Session::going_on(&home, "abc", &names("c d")).unwrap().is_none());
        drop(Session::begun(&home, "abc", names("a")));
        assert!(Session::going_on(&home, "abc", &names("a")).unwrap().is_none());
        fs::remove_dir_all(&home).unwrap();
    }
}
