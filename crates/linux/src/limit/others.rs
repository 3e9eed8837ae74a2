//! The program that the kernel runs for each packet which sockets of a cgroup send: what is not TCP gets what TCP leaves of
//! the budget of the host.
//!
//! ```text
//! account   drains at the budget; each packet, of TCP as well, fills it by the time that it takes at the budget
//! pass      TCP, ICMPv6 (neighbours must be found), the agent's own session, the loopback; other packets while the
//!           account holds no more than 50 ms, or three packets of 1500 bytes
//! refuse    other packets: they are lost as on a full link, and the application gets no error
//! ```
//!
//! While the account is more than half full of other packets, these count as one connection, so that [`super::program`]
//! leaves them an equal part. After the end of the order, or without a budget, everything passes.

use super::assembler::{Assembler, FP, If, Instruction, Label, Op, R, Size, V};
use super::program::{CONTEXT, COOKIE, MY_SLOT, NOW, THE_CENSUS, THE_ORDER, TIME, is_ordered, singles, time, turn};
use serde::Serialize;

/// What became of packets that are not TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Others {
    /// Packets that passed.
    pub passed: u64,
    /// Their bytes.
    pub passed_bytes: u64,
    /// Packets that were refused.
    pub refused: u64,
    /// Their bytes.
    pub refused_bytes: u64,
}

/// Size of the account in bytes: when it is empty, the slot in which others counted last, the cookie of the agent's
/// session, and [`Others`].
pub(super) const ACCOUNT: usize = 56;

/// Returns an account in which nothing is, of an agent whose session has this cookie.
pub(super) fn account(own: u64) -> [u8; ACCOUNT] {
    let mut bytes = [0; ACCOUNT];
    bytes[OWN as usize..OWN as usize + 8].copy_from_slice(&own.to_ne_bytes());
    bytes
}

impl Others {
    pub(super) fn read(bytes: &[u8; ACCOUNT]) -> Self {
        let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| bytes[PASSED as usize + 8 * at + i]));
        let [passed, passed_bytes, refused, refused_bytes] = std::array::from_fn(word);
        Self { passed, passed_bytes, refused, refused_bytes }
    }
}

/// Offsets in the account; the first word is the time at which it will be empty.
const SLOT_OF_OTHERS: i16 = 8;
const OWN: i16 = 16;
const PASSED: i16 = 24;
const REFUSED: i16 = 40;
/// Offsets in `struct __sk_buff`.
const LENGTH: i16 = 0;
const PROTOCOL: i16 = 16;
const INTERFACE: i16 = 40;
const SEGMENTS: i16 = 164;
/// Values there.
const LOOPBACK: i32 = 1;
const IPV4: i32 = u16::to_be(0x0800) as i32;
const IPV6: i32 = u16::to_be(0x86dd) as i32;
const TCP: i32 = 6;
const ICMPV6: i32 = 58;
const LOAD_BYTES: i32 = 26;
/// Bytes of headers that the kernel adds to each segment of a packet that it has still to divide.
const HEADERS: i32 = 52;
/// Nanoseconds that a byte takes at 1 bit/s.
const BYTE: u64 = 8_000_000_000;
/// What the account may hold of others: this time, or these bytes if they take longer.
const LONGEST: u64 = 50_000_000;
const LEAST: u64 = 4500;
/// What TCP may put on the account in nanoseconds, so that a burst of it does not keep others out for longer.
const DEBT: i32 = 1_000_000_000;
/// How often the account is tried while other processors use it; then the packet passes and is not counted.
const TRIES: usize = 4;
/// What the program returns: the packet goes on, or it is lost without an error for who sends it.
const PASS: i32 = 1;
const LOSE: i32 = 2;

/// Variables on the stack, beside those of [`super::program`].
const BYTES: i16 = -80;
const TAKES: i16 = -88;
const DEPTH: i16 = -96;
const KIND: i16 = -104;

const THE_ACCOUNT: R = R(9);

/// Returns the program; `maps` are the order, the census and the account.
pub(super) fn program(maps: [i32; 3]) -> Vec<Instruction> {
    let mut a = Assembler::default();
    let [pass, refuse, charged, counts, lose] = std::array::from_fn(|_| a.label());
    find(&mut a, maps, pass);
    weigh(&mut a, pass);
    charge(&mut a, refuse, charged);
    a.jump(pass);
    a.here(charged);
    // R1 is when the account will be empty.
    a.load(Size::B, R(3), FP, KIND);
    a.jump_if(R(3), If::Eq, V::Imm(TCP), pass);
    a.jump_if(R(3), If::Eq, V::Imm(ICMPV6), pass);
    note(&mut a, PASSED);
    a.load(Size::D, R(2), FP, DEPTH);
    a.op(Op::Rsh, R(2), V::Imm(1));
    a.load(Size::D, R(3), FP, TIME);
    a.op(Op::Add, R(2), V::Reg(R(3)));
    a.jump_if(R(2), If::Ge, V::Reg(R(1)), pass);
    a.mov(CONTEXT, V::Imm(PASS));
    a.jump(counts);
    a.here(refuse);
    note(&mut a, REFUSED);
    a.mov(CONTEXT, V::Imm(LOSE));
    a.here(counts);
    count(&mut a, lose);
    a.here(lose);
    a.mov(R(0), V::Reg(CONTEXT));
    a.exit();
    a.here(pass);
    a.mov(R(0), V::Imm(PASS));
    a.exit();
    a.finish()
}

/// Finds the order, the census, the account and the time; what is not to be counted passes.
fn find(a: &mut Assembler, [order, census, account]: [i32; 3], pass: Label) {
    a.mov(CONTEXT, V::Reg(R(1)));
    a.load(Size::W, R(1), CONTEXT, INTERFACE);
    a.jump_if(R(1), If::Eq, V::Imm(LOOPBACK), pass);
    singles(a, &[(order, THE_ORDER), (census, THE_CENSUS), (account, THE_ACCOUNT)], pass);
    time(a);
    is_ordered(a, pass);
    a.mov(R(1), V::Reg(CONTEXT));
    a.call(COOKIE);
    a.load(Size::D, R(1), THE_ACCOUNT, OWN);
    a.jump_if(R(0), If::Eq, V::Reg(R(1)), pass);
}

/// Stores the protocol, how many bytes the packet has, what time it takes, and what the account may hold.
fn weigh(a: &mut Assembler, pass: Label) {
    let [v6, at] = std::array::from_fn(|_| a.label());
    a.load(Size::W, R(1), CONTEXT, PROTOCOL);
    a.mov(R(2), V::Imm(9));
    a.jump_if(R(1), If::Ne, V::Imm(IPV4), v6);
    a.jump(at);
    a.here(v6);
    a.jump_if(R(1), If::Ne, V::Imm(IPV6), pass);
    a.mov(R(2), V::Imm(6));
    a.here(at);
    a.store(Size::D, FP, KIND, V::Imm(0));
    a.mov(R(1), V::Reg(CONTEXT));
    a.address(R(3), KIND);
    a.mov(R(4), V::Imm(1));
    a.call(LOAD_BYTES);
    a.jump_if(R(0), If::Ne, V::Imm(0), pass);
    a.load(Size::W, R(1), CONTEXT, LENGTH);
    a.load(Size::W, R(2), CONTEXT, SEGMENTS);
    a.op(Op::Mul, R(2), V::Imm(HEADERS));
    a.op(Op::Add, R(1), V::Reg(R(2)));
    a.store(Size::D, FP, BYTES, V::Reg(R(1)));
    a.load(Size::D, R(3), THE_ORDER, 0);
    // The agent may have written another order since.
    a.jump_if(R(3), If::Eq, V::Imm(0), pass);
    a.wide(R(2), BYTE);
    a.ops(R(1), [(Op::Mul, V::Reg(R(2))), (Op::Div, V::Reg(R(3)))]);
    a.store(Size::D, FP, TAKES, V::Reg(R(1)));
    a.wide(R(1), LONGEST);
    a.wide(R(2), LEAST * BYTE);
    a.op(Op::Div, R(2), V::Reg(R(3)));
    a.at_least(R(1), V::Reg(R(2)));
    a.store(Size::D, FP, DEPTH, V::Reg(R(1)));
}

/// Fills the account and goes on with R1 = when it will be empty, or refuses what it has no room for.
fn charge(a: &mut Assembler, refuse: Label, charged: Label) {
    for _ in 0..TRIES {
        let [fits, passes] = std::array::from_fn(|_| a.label());
        a.load(Size::D, R(0), THE_ACCOUNT, 0);
        a.mov(R(4), V::Reg(R(0)));
        a.mov(R(1), V::Reg(R(0)));
        a.load(Size::D, R(2), FP, TIME);
        a.at_least(R(1), V::Reg(R(2)));
        a.load(Size::D, R(3), FP, TAKES);
        a.op(Op::Add, R(1), V::Reg(R(3)));
        a.load(Size::D, R(3), FP, DEPTH);
        a.op(Op::Add, R(2), V::Reg(R(3)));
        a.jump_if(R(2), If::Ge, V::Reg(R(1)), fits);
        a.load(Size::B, R(3), FP, KIND);
        a.jump_if(R(3), If::Eq, V::Imm(TCP), passes);
        a.jump_if(R(3), If::Ne, V::Imm(ICMPV6), refuse);
        a.here(passes);
        a.load(Size::D, R(2), FP, TIME);
        a.op(Op::Add, R(2), V::Imm(DEBT));
        a.at_most(R(1), V::Reg(R(2)));
        a.here(fits);
        a.compare_exchange(THE_ACCOUNT, 0, R(1));
        a.jump_if(R(0), If::Eq, V::Reg(R(4)), charged);
    }
}

/// Counts the packet and its bytes; R1 stays.
fn note(a: &mut Assembler, at: i16) {
    a.atomic_add(THE_ACCOUNT, at, V::Imm(1));
    a.load(Size::D, R(2), FP, BYTES);
    a.atomic_add(THE_ACCOUNT, at + 8, V::Reg(R(2)));
}

/// Counts others as a connection, once in each slot.
fn count(a: &mut Assembler, done: Label) {
    a.load(Size::D, R(1), THE_ACCOUNT, SLOT_OF_OTHERS);
    a.load(Size::D, R(2), FP, MY_SLOT);
    a.jump_if(R(1), If::Eq, V::Reg(R(2)), done);
    a.store(Size::D, THE_ACCOUNT, SLOT_OF_OTHERS, V::Reg(R(2)));
    turn(a);
    a.atomic_add(THE_CENSUS, NOW, V::Imm(1));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_begins_empty_and_counts_are_read_where_the_program_writes_them() {
        let mut bytes = account(0x0102_0304_0506_0708);
        assert_eq!(Others::read(&bytes), Others::default());
        assert_eq!(bytes[16..24], 0x0102_0304_0506_0708_u64.to_ne_bytes());
        assert!(bytes[..16].iter().chain(&bytes[24..]).all(|byte| *byte == 0));
        // What passed begins at byte 24 and what was refused at byte 40: packets, then bytes.
        for (n, place) in [24, 32, 40, 48].into_iter().enumerate() {
            bytes[place..place + 8].copy_from_slice(&(n as u64 + 5).to_ne_bytes());
        }
        assert_eq!(Others::read(&bytes), Others { passed: 5, passed_bytes: 6, refused: 7, refused_bytes: 8 });
    }
}
