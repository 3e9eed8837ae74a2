//! The status of a gateway: what it does, what passed, and what is wrong.

use crate::account;
use crate::tap::Entries;
use penstock_appliance::appliance::{Appliance, Desk};
use penstock_appliance::change::{Change, Event};
use penstock_appliance::history::Lapse;
use penstock_conntrack::Gauges;
use penstock_core::qdisc::Backlog;
use penstock_core::registry::tree::Account;
use penstock_core::units::Span;
use penstock_linux::bpf::bridge::Passed;
use penstock_linux::nfqueue::Listed;
use penstock_linux::stalls::Stalls;
use penstock_shaper::classify::Unclassified;
use penstock_shaper::histogram::Spans;
use penstock_shaper::report::DirectionReport;
use serde::Serialize;

/// What the status of each kind of gateway begins with.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Common {
    /// Time since the start in seconds.
    elapsed_s: f64,
    /// What is wrong now, as sentences; empty if all is well.
    marks: Vec<String>,
    events: Vec<Event>,
    changes: Vec<Change>,
    /// The change that will go by itself, if there is one.
    lapse: Option<Lapse>,
}

impl Common {
    /// Takes what is wrong with the gateway itself; the desk adds its own.
    pub fn of<A: Appliance>(desk: &Desk<A>, marks: impl Iterator<Item = String>) -> Self {
        Self {
            elapsed_s: desk.now().as_secs_f64(),
            marks: marks.chain(desk.marks()).collect(),
            events: desk.chronicle.events.clone(),
            changes: desk.chronicle.changes.clone(),
            lapse: desk.lapse(),
        }
    }
}

/// The status of a gateway at one time, as `penstock-gateway status --json` prints it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Status {
    #[serde(flatten)]
    pub common: Common,
    pub state: State,
    pub wan: String,
    /// If the file has one.
    pub lan: Option<String>,
    pub account: account::Told,
    #[serde(flatten)]
    pub gate: Told,
    /// Packets that were seen with `observe`, in both directions.
    pub observed: [Backlog; 2],
    /// Numbers of packets that elements on the ACK path do not see.
    pub unclassified: Unclassified,
    pub flows: Gauges,
    /// Times in which this process did not run although it had to.
    pub stalled: Stalls,
    /// Number of times at which there was no memory for another packet, which then waited in the kernel.
    pub short_of_memory: u64,
    pub delays: [Delays; 2],
    /// From the WAN to the LAN, and from the LAN to the WAN.
    pub forward: DirectionReport,
    pub reverse: DirectionReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub c2ml: Option<penstock_budgets::gateway::Status>,
    /// What observers tell: `link`, `windows`, `calls` and `callers`, `enforcement`, `scone`.
    #[serde(flatten)]
    pub observed_by: Entries,
    /// What the subscribers of a tree have: those to whom most was sent, and all others at the end.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subscribers: Vec<Subscriber>,
}

/// What the status tells of the way of packets to this process and on.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Told {
    pub past: Past,
    pub kernel_queues: Vec<Listed>,
    /// Number of verdicts that the kernel refused, because the packet was gone with its interface.
    pub refused_verdicts: u64,
    /// Number of packets that the kernel dropped in each direction, because they were not read in time.
    #[serde(skip)]
    pub unread: [u64; 2],
    /// What became of frames, with `mode = "bridge"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frames: Option<Frames>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Subscriber {
    /// `None` for all who are in no list.
    name: Option<String>,
    forward: Part,
    reverse: Part,
}

/// What a subscriber has in one direction: its discipline, and numbers of packets and bytes.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Part {
    aqm: String,
    arrived: Backlog,
    sent: Backlog,
    dropped: u64,
    marked: u64,
    waiting: Backlog,
}

impl Part {
    fn of(account: &Account<'_>) -> Self {
        let Account { discipline, stats, backlog, .. } = account;
        Self {
            aqm: discipline.name().to_owned(),
            arrived: stats.arrived,
            sent: stats.sent,
            dropped: stats.dropped_by_aqm() + stats.dropped_overflow.packets,
            marked: stats.marked.packets,
            waiting: *backlog,
        }
    }
}

/// Number of subscribers that the status lists.
const MOST_SUBSCRIBERS: usize = 1000;

/// Returns what subscribers have, from their accounts in both directions, which are in the same order.
pub fn subscribers<'a>(ways: [impl Iterator<Item = Account<'a>>; 2]) -> Vec<Subscriber> {
    let [down, up] = ways;
    let one = |(down, up): (Account<'_>, Account<'_>)| Subscriber {
        name: Some(down.name.to_owned()).filter(|name| !name.is_empty()),
        forward: Part::of(&down),
        reverse: Part::of(&up),
    };
    let mut all: Vec<Subscriber> = down.zip(up).map(one).collect();
    all.sort_by_key(|one| (one.name.is_none(), std::cmp::Reverse(one.forward.sent.bytes + one.reverse.sent.bytes)));
    if let Some(others) = all.pop() {
        all.truncate(MOST_SUBSCRIBERS);
        all.push(others);
    }
    all
}

/// Upper bounds of the counters of [`Delays`], in milliseconds.
pub const BOUNDS_MS: [u64; 12] = [1, 2, 5, 10, 20, 30, 50, 100, 200, 500, 1000, 2000];

/// Queueing delays as counters that only grow, so that two readings tell those of the time between.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Delays {
    count: u64,
    /// The sum of their delays in seconds.
    sum_s: f64,
    /// Number of packets with a delay up to each of [`BOUNDS_MS`].
    up_to: [u64; BOUNDS_MS.len()],
}

impl Delays {
    pub fn of(spans: &Spans) -> Self {
        Self { count: spans.len(), sum_s: spans.sum_s(), up_to: spans.up_to(BOUNDS_MS.map(Span::from_millis)) }
    }
}

/// The life of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Its interface is not there, or down: nothing passes.
    Waiting,
    Governing,
    Observing,
    /// More than a little has passed beside the gateway in the last minute.
    Partly,
    /// Packets pass, because this process hung, or cannot have them.
    Open,
    /// The gateway cannot do what it must.
    Wrong,
}

impl State {
    pub const ALL: [&str; 6] = ["waiting", "governing", "observing", "partly", "open", "wrong"];

    pub fn word(self) -> &'static str {
        Self::ALL[self as usize]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Past {
    /// Packets and bytes that passed while the guard had opened the rules. Packets that an interface has merged count as
    /// one.
    pub opened: Backlog,
    pub times: u64,
    /// For how long they were open, in seconds.
    pub open_s: f64,
    /// Number of packets that passed because the queue or the buffer of the socket was full: at least so many, as packets
    /// that an interface has merged hide others.
    pub overflow_at_least: u64,
}

/// What became of the frames of a bridge. Pairs are of frames from the WAN and from the LAN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Frames {
    /// What the programs of the kernel have counted.
    #[serde(flatten)]
    pub passed: Passed,
    /// Number of frames that were merged and were taken apart.
    pub taken_apart: [u64; 2],
    /// Number of merged frames that could not be taken apart: they passed whole, and unshaped.
    pub whole: [u64; 2],
    /// Number of frames between two hosts of one side, which were not forwarded.
    pub same_side: [u64; 2],
    /// Number of packets that were dropped because this process hung before their time.
    pub late: [u64; 2],
    /// Number of packets that the other interface refused, and of those that were dropped because it was gone or down.
    pub refused: [u64; 2],
    pub away: [u64; 2],
    /// True if one of them was longer than the interface may send.
    pub too_long: bool,
}
