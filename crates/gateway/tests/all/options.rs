//! The options of `penstock-gateway`.

use clap::{CommandFactory, Parser};
use penstock_gateway::cli::Options;
use penstock_linux::testing::has_examples;
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

#[test]
fn what_contradicts_itself_is_refused() {
    let parse = |words: &str| Options::try_parse_from(format!("penstock-gateway {words}").split(' '));
    assert!(parse("set rate=1Mbit/s --for 2h").is_ok() && parse("set --keep").is_ok());
    for wrong in ["set", "set rate=1Mbit/s --keep", "set a=b --for 2h --confirm 1s", "set a=b --for 0s", "run"] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}
