//! The program that the kernel runs for each TCP connection of a cgroup: when it is established, once per round trip, and
//! when it is closed. It holds the connections that send together to the budget of the host.
//!
//! ```text
//! n        sum of the weights of connections that had a round trip in this slot of 2.1 s, or in the one before if that is more
//! part     budget * weight / n, as bytes per second on the wire
//! window   part * smallest round trip and a sixteenth, in whole segments, and two segments more
//! pacing   part * payload / (payload + headers)
//! ```
//!
//! With a control ([`super::control`]) window and pace are left alone: the part and the size of a segment go into the entry of
//! the socket, which gets that control at each of its round trips.
//!
//! After the end of the order, or without a budget, a connection gets back its freedom at its next round trip.
//!
//! | map | entry | written by |
//! |---|---|---|
//! | order | [`Order`] | the agent |
//! | census | [`Census`] | the program |
//! | sockets | cookie: slot, window, pacing rate; with a control: part, the part it has seen, bytes of a segment | the program, its control |
//! | weights | mark of a socket: its weight; 1 without | the agent |

use super::assembler::{Assembler, FP, If, Instruction, Label, Op, R, Size, V};
use super::kernel::CONTROL_NAME;

/// The budget, as the program reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Order {
    /// Bits per second for all connections together; 0 for no limit.
    pub bps: u64,
    /// Until when that holds, in nanoseconds of CLOCK_MONOTONIC.
    pub until: u64,
}

/// What the program counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Census {
    /// The slot of time in which `now` are counted.
    pub slot: u64,
    /// The sum of the weights of connections that had a round trip in this slot.
    pub now: u64,
    /// The same of the slot before.
    pub before: u64,
    /// Connections that are limited.
    pub held: u64,
    /// Number of times at which the rate of a connection was changed.
    pub changes: u64,
    /// When that was last, in nanoseconds of CLOCK_MONOTONIC.
    pub changed_at: u64,
    /// The budget of the host at that time, in bits per second.
    pub changed_to: u64,
}

/// Sizes of the entries in bytes.
pub(super) const ORDER: usize = 16;
pub(super) const CENSUS: usize = 56;
pub(super) const SOCKET: usize = 40;
pub(super) const WEIGHT: usize = 4;

impl Order {
    pub fn bytes(self) -> [u8; ORDER] {
        let words = [self.bps, self.until].map(u64::to_ne_bytes);
        std::array::from_fn(|at| words[at / 8][at % 8])
    }
}

impl Census {
    pub(super) fn read(bytes: &[u8; CENSUS]) -> Self {
        let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| bytes[8 * at + i]));
        let [slot, now, before, held, changes, changed_at, changed_to] = std::array::from_fn(word);
        Self { slot, now, before, held, changes, changed_at, changed_to }
    }
}

/// Offsets in [`Census`].
pub(super) const NOW: i16 = 8;
const BEFORE: i16 = 16;
const HELD: i16 = 24;
const CHANGES: i16 = 32;
/// Offsets in the entry of a socket.
const WINDOW: i16 = 8;
const PACING: i16 = 12;
pub(super) const PART: i16 = 16;
pub(super) const SEEN: i16 = 24;
pub(super) const FRAME: i16 = 32;
/// Offsets in `struct bpf_sock_ops`.
pub(super) const OPERATION: i16 = 0;
const NEW_STATE: i16 = 8;
const FAMILY: i16 = 20;
const FLAGS: i16 = 84;
const SMALLEST_RTT: i16 = 92;
pub(super) const MSS: i16 = 112;
const SOCK: i16 = 184;
/// Offset in `struct bpf_sock`.
const MARK: i16 = 16;
/// Values of the operation.
pub(super) const ACTIVE_ESTABLISHED: i32 = 4;
pub(super) const PASSIVE_ESTABLISHED: i32 = 5;
const STATE: i32 = 10;
pub(super) const ROUND_TRIP: i32 = 12;
/// The flags by which the kernel calls at changes of the state and after each round trip.
const WANTED: i32 = 1 << 2 | 1 << 3;
const CLOSED: i32 = 7;
const INET6: i32 = 10;
/// Helpers.
const DELETE: i32 = 3;
pub(super) const CLOCK: i32 = 5;
pub(super) const COOKIE: i32 = 46;
const SET_OPTION: i32 = 49;
const SET_FLAGS: i32 = 59;
/// Options of sockets, with their levels.
const WINDOW_OPTION: (i32, i32) = (6, 1002);
const PACING_OPTION: (i32, i32) = (1, 47);
const CONTROL_OPTION: (i32, i32) = (6, 13);
/// Values that mean no limit.
const ANY_WINDOW: i32 = i32::MAX;
const ANY_PACING: i32 = -1;
/// Bits of a time that are below its slot: 2^31 ns are 2.1 s.
const SLOT: i32 = 31;
/// A round trip above half a minute has not been measured yet.
pub(super) const LONGEST_RTT: i32 = 30_000_000;
/// Segments in flight beyond the product of rate and round trip, for acknowledgments that come for two segments.
const BEYOND: i32 = 2;
/// The part of that product, as a power of two, by which round trips may be longer than the smallest one: the pace keeps the
/// rate, so the window need not.
const SPARE: i32 = 4;
/// Bytes of headers of IPv4 and TCP with timestamps; IPv6 has 20 more.
const HEADERS: i32 = 52;

/// Variables on the stack.
pub(super) const MY_COOKIE: i16 = -8;
pub(super) const VALUE: i16 = -16;
pub(super) const TIME: i16 = -24;
pub(super) const MY_SLOT: i16 = -32;
const MY_PACING: i16 = -40;
const ZERO: i16 = -48;
const COUNTS: i16 = -56;
const MY_WEIGHT: i16 = -64;
const MY_MARK: i16 = -72;
const MY_CONTROL: i16 = -88;
const FRESH: i16 = -128;

pub(super) const CONTEXT: R = R(6);
pub(super) const THE_ORDER: R = R(7);
pub(super) const THE_CENSUS: R = R(8);
const ENTRY: R = R(9);

/// Descriptors of the maps that this program has, or its control.
#[derive(Debug, Clone, Copy)]
pub(super) struct Maps {
    pub order: i32,
    pub census: i32,
    pub sockets: i32,
    pub weights: i32,
}

/// Returns the program; with a control of this name, it leaves windows and paces to that.
pub(super) fn program(maps: Maps, control: Option<[u8; CONTROL_NAME]>) -> Vec<Instruction> {
    let mut a = Assembler::default();
    let [apply, closed, release, out] = std::array::from_fn(|_| a.label());
    choose(&mut a, apply, closed, out);
    a.here(apply);
    find(&mut a, maps, out);
    is_ordered(&mut a, release);
    weigh(&mut a, maps);
    turn(&mut a);
    enter(&mut a, maps, out);
    part(&mut a, out);
    match control {
        None => limit(&mut a, out),
        Some(name) => tell(&mut a, name, out),
    }
    a.here(release);
    free(&mut a, maps, control.is_none(), out);
    a.here(closed);
    forget(&mut a, maps, out);
    a.here(out);
    a.mov(R(0), V::Imm(1));
    a.exit();
    a.finish()
}

/// Goes to what the operation asks for.
fn choose(a: &mut Assembler, apply: Label, closed: Label, out: Label) {
    let established = a.label();
    a.mov(CONTEXT, V::Reg(R(1)));
    a.load(Size::W, R(0), CONTEXT, OPERATION);
    a.store(Size::D, FP, COUNTS, V::Imm(1));
    a.jump_if(R(0), If::Eq, V::Imm(ROUND_TRIP), apply);
    a.jump_if(R(0), If::Eq, V::Imm(ACTIVE_ESTABLISHED), established);
    a.jump_if(R(0), If::Eq, V::Imm(PASSIVE_ESTABLISHED), established);
    a.jump_if(R(0), If::Ne, V::Imm(STATE), out);
    a.load(Size::W, R(1), CONTEXT, NEW_STATE);
    a.jump_if(R(1), If::Eq, V::Imm(CLOSED), closed);
    a.jump(out);
    a.here(established);
    // Nothing has been acknowledged yet, and perhaps this end will only receive.
    a.store(Size::D, FP, COUNTS, V::Imm(0));
    want(a, WANTED);
}

/// Lets the kernel call for these events of the connection as well.
pub(super) fn want(a: &mut Assembler, events: i32) {
    a.load(Size::W, R(2), CONTEXT, FLAGS);
    a.op(Op::Or, R(2), V::Imm(events));
    a.mov(R(1), V::Reg(CONTEXT));
    a.call(SET_FLAGS);
}

/// Stores the cookie of the socket on the stack.
pub(super) fn cookie(a: &mut Assembler) {
    a.mov(R(1), V::Reg(CONTEXT));
    a.call(COOKIE);
    a.store(Size::D, FP, MY_COOKIE, V::Reg(R(0)));
}

/// Finds the only entries of maps.
pub(super) fn singles(a: &mut Assembler, maps: &[(i32, R)], otherwise: Label) {
    a.store(Size::D, FP, ZERO, V::Imm(0));
    for (map, into) in maps {
        a.find(*map, ZERO, otherwise);
        a.mov(*into, V::Reg(R(0)));
    }
}

/// Finds the order, the census, the time, and the entry of the socket if there is one.
fn find(a: &mut Assembler, maps: Maps, out: Label) {
    let none = a.label();
    cookie(a);
    singles(a, &[(maps.order, THE_ORDER), (maps.census, THE_CENSUS)], out);
    time(a);
    a.find(maps.sockets, MY_COOKIE, none);
    a.here(none);
    a.mov(ENTRY, V::Reg(R(0)));
}

/// Stores the time and its slot; R0 = the slot.
pub(super) fn time(a: &mut Assembler) {
    a.call(CLOCK);
    a.store(Size::D, FP, TIME, V::Reg(R(0)));
    a.op(Op::Rsh, R(0), V::Imm(SLOT));
    a.store(Size::D, FP, MY_SLOT, V::Reg(R(0)));
}

/// Goes on only with an order that holds at the time on the stack.
pub(super) fn is_ordered(a: &mut Assembler, otherwise: Label) {
    a.load_some(Size::D, R(1), THE_ORDER, 0, otherwise);
    a.load(Size::D, R(1), THE_ORDER, 8);
    a.load(Size::D, R(2), FP, TIME);
    a.jump_if(R(2), If::Ge, V::Reg(R(1)), otherwise);
}

/// Stores the weight of the socket, which its mark tells.
fn weigh(a: &mut Assembler, maps: Maps) {
    let one = a.label();
    a.store(Size::D, FP, MY_WEIGHT, V::Imm(1));
    a.load_some(Size::D, R(1), CONTEXT, SOCK, one);
    a.load(Size::W, R(1), R(1), MARK);
    a.store(Size::W, FP, MY_MARK, V::Reg(R(1)));
    a.find(maps.weights, MY_MARK, one);
    a.load(Size::W, R(1), R(0), 0);
    a.store(Size::D, FP, MY_WEIGHT, V::Reg(R(1)));
    a.here(one);
}

/// When a slot begins, the first one to see it moves the counters.
pub(super) fn turn(a: &mut Assembler) {
    let [same, next] = std::array::from_fn(|_| a.label());
    a.load(Size::D, R(1), THE_CENSUS, 0);
    a.load(Size::D, R(2), FP, MY_SLOT);
    a.jump_if(R(1), If::Eq, V::Reg(R(2)), same);
    a.mov(R(0), V::Reg(R(1)));
    a.compare_exchange(THE_CENSUS, 0, R(2));
    a.jump_if(R(0), If::Ne, V::Reg(R(1)), same);
    a.load(Size::D, R(3), THE_CENSUS, NOW);
    a.op(Op::Add, R(1), V::Imm(1));
    a.jump_if(R(1), If::Eq, V::Reg(R(2)), next);
    a.mov(R(3), V::Imm(0));
    a.here(next);
    a.store(Size::D, THE_CENSUS, BEFORE, V::Reg(R(3)));
    a.store(Size::D, THE_CENSUS, NOW, V::Imm(0));
    a.here(same);
}

/// Makes an entry for a new socket, and counts the socket once in each slot.
fn enter(a: &mut Assembler, maps: Maps, out: Label) {
    let [known, counted] = std::array::from_fn(|_| a.label());
    a.jump_if(ENTRY, If::Ne, V::Imm(0), known);
    for word in 0..SOCKET / 8 {
        a.store(Size::D, FP, FRESH + 8 * word as i16, V::Imm(0));
    }
    a.update(maps.sockets, MY_COOKIE, FRESH);
    a.jump_if(R(0), If::Ne, V::Imm(0), out);
    a.atomic_add(THE_CENSUS, HELD, V::Imm(1));
    a.find(maps.sockets, MY_COOKIE, out);
    a.mov(ENTRY, V::Reg(R(0)));
    a.here(known);
    a.load_some(Size::D, R(1), FP, COUNTS, counted);
    a.load(Size::D, R(1), ENTRY, 0);
    a.load(Size::D, R(2), FP, MY_SLOT);
    a.jump_if(R(1), If::Eq, V::Reg(R(2)), counted);
    a.store(Size::D, ENTRY, 0, V::Reg(R(2)));
    a.load(Size::D, R(1), FP, MY_WEIGHT);
    a.atomic_add(THE_CENSUS, NOW, V::Reg(R(1)));
    a.here(counted);
}

/// R3 = the part in bytes per second on the wire, R4 = the payload of a segment, R5 = its size on the wire.
fn part(a: &mut Assembler, out: Label) {
    let v4 = a.label();
    a.load(Size::D, R(1), THE_CENSUS, NOW);
    a.load(Size::D, R(2), THE_CENSUS, BEFORE);
    a.at_least(R(1), V::Reg(R(2)));
    // The socket itself may not be counted yet.
    a.load(Size::D, R(2), FP, MY_WEIGHT);
    a.at_least(R(1), V::Reg(R(2)));
    a.load(Size::D, R(3), THE_ORDER, 0);
    a.ops(R(3), [(Op::Mul, V::Reg(R(2))), (Op::Div, V::Reg(R(1)))]);
    a.op(Op::Rsh, R(3), V::Imm(3)); // bytes per second on the wire
    a.load_some(Size::W, R(4), CONTEXT, MSS, out);
    a.mov(R(5), V::Reg(R(4)));
    a.op(Op::Add, R(5), V::Imm(HEADERS));
    a.load(Size::W, R(1), CONTEXT, FAMILY);
    a.jump_if(R(1), If::Ne, V::Imm(INET6), v4);
    a.op(Op::Add, R(5), V::Imm(20));
    a.here(v4);
}

/// Notes what the control of the socket has to know, and gives the socket that control. An application may have set another
/// one in the meantime; if it is the same, nothing happens.
fn tell(a: &mut Assembler, name: [u8; CONTROL_NAME], out: Label) {
    let same = a.label();
    a.store(Size::W, ENTRY, FRAME, V::Reg(R(5)));
    a.load(Size::D, R(1), ENTRY, PART);
    a.jump_if(R(1), If::Eq, V::Reg(R(3)), same);
    a.store(Size::D, ENTRY, PART, V::Reg(R(3)));
    note(a);
    a.here(same);
    for (at, half) in name.chunks_exact(8).enumerate() {
        a.wide(R(1), u64::from_ne_bytes(std::array::from_fn(|at| half[at])));
        a.store(Size::D, FP, MY_CONTROL + 8 * at as i16, V::Reg(R(1)));
    }
    set(a, CONTROL_OPTION, MY_CONTROL, CONTROL_NAME as i32);
    a.jump(out);
}

/// Computes the window and the pacing rate, and sets those that have changed.
fn limit(a: &mut Assembler, out: Label) {
    let [paced, same] = std::array::from_fn(|_| a.label());
    a.mov(R(1), V::Reg(R(3)));
    a.ops(R(1), [(Op::Mul, V::Reg(R(4))), (Op::Div, V::Reg(R(5)))]);
    a.at_least(R(1), V::Imm(1));
    a.wide(R(2), u64::from(u32::MAX) - 1);
    a.at_most(R(1), V::Reg(R(2)));
    a.store(Size::D, FP, MY_PACING, V::Reg(R(1)));
    a.load(Size::W, R(2), CONTEXT, SMALLEST_RTT);
    a.jump_if(R(2), If::Gt, V::Imm(LONGEST_RTT), paced);
    a.ops(R(3), [(Op::Mul, V::Reg(R(2))), (Op::Div, V::Imm(1_000_000))]);
    a.mov(R(1), V::Reg(R(3)));
    a.op(Op::Rsh, R(1), V::Imm(SPARE));
    a.ops(R(3), [(Op::Add, V::Reg(R(1))), (Op::Div, V::Reg(R(5))), (Op::Add, V::Imm(BEYOND))]);
    a.jump_if(R(3), If::Gt, V::Imm(ANY_WINDOW), paced);
    a.load(Size::W, R(1), ENTRY, WINDOW);
    a.jump_if(R(1), If::Eq, V::Reg(R(3)), paced);
    a.store(Size::W, ENTRY, WINDOW, V::Reg(R(3)));
    a.store(Size::W, FP, VALUE, V::Reg(R(3)));
    set(a, WINDOW_OPTION, VALUE, 4);
    a.here(paced);
    a.load(Size::D, R(1), FP, MY_PACING);
    a.load(Size::W, R(2), ENTRY, PACING);
    a.jump_if(R(1), If::Eq, V::Reg(R(2)), same);
    a.store(Size::W, ENTRY, PACING, V::Reg(R(1)));
    a.store(Size::W, FP, VALUE, V::Reg(R(1)));
    set(a, PACING_OPTION, VALUE, 4);
    note(a);
    a.here(same);
    a.jump(out);
}

/// Notes that the rate of a connection was changed, when, and for which budget.
fn note(a: &mut Assembler) {
    a.atomic_add(THE_CENSUS, CHANGES, V::Imm(1));
    a.load(Size::D, R(1), FP, TIME);
    a.store(Size::D, THE_CENSUS, CHANGES + 8, V::Reg(R(1)));
    a.load(Size::D, R(1), THE_ORDER, 0);
    a.store(Size::D, THE_CENSUS, CHANGES + 16, V::Reg(R(1)));
}

/// Sets an option of the socket to the value on the stack.
fn set(a: &mut Assembler, (level, option): (i32, i32), value: i16, len: i32) {
    a.mov(R(1), V::Reg(CONTEXT));
    a.mov(R(2), V::Imm(level));
    a.mov(R(3), V::Imm(option));
    a.address(R(4), value);
    a.mov(R(5), V::Imm(len));
    a.call(SET_OPTION);
}

/// Takes the limit from a socket that has one; a control finds no entry any more.
fn free(a: &mut Assembler, maps: Maps, limited: bool, out: Label) {
    a.jump_if(ENTRY, If::Eq, V::Imm(0), out);
    let options = [(WINDOW_OPTION, ANY_WINDOW), (PACING_OPTION, ANY_PACING)];
    for (option, value) in options.into_iter().filter(|_| limited) {
        a.store(Size::W, FP, VALUE, V::Imm(value));
        set(a, option, VALUE, 4);
    }
    remove(a, maps, out);
    a.jump(out);
}

/// Forgets a socket that is closed.
fn forget(a: &mut Assembler, maps: Maps, out: Label) {
    cookie(a);
    singles(a, &[(maps.census, THE_CENSUS)], out);
    remove(a, maps, out);
}

/// Removes the entry of the socket, if there is one, and counts that.
fn remove(a: &mut Assembler, maps: Maps, out: Label) {
    a.keyed(maps.sockets, MY_COOKIE);
    a.call(DELETE);
    a.jump_if(R(0), If::Ne, V::Imm(0), out);
    a.atomic_add(THE_CENSUS, HELD, V::Imm(-1));
}
