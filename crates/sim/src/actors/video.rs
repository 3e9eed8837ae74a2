//! Real-time video: frames at a fixed rate, each sent as a burst of datagrams.
//!
//! A group of pictures begins with an I-frame, which is `i_ratio` times as large as the other frames; the mean of the
//! group gives the rate asked for. The size of every frame varies by a lognormal factor of mean 1. (RFC 8593 §5 models
//! encoders in the same way: frame sizes vary around a target, and some frames are large.) All datagrams of a frame are
//! given to the access link at once, which makes video bursty for a queue (RFC 7928 §7.2).
//!
//! A frame is played if all of its datagrams arrive before its deadline. The dependence of frames on lost frames is not
//! modelled.

use super::application::{Application, Feeling, Felt, Host, Setup};
use super::media::{self, Delivery, Reception};
use super::settings::{FlowFacts, Settings};
use super::sizes::{self, OneOrMore};
use super::{AnyApplication, Measures};
use crate::quantiles::Quantiles;
use crate::quantiles::Times;
use crate::segment::{Payload, Segment};
use penstock_core::config::ConfigError;
use penstock_core::rng::Rng;
use penstock_core::units::{Bytes, Instant, Rate, Span};
use penstock_grammar::link;
use penstock_grammar::range::{MAX_DURATION, within};
use serde::{Deserialize, Serialize};

/// Bytes of the RTP header before each part of a frame (RFC 3550 §5.1).
const RTP_HEADER: u16 = 12;
/// Largest number of datagrams of a frame, which is counted in 16 bits.
const MAX_PARTS: u64 = u16::MAX as u64;

/// The settings of the encoder and of the player.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Video {
    /// Mean rate of the frames, without headers.
    pub rate: Rate,
    /// Frames per second.
    pub fps: f64,
    /// Number of frames from one I-frame to the next.
    pub gop: u32,
    /// Size of an I-frame divided by that of the other frames.
    pub i_ratio: f64,
    /// Standard deviation of the logarithm of a frame's size.
    pub spread: f64,
    /// Payload of a datagram, RTP header included.
    pub packet_size: Bytes,
    /// Longest time from the sending of a frame until all of it has arrived; a later frame is not played.
    pub deadline: Span,
}

/// The keys of `kind = "video"`.
#[derive(Debug, Clone, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Keys {
    rate: Rate,
    fps: Option<f64>,
    gop: Option<u32>,
    i_frame_ratio: Option<f64>,
    spread: Option<f64>,
    packet_size: Option<OneOrMore>,
    deadline: Option<Span>,
}

impl Settings for Video {
    type Keys = Keys;
    const NEEDED: &'static [&'static str] = &["rate"];

    fn read(keys: Keys, _: &FlowFacts) -> Result<Self, ConfigError> {
        link::rate("rate", keys.rate)?;
        let gop = keys.gop.unwrap_or(25);
        if !(1..=10_000).contains(&gop) {
            return Err(ConfigError::new("gop", "a group of pictures has 1 to 10000 frames"));
        }
        let packet_size = match keys.packet_size.as_ref().map(|sizes| sizes.0.as_slice()) {
            None => Bytes::new(1200),
            Some([size]) if (100..=65_000).contains(&size.get()) => *size,
            Some(_) => {
                let message = "a packet of video carries 100B to 65kB, all the same";
                return Err(ConfigError::new("packet_size", message));
            }
        };
        let number = |key, value: Option<f64>, default, allowed| {
            let value = value.unwrap_or(default);
            within(key, &value, allowed).map(|()| value)
        };
        let deadline = keys.deadline.unwrap_or(Span::from_millis(150));
        let video = Self {
            rate: keys.rate,
            fps: number("fps", keys.fps, 25.0, 1.0..=1000.0)?,
            gop,
            i_ratio: number("i_frame_ratio", keys.i_frame_ratio, 5.0, 1.0..=100.0)?,
            spread: number("spread", keys.spread, 0.2, 0.0..=2.0)?,
            packet_size,
            deadline,
        };
        within("deadline", &deadline, Span::from_millis(1)..=MAX_DURATION)?;
        if video.largest_mean() > video.largest_frame() {
            let message = "a frame has at most 65535 packets: lower `rate`, raise `fps` or `packet_size`";
            return Err(ConfigError::new("rate", message));
        }
        Ok(video)
    }
    fn keys(&self) -> Keys {
        Keys {
            rate: self.rate,
            fps: Some(self.fps),
            gop: Some(self.gop),
            i_frame_ratio: Some(self.i_ratio),
            spread: Some(self.spread),
            packet_size: Some(OneOrMore(vec![self.packet_size])),
            deadline: Some(self.deadline),
        }
    }
}

impl Video {
    /// Creates the source of frames and the player.
    pub fn build(&self, setup: &Setup<'_>) -> AnyApplication {
        AnyApplication::other(Stream::new(*self, setup.stream("frames")))
    }

    /// Returns the mean size of all frames, in bytes.
    pub fn mean_frame(&self) -> f64 {
        self.rate.bytes_per_sec() / self.fps
    }

    /// Returns the mean size of I-frames or of the other frames, in bytes. A group has one I-frame.
    fn mean_of(&self, i_frame: bool) -> f64 {
        let other = self.mean_frame() * f64::from(self.gop) / (self.i_ratio + f64::from(self.gop - 1));
        if i_frame { other * self.i_ratio } else { other }
    }

    /// Returns the mean size of the larger kind of frames, in bytes.
    pub fn largest_mean(&self) -> f64 {
        self.mean_of(true)
    }

    /// Returns the largest number of bytes that fit into the datagrams of one frame.
    pub fn largest_frame(&self) -> f64 {
        (self.body() * MAX_PARTS) as f64
    }

    /// Returns the number of bytes of a frame in a full datagram.
    fn body(&self) -> u64 {
        self.packet_size.get() - u64::from(RTP_HEADER)
    }

    fn interval(&self) -> Span {
        Span::from_secs_f64(1.0 / self.fps)
    }
}

/// A source of frames and the player at the other end.
#[derive(Debug)]
struct Stream {
    config: Video,
    rng: Rng,
    frames_sent: u32,
    packets_sent: u32,
    reception: Reception,
    player: Player,
}

/// The datagrams of one frame, as an iterator.
#[derive(Debug, Clone, Copy)]
struct Frame {
    flow: u32,
    number: u32,
    first: u32,
    /// Number of datagrams of the frame, and how many of them were sent.
    parts: u16,
    taken: u16,
    bytes: u64,
    /// Bytes of the frame in a full datagram.
    body: u64,
    at: Instant,
}

impl Iterator for Frame {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        if self.taken == self.parts {
            return None;
        }
        let body = self.bytes.min(self.body);
        self.bytes -= body;
        let seq = self.first.wrapping_add(self.taken.into());
        let mut packet = media::datagram(self.flow, Payload { seq, len: body as u16 + RTP_HEADER }, self.at);
        // The number of the frame and of its datagrams are in header fields that UDP does not use.
        (packet.ack, packet.window) = (self.number, self.parts);
        self.taken += 1;
        Some(packet)
    }
}

/// Assembles frames. The datagrams of a flow arrive in order.
#[derive(Debug, Default)]
struct Player {
    /// The last frame of which a datagram arrived: its number, its number of datagrams, and how many of them arrived.
    frame: u32,
    parts: u16,
    arrived: u16,
    played: u64,
    late: u64,
    delay: Times,
    /// The times between two frames that were played one after the other, and when the last one was.
    gaps: Times,
    last_played: Option<Instant>,
}

impl Player {
    fn receive(&mut self, packet: &Segment, now: Instant, delay: Span, deadline: Span) {
        if packet.ack != self.frame {
            self.arrived = 0;
        }
        (self.frame, self.parts, self.arrived) = (packet.ack, packet.window, self.arrived + 1);
        if self.arrived == self.parts {
            self.delay.record(delay);
            if delay > deadline {
                self.late += 1;
                return;
            }
            self.played += 1;
            if let Some(last) = self.last_played.replace(now) {
                self.gaps.record(now.since(last));
            }
        }
    }

    /// Returns the number of incomplete frames before the last one, which may still be completed.
    fn lost(&self) -> u64 {
        let last_is_whole = self.parts > 0 && self.arrived == self.parts;
        u64::from(self.frame) + u64::from(last_is_whole) - self.played - self.late
    }
}

/// The number of frames by what became of them.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Frames {
    /// Number of frames sent.
    pub sent: u64,
    /// Number of frames that were complete before their deadline.
    pub played: u64,
    /// Number of frames that were complete after their deadline.
    pub late: u64,
    /// Number of incomplete frames, among those before the last of which a datagram arrived.
    pub lost: u64,
    /// Time in milliseconds from the sending of a frame until it was complete.
    pub delay_ms: Quantiles,
}

/// The results of a video stream.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct VideoSummary {
    /// What became of the datagrams.
    #[serde(flatten)]
    pub delivery: Delivery,
    /// What became of the frames.
    pub frames: Frames,
}

impl Stream {
    fn new(config: Video, rng: Rng) -> Self {
        let (reception, player) = Default::default();
        Self { config, rng, frames_sent: 0, packets_sent: 0, reception, player }
    }

    /// Returns the frame to send now and the time of the next frame.
    fn send(&mut self, flow: u32, now: Instant) -> (Frame, Instant) {
        let config = &self.config;
        let mean = config.mean_of(self.frames_sent.is_multiple_of(config.gop));
        let body = config.body();
        let drawn = (mean * sizes::lognormal(&mut self.rng, config.spread)).round() as u64;
        let bytes = drawn.clamp(1, body * MAX_PARTS);
        let frame = Frame {
            flow,
            number: self.frames_sent,
            first: self.packets_sent,
            parts: bytes.div_ceil(body) as u16,
            taken: 0,
            bytes,
            body,
            at: now,
        };
        self.frames_sent = self.frames_sent.wrapping_add(1);
        self.packets_sent = self.packets_sent.wrapping_add(frame.parts.into());
        (frame, now + config.interval())
    }

    /// Takes a datagram that arrived at the other end.
    fn take(&mut self, packet: &Segment, now: Instant) {
        if let Some(delay) = self.reception.receive(packet, now) {
            self.player.receive(packet, now, delay, self.config.deadline);
        }
    }

    fn summary(&self) -> VideoSummary {
        let player = &self.player;
        VideoSummary {
            delivery: self.reception.delivery(self.packets_sent.into()),
            frames: Frames {
                sent: self.frames_sent.into(),
                played: player.played,
                late: player.late,
                lost: player.lost(),
                delay_ms: player.delay.quantiles_ms(),
            },
        }
    }
}

impl Application for Stream {
    fn wake(&mut self, host: &mut Host<'_>) -> Option<Instant> {
        let (frame, next) = self.send(host.flow, host.now);
        frame.for_each(|packet| host.send(packet));
        Some(next)
    }

    fn receive(&mut self, packet: &Segment, host: &mut Host<'_>) {
        self.take(packet, host.now);
    }

    fn delivered(&self) -> u64 {
        self.reception.bytes
    }

    fn measures(&self) -> Measures {
        Measures::Video(self.summary())
    }

    fn felt(&self) -> Vec<Felt> {
        vec![Felt::of(Feeling::Gap, &self.player.gaps)]
    }

    fn bytes(&self) -> usize {
        let (reception, player) = (&self.reception, &self.player);
        let times = [&reception.delay, &reception.gaps, &player.delay, &player.gaps];
        size_of::<Self>() + times.map(|times| times.digest.heap_bytes()).iter().sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::rng::Streams;

    fn video(spread: f64) -> Video {
        Video {
            rate: Rate::from_bps(2_000_000),
            fps: 25.0,
            gop: 10,
            i_ratio: 6.0,
            spread,
            packet_size: Bytes::new(1212),
            deadline: Span::from_millis(150),
        }
    }

    fn stream(config: Video) -> Stream {
        Stream::new(config, Streams::new(1).get("video"))
    }

    fn bytes(frame: Frame) -> u64 {
        frame.map(|packet| u64::from(packet.len - RTP_HEADER)).sum()
    }

    /// 2 Mbit/s at 25 frames per second are 10 kB per frame. A group of one I-frame and nine others has 100 kB, divided
    /// into 6 + 9 shares.
    #[test]
    fn a_group_of_pictures_has_one_large_frame_and_the_rate_asked_for() {
        let mut stream = stream(video(0.0));
        let mut now = Instant::ZERO;
        let sizes: Vec<u64> = (0..20)
            .map(|_| {
                let (frame, next) = stream.send(0, now);
                now = next;
                bytes(frame)
            })
            .collect();
        assert_eq!(sizes[..10], [40_000, 6_667, 6_667, 6_667, 6_667, 6_667, 6_667, 6_667, 6_667, 6_667]);
        assert_eq!(sizes[..10], sizes[10..]);
        assert_eq!(now, Instant::ZERO + Span::from_millis(800));
    }

    /// A frame of 40 kB in parts of 1200 B has 33 full parts and one of 400 B, each with 12 B of RTP.
    #[test]
    fn a_frame_is_cut_into_numbered_datagrams() {
        let mut stream = stream(video(0.0));
        let packets: Vec<Segment> = stream.send(7, Instant::ZERO).0.collect();
        assert_eq!(packets.len(), 34);
        assert!(packets.iter().enumerate().all(|(i, p)| (p.flow, p.seq, p.window) == (7, i as u32, 34)));
        assert_eq!((packets[32].len, packets[33].len), (1212, 412));
        let (next, _) = stream.send(7, Instant::ZERO);
        assert_eq!(next.map(|p| (p.ack, p.seq)).next(), Some((1, 34)));
    }

    /// The standard deviation of a lognormal factor of spread 0.4 is sqrt(exp(0.16) - 1) = 0.417.
    #[test]
    fn frames_scatter_and_the_rate_stays() {
        let mut stream = stream(Video { gop: 1, i_ratio: 1.0, ..video(0.4) });
        let n = 20_000;
        let mean = (0..n).map(|_| bytes(stream.send(0, Instant::ZERO).0)).sum::<u64>() as f64 / f64::from(n);
        assert!((mean / 10_000.0 - 1.0).abs() < 5.0 * 0.417 / f64::from(n).sqrt(), "{mean}");
    }

    /// Frame 0 is complete after 20 ms, frame 1 lacks its second datagram, frame 2 is lost, frame 3 is complete too
    /// late, and of frame 4 only a part has arrived.
    #[test]
    fn frames_are_played_late_or_lost() {
        let mut stream = stream(Video { gop: 1, i_ratio: 1.0, ..video(0.0) });
        let mut now = Instant::ZERO;
        for number in 0..5 {
            let (frame, next) = stream.send(0, now);
            let delay = Span::from_millis(if number == 3 { 151 } else { 20 });
            let arrives = |(i, _): &(usize, Segment)| match number {
                1 => *i != 1,
                2 => false,
                4 => *i < 3,
                _ => true,
            };
            for (_, packet) in frame.enumerate().filter(arrives) {
                stream.take(&packet, now + delay);
            }
            now = next;
        }
        let frames = stream.summary().frames;
        assert_eq!((frames.sent, frames.played, frames.late, frames.lost), (5, 1, 1, 2));
        assert_eq!(frames.delay_ms.max, 151.0);
        // A frame has 9 datagrams. The six datagrams of frame 4 that did not arrive come after the last one that did,
        // so they do not count as lost.
        assert_eq!((stream.summary().delivery.sent, stream.summary().delivery.lost), (45, 10));
    }

    #[test]
    fn of_a_stream_of_which_nothing_arrived_no_frame_is_known_to_be_lost() {
        assert_eq!(Player::default().lost(), 0);
    }

    /// All datagrams and the frame take 20 ms: a bucket of 16 bits in each digest, and one of the gaps between datagrams.
    #[test]
    fn the_memory_of_a_stream_grows_with_its_digests() {
        let mut stream = stream(video(0.0));
        assert_eq!(stream.bytes(), size_of::<Stream>());
        let (frame, _) = stream.send(0, Instant::ZERO);
        frame.for_each(|packet| stream.take(&packet, Instant::ZERO + Span::from_millis(20)));
        assert_eq!(stream.bytes(), size_of::<Stream>() + 3 * size_of::<u16>());
    }
}
