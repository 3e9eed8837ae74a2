//! The tables and the examples of RFC 9768.

use super::*;
use penstock_core::packet::Timestamps;

const MSS: u64 = 1460;

fn with_ace(flags: TcpFlags, ace: u8, ecn: Ecn) -> Segment {
    let mut segment = Segment::tcp(0, true, flags);
    segment.set_ace(ace);
    segment.set_ecn(ecn);
    segment
}

fn syn(ace: u8, ecn: Ecn) -> Segment {
    with_ace(TcpFlags::SYN, ace, ecn)
}

fn syn_ack(ace: u8, ecn: Ecn) -> Segment {
    with_ace(TcpFlags::SYN.with(TcpFlags::ACK), ace, ecn)
}

fn ack(ace: u8) -> Segment {
    with_ace(TcpFlags::ACK, ace, Ecn::NotEct)
}

fn data(len: u16, ecn: Ecn) -> Segment {
    let mut segment = with_ace(TcpFlags::ACK, 0, ecn);
    segment.len = len;
    segment
}

/// A server that took this SYN and nothing else.
fn server(syn: &Segment) -> Negotiation {
    let mut negotiation = Negotiation::new(false);
    assert!(negotiation.on_syn(syn));
    negotiation
}

/// A client that took this SYN-ACK.
fn client(syn_ack: &Segment) -> Negotiation {
    let mut negotiation = Negotiation::new(false);
    negotiation.on_syn_ack(syn_ack);
    negotiation
}

/// Table 2, top block, and the same codes in Table 3.
const CODES: [(Ecn, u8); 4] = [(Ecn::NotEct, 0b010), (Ecn::Ect1, 0b011), (Ecn::Ect0, 0b100), (Ecn::Ce, 0b110)];

/// Table 2: the answers of a server to each SYN, in each ECN field; §3.1.3 for SYNs that are not in the table.
#[test]
fn a_server_answers_each_syn_by_table_2() {
    for (ecn, answer) in CODES {
        for asked in 0..8 {
            let mut negotiation = server(&syn(asked, ecn));
            let (mode, expected) = match asked {
                0b000 => (Mode::NotEcn, (0b000, false)),
                0b011 => (Mode::Classic, (0b001, false)),
                _ => (Mode::Accurate, (answer, true)),
            };
            assert_eq!((negotiation.mode, negotiation.greeting(true, 0)), (mode, expected), "{asked:03b} {ecn:?}");
        }
    }
}

/// Table 2: what a client makes of each answer; 1 0 1 is reserved (§3.1.3), 1 1 1 broken.
#[test]
fn a_client_takes_each_answer_by_table_2() {
    for ace in 0..8 {
        let mode = match ace {
            0b000 | 0b111 => Mode::NotEcn,
            0b001 => Mode::Classic,
            _ => Mode::Accurate,
        };
        assert_eq!(client(&syn_ack(ace, Ecn::NotEct)).mode, mode, "{ace:03b}");
    }
    assert_eq!(Negotiation::new(false).greeting(false, 0), (0b111, false), "no option on a SYN (§3.2.3.2.1)");
}

/// §3.1.4.1: the first repetition asks as well, later ones do not. §3.2.3.2.2: a SYN-ACK that is repeated has no option, then
/// no flags; the server stays in its mode, and sends no ECT (§3.1.5).
#[test]
fn who_is_not_answered_asks_for_less() {
    let greetings =
        |negotiation: &mut Negotiation, answers| [0, 1, 2, 3].map(|sent| negotiation.greeting(answers, sent));
    assert_eq!(greetings(&mut Negotiation::new(false), false), [(7, false), (7, false), (0, false), (0, false)]);
    let mut negotiation = server(&syn(0b111, Ecn::NotEct));
    assert_eq!(negotiation.greeting(true, 1), (0b010, false));
    assert!(negotiation.halves(true, Ecn::NotEct, true).1.sends_ect());
    assert_eq!(greetings(&mut negotiation, true), [(2, true), (2, false), (0, false), (0, false)]);
    assert_eq!(negotiation.mode, Mode::Accurate);
    assert!(!negotiation.halves(true, Ecn::NotEct, true).1.sends_ect());
}

/// §3.1.5: the first mode stays, the latest SYN is told of, and SYNs of both kinds are refused.
#[test]
fn the_first_mode_stays() {
    let mut negotiation = server(&syn(0b111, Ecn::NotEct));
    assert!(negotiation.on_syn(&syn(0b111, Ecn::Ce)));
    assert_eq!(negotiation.greeting(true, 1), (0b110, false), "of the latest SYN");
    assert!(negotiation.on_syn(&syn(0b000, Ecn::NotEct)));
    assert_eq!((negotiation.mode, negotiation.bare), (Mode::Accurate, true));
    assert!(!negotiation.on_syn(&syn(0b011, Ecn::NotEct)), "classic after accurate");
    assert!(!server(&syn(0b011, Ecn::NotEct)).on_syn(&syn(0b111, Ecn::NotEct)), "accurate after classic");
    let mut none = server(&syn(0b000, Ecn::NotEct));
    assert!(none.on_syn(&syn(0b111, Ecn::NotEct)));
    assert_eq!((none.mode, none.greeting(true, 1)), (Mode::NotEcn, (0, false)));
    let mut negotiation = client(&syn_ack(0b000, Ecn::NotEct));
    negotiation.on_syn_ack(&syn_ack(0b010, Ecn::NotEct));
    assert_eq!(negotiation.mode, Mode::NotEcn);
}

/// Table 3: the ACK of the SYN-ACK, and r.cep of the client. Data does not carry the code (§3.2.2.1).
#[test]
fn a_client_tells_how_the_syn_ack_came_by_table_3() {
    for ((ecn, code), packets) in CODES.into_iter().zip([5, 5, 5, 6]) {
        let (mut feedback, _) = client(&syn_ack(0b010, ecn)).halves(false, Ecn::NotEct, true);
        assert!(feedback.owes_code());
        let mut first = ack(0);
        feedback.write(&mut first);
        assert_eq!((first.ace(), feedback.packets, feedback.owes_code()), (code, packets, false), "{ecn:?}");
        assert_eq!(first.accecn().map(|option| option.length()), Some(11), "a test of the path (§3.2.3.2.1)");
        let mut second = data(100, Ecn::NotEct);
        feedback.write(&mut second);
        assert_eq!(u32::from(second.ace()), packets);
        assert!(second.accecn().is_some(), "and on the first data");
        let mut third = data(100, Ecn::NotEct);
        feedback.write(&mut third);
        assert_eq!(third.accecn(), None);
    }
}

/// Table 4: what a server makes of ACE in the last ACK of the handshake: s.cep, whether it sends ECT, and heeds feedback.
#[test]
fn a_server_reads_the_last_ack_by_table_4() {
    for (ace, packets, ect, heard) in [
        (0b000, 5, false, false), // note 1
        (0b001, 5, true, true),
        (0b010, 5, true, true),
        (0b011, 5, false, true), // Not-ECT became ECT(1): mangled
        (0b100, 5, false, true),
        (0b101, 5, true, true),
        (0b110, 6, false, true), // Not-ECT became CE
        (0b111, 5, true, true),
    ] {
        let mut negotiation = server(&syn(0b111, Ecn::NotEct));
        negotiation.on_last_ack(&ack(ace));
        let (_, marks) = negotiation.halves(true, Ecn::NotEct, true);
        assert_eq!((marks.packets, marks.ect, marks.heard), (packets, ect, heard), "{ace:03b}");
        assert_eq!(negotiation.was_marked(), ace == 0b110);
    }
    // From ECT(0), CE is congestion, and Not-ECT is mangled.
    for (ace, ect) in [(0b010, false), (0b100, true), (0b110, true)] {
        let mut negotiation = server(&syn(0b111, Ecn::Ect0));
        negotiation.on_last_ack(&ack(ace));
        assert_eq!(negotiation.halves(true, Ecn::Ect0, true).1.ect, ect, "{ace:03b}");
    }
    // With data, ACE is a counter: one CE packet arrived.
    let mut negotiation = server(&syn(0b111, Ecn::NotEct));
    let mut segment = data(10, Ecn::NotEct);
    segment.set_ace(6);
    negotiation.on_last_ack(&segment);
    let (_, mut marks) = negotiation.halves(true, Ecn::NotEct, true);
    assert!(marks.take(&segment, Acknowledged { bytes: 1, mss: MSS }));
    assert_eq!(marks.packets, 6);
}

/// §3.2.2.3, RFC 3168 §18: which changes of the ECN field no router may make, and a client that finds one.
#[test]
fn a_client_whose_syn_was_mangled_sends_no_ect_and_goes_on_to_listen() {
    for (sent, code, ect) in [
        (Ecn::NotEct, 0b010, true),
        (Ecn::NotEct, 0b011, false),
        (Ecn::NotEct, 0b100, false),
        (Ecn::NotEct, 0b110, false),
        (Ecn::Ect1, 0b011, true),
        (Ecn::Ect1, 0b110, true),
        (Ecn::Ect1, 0b010, false),
        (Ecn::Ect0, 0b010, false),
        (Ecn::Ect0, 0b101, true), // reserved: as if it came unchanged (§3.1.3)
    ] {
        let (_, marks) = client(&syn_ack(code, Ecn::NotEct)).halves(false, sent, true);
        assert_eq!((marks.ect, marks.heard, marks.packets), (ect, true, 5), "{sent:?} {code:03b}");
    }
}

/// §3.2: r.cep counts all packets with CE, the other counters payload; §3.2.1: they begin at 5, 1, 0, 1.
#[test]
fn each_packet_and_byte_is_counted_by_its_ecn_field() {
    let mut feedback = Feedback::new(true);
    for (len, ecn) in
        [(100, Ecn::Ect0), (200, Ecn::Ect1), (300, Ecn::Ce), (0, Ecn::Ce), (400, Ecn::NotEct), (0, Ecn::Ect0)]
    {
        feedback.count(&data(len, ecn), false);
    }
    assert_eq!(feedback.packets, 7);
    assert_eq!(feedback.bytes, ByteCounters { ect0: 101, ce: 300, ect1: 201 });
}

/// §3.2.2.5.1: an ACK leaves when CE data follows another packet, at the second mark with data, at the third without.
#[test]
fn marks_call_for_acks() {
    let now = |packets: &[(u16, Ecn)], waits| {
        let mut feedback = Feedback::new(true);
        packets.iter().map(|(len, ecn)| feedback.count(&data(*len, *ecn), waits)).collect::<Vec<_>>()
    };
    let (ce, ect) = (Ecn::Ce, Ecn::Ect0);
    assert_eq!(now(&[(9, ect), (9, ce), (9, ect), (9, ce)], false), [false, true, false, true]);
    assert_eq!(now(&[(9, ce), (9, ce)], false), [true, true], "the change, then the second");
    assert_eq!(now(&[(0, ce), (0, ce), (0, ce)], false), [false, false, true]);
    assert_eq!(now(&[(0, ce), (0, ce)], true), [false, true], "with data that waits");
    let mut feedback = Feedback::new(true);
    feedback.count(&data(0, ce), false);
    feedback.count(&data(0, ce), false);
    feedback.write(&mut ack(0));
    assert!(!feedback.count(&data(0, ce), false), "counted since the last ACK");
    let mut without_sack = Feedback::new(false);
    assert!((0..9).all(|_| !without_sack.count(&data(0, ce), false)), "an ACK of ACKs would look like a duplicate");
}

fn told(feedback: &mut Feedback, blocks: u32) -> Option<(bool, Vec<u32>)> {
    let mut segment = ack(0);
    segment.set_timestamps(Timestamps { val: 1, ecr: 1 });
    (0..blocks).for_each(|n| segment.add_sack((10 * n, 10 * n + 5)));
    feedback.write(&mut segment);
    segment.accecn().map(|option| (option.ect1_first(), option.fields().to_vec()))
}

/// §3.2.3.3: every counter that has ever changed, on every ACK if any has changed since the last; the order is the shorter.
#[test]
fn an_option_has_the_counters_that_have_changed() {
    let mut feedback = Feedback::new(true);
    assert_eq!(told(&mut feedback, 0), None);
    feedback.count(&data(100, Ecn::Ect0), false);
    assert_eq!(told(&mut feedback, 0), Some((false, vec![101])));
    assert_eq!(told(&mut feedback, 0), None, "nothing has changed");
    feedback.count(&data(50, Ecn::Ce), false);
    assert_eq!(told(&mut feedback, 0), Some((false, vec![101, 50])));
    feedback.count(&data(10, Ecn::Ect1), false);
    assert_eq!(told(&mut feedback, 0), Some((false, vec![101, 50, 11])));
    let mut l4s = Feedback::new(true);
    l4s.count(&data(100, Ecn::Ect1), false);
    assert_eq!(told(&mut l4s, 0), Some((true, vec![101])));
    l4s.count(&data(20, Ecn::Ce), false);
    assert_eq!(told(&mut l4s, 0), Some((true, vec![101, 20])));
    let mut marked = Feedback::new(true);
    marked.count(&data(7, Ecn::Ce), false);
    assert_eq!(told(&mut marked, 0), Some((false, vec![1, 7])), "the other order is as long");
}

/// §3.2.3.3: two SACK blocks leave 8 bytes beside timestamps, which hold two counters: those that have changed since they were
/// told, or none.
#[test]
fn sack_comes_before_the_option() {
    let mut feedback = Feedback::new(true);
    for (len, ecn) in [(100, Ecn::Ect0), (50, Ecn::Ce), (10, Ecn::Ect1)] {
        feedback.count(&data(len, ecn), false);
    }
    assert_eq!(told(&mut feedback, 2), None, "all three have changed");
    assert_eq!(told(&mut feedback, 1), Some((false, vec![101, 50, 11])), "beside one block they fit");
    feedback.count(&data(5, Ecn::Ect1), false);
    feedback.count(&data(5, Ecn::Ce), false);
    assert_eq!(told(&mut feedback, 3), Some((true, vec![16, 55])));
    feedback.count(&data(5, Ecn::Ect0), false);
    assert_eq!(told(&mut feedback, 2), Some((false, vec![106])));
}

/// Appendix A.1: 33,554,433 and 1461 make 33,555,893.
#[test]
fn counters_of_24_bits_come_round() {
    let mut marks = Marks::new(Some(first_option(false)));
    marks.bytes.ce = 33_554_433 % DIV_OPTION;
    let option = AccEcn::new(false, 2, &ByteCounters { ect0: 1, ce: 1461, ect1: 1 });
    assert_eq!(marks.take_option(&option), Some(1460));
    assert_eq!(marks.bytes.ce, 33_555_893 % DIV_OPTION);
}

/// Appendix A.2.1: 2 more than s.cep with 9 packets acknowledged are 2, with 10 they may be 10; A.2.2: three examples with
/// bytes.
#[test]
fn the_safest_number_of_marked_packets_is_taken() {
    let packets = |options, least, bytes, acked: u64| {
        let marks = Marks { options, ..Marks::new(None) };
        marks.packets(least, bytes, Acknowledged { bytes: acked * MSS, mss: MSS })
    };
    assert_eq!(packets(Options::Absent, 2, None, 9), 2);
    assert_eq!(packets(Options::Absent, 2, None, 10), 10);
    assert_eq!(packets(Options::Absent, 5, None, 3), 5, "ACE is right, the count of packets is incomplete");
    assert_eq!(packets(Options::Arrive, 0, Some(1460), 8), 8);
    assert_eq!(packets(Options::Arrive, 2, Some(1460), 10), 2);
    assert_eq!(packets(Options::Arrive, 7, Some(10_200), 15), 7);
    assert_eq!(packets(Options::Arrive, 0, None, 20), 0, "no counter has changed");
}

fn with_option(ace: u8, ce: u32) -> Segment {
    let mut segment = ack(ace);
    segment.set_accecn(&AccEcn::new(false, 2, &ByteCounters { ect0: 1, ce, ect1: 1 }));
    segment
}

const ONE: Acknowledged = Acknowledged { bytes: MSS, mss: MSS };

/// With options bytes decide; without, each marked packet is a full one, of no more than was acknowledged (appendix A.3).
#[test]
fn marked_bytes_are_those_of_the_option_or_of_full_segments() {
    let mut marks = Marks::new(Some(first_option(false)));
    assert!(marks.take(&with_option(6, 100), ONE));
    assert_eq!((marks.packets, marks.marked(MSS), marks.marked(MSS)), (6, 100, 0));
    assert!(marks.take(&with_option(7, 5100), ONE));
    assert_eq!((marks.marked(MSS), marks.marked(MSS)), (MSS, MSS), "no more than is acknowledged at once");
    marks.forget();
    assert_eq!(marks.marked(u64::MAX), 0);
    let mut without = Marks::new(None);
    assert!(without.take(&ack(7), Acknowledged { bytes: 3 * MSS, mss: MSS }));
    assert_eq!((without.packets, without.marked(u64::MAX)), (7, 2 * MSS));
    assert!(!without.take(&ack(7), ONE));
    assert!(without.take(&ack(1), Acknowledged { bytes: 500, mss: MSS }));
    assert_eq!((without.packets, without.marked(u64::MAX)), (9, 500));
    // §3.2.3.2.3: an option that comes later is used from then on.
    assert!(without.take(&with_option(2, 700), ONE));
    assert_eq!((without.options, without.marked(u64::MAX)), (Options::Arrive, 700));
}

/// Appendix A.1: an ACK that acknowledges nothing new is superseded, unless its timestamp is newer.
#[test]
fn feedback_that_is_superseded_is_ignored() {
    let nothing = Acknowledged { bytes: 0, mss: MSS };
    let mut marks = Marks::new(None);
    assert!(!marks.take(&ack(7), nothing));
    assert_eq!(marks.packets, 5);
    let at = |ace, val| {
        let mut segment = ack(ace);
        segment.set_timestamps(Timestamps { val, ecr: 0 });
        segment
    };
    assert!(marks.take(&at(6, 10), nothing));
    assert!(!marks.take(&at(7, 9), nothing));
    assert!(marks.take(&at(7, 9), ONE), "it acknowledges");
    assert_eq!(marks.packets, 7);
}

/// §3.2.2.4 and §3.2.3.2.4: a first ACE of zero ends ECT and the response, a first option with zero ends the use of options;
/// later zeros are counters.
#[test]
fn zeros_at_the_beginning_are_noticed() {
    let mut marks = Marks::new(Some(first_option(false)));
    assert!(!marks.take(&ack(0), ONE));
    assert!(!marks.sends_ect() && !marks.heard);
    assert!(!marks.take(&ack(3), ONE), "no response any more");
    let mut marks = Marks::new(Some(first_option(false)));
    assert!(marks.take(&ack(7), ONE) && marks.take(&ack(0), ONE) && marks.sends_ect());
    let zeroed = AccEcn::new(false, 3, &ByteCounters::default());
    let mut marks = Marks::new(Some(zeroed));
    assert!(marks.take(&with_option(6, 900), ONE));
    assert_eq!((marks.options, marks.marked(u64::MAX)), (Options::Zeroed, MSS), "by ACE alone");
    assert_eq!(
        Marks::new(Some(AccEcn::new(false, 0, &ByteCounters::default()))).options,
        Options::Arrive,
        "an empty one"
    );
}

/// §3.2.3.2.5: bytes with CE without a packet with CE; not if ACE may have come round, or told of it before.
#[test]
fn marked_bytes_without_marked_packets_end_ect() {
    let mut marks = Marks::new(Some(first_option(false)));
    marks.take(&with_option(5, 100), ONE);
    assert!(!marks.sends_ect());
    let mut marks = Marks::new(Some(first_option(false)));
    marks.take(&with_option(5, 8 * 1460), Acknowledged { bytes: 8 * MSS, mss: MSS });
    assert!(marks.sends_ect(), "eight packets: ACE came round");
    let mut marks = Marks::new(Some(first_option(false)));
    marks.take(&ack(6), ONE);
    marks.take(&with_option(6, 1460), ONE);
    assert!(marks.sends_ect(), "ACE told of it before");
}

#[test]
fn a_sender_that_sees_only_marks_goes_on() {
    let mut marks = Marks::new(Some(first_option(false)));
    for n in 1..1000u32 {
        let (ace, ce) = (((5 + n) % 8) as u8, n * 1460 % DIV_OPTION);
        assert!(marks.take(&with_option(ace, ce), ONE));
    }
    assert!(marks.sends_ect() && marks.heard);
    assert_eq!((marks.packets, marks.pending), (5 + 999, 999 * MSS));
}

/// §3.2.2.1: the code of the last ACK is no counter, and that ACK acknowledges nothing new. Without timestamps it was not told from an
/// ACK that came late, and the first mark behind it was lost.
#[test]
fn the_ace_behind_the_code_of_the_last_ack_counts() {
    let mut marks = Marks::new(Some(first_option(false)));
    marks.skip = true;
    let mut ack = |ace: u8, bytes: u64| {
        let mut segment = Segment::tcp(0, true, TcpFlags::ACK);
        segment.set_ace(ace);
        (marks.take(&segment, Acknowledged { bytes, mss: 1000 }), marks.packets)
    };
    assert_eq!(ack(0b010, 0), (false, 5));
    assert_eq!(ack(6, 1000), (true, 6));
}

/// __tcp_accecn_process by hand: below eight packets ACE is right. From eight on it may have come round: without counters as often as
/// fits, unless ACKs cover more than four packets on average; with counters, what fits the bytes.
#[test]
fn linux_guesses_how_often_ace_came_round() {
    let linux = |covered: u64| LinuxMarks { covered: covered << 6, ..LinuxMarks::default() };
    let acknowledged = |packets: u64| Acknowledged { bytes: packets * 1000, mss: 1000 };
    for (covered, least, marked, packets, found) in [
        (1, 3, None, 7, 3),
        (1, 0, None, 9, 8),
        (5, 0, None, 9, 0),
        (1, 1, Some(0), 9, 1),
        (1, 1, Some(9000), 9, 9),
        (1, 1, Some(500), 9, 1),
        (1, 1, Some(17_000), 17, 17),
        (1, 1, Some(8000), 17, 9),
    ] {
        let got = linux(covered).packets(least, marked, packets, acknowledged(packets));
        assert_eq!(got, found, "{covered} {least} {marked:?} {packets}");
    }
}

/// pkts_acked_ewma by hand: 1 packet, then 10: (64 * 63 + 640) / 64.
#[test]
fn linux_averages_what_an_ack_covers() {
    let mut linux = LinuxMarks::default();
    linux.cover(1);
    linux.cover(10);
    assert_eq!(linux.covered, 73);
}

/// tcp_options_fit_accecn by hand: three counters beside timestamps and one block, two beside two, where the third is not needed; none
/// beside three blocks if nothing must be told.
#[test]
fn linux_sends_as_many_counters_as_fit() {
    let fields = |timestamps: bool, blocks: u32, least: u8| {
        let mut segment = Segment::tcp(0, true, TcpFlags::ACK);
        if timestamps {
            segment.set_timestamps(penstock_core::packet::Timestamps { val: 1, ecr: 1 });
        }
        (0..blocks).for_each(|n| segment.add_sack((n * 10, n * 10 + 5)));
        LinuxFeedback { seen: true, least, ..LinuxFeedback::default() }.fields(&segment)
    };
    let with = |least| [0, 1, 2, 3].map(|blocks| fields(true, blocks, least));
    assert_eq!(with(0), [Some(3), Some(3), Some(2), None]);
    assert_eq!(with(2), [Some(3), Some(3), Some(2), Some(2)]);
    assert_eq!(with(3), [Some(3), Some(3), None, None]);
    assert_eq!([0, 1, 2, 3].map(|blocks| fields(false, blocks, 0)), [Some(3); 4]);
    assert_eq!(LinuxFeedback::default().fields(&Segment::tcp(0, true, TcpFlags::ACK)), None, "none has arrived");
}
