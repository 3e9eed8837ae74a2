//! `check --from`: the files of other tools as the file of a gateway.

use crate::cli::Checked;
use crate::error::Error;
use crate::file::Kind;
use crate::surroundings::{answered, say};
use penstock_grammar::from::{Description, Given, MOST_BYTES, Note, read};
use serde_json::json;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// The files of LibreQoS in a directory.
const IN_A_DIRECTORY: [&str; 2] = ["ShapedDevices.csv", "network.json"];

/// Makes a file of others, checks it as `check` does, and writes or prints it.
pub fn run(asked: &Checked, right: fn(Kind) -> (String, Vec<String>)) -> Result<u8, Error> {
    let files = asked.from.iter().map(|path| opened(path)).collect::<Result<Vec<_>, _>>()?.concat();
    let given: Vec<Given<'_>> = files.iter().map(|(name, bytes)| Given { name, bytes }).collect();
    let description = read(&given).map_err(Box::new)?;
    let (text, listed) = (description.gateway(), description.gateway_notes());
    let (what, notes) = right(checked(&text)?);
    if let Some(path) = &asked.out {
        written(path, &text)?;
    }
    let told = json!({
        "from": asked.from, "format": description.format, "right": true, "notes": notes, "listed": listed,
        "out": asked.out, "text": text,
    });
    if asked.json {
        return answered(true, &told, |_| String::new());
    }
    let summary = summary(asked, &description, &what, (&notes, &listed));
    if asked.out.is_some() {
        return answered(false, &told, |_| format!("{summary}\n"));
    }
    // The standard output has the file alone, so that it can go into one.
    say(&summary);
    answered(false, &told, |_| text)
}

/// Reads the text that was made, as every other file.
fn checked(text: &str) -> Result<Kind, Error> {
    Kind::parse(text, "the file that was made").map_err(|mistake| Box::new(mistake).into())
}

/// Tells what was made, and lists what has no counterpart.
fn summary(asked: &Checked, of: &Description, what: &str, (notes, listed): (&[String], &[Note])) -> String {
    let place = asked.out.as_ref().map_or_else(|| "the file that was made".into(), |path| path.display().to_string());
    let mut lines = vec![format!("read: {}", of.format), format!("{place} is right: {what}")];
    lines.extend(notes.iter().map(|note| format!("note: {note}")));
    lines.extend(listed.iter().map(|note| format!("not the same: {note}")));
    lines.join("\n")
}

/// Returns the bytes of a file, or those of the files of LibreQoS in a directory.
fn opened(path: &Path) -> Result<Vec<(String, Vec<u8>)>, Error> {
    if !path.is_dir() {
        return Ok(vec![(path.display().to_string(), bytes(path)?)]);
    }
    let there: Vec<PathBuf> = IN_A_DIRECTORY.iter().map(|name| path.join(name)).filter(|path| path.is_file()).collect();
    if there.is_empty() {
        let what = format!("{} has neither {}; name a file", path.display(), IN_A_DIRECTORY.join(" nor "));
        return Err(Error::User(what));
    }
    there.iter().map(|path| Ok((path.display().to_string(), bytes(path)?))).collect()
}

fn bytes(path: &Path) -> Result<Vec<u8>, Error> {
    let cannot = |e| Error::User(format!("cannot read {}: {e}", path.display()));
    let mut all = Vec::new();
    // One more than is allowed, so that the reader says that it is too much.
    let most = MOST_BYTES as u64 + 1;
    File::open(path).map_err(cannot)?.take(most).read_to_end(&mut all).map_err(cannot)?;
    Ok(all)
}

/// Writes a file that does not exist yet.
fn written(path: &Path, text: &str) -> Result<(), Error> {
    let mut file = File::options().write(true).create_new(true).open(path).map_err(|e| match e.kind() {
        ErrorKind::AlreadyExists => {
            Error::User(format!("{} exists already and is not replaced; choose another name", path.display()))
        }
        _ => Error::User(format!("cannot write {}: {e}", path.display())),
    })?;
    file.write_all(text.as_bytes()).map_err(Error::io("cannot write the file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(files: &[(&str, &[u8])]) -> Result<String, String> {
        let given: Vec<Given<'_>> = files.iter().map(|(name, bytes)| Given { name, bytes }).collect();
        read(&given).map(|described| described.gateway()).map_err(|mistake| mistake.to_string())
    }

    /// The disciplines and rates of what is made, download first.
    fn ways(text: &str) -> Vec<String> {
        match checked(text) {
            Ok(Kind::Link(file)) => {
                file.settings.ways.iter().map(|way| format!("{} {}", way.aqm.name(), way.rate)).collect()
            }
            Ok(Kind::Alone(_)) => panic!("it has no interfaces\n{text}"),
            Err(mistake) => panic!("{mistake}\n{text}"),
        }
    }

    #[test]
    fn what_is_made_of_each_format_is_a_file() {
        macro_rules! data {
            ($($name:literal),*) => {
                made(&[$(($name, include_bytes!(concat!("../../grammar/tests/data/from/", $name)))),*]).unwrap()
            };
        }
        assert_eq!(ways(&data!("home.sh")), ["cake 95Mbit/s", "cake 38Mbit/s"]);
        assert_eq!(ways(&data!("shown.txt")), ["cake 20Mbit/s", "cake 2.5Mbit/s"]);
        assert_eq!(ways(&data!("classes.sh")), ["droptail 100Mbit/s", "droptail 20Mbit/s"]);
        assert_eq!(ways(&data!("wire.sh")), ["droptail 40Mbit/s", "pie 10Mbit/s"]);
        assert_eq!(ways(&data!("ShapedDevices.csv", "network.json")), ["fq-codel 280Mbit/s", "fq-codel 80Mbit/s"]);
    }

    /// Every discipline that is known, each alone and below a shaper.
    #[test]
    fn what_is_made_of_each_discipline_is_a_file() {
        let kinds = [
            "cake",
            "fq_codel",
            "codel",
            "pie",
            "fq_pie",
            "sfq",
            "pfifo",
            "bfifo",
            "pfifo_fast",
            "red limit 60000 avpkt 1000",
        ];
        for kind in kinds {
            let root = format!("tc qdisc add dev eth0 root {kind}");
            let below = format!(
                "tc qdisc add dev eth0 root handle 1: tbf rate 9mbit burst 9k latency 9ms\ntc qdisc add dev eth0 parent 1:1 {kind}"
            );
            let class = format!(
                "tc qdisc add dev eth0 root handle 1: htb\ntc class add dev eth0 parent 1: classid 1:1 htb rate 9mbit\n\
                 tc qdisc add dev eth0 parent 1:1 {kind}\n\
                 tc filter add dev eth0 parent 1: u32 match ip src 10.0.0.0/8 flowid 1:1"
            );
            for text in [root, below, class] {
                let made = made(&[("f", text.as_bytes())]).unwrap();
                assert_eq!(ways(&made).len(), 2);
            }
        }
    }

    /// Whatever is promised to whom below whom, what is made is a tree that a link of the rate can keep.
    #[test]
    fn what_is_made_of_any_table_is_a_file() {
        let mut state = 1u64;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..300 {
            let mut csv = "Circuit ID,Circuit Name,Parent Node,IPv4,IPv6,Download Min Mbps,Upload Min Mbps,Download Max Mbps,Upload Max Mbps\n".to_owned();
            for row in 0..next(20) + 1 {
                let parent = ["", "a", "b", "c", "d", "none"][next(6) as usize];
                csv += &format!("{},n{},{parent},10.0.{}.{}/{},", next(9), next(4), next(3), row, 24 + next(9));
                csv += &format!(
                    "2001:db8:{}::/{},{}.{},{},{},{}\n",
                    next(5),
                    40 + next(30),
                    next(99),
                    next(999),
                    next(99),
                    next(99),
                    next(99)
                );
            }
            let mut node = |more: &str| {
                let [down, up] = [next(99), next(99)];
                format!("{{\"downloadBandwidthMbps\": {down}, \"uploadBandwidthMbps\": {up}.5{more}}}")
            };
            let (c, n1, d) = (node(""), node(""), node(""));
            let is_virtual = csv.len().is_multiple_of(2);
            let b = node(&format!(", \"virtual\": {is_virtual}, \"children\": {{\"c\": {c}}}"));
            let a = node(&format!(", \"children\": {{\"b\": {b}, \"n1\": {n1}}}"));
            let json = format!("{{\"a\": {a}, \"d\": {d}}}");
            let text =
                made(&[("c", csv.as_bytes()), ("j", json.as_bytes())]).unwrap_or_else(|e| panic!("{e}\n{csv}\n{json}"));
            assert_eq!(ways(&text).len(), 2, "{csv}\n{json}\n{text}");
        }
    }

    #[test]
    fn a_file_that_is_there_is_not_replaced() {
        let place = std::env::temp_dir().join(format!("penstock-from-{}", std::process::id()));
        let _ = std::fs::remove_file(&place);
        written(&place, "new").unwrap();
        let refused = written(&place, "other").unwrap_err();
        assert!(
            refused.to_string().contains("exists already and is not replaced") && refused.exit_code() == 2,
            "{refused}"
        );
        assert_eq!(std::fs::read_to_string(&place).unwrap(), "new");
        std::fs::remove_file(&place).unwrap();
    }
}
