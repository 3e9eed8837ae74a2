//! The program that writes the rate of a connection into its segments, for a queue that marks flows by their rates (RED-ERN;
//! explicit rate notification of document 003, §III.A). It runs for each TCP connection of a cgroup that has ECN.
//!
//! ```text
//! option   kind 253, length 6, window in 16 bits and a shift in 4, smoothed round trip time in ms in 12 bits
//! rate     once per round trip, in a segment with new data; the window is cwnd in bytes
//! others   the same option with zeros: the segment belongs to a flow that announces its rate, and announces none
//! nothing  in slow start (§III.A), in SYNs, acknowledgments without data, and connections without ECN
//! ```
//!
//! Its place is kept in slow start, by NOPs, so that segments always have the same length: a retransmission of longer ones
//! would be cut in two.
//!
//! DIFFERENCE: the option alone takes the place of the header bits ERC and ENR, which no program can set here. Pinned by
//! `the_option_alone_announces_a_rate_or_that_the_flow_announces`.
//! DIFFERENCE: an offload repeats the option in each part of a large segment. The number of rates per round trip that
//! `segments_tell_the_rates_of_their_connections` accepts leaves room for it.

use super::assembler::{Assembler, FP, If, Instruction, Label, Op, R, Size, V};
use super::program::{
    ACTIVE_ESTABLISHED, CONTEXT, MSS, MY_COOKIE, OPERATION, PASSIVE_ESTABLISHED, ROUND_TRIP, VALUE, cookie, want,
};

/// Kind and length of the option.
const KIND: i32 = 253;
const LENGTH: i32 = 6;
/// Offsets in `struct bpf_sock_ops`.
const WINDOW: i16 = 76;
const SMOOTHED_RTT: i16 = 80;
const THRESHOLD: i16 = 96;
const NEXT_NUMBER: i16 = 104;
const ECN_FLAGS: i16 = 116;
const HEADER_BEGIN: i16 = 192;
const HEADER_END: i16 = 200;
const SKB_LEN: i16 = 208;
/// ECN was negotiated (TCP_ECN_OK).
const HAS_ECN: i32 = 1;
/// Values of the operation: how long options are, and what they are.
const OPTION_LENGTH: i32 = 14;
const WRITE_OPTION: i32 = 15;
/// The flags by which the kernel calls after each round trip, and for options.
const WANTED: i32 = 1 << 3 | 1 << 6;
/// Helpers.
const STORE_OPTION: i32 = 143;
const RESERVE_OPTION: i32 = 144;
/// A segment without data is no longer than its largest header.
const HEADER: i32 = 60;
/// What a window of 16 bits can tell, and the largest shift.
const LARGEST: i32 = 0xffff;
const SHIFTS: usize = 15;
const LONGEST_RTT_MS: i32 = 0xfff;

/// The option on the stack, below the variables of [`super::program`].
const OPTION: i16 = -24;
const RATE: R = R(7);
const SHIFT: R = R(8);
const RTT: R = R(9);

/// Bytes of the entry of a socket: 1 if a rate is due.
pub(super) const ENTRY: usize = 8;

/// Returns the program; `due` is the map of sockets by cookie.
pub(super) fn program(due: i32) -> Vec<Instruction> {
    let mut a = Assembler::default();
    let [established, round_trip, length, write, out] = std::array::from_fn(|_| a.label());
    a.mov(CONTEXT, V::Reg(R(1)));
    a.load(Size::W, R(0), CONTEXT, OPERATION);
    let operations = [
        (ACTIVE_ESTABLISHED, established),
        (PASSIVE_ESTABLISHED, established),
        (ROUND_TRIP, round_trip),
        (OPTION_LENGTH, length),
        (WRITE_OPTION, write),
    ];
    for (operation, to) in operations {
        a.jump_if(R(0), If::Eq, V::Imm(operation), to);
    }
    a.jump(out);

    a.here(established);
    want(&mut a, WANTED);
    a.jump(out);

    // The next segment with data tells the rate.
    a.here(round_trip);
    cookie(&mut a);
    a.store(Size::D, FP, VALUE, V::Imm(1));
    a.update(due, MY_COOKIE, VALUE);
    a.jump(out);

    a.here(length);
    has_ecn(&mut a, out);
    a.mov(R(1), V::Reg(CONTEXT));
    a.mov(R(2), V::Imm(LENGTH));
    a.mov(R(3), V::Imm(0));
    a.call(RESERVE_OPTION);
    a.jump(out);

    a.here(write);
    has_ecn(&mut a, out);
    // Nothing in slow start.
    a.load(Size::W, R(1), CONTEXT, WINDOW);
    a.load(Size::W, R(2), CONTEXT, THRESHOLD);
    a.jump_if(R(2), If::Gt, V::Reg(R(1)), out);
    option(&mut a, due, out);
    a.here(out);
    a.mov(R(0), V::Imm(1));
    a.exit();
    a.finish()
}

/// Goes on only for a connection that has ECN.
fn has_ecn(a: &mut Assembler, out: Label) {
    a.load(Size::W, R(1), CONTEXT, ECN_FLAGS);
    a.op(Op::And, R(1), V::Imm(HAS_ECN));
    a.jump_if(R(1), If::Eq, V::Imm(0), out);
}

/// Goes on only for a segment with new data: until it is sent, the next number of the connection is its own.
fn is_new(a: &mut Assembler, otherwise: Label) {
    let (begin, end, number, next) = (R(1), R(2), R(3), R(4));
    a.load(Size::D, begin, CONTEXT, HEADER_BEGIN);
    a.load(Size::D, end, CONTEXT, HEADER_END);
    a.mov(number, V::Reg(begin));
    a.op(Op::Add, number, V::Imm(8));
    a.jump_if(number, If::Gt, V::Reg(end), otherwise);
    a.mov(number, V::Imm(0));
    for byte in 4..8 {
        a.op(Op::Mul, number, V::Imm(256));
        a.load(Size::B, next, begin, byte);
        a.op(Op::Add, number, V::Reg(next));
    }
    // The sign of the difference in 32 bits says which is first.
    a.load(Size::W, next, CONTEXT, NEXT_NUMBER);
    a.op(Op::Mul, next, V::Imm(-1));
    a.op(Op::Add, number, V::Reg(next));
    a.op(Op::Rsh, number, V::Imm(31));
    a.op(Op::And, number, V::Imm(1));
    a.jump_if(number, If::Ne, V::Imm(0), otherwise);
}

/// Writes the option into a segment with data.
fn option(a: &mut Assembler, due: i32, out: Label) {
    let ready = a.label();
    a.load(Size::W, R(1), CONTEXT, SKB_LEN);
    a.jump_if(R(1), If::Le, V::Imm(HEADER), out);
    a.store(Size::D, FP, OPTION, V::Imm(0));
    a.store(Size::B, FP, OPTION, V::Imm(KIND));
    a.store(Size::B, FP, OPTION + 1, V::Imm(LENGTH));
    is_new(a, ready);
    cookie(a);
    a.find(due, MY_COOKIE, ready);
    a.load_some(Size::D, R(1), R(0), 0, ready);
    a.store(Size::D, R(0), 0, V::Imm(0));
    rate(a);
    a.here(ready);
    a.mov(R(1), V::Reg(CONTEXT));
    a.address(R(2), OPTION);
    a.mov(R(3), V::Imm(LENGTH));
    a.mov(R(4), V::Imm(0));
    a.call(STORE_OPTION);
    a.jump(out);
}

/// Puts window and round trip time into the option on the stack.
fn rate(a: &mut Assembler) {
    let coded = a.label();
    a.load(Size::W, RATE, CONTEXT, WINDOW);
    a.load(Size::W, R(1), CONTEXT, MSS);
    a.op(Op::Mul, RATE, V::Reg(R(1)));
    a.mov(SHIFT, V::Imm(0));
    for _ in 0..SHIFTS {
        a.jump_if(RATE, If::Le, V::Imm(LARGEST), coded);
        a.op(Op::Rsh, RATE, V::Imm(1));
        a.op(Op::Add, SHIFT, V::Imm(1));
    }
    a.here(coded);
    a.load(Size::W, RTT, CONTEXT, SMOOTHED_RTT);
    // The kernel keeps eight times the round trip time, in microseconds.
    a.ops(RTT, [(Op::Rsh, V::Imm(3)), (Op::Add, V::Imm(500)), (Op::Div, V::Imm(1000))]);
    a.at_least(RTT, V::Imm(1));
    a.at_most(RTT, V::Imm(LONGEST_RTT_MS));
    a.store(Size::B, FP, OPTION + 3, V::Reg(RATE));
    a.op(Op::Rsh, RATE, V::Imm(8));
    a.store(Size::B, FP, OPTION + 2, V::Reg(RATE));
    a.store(Size::B, FP, OPTION + 5, V::Reg(RTT));
    a.op(Op::Rsh, RTT, V::Imm(8));
    a.ops(SHIFT, [(Op::Mul, V::Imm(16)), (Op::Or, V::Reg(RTT))]);
    a.store(Size::B, FP, OPTION + 4, V::Reg(SHIFT));
}
