//! What options and files mean, and what is said of mistakes in them: `--check` needs no interface.

use crate::lab::EMULATOR;
use penstock_core::registry::NAMES;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Runs the emulator with these words; returns what it prints, or what it says of a mistake.
fn run(words: &[&str]) -> Result<String, String> {
    let output = Command::new(EMULATOR).args(words).output().unwrap();
    let [stdout, stderr] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    match output.status.code() {
        Some(0) => Ok(stdout),
        Some(2) if stdout.is_empty() => Err(stderr),
        other => panic!("{other:?}: {stdout}{stderr}"),
    }
}

/// Checks a file with further options.
fn check(text: &str, words: &[&str]) -> Result<String, String> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let name = format!("penstock-options-{}-{}.toml", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
    let path: PathBuf = std::env::temp_dir().join(name);
    std::fs::write(&path, text).unwrap();
    let told = run(&[&["--check", "--config", path.to_str().unwrap()], words].concat());
    std::fs::remove_file(path).unwrap();
    told
}

/// Each row has a piece of a text, what stands there instead, and the place and the words of the mistake.
fn refused(text: &str, rows: &[(&str, &str, &str, &str)]) {
    for (piece, by, place, said) in rows {
        assert_eq!(text.matches(piece).count(), 1, "{piece:?} is there once");
        let told = check(&text.replacen(piece, by, 1), &[]).unwrap_err();
        assert!(told.contains(&format!(".toml:{place}")) && told.contains(said), "{told}");
    }
}

const GOOD: &str = include_str!("good.toml");
const WIRES: &str = include_str!("wires.toml");

#[test]
fn a_mistake_in_a_file_is_told_with_line_column_and_suggestion() {
    let rows = [
        ("\"codel\"", "\"codle\"", "12:8", "did you mean \"codel\"?"),
        ("delay =", "delya =", "7:1", "did you mean `delay`?"),
        ("[left]", "[lfet]", "15:", "did you mean `left`?"),
        ("\"10s\"", "10", "2:", "a time in quotes with its unit"),
        ("10.0.0.1/24", "10.0.0.1", "17:", "10.77.0.1/24"),
        ("[left]", "[through]\nnetns = \"q\"\ndrops = \"erly\"\n[left]", "17:", "did you mean `early`?"),
        ("\"right\"", "\"rigth\"", "3:", "did you mean `right`?"),
        ("netns = \"a\"", "port = \"p\"", "15:", "a `port` is there already"),
        ("\"1Mbit/s\"", "\"2Tbit/s\"", "9:", "1Tbit/s"),
        ("\"20ms\"", "\"2h\"", "7:", ""),
        ("limit = \"125kB\"", "loss = 1.5", "8:", "a probability"),
        ("limit = \"125kB\"", "stations = [7]", "8:", "a station's loss is 7"),
        ("seed = 7", "mtu = 100", "1:", "an MTU has 576 to 65535 bytes"),
        ("seed = 7", "spin = true\nrealtime = true", "2:", "exclude each other"),
        (
            "[aqm]",
            "[[hosts]]\naddress = \"10.2.0.1\"\n[[hosts]]\naddress = \"10.2.0.1\"\n[aqm]",
            "",
            "of an earlier host",
        ),
    ];
    refused(GOOD, &rows);
}

#[test]
fn subscribers_have_prefixes_of_their_own() {
    let table = "[link]\nrate = \"1Mbit/s\"\ndelay = \"0ms\"\n[subscribers]\nyard = [\"10.2.0.0/16\"]\n\
                 house = [\"10.1.0.0/28\", \"2001:db8:1::/56\"]\n";
    let rows = [
        ("10.1.0.0/28", "10.1.0.1/28", "6:", "2001:db8:1::/48"),
        ("2001:db8:1::/56", "2001:db8:1::/65", "6:", ""),
        ("10.1.0.0/28", "10.2.0.0/16", "", "that another subscriber has"),
        ("\"10.2.0.0/16\"", "", "", "at least one prefix"),
        ("10.2.0.0/16", "02:00:5e:00:53:01", "", "knows hosts by their IP addresses"),
    ];
    refused(table, &rows);
    assert!(check(table, &[]).is_ok());
}

#[test]
fn a_mistake_in_a_wire_is_told_with_line_column_and_suggestion() {
    let rows = [
        ("\"codel\"", "\"codle\"", "14:16", "did you mean \"codel\"?"),
        ("socket =", "sokcet =", "13:", "did you mean `socket`?"),
        ("\"second\"", "\"first\"", "12:", "another wire"),
        ("\"second\"", "\".second\"", "12:", "is no name"),
        ("\"c\", interface = \"in\"", "\"b\", interface = \"in\"", "16:", "\"first\" has the interface in"),
        ("mtu = 1400", "spin = false", "6:", "of all wires"),
        ("link = { rate = \"10Mbit/s\", delay = \"5ms\" }", "", "4:", "needs a `link`"),
        ("\"5Mbit/s\"", "\"5MB/s\"", "18:8", ""),
        ("{ netns = \"c\", interface = \"in\" }", "{ netns = \"c\", port = \"in\" }", "11:", "both ends must be ports"),
        ("seed = 7", "mtu = 1500", "1:", "unknown field `mtu`"),
        (WIRES, "wire = []", "1:", "a file has 1 to 128 wires"),
        (WIRES, "wire = 5", "1:", "write a list of tables"),
        (WIRES, "[[wire]]\n", "1:", "missing field `name`"),
    ];
    refused(WIRES, &rows);
}

#[test]
fn several_wires_take_no_option_of_one() {
    let told = check(WIRES, &["--duration", "1s", "--name", "n", "--json", "--quiet"]).unwrap();
    let second = "valid: second: out 10.77.0.1 -> in 10.77.0.2; there 5Mbit/s 0ns codel 1000p; back 5Mbit/s 0ns droptail 1000p\n";
    assert!(told.ends_with(second) && told.starts_with("valid: first: out"), "{told}");
    for option in [
        ["--rate", "1Mbit/s"],
        ["--seed", "1"],
        ["--set", "a=b"],
        ["--nodes", "left"],
        ["--left-address", "10.0.0.1/8"],
        ["--reverse-delay", "1ms"],
        ["--packets", "p"],
        ["--socket", "s"],
    ] {
        let told = check(WIRES, &option).unwrap_err();
        assert!(told.starts_with(&format!("error: {} is for one wire", option[0])), "{told}");
        assert!(told.contains("allowed are --duration"), "{told}");
    }
}

#[test]
fn mistakes_name_the_option_and_what_is_allowed() {
    for (words, option, said) in [
        (&["--delay", "20"][..], "--delay", "\"5ms\""),
        (&["--loss", "1.5"], "--loss", "a probability from 0"),
        (&["--aqm", "codle"], "--aqm", "did you mean \"codel\""),
        (&["--aqm", "codel", "--set", "traget=5ms"], "--aqm", "did you mean `target`"),
        (&["--nodes", "middle"], "--nodes", "left, right, none"),
        (&["--left-address", "10.77.0.2/24"], "--right-address", "two addresses"),
        (&["--left-address", "fd77::1/64"], "--right-address", "of one family"),
        (&["--left-port", "a"], "--right-port", "both ends must be ports"),
        (&["--config", "/nowhere/emulate.toml"], "/nowhere/emulate.toml", "cannot read the configuration"),
    ] {
        let told = run(&[&["--check", "--rate", "1Mbit/s"], words].concat()).unwrap_err();
        assert!(told.contains(option) && told.contains(said), "{told}");
    }
    let told = check("seed = 1\n", &[]).unwrap_err();
    assert!(told.contains("--rate 10Mbit/s") && told.contains("[link]"), "{told}");
    let told = check("mtu = 1400\n", &["--rate", "1bit/s", "--left-port", "a", "--right-port", "b"]).unwrap_err();
    assert!(told.contains("ports have their own"), "{told}");
}

#[test]
fn the_way_back_is_like_the_way_there_unless_told() {
    let told = |words: &str| {
        let words: Vec<&str> = words.split(' ').collect();
        run(&[&["--check", "--rate", "10Mbit/s"], &words[..]].concat()).unwrap()
    };
    let ends = "valid: penstock0 10.77.0.1 -> penstock1 10.77.0.2; ";
    assert_eq!(
        told("--delay 20ms --aqm codel --limit 9p"),
        format!("{ends}there 10Mbit/s 20ms codel 9p; back 10Mbit/s 20ms droptail 1000p\n")
    );
    assert_eq!(
        told("--reverse-rate 1Mbit/s --reverse-delay 1ms --reverse-limit 8p --reverse-aqm pie"),
        format!("{ends}there 10Mbit/s 0ns droptail 1000p; back 1Mbit/s 1ms pie 8p\n")
    );
}

#[test]
fn the_examples_are_right_ones_and_the_listing_names_every_algorithm() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/emulate");
    let checked = |name: &str| run(&["--check", "--config", examples.join(name).to_str().unwrap()]).unwrap();
    assert_eq!(checked("parking-lot.toml").lines().count(), 2);
    let codel = checked("codel.toml");
    assert!(codel.contains(" codel ") && codel.contains("back 2Mbit/s"), "{codel}");
    let listing = run(&["--list"]).unwrap();
    let lists = |name: &&str| listing.lines().any(|line| line.starts_with(&format!("{name}: ")));
    assert!(NAMES.iter().all(lists), "{listing}");
}
