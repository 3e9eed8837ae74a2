//! `support`: one archive with what is needed to find out what is wrong, and without secrets: what an appliance calls private in
//! its file and in its status is left out, and so are comments of the file, names of nodes and addresses of flows.

use crate::ask;
use crate::cli::Support;
use crate::error::Error;
use crate::socket::client;
use crate::socket::message::Request;
use penstock_grammar::Source;
use penstock_grammar::source::Value as Setting;
use penstock_linux::random;
use serde_json::{Value, json};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The last lines of the log that are taken.
const LINES: usize = 500;
/// The most of its end that is read, and of what a command prints.
const MOST: usize = 1 << 20;
/// A command that takes longer is ended.
const PATIENCE: &str = "10s";

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
    /// Tables and keys of its file, wherever they stand, whose values are left out.
    pub private: &'a [&'a str],
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
    let cannot = Error::io("cannot write the archive");
    let read = |path: &PathBuf| {
        fs::read_to_string(path).map_err(|e| Error::User(format!("cannot read {}: {e}", path.display())))
    };
    let file = support.file.as_ref().map(read).transpose()?;
    // Nobody else makes this directory before, or reads what is in it.
    let number = u64::from_ne_bytes(random::bytes().map_err(&cannot)?);
    let place = std::env::temp_dir().join(format!("penstock-support-{number:x}"));
    let folder = place.join("support");
    DirBuilder::new().mode(0o700).create(&place).map_err(&cannot)?;
    let packed = fs::create_dir(&folder)
        .and_then(|()| collect(support, parts, file.as_deref(), &folder))
        .and_then(|()| pack(&place, &support.out));
    let _ = fs::remove_dir_all(&place);
    packed.map_err(cannot)?;
    if support.ask.json {
        return Ok(format!("{}\n", json!({"file": support.out})));
    }
    Ok(format!("{} has what is needed, without secrets; look into it before you send it\n", support.out.display()))
}

fn collect(support: &Support, parts: &Parts<'_>, file: Option<&str>, folder: &Path) -> io::Result<()> {
    let program = parts.program;
    fs::write(folder.join("version.txt"), format!("{program} {}\n", env!("CARGO_PKG_VERSION")))?;
    let path = ask::socket(&support.ask, parts.default, program).map_err(|e| e.to_string());
    let status = path.and_then(|path| client::ask(&path, &Request::Status).map_err(|e| e.to_string()));
    let status = status.map(|status| format!("{:#}\n", unnamed(status, parts.private_status)));
    fs::write(folder.join("status.json"), status.unwrap_or_else(|why| why))?;
    if let Some(text) = file {
        fs::write(folder.join(parts.file), redacted(text, parts))?;
    }
    for (name, words) in COMMANDS.iter().chain(parts.commands) {
        let output = Command::new("timeout").arg(PATIENCE).args(*words).output();
        let text =
            output.map_or_else(|e| format!("{}: {e}\n", words[0]).into_bytes(), |o| [o.stdout, o.stderr].concat());
        fs::write(folder.join(name), &text[..text.len().min(MOST)])?;
    }
    for (name, path) in FILES.iter().chain(parts.files) {
        fs::write(folder.join(name), fs::read_to_string(path).unwrap_or_else(|e| format!("{path}: {e}\n")))?;
    }
    let Some(log) = &parts.log else { return Ok(()) };
    let text = end(log).map(|text| last(&text)).unwrap_or_else(|e| format!("{}: {e}\n", log.display()));
    fs::write(folder.join("log.jsonl"), text)
}

/// Reads the end of a file, which may be of any length.
fn end(path: &Path) -> io::Result<String> {
    let mut file = fs::File::open(path)?;
    let begin = file.metadata()?.len().saturating_sub(MOST as u64);
    file.seek(SeekFrom::Start(begin))?;
    let mut bytes = Vec::new();
    file.take(MOST as u64).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the last lines of a log without names; one that is cut off is left out.
fn last(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    let lines = lines[lines.len().saturating_sub(LINES)..].iter().filter_map(|line| serde_json::from_str(line).ok());
    lines.map(|line: Value| format!("{}\n", unnamed(line, &[]))).collect()
}

/// Packs the folder `support` in this place. Only the owner may read the archive, and it takes the place of what has its name: a
/// link there is not followed.
fn pack(place: &Path, out: &Path) -> io::Result<()> {
    let mut name = out.file_name().ok_or_else(|| io::Error::other("the archive needs a name"))?.to_owned();
    name.push(format!(".{}", std::process::id()));
    let part = out.with_file_name(name);
    let archive = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
    let status = Command::new("tar").arg("-czf").arg("-").arg("-C").arg(place).arg("support").stdout(archive).status();
    let packed = match status {
        Ok(status) if status.success() => fs::rename(&part, out),
        Ok(status) => Err(io::Error::other(format!("tar: {status}"))),
        Err(error) => Err(error),
    };
    packed.inspect_err(|_| drop(fs::remove_file(&part)))
}

/// Returns a status without the values at these places, and without names of nodes.
fn unnamed(mut status: Value, private: &[&str]) -> Value {
    for place in private {
        let (table, key) = place.rsplit_once('/').unwrap_or_default();
        status.pointer_mut(table).and_then(Value::as_object_mut).and_then(|table| table.remove(key));
    }
    nameless(&mut status);
    status
}

/// Takes names of nodes out of texts, where they stand in quotes behind the number: `node 7 ("truck") is here`.
fn nameless(value: &mut Value) {
    match value {
        Value::String(text) => {
            while let Some((before, rest)) = text.split_once(" (\"") {
                // Quotes within a name have a backslash.
                let end = rest.match_indices("\")").find(|(at, _)| !rest[..*at].ends_with('\\'));
                *text = format!("{before}{}", end.map_or("", |(at, end)| &rest[at + end.len()..]));
            }
        }
        Value::Array(values) => values.iter_mut().for_each(nameless),
        Value::Object(values) => values.values_mut().for_each(nameless),
        _ => {}
    }
}

/// Returns the file without values that are secret or personal, and without comments, in which such values may stand. Lines stay
/// where they are, so that numbers of lines in messages fit. Nothing is left of a text that is no TOML.
fn redacted(text: &str, parts: &Parts<'_>) -> String {
    let source = match Source::parse(text, parts.file) {
        Ok(source) => source,
        Err(mistake) => return format!("left out, because line {} is no TOML\n", mistake.line),
    };
    let mut found = Vec::new();
    places(source.root(), parts, false, &mut found);
    found.sort_by_key(|(span, _)| span.start);
    let (mut out, mut at) = (String::new(), 0);
    for (span, private) in found {
        // Tables that stand in several parts tell the first of them again.
        if span.start < at {
            continue;
        }
        out += &without_comments(&text[at..span.start]);
        at = span.end;
        if private {
            let lines = text[span].matches('\n').count();
            out += &format!("\"left out\"{}", "\n".repeat(lines));
        } else {
            out += &text[span];
        }
    }
    out + &without_comments(&text[at..])
}

/// Lists where keys and values stand, and which values are private.
fn places(value: &Setting<'_>, parts: &Parts<'_>, private: bool, found: &mut Vec<(Range<usize>, bool)>) {
    let is_table = |value: &Setting<'_>| value.get_ref().as_table().is_some();
    if let Some(table) = value.get_ref().as_table() {
        for (key, value) in table.iter() {
            found.push((key.span(), false));
            places(value, parts, private || parts.private.contains(&key.get_ref().as_ref()), found);
        }
    } else if let Some(list) = value.get_ref().as_array().filter(|list| !private || list.iter().any(is_table)) {
        list.iter().for_each(|value| places(value, parts, private, found));
    } else {
        found.push((value.span(), private));
    }
}

/// Returns a part of a file that has neither keys nor values.
fn without_comments(text: &str) -> String {
    text.split_inclusive('\n')
        .map(|line| match line.split_once('#') {
            Some((before, comment)) => {
                format!("{}{}", before.trim_end(), if comment.ends_with('\n') { "\n" } else { "" })
            }
            None => line.to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    const PARTS: Parts<'_> = Parts {
        program: "x",
        default: "x",
        file: "x.toml",
        private: &["page", "subscribers", "command"],
        private_status: &[],
        commands: &[],
        files: &[],
        log: None,
    };

    #[test]
    fn a_status_names_nobody() {
        let status = json!({"state": "open", "callers": [{"name": "alice"}], "c2ml": {"nodes": ["bob"], "most": 3},
            "events": [{"at_s": 1.0, "what": "node 7 (\"a \\\") b\") is here"}, {"what": "node 8 (\"eve"}]});
        let private = ["/callers", "/c2ml/nodes", "/enforcement/nodes"];
        let events = json!([{"at_s": 1.0, "what": "node 7 is here"}, {"what": "node 8"}]);
        assert_eq!(unnamed(status, &private), json!({"state": "open", "c2ml": {"most": 3}, "events": events}));
        assert_eq!(unnamed(json!("an error"), &private), json!("an error"));
    }

    #[test]
    fn a_log_has_its_last_lines_and_no_names() {
        let event = json!({"do": "event", "details": format!("node 7 ({:?}) has enrolled", "truck")});
        let log = format!("{}{event}\n{{\"do\": \"cut", "{\"do\":\"set\"}\n".repeat(600));
        let told = last(&log);
        assert_eq!(told.lines().count(), LINES - 1);
        assert!(told.ends_with("{\"details\":\"node 7 has enrolled\",\"do\":\"event\"}\n"), "{told}");
    }

    #[test]
    fn of_a_long_log_the_end_is_read() {
        let path = std::env::temp_dir().join(format!("penstock-log-end-{}", std::process::id()));
        fs::write(&path, format!("{}{{\"do\":\"set\"}}\n", "x".repeat(3 * MOST))).unwrap();
        let read = end(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(read.len() == MOST && read.ends_with("{\"do\":\"set\"}\n"));
    }

    #[test]
    fn an_archive_is_the_owners_and_follows_no_link() {
        let place = std::env::temp_dir().join(format!("penstock-pack-{}", std::process::id()));
        fs::create_dir_all(place.join("support")).unwrap();
        let (mine, link) = (place.join("mine"), place.join("support.tar.gz"));
        fs::write(&mine, "precious").unwrap();
        std::os::unix::fs::symlink(&mine, &link).unwrap();
        pack(&place, &link).unwrap();
        let found = fs::symlink_metadata(&link).unwrap();
        assert!(found.is_file() && found.len() > 0);
        assert_eq!(found.permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_to_string(&mine).unwrap(), "precious");
        assert!(pack(&place.join("nowhere"), &link).is_err());
        assert_eq!(fs::read_dir(&place).unwrap().count(), 3, "what failed leaves nothing");
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn nothing_secret_is_left() {
        let text = r#"[link]
rate = "9Mbit/s"  # not "hunter2", "\\"
command = ["modem",
  "--password", "]", "hunter2"]
limit = "10p"
# command = ["modem", "hunter2"]

[ page ] # the page of hunter2
readers = [
  "abcd", # abcd
]
"key" = """
/secret.pem#"""
[subscribers]
alice = ["10.0.0.1/32"]
[subscribers.bob]
prefixes = ["10.0.0.2/32"]
[[wire]]
name = "one#two" # three
wire.subscribers = { carol = { prefixes = ["10.0.0.3"] } }
[[wire.page]]
key = "abcd"
[discipline]
name = "codel"
list = [ "a", # abcd
  "b" ]"#;
        let shown = redacted(text, &PARTS);
        for secret in ["hunter2", "modem", "abcd", "secret", "10.0.0.", "three"] {
            assert!(!shown.contains(secret), "{secret}: {shown}");
        }
        let kept = [
            "rate = \"9Mbit/s\"\n",
            "\nlimit = \"10p\"",
            "name = \"codel\"",
            "alice = \"left out\"",
            "name = \"one#two\"\n",
        ];
        for kept in kept {
            assert!(shown.contains(kept), "{kept}: {shown}");
        }
        let line = |text: &str, word: &str| text.lines().position(|line| line.contains(word));
        for word in ["limit", "page ]", "alice", "bob", "[[wire]]", "codel", "\"b\""] {
            assert_eq!(line(&shown, word), line(text, word), "{word}: {shown}");
        }
        assert_eq!(redacted("a = 1\nb = hunter2\n", &PARTS), "left out, because line 2 is no TOML\n");
    }
}
