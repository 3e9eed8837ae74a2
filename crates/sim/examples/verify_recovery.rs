//! Runs every path of the grid on which recovery must converge, and prints a page of those that do not hold.
//!
//! `cargo run --release -p penstock-sim --example verify_recovery [-- --sample N]` prints Markdown;
//! `tools/measure/verify-recovery` writes it into `docs/results/verify-recovery.md`. With `--only TEXT` it prints the scenarios of the paths whose
//! names contain the text, and what was found on each.

#[path = "../tests/paths/mod.rs"]
mod paths;

use paths::{EXEMPT, Finding, Path, Queue, repairs};
use penstock_core::cc::NAMES;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

const MBIT: &[f64] = &[5.0, 10.0, 20.0, 50.0, 100.0];
const RTT_MS: &[f64] = &[10.0, 40.0, 100.0, 200.0, 400.0, 600.0];
const QUEUES: &[Queue] = &[Queue::DropTail(1.0), Queue::DropTail(0.25), Queue::CoDel, Queue::Pie];
const FLOWS: &[u32] = &[1, 4];

fn grid() -> Vec<Path> {
    let mut grid = Vec::new();
    for cc in NAMES.iter().filter(|name| EXEMPT.iter().all(|(exempt, _)| exempt != *name)) {
        for repair in repairs() {
            for mbit in MBIT {
                for rtt_ms in RTT_MS {
                    for queue in QUEUES {
                        grid.extend(FLOWS.iter().map(|flows| Path {
                            cc,
                            repair,
                            flows: *flows,
                            mbit: *mbit,
                            rtt_ms: *rtt_ms,
                            queue: *queue,
                            calm: false,
                        }));
                    }
                }
            }
        }
    }
    grid
}

/// Returns about `n` paths from all over the grid.
fn sample(grid: Vec<Path>, n: usize) -> Vec<Path> {
    // Multiples of the golden ratio visit the grid evenly whatever its inner dimensions are.
    let pick = |i: usize| ((i as f64 * 0.618_033_988_749_895).fract() * grid.len() as f64) as usize;
    let mut chosen: Vec<usize> = (0..n.min(grid.len())).map(pick).collect();
    chosen.sort_unstable();
    chosen.dedup();
    chosen.into_iter().map(|i| grid[i]).collect()
}

fn judge_all(grid: &[Path]) -> Vec<(Path, Finding)> {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(path) = grid.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let finding = path.judge(1);
                    found.lock().unwrap().push((*path, finding));
                    let done = next.load(Ordering::Relaxed);
                    if done % 500 == 0 {
                        eprintln!("{done} of {}", grid.len());
                    }
                }
            });
        }
    });
    found.into_inner().unwrap()
}

/// Prints the scenarios of the paths whose names contain `text`, and what was found on each.
fn show(grid: &[Path], text: &str) {
    for path in grid.iter().filter(|path| path.to_string().contains(text)) {
        let found = path.judge(1);
        let broken = found.broken();
        let because = broken.as_ref().map(|broken| path.beyond_law(broken).unwrap_or("open"));
        println!("# {path}\n{}", path.scenario(1).replace("\n            ", "\n").trim());
        let Finding { loss, link_use, law_loss, law_use, .. } = found;
        println!("# loses {loss:.4} (law {law_loss:.4}), uses {link_use:.3} (law {law_use:.3?})");
        match (broken, because) {
            (Some(broken), Some(because)) => println!("# {broken}: {because}\n"),
            _ => println!("# holds\n"),
        }
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let all = grid();
    let total = all.len();
    let number = |name: &str| {
        words.iter().position(|word| word == name).and_then(|i| words.get(i + 1)).and_then(|word| word.parse().ok())
    };
    if let Some(text) = words.iter().position(|word| word == "--only").and_then(|i| words.get(i + 1)) {
        show(&all, text);
        return;
    }
    let chosen = number("--sample").map_or(all.clone(), |n| sample(all, n));
    let mut found = judge_all(&chosen);
    found.sort_by_key(|(path, _)| path.to_string());
    let broken: Vec<_> = found.iter().filter_map(|(path, finding)| Some((path, finding.broken()?))).collect();
    let explained = broken.iter().filter(|(path, broken)| path.beyond_law(broken).is_some()).count();
    println!("| | |\n| --- | ---: |\n| paths of the grid | {total} |\n| paths run | {} |", chosen.len());
    println!("| paths that part from the law | {} |", broken.len());
    println!("| of them without an explanation | {} |\n", broken.len() - explained);
    for (name, why) in EXEMPT {
        println!("Exempt: `{name}` {why}.\n");
    }
    println!("| path | what parts from the law | what the law does not know |\n| --- | --- | --- |");
    for (path, broken) in &broken {
        println!("| {path} | {broken} | {} |", path.beyond_law(broken).unwrap_or("**open**"));
    }
}
