//! Stacks that are programs: what comes back, and what becomes of a run whose program fails.

use crate::quinn::{LINK, flows, scenario_with, stack, written};
use penstock_core::foreign::Own;
use penstock_core::units::Span;
use penstock_sim::{Broken, Simulation};
use penstock_stacks::child::Child;
use penstock_stacks::quinn::Quinn;
use std::time::Duration;

/// The program which hosts quinn, and is a part of this crate.
const PROGRAM: &str = env!("CARGO_BIN_EXE_stack-quinn");

fn hosted(command: &[&str]) -> Own {
    let command = command.iter().map(|&word| word.to_owned()).collect();
    Own::new().with_stack("theirs", Child::new(command).with_patience(Duration::from_millis(1500)))
}

fn run(own: &Own, head: &str, flows: &str) -> Result<penstock_sim::summary::Summary, Broken> {
    let mut run = Simulation::new(&scenario_with(own, head, LINK, flows));
    run.advance(Span::MAX)?;
    Ok(run.summary())
}

/// The same stack gives the same bytes at the same times in this process and behind the pipes.
#[test]
fn a_program_is_as_good_as_a_library() {
    let two = flows(&["theirs", "theirs"]).replace("kind", "start_spread = \"50ms\"\nkind");
    let own = Own::new().with_stack("theirs", Quinn::default());
    let inside = run(&own, "duration = \"4s\"", &two).unwrap_or_else(|error| panic!("{error}"));
    let child = run(&hosted(&[PROGRAM]), "duration = \"4s\"", &two).unwrap_or_else(|error| panic!("{error}"));
    assert!(inside.flows[0].delivered_bytes > 500_000, "{inside:?}");
    assert_eq!(written(&inside).replace(" with cubic", ""), written(&child));
}

/// A thousand connections of one program, each with a file of its own: nothing is lost between the two.
#[test]
fn a_thousand_connections_lose_nothing() {
    let many =
        "[[flows]]\nkind = \"stack\"\nstack = \"theirs\"\nsize = \"10kB\"\ncount = 1000\nstart_step = \"15ms\"\n";
    let summary = run(&hosted(&[PROGRAM]), "duration = \"30s\"", many).unwrap_or_else(|error| panic!("{error}"));
    let (whole, done): (Vec<_>, Vec<_>) =
        summary.flows.iter().map(|flow| (flow.delivered_bytes == 10_000, flow.completion_s.is_some())).unzip();
    assert_eq!((whole.iter().filter(|one| **one).count(), done.iter().filter(|one| **one).count()), (1000, 1000));
    let [sent, received] = [0, 1].map(|which| {
        let of = |flow| if which == 0 { stack(&summary, flow).sent } else { stack(&summary, flow).received };
        (0..1000).map(of).sum::<u64>()
    });
    let queue = &summary.bottlenecks[0];
    assert_eq!(
        sent - received,
        queue.drops_aqm + queue.drops_overflow,
        "each datagram arrived or was dropped by the queue"
    );
}

/// A program that hangs, ends or says nonsense ends the run with a sentence, and is gone afterwards.
#[test]
fn a_program_that_fails_ends_its_run_with_a_sentence() {
    let hello = format!(r"printf '\010\0\0\0\001\0\0\0\0\0\0\0\0\0\0\0\001\0\0\0\0\0\0\0theirs 1{}'", done());
    let cases = [
        (vec!["/no/such/program"], "cannot be started"),
        (vec!["false"], "has ended with exit status: 1"),
        (vec!["sh", "-c", "exec sleep 100"], "did not answer `Hello` within 1.5 s"),
        (
            vec!["sh", "-c", "echo 'hello, how are you today, and where is the frame?'; sleep 9"],
            "kind 111, which there is not",
        ),
        (
            vec![
                "sh",
                "-c",
                "printf '\\0\\0\\0\\1\\020\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0'; sleep 9",
            ],
            "a body of 16777216 bytes",
        ),
    ];
    for (command, told) in cases {
        let error = run(&hosted(&command), "duration = \"1s\"", &flows(&["theirs"])).unwrap_err().to_string();
        assert!(error.starts_with("flow 0: theirs: ") && error.contains(told), "{command:?}: {error}");
    }
    for (after, told) in [("exec sleep 100", "did not answer `Open` within 1.5 s"), ("exit 3", "exit status: 3")] {
        let script = format!("{hello}; head -c 24 >/dev/null; {after}");
        let error =
            run(&hosted(&["sh", "-c", &script]), "duration = \"1s\"", &flows(&["theirs"])).unwrap_err().to_string();
        assert!(error.contains(told), "{after}: {error}");
    }
}

/// A program that cannot be used is tried once, however many connections want it.
#[test]
fn a_program_that_fails_is_started_once() {
    let file = std::env::temp_dir().join(format!("penstock-started-{}", std::process::id()));
    let script = format!("echo once >> {}; exit 4", file.display());
    let many = flows(&["theirs"; 5]);
    let error = run(&hosted(&["sh", "-c", &script]), "duration = \"1s\"", &many).unwrap_err().to_string();
    let started = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(error.contains("exit status: 4"), "{error}");
    assert_eq!(started, "once\n");
}

/// The frame `Done` without a deadline, as printf writes it.
fn done() -> String {
    let head = r"\0\0\0\0\025\0\0\0\0\0\0\0\0\0\0\0";
    format!("{head}{}", r"\377".repeat(8))
}
