//! The options of `penstock-gateway`.

use clap::{CommandFactory, Parser};
use penstock_budgets::identity::Token;
use penstock_gateway::cli::Options;
use penstock_linux::testing::has_examples;
use serde_json::{Value, json};
use std::process::Command;

#[test]
fn every_verb_has_an_example() {
    has_examples(&Options::command());
}

/// What the kernel path installs is eBPF; what the user path installs is rules of a firewall.
#[test]
fn what_a_run_would_install_is_told_for_each_path() {
    let file = std::env::temp_dir().join(format!("penstock-explain-{}.toml", std::process::id()));
    let said = |path: &str| {
        let text = format!("datapath = '{path}'\n[interfaces]\nwan = 'lo'\n[link]\nrate = '1Mbit/s'\n");
        std::fs::write(&file, text).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_penstock-gateway")).arg("explain").arg(&file).output().unwrap();
        assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let [kernel, user] = ["kernel", "user"].map(said);
    std::fs::remove_file(&file).unwrap();
    assert!(kernel.contains("by TCX") && !kernel.contains("netfilter"), "{kernel}");
    assert!(user.contains("of netfilter") && !user.contains("TCX"), "{user}");
}

/// What PINK leaves of short paths is told before it is seen, unless the file says that paths are longer.
#[test]
fn a_check_tells_which_paths_are_short() {
    let file = std::env::temp_dir().join(format!("penstock-short-{}.toml", std::process::id()));
    let said = |more: &str| {
        std::fs::write(&file, format!("[interfaces]\nwan = 'lo'\n[link]\nrate = '10Mbit/s'\n{more}\n")).unwrap();
        let words = ["check", "--json"];
        let output = Command::new(env!("CARGO_BIN_EXE_penstock-gateway")).args(words).arg(&file).output().unwrap();
        let told: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(told["right"], true);
        told["notes"].to_string()
    };
    let [pink, long, fq] = ["", "round_trip = '500ms'", "[discipline]\nname = 'fq-codel'"].map(said);
    std::fs::remove_file(&file).unwrap();
    assert!(pink.contains("less than 20 ms (download) or 20 ms (upload)") && pink.contains("cake"), "{pink}");
    assert_eq!((long.as_str(), fq.as_str()), ("[]", "[]"));
}

/// A file that names a program which is not there would run on the rates of the file alone.
#[test]
fn a_command_that_is_not_there_is_a_mistake_with_its_line() {
    let file = std::env::temp_dir().join(format!("penstock-check-{}.toml", std::process::id()));
    let said = |program: &str| {
        let text = format!("[interfaces]\nwan = 'lo'\n[link]\nrate = '1Mbit/s'\ncommand = ['{program}', '-r']\n");
        std::fs::write(&file, text).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_penstock-gateway")).arg("check").arg(&file).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (there, nowhere) = (said("sh"), said("/nowhere/modem-rate"));
    std::fs::remove_file(&file).unwrap();
    assert_eq!(there, (Some(0), String::new()));
    assert_eq!(nowhere.0, Some(2));
    assert!(nowhere.1.contains(":5:") && nowhere.1.contains("no program \"/nowhere/modem-rate\""), "{}", nowhere.1);
}

/// People copy a token, programs read an object.
#[test]
fn a_token_is_printed_alone_or_with_what_it_gives() {
    let directory = std::env::temp_dir().join(format!("penstock-invite-{}", std::process::id()));
    std::fs::create_dir(&directory).unwrap();
    let file = directory.join("gateway.toml");
    let keys = directory.join("keys");
    let text = format!("[link]\nrate = '1Mbit/s'\n[c2ml]\ndirectory = '{}'\n", keys.display());
    std::fs::write(&file, text).unwrap();
    let said = |words: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_penstock-gateway"));
        let output = command.arg("invite").arg(&file).args(words.split_ascii_whitespace()).output().unwrap();
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let token = said("");
    assert_eq!(Token::read(token.strip_suffix('\n').unwrap()).unwrap().text().len(), token.len() - 1);
    let told: Value = serde_json::from_str(&said("--json --class 1 --weight 7 --uses 3")).unwrap();
    assert!(Token::read(told["token"].as_str().unwrap()).is_ok());
    assert_eq!(
        [&told["class"], &told["weight"], &told["uses"], &told["floor"]],
        [&json!(1), &json!(7), &json!(3), &json!(null)]
    );
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn what_contradicts_itself_is_refused() {
    let parse = |words: &str| Options::try_parse_from(format!("penstock-gateway {words}").split(' '));
    assert!(parse("set rate=1Mbit/s --for 2h").is_ok() && parse("set --keep").is_ok());
    for wrong in ["set", "set rate=1Mbit/s --keep", "set a=b --for 2h --confirm 1s", "set a=b --for 0s", "run"] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}
