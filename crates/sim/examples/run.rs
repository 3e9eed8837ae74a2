//! Runs one scenario and prints its summary and what the run cost: `run FILE.toml [--seed N]`.

use penstock_core::units::Span;
use penstock_sim::{Scenario, Simulation};
use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (file, seed) = match args.as_slice() {
        [file] => (file, None),
        [file, flag, n] if flag == "--seed" => (file, n.parse().ok()),
        _ => return fail("usage: run FILE.toml [--seed N]"),
    };
    let text = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) => return fail(&format!("{file}: {error}")),
    };
    let mut scenario = match Scenario::parse(&text, file) {
        Ok(scenario) => scenario,
        Err(diagnosis) => return fail(&diagnosis.to_string()),
    };
    scenario.seed = seed.unwrap_or(scenario.seed);
    let mut simulation = Simulation::new(&scenario);
    let before = cpu_seconds();
    if let Err(broken) = simulation.advance(Span::MAX) {
        return fail(&broken.to_string());
    }
    let mut summary = serde_json::to_value(simulation.summary()).expect("a summary is plain data");
    summary["cpu_s"] = (cpu_seconds() - before).into();
    summary["bytes_per_flow"] = simulation.bytes_per_flow().into();
    println!("{summary}");
    ExitCode::SUCCESS
}

fn fail(message: &str) -> ExitCode {
    eprintln!("{message}");
    ExitCode::from(2)
}

/// Returns the CPU time of this thread as the scheduler counts it; zero where /proc does not tell.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}
