//! Transfers over TCP, which begin one after another (`http`) or at random (`web`). Each is measured from its request
//! to the arrival of its last byte.
//!
//! Sources:
//! - `http`: *Active queue management exploiting the rate information in TCP-IP networks*, section IV.E: sessions that
//!   send some 30 packets per connection and are idle for 5 s between two connections.
//! - `web`: *On the search of efficient AQM for large delay networks*, section 4: short flows that arrive as a Poisson
//!   process, each with a number of bytes from a Pareto distribution of shape 1.3 and mean 50 kB.
//!
//! [`super::connections`] has the connections themselves; this file decides when a transfer begins and how large it is.
//!
//! DIFFERENCE: "approximately 30" packets are 30 (`http_transfers_come_at_the_times_worked_out_by_hand`).

use super::action::{Action, Opening, Request};
use super::application::{Application, Coming, ConnectionEvent, Feeling, Felt, Host, Setup};
use super::settings::{FlowFacts, Settings, file_size};
use super::sizes::Pareto;
use super::{AnyApplication, Measures};
use crate::quantiles::Times;
use crate::quantiles::{Quantiles, round};
use crate::segment::Segment;
use crate::tcp::{Counters, TcpConfig};
use penstock_core::config::ConfigError;
use penstock_core::rng::Rng;
use penstock_core::suggest::unknown_name;
use penstock_core::units::{Bytes, Instant, Span};
use penstock_grammar::range::{MAX_DURATION, within};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The idle time between two transfers of a session.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Idle {
    /// The same time after every transfer.
    Constant(Span),
    /// An exponential time with this mean.
    Exponential(Span),
}

/// Transfers one after another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Http {
    /// Size of each transfer.
    pub size: Bytes,
    /// Size of the first transfer, if it differs from the others.
    pub first: Option<Bytes>,
    /// Time from the end of a transfer to the begin of the next.
    pub idle: Idle,
    /// True if all transfers use one connection, which stays open.
    pub same_connection: bool,
}

/// Transfers that arrive at random as a Poisson process, each over a connection of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Web {
    /// Mean number of arrivals per second.
    pub per_second: f64,
    /// Mean size of a transfer.
    pub mean_size: Bytes,
    /// Shape of the Pareto distribution of sizes.
    pub shape: f64,
    /// Upper bound of sizes, to which larger ones are cut; `None` without a bound.
    pub max_size: Option<Bytes>,
}

impl Idle {
    fn draw(self, times: &mut Rng) -> Span {
        match self {
            Self::Constant(idle) => idle,
            Self::Exponential(mean) => Span::from_secs_f64(times.exponential(mean.as_secs_f64())),
        }
    }
}

impl Http {
    /// Returns the size of a transfer.
    fn size(&self, is_first: bool) -> u64 {
        self.first.filter(|_| is_first).unwrap_or(self.size).get()
    }
}

impl Web {
    /// Draws the time from one arrival to the next.
    fn gap(&self, times: &mut Rng) -> Span {
        Span::from_secs_f64(times.exponential(1.0 / self.per_second))
    }

    /// Draws the size of a transfer.
    fn size(&self, sizes: &mut Rng) -> u64 {
        let size = Pareto::with_mean(self.mean_size.get() as f64, self.shape).draw(sizes);
        (size.ceil() as u64).min(self.max_size.map_or(LARGEST, Bytes::get))
    }
}

/// Largest number of transfers per second of one flow.
const MAX_PER_SECOND: f64 = 10_000.0;
const DISTRIBUTIONS: [&str; 2] = ["constant", "exponential"];
const CONNECTIONS: [&str; 2] = ["new", "same"];

/// The keys of `kind = "http"`.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HttpKeys {
    size: Option<Bytes>,
    packets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first: Option<Bytes>,
    idle: Option<Span>,
    idle_distribution: Option<String>,
    connection: Option<String>,
}

/// True if the scenario gives the second of two words for this key; false if it gives the first word or none.
fn is_second(key: &'static str, word: Option<&String>, words: [&str; 2]) -> Result<bool, ConfigError> {
    let word = word.map_or(words[0], String::as_str);
    match words.iter().position(|known| *known == word) {
        Some(place) => Ok(place == 1),
        None => Err(ConfigError::new(key, unknown_name(key, word, &words))),
    }
}

impl Settings for Http {
    type Keys = HttpKeys;

    fn read(keys: HttpKeys, flow: &FlowFacts) -> Result<Self, ConfigError> {
        let size = match (keys.size, keys.packets) {
            (Some(_), Some(_)) => return Err(ConfigError::new("packets", "give `size` or `packets`, not both")),
            (Some(size), None) => file_size("size", size)?,
            (None, packets) => {
                let packets = packets.unwrap_or(30);
                if !(1..=1_000_000).contains(&packets) {
                    return Err(ConfigError::new("packets", "a transfer has 1 to 1000000 packets"));
                }
                Bytes::new(packets * flow.mss.get())
            }
        };
        let idle = keys.idle.unwrap_or(Span::from_secs(5));
        within("idle", &idle, Span::ZERO..=MAX_DURATION)?;
        let exponential = is_second("idle_distribution", keys.idle_distribution.as_ref(), DISTRIBUTIONS)?;
        Ok(Self {
            size,
            first: keys.first.map(|first| file_size("first", first)).transpose()?,
            idle: if exponential { Idle::Exponential(idle) } else { Idle::Constant(idle) },
            same_connection: is_second("connection", keys.connection.as_ref(), CONNECTIONS)?,
        })
    }
    fn keys(&self) -> HttpKeys {
        let (idle, distribution) = match self.idle {
            Idle::Constant(idle) => (idle, DISTRIBUTIONS[0]),
            Idle::Exponential(idle) => (idle, DISTRIBUTIONS[1]),
        };
        HttpKeys {
            size: Some(self.size),
            packets: None,
            first: self.first,
            idle: Some(idle),
            idle_distribution: Some(distribution.to_owned()),
            connection: Some(CONNECTIONS[usize::from(self.same_connection)].to_owned()),
        }
    }
}

/// The keys of `kind = "web"`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, schemars::JsonSchema)]
pub struct WebKeys {
    per_second: Option<f64>,
    load: Option<f64>,
    mean_size: Option<Bytes>,
    shape: Option<f64>,
    max_size: Option<Bytes>,
}

impl Settings for Web {
    type Keys = WebKeys;

    fn read(keys: WebKeys, flow: &FlowFacts) -> Result<Self, ConfigError> {
        let mean_size = file_size("mean_size", keys.mean_size.unwrap_or(Bytes::new(50_000)))?;
        let shape = keys.shape.unwrap_or(1.3);
        if !(shape > 1.0 && shape <= 100.0) {
            let message = format!("shape is {shape}; allowed is above 1 (or there is no mean) to 100");
            return Err(ConfigError::new("shape", message));
        }
        if keys.max_size.is_some_and(|most| most < mean_size || file_size("max_size", most).is_err()) {
            let message = format!("max_size is at least mean_size ({mean_size}) and at most 1PB");
            return Err(ConfigError::new("max_size", message));
        }
        let (key, per_second) = match (keys.per_second, keys.load) {
            (Some(per_second), None) => ("per_second", per_second),
            (None, Some(load)) => {
                within("load", &load, 1e-6..=10.0)?;
                let rate = flow.slowest.as_bps() as f64;
                ("load", load * rate / (8 * mean_size.get()) as f64 / flow.count.max(1) as f64)
            }
            (Some(_), Some(_)) => return Err(ConfigError::new("load", "give `per_second` or `load`, not both")),
            (None, None) => return Err(ConfigError::new("kind", "kind \"web\" needs `per_second` or `load`")),
        };
        if !(per_second > 0.0 && per_second <= MAX_PER_SECOND) {
            let message = format!("{per_second} transfers per second; allowed is above 0 to {MAX_PER_SECOND}");
            return Err(ConfigError::new(key, message));
        }
        Ok(Self { per_second, mean_size, shape, max_size: keys.max_size })
    }
    fn keys(&self) -> WebKeys {
        WebKeys {
            per_second: Some(self.per_second),
            load: None,
            mean_size: Some(self.mean_size),
            shape: Some(self.shape),
            max_size: self.max_size,
        }
    }
}

/// Largest size of a transfer: 2^50 bytes, about a petabyte.
const LARGEST: u64 = 1 << 50;

/// The kind of sessions of a flow, with its settings.
#[derive(Debug, Clone, Copy)]
enum Plan {
    Http(Http),
    Web(Web),
}

impl Http {
    /// Creates the application of one flow.
    pub fn build(&self, setup: &Setup<'_>) -> AnyApplication {
        AnyApplication::other(Sessions::new(Plan::Http(*self), setup))
    }
}

impl Web {
    /// Creates the application of one flow.
    pub fn build(&self, setup: &Setup<'_>) -> AnyApplication {
        AnyApplication::other(Sessions::new(Plan::Web(*self), setup))
    }
}

/// Upper bounds in bytes of the classes of sizes. A transfer belongs to the first class whose bound is above its size;
/// the last class has no bound.
pub const CLASSES: [u64; 3] = [10_000, 100_000, 1_000_000];

/// The sessions of a flow and their transfers.
#[derive(Debug)]
struct Sessions {
    plan: Plan,
    /// TCP settings of every connection.
    tcp: Arc<TcpConfig>,
    times: Rng,
    sizes: Rng,
    /// Random stream for initial sequence numbers.
    iss: Rng,
    /// False until the first wake-up: in a Poisson process a random time precedes the first arrival as well.
    begun: bool,
    /// Number of the open connection of a session with `same_connection`; `None` while there is none.
    connection: Option<u32>,
    /// Number of connections that are open.
    open: u32,
    /// Number of transfers begun.
    started: u64,
    /// Number of transfers whose connection was given up.
    failed: u64,
    /// Number of arrivals that were refused because [`MAX_OPEN`] connections were open.
    refused: u64,
    /// Number of payload bytes delivered.
    delivered: u64,
    /// Counters of all connections that have ended.
    counters: Counters,
    all: Times,
    classes: [(Times, u64); CLASSES.len() + 1],
}

/// Largest number of transfers that are told in advance: a session without idle times has as many as the network allows.
const MOST_COMING: usize = 1_000_000;

/// Largest number of connections that one `web` flow has open at a time, which bounds its memory.
pub const MAX_OPEN: u32 = 10_000;

impl Sessions {
    /// Creates sessions that have begun no transfer.
    fn new(plan: Plan, setup: &Setup<'_>) -> Self {
        Self {
            plan,
            tcp: setup.tcp.clone(),
            times: setup.stream("times"),
            sizes: setup.stream("sizes"),
            iss: setup.stream("iss"),
            begun: false,
            connection: None,
            open: 0,
            started: 0,
            failed: 0,
            refused: 0,
            delivered: 0,
            counters: Counters::default(),
            all: Times::default(),
            classes: Default::default(),
        }
    }

    /// Returns the size of the transfer that begins at `now`, or `None` without one, and when the next one begins, if
    /// that is known.
    fn next_transfer(&mut self, now: Instant) -> (Option<u64>, Option<Instant>) {
        match self.plan {
            Plan::Http(http) => {
                self.started += 1;
                (Some(http.size(self.started == 1)), None)
            }
            Plan::Web(web) => {
                let next = now + web.gap(&mut self.times);
                (self.arrival(&web), Some(next))
            }
        }
    }

    fn arrival(&mut self, web: &Web) -> Option<u64> {
        if !std::mem::replace(&mut self.begun, true) {
            return None;
        }
        // The size is drawn in any case, so that the later sizes do not depend on which transfers were refused.
        let size = web.size(&mut self.sizes);
        if self.open >= MAX_OPEN {
            self.refused += 1;
            return None;
        }
        self.started += 1;
        Some(size)
    }

    /// True if all transfers use one connection.
    fn keeps_connection(&self) -> bool {
        matches!(self.plan, Plan::Http(http) if http.same_connection)
    }

    /// Records a transfer of `size` bytes that began at `began` and is complete now.
    fn complete(&mut self, size: u64, began: Instant, now: Instant) {
        let took = now.since(began);
        self.all.record(took);
        let class = CLASSES.iter().filter(|limit| size >= **limit).count();
        let (times, bytes) = &mut self.classes[class];
        times.record(took);
        *bytes += size;
    }

    /// Returns when the session begins its next transfer, after the end of one. If the flow stops before that time,
    /// returns `None` and closes a connection that was kept open. Transfers of `web` do not depend on the end of
    /// others.
    fn await_next(&mut self, host: &mut Host<'_>) -> Option<Instant> {
        let next = match self.plan {
            Plan::Web(_) => None,
            Plan::Http(http) => Some(host.now + http.idle.draw(&mut self.times)),
        };
        let next = next.filter(|at| *at < host.stop);
        if let (None, Some(number)) = (next, self.connection) {
            host.act(Action::Close(number));
        }
        next
    }

    fn summary(&self) -> Transfers {
        let web = matches!(self.plan, Plan::Web(_));
        let from = |class: usize| if class == 0 { 0 } else { CLASSES[class - 1] };
        let class = |(i, (times, bytes)): (usize, &(Times, u64))| {
            let count = times.digest.count();
            (web && count > 0).then(|| SizeClass {
                from_bytes: from(i),
                count,
                mean_bytes: round(*bytes as f64 / count as f64),
                completion_ms: times.quantiles_ms(),
            })
        };
        Transfers {
            started: self.started,
            count: self.all.digest.count(),
            failed: self.failed,
            refused: self.refused,
            bytes: self.classes.iter().map(|(_, bytes)| bytes).sum(),
            completion_ms: self.all.quantiles_ms(),
            by_size: self.classes.iter().enumerate().filter_map(class).collect(),
        }
    }
}

impl Application for Sessions {
    fn wake(&mut self, host: &mut Host<'_>) -> Option<Instant> {
        let (size, next) = self.next_transfer(host.now);
        if let Some(size) = size {
            let request = Request { size, last: !self.keeps_connection() };
            match self.connection {
                Some(number) => host.act(Action::Write(number, request)),
                None => {
                    self.open += 1;
                    let iss = [self.iss.bits() as u32, self.iss.bits() as u32];
                    host.act(Action::Open(Opening { flow: host.flow, iss }, request));
                }
            }
        }
        next
    }

    /// Packets of these flows belong to their connections, which the loop drives.
    fn receive(&mut self, _: &Segment, _: &mut Host<'_>) {}

    fn on_connection(&mut self, event: ConnectionEvent, host: &mut Host<'_>) -> Option<Instant> {
        match event {
            ConnectionEvent::Opened(number) => {
                self.connection = self.keeps_connection().then_some(number);
                None
            }
            ConnectionEvent::Delivered(bytes) => {
                self.delivered += bytes;
                None
            }
            ConnectionEvent::Complete { size, began } => {
                self.complete(size, began, host.now);
                self.await_next(host)
            }
            ConnectionEvent::Over { number, counters, unfinished } => {
                self.open -= 1;
                self.counters += counters;
                self.connection = self.connection.filter(|kept| *kept != number);
                self.failed += u64::from(unfinished);
                if unfinished { self.await_next(host) } else { None }
            }
        }
    }

    fn delivered(&self) -> u64 {
        self.delivered
    }

    fn cc(&self) -> &str {
        self.tcp.cc.name()
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn measures(&self) -> Measures {
        Measures::Transfers(self.summary())
    }

    fn felt(&self) -> Vec<Felt> {
        vec![Felt::of(Feeling::PageTime, &self.all)]
    }

    fn connects_by(&self) -> Option<&Arc<TcpConfig>> {
        Some(&self.tcp)
    }

    fn coming(&self, within: Span) -> Vec<Coming> {
        let (mut times, mut sizes) = (self.times.clone(), self.sizes.clone());
        let mut passed = Span::ZERO;
        let transfer = |number: usize| {
            let (wait, size) = match self.plan {
                Plan::Http(http) if number == 0 => (Span::ZERO, http.size(true)),
                Plan::Http(http) => (http.idle.draw(&mut times), http.size(false)),
                Plan::Web(web) => (web.gap(&mut times), web.size(&mut sizes)),
            };
            passed = passed + wait;
            (passed < within).then_some(Coming { wait, size })
        };
        (0..MOST_COMING).map_while(transfer).collect()
    }

    fn bytes(&self) -> usize {
        let times = self.classes.iter().map(|(times, _)| times).chain([&self.all]);
        size_of::<Self>() + times.map(|times| times.digest.heap_bytes()).sum::<usize>()
    }
}

/// The transfers of one class of sizes.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SizeClass {
    /// Smallest size of the class in bytes; the next class begins at its end.
    pub from_bytes: u64,
    /// Number of complete transfers.
    pub count: u64,
    /// Mean size of these transfers in bytes.
    pub mean_bytes: f64,
    /// Time in milliseconds from the opening of the connection until the last byte was delivered.
    pub completion_ms: Quantiles,
}

/// The results of the transfers of a flow.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Transfers {
    /// Number of transfers begun.
    pub started: u64,
    /// Number of transfers completed.
    pub count: u64,
    /// Number of transfers whose connection was given up.
    pub failed: u64,
    /// Number of transfers refused because too many connections were open.
    pub refused: u64,
    /// Payload bytes of the complete transfers.
    pub bytes: u64,
    /// Time in milliseconds from the request until the last byte was delivered.
    pub completion_ms: Quantiles,
    /// The transfers by size, only for `web`; classes without a transfer are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub by_size: Vec<SizeClass>,
}
