//! The bottleneck in virtual time, compared with arithmetic and queueing theory, without kernel and clock.

use penstock_core::config::LinkFacts;
use penstock_core::csi::Loss;
use penstock_core::link_layer::LinkLayer;
use penstock_core::packet::{Ecn, FlowId, Packet as _, TcpView};
use penstock_core::qdisc::{DropReason, PacketObserver};
use penstock_core::registry::{AnyConfig, NAMES};
use penstock_core::rng::{Rng, Streams};
use penstock_core::settings::config_from_settings;
use penstock_core::testing::Numbered;
use penstock_core::units::{Bytes, Instant, Limit, Rate, Span};
use penstock_core::wire::RealPacket;
use penstock_shaper::bottleneck::{Bottleneck, Config, Delivery, Irreplaceable, MOST_REPLACED};
use penstock_shaper::direction::Direction;
use penstock_shaper::journal::{self, Journal};
use penstock_shaper::path::Path;
use penstock_shaper::tap::{Fate, Tap, Taps};
use proptest::prelude::*;

/// 1500 bytes at 10 Mbit/s.
const SERVICE: Span = Span::from_micros(1200);
const DELAY: Span = Span::from_millis(20);

#[derive(Debug, Default)]
struct Log {
    dropped: Vec<(usize, DropReason)>,
    marked: u64,
}

impl PacketObserver<Numbered> for Log {
    fn dropped(&mut self, packet: Numbered, reason: DropReason, _: Instant) {
        self.dropped.push((packet.number as usize, reason));
    }
    fn marked(&mut self, _: &Numbered, _: Instant) {
        self.marked += 1;
    }
}

fn token(id: usize) -> Numbered {
    Numbered::new(id as u64, FlowId(0), Bytes::new(1500))
}

fn config(aqm: &str, limit: &str) -> Config {
    Config {
        aqm: config_from_settings(aqm, &[]).unwrap(),
        rate: Rate::from_bps(10_000_000),
        layer: LinkLayer::default(),
        delay: DELAY,
        limit: limit.parse().unwrap(),
    }
}

fn bottleneck(aqm: &str, limit: &str) -> Bottleneck<Numbered> {
    Bottleneck::new(&config(aqm, limit), Streams::new(1).get("test"))
}

fn at(span: Span) -> Instant {
    Instant::ZERO + span
}

/// Returns everything that is due up to `now`, as (id, due).
fn drain(b: &mut Bottleneck<Numbered>, now: Instant, log: &mut Log) -> Vec<(usize, Instant)> {
    std::iter::from_fn(|| b.poll(now, log)).map(|Delivery { due, packet, .. }| (packet.number as usize, due)).collect()
}

#[test]
fn a_lone_packet_takes_its_transmission_and_the_delay() {
    let (mut b, mut log) = (bottleneck("droptail", "10p"), Log::default());
    b.arrive(token(7), at(Span::from_millis(3)), &mut log);
    let due = at(Span::from_millis(3) + SERVICE + DELAY);
    assert_eq!(drain(&mut b, Instant::from_nanos(due.as_nanos() - 1), &mut log), []);
    assert_eq!(b.next_event(), Some(due));
    assert_eq!(drain(&mut b, due, &mut log), [(7, due)]);
    assert_eq!(b.next_event(), None);
}

/// Packets of 1.2 ms come twice as fast as they leave; each mark of CoDel is told to who watches.
#[test]
fn who_watches_is_told_of_each_mark() {
    let aqm = config_from_settings("codel", &["ecn=true".into()]).unwrap();
    let mut b = Bottleneck::new(&Config { aqm, ..config("codel", "1000p") }, Streams::new(1).get("test"));
    let mut log = Log::default();
    for id in 0..1000 {
        let now = at(SERVICE.div(2) * id as u64);
        drain(&mut b, now, &mut log);
        b.arrive(token(id).with_ecn(Ecn::Ect0), now, &mut log);
    }
    assert!(log.marked > 1 && log.dropped.is_empty(), "{log:?}");
    assert_eq!(log.marked, b.server.stats().marked.packets);
}

#[test]
fn what_holds_is_told_apart_from_what_was_meant() {
    let b = bottleneck("codel", "10p");
    let said = |aqm: &str, limit: &str| b.read_back(&config(aqm, limit));
    assert_eq!(said("codel", "10p"), Ok(()));
    assert_eq!(said("codel", "11p"), Err("the limit is 10p and not 11p".into()));
    assert_eq!(said("pie", "10p"), Err("the discipline is codel with other parameters, or not pie".into()));
    let other =
        Config { aqm: config_from_settings("codel", &["target=6ms".into()]).unwrap(), ..config("codel", "10p") };
    assert!(b.read_back(&other).unwrap_err().contains("codel with other parameters"));
    let other = Config { rate: Rate::from_bps(9), ..config("codel", "10p") };
    assert_eq!(b.read_back(&other), Err("the rate is 10Mbit/s and not 9bit/s".into()));
}

#[test]
fn a_burst_leaves_one_transmission_apart_and_what_finds_no_room_dies() {
    let (mut b, mut log) = (bottleneck("droptail", "5p"), Log::default());
    (0..10).for_each(|id| b.arrive(token(id), Instant::ZERO, &mut log));
    // One packet is on the wire, five are in the queue.
    let overflow: Vec<_> = (6..10).map(|id| (id, DropReason::Overflow)).collect();
    assert_eq!(log.dropped, overflow);
    let expected: Vec<_> = (0..6).map(|id| (id as usize, at(SERVICE * (id + 1) + DELAY))).collect();
    assert_eq!(drain(&mut b, at(Span::from_secs(1)), &mut log), expected);
    // The last packet waited for five transmissions; the histogram keeps three digits.
    let waited = b.line.sojourn.percentiles(SERVICE * 5).max;
    assert!((waited - 1.0).abs() < 0.001, "{waited}");
    b.check().unwrap();
}

/// Ten packets arrive at once; one is transmitted and five wait. The journal has the four that found no room first;
/// each of the others waited in the queue for those before it.
#[test]
fn the_journal_tells_what_became_of_each_packet() {
    let (mut b, mut log) = (bottleneck("droptail", "5p"), Log::default());
    b.line.records.journal = Some(Journal::default());
    (0..10).for_each(|id| b.arrive(token(id), Instant::ZERO, &mut log));
    drain(&mut b, at(Span::from_secs(1)), &mut log);
    let mut text = Vec::new();
    journal::write(b.line.records.journal.as_ref().unwrap(), "there", &mut text).unwrap();
    let mut expected = String::from("there,0,0,0,1500,sent\n");
    expected += &"there,0,0,0,1500,drop_overflow\n".repeat(4);
    (1..6).for_each(|n| expected += &format!("there,{0},{0},0,1500,sent\n", 1_200_000 * n));
    assert_eq!(String::from_utf8(text).unwrap(), expected);
}

/// The wire is idle from the end of one transmission to the begin of the next.
#[test]
fn a_wire_is_idle_since_its_last_bit_and_busy_while_it_transmits() {
    let (mut b, mut log) = (bottleneck("droptail", "10p"), Log::default());
    assert_eq!((b.server.idle_since(), b.server.busy()), (Some(Instant::ZERO), Span::ZERO));
    let begin = at(Span::from_millis(5));
    drain(&mut b, begin, &mut log);
    (0..2).for_each(|id| b.arrive(token(id), begin, &mut log));
    assert_eq!((b.server.idle_since(), b.server.busy()), (None, SERVICE));
    drain(&mut b, begin + SERVICE, &mut log);
    assert_eq!((b.server.idle_since(), b.server.busy()), (None, SERVICE * 2));
    drain(&mut b, begin + SERVICE * 2, &mut log);
    assert_eq!((b.server.idle_since(), b.server.busy()), (Some(begin + SERVICE * 2), SERVICE * 2));
}

/// A bottleneck that is watched does what one does that is not: a burst of RED and of loss, which draw random numbers.
#[test]
fn a_journal_and_a_tap_change_nothing() {
    let run = |watched: bool| {
        let (mut b, mut log) = (bottleneck("red", "50p"), Log::default());
        b.server.loss = Some(Loss::new(0.2, Streams::new(1).get("loss")));
        if watched {
            b.line.records.journal = Some(Journal::default());
            b.line.records.tap = Some(Tap::new(|_| &[]));
        }
        let mut got = Vec::new();
        for id in 0..2000 {
            let now = at(SERVICE * (id as u64 / 2));
            got.extend(drain(&mut b, now, &mut log));
            b.arrive(token(id), now, &mut log);
        }
        got.extend(drain(&mut b, at(Span::from_secs(60)), &mut log));
        (got, log.dropped, b.server.stats(), b.lost())
    };
    let (watched, alone) = (run(true), run(false));
    assert!(!watched.1.is_empty() && watched.3 > 0);
    assert_eq!(watched, alone);
}

/// A queue of the kernel before this one let a packet go after 3 ms, which then waited for another here; it dropped one on
/// arrival, and one from its queue when that had waited for 5 ms.
#[test]
fn the_journal_has_the_time_in_a_queue_before_and_what_that_dropped() {
    let (mut b, mut log) = (bottleneck("droptail", "5p"), Log::default());
    b.line.records.journal = Some(Journal::default());
    let ms = |ms: u64| at(Span::from_millis(ms));
    b.arrive_since(token(0), ms(0), ms(3), &mut log);
    b.arrive_since(token(1), ms(1), ms(3), &mut log);
    assert_eq!(drain(&mut b, ms(4), &mut log), []);
    b.note_dropped(token(2), ms(2), ms(4), DropReason::Overflow);
    drain(&mut b, ms(7), &mut log);
    b.note_dropped(token(3), ms(2), ms(7), DropReason::Dequeue);
    let mut text = Vec::new();
    journal::write(b.line.records.journal.as_ref().unwrap(), "there", &mut text).unwrap();
    let lines = ["3000000,3000000,0,1500,sent", "2000000,0,0,1500,drop_overflow", "4200000,3200000,0,1500,sent"];
    let mut expected: Vec<_> = lines.iter().map(|line| format!("there,{line}")).collect();
    expected.push("there,7000000,5000000,0,1500,drop_dequeue".into());
    assert_eq!(String::from_utf8(text).unwrap().lines().collect::<Vec<_>>(), expected);
    b.check().unwrap();
}

/// Of 10,000 packets with a probability of 0.1 the number lost is binomial: mean 1000, standard deviation 30, and the bound
/// is five of them. Those that arrive come when they would have come without loss: a lost packet takes its time.
#[test]
fn the_wire_loses_what_chance_says_and_is_no_faster_for_it() {
    let (mut b, mut log) = (bottleneck("droptail", "10000p"), Log::default());
    b.server.loss = Some(Loss::new(0.1, Streams::new(1).get("loss")));
    (0..10_000).for_each(|id| b.arrive(token(id), Instant::ZERO, &mut log));
    let got = drain(&mut b, at(Span::from_secs(60)), &mut log);
    assert!(got.iter().all(|&(id, due)| due == at(SERVICE * (id as u64 + 1) + DELAY)));
    assert_eq!(got.len() as u64 + b.lost(), 10_000);
    assert!((850..=1150).contains(&b.lost()), "{}", b.lost());
    b.check().unwrap();
    let before = b.lost();
    b.server.loss.as_mut().unwrap().set(1.0);
    b.arrive(token(0), at(Span::from_secs(61)), &mut log);
    assert_eq!((drain(&mut b, Instant::MAX, &mut log), b.lost()), (vec![], before + 1));
    b.check().unwrap();
}

#[test]
fn the_delay_line_holds_many_packets_at_once() {
    let (mut b, mut log) = (bottleneck("droptail", "100p"), Log::default());
    (0..16).for_each(|id| b.arrive(token(id), Instant::ZERO, &mut log));
    // After 19.2 ms all sixteen were transmitted, and the first arrives at 21.2 ms.
    assert_eq!(drain(&mut b, at(SERVICE * 16), &mut log), []);
    assert_eq!(b.server.backlog().packets, 0);
    assert_eq!(b.server.stats().sent.packets, 16);
}

/// Pollaczek and Khinchine: in M/D/1 the mean wait is rho / (2 (1 - rho)) services.
#[test]
fn random_arrivals_wait_as_queueing_theory_says() {
    let (mut b, mut log) = (bottleneck("droptail", "100000p"), Log::default());
    let mut gaps = Streams::new(2).get("arrivals");
    let rho = 0.8;
    let mut now = Instant::ZERO;
    for id in 0..300_000 {
        now += Span::from_secs_f64(gaps.exponential(SERVICE.as_secs_f64() / rho));
        drain(&mut b, now, &mut log);
        b.arrive(token(id), now, &mut log);
    }
    drain(&mut b, Instant::MAX, &mut log);
    let services = b.line.sojourn.percentiles(SERVICE).mean;
    let theory = rho / (2.0 * (1.0 - rho));
    // Ten runs of the Lindley recursion of this length came within 2.5 % of the theory.
    assert!((services / theory - 1.0).abs() < 0.06, "{services} services, theory {theory}");
    assert_eq!(b.line.delivered.packets, 300_000);
}

/// Twice the capacity is offered to a queue of 20: it is always full, and every second packet is dropped.
#[test]
fn an_overloaded_tail_drop_queue_is_always_full() {
    let (mut b, mut log) = (bottleneck("droptail", "20p"), Log::default());
    for id in 0..20_000usize {
        let now = at(SERVICE.div(2) * id as u64);
        drain(&mut b, now, &mut log);
        b.arrive(token(id), now, &mut log);
    }
    let lost = log.dropped.len() as f64 / 20_000.0;
    assert!((lost - 0.5).abs() < 0.002, "{lost}");
    // An arrival with room finds 19 waiting and one on the wire that just began or is half through.
    let median = b.line.sojourn.percentiles(SERVICE).p50;
    assert!((19.0..=20.01).contains(&median), "{median}");
}

/// RFC 8289: with twice the capacity offered by something that does not slow down, CoDel still drops from the head.
#[test]
fn codel_drops_from_the_queue_and_never_for_want_of_room() {
    let (mut b, mut log) = (bottleneck("codel", "100000p"), Log::default());
    for id in 0..2_000usize {
        let now = at(SERVICE.div(2) * id as u64);
        drain(&mut b, now, &mut log);
        b.arrive(token(id), now, &mut log);
    }
    assert!(!log.dropped.is_empty());
    assert!(log.dropped.iter().all(|(_, reason)| *reason == DropReason::Dequeue));
    // The queue grows by half of what arrives, so what leaves at t arrived at t/2. The delay passes 5 ms at 10 ms, the
    // first drop comes an interval of 100 ms later, and its victim arrived at 55 ms; both instants are up to one
    // transmission later.
    let first = log.dropped[0].0 as f64 * SERVICE.as_millis_f64() / 2.0;
    assert!((55.0..=56.4).contains(&first), "the first victim arrived at {first} ms");
    b.check().unwrap();
}

#[test]
fn an_idle_path_stays_idle() {
    let streams = Streams::new(1);
    let mut path: Path<Numbered> = Path::new(&config("droptail", "10p"), &config("droptail", "10p"), streams);
    assert_eq!(path.next_event(), None);
    assert!(path.poll(at(Span::from_secs(1)), &mut Log::default()).is_none());
}

#[test]
fn a_path_is_due_with_its_packet_and_neither_before_nor_after() {
    let [there, back] = [(); 2].map(|()| config("droptail", "10p"));
    let (mut path, mut log) = (Path::new(&there, &back, Streams::new(1)), Log::default());
    path.arrive(Direction::Reverse, token(7), at(Span::ZERO), &mut log);
    let due = at(SERVICE + DELAY);
    let before = Instant::from_nanos(due.as_nanos() - 1);
    assert!(path.poll(before, &mut log).is_none() && !path.is_due(before));
    assert!(path.is_due(due) && path.poll(due, &mut log).is_some() && !path.is_due(due));
}

#[test]
fn deliveries_of_both_directions_come_in_the_order_of_their_time() {
    let slow = Config { rate: Rate::from_bps(1_000_000), ..config("droptail", "10p") };
    let mut path = Path::new(&config("droptail", "10p"), &slow, Streams::new(1));
    let mut log = Log::default();
    path.arrive(Direction::Reverse, token(0), Instant::ZERO, &mut log); // due at 32 ms
    (1..4).for_each(|id| path.arrive(Direction::Forward, token(id), Instant::ZERO, &mut log)); // 21.2, 22.4, 23.6 ms
    let order: Vec<u64> =
        std::iter::from_fn(|| path.poll(at(Span::from_secs(1)), &mut log)).map(|(_, d)| d.packet.number).collect();
    assert_eq!(order, [1, 2, 3, 0]);
}

/// A TCP header between 10.0.0.1:1 and 10.0.0.2:2 with an MSS of 1460, without checksums.
fn segment(forward: bool, flags: u8, ack: u8, window: u16) -> RealPacket {
    let mut bytes = vec![0; 44];
    (bytes[0], bytes[3], bytes[9]) = (0x45, 44, 6);
    let (source, destination) = if forward { (1, 2) } else { (2, 1) };
    bytes[12..20].copy_from_slice(&[10, 0, 0, source, 10, 0, 0, destination]);
    (bytes[21], bytes[23], bytes[31], bytes[32], bytes[33]) = (source, destination, ack, 0x60, flags);
    bytes[34..36].copy_from_slice(&window.to_be_bytes());
    bytes[40..44].copy_from_slice(&[2, 4, 0x05, 0xb4]);
    RealPacket::new(bytes, FlowId(0))
}

/// Forward two packets find room and one does not; in reverse there is one. A tap has them in the order in which they left,
/// with the time at which they did, and is empty after its content was exchanged.
#[test]
fn taps_have_the_headers_and_the_fate_of_each_packet_of_both_directions() {
    let mut path = Path::new(&config("droptail", "1p"), &config("droptail", "10p"), Streams::new(1));
    for direction in Direction::BOTH {
        path.direction_mut(direction).line.records.tap = Some(Tap::new(RealPacket::bytes));
    }
    (1..4).for_each(|ack| path.arrive(Direction::Forward, segment(true, 0x10, ack, 9), Instant::ZERO, &mut ()));
    let syn_ack = segment(false, 0x12, 4, 9);
    path.arrive(Direction::Reverse, syn_ack.clone(), Instant::ZERO, &mut ());
    while path.poll(at(Span::from_secs(1)), &mut ()).is_some() {}
    let mut sheet = Taps::default();
    assert!(!path.swap_taps(&mut sheet, 5) && sheet[0].is_empty());
    assert!(path.swap_taps(&mut sheet, 4));
    assert!(!path.swap_taps(&mut Taps::default(), 1), "the taps are empty");
    let told = |way: usize| -> Vec<_> {
        sheet[way].iter().map(|one| (one.head()[31], one.at, one.fate, one.size.get())).collect()
    };
    // 44 bytes at 10 Mbit/s take 35.2 us.
    let second = at(Span::from_nanos(35_200));
    let overflow = Fate::Dropped(DropReason::Overflow);
    let sent = |ack: u8, at: Instant| (ack, at, Fate::Sent, 44);
    assert_eq!(told(0), [sent(1, Instant::ZERO), (3, Instant::ZERO, overflow, 44), sent(2, second)]);
    assert_eq!(told(1), [sent(4, Instant::ZERO)]);
    assert_eq!(sheet[1][0].head(), syn_ack.bytes());
}

/// The window of a SYN-ACK after it came back over a path with this discipline on its left.
fn window_of_the_syn_ack(aqm: &str) -> u16 {
    let mut path = Path::new(&config(aqm, "1000p"), &config("droptail", "1000p"), Streams::new(1));
    let end = at(Span::from_secs(10));
    path.arrive(Direction::Forward, segment(true, 0x02, 0, 65_535), Instant::ZERO, &mut ());
    let (direction, syn) = path.poll(end, &mut ()).unwrap();
    assert_eq!(direction, Direction::Forward);
    path.arrive(Direction::Reverse, segment(false, 0x12, 1, 65_535), syn.due, &mut ());
    let (direction, mut syn_ack) = path.poll(end, &mut ()).unwrap();
    assert_eq!(direction, Direction::Reverse);
    syn_ack.packet.tcp().unwrap().window()
}

/// PINK at the left sees the SYN enter its queue and the SYN-ACK come out of the way back: the window it writes is no more
/// than its part c of the bandwidth-delay product, and at least a segment.
#[test]
fn the_discipline_on_the_left_edits_what_comes_back_from_the_right() {
    assert_eq!(window_of_the_syn_ack("droptail"), 65_535);
    // Two headers of 44 bytes are transmitted on the way: 35.2 us each.
    let rtt = (DELAY + Span::from_nanos(35_200)) * 2;
    let bdp = Rate::from_bps(10_000_000).bytes_in(rtt).get() as f64;
    let window = f64::from(window_of_the_syn_ack("pink"));
    assert!((1460.0..=0.95 * bdp).contains(&window), "{window} of a BDP of {bdp}");
}

#[test]
fn a_packet_too_many_or_too_few_is_noticed() {
    let mut b = bottleneck("droptail", "10p");
    assert_eq!(b.check(), Ok(()));
    b.line.delivered.add(Bytes::new(1500));
    assert_eq!(b.check(), Err("conservation is broken: 0 packets sent, 1 delivered, 0 lost, 0 in flight".into()));
}

fn sees_segments(aqm: &AnyConfig) -> bool {
    aqm.build::<Numbered>(&LinkFacts { rate: Rate::from_bps(1), limit: Limit::Packets(1) }).sees_segments()
}

/// Three packets arrive at once at 10 Mbit/s. When a third of the first has been transmitted the rate falls to 1 Mbit/s: its
/// rest takes ten times 0.8 ms, and each of the others 12 ms. Then the delay falls from 20 ms to nothing: nobody overtakes.
#[test]
fn the_rate_changes_at_once_and_the_delay_with_the_next_transmission() {
    let (mut b, mut log) = (bottleneck("droptail", "10p"), Log::default());
    (0..3).for_each(|id| b.arrive(token(id), Instant::ZERO, &mut log));
    let third = SERVICE.div(3);
    assert_eq!(drain(&mut b, at(third), &mut log), []);
    b.set_rate(Rate::from_bps(1_000_000), at(third));
    let sent = third + third * 20;
    assert_eq!(b.server.busy(), sent);
    let (first, second) = (at(sent + DELAY), at(sent + SERVICE * 10 + DELAY));
    assert_eq!(drain(&mut b, at(sent), &mut log), []);
    b.line.delay = Span::ZERO;
    assert_eq!(drain(&mut b, at(Span::from_secs(1)), &mut log), [(0, first), (1, second), (2, second)]);
    b.check().unwrap();
}

/// A packet is on its way at 100 bit/s, which would take two minutes; a second later the rate is 10 Mbit/s again.
#[test]
fn nothing_is_left_of_a_rate_that_held_for_a_second() {
    for lost in [0.0, 1.0] {
        let (mut b, mut log) = (bottleneck("droptail", "10p"), Log::default());
        b.server.loss = Some(Loss::new(lost, Streams::new(1).get("loss")));
        b.set_rate(Rate::from_bps(100), Instant::ZERO);
        b.arrive(token(0), Instant::ZERO, &mut log);
        b.server.loss.as_mut().unwrap().set(0.0);
        b.arrive(token(1), Instant::ZERO, &mut log);
        let second = at(Span::from_secs(1));
        assert_eq!(drain(&mut b, second, &mut log), []);
        b.set_rate(Rate::from_bps(10_000_000), second);
        let sent = second + Span::from_micros(1190); // 100 of 12,000 bits are sent
        let arrived = [(0, sent + DELAY), (1, sent + SERVICE + DELAY)];
        assert_eq!(drain(&mut b, second + SERVICE * 2 + DELAY, &mut log), arrived[lost as usize..]);
        b.check().unwrap();
    }
}

/// Five packets wait under a limit of five. With the limit of one that follows, they stay, and leave first; of the next
/// three packets one has room.
#[test]
fn packets_that_wait_keep_their_queue_when_another_takes_its_place() {
    let (mut b, mut log) = (bottleneck("droptail", "5p"), Log::default());
    (0..6).for_each(|id| b.arrive(token(id), Instant::ZERO, &mut log));
    b.replace(&config("codel", "1p").aqm, Limit::Packets(1), Instant::ZERO).unwrap();
    (6..9).for_each(|id| b.arrive(token(id), Instant::ZERO, &mut log));
    assert_eq!(log.dropped, [(7, DropReason::Overflow), (8, DropReason::Overflow)]);
    assert_eq!((b.server.backlog().packets, b.server.stats().arrived.packets), (6, 9));
    let order: Vec<_> = drain(&mut b, at(Span::from_secs(1)), &mut log).iter().map(|(id, _)| *id).collect();
    assert_eq!(order, [0, 1, 2, 3, 4, 5, 6]);
    b.check().unwrap();
}

/// Segments are shown to the discipline that packets enter.
#[test]
fn a_discipline_that_knows_connections_is_replaced_as_well() {
    for (from, to, knows) in [("pink", "droptail", false), ("droptail", "pink", true), ("qrm", "green", true)] {
        let (mut b, mut log) = (bottleneck(from, "5p"), Log::default());
        (0..2).for_each(|id| b.arrive(token(id), Instant::ZERO, &mut log));
        b.replace(&config(to, "5p").aqm, Limit::Packets(5), Instant::ZERO).unwrap();
        b.arrive(token(2), Instant::ZERO, &mut log);
        assert_eq!((b.keeps_connections(), sees_segments(&config(to, "5p").aqm)), (knows, knows), "{from}");
        let order: Vec<_> = drain(&mut b, at(Span::from_secs(1)), &mut log).iter().map(|(id, _)| *id).collect();
        assert_eq!((order, b.check()), (vec![0, 1, 2], Ok(())));
    }
}

#[test]
fn too_many_queues_that_hold_packets_are_refused() {
    let (mut b, mut log) = (bottleneck("droptail", "50p"), Log::default());
    for id in 0..MOST_REPLACED + 1 {
        b.arrive(token(id), Instant::ZERO, &mut log);
        b.arrive(token(id), Instant::ZERO, &mut log);
        assert_eq!(b.may_replace(&config("droptail", "5p").aqm, Limit::Packets(50)).is_ok(), id < MOST_REPLACED);
        let expected = if id < MOST_REPLACED { Ok(()) } else { Err(Irreplaceable::Busy) };
        assert_eq!(b.replace(&config("droptail", "5p").aqm, Limit::Packets(50), Instant::ZERO), expected, "{id}");
    }
    b.check().unwrap();
}

fn arrivals() -> impl Strategy<Value = Vec<(u64, u64, bool)>> {
    prop::collection::vec((0..3_000_000u64, 40..1500u64, any::<bool>()), 1..200)
}

fn tokens(arrivals: &[(u64, u64, bool)]) -> Vec<(Instant, Numbered)> {
    let mut now = 0;
    arrivals
        .iter()
        .enumerate()
        .map(|(id, (gap, size, ect))| {
            now += gap;
            let ecn = if *ect { Ecn::Ect0 } else { Ecn::NotEct };
            (Instant::from_nanos(now), Numbered::new(id as u64, FlowId(0), Bytes::new(*size)).with_ecn(ecn))
        })
        .collect()
}

proptest! {
    /// The time at which the caller polls does not change when packets are due.
    #[test]
    fn a_late_owner_does_not_slow_the_wire(arrivals in arrivals(), looks in prop::collection::vec(0..3_000_000u64, 0..50)) {
        let run = |looks: &[u64]| {
            let (mut b, mut log, mut got) = (bottleneck("droptail", "30p"), Log::default(), Vec::new());
            let mut looks = looks.iter().scan(0, |t, gap| { *t += gap; Some(Instant::from_nanos(*t)) }).peekable();
            for (now, token) in tokens(&arrivals) {
                while let Some(look) = looks.next_if(|look| *look <= now) {
                    got.extend(drain(&mut b, look, &mut log));
                }
                got.extend(drain(&mut b, now, &mut log));
                b.arrive(token, now, &mut log);
            }
            got.extend(drain(&mut b, Instant::MAX, &mut log));
            (got, log.dropped)
        };
        prop_assert_eq!(run(&looks), run(&[]));
    }

    /// Any discipline: an owner who calls only for packets that are due has each of them on time.
    #[test]
    fn nobody_has_to_call_before_a_packet_is_due(name in prop::sample::select(NAMES), arrivals in arrivals()) {
        let run = |next: fn(&Bottleneck<Numbered>) -> Option<Instant>| {
            let (mut b, mut log, mut got) = (bottleneck(name, "30p"), Log::default(), Vec::new());
            let mut tokens = tokens(&arrivals).into_iter().peekable();
            for _ in 0..10_000 {
                let arrival = tokens.peek().map(|(at, _)| *at);
                let Some(now) = [next(&b), arrival].into_iter().flatten().min() else { break };
                got.extend(drain(&mut b, now, &mut log).into_iter().map(|(id, due)| (id, due, now)));
                while let Some((_, token)) = tokens.next_if(|(at, _)| *at == now) {
                    b.arrive(token, now, &mut log);
                }
                if arrival.is_none() && b.server.backlog().packets == 0 && b.next_due().is_none_or(|at| at > now + Span::from_secs(60)) {
                    break;
                }
            }
            got
        };
        let lazy = run(Bottleneck::next_due);
        prop_assert!(lazy.iter().all(|(_, due, now)| due == now));
        prop_assert_eq!(lazy, run(Bottleneck::next_event));
    }

    /// Any discipline: every packet is delivered, dropped, waiting or in flight; the wire is never faster than its rate;
    /// polling ends.
    #[test]
    fn nothing_is_lost_or_invented(name in prop::sample::select(NAMES), arrivals in arrivals(), limit in 1..50u64) {
        let config = Config { limit: Limit::Packets(limit), ..config(name, "1p") };
        let rng: Rng = Streams::new(1).get("test");
        let (mut b, mut log, mut got) = (Bottleneck::new(&config, rng), Log::default(), Vec::new());
        let tokens = tokens(&arrivals);
        for (now, token) in &tokens {
            got.extend(drain(&mut b, *now, &mut log));
            prop_assert!(b.next_event().is_none_or(|at| at > *now));
            b.arrive(*token, *now, &mut log);
            prop_assert_eq!(b.check(), Ok(()));
        }
        got.extend(drain(&mut b, tokens[tokens.len() - 1].0 + Span::from_secs(1), &mut log));
        prop_assert_eq!(b.check(), Ok(()));
        prop_assert_eq!(b.server.backlog().packets, 0, "a second empties any of these queues");
        prop_assert_eq!(got.len() + log.dropped.len(), tokens.len());
        for pair in got.windows(2) {
            // Times are whole nanoseconds, so a transmission may end a nanosecond early.
            let apart = pair[1].1.since(pair[0].1).as_nanos() + 1;
            prop_assert!(apart >= config.rate.time_for(tokens[pair[1].0].1.size).as_nanos());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Disciplines replace one another, and rate, delay and loss change while packets pass: none is lost by that, and those that
    /// are delivered have the order in which their queues sent them.
    #[test]
    fn changes_lose_no_packet(arrivals in arrivals(), changes in prop::collection::vec((0..NAMES.len(), 1..50u64, 0..4u8), 1..20)) {
        let (mut b, mut log, mut got) = (bottleneck("droptail", "20p"), Log::default(), Vec::new());
        b.server.loss = Some(Loss::new(0.0, Streams::new(1).get("loss")));
        let (tokens, mut lost) = (tokens(&arrivals), false);
        for (number, (now, token)) in tokens.iter().enumerate() {
            got.extend(drain(&mut b, *now, &mut log));
            // Some disciplines take a while to build.
            let change = (number % 8 == 0).then(|| changes[number / 8 % changes.len()]);
            let (name, value, kind) = change.unwrap_or((0, 0, u8::MAX));
            match kind {
                0 => {
                    let aqm = config_from_settings(NAMES[name], &[]).unwrap();
                    let replaced = b.replace(&aqm, Limit::Packets(value), *now);
                    prop_assert!(replaced.is_ok() || b.server.replaced() == MOST_REPLACED);
                }
                1 => b.set_rate(Rate::from_bps(value * 1_000_000), *now),
                2 => b.line.delay = Span::from_millis(value),
                u8::MAX => {}
                _ => {
                    lost = true;
                    b.server.loss.as_mut().unwrap().set(value as f64 / 100.0);
                }
            }
            b.arrive(*token, *now, &mut log);
            prop_assert_eq!(b.check(), Ok(()));
        }
        got.extend(drain(&mut b, tokens[tokens.len() - 1].0 + Span::from_secs(3), &mut log));
        prop_assert_eq!(b.check(), Ok(()));
        prop_assert_eq!(b.server.backlog().packets, 0);
        prop_assert!(lost || b.lost() == 0);
        prop_assert_eq!(got.len() + log.dropped.len() + b.lost() as usize, tokens.len());
        prop_assert!(got.windows(2).all(|pair| pair[0].1 <= pair[1].1), "packets do not overtake");
    }
}
