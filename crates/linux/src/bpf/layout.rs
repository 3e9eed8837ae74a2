//! The values of the maps: words of 64 bits in the order of `bpf/state.h`.

use serde::Serialize;

/// Number of words of `struct control`.
pub(crate) const CONTROL: usize = 23;
/// Number of words of `struct sums`.
pub(crate) const SUMS: usize = 18;
/// Number of words of `struct processor`, which begins with `struct gauges`.
pub(crate) const PROCESSOR: usize = 42;
/// Number of words of `struct tally`; `struct gauges` begins with two of them.
const TALLY: usize = 5;

/// One direction of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Way {
    /// BW in bits per second.
    pub rate_bps: u64,
    /// What is given out, in thousandths of a byte of payload per second: (BW - reserve) * c.
    pub capacity: u64,
    /// What the queue may hold, in bytes, or in packets if `in_packets`.
    pub room: u64,
    /// True if `room` counts packets.
    pub in_packets: bool,
    /// Bytes that waited lately in the queue behind PINK; 0 if nobody knows.
    pub backlog: u64,
}

/// What the programs are told. Times are nanoseconds of the kernel's monotonic clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    /// The time, in tests; 0 for the kernel's.
    pub clock: u64,
    /// When the daemon lived last.
    pub heartbeat: u64,
    /// Packets pass untouched when that is longer ago.
    pub patience: u64,
    /// True if packets have an Ethernet header.
    pub ethernet: bool,
    /// Number of sets of 16 connections, a power of two.
    pub sets: u32,
    /// Secret keys of the hash of connections.
    pub keys: [u64; 2],
    /// True if packets are counted and nothing is changed.
    pub observe: bool,
    /// A flow without data is not expected to send any after this time.
    pub silent: u64,
    /// A flow that sent data counts for this long after its pause began.
    pub quiet: u64,
    /// A half-open connection is forgotten after this time without a segment,
    pub opening: u64,
    /// one that is over after this time,
    pub closed: u64,
    /// and any other after this time.
    pub idle: u64,
    /// Toward the link and from it.
    pub ways: [Way; 2],
}

impl Control {
    /// The values for `sets` sets, with PINK's default timeouts, of a daemon that has not lived yet.
    pub fn new(sets: u32, keys: [u64; 2], ways: [Way; 2]) -> Self {
        const SECOND: u64 = 1_000_000_000;
        Self {
            clock: 0,
            heartbeat: 0,
            patience: SECOND,
            ethernet: true,
            sets: sets.max(1).next_power_of_two(),
            keys,
            observe: false,
            silent: 3 * SECOND,
            quiet: 59 * SECOND,
            opening: 30 * SECOND,
            closed: 60 * SECOND,
            idle: 7440 * SECOND,
            ways,
        }
    }

    pub(crate) fn words(&self) -> [u64; CONTROL] {
        let way = |way: &Way| [way.rate_bps, way.capacity, way.room, way.in_packets.into(), way.backlog];
        let [a, b] = self.ways.each_ref().map(way);
        let Self { clock, heartbeat, patience, sets, keys, silent, quiet, opening, closed, idle, .. } = *self;
        let ethernet = if self.ethernet { 14 } else { 0 };
        let first = [clock, heartbeat, patience, ethernet, sets.into(), keys[0], keys[1], self.observe.into()];
        let mut words = first.into_iter().chain([silent, quiet, opening, closed, idle]).chain(a).chain(b);
        std::array::from_fn(|_| words.next().unwrap_or_default())
    }
}

/// The sums and counters of one direction, with the names of PINK's own counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Sums {
    /// Flows that count: n.
    pub active: u64,
    /// Flows in n that cannot use their share.
    pub lacking: u64,
    /// What these can use, in bytes per second.
    pub claims: u64,
    /// Flows whose SYN was seen and whose first data are expected.
    pub waiting: u64,
    /// Open flows that are idle and do not count.
    pub asleep: u64,
    /// Rate in bytes per second of data in flight beyond shares.
    pub surplus: u64,
    /// Flows whose windows are growing.
    pub growing: u64,
    /// Bytes that are due to all flows together and that no step has settled.
    pub owed: i64,
    /// Flows in `active` or `waiting` whose SYN is not answered yet.
    pub opening: u64,
    /// Flows in n whose handshake was not seen whole.
    pub strangers: u64,
    /// Flows that began with a SYN.
    pub started: u64,
    /// Flows that began to count because of data after a pause.
    pub woken: u64,
    /// Flows that ended with FIN or RST.
    pub ended: u64,
    /// Flows that were silent for too long.
    pub expired: u64,
    /// ACKs whose window was compared with the share.
    pub acks: u64,
    /// ACKs whose window was made smaller.
    pub rewritten: u64,
    /// ACKs of flows with a share below one segment.
    pub below_one_segment: u64,
    /// Flows whose share was below one segment at their last ACK.
    pub below_now: u64,
    /// Segments that cannot be true.
    pub implausible: u64,
}

impl Sums {
    /// Reads the sums of a direction, and of the counters of all processors those of it.
    pub(crate) fn read(words: &[u64; SUMS], counters: &[u64; PROCESSOR], way: usize) -> Self {
        let [active, lacking, claims, waiting, asleep, _, surplus, _, growing, owed, opening, ..] = *words;
        let [.., strangers, started, woken, ended, expired, below_now, implausible] = *words;
        let tally = &counters[way * TALLY..];
        Self {
            active,
            lacking,
            claims,
            waiting,
            asleep,
            surplus,
            growing,
            owed: owed.cast_signed(),
            opening,
            strangers,
            started,
            woken,
            ended,
            expired,
            acks: tally[2],
            rewritten: tally[3],
            below_one_segment: tally[4],
            below_now,
            implausible,
        }
    }

    /// The value of the sums at the start: flows that open are all expected to send.
    pub(crate) fn at_start() -> [u64; SUMS] {
        let mut words = [0; SUMS];
        words[5] = 1 << 16;
        words
    }
}

/// The counters of packets and of the table of connections. Pairs are toward the link and from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Gauges {
    /// Packets that were seen. Packets that offloads have merged count as one.
    pub packets: [u64; 2],
    /// Their bytes, with the header of the link.
    pub bytes: [u64; 2],
    /// Fragments and what is no TCP: passed untouched.
    pub not_tcp: u64,
    /// Segments of connections whose SYN was not seen, or which have no line: passed untouched.
    pub unknown: u64,
    /// Data that came before the handshake was complete: passed untouched.
    pub unproven: u64,
    /// Segments that passed untouched because another processor had the line of their connection.
    pub contended: u64,
    /// Packets that passed untouched because the daemon did not live.
    pub stale: u64,
    /// The bytes of these packets, without the header of the link.
    pub stale_bytes: [u64; 2],
    /// Connections that have a line now.
    pub lines: u64,
    /// Lines that were given out since the start.
    pub numbered: u64,
    /// Half-open connections that lost their line to newer ones.
    pub evicted: u64,
    /// Connections that got no line.
    pub refused: u64,
    /// Windows that could not be written.
    pub unwritten: u64,
    /// Segments with a signature (TCP-MD5, TCP-AO): passed untouched.
    pub signed: u64,
}

impl Gauges {
    /// Reads the counters of all processors together.
    pub(crate) fn read(words: &[u64; PROCESSOR], numbered: u64) -> Self {
        let (ways, rest) = words.split_at(2 * TALLY);
        Self {
            packets: [ways[0], ways[TALLY]],
            bytes: [ways[1], ways[TALLY + 1]],
            not_tcp: rest[0],
            unknown: rest[1],
            unproven: rest[2],
            contended: rest[3],
            stale: rest[4],
            lines: rest[5],
            numbered,
            evicted: rest[6],
            refused: rest[7],
            unwritten: rest[8],
            signed: rest[9],
            stale_bytes: [rest[10], rest[11]],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The order of `struct control` in `bpf/state.h`.
    #[test]
    fn words_stand_where_the_program_reads_them() {
        let way = |n: u64| Way { rate_bps: n, capacity: n + 1, room: n + 2, in_packets: true, backlog: n + 4 };
        let mut control = Control::new(4, [7, 9], [way(100), way(200)]);
        (control.clock, control.heartbeat, control.patience, control.observe) = (1, 2, 3, true);
        (control.silent, control.quiet, control.opening, control.closed, control.idle) = (11, 12, 13, 14, 15);
        let rest = [100, 101, 102, 1, 104, 200, 201, 202, 1, 204];
        let words = [[1, 2, 3, 14, 4, 7, 9, 1, 11, 12, 13, 14, 15].as_slice(), &rest].concat();
        assert_eq!(control.words().as_slice(), words);
        control.ethernet = false;
        assert_eq!(control.words()[3], 0, "nothing stands before the IP header");
    }
}
