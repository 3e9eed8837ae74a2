//! `support`: one archive with what is needed to find out what is wrong, and without secrets: what an appliance calls private in
//! its file and in its status is left out, and so are addresses of flows.

use crate::ask;
use crate::cli::Support;
use crate::error::Error;
use crate::socket::client;
use crate::socket::message::Request;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The last lines of the log that are taken.
const LINES: usize = 500;

/// A file of the archive: its name, and the command that prints it.
pub type Printed = (&'static str, &'static [&'static str]);
/// A file of the archive: its name, and its path in the system.
pub type Copied = (&'static str, &'static str);

/// What each archive has of the system.
const COMMANDS: [Printed; 3] =
    [("system.txt", &["uname", "-a"]), ("links.txt", &["ip", "-s", "link"]), ("qdiscs.txt", &["tc", "-s", "qdisc"])];
const FILES: [Copied; 2] = [("os-release.txt", "/etc/os-release"), ("memory.txt", "/proc/meminfo")];

/// What an appliance has packed.
#[derive(Debug, Clone)]
pub struct Parts<'a> {
    /// The name of the program.
    pub program: &'a str,
    /// The beginning of the names of its runs.
    pub default: &'a str,
    /// The name of its file in the archive.
    pub file: &'a str,
    /// Tables of its file whose values are left out.
    pub private_tables: &'a [&'a str],
    /// Keys of its file whose values are left out.
    pub private_keys: &'a [&'a str],
    /// Places of its status that are left out.
    pub private_status: &'a [&'a str],
    /// Further commands.
    pub commands: &'a [Printed],
    /// Further files of the system.
    pub files: &'a [Copied],
    /// Its log; `None` if it has none.
    pub log: Option<PathBuf>,
}

/// Writes the archive; returns what to say.
pub fn run(support: &Support, parts: &Parts<'_>) -> Result<String, Error> {
    let place = std::env::temp_dir().join(format!("penstock-support-{}", std::process::id()));
    let folder = place.join("support");
    fs::create_dir_all(&folder).map_err(Error::io("cannot write the archive"))?;
    let packed = collect(support, parts, &folder).and_then(|()| pack(&place, &support.out));
    let _ = fs::remove_dir_all(&place);
    packed.map_err(Error::io("cannot write the archive"))?;
    if support.ask.json {
        return Ok(format!("{}\n", json!({"file": support.out})));
    }
    Ok(format!("{} has what is needed, without secrets; look into it before you send it\n", support.out.display()))
}

fn collect(support: &Support, parts: &Parts<'_>, folder: &Path) -> io::Result<()> {
    let program = parts.program;
    fs::write(folder.join("version.txt"), format!("{program} {}\n", env!("CARGO_PKG_VERSION")))?;
    let path = ask::socket(&support.ask, parts.default, program).map_err(|e| e.to_string());
    let status = path.and_then(|path| client::ask(&path, &Request::Status).map_err(|e| e.to_string()));
    let status = status.map(|status| format!("{:#}\n", unnamed(status, parts.private_status)));
    fs::write(folder.join("status.json"), status.unwrap_or_else(|why| why))?;
    if let Some(file) = &support.file {
        fs::write(folder.join(parts.file), redacted(&fs::read_to_string(file)?, parts))?;
    }
    for (name, words) in COMMANDS.iter().chain(parts.commands) {
        let output = Command::new(words[0]).args(&words[1..]).output();
        let text =
            output.map_or_else(|e| format!("{}: {e}\n", words[0]).into_bytes(), |o| [o.stdout, o.stderr].concat());
        fs::write(folder.join(name), text)?;
    }
    for (name, path) in FILES.iter().chain(parts.files) {
        fs::write(folder.join(name), fs::read_to_string(path).unwrap_or_else(|e| format!("{path}: {e}\n")))?;
    }
    let Some(log) = &parts.log else { return Ok(()) };
    let log = fs::read_to_string(log).unwrap_or_else(|e| format!("{}: {e}\n", log.display()));
    let lines: Vec<&str> = log.lines().collect();
    fs::write(folder.join("log.jsonl"), lines[lines.len().saturating_sub(LINES)..].join("\n") + "\n")
}

fn pack(place: &Path, out: &Path) -> io::Result<()> {
    let out = std::path::absolute(out)?;
    let status = Command::new("tar").arg("-czf").arg(&out).arg("-C").arg(place).arg("support").status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("tar: {status}"))) }
}

/// Returns a status without the values at these places.
fn unnamed(mut status: Value, private: &[&str]) -> Value {
    for place in private {
        let (table, key) = place.rsplit_once('/').unwrap_or_default();
        status.pointer_mut(table).and_then(Value::as_object_mut).and_then(|table| table.remove(key));
    }
    status
}

/// Returns the file without values that are secret or personal. Lines stay where they are, so that numbers of lines in
/// messages fit.
fn redacted(text: &str, parts: &Parts<'_>) -> String {
    let (mut out, mut table, mut open) = (String::new(), String::new(), 0_i64);
    for line in text.lines() {
        let plain = line.trim();
        if open == 0 && plain.starts_with('[') {
            table = plain.trim_matches(|c| "[] ".contains(c)).to_owned();
            out += &format!("{line}\n");
            continue;
        }
        let key = plain.split('=').next().unwrap_or_default().trim();
        let first = table.split('.').next().unwrap_or_default();
        let private =
            open > 0 || parts.private_tables.contains(&first) || parts.private_keys.contains(&key) || key.contains('.');
        let shown = match () {
            () if plain.is_empty() || !private => line.to_owned(),
            () if open > 0 || key == plain => "# left out".to_owned(),
            () => format!("{key} = \"left out\""),
        };
        if private {
            let count = |c: char| plain.matches(c).count() as i64;
            open = (open + count('[') - count(']') + count('{') - count('}')).max(0);
        }
        out += &format!("{shown}\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARTS: Parts<'_> = Parts {
        program: "x",
        default: "x",
        file: "x.toml",
        private_tables: &["page", "subscribers"],
        private_keys: &["command"],
        private_status: &[],
        commands: &[],
        files: &[],
        log: None,
    };

    #[test]
    fn a_status_names_nobody() {
        let status = json!({"state": "open", "callers": [{"name": "alice"}], "c2ml": {"nodes": ["bob"], "most": 3}});
        let private = ["/callers", "/c2ml/nodes", "/enforcement/nodes"];
        assert_eq!(unnamed(status, &private), json!({"state": "open", "c2ml": {"most": 3}}));
        assert_eq!(unnamed(json!("an error"), &private), json!("an error"));
    }

    #[test]
    fn nothing_secret_is_left() {
        let text = "[link]\nrate = \"9Mbit/s\"\ncommand = [\"modem\",\n  \"--password\", \"hunter2\"]\nlimit = \"10p\"\n\n[page]\nreaders = [\n  \
                    \"abcd\",\n]\nkey = \"/secret.pem\"\n[subscribers]\nalice = [\"10.0.0.1/32\"]\n[subscribers.bob]\nprefixes = [\"10.0.0.2/32\"]\n[discipline]\nname = \"codel\"\n";
        let shown = redacted(text, &PARTS);
        for secret in ["hunter2", "modem", "abcd", "secret", "10.0.0.1", "10.0.0.2"] {
            assert!(!shown.contains(secret), "{secret}: {shown}");
        }
        for kept in ["rate = \"9Mbit/s\"", "limit = \"10p\"", "name = \"codel\"", "alice = \"left out\""] {
            assert!(shown.contains(kept), "{kept}: {shown}");
        }
        assert_eq!(shown.lines().count(), text.lines().count());
    }
}
