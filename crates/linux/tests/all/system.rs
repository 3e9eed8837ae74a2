//! What the system says of names, addresses, rights and times.

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::socket::{getsockopt, sockopt::RcvBuf};
use penstock_core::ack::pink::Config;
use penstock_core::units::{Instant, Span};
use penstock_linux::bpf::{Control, Way};
use penstock_linux::error::Error;
use penstock_linux::links::{LinkWatch, listed};
use penstock_linux::netns::Namespace;
use penstock_linux::offloads::merging;
use penstock_linux::random::bytes;
use penstock_linux::signals::{Relay, Request};
use penstock_linux::stalls::{Stalls, Suspension};
use penstock_linux::tun::Cidr;
use penstock_linux::udp::{Side, Socket};
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd as _;
use std::time::Duration;

#[test]
fn the_own_namespace_is_found_by_any_of_its_names() {
    let current = Namespace::open(None).unwrap();
    assert!(current.is(&Namespace::open(Some("/proc/self/ns/net")).unwrap()));
}

#[test]
fn a_missing_namespace_says_how_to_make_one() {
    let error = Namespace::open(Some("penstock-does-not-exist")).unwrap_err();
    assert!(error.to_string().contains("ip netns add"), "{error}");
    assert_eq!(error.exit_code(), 2);
}

#[test]
fn a_file_that_is_no_namespace_is_refused() {
    let error = Namespace::open(Some("/dev/null")).unwrap().run(|| Ok(())).unwrap_err();
    assert!(error.to_string().contains("/dev/null"), "{error}");
}

#[test]
fn addresses_need_a_prefix_that_fits() {
    let cidr: Cidr = "10.77.0.1/24".parse().unwrap();
    assert_eq!(cidr, Cidr { address: IpAddr::from([10, 77, 0, 1]), prefix: 24 });
    assert_eq!("fd77::1/64".parse::<Cidr>().unwrap().prefix, 64);
    for text in ["10.77.0.1", "10.77.0.1/33", "fd77::1/129", "host/24", ""] {
        assert!(text.parse::<Cidr>().unwrap_err().to_string().contains("10.77.0.1/24"), "{text:?} must be refused");
    }
}

#[test]
fn a_refusal_for_want_of_rights_says_which_ones() {
    let error = Error::refused("cannot make left0", "")(io::Error::from_raw_os_error(libc::EPERM));
    assert!(error.to_string().contains("CAP_NET_ADMIN"), "{error}");
    assert_eq!(error.exit_code(), 2);
}

/// EINVAL alone says little: where a command was about a namespace, that is asked for, else the interface.
#[test]
fn an_invalid_argument_is_explained_by_what_it_was_for() {
    let namespace = Namespace::open(Some("/dev/null")).unwrap().run(|| Ok(())).unwrap_err().to_string();
    assert!(namespace.ends_with("; is it a network namespace?"), "{namespace}");
    let of_interface = |code| Error::refused("left0", "")(io::Error::from_raw_os_error(code)).to_string();
    assert!(of_interface(libc::EINVAL).contains("MTU"));
    assert!(!of_interface(libc::EIO).contains("; "));
}

#[test]
fn a_failure_while_running_is_not_the_users_fault() {
    let error: Error = Error::io("cannot read")(io::Error::from_raw_os_error(libc::EIO));
    assert_eq!(error.exit_code(), 1);
}

/// `ethtool -k lo` says that GRO is on and LRO is off; there is no interface without a name.
#[test]
fn the_loopback_merges_by_gro() {
    assert_eq!(merging("lo").unwrap(), ["gro"]);
    assert_eq!(merging("penstock-none").unwrap_err().raw_os_error(), Some(libc::ENODEV));
    assert!(merging("").is_err());
}

#[test]
fn bytes_differ() {
    assert_ne!(bytes::<16>().unwrap(), bytes::<16>().unwrap());
}

#[test]
fn the_first_datagrams_of_all_nodes_find_room() {
    let socket = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    socket.make_room(1000);
    // The system counts twice what it was told.
    if getsockopt(socket.udp(), RcvBuf).unwrap() < 2 * 1000 * 4608 {
        return eprintln!("skipped: the system makes no more room for this user");
    }
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    for _ in 0..2000 {
        peer.send_to(&[0; 1200], socket.udp().local_addr().unwrap()).unwrap();
    }
    let mut buffer = [0; 1200];
    let arrived = std::iter::from_fn(|| socket.udp().recv(&mut buffer).ok()).count();
    assert_eq!(arrived, 2000);
}

/// Says again to each peer what it said.
#[derive(Default)]
struct Echo(Vec<(SocketAddr, Vec<u8>)>);

impl Side for Echo {
    fn receive(&mut self, from: SocketAddr, datagram: &[u8], _: Instant) {
        self.0.push((from, datagram.to_vec()));
    }
    fn poll(&mut self, _: Instant) {}
    fn next_timeout(&self) -> Option<Instant> {
        None
    }
    fn transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.0.pop()
    }
}

/// A peer that is connected takes answers from the address that it has asked, and from no other. The system would answer from
/// 127.0.0.1, which is the nearest.
#[test]
fn a_host_answers_from_the_address_that_was_asked() {
    for (any, asked) in
        [("0.0.0.0:0", "127.0.0.2"), ("0.0.0.0:0", "127.0.0.1"), ("[::]:0", "127.0.0.3"), ("[::]:0", "::1")]
    {
        let Ok(mut socket) = Socket::bind(any.parse().unwrap()) else { return eprintln!("skipped: no {any}") };
        let port = socket.udp().local_addr().unwrap().port();
        let peer = UdpSocket::bind(if asked.contains(':') { "[::1]:0" } else { "127.0.0.1:0" }).unwrap();
        peer.connect((asked.parse::<IpAddr>().unwrap(), port)).unwrap();
        peer.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        peer.send(b"who?").unwrap();
        let (mut side, mut buffer) = (Echo::default(), [0; 16]);
        socket.turn(&mut side, &mut || Instant::ZERO);
        assert_eq!(peer.recv(&mut buffer).map_err(|e| format!("{any} {asked}: {e}")), Ok(4));
    }
}

#[test]
fn only_a_long_gap_is_a_stall() {
    let (mut stalls, due) = (Stalls::default(), Instant::ZERO + Span::from_secs(1));
    stalls.note(due, due + Span::from_millis(49));
    stalls.note(due, due - Span::from_millis(500));
    assert!(!stalls.any());
    stalls.note(due, due + Span::from_millis(250));
    stalls.note(due, due + Span::from_secs(2));
    assert_eq!(stalls, Stalls { times: 2, total_s: 2.25, longest_s: 2.0, suspended_s: 0.0 });
}

#[test]
fn a_suspension_is_told_and_clocks_that_drift_are_none() {
    let mut stalls = Stalls::default();
    stalls.note_suspended(Span::from_micros(3));
    assert!(!stalls.any());
    stalls.note_suspended(Span::from_secs(60));
    assert!(stalls.any() && stalls.suspended_s == 60.0);
    assert!(Suspension::default().so_far() < Span::from_millis(10));
}

#[test]
fn what_is_late_by_just_a_stall_is_one() {
    let (mut stalls, due) = (Stalls::default(), Instant::ZERO + Span::from_secs(1));
    stalls.note(due, due + Span::from_millis(50));
    assert_eq!((stalls.times, stalls.longest_s), (1, 0.05));
    let mut stalls = Stalls::default();
    stalls.note_suspended(Span::from_millis(50));
    assert!(stalls.any());
}

#[test]
fn a_relay_passes_requests_on_and_shows_that_nobody_hears_it() {
    let (relay, signals) = Relay::new().unwrap();
    assert_eq!(signals.next(), None);
    for request in [Request::Report, Request::End(Signal::SIGTERM)] {
        relay.send(request);
        assert_eq!(signals.next(), Some(request));
    }
    let is_over = || poll(&mut [PollFd::new(relay.as_fd(), PollFlags::POLLIN)], PollTimeout::ZERO) == Ok(1);
    assert!(!is_over());
    drop(signals);
    assert!(is_over());
    relay.send(Request::Report);
}

/// The loopback interface is there in each namespace.
#[test]
fn the_kernel_answers_at_once() {
    assert_eq!(LinkWatch::named("lo").unwrap().facts().mtu, 65_536);
    let loopback = listed().unwrap().into_iter().find(|one| one.index == 1).unwrap();
    assert_eq!((loopback.name.as_str(), loopback.facts.mtu, loopback.facts.bridge), ("lo", 65_536, None));
}

/// PINK's defaults, of which the last second before a pause counts on its own; what the table of connections has, with the 2
/// hours and 4 minutes of RFC 5382, section 5; and a table of a power of two of sets.
#[test]
fn the_kernel_has_the_timeouts_of_the_core() {
    let control = Control::new(5, [7, 9], [Way::default(); 2]);
    let pink = Config::default();
    assert_eq!(control.silent, pink.silent_timeout.as_nanos());
    assert_eq!(control.quiet, (pink.idle_timeout - Span::from_secs(1)).as_nanos());
    let seconds = [control.opening, control.closed, control.idle, control.patience];
    let wanted = [30, 60, 2 * 3600 + 4 * 60, 1].map(|seconds| Span::from_secs(seconds).as_nanos());
    assert_eq!(seconds, wanted);
    assert_eq!([0, 1, 2, 5, 8].map(|sets| Control::new(sets, [0; 2], [Way::default(); 2]).sets), [1, 1, 2, 8, 8]);
}
