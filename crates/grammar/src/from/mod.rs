//! What people have becomes a configuration: lines of `tc`, and the files of LibreQoS.
//!
//! [`read`] knows a file by its content and returns a [`Description`], from which [`Description::gateway`] writes the file of
//! a gateway, and [`Description::link`] the link of a scenario. What has no counterpart is a [`Note`]. Open the files in
//! this order: `words.rs` splits lines of a shell and of `tc`; `devices.rs` finds interfaces in them, and `tc.rs` directions; `kinds.rs`,
//! `red.rs`, `netem.rs` and `classes.rs` read disciplines; `circuits.rs` and `nodes.rs` read the files of LibreQoS; `tree.rs` has
//! subscribers, whoever told them; `write.rs` writes.
//!
//! Sources: tc(8), tc-cake(8), tc-fq_codel(8), tc-codel(8), tc-pie(8), tc-fq_pie(8), tc-red(8), tc-sfq(8), tc-tbf(8),
//! tc-htb(8), tc-netem(8) of iproute2 6.1, and the documentation of LibreQoS 2.0.

mod circuits;
mod classes;
mod devices;
mod kinds;
mod netem;
mod nodes;
mod red;
mod tc;
mod tree;
mod units;
mod words;
mod write;

use crate::Diagnosis;
use penstock_core::link_layer::LinkLayer;
use penstock_core::units::Rate;
use serde::Serialize;

/// The most bytes of all files together.
pub const MOST_BYTES: usize = 64 << 20;
/// The most bytes of a line that are shown.
const SHOWN: usize = 200;
/// The least rate of a link, a packet of 1500 bytes in a second.
const LEAST_RATE: Rate = Rate::from_bps(12_000);

/// A file that is to be read.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    /// Its name in messages.
    pub name: &'a str,
    /// What is in it.
    pub bytes: &'a [u8],
}

/// Something that was read and has no counterpart, or another one than its name says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    /// The name of the file.
    pub file: String,
    /// The line, beginning with 1.
    pub line: usize,
    /// The word of the source.
    pub word: String,
    /// Why it has no counterpart.
    pub why: String,
    /// What to do.
    pub instead: String,
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { file, line, word, why, instead } = self;
        write!(f, "{file}:{line}: {word}: {why}; {instead}")
    }
}

/// What was recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// Lines of `tc`: commands, or what it shows.
    Tc,
    /// `ShapedDevices.csv` or `network.json` of LibreQoS, or both.
    LibreQos,
}

impl std::fmt::Display for Format {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tc => "lines of tc",
            Self::LibreQos => "files of LibreQoS",
        })
    }
}

/// A key of a TOML file, with its value and where it comes from.
#[derive(Debug, Clone, PartialEq)]
struct Key {
    key: &'static str,
    /// As TOML has it.
    value: String,
    /// The words of the source, and their line.
    from: String,
}

/// What one direction of a link has.
#[derive(Debug, Clone, Default, PartialEq)]
struct Way {
    rate: Option<(Rate, String)>,
    layer: LinkLayer,
    /// Where `layer` comes from.
    layer_from: String,
    /// True if `layer` is added to the size of IP packets, and not to what tc sees with the header of the interface.
    counts_ip: bool,
    /// True if the words of cake have said that it is not.
    is_raw: bool,
    limit: Option<Key>,
    /// The first one is its name.
    discipline: Vec<Key>,
    /// Delay, losses and the like, which only a simulated link has.
    wire: Vec<Key>,
    /// The line of `wire`.
    wire_line: usize,
}

/// A link as other tools describe it.
#[derive(Debug, Clone, PartialEq)]
pub struct Description {
    /// What was recognised.
    pub format: Format,
    /// The names of the files.
    files: Vec<String>,
    /// The interface to the link, and where it comes from.
    wan: (String, String),
    /// Download and upload.
    ways: [Way; 2],
    members: Vec<tree::Member>,
    /// What a scenario simulates, if that is not the link: its rates, and where they come from.
    busiest: Option<([Option<Rate>; 2], String)>,
    /// What has no counterpart in the file of a gateway.
    notes: Vec<Note>,
    /// What a gateway alone does not have.
    gateway_notes: Vec<Note>,
    /// What a scenario alone does not have.
    scenario_notes: Vec<Note>,
}

impl Description {
    /// Lists what the file of a gateway does not have, in the order of lines.
    pub fn gateway_notes(&self) -> Vec<Note> {
        sorted(&self.notes, &self.gateway_notes)
    }

    /// Lists what a scenario does not have, in the order of lines.
    pub fn scenario_notes(&self) -> Vec<Note> {
        sorted(&self.notes, &self.scenario_notes)
    }
}

fn sorted(all: &[Note], more: &[Note]) -> Vec<Note> {
    let mut notes: Vec<Note> = all.iter().chain(more).cloned().collect();
    notes.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    notes.dedup();
    notes
}

/// A text with its name.
#[derive(Debug, Clone, Copy)]
struct Text<'a> {
    name: &'a str,
    text: &'a str,
}

impl<'a> Text<'a> {
    fn of(given: &Given<'a>) -> Result<Self, Diagnosis> {
        let name = given.name;
        let text = std::str::from_utf8(given.bytes).map_err(|e| {
            let line = given.bytes[..e.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
            drawn(name, line, "", "this is no text in UTF-8; save the file as UTF-8")
        })?;
        Ok(Self { name, text: text.strip_prefix('\u{feff}').unwrap_or(text) })
    }

    /// Creates the diagnosis of a mistake in a line.
    fn wrong(&self, line: usize, what: &str) -> Diagnosis {
        drawn(self.name, line, self.text.lines().nth(line.saturating_sub(1)).unwrap_or(""), what)
    }

    fn note(&self, line: usize, word: &str, why: &str, instead: &str) -> Note {
        Note { file: self.name.into(), line, word: clipped(word), why: why.into(), instead: instead.into() }
    }
}

/// Returns the begin of a text, without control characters.
fn clipped(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(SHOWN).collect()
}

/// Creates the diagnosis of a mistake in a line with this text.
fn drawn(name: &str, line: usize, shown: &str, what: &str) -> Diagnosis {
    let before = "\n".repeat(line.saturating_sub(1));
    let shown = clipped(shown);
    let begin = before.len() + shown.len() - shown.trim_start().len();
    Diagnosis::new(&format!("{before}{shown}"), name, begin..before.len() + shown.trim_end().len(), what)
}

/// Writes a text as TOML has it on one line.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Reads files of one kind. A directory is for the caller to open.
///
/// # Errors
/// Says which line cannot be read, and what is allowed.
pub fn read(files: &[Given<'_>]) -> Result<Description, Diagnosis> {
    let first = files.first().map_or("", |given| given.name);
    if files.iter().map(|given| given.bytes.len()).sum::<usize>() > MOST_BYTES {
        return Err(drawn(first, 1, "", "more than 64 MiB; give the files of one link"));
    }
    let texts = files.iter().map(Text::of).collect::<Result<Vec<_>, _>>()?;
    let mut csv = None;
    let mut json = None;
    for text in &texts {
        let begin = text.text.trim_start();
        let place = if begin.starts_with('{') {
            &mut json
        } else if circuits::is_header(begin.lines().next().unwrap_or("")) {
            &mut csv
        } else if texts.len() == 1 {
            return tc::read(text);
        } else {
            let what = "beside another file this must be ShapedDevices.csv or network.json of LibreQoS";
            return Err(text.wrong(1, what));
        };
        if place.replace(*text).is_some() {
            return Err(text.wrong(1, "a second file of this kind; give one of each"));
        }
    }
    if csv.is_none() && json.is_none() {
        return Err(drawn(first, 1, "", "no file; give lines of tc, or files of LibreQoS"));
    }
    circuits::read(csv, json)
}
