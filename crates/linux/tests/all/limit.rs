//! The programs that hold a control group to a budget, in whose group other processes send. Numbers that do not depend on how
//! long a process takes.

use penstock_core::units::Rate;
use penstock_linux::limit::{Control, Limit};
use penstock_linux::testing::{Testbed, skip};
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Attaches the program to a control group; `None` if this cannot be tested here.
fn limit(cgroup: &Path, control: Option<Control>) -> Option<Limit> {
    Limit::attach(cgroup, &BTreeMap::new(), control).map_or_else(skip, Some)
}

/// Runs a script of Python in a control group and a namespace, while this order holds; returns what it prints.
fn says(bed: &Testbed, cgroup: &Path, limit: &Limit, order: Rate, script: &str) -> String {
    let line = format!("echo $$ > {}/cgroup.procs; exec python3 -c \"$0\"", cgroup.display());
    limit.order(Some(order)).unwrap();
    let mut child = bed.command("l", &["sh", "-ec", &line, script]).stdout(Stdio::piped()).spawn().unwrap();
    while child.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
        limit.order(Some(order)).unwrap();
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// Two agents of one machine: the second control of a kind has a number in its name.
#[test]
fn each_agent_has_a_control_of_its_own() {
    let Some(bed) = Testbed::new(&["l"], &[]) else { return };
    let Some(cgroup) = bed.cgroup("l") else { return };
    let Some(plain) = limit(&cgroup, None) else { return };
    assert_eq!(plain.control(), None);
    let Some(first) = limit(&cgroup, Some(Control::Cubic)) else { return };
    let second = Limit::attach(&cgroup, &BTreeMap::new(), Some(Control::Cubic)).unwrap();
    let names = [first, second].map(|one| one.control().unwrap());
    // Another test may have such a control as well.
    assert!(names.iter().all(|name| name.starts_with("c2ml_cubic")) && names[0] != names[1], "{names:?}");
}

/// At 100 kbit/s a packet of 1500 bytes takes 120 ms, and three of them 360. Those that come at once pass, and not all of
/// forty.
#[test]
fn at_a_small_budget_some_packets_pass_at_once() {
    let Some(bed) = Testbed::new(&["l", "r"], &["python3"]) else { return };
    let Some(cgroup) = bed.cgroup("l") else { return };
    bed.veth(["l", "e0"], ["r", "e0"]);
    bed.up("l", "e0", &["10.9.0.1/24"]);
    bed.up("r", "e0", &["10.9.0.2/24"]);
    let Some(mut limit) = limit(&cgroup, None) else { return };
    let own = UdpSocket::bind("127.0.0.1:0").unwrap();
    limit.attach_others(&cgroup, own.as_fd()).unwrap();
    let send = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n\
                for _ in range(40): s.sendto(bytes(1472), ('10.9.0.2', 9))";
    says(&bed, &cgroup, &limit, Rate::from_bps(100_000), send);
    let others = limit.others().unwrap().unwrap();
    assert_eq!((others.passed + others.refused, others.passed_bytes), (40, 1500 * others.passed), "{others:?}");
    assert!(others.passed >= 3 && others.refused > 0, "{others:?}");
}

/// 100 Gbit/s are more bytes in a second than the option of a socket can tell, whose largest value means no limit. What can
/// be told is 4,294,967,294.
#[test]
fn a_connection_with_a_large_budget_has_the_largest_pace_that_is_one() {
    let Some(bed) = Testbed::new(&["l"], &["python3"]) else { return };
    let Some(cgroup) = bed.cgroup("l") else { return };
    let Some(limit) = limit(&cgroup, None) else { return };
    // SO_MAX_PACING_RATE is 47. The rate is set with the first round trip.
    let talk = "import socket, struct, time; l = socket.create_server(('127.0.0.1', 0))\n\
                a = socket.create_connection(l.getsockname()); b = l.accept()[0]; t = time.time() + 30\n\
                def pace(): return struct.unpack('<Q', a.getsockopt(1, 47, 8))[0]\n\
                while True:\n\
                \x20   a.sendall(bytes(1000)); b.recv(1000); b.sendall(b'x'); a.recv(1)\n\
                \x20   if pace() != 2**64 - 1 or time.time() > t: break\n\
                print(pace())";
    assert_eq!(says(&bed, &cgroup, &limit, Rate::from_bps(100_000_000_000), talk).trim(), "4294967294");
}
