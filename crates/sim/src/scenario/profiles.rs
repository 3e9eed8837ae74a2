//! Profiles: what other simulators and the hosts of today do by default, as keys of a scenario. The values and their
//! sources are in `profiles.toml`.

use penstock_grammar::source::Value;
use std::borrow::Cow;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

const TEXT: &str = include_str!("profiles.toml");
/// The version of Linux that `"linux"` means.
const LINUX: (&str, &str) = ("linux", "linux-6.12");

/// The keys of one profile.
#[derive(Debug, Clone)]
pub(super) struct Profile {
    tables: DeTable<'static>,
    /// Where the file names the profile: mistakes of its values are reported there.
    at: Range<usize>,
}

/// The keys of a table of a profile, with their values.
pub(super) type Entries = Vec<(Cow<'static, str>, Value<'static>)>;

fn all() -> DeTable<'static> {
    DeTable::parse(TEXT).map(Spanned::into_inner).expect("the file belongs to the program")
}

fn table<'t>(of: &'t DeTable<'static>, key: &str) -> Option<&'t DeTable<'static>> {
    of.get(key).and_then(|value| value.get_ref().as_table())
}

/// Returns the names of all profiles.
pub(super) fn names() -> Vec<String> {
    std::iter::once(LINUX.0.to_owned()).chain(all().keys().map(|key| key.get_ref().to_string())).collect()
}

impl Profile {
    /// Finds a profile by its name, which is at `at` in the file; `None` if there is none.
    pub fn find(name: &str, at: Range<usize>) -> Option<Self> {
        let name = if name == LINUX.0 { LINUX.1 } else { name };
        Some(Self { tables: table(&all(), name)?.clone(), at })
    }

    /// Returns the keys of `[tcp]`.
    pub fn tcp(&self) -> Entries {
        table(&self.tables, "tcp").map(|found| self.entries(found)).unwrap_or_default()
    }

    /// Returns true if the least timeout and the granularity of the timer are one value of these hosts.
    pub fn has_one_timeout(&self) -> bool {
        let tcp = self.tcp();
        let is = |name: &str| tcp.iter().find(|(key, _)| key == name).and_then(|(_, value)| value.get_ref().as_str());
        is("min_rto").is_some() && is("min_rto") == is("rto_granularity")
    }

    /// Returns the parameters of an algorithm: of a kind, "aqm" or "cc", by name.
    pub fn of(&self, kind: &str, name: &str) -> Entries {
        let found = table(&self.tables, kind).and_then(|kind| table(kind, name));
        found.map(|found| self.entries(found)).unwrap_or_default()
    }

    fn entries(&self, table: &DeTable<'static>) -> Entries {
        let value = |entry: &Value<'static>| {
            let is = entry.get_ref().as_table()?.get("is")?;
            Some(Spanned::new(self.at.clone(), is.get_ref().clone()))
        };
        table.iter().filter_map(|(key, entry)| Some((key.get_ref().clone(), value(entry)?))).collect()
    }

    /// Returns an algorithm, which is its name or a table of its name and parameters, with the parameters of the
    /// profile that the file does not give.
    pub fn completed<'a>(&self, kind: &str, algorithm: &Value<'a>) -> Value<'a> {
        let (span, mut table) = match algorithm.get_ref() {
            DeValue::Table(table) => (algorithm.span(), table.clone()),
            DeValue::String(_) => {
                let key = Spanned::new(algorithm.span(), "name".into());
                (algorithm.span(), DeTable::from_iter([(key, algorithm.clone())]))
            }
            _ => return algorithm.clone(),
        };
        let name = table.get("name").and_then(|name| name.get_ref().as_str()).unwrap_or_default().to_owned();
        for (key, value) in self.of(kind, &name) {
            if !table.contains_key(key.as_ref()) {
                table.insert(Spanned::new(self.at.clone(), key), value);
            }
        }
        Spanned::new(span, DeValue::Table(table))
    }
}
