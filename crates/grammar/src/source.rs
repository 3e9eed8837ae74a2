//! A TOML file and its tree of values, each with its position.
//!
//! The TOML parser refuses tables nested deeper than 80 levels, so nothing here can exhaust the stack.

use crate::diagnosis::Diagnosis;
use penstock_core::config::ConfigError;
use penstock_core::suggest::{nearest, plain, unknown_key, unknown_name};
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

/// A value of a file with its position.
pub type Value<'a> = Spanned<DeValue<'a>>;

/// The text of a TOML file with its tree of values.
#[derive(Debug, Clone)]
pub struct Source<'a> {
    text: &'a str,
    file: &'a str,
    root: Value<'a>,
}

impl<'a> Source<'a> {
    /// Reads a text; `file` is the name of the file in messages.
    ///
    /// # Errors
    /// Returns the first place at which the text is not TOML.
    pub fn parse(text: &'a str, file: &'a str) -> Result<Self, Diagnosis> {
        let tree =
            DeTable::parse(text).map_err(|e| Diagnosis::new(text, file, e.span().unwrap_or(0..0), e.message()))?;
        let root = Spanned::new(tree.span(), DeValue::Table(tree.into_inner()));
        Ok(Self { text, file, root })
    }

    /// Returns the whole file as one table.
    pub fn root(&self) -> &Value<'a> {
        &self.root
    }

    /// Returns the value at a path of keys and indices of arrays; `None` if the file does not have it.
    pub fn get(&self, path: &[&str]) -> Option<&Value<'a>> {
        path.iter().try_fold(&self.root, |here, key| step(here, key))
    }

    /// Returns the bytes of the value at a path; if the file does not have it, those of the nearest table or array
    /// around it.
    fn find(&self, path: &[&str]) -> Range<usize> {
        let mut here = &self.root;
        let mut span = 0..0;
        for key in path {
            let Some(next) = step(here, key) else { break };
            here = next;
            span = here.span();
        }
        span
    }

    /// Returns the name of the file, as the caller gave it.
    pub fn file(&self) -> &str {
        self.file
    }

    /// Creates the diagnosis `message` at the value at a path; if the file does not have it, at the nearest table
    /// around it.
    pub fn at(&self, path: &[&str], message: &str) -> Diagnosis {
        self.span(self.find(path), message)
    }

    /// Creates the diagnosis `message` at these bytes of the file.
    pub fn span(&self, span: Range<usize>, message: &str) -> Diagnosis {
        Diagnosis::new(self.text, self.file, span, message)
    }

    /// Creates the diagnosis that there is no `what` called `name` at a path, with the nearest name and the list of all
    /// names.
    pub fn unknown(&self, path: &[&str], what: &str, name: &str, known: &[&str]) -> Diagnosis {
        self.unknown_at(self.find(path), what, name, known)
    }

    /// Creates the diagnosis that there is no `what` called `name`, like [`Source::unknown`], at these bytes of the
    /// file.
    pub fn unknown_at(&self, span: Range<usize>, what: &str, name: &str, known: &[&str]) -> Diagnosis {
        self.span(span, &unknown_name(what, name, known)).with_allowed(known.iter().copied())
    }

    /// Reads a value as a type.
    ///
    /// # Errors
    /// Returns what the type does not allow, at its place.
    pub fn read<T: DeserializeOwned>(&self, value: &Value<'a>) -> Result<T, Diagnosis> {
        T::deserialize(ValueDeserializer::from(value.clone())).map_err(|e| self.toml(&e, value.span()))
    }

    /// Returns a value as a table whose keys must all be in one of these groups.
    ///
    /// # Errors
    /// Fails if the value is not a table, or at the first key that is in none of the groups.
    pub fn table(&self, value: &Value<'a>, known: &[&'static [&'static str]]) -> Result<Table<'_, 'a>, Diagnosis> {
        let DeValue::Table(entries) = value.get_ref() else {
            let message = format!("{} is not allowed here: write a table", kind(value.get_ref()));
            return Err(self.span(value.span(), &message));
        };
        let known = known.concat();
        if let Some((key, _)) = entries.iter().find(|(key, _)| !known.contains(&key.get_ref().as_ref())) {
            let message = unknown_key(key.get_ref(), &known);
            return Err(self.span(key.span(), &message).with_allowed(known));
        }
        Ok(Table { source: self, span: value.span(), entries: entries.clone() })
    }

    /// Returns a value as a list.
    ///
    /// # Errors
    /// Fails if the value is not a list.
    pub fn list<'v>(&self, value: &'v Value<'a>) -> Result<&'v [Value<'a>], Diagnosis> {
        match value.get_ref() {
            DeValue::Array(list) => Ok(list),
            other => {
                let message = format!("{} is not allowed here: write a list of tables", kind(other));
                Err(self.span(value.span(), &message))
            }
        }
    }

    /// Turns an error of the TOML parser into a diagnosis at its place, or at `span` if it has none. For an unknown
    /// name it adds the nearest name that exists.
    pub fn toml(&self, error: &toml::de::Error, span: Range<usize>) -> Diagnosis {
        self.toml_at(error.span().unwrap_or(span), error.message())
    }

    /// Turns a message of the TOML parser into a diagnosis at `span`, with the nearest name for an unknown name.
    pub(crate) fn toml_at(&self, span: Range<usize>, message: &str) -> Diagnosis {
        self.span(span, &plain(&with_suggestion(message))).with_allowed(expected(message).unwrap_or_default())
    }
}

/// What messages call a value of this kind.
pub(crate) fn kind(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Returns the value under a key of a table or at an index of an array.
fn step<'v, 'a>(value: &'v Value<'a>, key: &str) -> Option<&'v Value<'a>> {
    match value.get_ref() {
        DeValue::Table(table) => table.get(key),
        DeValue::Array(array) => array.get(key.parse::<usize>().ok()?),
        _ => None,
    }
}

/// A table whose keys have been checked; each of its parts is a struct that takes the keys it has.
#[derive(Debug, Clone)]
pub struct Table<'s, 'a> {
    source: &'s Source<'a>,
    span: Range<usize>,
    entries: DeTable<'a>,
}

impl<'s, 'a> Table<'s, 'a> {
    /// Creates a table without entries, to which [`put`](Table::put) adds some; its mistakes are reported at `span`.
    pub fn empty(source: &'s Source<'a>, span: Range<usize>) -> Self {
        Self { source, span, entries: DeTable::new() }
    }

    /// Sets a key to a value from elsewhere in the file.
    pub fn put(&mut self, key: impl Into<Cow<'a, str>>, value: &Value<'a>) {
        self.entries.insert(Spanned::new(value.span(), key.into()), value.clone());
    }

    /// Removes a key from the table and returns its value.
    pub fn take(&mut self, key: &str) -> Option<Value<'a>> {
        self.entries.remove(key)
    }

    /// Copies all entries of another table into this one; they replace entries with the same key.
    pub fn put_over(&mut self, other: &Self) {
        for (key, value) in &other.entries {
            self.entries.insert(key.clone(), value.clone());
        }
    }

    /// Returns the value of a key; `None` if the table does not have it.
    pub fn get(&self, key: &str) -> Option<&Value<'a>> {
        self.entries.get(key)
    }

    /// Returns the bytes of the value of a key, or those of the table if it does not have the key.
    pub fn place(&self, key: &str) -> Range<usize> {
        self.get(key).map_or(self.span.clone(), Spanned::span)
    }

    /// Lists the keys of the table in their order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(|key| key.get_ref().as_ref())
    }

    /// Reads the keys that the struct `T` has; all others are left for other parts.
    ///
    /// # Errors
    /// Returns what the type does not allow, at its place.
    pub fn part<T: DeserializeOwned>(&self) -> Result<T, Diagnosis> {
        T::deserialize(self.only(crate::fields::of::<T>())).map_err(|e| self.source.toml(&e, self.span.clone()))
    }

    /// Returns a deserializer of the entries with these keys; [`Source::toml`] finds the place of its errors.
    pub fn only(&self, keys: &[&str]) -> ValueDeserializer<'a> {
        let wanted = self.entries.iter().filter(|(key, _)| keys.contains(&key.get_ref().as_ref()));
        let entries: DeTable<'a> = wanted.map(|(key, value)| (key.clone(), value.clone())).collect();
        ValueDeserializer::from(Spanned::new(self.span.clone(), DeValue::Table(entries)))
    }

    /// Returns the bytes of the table in the file.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Turns a mistake of a configuration into a diagnosis at the key that it names.
    pub fn invalid(&self, error: &ConfigError) -> Diagnosis {
        self.invalid_at(error.key, &error.message)
    }

    /// Returns the diagnosis of a mistake in the value of a key.
    pub fn invalid_at(&self, key: &str, message: &str) -> Diagnosis {
        self.source.span(self.place(key), message)
    }
}

/// Returns the allowed names in serde's sentence about an unknown field or variant; `None` for other sentences.
fn expected(message: &str) -> Option<Vec<&str>> {
    let (_, rest) = message.split_once("unknown field `").or_else(|| message.split_once("unknown variant `"))?;
    let (_, allowed) = rest.split_once("`, expected ")?;
    Some(allowed.split('`').skip(1).step_by(2).collect())
}

/// Inserts "did you mean" after the name in serde's sentence about an unknown field or variant.
fn with_suggestion(message: &str) -> String {
    let inserted = || {
        let known = expected(message)?;
        let (head, allowed) = message.split_once("`, expected ")?;
        let (_, name) = head.rsplit_once('`')?;
        let near = nearest(name, &known).first().copied()?;
        Some(format!("{head}` (did you mean `{near}`?), expected {allowed}"))
    };
    inserted().unwrap_or_else(|| message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::units::{Rate, Span};
    use serde::Deserialize;

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(deny_unknown_fields)]
    struct Speed {
        rate: Rate,
        #[serde(default)]
        delay: Span,
    }

    #[derive(Debug, Deserialize, PartialEq)]
    struct Ends {
        a: String,
    }

    fn source(text: &str) -> Source<'_> {
        Source::parse(text, "f.toml").unwrap()
    }

    #[test]
    fn values_are_found_by_keys_and_indices() {
        let source = source("[[link]]\nrate = \"1Mbit/s\"\n[[link]]\nrate = \"2Mbit/s\"\n");
        assert_eq!(source.get(&["link", "1", "rate"]).unwrap().get_ref().as_str(), Some("2Mbit/s"));
        assert!(source.get(&["link", "2", "rate"]).is_none());
        assert_eq!(source.at(&["link", "1", "rate"], "x").line, 4);
        assert_eq!(source.at(&["link", "1", "delay"], "x").line, 3, "the table around it");
        assert_eq!(source.at(&["nothing"], "x").line, 1);
    }

    #[test]
    fn two_structs_share_a_table() {
        let known = [crate::fields::of::<Speed>(), crate::fields::of::<Ends>()];
        let source = source("rate = \"1Mbit/s\"\na = \"x\"\n");
        let table = source.table(source.root(), &known).unwrap();
        assert_eq!(table.part::<Ends>().unwrap(), Ends { a: "x".into() });
        assert_eq!(table.part::<Speed>().unwrap().rate, Rate::from_bps(1_000_000));
    }

    #[test]
    fn a_key_that_no_part_has_is_refused_with_its_neighbour() {
        let source = source("a = \"x\"\nraet = \"1Mbit/s\"\n");
        let known = [crate::fields::of::<Speed>(), crate::fields::of::<Ends>()];
        let mistake = source.table(source.root(), &known).unwrap_err();
        assert_eq!((mistake.line, mistake.column), (2, 1));
        assert_eq!(mistake.allowed, ["rate", "delay", "a"]);
        assert_eq!(mistake.what, "unknown field `raet` (did you mean `rate`?), expected one of `rate`, `delay`, `a`");
    }

    #[test]
    fn serde_s_unknown_fields_get_their_neighbour_as_well() {
        let source = source("rate = \"1Mbit/s\"\ndelya = \"5ms\"\n");
        let mistake = source.read::<Speed>(source.root()).unwrap_err();
        assert_eq!(mistake.what, "unknown field `delya` (did you mean `delay`?), expected `rate` or `delay`");
        assert_eq!(mistake.line, 2);
    }

    #[test]
    fn a_value_of_another_kind_is_told_without_types() {
        let list = source("rate = [1]");
        let mistake = list.read::<Speed>(list.root()).unwrap_err();
        assert!(mistake.what.starts_with("a list is not allowed here: write a rate above zero in quotes"), "{mistake}");
        let table = source("rate = 1");
        let mistake = table.table(table.get(&["rate"]).unwrap(), &[]).unwrap_err();
        assert_eq!(mistake.what, "a number is not allowed here: write a table");
    }

    #[test]
    fn a_missing_key_and_a_wrong_unit_are_told_where_they_belong() {
        let missing = source("[x]\ndelay = \"5ms\"\n");
        let mistake = missing.read::<Speed>(missing.get(&["x"]).unwrap()).unwrap_err();
        assert_eq!((mistake.line, mistake.what.as_str()), (1, "missing field `rate`"));
        let unit = source("rate = 5");
        let mistake = unit.read::<Speed>(unit.root()).unwrap_err();
        assert!(mistake.what.contains("a rate above zero in quotes with its unit"), "{mistake}");
    }
}
