//! `support`: one archive with what is needed to find out what is wrong, and without secrets: tokens' hashes, paths of keys,
//! commands and subscribers of the file are left out, and so are addresses of flows.

use crate::ask::DEFAULT_NAME;
use crate::cli::Support;
use crate::error::Error;
use crate::file::LOG;
use penstock_appliance::ask;
use penstock_appliance::socket::client;
use penstock_appliance::socket::message::Request;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::Path;
use std::process::Command;

/// The last lines of the log that are taken.
const LINES: usize = 500;
/// What the system says of itself.
const COMMANDS: [(&str, &[&str]); 5] = [
    ("system.txt", &["uname", "-a"]),
    ("links.txt", &["ip", "-s", "link"]),
    ("qdiscs.txt", &["tc", "-s", "qdisc"]),
    ("rules.txt", &["iptables-legacy-save", "-c", "-t", "mangle"]),
    ("rules-nft.txt", &["iptables-save", "-c", "-t", "mangle"]),
];
const FILES: [(&str, &str); 3] = [
    ("os-release.txt", "/etc/os-release"),
    ("queues.txt", "/proc/net/netfilter/nfnetlink_queue"),
    ("memory.txt", "/proc/meminfo"),
];

/// Writes the archive; returns what to say.
///
/// # Errors
/// Returns why it cannot be written.
pub fn run(support: &Support) -> Result<String, Error> {
    let place = std::env::temp_dir().join(format!("penstock-support-{}", std::process::id()));
    let folder = place.join("support");
    fs::create_dir_all(&folder).map_err(Error::io("cannot write the archive"))?;
    let packed = collect(support, &folder).and_then(|()| pack(&place, &support.out));
    let _ = fs::remove_dir_all(&place);
    packed.map_err(Error::io("cannot write the archive"))?;
    if support.ask.json {
        return Ok(format!("{}\n", json!({"file": support.out})));
    }
    Ok(format!("{} has what is needed, without secrets; look into it before you send it\n", support.out.display()))
}

fn collect(support: &Support, folder: &Path) -> io::Result<()> {
    fs::write(folder.join("version.txt"), format!("penstock-gateway {}\n", env!("CARGO_PKG_VERSION")))?;
    let status =
        ask::socket(&support.ask, DEFAULT_NAME, "penstock-gateway").map_err(|e| e.to_string()).and_then(|path| {
            client::ask(&path, &Request::Status)
                .map(|status| format!("{:#}\n", unnamed(status)))
                .map_err(|e| e.to_string())
        });
    fs::write(folder.join("status.json"), status.unwrap_or_else(|why| why))?;
    if let Some(file) = &support.file {
        fs::write(folder.join("gateway.toml"), redacted(&fs::read_to_string(file)?))?;
    }
    for (name, words) in COMMANDS {
        let output = Command::new(words[0]).args(&words[1..]).output();
        let text =
            output.map_or_else(|e| format!("{}: {e}\n", words[0]).into_bytes(), |o| [o.stdout, o.stderr].concat());
        fs::write(folder.join(name), text)?;
    }
    for (name, path) in FILES {
        fs::write(folder.join(name), fs::read_to_string(path).unwrap_or_else(|e| format!("{path}: {e}\n")))?;
    }
    let log = fs::read_to_string(LOG).unwrap_or_else(|e| format!("{LOG}: {e}\n"));
    let lines: Vec<&str> = log.lines().collect();
    fs::write(folder.join("log.jsonl"), lines[lines.len().saturating_sub(LINES)..].join("\n") + "\n")
}

fn pack(place: &Path, out: &Path) -> io::Result<()> {
    let out = std::path::absolute(out)?;
    let status = Command::new("tar").arg("-czf").arg(&out).arg("-C").arg(place).arg("support").status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("tar: {status}"))) }
}

/// Returns a status without what it tells of each subscriber.
fn unnamed(mut status: Value) -> Value {
    let keys = status.as_object_mut().into_iter();
    keys.for_each(|status| ["subscribers", "callers"].into_iter().for_each(|key| drop(status.remove(key))));
    status
}

/// Returns the file without values that are secret or personal: of the keys of `[page]` and `[subscribers]`, and of
/// `command`. Lines stay where they are, so that numbers of lines in messages fit.
fn redacted(text: &str) -> String {
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
        let private = open > 0 || ["page", "subscribers"].contains(&first) || key == "command" || key.contains('.');
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

    #[test]
    fn a_status_names_no_subscriber() {
        let status = json!({"state": "open", "callers": [{"name": "alice"}], "subscribers": [{"name": "bob"}]});
        assert_eq!(unnamed(status), json!({"state": "open"}));
        assert_eq!(unnamed(json!("an error")), json!("an error"));
    }

    #[test]
    fn nothing_secret_is_left() {
        let text = "[link]\nrate = \"9Mbit/s\"\ncommand = [\"modem\",\n  \"--password\", \"hunter2\"]\nlimit = \"10p\"\n\n[page]\nreaders = [\n  \
                    \"abcd\",\n]\nkey = \"/secret.pem\"\n[subscribers]\nalice = [\"10.0.0.1/32\"]\n[subscribers.bob]\nprefixes = [\"10.0.0.2/32\"]\n[discipline]\nname = \"codel\"\n";
        let shown = redacted(text);
        for secret in ["hunter2", "modem", "abcd", "secret", "10.0.0.1", "10.0.0.2"] {
            assert!(!shown.contains(secret), "{secret}: {shown}");
        }
        for kept in ["rate = \"9Mbit/s\"", "limit = \"10p\"", "name = \"codel\"", "alice = \"left out\""] {
            assert!(shown.contains(kept), "{kept}: {shown}");
        }
        assert_eq!(shown.lines().count(), text.lines().count());
    }
}
