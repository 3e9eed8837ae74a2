//! Runs random scenarios of one algorithm under an audit, for `tools/measure/adversary-invariants`; or one scenario of a file.
//!
//! ```text
//! invariants --space SPACE.toml --subject codel [--seed 1] [--from 0] [--trials 1000]
//! invariants SCENARIO.toml
//! invariants list
//! ```
//!
//! It prints a JSON object for each finding and one with the sums. It ends with 1 if there is a finding, 2 after a
//! mistake of the user, and 3 if a trial takes longer than a minute.

mod draw;
mod trial;

use draw::Space;
use penstock_core::{cc, registry};
use serde_json::json;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use trial::{Finding, Outcome, outcome, trial};

/// A trial takes a fraction of a millisecond; one that takes so long does not end.
const ENDLESS: Duration = Duration::from_secs(60);
/// So many findings of one call are printed.
const MOST: usize = 20;

type Clock = Arc<Mutex<(Instant, String)>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    trial::tell_panics();
    match &arguments[..] {
        [word] if word == "list" => list(),
        [file] if !file.starts_with('-') => one(file),
        _ => many(&arguments),
    }
}

fn fail(message: &str) -> ExitCode {
    eprintln!("error: {message}");
    ExitCode::from(2)
}

/// Prints the kinds and names of all algorithms that can be tried.
fn list() -> ExitCode {
    registry::entries().iter().for_each(|entry| println!("discipline {}", entry.name));
    cc::entries().iter().for_each(|entry| println!("control {}", entry.name));
    ExitCode::SUCCESS
}

/// Runs the scenario of a file.
fn one(file: &str) -> ExitCode {
    let Ok(text) = std::fs::read_to_string(file) else { return fail(&format!("{file} cannot be read")) };
    match outcome(&text, true, &()) {
        Outcome::Refused(diagnosis) => fail(&diagnosis),
        Outcome::Ran(packets, found) => {
            println!("{}", json!({ "packets": packets, "findings": found.len() }));
            found.iter().for_each(|one| println!("{}", json!({ "rule": one.rule, "message": one.message })));
            ExitCode::from(u8::from(!found.is_empty()))
        }
    }
}

/// The value of an option; the last one counts.
fn option<'a>(arguments: &'a [String], name: &str) -> Option<&'a str> {
    let mut pairs = arguments.chunks_exact(2).rev();
    pairs.find_map(|pair| (pair[0] == name).then_some(pair[1].as_str()))
}

fn many(arguments: &[String]) -> ExitCode {
    let number = |name: &str, default: u64| option(arguments, name).map_or(Some(default), |text| text.parse().ok());
    let given = [("--seed", 1), ("--from", 0), ("--trials", 1000)].map(|(name, default)| number(name, default));
    let (Some(file), Some(subject), [Some(seed), Some(from), Some(trials)]) =
        (option(arguments, "--space"), option(arguments, "--subject"), given)
    else {
        return fail("usage: invariants --space SPACE.toml --subject NAME [--seed N] [--from N] [--trials N]");
    };
    let Ok(text) = std::fs::read_to_string(file) else { return fail(&format!("{file} cannot be read")) };
    let entries = registry::all_entries();
    let space = Space::new(&text, subject, entries.iter().find(|entry| entry.name == subject));
    let clock: Clock = Arc::new(Mutex::new((Instant::now(), String::new())));
    watch(clock.clone());
    let begins = |text: &str| {
        if let Ok(mut clock) = clock.lock() {
            *clock = (Instant::now(), text.to_owned());
        }
    };
    let (mut refused, mut packets, mut findings, mut number) = (0u64, 0u64, Vec::new(), from);
    let mut reasons = BTreeMap::new();
    while number - from - refused < trials {
        // Where nearly everything is refused, the algorithm cannot be tried in this space.
        if refused > 20 * trials.max(100) {
            break;
        }
        let done = trial(&space, (subject, seed, number), &(), begins);
        number += 1;
        if let Some(why) = done.refused {
            refused += 1;
            *reasons.entry(why.lines().next().unwrap_or_default().to_owned()).or_insert(0u64) += 1;
        }
        packets += done.packets;
        findings.extend(done.findings);
    }
    findings.iter().take(MOST).for_each(print);
    let sums = json!({
        "next": number, "trials": number - from - refused, "refused": refused, "packets": packets,
        "findings": findings.len(), "reasons": reasons, "cpu_s": cpu_seconds(),
    });
    println!("{sums}");
    ExitCode::from(u8::from(!findings.is_empty()))
}

fn print(finding: &Finding) {
    let Finding { found, settings, text } = finding;
    println!("{}", json!({ "rule": found.rule, "message": found.message, "keys": settings.len(), "scenario": text }));
}

/// Returns the CPU time of this thread as the scheduler counts it; zero where /proc does not tell.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// Ends the process if one trial does not end.
fn watch(clock: Clock) {
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            if let Ok(clock) = clock.lock()
                && clock.0.elapsed() > ENDLESS
                && !clock.1.is_empty()
            {
                println!("{}", json!({ "rule": "endless", "message": "it does not end", "scenario": clock.1 }));
                std::process::exit(3);
            }
        }
    });
}
