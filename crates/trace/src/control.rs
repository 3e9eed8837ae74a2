//! Plays a script of events to a congestion control, and reports its window after each event.
//!
//! A script is CSV with a header row and these columns in any order. Other columns are ignored, and so are lines that
//! begin with `#`.
//!
//! | column | meaning | allowed |
//! |---|---|---|
//! | `t_us` | when, in microseconds | 0 to 10^12, never less than the line before |
//! | `event` | `ack`, `loss`, `ecn`, `rto`, `recovered`, `handshake` or `budget` | |
//! | `segments` | of an ACK: number of segments acknowledged; otherwise: number in flight, 0 for a full window | 0 to 2^20 |
//! | `rtt_us` | of an ACK or a handshake: the round trip time it gives, 0 for none; otherwise without meaning | 0 to 10^9 |
//! | `budget_bps` | of a budget, where this column is needed: the rate in bit/s, 0 for none | 0 to 10^12 |
//!
//! The script takes the part of the endpoint: it calls the control as the table in `penstock_core::cc` prescribes. The
//! window is always in use. From a loss to `recovered`, ACKs go only to controls that measure; after an ECN echo
//! recovery ends at once. Rate samples are computed from the ACKs of the last round trip. A burst that is due begins
//! before the event. The smoothed round trip time and the timeout are those of RFC 6298, whose lower bounds are an option;
//! an `rto` doubles the timeout until the next ACK. Budgets and the round trip time of the handshake are told to C²ML, if
//! the endpoint has it.
//!
//! [`play_rounds`] gives a control rounds of ACKs without a script that holds a line for each of them.

use crate::error::ReadError;
use crate::table::{failure, number, places};
use csv::{ByteRecord, Position, ReaderBuilder, Trim};
use penstock_core::cc::c2ml::{C2ml, Form};
use penstock_core::cc::{
    Ack, AnyCc, AnyControlConfig, Begin, CongestionControl, Delivered, Loss, LostSegment, Notice, RateSample, Setup,
};
use penstock_core::units::{Bytes, Instant, Rate, Span};
use std::collections::VecDeque;
use std::fmt;
use std::io::Read;

/// The header of the rows which a replay returns.
pub const COLUMNS: &str = "t_us,event,cwnd_segments,ssthresh_segments,pacing_bps,srtt_us,rto_us";
const NAMES_IN: [&str; 5] = ["t_us", "event", "segments", "rtt_us", "budget_bps"];
/// So many of the columns must be there.
const REQUIRED: usize = 4;
const EVENTS: [(&str, Event); 7] = [
    ("ack", Event::Ack),
    ("loss", Event::Loss),
    ("ecn", Event::Ecn),
    ("rto", Event::Rto),
    ("recovered", Event::Recovered),
    ("handshake", Event::Handshake),
    ("budget", Event::Budget),
];
const MAX_TIME_US: u64 = 1_000_000_000_000;
const MAX_RTT_US: u64 = 1_000_000_000;
const MAX_SEGMENTS: u64 = 1 << 20;
const MAX_BPS: u64 = 1_000_000_000_000;
const INITIAL_RTO: Span = Span::from_secs(1); // RFC 6298 §2.1

/// The endpoint whose part a script takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoint {
    /// What the control is told at the beginning.
    pub setup: Setup,
    /// Lower bound of the timeout, and of its variance term.
    pub min_rto: Span,
    /// How C²ML adapts the control.
    pub c2ml: Form,
    /// Size of the headers of a segment, for which C²ML leaves room.
    pub headers: Bytes,
}

impl Default for Endpoint {
    /// Segments of 1448 bytes with headers of 52, a first window of ten of them, no threshold, 200 ms as in Linux, no C²ML.
    /// ACKs come when the script says, as those of an endpoint that paces.
    fn default() -> Self {
        let mss = Bytes::new(1448);
        let setup = Setup { mss, initial_window: 10 * mss, initial_ssthresh: Bytes::MAX, paced: true, seed: 1 };
        Self { setup, min_rto: Span::from_millis(200), c2ml: Form::Off, headers: Bytes::new(52) }
    }
}

/// What a script tells a control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// Data was acknowledged.
    Ack,
    /// A loss was detected.
    Loss,
    /// A mark was echoed.
    Ecn,
    /// The retransmission timer expired.
    Rto,
    /// Recovery has ended.
    Recovered,
    /// The handshake gave a round trip time.
    Handshake,
    /// A gateway told another budget.
    Budget,
}

impl Event {
    /// Returns the event with this name in scripts.
    pub fn named(name: &str) -> Option<Self> {
        EVENTS.iter().find(|(known, _)| *known == name).map(|(_, event)| *event)
    }

    fn name(self) -> &'static str {
        EVENTS.iter().find(|(_, event)| *event == self).map_or("", |(name, _)| name)
    }
}

/// The state of the control after an event. It is displayed as a row of CSV, with an empty cell for what does not exist:
/// a threshold, a pacing rate, a round trip time.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    t_us: u64,
    event: Event,
    mss: Bytes,
    cwnd: Bytes,
    ssthresh: Bytes,
    pacing_bps: Option<u64>,
    srtt: Span,
    rto: Span,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let segments = |size: Bytes| size.as_f64() / self.mss.as_f64();
        write!(f, "{},{},{:.3},", self.t_us, self.event.name(), segments(self.cwnd))?;
        if self.ssthresh < Bytes::MAX {
            write!(f, "{:.3}", segments(self.ssthresh))?;
        }
        let pacing = self.pacing_bps.map(|bps| bps.to_string()).unwrap_or_default();
        let srtt = if self.srtt > Span::ZERO { us(self.srtt).to_string() } else { String::new() };
        write!(f, ",{pacing},{srtt},{}", us(self.rto))
    }
}

fn us(span: Span) -> u64 {
    span.as_nanos() / 1000
}

/// One round trip of a script of rounds: ACKs of a segment each, evenly over the round, and then perhaps an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// Begin of the round in microseconds.
    pub t_us: u64,
    /// Number of ACKs; the last one comes at the end of the round.
    pub segments: u64,
    /// What happens at the end of the round. A loss is followed by the end of its recovery at once.
    pub event: Option<Event>,
}

/// Gives a control rounds of ACKs, all with the same round trip time. Returns the window and the threshold at the end of
/// each round.
pub fn play_rounds(
    cc: &AnyControlConfig,
    endpoint: &Endpoint,
    rtt: Span,
    rounds: impl IntoIterator<Item = Round>,
) -> Vec<(Bytes, Bytes)> {
    let mut player = Player::new(cc.build(&endpoint.setup), *endpoint);
    let mss = endpoint.setup.mss;
    let play = |round: Round| {
        let begin = Instant::ZERO + Span::from_micros(round.t_us);
        for i in 1..=round.segments {
            let after = u128::from(rtt.as_nanos()) * u128::from(i) / u128::from(round.segments);
            player.play(begin + Span::from_nanos(after as u64), Event::Ack, mss, rtt, None);
        }
        if let Some(event) = round.event {
            player.play(begin + rtt, event, Bytes::ZERO, Span::ZERO, None);
            if event == Event::Loss {
                player.play(begin + rtt, Event::Recovered, Bytes::ZERO, Span::ZERO, None);
            }
        }
        (player.cc.cwnd(), player.cc.ssthresh())
    };
    rounds.into_iter().map(play).collect()
}

/// A script which is being played.
#[derive(Debug)]
pub struct Replay<R> {
    reader: csv::Reader<R>,
    at: [Option<usize>; NAMES_IN.len()],
    record: ByteRecord,
    last_us: u64,
    player: Player,
}

impl<R: Read> Replay<R> {
    /// Creates the control of this endpoint. An error in the header of the script is returned with the first row.
    pub fn new(reader: R, cc: &AnyControlConfig, endpoint: &Endpoint) -> Self {
        let cc = cc.build(&endpoint.setup);
        let reader = ReaderBuilder::new().flexible(true).trim(Trim::All).comment(Some(b'#')).from_reader(reader);
        Self {
            reader,
            at: [None; NAMES_IN.len()],
            record: ByteRecord::new(),
            last_us: 0,
            player: Player::new(cc, *endpoint),
        }
    }

    /// Plays the next event and returns the state after it; `None` at the end of the script.
    ///
    /// # Errors
    /// Returns [`ReadError::Table`] with the line, the column and what is allowed. After an error this function must
    /// not be called again.
    pub fn next_row(&mut self) -> Result<Option<Row>, ReadError> {
        if self.at[0].is_none() {
            let header = self.reader.byte_headers().map_err(|e| failure(&e))?;
            self.at = places(header, header.position().map_or(1, Position::line), NAMES_IN, REQUIRED)?;
        }
        if !self.reader.read_byte_record(&mut self.record).map_err(|e| failure(&e))? {
            return Ok(None);
        }
        let t_us = self.number(0, MAX_TIME_US)?;
        let event = self.event()?;
        let segments = self.number(2, MAX_SEGMENTS)?;
        let rtt_us = self.number(3, MAX_RTT_US)?;
        let budget_bps = if event == Event::Budget { self.number(4, MAX_BPS)? } else { 0 };
        if t_us < self.last_us {
            return Err(self.wrong(format!("t_us is {t_us}, but the line before has {}", self.last_us)));
        }
        self.last_us = t_us;
        self.player.play(
            Instant::ZERO + Span::from_micros(t_us),
            event,
            segments * self.player.endpoint.setup.mss,
            Span::from_micros(rtt_us),
            (budget_bps > 0).then(|| Rate::from_bps(budget_bps)),
        );
        Ok(Some(self.player.row(t_us, event)))
    }

    /// Returns the control's own state, for people to read.
    pub fn state(&self) -> String {
        self.player.cc.control().state()
    }

    fn event(&self) -> Result<Event, ReadError> {
        let cell = self.at[1].and_then(|at| self.record.get(at)).unwrap_or_default();
        EVENTS.iter().find(|(name, _)| name.as_bytes() == cell).map(|(_, event)| *event).ok_or_else(|| {
            let shown: String = String::from_utf8_lossy(cell).chars().take(40).collect();
            self.wrong(format!("event is {shown:?}; ack, loss, ecn, rto, recovered, handshake and budget are allowed"))
        })
    }

    fn number(&self, column: usize, most: u64) -> Result<u64, ReadError> {
        number(&self.record, self.at[column], NAMES_IN[column], 0..=most)
    }

    fn wrong(&self, what: String) -> ReadError {
        ReadError::Table { line: self.record.position().map_or(0, Position::line), what }
    }
}

/// The endpoint whose part the script takes.
#[derive(Debug)]
struct Player {
    cc: C2ml<AnyCc>,
    endpoint: Endpoint,
    srtt: Span,
    rttvar: Span,
    /// How often the timer has expired since the last ACK.
    backoff: u32,
    min_rtt: Span,
    delivered: Bytes,
    lost: Bytes,
    /// Deliveries of the last round trip: the time of each, and what was delivered and lost by then.
    history: VecDeque<(Instant, Bytes, Bytes)>,
    /// The first ACK has come.
    begun: bool,
    recovering: bool,
    /// What is in flight of bursts, for a control that sends in bursts.
    bursts: Bytes,
}

impl Player {
    fn new(cc: AnyCc, endpoint: Endpoint) -> Self {
        Self {
            cc: C2ml::new(cc, &endpoint.setup, endpoint.c2ml, endpoint.headers),
            endpoint,
            srtt: Span::ZERO,
            rttvar: Span::ZERO,
            backoff: 0,
            min_rtt: Span::MAX,
            delivered: Bytes::ZERO,
            lost: Bytes::ZERO,
            history: VecDeque::new(),
            begun: false,
            recovering: false,
            bursts: Bytes::ZERO,
        }
    }

    fn play(&mut self, now: Instant, event: Event, bytes: Bytes, rtt: Span, budget: Option<Rate>) {
        if self.cc.next_burst() <= now {
            self.cc.on_burst(now, self.bursts);
            self.bursts = self.cc.cwnd();
        }
        let in_flight = if bytes > Bytes::ZERO { bytes } else { self.cc.cwnd() };
        let loss = Loss { now, in_flight, ecn: event == Event::Ecn };
        match event {
            Event::Ack => self.acknowledge(now, bytes, rtt),
            Event::Loss => {
                self.cc.on_loss(&loss);
                self.lose(now, in_flight);
                self.recovering = true;
            }
            Event::Ecn => {
                self.cc.on_loss(&loss);
                self.cc.on_recovered(now);
            }
            Event::Rto => {
                let left = if self.cc.requirements().segments || self.cc.requirements().kernel {
                    Bytes::ZERO
                } else {
                    in_flight
                };
                self.cc.on_rto(&Loss { in_flight: left, ..loss });
                self.lose(now, in_flight);
                self.recovering = false;
                self.backoff = (self.backoff + 1).min(15);
            }
            Event::Recovered => {
                self.cc.on_recovered(now);
                self.recovering = false;
            }
            Event::Handshake => self.cc.set_rtt(rtt),
            Event::Budget if self.endpoint.c2ml != Form::Off => self.cc.set_budget(budget),
            Event::Budget => {}
        }
    }

    /// Counts a lost segment, which was sent as the last round trip began.
    fn lose(&mut self, now: Instant, in_flight: Bytes) {
        let size = self.endpoint.setup.mss;
        self.lost += size;
        let (_, prior_delivered, before) = self.history.front().copied().unwrap_or_default();
        self.cc.on_notice(&Notice::Lost(LostSegment {
            now,
            size,
            delivered: self.delivered,
            prior_delivered,
            tx_in_flight: in_flight,
            lost: self.lost - before,
            app_limited: false,
            apart: true,
        }));
    }

    fn acknowledge(&mut self, now: Instant, acked: Bytes, rtt: Span) {
        let sample = (rtt > Span::ZERO).then_some(rtt);
        self.backoff = 0;
        if let Some(rtt) = sample {
            self.smooth(rtt);
        }
        self.delivered += acked;
        self.bursts = self.bursts.saturating_sub(acked);
        let in_flight = self.cc.cwnd();
        let ack = Ack {
            now,
            acked,
            rtt: sample,
            srtt: self.srtt,
            min_rtt: if self.min_rtt == Span::MAX { Span::ZERO } else { self.min_rtt },
            in_flight,
            cwnd_limited: true,
            delivered: self.delivered,
            marked: Bytes::ZERO,
            rate: self.rate(now, in_flight.saturating_sub(acked)),
        };
        if self.cc.requirements().segments {
            self.deliver(&ack);
        } else if !self.recovering {
            self.cc.on_ack(&ack);
        } else if self.cc.requirements().rate {
            self.cc.on_recovery_ack(&ack);
        }
    }

    /// Gives an ACK to a control that requires segments.
    fn deliver(&mut self, ack: &Ack) {
        if !std::mem::replace(&mut self.begun, true) {
            self.cc.on_notice(&Notice::Begin(Begin { now: ack.now, srtt: self.srtt, sack: true }));
        }
        let before = self.history.front().map_or(Bytes::ZERO, |first| first.2);
        match Delivered::of(ack, self.lost - before) {
            Some(sample) => self.cc.on_notice(&Notice::Delivered(sample)),
            None => self.cc.on_ack(ack),
        }
    }

    /// SRTT and RTTVAR with a new sample (RFC 6298 §2.2, §2.3).
    fn smooth(&mut self, rtt: Span) {
        self.min_rtt = self.min_rtt.min(rtt);
        if self.srtt == Span::ZERO {
            (self.srtt, self.rttvar) = (rtt, rtt.div(2));
            return;
        }
        let error = self.srtt.as_nanos().abs_diff(rtt.as_nanos());
        self.rttvar = Span::from_nanos((3 * self.rttvar.as_nanos() + error) / 4);
        self.srtt = Span::from_nanos((7 * self.srtt.as_nanos() + rtt.as_nanos()) / 8);
    }

    /// The retransmission timeout (RFC 6298 §2.1, §2.3, §5.5).
    fn rto(&self) -> Span {
        let least = self.endpoint.min_rto;
        let base = if self.srtt == Span::ZERO { INITIAL_RTO } else { self.srtt + least.max(self.rttvar * 4) };
        base.max(least) * (1 << self.backoff)
    }

    /// Computes the rate sample over the time since the last delivery that is at least a round trip old.
    fn rate(&mut self, now: Instant, in_flight: Bytes) -> Option<RateSample> {
        let requirements = self.cc.requirements();
        if !requirements.rate && !requirements.segments {
            return None;
        }
        while self.history.get(1).is_some_and(|(at, ..)| now.since(*at) >= self.srtt) {
            self.history.pop_front();
        }
        let first = self.history.front().copied();
        self.history.push_back((now, self.delivered, self.lost));
        let (at, prior_delivered, _) = first?;
        let interval = now.since(at);
        (interval > Span::ZERO).then_some(RateSample {
            prior_delivered,
            interval,
            app_limited: false,
            in_flight,
            lost: self.lost,
        })
    }

    fn row(&self, t_us: u64, event: Event) -> Row {
        let pacing_bps = self.cc.pacing_rate().map(penstock_core::units::Rate::as_bps);
        let (cwnd, ssthresh) = (self.cc.cwnd(), self.cc.ssthresh());
        let (mss, srtt, rto) = (self.endpoint.setup.mss, self.srtt, self.rto());
        Row { t_us, event, mss, cwnd, ssthresh, pacing_bps, srtt, rto }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::cc::NAMES;

    fn play(cc: &str, script: &str) -> Result<Vec<String>, String> {
        let mut replay =
            Replay::new(script.as_bytes(), &AnyControlConfig::default_of(cc).unwrap(), &Endpoint::default());
        let mut rows = vec![];
        while let Some(row) = replay.next_row().map_err(|e| e.to_string())? {
            rows.push(row.to_string());
        }
        Ok(rows)
    }

    /// NewReno computed by hand (RFC 5681): slow start, a loss with 11 segments in flight, an ACK in recovery, an ACK
    /// after it with a window of 5.5 segments, a mark with 7 in flight, a timeout with 4.
    #[test]
    fn newreno_by_hand() {
        let script = "t_us,event,segments,rtt_us\n\
            0,ack,1,100000\n10,loss,11,0\n20,ack,3,0\n30,recovered,0,0\n40,ack,6,100000\n50,ecn,7,0\n60,rto,4,0\n";
        let rows = play("newreno", script).unwrap();
        assert_eq!(
            rows,
            [
                "0,ack,11.000,,,100000,300000",
                "10,loss,11.000,5.500,,100000,300000",
                "20,ack,11.000,5.500,,100000,300000",
                "30,recovered,5.500,5.500,,100000,300000",
                "40,ack,6.500,5.500,,100000,300000",
                "50,ecn,3.500,3.500,,100000,300000",
                "60,rto,1.000,2.000,,100000,600000",
            ]
        );
    }

    /// RFC 6298 by hand, bounds of 1 ms: 800 ms are RTTVAR 400 and a timeout of 2.4 s; then 1600 ms: RTTVAR 3/4 400 + 800/4
    /// = 500, SRTT 7/8 800 + 1600/8 = 900, 2.9 s. Before the first sample it is a second.
    #[test]
    fn the_timeout_is_that_of_rfc_6298() {
        let script = "t_us,event,segments,rtt_us\n0,ack,1,0\n1,ack,1,800000\n2,ack,1,1600000\n3,rto,1,0\n4,ack,1,0\n";
        let endpoint = Endpoint { min_rto: Span::from_millis(1), ..Endpoint::default() };
        let mut replay = Replay::new(script.as_bytes(), &AnyControlConfig::default_of("newreno").unwrap(), &endpoint);
        let told: Vec<String> = std::iter::from_fn(|| replay.next_row().unwrap())
            .map(|row| row.to_string().splitn(6, ',').last().unwrap().to_owned())
            .collect();
        assert_eq!(told, [",1000000", "800000,2400000", "900000,2900000", "900000,5800000", "900000,2900000"]);
    }

    /// C²ML by hand: 5.792 Mbit/s carry 50 segments of 1448 bytes in 100 ms, and 48 with their headers of 52; 579.2 kbit/s
    /// carry 5 and 4. The first window is half of the ceiling. Then a window that is too large becomes the ceiling, and half
    /// of it by the paper; slow start takes two segments.
    #[test]
    fn a_budget_is_a_ceiling() {
        let script = "t_us,event,segments,rtt_us,budget_bps\n\
            0,handshake,0,100000,0\n1,budget,0,0,5792000\n2,ack,2,100000,0\n3,budget,0,0,579200\n4,ack,60,100000,0\n";
        for (c2ml, windows) in [
            (Form::On, [10.0, 24.0, 26.0, 4.0, 4.0]),
            (Form::Literal, [10.0, 25.0, 27.0, 2.5, 4.5]),
            (Form::Off, [10.0, 10.0, 12.0, 12.0, 14.0]),
        ] {
            let (cc, endpoint) =
                (AnyControlConfig::default_of("newreno").unwrap(), Endpoint { c2ml, ..Endpoint::default() });
            let mut replay = Replay::new(script.as_bytes(), &cc, &endpoint);
            let rows = std::iter::from_fn(|| replay.next_row().unwrap());
            assert_eq!(rows.map(|row| row.cwnd.as_f64() / 1448.0).collect::<Vec<_>>(), windows, "{c2ml:?}");
        }
    }

    /// Two rounds of slow start and a loss by hand: 10, 20, 40 segments, and half of 40.
    #[test]
    fn rounds_are_played_without_a_line_for_each_ack() {
        let cc = AnyControlConfig::default_of("newreno").unwrap();
        let rounds = [(0, 10, None), (100_000, 20, Some(Event::Loss))];
        let rounds = rounds.map(|(t_us, segments, event)| Round { t_us, segments, event });
        let mss = Bytes::new(1448);
        let found = play_rounds(&cc, &Endpoint::default(), Span::from_millis(100), rounds);
        assert_eq!(found, [(20 * mss, Bytes::MAX), (20 * mss, 20 * mss)]);
    }

    /// 20 segments are delivered evenly in every 100 ms: after one round trip the bandwidth of BBR's model is 2.3168
    /// Mbit/s, and the pacing rate of Startup is 0.99 times 2.885 times that.
    #[test]
    fn bbr_measures_the_rate_of_the_script() {
        let mut script = String::from("t_us,event,segments,rtt_us\n");
        (0..60).for_each(|i| script.push_str(&format!("{},ack,1,100000\n", i * 5_000)));
        let rows = play("bbr", &script).unwrap();
        let pace: f64 = rows[59].split(',').nth(4).unwrap().parse().unwrap();
        assert!((pace / (0.99 * 2.885 * 2_316_800.0) - 1.0).abs() < 0.001, "{pace}");
    }

    #[test]
    fn mistakes_name_line_column_and_what_is_allowed() {
        let head = "t_us,event,segments,rtt_us\n";
        for (lines, expected) in [
            ("0,ack,1\n", "CSV line 2: rtt_us is \"\"; whole numbers from 0 to 1000000000 are allowed"),
            (
                "0,nak,1,5\n",
                "CSV line 2: event is \"nak\"; ack, loss, ecn, rto, recovered, handshake and budget are allowed",
            ),
            ("7,ack,1,5\n6,ack,1,5\n", "CSV line 3: t_us is 6, but the line before has 7"),
        ] {
            assert_eq!(play("newreno", &format!("{head}{lines}")).unwrap_err(), expected);
        }
        assert!(play("newreno", "t_us,event,rtt_us\n").unwrap_err().contains("segments is missing"));
    }

    proptest::proptest! {
        /// Any bytes are played or refused, and every control plays any script of events to its end.
        #[test]
        fn nothing_stops_the_player(
            noise in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300),
            events in proptest::collection::vec((0usize..EVENTS.len(), 0..=MAX_SEGMENTS, 0..=MAX_RTT_US, 0u64..1 << 30), 1..50),
        ) {
            let mut replay = Replay::new(noise.as_slice(), &AnyControlConfig::default_of("cubic").unwrap(), &Endpoint::default());
            while let Ok(Some(_)) = replay.next_row() {}
            let mut script = String::from("t_us,event,segments,rtt_us,budget_bps\n");
            let mut t = 0;
            for (event, segments, rtt, gap) in &events {
                t += gap;
                script.push_str(&format!("{t},{},{segments},{rtt},{gap}\n", EVENTS[*event].0));
            }
            for name in NAMES {
                proptest::prop_assert_eq!(play(name, &script).map(|rows| rows.len()), Ok(events.len()), "{}", name);
            }
        }
    }
}
