//! A telephone call: G.711 over RTP, and an estimate of its quality.
//!
//! Sources: ITU-T G.711 (64 kbit/s) in packets of 20 ms (RFC 3551 §4.2), which are 160 B, with 12 B of RTP (RFC 3550
//! §5.1) and 28 B of UDP and IPv4: 200 B fifty times a second. Talk spurts and pauses: ITU-T P.59, with means of 1.004
//! s and 1.587 s. Quality: the E-model of ITU-T G.107 ([`penstock_core::emodel`]).
//!
//! DIFFERENCE: P.59 describes two speakers by four states; here each direction is on and off for exponential times with
//! the means of P.59 (`talk_spurts_have_the_means_of_p59`).
//!
//! A receiver plays all packets with the same delay; a packet that arrives later is lost to it. The delay is chosen to
//! give the best rating (`the_best_playout_delay_weighs_delay_against_loss`). This is no algorithm of a certain phone
//! but an upper bound for all receivers with a fixed playout delay.

use super::application::{Application, Feeling, Felt, Host, Setup};
use super::media::{self, Delivery, Reception};
use super::settings::{FlowFacts, Settings};
use super::{AnyApplication, Measures};
use crate::quantiles::{MISSING, Times, round, same};
use crate::segment::{Payload, Segment};
use penstock_core::config::ConfigError;
pub use penstock_core::emodel::{PACKET_TIME, mos, rating};
use penstock_core::rng::Rng;
use penstock_core::units::{Instant, Span};
use penstock_grammar::range::{MAX_DURATION, within};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// UDP payload of a packet: 160 B of speech and 12 B of RTP.
const PAYLOAD: u16 = 172;
/// Mean durations of talk spurts and of pauses (ITU-T P.59).
pub const P59: (Span, Span) = (Span::from_millis(1004), Span::from_millis(1587));

/// Packets of a part of a call that has a score: ten seconds.
const PART: u32 = 500;
/// Smallest mean that talk spurts and pauses may have.
const SHORTEST: Span = Span::from_millis(1);

/// The settings of a call: how its speaker talks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Voip {
    /// Mean durations of talk spurts and of pauses; with `None` packets are sent all the time.
    pub spurts: Option<(Span, Span)>,
}

/// The keys of `kind = "voip"`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Keys {
    talk_spurts: Option<bool>,
    mean_on: Option<Span>,
    mean_off: Option<Span>,
}

impl Settings for Voip {
    type Keys = Keys;

    fn read(keys: Keys, _: &FlowFacts) -> Result<Self, ConfigError> {
        let named = keys.mean_on.is_some() || keys.mean_off.is_some();
        if named && keys.talk_spurts == Some(false) {
            let message = "`mean_on` and `mean_off` are those of talk spurts; leave them out";
            return Err(ConfigError::new("talk_spurts", message));
        }
        let (on, off) = (keys.mean_on.unwrap_or(P59.0), keys.mean_off.unwrap_or(P59.1));
        within("mean_on", &on, SHORTEST..=MAX_DURATION)?;
        within("mean_off", &off, SHORTEST..=MAX_DURATION)?;
        Ok(Self { spurts: (named || keys.talk_spurts == Some(true)).then_some((on, off)) })
    }
    fn keys(&self) -> Keys {
        let (mean_on, mean_off) = self.spurts.unzip();
        Keys { talk_spurts: None, mean_on, mean_off }
    }
}

impl Voip {
    /// Creates one direction of a call.
    pub fn build(&self, setup: &Setup<'_>) -> AnyApplication {
        AnyApplication::other(Call::new(*self, setup.stream("spurts")))
    }
}

/// One direction of a call, sender and receiver.
#[derive(Debug)]
struct Call {
    config: Voip,
    rng: Rng,
    sent: u32,
    talks_until: Instant,
    reception: Reception,
    scores: Scores,
}

/// The scores of parts of a call, each as if it were a call: what people hear changes while they talk.
#[derive(Debug, Clone, Default)]
struct Scores {
    /// Number of the part of which packets arrive, their delays, and how many they are.
    part: u32,
    delay: Times,
    received: u64,
    /// How many parts have each score, in hundredths.
    found: BTreeMap<u16, u64>,
}

impl Scores {
    /// Takes a packet that arrived.
    fn receive(&mut self, seq: u32, delay: Span) {
        while self.part < seq / PART {
            self.end();
        }
        if self.part == seq / PART {
            self.delay.record(delay);
            self.received += 1;
        }
    }

    /// Ends the part, whose score is the worst if nothing of it arrived.
    fn end(&mut self) {
        let r = best_playout(&self.delay, self.received, PART.into()).map_or(0.0, |(_, _, r)| r);
        *self.found.entry((mos(r) * 100.0).round() as u16).or_default() += 1;
        (self.part, self.delay, self.received) = (self.part + 1, Times::default(), 0);
    }
}

/// The quality of a call.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct VoipSummary {
    /// What became of the packets.
    #[serde(flatten)]
    pub delivery: Delivery,
    /// Time in milliseconds from the sending of a packet until it is played: the delay that gives the best `r`;
    /// missing if no packet arrived.
    #[schemars(with = "Option<f64>")]
    pub playout_ms: f64,
    /// Share of packets that arrived, but too late to be played; missing if no packet arrived.
    #[schemars(with = "Option<f64>")]
    pub late: f64,
    /// Transmission rating R of the E-model; missing if no packet was sent.
    #[schemars(with = "Option<f64>")]
    pub r: f64,
    /// Estimated mean opinion score, 1 to 4.5; missing if no packet was sent.
    #[schemars(with = "Option<f64>")]
    pub mos: f64,
}

impl PartialEq for VoipSummary {
    fn eq(&self, other: &Self) -> bool {
        let numbers = |one: &Self| [one.playout_ms, one.late, one.r, one.mos];
        self.delivery == other.delivery && numbers(self).into_iter().zip(numbers(other)).all(|(a, b)| same(a, b))
    }
}

impl Call {
    fn new(config: Voip, rng: Rng) -> Self {
        let (reception, scores) = Default::default();
        Self { config, rng, sent: 0, talks_until: Instant::ZERO, reception, scores }
    }

    /// Returns the packet to send now and the time of the next packet.
    fn send(&mut self, flow: u32, now: Instant) -> (Segment, Instant) {
        if let Some((talk, _)) = self.config.spurts
            && self.sent == 0
        {
            self.talks_until = now + self.draw(talk);
        }
        let packet = media::datagram(flow, Payload { seq: self.sent, len: PAYLOAD }, now);
        self.sent = self.sent.wrapping_add(1);
        let mut next = now + PACKET_TIME;
        if let Some((talk, pause)) = self.config.spurts
            && next >= self.talks_until
        {
            next += self.draw(pause);
            self.talks_until = next + self.draw(talk);
        }
        (packet, next)
    }

    fn draw(&mut self, mean: Span) -> Span {
        Span::from_secs_f64(self.rng.exponential(mean.as_secs_f64()))
    }

    fn summary(&self) -> VoipSummary {
        let delivery = self.reception.delivery(self.sent.into());
        let reception = &self.reception;
        let best = best_playout(&reception.delay, reception.received, reception.expected());
        // Who hears nothing of a call gives it the worst rating; of one that nobody makes there is nothing to rate.
        let r = best.map_or(if self.sent > 0 { 0.0 } else { MISSING }, |(_, _, r)| r);
        VoipSummary {
            delivery,
            playout_ms: best.map_or(MISSING, |(playout, _, _)| round(playout.as_millis_f64())),
            late: best.map_or(MISSING, |(_, late, _)| round(late)),
            r: round(r),
            mos: if r.is_nan() { MISSING } else { round(mos(r)) },
        }
    }
}

impl Application for Call {
    fn wake(&mut self, host: &mut Host<'_>) -> Option<Instant> {
        let (packet, next) = self.send(host.flow, host.now);
        host.send(packet);
        Some(next)
    }

    fn receive(&mut self, packet: &Segment, host: &mut Host<'_>) {
        if let Some(delay) = self.reception.receive(packet, host.now) {
            self.scores.receive(packet.seq, delay);
        }
    }

    fn delivered(&self) -> u64 {
        self.reception.bytes
    }

    fn measures(&self) -> Measures {
        Measures::Voip(self.summary())
    }

    fn felt(&self) -> Vec<Felt> {
        let mut all = self.scores.clone();
        while all.part < self.sent / PART {
            all.end();
        }
        let scores = all.found.into_iter().map(|(score, count)| (f64::from(score) / 100.0, count));
        vec![
            Felt::of(Feeling::CallDelay, &self.reception.delay),
            Felt { what: Feeling::CallScore, counted: scores.collect() },
            Felt::of(Feeling::Gap, &self.reception.gaps),
        ]
    }

    fn bytes(&self) -> usize {
        let times = [&self.reception.delay, &self.reception.gaps, &self.scores.delay];
        size_of::<Self>() + times.map(|times| times.digest.heap_bytes()).iter().sum::<usize>()
    }
}

/// Returns the playout delay that gives the best rating, the share of packets that are too late for it, and the rating;
/// nothing if no packet arrived.
fn best_playout(delays: &Times, received: u64, expected: u64) -> Option<(Span, f64, f64)> {
    let expected = expected as f64;
    let mut in_time = 0;
    let candidates = delays.digest.buckets().into_iter().map(|(delay, count)| {
        in_time += count;
        let late = (received - in_time) as f64 / expected;
        (delay, late, rating(delay + PACKET_TIME, 1.0 - in_time as f64 / expected))
    });
    candidates.max_by(|a, b| a.2.total_cmp(&b.2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::rng::Streams;

    /// Ten seconds of 20 ms, ten of 400 ms, ten of which nothing arrives, and ten that are not over.
    #[test]
    fn parts_of_a_call_have_scores_of_their_own() {
        let mut scores = Scores::default();
        (0..PART).for_each(|seq| scores.receive(seq, Span::from_millis(20)));
        (PART..2 * PART).for_each(|seq| scores.receive(seq, Span::from_millis(400)));
        (3 * PART..3 * PART + 9).for_each(|seq| scores.receive(seq, Span::from_millis(20)));
        let found: Vec<_> = scores.found.into_iter().collect();
        let score = |ms: u64| (mos(rating(Span::from_millis(ms + 20), 0.0)) * 100.0).round() as u16;
        assert_eq!(found.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [1, 1, 1]);
        assert_eq!(found[0].0, 100, "of silence");
        assert!(found[1].0.abs_diff(score(400)) <= 2 && found[2].0.abs_diff(score(20)) <= 2, "{found:?}");
    }

    fn call(delays_ms: &[u64]) -> Call {
        let mut call = Call::new(Voip { spurts: None }, Streams::new(1).get("call"));
        let mut now = Instant::ZERO;
        for delay in delays_ms {
            let (packet, next) = call.send(0, now);
            call.reception.receive(&packet, now + Span::from_millis(*delay));
            now = next;
        }
        call
    }

    /// If one of 1000 packets comes 500 ms late, losing it (0.38) costs less than waiting for it (51). If half of the
    /// packets take 10 ms and half 60 ms, waiting 50 ms more (1.2) costs less than losing half of them (63).
    #[test]
    fn the_best_playout_delay_weighs_delay_against_loss() {
        let mut delays = vec![10; 1000];
        delays[500] = 510;
        let rare = call(&delays).summary();
        assert!((9.9..10.3).contains(&rare.playout_ms), "{rare:?}");
        assert_eq!(rare.late, 0.001);
        let halves: Vec<u64> = (0..1000).map(|i| if i % 2 == 0 { 10 } else { 60 }).collect();
        let halves = call(&halves).summary();
        assert!((59.0..61.0).contains(&halves.playout_ms), "{halves:?}");
        assert_eq!(halves.late, 0.0);
        assert!((halves.r - (93.2 - 0.024 * 80.0)).abs() < 0.03, "{halves:?}");
    }

    #[test]
    fn a_call_that_nobody_hears_has_the_worst_score() {
        let mut call = call(&[]);
        let of_none = call.summary();
        assert!(of_none.r.is_nan() && of_none.mos.is_nan(), "{of_none:?}");
        let _ = call.send(0, Instant::ZERO);
        let summary = call.summary();
        assert_eq!((summary.r, summary.mos), (0.0, 1.0));
        assert!(summary.playout_ms.is_nan() && summary.late.is_nan(), "{summary:?}");
    }

    #[test]
    fn a_packet_is_200_bytes_50_times_a_second() {
        use penstock_core::packet::Packet;
        let mut call = Call::new(Voip { spurts: None }, Streams::new(1).get("call"));
        let (packet, next) = call.send(3, Instant::ZERO);
        assert_eq!((packet.size().get(), packet.flow, next), (200, 3, Instant::ZERO + Span::from_millis(20)));
    }

    /// A spurt of exponential length T has ceil(T / 20 ms) packets, which is 1 / (1 - exp(-20/1004)) in the mean. The
    /// time from spurt to spurt is 20 ms for each of these packets plus the pause. Both are nearly exponential, so the
    /// mean of n values has a relative error of 1/sqrt(n); the bound is five times that.
    #[test]
    fn talk_spurts_have_the_means_of_p59() {
        let mut call = Call::new(Voip { spurts: Some(P59) }, Streams::new(1).get("call"));
        let (mut now, mut spurts, packets) = (Instant::ZERO, 1u32, 200_000u32);
        for _ in 0..packets {
            let (_, next) = call.send(0, now);
            spurts += u32::from(next.since(now) > PACKET_TIME);
            now = next;
        }
        let per_spurt = 1.0 / (1.0 - (-20.0f64 / 1004.0).exp());
        let (mean, n) = (f64::from(packets) / f64::from(spurts), f64::from(spurts));
        assert!((mean / per_spurt - 1.0).abs() < 5.0 / n.sqrt(), "{mean} packets per spurt, not {per_spurt}");
        let pauses = now.as_secs_f64() - f64::from(packets) * 0.02;
        assert!((pauses / n / 1.587 - 1.0).abs() < 5.0 / n.sqrt(), "{} s of pause", pauses / n);
    }

    /// Two packets that take 20 ms are in one bucket of 16 bits, and the gap between them is in another.
    #[test]
    fn the_memory_of_a_call_grows_with_its_digest() {
        assert_eq!(call(&[]).bytes(), size_of::<Call>());
        assert_eq!(call(&[20, 20]).bytes(), size_of::<Call>() + 2 * size_of::<u16>());
    }
}
