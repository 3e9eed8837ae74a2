//! One account of the bytes of IP at the WAN interface: what went through the gateway, and what passed beside it, by
//! cause.
//!
//! The kernel counts what its interface received and sent, and the data path what it took. What the interface counted
//! beyond that in several looks has passed beside. Where it counts less, because it counts merged packets with one
//! header, or a packet was lost behind the gateway, that is its way of counting and covers nothing that passes beside
//! later. Nor has passed beside what fills short frames: then the interface has seen no packet more than the data path.

use penstock_core::units::{Instant, Span};
use penstock_linux::links::Passed;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use std::collections::VecDeque;

/// How often one looks. What is in three looks is no packet that is only on its way.
pub const LOOK: Span = Span::from_millis(250);
/// Looks in a minute, in a second, and in the time that it takes to read rules back.
const MINUTE: usize = 240;
const SECOND: usize = 4;
const LEARNING: usize = 12;
/// An interface may count so many bytes more of a packet: its checksum, and what fills a short frame.
const FILLING: u64 = 28;
/// So few bytes beside are what every network has, such as ARP: in a minute and in a second.
const FEW: [u64; 2] = [64_000, 32_000];
/// What the programs of a bridge leave to the kernel in a minute: 4 kB in each second and direction
/// (`bpf/bridge.bpf.c`).
const GROUPS: u64 = 60 * 2 * 4096;

/// Why bytes pass beside the gateway. If there are several reasons at a time, the last of them counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Cause {
    /// The gateway does not take them, or somebody lets them pass.
    #[default]
    Other,
    /// The queue of the kernel was full.
    Full,
    /// Rules of the firewall were missing, or the programs of the kernel.
    Missing,
    /// The interface had come back, or a port had left its bridge.
    Away,
    /// The process did not run.
    Hung,
}

impl Cause {
    pub const ALL: [Self; 5] = [Self::Other, Self::Full, Self::Missing, Self::Away, Self::Hung];

    pub fn name(self) -> &'static str {
        ["other", "full", "missing", "away", "hung"][self as usize]
    }

    /// Returns it as a part of a sentence.
    pub fn text(self) -> &'static str {
        match self {
            Self::Other => "they are none that the gateway takes, or somebody lets them pass",
            Self::Full => "the queue of the kernel was full",
            Self::Missing => "rules or programs of the gateway were missing",
            Self::Away => "an interface was not the one that the gateway had",
            Self::Hung => "this process did not run",
        }
    }
}

/// What passes beside without a cause and is no fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Allowed {
    /// What every network has.
    #[default]
    Little,
    /// On a bridge, what the kernel forwards to groups as well.
    Groups,
    /// All of it: the file wants only a part of what passes to be governed.
    Others,
}

impl Allowed {
    /// Bytes in a minute and in a second.
    fn few(self) -> [u64; 2] {
        if self == Self::Groups { [FEW[0] + GROUPS, FEW[1]] } else { FEW }
    }
}

/// A value for each cause.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct By<T>(pub [T; 5]);

impl<T: Serialize> Serialize for By<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (cause, value) in Cause::ALL.iter().zip(&self.0) {
            map.serialize_entry(cause.name(), value)?;
        }
        map.end()
    }
}

/// What was counted at one time, download and upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// By the interface.
    pub wan: [Passed; 2],
    /// By the data path, of whose packets none is known if it counts none.
    pub taken: [Passed; 2],
}

impl Counted {
    fn bytes(&self) -> u64 {
        self.wan.iter().map(|way| way.bytes).sum()
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Way {
    beside: By<u64>,
    /// Bytes that the interface counted less than the data path, or more.
    less: i64,
    /// What seemed to have passed beside in the last looks.
    gaps: [i64; 2],
    /// Packets of the interface at the last look, and the most that it had beyond those of the data path.
    packets: u64,
    most: i64,
}

impl Way {
    fn sum(&self) -> u64 {
        self.beside.0.iter().sum()
    }

    fn gap(&self, wan: Passed, taken: Passed) -> i64 {
        wan.bytes.cast_signed() + self.less - taken.bytes.cast_signed()
    }

    /// Notes packets; returns how many bytes the interface may have counted more since the last look, if it has seen no
    /// packet that the data path has not.
    fn filling(&mut self, wan: Passed, taken: Passed) -> i64 {
        let (came, more) =
            (wan.packets.saturating_sub(self.packets), wan.packets.cast_signed() - taken.packets.cast_signed());
        let has_others = more > self.most;
        (self.packets, self.most) = (wan.packets, self.most.max(more));
        if has_others { 0 } else { (FILLING * came).cast_signed() }
    }

    /// What has passed beside for certain, if the gap is this one now.
    fn certain(&self, gap: i64) -> u64 {
        let least = self.gaps.into_iter().fold(gap, i64::min);
        u64::try_from(least).unwrap_or_default().max(self.sum())
    }

    /// Notes what was counted; returns by how much the certain part has grown.
    fn note(&mut self, wan: Passed, taken: Passed, cause: Cause) -> u64 {
        let (mut gap, filling) = (self.gap(wan, taken), self.filling(wan, taken));
        let wider = gap - self.gaps[0];
        if (1..=filling).contains(&wider) {
            self.less -= wider;
            gap -= wider;
        }
        let (sum, most) = (self.sum(), self.gaps.into_iter().fold(gap, i64::max));
        let grown = self.certain(gap) - sum;
        self.beside.0[cause as usize] += grown;
        self.gaps = [gap, self.gaps[0]];
        if most < sum.cast_signed() {
            let less = sum.cast_signed() - most;
            self.less += less;
            self.gaps = self.gaps.map(|gap| gap + less);
        }
        grown
    }
}

/// The account at one look.
#[derive(Debug, Clone, Copy, Default)]
struct Sample {
    all: u64,
    beside: u64,
    other: [u64; 2],
}

/// Bytes of a recent time.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Recent {
    pub bytes: u64,
    pub beside_bytes: u64,
    /// The part that passed beside, of 1.
    pub share: f64,
}

#[derive(Debug, Default)]
pub struct Account {
    ways: [Way; 2],
    seconds: By<f64>,
    samples: VecDeque<Sample>,
    looked: Instant,
    /// The causes of the last looks: what they let pass, and what passed until the next one, is certain only now.
    causes: [Cause; 3],
    /// What interfaces had counted at the last two looks. What is certain now was in the older of them.
    wan: [u64; 2],
    /// Why bytes passed beside when more than a few did last.
    latest: Cause,
    allowed: Allowed,
}

impl Account {
    pub fn new(allowed: Allowed) -> Self {
        Self { allowed, ..Self::default() }
    }

    /// Looks at what was counted, and why bytes may have passed beside since the last look.
    pub fn look(&mut self, now: Instant, counted: &Counted, cause: Cause) {
        let why = self.causes.into_iter().fold(cause, Cause::max);
        if cause > Cause::Other && self.causes[0] < cause {
            self.explain(cause);
        }
        self.causes = [cause, self.causes[0], self.causes[1]];
        let mut grown = 0;
        for (at, way) in self.ways.iter_mut().enumerate() {
            grown += way.note(counted.wan[at], counted.taken[at], why);
        }
        if grown > FEW[1] / 8 {
            self.latest = why;
            self.seconds.0[why as usize] += now.since(self.looked).as_secs_f64();
        }
        self.looked = now;
        self.wan = [counted.bytes(), self.wan[0]];
        if self.samples.len() > MINUTE {
            self.samples.pop_front();
        }
        self.samples.push_back(self.sample(counted));
    }

    /// The cause of what passed in the last seconds has become known.
    fn explain(&mut self, cause: Cause) {
        let Some(before) = self.samples.iter().rev().nth(LEARNING).or(self.samples.front()).copied() else { return };
        for (way, other) in self.ways.iter_mut().zip(before.other) {
            let unexplained = way.beside.0[0].saturating_sub(other);
            way.beside.0[0] -= unexplained;
            way.beside.0[cause as usize] += unexplained;
            if unexplained > FEW[1] / 8 {
                self.latest = cause;
            }
        }
    }

    /// A time of a cause is known better than from bytes.
    pub fn set_seconds(&mut self, cause: Cause, seconds: f64) {
        self.seconds.0[cause as usize] = seconds;
    }

    fn sample(&self, counted: &Counted) -> Sample {
        let mut sample = Sample { all: self.wan[1], ..Sample::default() };
        for (at, way) in self.ways.iter().enumerate() {
            sample.other[at] = way.beside.0[0];
            sample.beside += match self.allowed {
                Allowed::Others => way.sum() - way.beside.0[0],
                _ => way.certain(way.gap(counted.wan[at], counted.taken[at])),
            };
        }
        sample
    }

    /// Returns what passed in the last minute, or in its last second if more of that passed beside.
    pub fn recent(&self, counted: &Counted) -> Recent {
        let now = self.sample(counted);
        let since = |before: Option<&Sample>, few: u64| {
            let before = before.copied().unwrap_or_default();
            let (bytes, beside_bytes) = (now.all - before.all.min(now.all), now.beside.saturating_sub(before.beside));
            let share = if beside_bytes > few { beside_bytes as f64 / bytes.max(beside_bytes) as f64 } else { 0.0 };
            Recent { bytes, beside_bytes, share }
        };
        let [in_minute, in_second] = self.allowed.few();
        let second = since(self.samples.iter().rev().nth(SECOND).or(self.samples.front()), in_second);
        let minute = since(self.samples.front(), in_minute);
        if second.share > minute.share { second } else { minute }
    }

    /// Returns why bytes passed beside when more than a few did last.
    pub fn latest_cause(&self) -> Cause {
        self.latest
    }

    /// Returns the account, with bytes that the data path has refused.
    pub fn told(&self, counted: &Counted, refused_bytes: [u64; 2]) -> Told {
        let way = |at: usize| {
            let (way, wan_bytes) = (&self.ways[at], counted.wan[at].bytes);
            let beside_bytes = way.sum();
            // What is refused of a download has come, what is refused of an upload has not left.
            let not_through = beside_bytes + if at == 0 { refused_bytes[0] } else { 0 };
            let through_bytes = wan_bytes.saturating_sub(not_through);
            let (refused_bytes, causes) = (refused_bytes[at], way.beside);
            Direction { wan_bytes, through_bytes, beside_bytes, refused_bytes, causes }
        };
        Told { download: way(0), upload: way(1), seconds: self.seconds, last_minute: self.recent(counted) }
    }
}

/// What the status tells.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Told {
    pub download: Direction,
    pub upload: Direction,
    /// For how long bytes passed beside, by cause.
    pub seconds: By<f64>,
    pub last_minute: Recent,
}

/// Bytes of IP of a direction.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Direction {
    /// As the kernel counts them at the interface.
    wan_bytes: u64,
    through_bytes: u64,
    beside_bytes: u64,
    /// What the discipline dropped.
    refused_bytes: u64,
    /// Bytes beside by cause.
    causes: By<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An account and its counters, which a test drives look by look.
    #[derive(Default)]
    struct Run {
        account: Account,
        now: Instant,
        counted: Counted,
    }

    impl Run {
        /// So many looks, in each of which the interface sends and the data path takes so many bytes more.
        fn looks(&mut self, looks: usize, wan: u64, taken: u64, cause: Cause) -> &mut Self {
            for _ in 0..looks {
                self.now += LOOK;
                for (counter, bytes) in [(&mut self.counted.wan[1], wan), (&mut self.counted.taken[1], taken)] {
                    counter.bytes += bytes;
                    counter.packets += bytes / 1000;
                }
                self.account.look(self.now, &self.counted, cause);
            }
            self
        }

        fn upload(&self) -> Direction {
            self.account.told(&self.counted, [0, 5]).upload
        }

        fn by(&self, cause: Cause) -> u64 {
            self.upload().causes.0[cause as usize]
        }
    }

    #[test]
    fn what_the_data_path_did_not_take_has_passed_beside_and_the_sum_is_that_of_the_interface() {
        let mut run = Run::default();
        run.looks(40, 100_000, 100_000, Cause::Other);
        assert_eq!((run.upload().beside_bytes, run.account.recent(&run.counted).share), (0, 0.0));
        run.looks(1, 4_000_000, 100_000, Cause::Hung).looks(3, 100_000, 100_000, Cause::Other);
        assert_eq!((run.by(Cause::Hung), run.by(Cause::Other)), (3_900_000, 0));
        let Direction { wan_bytes, through_bytes, beside_bytes, refused_bytes, .. } = run.upload();
        assert_eq!((wan_bytes, through_bytes, beside_bytes, refused_bytes), (8_300_000, 4_400_000, 3_900_000, 5));
        let recent = run.account.recent(&run.counted);
        assert!(recent.share > 0.4 && run.account.latest_cause() == Cause::Hung, "{recent:?}");
        run.looks(MINUTE + SECOND + 3, 100_000, 100_000, Cause::Other);
        assert_eq!(run.account.recent(&run.counted).share, 0.0, "a minute later");
    }

    #[test]
    fn a_packet_on_its_way_has_not_passed_beside() {
        let mut run = Run::default();
        for _ in 0..100 {
            run.looks(1, 200_000, 100_000, Cause::Other).looks(1, 0, 100_000, Cause::Other);
            assert_eq!(run.account.recent(&run.counted).share, 0.0);
        }
        assert_eq!(run.upload().beside_bytes, 0);
    }

    /// Merged packets have one header: the interface counts 3 % less than the data path. That hides nothing later.
    #[test]
    fn who_counts_less_hides_nothing() {
        let mut run = Run::default();
        run.looks(100, 97_000, 100_000, Cause::Other).looks(10, 1_000_000, 0, Cause::Full);
        run.looks(3, 0, 0, Cause::Other);
        let beside = run.by(Cause::Full);
        assert!((9_990_000..=10_000_000).contains(&beside), "{beside}");
        assert_eq!(run.upload().through_bytes + beside, run.upload().wan_bytes);
    }

    /// Checksums of frames, and what fills those of ACKs, are none of the packets; a packet that is beside is told.
    #[test]
    fn what_fills_frames_has_not_passed_beside() {
        let mut run = Run::default();
        for _ in 0..1000 {
            run.counted.wan[1].packets += 250;
            run.counted.wan[1].bytes += 250 * 64;
            run.counted.taken[1].packets += 250;
            run.counted.taken[1].bytes += 250 * 40;
            run.looks(1, 0, 0, Cause::Other);
        }
        assert_eq!((run.upload().beside_bytes, run.account.recent(&run.counted).share), (0, 0.0));
        run.looks(10, 10_000, 0, Cause::Other);
        assert!(run.upload().beside_bytes >= 80_000, "{:?}", run.upload());
    }

    #[test]
    fn a_cause_that_becomes_known_later_is_that_of_what_passed_before() {
        let mut run = Run::default();
        run.looks(40, 100_000, 100_000, Cause::Other).looks(6, 100_000, 0, Cause::Other);
        assert_eq!((run.by(Cause::Other), run.by(Cause::Missing)), (400_000, 0));
        run.looks(1, 100_000, 0, Cause::Missing).looks(4, 100_000, 100_000, Cause::Other);
        assert_eq!((run.by(Cause::Other), run.by(Cause::Missing)), (0, 700_000));
        assert!(run.account.seconds.0[Cause::Missing as usize] > 0.0);
    }

    #[test]
    fn a_little_is_on_every_network_and_what_the_file_leaves_out_is_no_fault() {
        let mut run = Run::default();
        run.looks(MINUTE, 100, 0, Cause::Other);
        assert_eq!(run.account.recent(&run.counted).share, 0.0, "24 kB of ARP in a minute");
        for (allowed, marked) in [(Allowed::Little, true), (Allowed::Groups, false)] {
            let mut run = Run { account: Account::new(allowed), ..Run::default() };
            run.looks(MINUTE, 2000, 0, Cause::Other);
            assert_eq!(run.account.recent(&run.counted).share > 0.0, marked, "8 kB of multicasts in each second");
        }
        let mut run = Run { account: Account::new(Allowed::Others), ..Run::default() };
        run.looks(40, 100_000, 50_000, Cause::Other);
        assert_eq!((run.account.recent(&run.counted).share, run.by(Cause::Other)), (0.0, 1_900_000));
        run.looks(10, 100_000, 50_000, Cause::Hung);
        assert!(run.account.recent(&run.counted).share > 0.0 && run.account.latest_cause() == Cause::Hung);
    }
}
