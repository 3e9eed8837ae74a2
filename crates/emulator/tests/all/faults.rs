//! What can go wrong while the emulator runs: whatever it is, the report is printed, and every packet is in it.

use crate::lab::{EMULATOR, emulator, number, report_in};
use nix::sys::signal::Signal;
use penstock_linux::testing::{Ended, Program, Testbed, skip, wait_until};
use serde_json::Value;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::UdpSocket;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A running emulator between two namespaces, and a datagram socket in each of them.
struct Run {
    emulator: Program,
    sockets: Option<(UdpSocket, UdpSocket)>,
    bed: Testbed,
}

impl Run {
    /// Starts an emulator of 1 Gbit/s; `None` if that is not possible here.
    fn start(arguments: &[&str]) -> Option<Self> {
        Self::start_in("exec \"$@\"", arguments)
    }

    /// Starts it by a line of the shell, in which `$@` is the command.
    fn start_in(shell: &str, arguments: &[&str]) -> Option<Self> {
        let mut run = Self::begin(shell, arguments)?;
        run.open_sockets();
        Some(run)
    }

    /// Starts it, and does not wait until it is ready. In the arguments `ROOM/` is a directory for files.
    fn begin(shell: &str, arguments: &[&str]) -> Option<Self> {
        let bed = Testbed::new(&["l", "r"], &[])?;
        Some(Self { emulator: Self::started(&bed, shell, arguments), sockets: None, bed })
    }

    fn started(bed: &Testbed, shell: &str, arguments: &[&str]) -> Program {
        let room = bed.file("");
        let words: Vec<String> = arguments.iter().map(|word| word.replace("ROOM/", room.to_str().unwrap())).collect();
        let words: Vec<&str> = ["--rate", "1Gbit/s"].into_iter().chain(words.iter().map(String::as_str)).collect();
        // Whoever started the tests may ignore signals, as a shell does for what runs in its background.
        let mut command = Command::new("env");
        command.args(["--default-signal", "sh", "-c", shell, "sh", EMULATOR]);
        command.args(emulator(bed, &words).get_args());
        Program::start(command)
    }

    fn open_sockets(&mut self) {
        let open = |side: &str, address: &str, other: &str| {
            let mut socket = None;
            wait_until("the emulator is ready", || {
                let opened = || UdpSocket::bind(address).and_then(|socket| socket.connect(other).map(|()| socket));
                socket = self.bed.run(side, opened).ok();
                socket.is_some()
            });
            socket.unwrap()
        };
        let (left, right) = ("10.77.0.1:7007", "10.77.0.2:7007");
        let (left, right) = (open("l", left, right), open("r", right, left));
        right.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        self.sockets = Some((left, right));
    }

    /// Sends datagrams from left to right, of which none may be lost.
    fn exchange(&self, datagrams: usize, size: usize) {
        let (left, right) = self.sockets.as_ref().unwrap();
        let (sent, mut received) = (vec![0x55; size], vec![0; 70_000]);
        for number in 0..datagrams {
            left.send(&sent).unwrap();
            // A machine that was stopped meanwhile interrupts calls that wait for a time.
            let len = loop {
                match right.recv(&mut received) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    got => break got.unwrap_or_else(|e| panic!("datagram {number} of {size} B: {e}")),
                }
            };
            assert_eq!(received[..len], sent);
        }
    }

    fn signal(&self, signal: Signal) {
        self.emulator.signal(signal);
    }

    /// Waits for the end; returns what is left, and the testbed with its files.
    fn leave(self) -> (Ended, Testbed) {
        (self.emulator.ended(), self.bed)
    }

    fn ended(self) -> Ended {
        self.leave().0
    }

    /// Ends the run as a user does.
    fn terminated(self) -> Ended {
        self.signal(Signal::SIGTERM);
        self.ended()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.bed.file(name)
    }

    fn ask(&self, line: &str) -> Value {
        let mut stream = UnixStream::connect(self.file("s")).unwrap();
        stream.write_all(format!("{line}\n").as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    }
}

/// Returns the report; the run must have ended with this exit code.
fn report(ended: &Ended, code: i32) -> Value {
    assert_eq!(ended.code, Some(code), "stdout: {}\nstderr: {}", ended.stdout, ended.stderr);
    report_in(&ended.stdout)
}

fn arrived(report: &Value) -> u64 {
    number(report, "/forward/arrived/packets")
}

fn causes(report: &Value) -> Vec<&str> {
    report["disturbed_by"].as_array().unwrap().iter().filter_map(Value::as_str).collect()
}

/// Each orderly signal ends the run with code 0.
fn ends_by(signal: Signal) {
    let Some(run) = Run::start(&[]) else { return };
    run.exchange(20, 100);
    run.signal(signal);
    let ended = run.ended();
    let report = report(&ended, 0);
    assert_eq!(report["ended"], signal.as_str());
    assert!(arrived(&report) >= 20);
}

#[test]
fn f01_sigint() {
    ends_by(Signal::SIGINT);
}

#[test]
fn f02_sigterm() {
    ends_by(Signal::SIGTERM);
}

#[test]
fn f03_sighup() {
    ends_by(Signal::SIGHUP);
}

#[test]
fn f04_sigquit() {
    ends_by(Signal::SIGQUIT);
}

/// Signals that by default end a process, and are no way to end a run.
#[test]
fn f05_other_signals() {
    for signal in [Signal::SIGXCPU, Signal::SIGUSR2, Signal::SIGALRM] {
        let Some(run) = Run::start(&[]) else { return };
        run.exchange(5, 100);
        run.signal(signal);
        let ended = run.ended();
        assert_eq!(report(&ended, 1)["ended"], signal.as_str());
        assert!(ended.stderr.contains(signal.as_str()), "{}", ended.stderr);
    }
}

#[test]
fn f06_a_report_meanwhile() {
    let Some(run) = Run::start(&[]) else { return };
    for _ in 0..3 {
        run.exchange(10, 100);
        run.signal(Signal::SIGUSR1);
        std::thread::sleep(Duration::from_millis(50));
    }
    run.exchange(10, 100);
    let ended = run.terminated();
    assert!(arrived(&report(&ended, 0)) >= 40);
    let lines: Vec<Value> = ended.stdout.lines().map(report_in).collect();
    assert_eq!(lines.len(), 4, "three on the way and the last one");
    assert!(lines[..3].iter().all(|line| line["ended"] == "running"), "{lines:?}");
}

/// `nohup` starts a program that ignores SIGHUP, which then is no reason to end.
#[test]
fn f07_nohup() {
    let Some(run) = Run::start_in("trap '' HUP; exec \"$@\"", &[]) else { return };
    run.signal(Signal::SIGHUP);
    std::thread::sleep(Duration::from_millis(50));
    run.exchange(20, 100);
    assert_eq!(report(&run.terminated(), 0)["ended"], "SIGTERM");
}

fn interface_is_removed(side: &str, name: &str) {
    let Some(run) = Run::start(&[]) else { return };
    run.exchange(20, 100);
    run.bed.sh(side, &format!("ip link delete {name}"));
    let ended = run.ended();
    let report = report(&ended, 1);
    assert!(report["ended"].as_str().unwrap().contains(name), "{report}");
    assert!(arrived(&report) >= 20);
    assert!(ended.stderr.contains("was it removed?"), "{}", ended.stderr);
}

#[test]
fn f08_left_interface_removed() {
    interface_is_removed("l", "penstock0");
}

#[test]
fn f09_right_interface_removed() {
    interface_is_removed("r", "penstock1");
}

/// While the right interface is down it refuses packets; when it is up again they pass.
#[test]
fn f10_interface_down_and_up() {
    let Some(run) = Run::start(&[]) else { return };
    run.exchange(5, 100);
    run.bed.sh("r", "ip link set penstock1 down");
    let (left, _) = run.sockets.as_ref().unwrap();
    (0..10).for_each(|_| assert_eq!(left.send(&[0; 100]).unwrap(), 100));
    std::thread::sleep(Duration::from_millis(100));
    run.bed.sh("r", "ip link set penstock1 up");
    run.exchange(5, 100);
    let report = report(&run.terminated(), 0);
    assert!(report["forward"]["refused"].as_u64().unwrap() >= 10, "{report}");
    assert!(arrived(&report) >= 20);
}

/// The names of both namespaces go; who is inside still has them.
#[test]
fn f11_namespaces_removed() {
    let Some(run) = Run::start(&[]) else { return };
    for side in ["l", "r"] {
        let deleted = Command::new("ip").args(["netns", "delete", &run.bed.namespace(side)]).status();
        assert!(deleted.unwrap().success());
    }
    run.exchange(20, 100);
    assert!(arrived(&report(&run.terminated(), 0)) >= 20);
}

#[test]
fn f12_mtu_raised() {
    let Some(run) = Run::start(&[]) else { return };
    run.exchange(5, 1000);
    for size in [2000, 9000, 65_000] {
        let mtu = if size == 65_000 { "65535" } else { "9100" };
        run.bed.sh("l", &format!("ip link set penstock0 mtu {mtu}"));
        run.exchange(5, size);
        run.exchange(5, 100);
    }
    let report = report(&run.terminated(), 0);
    assert_eq!(report["forward"]["oversize"], 15, "{report}");
    assert_eq!(report["unclassified"]["malformed"], 0, "{report}");
}

#[test]
fn f13_mtu_lowered() {
    let Some(run) = Run::start(&[]) else { return };
    run.bed.sh("l", "ip link set penstock0 mtu 1000");
    // In two fragments.
    run.exchange(10, 1400);
    let report = report(&run.terminated(), 0);
    assert!(arrived(&report) >= 20 && report["forward"]["oversize"] == 0, "{report}");
}

/// It sleeps when it is stopped, and its wire is idle: the packet that comes then waits for as long.
#[test]
fn f14_stopped_and_continued() {
    let Some(run) = Run::start(&[]) else { return };
    run.exchange(5, 100);
    std::thread::sleep(Duration::from_millis(30));
    run.signal(Signal::SIGSTOP);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(run.sockets.as_ref().unwrap().0.send(&[0x55; 100]).unwrap(), 100);
    std::thread::sleep(Duration::from_millis(700));
    run.signal(Signal::SIGCONT);
    run.exchange(6, 100);
    let report = report(&run.terminated(), 0);
    assert!(["stalled", "starved"].iter().all(|cause| causes(&report).contains(cause)), "{report}");
    let starved = report["forward"]["starved_s"].as_f64().unwrap();
    assert!((0.4..3.0).contains(&starved), "{report}");
    let longest = report["stalled"]["longest_s"].as_f64().unwrap();
    assert!((0.5..3.0).contains(&longest), "{report}");
}

/// While the process is stopped more packets come than its interface has room for (500): the kernel drops them, and the
/// report says so.
#[test]
fn f15_packets_not_read_in_time() {
    let Some(run) = Run::start(&[]) else { return };
    run.exchange(5, 100);
    run.signal(Signal::SIGSTOP);
    let (left, _) = run.sockets.as_ref().unwrap();
    let sent = (0..2000).filter(|_| left.send(&[0; 100]).is_ok()).count() as u64;
    run.signal(Signal::SIGCONT);
    std::thread::sleep(Duration::from_millis(100));
    let report = report(&run.terminated(), 0);
    let unread = report["forward"]["unread"].as_u64().unwrap();
    assert!(unread >= 1000 && causes(&report).contains(&"unread"), "{report}");
    assert!(arrived(&report) + unread >= sent + 5, "what was sent has arrived or was dropped by the kernel: {report}");
}

/// A process of higher priority takes the processor while packets come.
#[test]
fn f16_no_processor() {
    let Some(run) = Run::start_in("exec taskset -c 0 \"$@\"", &[]) else { return };
    run.exchange(5, 100);
    let burner = ["0.6", "chrt", "-f", "50", "taskset", "-c", "0", "sh", "-c", "while :; do :; done"];
    let Ok(mut burner) = Command::new("timeout").args(burner).stderr(Stdio::null()).spawn() else { return };
    let (left, _) = run.sockets.as_ref().unwrap();
    std::thread::sleep(Duration::from_millis(50));
    for _ in 0..200 {
        let _ = left.send(&[0; 64]);
        std::thread::sleep(Duration::from_millis(2));
    }
    if burner.wait().unwrap().code() != Some(124) {
        return skip("no real-time priority here");
    }
    let report = report(&run.terminated(), 0);
    assert!(report["disturbed"] == true && !causes(&report).is_empty(), "{report}");
    // It depends on what the emulator was doing when it lost the processor whether the wire is known to have starved.
    let (starved, stalled) = (&report["forward"]["starved_s"], &report["stalled"]["total_s"]);
    assert!(starved.as_f64().unwrap() + stalled.as_f64().unwrap() > 0.05, "{report}");
}

#[test]
fn f17_full_standard_output() {
    let Some(run) = Run::start_in("exec \"$@\" > /dev/full", &[]) else { return };
    run.exchange(20, 100);
    let ended = run.terminated();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("cannot write the report") && ended.stderr.contains("No space left"));
    assert!(arrived(&report_in(&ended.stderr)) >= 20);
}

#[test]
fn f18_reader_of_the_output_has_gone() {
    let Some(mut run) = Run::start(&[]) else { return };
    drop(run.emulator.stdout.take());
    run.exchange(20, 100);
    let ended = run.terminated();
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stderr.contains("Broken pipe") && arrived(&report_in(&ended.stderr)) >= 20);
}

#[test]
fn f19_closed_standard_output() {
    let Some(run) = Run::start_in("exec \"$@\" >&-", &[]) else { return };
    run.exchange(20, 100);
    let ended = run.terminated();
    assert!(arrived(&report_in(&ended.stderr)) >= 20);
    // What is redirected to /dev/null is not wanted.
    let Some(run) = Run::start_in("exec \"$@\" > /dev/null", &[]) else { return };
    assert!(!run.terminated().stderr.contains("elapsed_s"));
}

/// Nobody reads the output, which takes 64 KiB: packets pass nevertheless, and a second signal ends the wait.
#[test]
fn f20_blocked_standard_output() {
    let Some(run) = Run::start(&[]) else { return };
    for _ in 0..60 {
        run.signal(Signal::SIGUSR1);
        run.exchange(3, 100);
    }
    std::thread::sleep(Duration::from_millis(100));
    run.exchange(20, 100);
    run.signal(Signal::SIGTERM);
    std::thread::sleep(Duration::from_millis(1200));
    run.signal(Signal::SIGTERM);
    let ended = run.ended();
    // It depends on the pipe whether the last report found room.
    let text = if ended.code == Some(0) { &ended.stdout } else { &ended.stderr };
    assert!(arrived(&report_in(text)) >= 200, "{}", ended.stderr);
}

#[test]
fn f21_closed_standard_error() {
    let Some(run) = Run::start_in("exec \"$@\" 2>&-", &[]) else { return };
    run.exchange(20, 100);
    assert!(arrived(&report(&run.terminated(), 0)) >= 20);
}

/// With both outputs full the report becomes a file.
#[test]
fn f22_both_outputs_full() {
    let Some(run) = Run::start_in("exec \"$@\" > /dev/full 2>&1", &[]) else { return };
    run.exchange(20, 100);
    let file = PathBuf::from(format!("/run/penstock/emulate-{}.report", run.emulator.pid()));
    assert_eq!(run.terminated().code, Some(1));
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(arrived(&report_in(&text)) >= 20);
}

#[test]
fn f23_file_of_packets_cannot_be() {
    let paths = ["/nowhere/p.csv", "/dev/full", "ROOM/"].map(|path| ["--packets", path]);
    for [option, path] in paths.into_iter().chain([["--pcapng", "/dev/full"]]) {
        let Some(run) = Run::begin("exec \"$@\"", &[option, path]) else { return };
        let ended = run.ended();
        assert_eq!(ended.code, Some(2), "{path}: {}", ended.stderr);
        assert!(ended.stderr.contains(option) && ended.stdout.is_empty(), "{}", ended.stderr);
    }
}

#[test]
fn f23_pipe_of_packets_without_a_reader() {
    let Some(bed) = Testbed::new(&["l", "r"], &[]) else { return };
    bed.sh("l", &format!("mkfifo {}", bed.file("pipe").display()));
    let ended = Run::started(&bed, "exec \"$@\"", &["--packets", "ROOM/pipe"]).ended();
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("start its reader first"), "{}", ended.stderr);
}

/// Returns the number of lines of a file of packets, all of which must be whole.
fn whole_lines(file: &Path) -> u64 {
    let text = std::fs::read_to_string(file).unwrap();
    assert!(text.ends_with('\n') && text.starts_with("queue,t_ns,waited_ns,flow,bytes,fate\n"));
    assert!(text.lines().all(|line| line.split(',').count() == 6));
    text.lines().count() as u64 - 1
}

#[test]
fn f24_file_of_packets_while_packets_pass() {
    let Some(run) = Run::start(&["--packets", "ROOM/p.csv"]) else { return };
    run.exchange(30, 100);
    std::thread::sleep(Duration::from_millis(1300));
    let file = run.file("p.csv");
    assert!(whole_lines(&file) >= 30, "lines come while packets pass");
    run.exchange(30, 100);
    run.signal(Signal::SIGTERM);
    let (ended, _bed) = run.leave();
    let (report, lines) = (report(&ended, 0), whole_lines(&file));
    let sent = |way: &str| report[way]["arrived"]["packets"].as_u64().unwrap();
    assert_eq!(report["packets_file"]["lines"], lines);
    assert!(lines >= 60 && lines == sent("forward") + sent("reverse"), "{report}");
}

/// A file system that goes before the directory in which it is.
struct Disk(PathBuf);

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// A disk with 16 KiB, on which not even a thousand lines have room.
#[test]
fn f25_full_disk() {
    let Some(bed) = Testbed::new(&["l", "r"], &[]) else { return };
    let disk = Disk(bed.file("disk"));
    std::fs::create_dir(&disk.0).unwrap();
    let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=16k", "tmpfs"]).arg(&disk.0).status();
    if !mount.is_ok_and(|status| status.success()) {
        return skip("no mount");
    }
    let file = disk.0.join("p.csv");
    let emulator = Run::started(&bed, "exec \"$@\"", &["--packets", file.to_str().unwrap()]);
    let mut run = Run { emulator, sockets: None, bed };
    run.open_sockets();
    for _ in 0..3 {
        run.exchange(400, 64);
        std::thread::sleep(Duration::from_millis(1050));
    }
    run.signal(Signal::SIGTERM);
    let (ended, _bed) = run.leave();
    let (report, lines) = (report(&ended, 1), whole_lines(&file));
    drop(disk);
    assert_eq!(report["packets_file"]["lines"], lines, "{report}");
    assert!(report["packets_file"]["lost"].as_u64().unwrap() >= 300, "{report}");
    assert!(report["packets_file"]["error"].as_str().unwrap().contains("No space left"), "{report}");
    assert!(ended.stderr.contains("are lost"), "{}", ended.stderr);
    assert!(arrived(&report) >= 1200, "packets pass nevertheless");
}

#[test]
fn f26_limit_of_file_sizes() {
    let Some(run) = Run::start_in("ulimit -f 8; exec \"$@\"", &["--packets", "ROOM/p.csv"]) else { return };
    run.exchange(400, 64);
    let ended = run.terminated();
    let report = report(&ended, 1);
    assert!(report["packets_file"]["lost"].as_u64().unwrap() > 0, "{report}");
    assert!(ended.stderr.contains("File too large"), "{}", ended.stderr);
}

/// The file is a pipe whose reader goes away.
#[test]
fn f27_reader_of_packets_has_gone() {
    let Some(bed) = Testbed::new(&["l", "r"], &[]) else { return };
    let pipe = bed.file("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut reader = std::fs::File::options().read(true).write(true).open(&pipe).unwrap();
    let emulator = Run::started(&bed, "exec \"$@\"", &["--packets", "ROOM/pipe"]);
    let mut run = Run { emulator, sockets: None, bed };
    run.open_sockets();
    reader.read_exact(&mut [0; 37]).unwrap(); // the first line
    drop(reader);
    run.exchange(50, 64);
    let ended = run.terminated();
    assert!(report(&ended, 1)["packets_file"]["lost"].as_u64().unwrap() >= 50);
    assert!(ended.stderr.contains("Broken pipe"), "{}", ended.stderr);
}

/// The file is a pipe that nobody reads until the report is printed: the end waits for the reader, and no line is lost.
#[test]
fn f27_reader_of_packets_is_late() {
    let Some(bed) = Testbed::new(&["l", "r"], &[]) else { return };
    let pipe = bed.file("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let mut reader = std::fs::File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&pipe).unwrap();
    let emulator = Run::started(&bed, "exec \"$@\"", &["--packets", "ROOM/pipe"]);
    let mut run = Run { emulator, sockets: None, bed };
    run.open_sockets();
    // A pipe has room for 64 KiB; a line has 30 bytes.
    run.exchange(3000, 64);
    run.signal(Signal::SIGTERM);
    let (mut printed, mut line) = (BufReader::new(run.emulator.stdout.take().unwrap()), String::new());
    printed.read_line(&mut line).unwrap();
    // Longer than a look at the file.
    std::thread::sleep(Duration::from_millis(300));
    let reading = std::thread::spawn(move || {
        let mut text = Vec::new();
        while reader.read_to_end(&mut text).is_err_and(|error| error.kind() == ErrorKind::WouldBlock) {
            std::thread::sleep(Duration::from_millis(1));
        }
        String::from_utf8(text).unwrap().lines().count() as u64 - 1
    });
    let ended = run.ended();
    let lines = reading.join().unwrap();
    assert_eq!((ended.code, ended.stderr.contains("are lost")), (Some(0), false), "{}", ended.stderr);
    let (report, reverse) = (report_in(&line), "/reverse/arrived/packets");
    assert!(lines >= 3000 && lines == arrived(&report) + number(&report, reverse), "{lines} {line}");
}

#[test]
fn f28_too_few_descriptors_at_the_start() {
    for limit in 4..=14 {
        let Some(run) = Run::begin(&format!("ulimit -n {limit}; exec \"$@\""), &["--duration", "10ms"]) else { return };
        let ended = run.ended();
        match ended.code {
            Some(0) => drop(report(&ended, 0)),
            code => {
                assert!(matches!(code, Some(1 | 2)) && !ended.stderr.contains("panicked"), "{limit}: {}", ended.stderr)
            }
        }
    }
}

/// Clients of the control socket take the last descriptors.
#[test]
fn f29_too_few_descriptors_for_clients() {
    let Some(run) = Run::start_in("ulimit -n 24; exec \"$@\"", &["--socket", "ROOM/s"]) else { return };
    let clients: Vec<_> = (0..30).filter_map(|_| UnixStream::connect(run.file("s")).ok()).collect();
    std::thread::sleep(Duration::from_millis(50));
    run.exchange(50, 100);
    drop(clients);
    std::thread::sleep(Duration::from_millis(2200));
    assert_eq!(run.ask(r#"{"v":1,"do":"status"}"#)["ok"]["ended"], "running", "it recovers");
    assert!(arrived(&report(&run.terminated(), 0)) >= 50);
}

#[test]
fn f30_too_little_memory_at_the_start() {
    for limit in [40_000, 70_000, 100_000] {
        let Some(run) = Run::begin(&format!("ulimit -v {limit}; exec \"$@\""), &["--duration", "10ms"]) else { return };
        let ended = run.ended();
        assert!(ended.code == Some(0) || ended.stderr.contains("memory"), "{limit}: {:?} {}", ended.code, ended.stderr);
    }
}

/// The queue grows until there is no memory for more of it: packets then wait in the kernel, and the run goes on.
#[test]
fn f31_too_little_memory_while_packets_pass() {
    let Some(run) = Run::start(&["--limit", "1000000p", "--delay", "60s", "--socket", "ROOM/s"]) else { return };
    let pid = run.emulator.pid();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let kib: u64 = size.trim().trim_end_matches(" kB").parse().unwrap();
    let limit = format!("--as={}", (kib + 40_000) << 10);
    if !Command::new("prlimit").args(["--pid", &pid.to_string(), &limit]).status().is_ok_and(|s| s.success()) {
        return skip("no prlimit");
    }
    let (left, _) = run.sockets.as_ref().unwrap();
    // On a busy machine many are not read in time.
    for _ in 0..20 {
        for number in 0..10_000 {
            let _ = left.send(&[0; 1400]);
            if number % 100 == 0 {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        if run.ask(r#"{"v":1,"do":"status"}"#)["ok"]["short_of_memory"].as_u64().is_some_and(|times| times > 0) {
            break;
        }
    }
    let report = report(&run.terminated(), 0);
    assert!(report["short_of_memory"].as_u64().unwrap() > 0, "{report}");
    assert!(arrived(&report) > 1000, "{report}");
}

#[test]
fn f32_second_run_of_the_same_name() {
    let Some(run) = Run::start(&["--socket", "ROOM/s"]) else { return };
    let socket = run.file("s");
    let mut second = emulator(&run.bed, &["--rate", "1Mbit/s", "--left", "pn2", "--right", "pn3", "--socket"]);
    let output = second.arg(&socket).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && message.contains("another program is in charge"), "{message}");
    assert!(run.ask(r#"{"v":1,"do":"status"}"#)["ok"].is_object(), "the first one still answers");
    run.exchange(20, 100);
    assert!(arrived(&report(&run.terminated(), 0)) >= 20);
}

/// What a killed run leaves does not hinder the next one.
#[test]
fn f33_after_a_kill() {
    let Some(run) = Run::start(&["--socket", "ROOM/s"]) else { return };
    run.signal(Signal::SIGKILL);
    let (_, bed) = run.leave();
    assert!(bed.file("s").exists());
    let mut next = emulator(&bed, &["--rate", "1Mbit/s", "--duration", "50ms", "--socket"]);
    let output = next.arg(bed.file("s")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    report_in(&String::from_utf8_lossy(&output.stdout));
}

/// Clients that flood the control socket, or say nothing: packets pass, and others are answered.
#[test]
fn f34_hostile_clients() {
    let Some(run) = Run::start(&["--socket", "ROOM/s"]) else { return };
    let flood = |bytes: &[u8]| {
        let mut stream = UnixStream::connect(run.file("s")).unwrap();
        stream.set_write_timeout(Some(Duration::from_millis(100))).unwrap();
        let _ = stream.write_all(bytes);
        stream
    };
    let status = "{\"v\":1,\"do\":\"status\"}\n".repeat(1000);
    let clients = [flood(&[b'x'; 100_000]), flood(status.as_bytes()), flood(b"{"), flood(&[0; 5000])];
    run.exchange(100, 100);
    assert!(run.ask(r#"{"v":1,"do":"top"}"#)["ok"]["known"].as_u64().unwrap() >= 1);
    let refused = run.ask(r#"{"v":1,"do":"set","values":{"rate":"1Mbit/s","dealy":"1ms"}}"#);
    assert!(refused["error"]["what"].as_str().unwrap().contains("did you mean"), "{refused}");
    drop(clients);
    let report = report(&run.terminated(), 0);
    assert_eq!(report["forward"]["rate_bps"], 1_000_000_000, "of a refused request nothing is set");
}

/// Values change while packets pass, and none of the packets is lost by that.
#[test]
fn f35_changes_while_packets_pass() {
    let arguments = ["--aqm", "codel", "--limit", "1000p", "--socket", "ROOM/s"];
    let Some(run) = Run::start(&arguments) else { return };
    for values in [
        r#"{"rate":"20Mbit/s","delay":"5ms"}"#,
        r#"{"aqm.target":"50ms","limit":"500p"}"#,
        r#"{"delay":"0ms","reverse_rate":"1Mbit/s","reverse_limit":"10p"}"#,
    ] {
        let answer = run.ask(&format!(r#"{{"v":1,"do":"set","values":{values}}}"#));
        assert!(answer["ok"]["set"].is_object(), "{answer}");
        run.exchange(20, 1000);
    }
    assert!(run.ask(r#"{"v":1,"do":"set","values":{"loss":1}}"#)["ok"].is_object());
    let (left, _) = run.sockets.as_ref().unwrap();
    (0..10).for_each(|_| assert_eq!(left.send(&[0; 100]).unwrap(), 100));
    std::thread::sleep(Duration::from_millis(50));
    let report = report(&run.terminated(), 0);
    let forward = &report["forward"];
    assert_eq!((&forward["rate_bps"], &forward["limit"]), (&20_000_000.into(), &"500p".into()));
    assert_eq!((&forward["parameters"]["target"], &forward["loss"]), (&"50ms".into(), &1.0.into()));
    assert!(forward["lost"].as_u64().unwrap() >= 10 && forward["dropped"]["overflow"] == 0, "{report}");
    assert_eq!(report["changes"].as_array().unwrap().len(), 8);
}

#[test]
fn f36_other_output_that_cannot_be_written() {
    for word in ["--list", "--check"] {
        let script = format!("exec \"$@\" {word} --rate 1Mbit/s > /dev/full");
        let output = Command::new("sh").args(["-c", &script, "sh", EMULATOR]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{word}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("standard output"), "{word}");
    }
}
