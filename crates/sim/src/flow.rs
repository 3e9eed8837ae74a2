//! Flows: the traffic of one application between two hosts, with its endpoints and what is measured of it.

use crate::actors::{sessions::Sessions, sizes::Mix, video::Stream, voip::Call};
use crate::digest::Digest;
use crate::segment::{Segment, SynOptions};
use crate::tcp::Endpoint;
use penstock_core::packet::TcpFlags;
use penstock_core::rng::Rng;
use penstock_core::units::{Bytes, Instant, Rate, Serializer, Span};

/// What the application does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Kind {
    /// Sends as much as TCP lets it.
    Bulk,
    /// Sends this many bytes, then closes.
    Transfer(Bytes),
    /// UDP at a constant rate.
    Cbr,
    /// SYNs of forged sources, so many per second, never followed by anything.
    SynFlood(u32),
    /// UDP at a constant rate during exponential on-times (means of on and off).
    OnOff(Span, Span),
    /// TCP transfers one after the other, with idle times between.
    Http,
    /// TCP transfers that arrive at random.
    Web,
    /// A call over UDP.
    Voip,
    /// Video frames over UDP.
    Video,
}

impl Kind {
    /// The word of scenarios and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::Transfer(_) => "transfer",
            Self::Cbr => "cbr",
            Self::SynFlood(_) => "synflood",
            Self::OnOff(..) => "onoff",
            Self::Http => "http",
            Self::Web => "web",
            Self::Voip => "voip",
            Self::Video => "video",
        }
    }
}

/// A UDP source.
#[derive(Debug, Clone)]
pub struct UdpSource {
    clock: Serializer,
    payload: u16,
    /// Packets of several sizes, in place of `payload`.
    mix: Option<Box<Mix>>,
    next_seq: u32,
    received: u64,
    rng: Rng,
    /// End of the current on-time.
    on_until: Instant,
}

impl UdpSource {
    /// A source whose IP packets, with `payload` bytes each, come at `rate` while it is on.
    pub fn new(rate: Rate, payload: u16, rng: Rng) -> Self {
        let clock = Serializer::new(rate);
        Self { clock, payload, mix: None, next_seq: 0, received: 0, rng, on_until: Instant::ZERO }
    }

    /// Like this one, with packets of several sizes.
    pub fn with_mix(self, mix: Mix) -> Self {
        Self { mix: Some(Box::new(mix)), ..self }
    }

    /// The datagram to send now and the time of the next.
    pub fn send(&mut self, kind: Kind, flow: u32, now: Instant) -> (Segment, Instant) {
        if let Kind::OnOff(on, _) = kind
            && self.on_until == Instant::ZERO
        {
            self.on_until = now + self.draw(on);
        }
        let payload = self.mix.as_mut().map_or(self.payload, |mix| mix.draw());
        let packet = Segment::udp(flow, self.next_seq, payload);
        self.next_seq = self.next_seq.wrapping_add(1);
        let mut next = now + self.clock.send(penstock_core::packet::Packet::size(&packet));
        if let Kind::OnOff(on, off) = kind {
            while next >= self.on_until {
                next = next.max(self.on_until) + self.draw(off);
                self.on_until = next + self.draw(on);
            }
        }
        (packet, next)
    }

    fn draw(&mut self, mean: Span) -> Span {
        // At least a nanosecond, so that a chain of on and off times always moves forward.
        Span::from_secs_f64(self.rng.exponential(mean.as_secs_f64())).max(Span::from_nanos(1))
    }

    /// A datagram arrived at the other end.
    pub fn receive(&mut self, packet: &Segment) {
        self.received += u64::from(packet.len);
    }
}

/// Sources that a flood forges before it begins anew: what a table of flows with this many entries would see as new.
pub const FORGED: u32 = 1 << 15;

/// A source of SYNs, each of a connection of its own.
#[derive(Debug, Clone)]
pub struct SynFlood {
    gap: Span,
    /// The first of its connections: a number that no flow has.
    first: u32,
    sent: u32,
}

impl SynFlood {
    /// A flood of `per_second` SYNs.
    pub fn new(per_second: u32, first: u32) -> Self {
        Self { gap: Span::from_nanos(1_000_000_000 / u64::from(per_second.max(1))), first, sent: 0 }
    }

    /// The SYN to send now and the time of the next.
    pub fn send(&mut self, now: Instant) -> (Segment, Instant) {
        let mut syn = Segment::tcp(self.first + self.sent % FORGED, true, TcpFlags::SYN);
        syn.seq = self.sent.wrapping_mul(64_000); // as far apart as initial sequence numbers are
        syn.set_syn_options(SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true });
        syn.window = u16::MAX;
        self.sent = self.sent.wrapping_add(1);
        (syn, now + self.gap)
    }

    /// What the server answers: nobody will take it.
    pub fn answer(syn: &Segment) -> Segment {
        let mut answer = Segment::tcp(syn.flow, false, TcpFlags::SYN.with(TcpFlags::ACK));
        (answer.seq, answer.ack) = (!syn.seq, syn.seq.wrapping_add(1));
        answer.set_syn_options(SynOptions { mss: 1460, window_scale: Some(7), sack_permitted: true });
        answer.window = u16::MAX;
        answer
    }
}

/// The two ends of a flow.
#[allow(clippy::large_enum_variant)] // nearly every flow is TCP: a box would cost a cache miss and save nothing
#[derive(Debug)]
pub enum Transport {
    /// A TCP connection: client, server.
    Tcp(Endpoint, Endpoint),
    /// A UDP source and its sink.
    Udp(UdpSource),
    /// A source of SYNs.
    Flood(SynFlood),
    /// TCP connections that are opened and closed while the run goes on.
    Sessions(Box<Sessions>),
    /// One direction of a call, over UDP.
    Voip(Box<Call>),
    /// A stream of video frames, over UDP.
    Video(Box<Stream>),
}

/// One flow.
#[derive(Debug)]
pub struct Flow {
    /// What the application does.
    pub kind: Kind,
    /// When the application begins.
    pub start: Instant,
    /// When it stops; `Instant::MAX` is never.
    pub stop: Instant,
    /// Its ends.
    pub transport: Transport,
    /// First entries in the table of routes: from the client, from the server.
    pub routes: [u32; 2],
    /// Round trip times seen by the client.
    pub rtt: Digest,
    /// When all was delivered; `Instant::MAX` is not yet.
    pub completed: Instant,
    /// Bytes delivered up to the last full second.
    pub counted: u64,
}

impl Flow {
    /// The client's or the server's side of a flow of one connection.
    #[inline]
    pub fn endpoint(&mut self, server: bool) -> Option<&mut Endpoint> {
        match &mut self.transport {
            Transport::Tcp(_, endpoint) if server => Some(endpoint),
            Transport::Tcp(endpoint, _) => Some(endpoint),
            _ => None,
        }
    }

    /// Payload bytes delivered to the application.
    pub fn delivered(&self) -> u64 {
        match &self.transport {
            Transport::Tcp(_, server) => server.delivered(),
            Transport::Udp(source) => source.received,
            Transport::Flood(_) => 0,
            Transport::Sessions(sessions) => sessions.delivered,
            Transport::Voip(call) => call.reception.bytes,
            Transport::Video(stream) => stream.reception.bytes,
        }
    }

    /// Congestion window of the client in bytes; zero for what is not one TCP connection.
    pub fn cwnd(&self) -> u64 {
        match &self.transport {
            Transport::Tcp(client, _) => client.windows().0,
            _ => 0,
        }
    }

    /// Congestion control; empty for UDP.
    pub fn cc(&self) -> &str {
        match &self.transport {
            Transport::Tcp(client, _) => client.cc_name(),
            Transport::Sessions(sessions) => sessions.cc_name(),
            Transport::Udp(_) | Transport::Flood(_) | Transport::Voip(_) | Transport::Video(_) => "",
        }
    }

    /// Bytes of state on the heap.
    pub fn heap_bytes(&self) -> usize {
        let ends = match &self.transport {
            Transport::Tcp(client, server) => client.heap_bytes() + server.heap_bytes(),
            Transport::Udp(_) | Transport::Flood(_) => 0,
            Transport::Sessions(sessions) => sessions.heap_bytes(),
            Transport::Voip(call) => size_of::<Call>() + call.reception.delay.digest.heap_bytes(),
            Transport::Video(stream) => size_of::<Stream>() + stream.heap_bytes(),
        };
        ends + self.rtt.heap_bytes()
    }

    /// True if the flow sent, or could have, during all of `[from, to]`.
    pub fn active_throughout(&self, from: Instant, to: Instant) -> bool {
        self.start <= from && self.completed.min(self.stop) >= to
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Memory per flow has a bar, and nearly every flow is a plain connection: all else is in boxes.
    #[test]
    fn a_flow_is_two_endpoints_and_little_else() {
        assert!(size_of::<Transport>() <= 2 * size_of::<Endpoint>() + size_of::<usize>());
        assert!(size_of::<Kind>() <= 3 * size_of::<u64>());
        let others = size_of::<Kind>() + size_of::<Digest>() + 5 * size_of::<u64>();
        assert!(size_of::<Flow>() <= size_of::<Transport>() + others);
    }
}
