//! Nothing is left of a testbed, and its names are those which Python reads.

use nix::sys::signal::Signal;
use penstock_linux::testing::{Program, Testbed, mark};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;

#[test]
fn nothing_is_left_of_a_testbed_not_even_in_a_panic() {
    let Some(bed) = Testbed::new(&["a", "b"], &[]) else { return };
    let paths = [Path::new("/run/netns").join(bed.namespace("a")), bed.file("")];
    bed.veth(["a", "eth0"], ["b", "eth0"]);
    bed.up("a", "eth0", &["10.5.0.1/24"]);
    bed.up("b", "eth0", &["10.5.0.2/24"]);
    let (near, far) = (bed.udp("a", "10.5.0.1:9"), bed.udp("b", "10.5.0.2:9"));
    near.send_to(b"there", "10.5.0.2:9").unwrap();
    assert_eq!(far.recv(&mut [0; 9]).unwrap(), 5);
    assert!(paths.iter().all(|path| path.exists()));
    // Its shell is not known to the testbed.
    let pid: i32 = bed.sh("a", "sleep 1000 > /dev/null 2>&1 & echo $!").trim().parse().unwrap();
    let held = AssertUnwindSafe(bed);
    let panicked = catch_unwind(|| {
        let bed = held;
        bed.sh("a", "false")
    });
    assert!(panicked.is_err() && !paths.iter().any(|path| path.exists()));
    let state = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    assert!(state.is_err() || state.is_ok_and(|stat| stat.contains(") Z ")));
}

#[test]
fn programs_are_known_by_what_they_say_and_how_they_end() {
    let Some(bed) = Testbed::new(&["a"], &[]) else { return };
    let program =
        Program::ready(bed.endless("a", &["sh", "-c", "echo told; echo begun >&2; exec sleep 1000"]), &["begun"]);
    let ended = program.end();
    assert_eq!((ended.code, ended.stdout.as_str(), ended.stderr.as_str()), (None, "told\n", "begun\n"));
    let program = Program::start(bed.endless("a", &["sh", "-c", "trap 'exit 3' USR1; while :; do sleep 0.01; done"]));
    // It takes a moment until the shell has its trap: before, the signal ends it as well.
    program.signal(Signal::SIGUSR1);
    assert!(matches!(program.ended().code, Some(3) | None));
    let limited = bed.command("a", &["true"]);
    assert_eq!(limited.get_program(), "timeout", "whatever runs there has an end");
}

/// `penstock doctor` finds what a killed run has left.
#[test]
fn python_reads_whose_names_are() {
    let mark = mark("test");
    let mut parts: Vec<&str> = mark.split('-').collect();
    let another = (parts[3].parse::<u64>().unwrap() + 1).to_string();
    parts[3] = &another;
    let names = [format!("{mark}-0-c"), format!("{}-0-c", parts.join("-"))];
    let module = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../python/penstock/testbed.py");
    let ask = "import runpy, sys; bed = runpy.run_path(sys.argv[1]); print(*map(bed['is_dead'], sys.argv[2:]))";
    let Ok(answer) = Command::new("python3").args(["-I", "-c", ask]).arg(module).args(names).output() else { return };
    assert_eq!(String::from_utf8_lossy(&answer.stdout), "False True\n", "{}", String::from_utf8_lossy(&answer.stderr));
}
