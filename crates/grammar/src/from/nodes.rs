//! `network.json` of LibreQoS: nodes with their rates, each with its children.

use super::tree::{DEEPEST, Member};
use super::{Note, Text};
use crate::Diagnosis;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use std::fmt;

/// A table whose keys keep their order, and may be there twice.
#[derive(Debug)]
struct Entries(Vec<(String, Entry)>);

/// A value, which may be a table.
#[derive(Debug)]
enum Entry {
    Table(Entries),
    Other(Value),
}

impl<'de> Deserialize<'de> for Entries {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;
        impl<'de> Visitor<'de> for Keys {
            type Value = Entries;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of nodes")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entries, A::Error> {
                let mut all = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    all.push(entry);
                }
                Ok(Entries(all))
            }
        }
        deserializer.deserialize_map(Keys)
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Entry;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Entry, A::Error> {
                Entries::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(Entry::Table)
            }
            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut all: A) -> Result<Entry, A::Error> {
                while all.next_element::<serde::de::IgnoredAny>()?.is_some() {}
                Ok(Entry::Other(Value::Null))
            }
            fn visit_bool<E>(self, value: bool) -> Result<Entry, E> {
                Ok(Entry::Other(value.into()))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Entry, E> {
                Ok(Entry::Other(value.into()))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Entry, E> {
                Ok(Entry::Other(value.into()))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Entry, E> {
                Ok(Entry::Other(value.into()))
            }
            fn visit_str<E>(self, value: &str) -> Result<Entry, E> {
                Ok(Entry::Other(value.into()))
            }
            fn visit_unit<E>(self) -> Result<Entry, E> {
                Ok(Entry::Other(Value::Null))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl Entries {
    fn get(&self, key: &str) -> Option<&Entry> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, entry)| entry)
    }
}

/// A node of the network, which may be one in name only.
pub(super) struct Node {
    /// Its name and its `id`, by which circuits name it.
    pub names: [String; 2],
    /// Its place among the groups; `None` if it shapes nothing and stands for the one above, if there is one.
    pub group: Option<usize>,
}

/// What is read of a file.
#[derive(Default)]
pub(super) struct Nodes {
    pub all: Vec<Node>,
    pub groups: Vec<Member>,
    pub notes: Vec<Note>,
}

/// Where names of nodes stand in a text, from one to the next.
struct Lines<'a> {
    rest: &'a str,
    line: usize,
}

impl Lines<'_> {
    /// Returns the line of the next place of a key.
    fn of(&mut self, key: &str) -> usize {
        let Ok(written) = serde_json::to_string(key) else { return self.line };
        // A key that is escaped in another way is not found: it has the line of the one before.
        if let Some(at) = self.rest.find(&written) {
            let (before, rest) = self.rest.split_at(at + written.len());
            self.line += before.matches('\n').count();
            self.rest = rest;
        }
        self.line
    }
}

/// Reads the text of a file.
pub(super) fn read(text: &Text<'_>) -> Result<Nodes, Diagnosis> {
    let entries: Entries =
        serde_json::from_str(text.text).map_err(|e| text.wrong(e.line(), &format!("network.json: {e}")))?;
    let mut nodes = Nodes::default();
    let mut lines = Lines { rest: text.text, line: 1 };
    walk(text, &entries, &mut lines, (None, 0), &mut nodes)?;
    Ok(nodes)
}

/// Reads the nodes of a table. serde_json has a limit of nesting, so this has one as well.
fn walk(
    text: &Text<'_>,
    entries: &Entries,
    lines: &mut Lines<'_>,
    (parent, depth): (Option<usize>, usize),
    nodes: &mut Nodes,
) -> Result<(), Diagnosis> {
    for (name, entry) in &entries.0 {
        let Entry::Table(node) = entry else { continue };
        let line = lines.of(name);
        if depth > DEEPEST {
            return Err(text.wrong(line, "nodes are nested too deeply"));
        }
        let group = group(text, (name, node), line, parent, nodes)?;
        let id = match node.get("id") {
            Some(Entry::Other(Value::String(id))) => id.clone(),
            _ => String::new(),
        };
        nodes.all.push(Node { names: [name.clone(), id], group });
        if let Some(Entry::Table(children)) = node.get("children") {
            walk(text, children, lines, (group, depth + 1), nodes)?;
        }
    }
    Ok(())
}

/// Makes a group of a node. A virtual one shapes nothing: what is below it belongs to the one above.
fn group(
    text: &Text<'_>,
    (name, node): (&str, &Entries),
    line: usize,
    parent: Option<usize>,
    nodes: &mut Nodes,
) -> Result<Option<usize>, Diagnosis> {
    if matches!(node.get("virtual"), Some(Entry::Other(Value::Bool(true)))) {
        return Ok(parent);
    }
    let mut rates = [[None; 2]; 2];
    for (way, key) in ["downloadBandwidthMbps", "uploadBandwidthMbps"].into_iter().enumerate() {
        let told = match node.get(key) {
            Some(Entry::Other(Value::Number(number))) => number.to_string(),
            Some(Entry::Other(Value::String(text))) => text.clone(),
            Some(Entry::Other(Value::Null)) | None => String::new(),
            _ => return Err(text.wrong(line, &format!("{key} of {name:?} is no number"))),
        };
        let ceiling =
            super::units::mbps(&told).map_err(|what| text.wrong(line, &format!("{key} of {name:?}: {what}")))?;
        if ceiling.is_none() {
            let why = if told.is_empty() { "it is not there" } else { "a rate of 0 is none here" };
            nodes.notes.push(text.note(line, &format!("{name}: {key}"), why, "it has no ceiling; write one"));
        }
        rates[way][1] = ceiling;
    }
    let about = format!("line {line}");
    nodes.groups.push(Member {
        name: name.into(),
        file: text.name.into(),
        line,
        about,
        parent,
        rates,
        ..Member::default()
    });
    Ok(Some(nodes.groups.len() - 1))
}
