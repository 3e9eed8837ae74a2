//! One side of a connection: handshake, close and timers (RFC 9293 §3.3, §3.5, §3.6), with a sender and a receiver.
//!
//! To drive an endpoint, give it segments ([`Endpoint::on_segment`]) and call [`Endpoint::on_timer`] at or after
//! [`Endpoint::deadline`]. After each of these calls, call [`Endpoint::transmit`] until it returns no more segments.

use super::accecn::Negotiation;
use super::config::TcpConfig;
use super::ecn;
use super::peer::Greeting;
use super::receiver::Receiver;
use super::scone::Scone;
use super::sender::{Next, Sender};
use super::sequence::timestamp;
use super::silent::Half;
use crate::segment::Segment;
use penstock_core::cc::{Advice, CongestionControl};
use penstock_core::packet::{Ecn, TcpFlags, Timestamps};
use penstock_core::units::{Instant, Rate, Span};
use std::sync::Arc;

mod greeting;
mod observed;
mod refused;

/// How often a SYN or SYN-ACK is retransmitted before the connection is given up (`tcp_syn_retries` of Linux).
const MAX_GREETING_RETRIES: u16 = 6;

/// How many timeouts of a SYN do not double the next one, in the kernel's form (`tcp_syn_linear_timeouts`).
const LINEAR_GREETINGS: u16 = 4;

/// The side of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The side that opens the connection.
    Client,
    /// The side that accepts the connection.
    Server,
}

impl Role {
    /// Returns the side to which a segment is sent.
    #[inline(always)]
    pub fn receiver_of(segment: &Segment) -> Self {
        if segment.from_client() { Self::Server } else { Self::Client }
    }
}

/// The state of the handshake. The states of closing are in the two halves, see [`Endpoint::is_done`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// There is no connection, or it was reset.
    Closed,
    /// The server waits for a SYN.
    Listen,
    /// The client has sent its SYN.
    SynSent,
    /// A SYN was received and answered.
    SynReceived,
    /// The handshake is complete.
    Established,
}

/// What an endpoint is about to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outgoing {
    /// Data, or a probe of the peer's window.
    Data(Next),
    /// An ACK without data.
    Ack,
    /// A SYN or SYN-ACK.
    Greeting,
    /// A reset.
    Reset,
}

/// One side of a connection, with both its halves.
#[derive(Debug, Clone)]
pub struct Endpoint {
    config: Arc<TcpConfig>,
    flow: u32,
    role: Role,
    state: State,
    iss: u32,
    half: Half,
    receiver: Receiver,
    /// True if a SYN or SYN-ACK must be sent.
    greet: bool,
    /// When the SYN or SYN-ACK must be retransmitted; `Instant::MAX` means never.
    greeted_at: Instant,
    greetings: u16,
    timestamps: bool,
    scaling: bool,
    ecn: bool,
    /// The ECN field of every segment; one that carries new data has ECT also if this is Not-ECT and ECN is in use.
    ect: Ecn,
    close_with_peer: bool,
    /// The peer has closed before this side.
    closed_last: bool,
    /// What most connections never have; `None` as long as there is none of it.
    rare: Option<Box<Rare>>,
}

/// State of an endpoint that most connections do not have.
#[derive(Debug, Clone, Default)]
struct Rare {
    /// The handshake of Accurate ECN, until it is over; `None` if it is not asked for.
    negotiation: Option<Negotiation>,
    /// A reset that must be sent.
    reset: Option<Segment>,
    /// Throughput advice of a flow that stands for one of QUIC; `None` for TCP.
    scone: Option<Scone>,
}

impl Endpoint {
    /// Creates a closed client or a listening server with this initial sequence number.
    pub fn new(config: Arc<TcpConfig>, flow: u32, role: Role, iss: u32) -> Self {
        let state = if role == Role::Client { State::Closed } else { State::Listen };
        let half = Half::new(&config, iss, role == Role::Client);
        let requirements = match &half {
            Half::Active(sender) => sender.needs.as_ref().map(|needs| needs.requirements),
            Half::Silent(_) => None,
        };
        let kernel = matches!(&half, Half::Active(sender) if sender.is_kernel());
        Self {
            flow,
            role,
            state,
            iss,
            receiver: Receiver::new(&config, 0, 0),
            greet: false,
            greeted_at: Instant::MAX,
            greetings: 0,
            timestamps: config.timestamps,
            scaling: config.window_scaling,
            ecn: config.ecn,
            ect: ecn::of_every_segment(&config, requirements),
            half,
            rare: (config.accurate_ecn || config.scone.is_some()).then(|| {
                let negotiation = config.accurate_ecn.then(|| Negotiation::new(kernel));
                Box::new(Rare { negotiation, reset: None, scone: config.scone.map(Scone::new) })
            }),
            close_with_peer: role == Role::Server,
            closed_last: false,
            config,
        }
    }

    /// Returns the handshake of Accurate ECN; `None` if it is over or was not asked for.
    fn negotiation(&mut self) -> Option<&mut Negotiation> {
        self.rare.as_mut()?.negotiation.as_mut()
    }

    /// Returns the throughput advice; `None` for TCP.
    #[inline]
    fn scone(&self) -> Option<&Scone> {
        self.rare.as_ref()?.scone.as_ref()
    }

    /// Sends a reset.
    fn reset(&mut self, reset: Segment) {
        self.rare.get_or_insert_default().reset = Some(reset);
    }

    /// Returns what `ask` makes of the sender.
    fn ask<T>(&self, ask: impl FnOnce(&Sender) -> T) -> T {
        match &self.half {
            Half::Active(sender) => ask(sender),
            Half::Silent(silent) => ask(&silent.sender(&self.config, self.iss, self.ecn)),
        }
    }

    /// Returns the sender, which is made now if there was none.
    fn sender(&mut self) -> &mut Sender {
        if let Half::Silent(silent) = &self.half {
            self.half = Half::Active(Box::new(silent.sender(&self.config, self.iss, self.ecn)));
        }
        match &mut self.half {
            Half::Active(sender) => sender,
            Half::Silent(_) => unreachable!("the sender was made"),
        }
    }

    /// Returns the sender if there is one.
    #[inline]
    fn active(&self) -> Option<&Sender> {
        match &self.half {
            Half::Active(sender) => Some(sender),
            Half::Silent(_) => None,
        }
    }

    /// Returns the next number to send, in the form of the header.
    #[inline]
    fn sequence_number(&self) -> u32 {
        self.active().map_or(self.iss.wrapping_add(1), Sender::sequence_number)
    }

    /// Offers `n` bytes in place of all data that was not sent yet.
    pub fn offer(&mut self, n: u64) {
        self.sender().truncate();
        self.sender().write(n);
    }

    /// Gives the control advice from outside.
    pub fn advise(&mut self, advice: Advice) {
        self.sender().cc.advise(advice);
    }

    /// Sets the budget that the gateway grants to this connection; returns true if the control uses it.
    pub fn set_budget(&mut self, budget: Option<Rate>) -> bool {
        self.scone().is_none() && self.limit(budget)
    }

    fn limit(&mut self, rate: Option<Rate>) -> bool {
        self.sender().cc.cooperation().is_some_and(|cc| {
            cc.set_budget(rate);
            true
        })
    }

    /// Takes the advice that a segment brings, and keeps to what holds now.
    #[cold]
    fn heed(&mut self, segment: &Segment, now: Instant) {
        if let Some(scone) = self.rare.as_mut().and_then(|rare| rare.scone.as_mut()) {
            scone.arrive(segment, now);
            let rate = scone.rate(now);
            self.limit(rate);
        }
    }

    /// Tells that the path to the peer, and with it the round trip time, changed at `now`.
    pub fn path_changed(&mut self, now: Instant) {
        self.sender().rtt.path_changed(now);
    }

    /// Opens the connection of a client.
    pub fn open(&mut self) {
        if self.state == State::Closed && self.role == Role::Client {
            self.state = State::SynSent;
            self.greet = true;
        }
    }

    /// Gives the endpoint `n` more bytes to send.
    pub fn write(&mut self, n: u64) {
        self.sender().write(n);
    }

    /// Discards what was not sent yet and closes the connection.
    pub fn stop(&mut self) {
        self.sender().truncate();
        self.close();
    }

    /// Closes the sending direction after all bytes written.
    pub fn close(&mut self) {
        self.sender().close();
    }

    /// Lets a server close only by [`Endpoint::close`]; without this call it closes when the client has closed.
    pub fn close_by_hand(&mut self) {
        self.close_with_peer = false;
    }

    /// Lets the application read only by [`Endpoint::read`]; without this call it reads at once.
    pub fn read_by_hand(&mut self) {
        self.receiver.read_by_hand();
    }

    /// Reads up to `n` bytes for the application.
    pub fn read(&mut self, n: u64) {
        self.receiver.read(n, self.mss());
    }

    /// Returns the earliest time at which [`Endpoint::on_timer`] has something to do; `None` if no timer is set.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        if self.state == State::Closed {
            return None;
        }
        let sender = self.active().map_or(Instant::MAX, Sender::deadline);
        let first = sender.min(self.receiver.ack_at).min(self.greeted_at);
        (first != Instant::MAX).then_some(first)
    }

    /// Handles all timers that are due at `now`.
    pub fn on_timer(&mut self, now: Instant) {
        if self.receiver.ack_at <= now {
            self.receiver.ack_at = Instant::MAX;
            self.receiver.ack_now = true;
        }
        if self.greeted_at <= now {
            self.greeted_at = Instant::MAX;
            if self.greetings > MAX_GREETING_RETRIES {
                self.state = State::Closed;
                return;
            }
            self.greet = true;
            let linear = self.state == State::SynSent && self.greetings <= LINEAR_GREETINGS;
            match &mut self.half {
                Half::Active(sender) if linear && sender.is_kernel() => {}
                Half::Active(sender) => sender.rtt.back_off(),
                Half::Silent(silent) => silent.back_offs += 1,
            }
        }
        if let Half::Active(sender) = &mut self.half
            && !sender.on_timer(self.state == State::Established, &self.config, now)
        {
            self.abort();
        }
    }

    /// Takes a segment that arrived at `now`. Returns the round trip time that it shows; `None` if it shows none.
    #[inline]
    pub fn on_segment(&mut self, segment: &Segment, now: Instant) -> Option<Span> {
        match self.state {
            State::Established => self.on_established(segment, now),
            State::SynSent => self.on_syn_sent(segment, now),
            State::SynReceived => self.on_syn_received(segment, now),
            State::Closed => {
                self.refuse(segment);
                None
            }
            State::Listen => {
                self.on_listen(segment);
                None
            }
        }
    }

    fn on_listen(&mut self, segment: &Segment) {
        if segment.flags.has(TcpFlags::RST) {
            return;
        }
        if segment.flags.has(TcpFlags::ACK) || !segment.flags.has(TcpFlags::SYN) {
            return self.refuse(segment);
        }
        self.learn(segment);
        self.agree(segment);
        self.state = State::SynReceived;
        self.greet = true;
    }

    fn on_syn_sent(&mut self, segment: &Segment, now: Instant) -> Option<Span> {
        let acks_syn = segment.flags.has(TcpFlags::ACK);
        if acks_syn && segment.ack != self.iss.wrapping_add(1) {
            self.refuse(segment);
            return None;
        }
        if segment.flags.has(TcpFlags::RST) {
            self.state = if acks_syn { State::Closed } else { self.state };
            return None;
        }
        if !segment.flags.has(TcpFlags::SYN) {
            return None;
        }
        self.learn(segment);
        if acks_syn {
            self.take_answer(segment);
            let rtt = self.sample_handshake(segment, now);
            self.establish(rtt, now);
            self.receiver.ack_now = true;
            return rtt;
        }
        if self.negotiation().is_some() {
            self.agree(segment);
        }
        self.state = State::SynReceived; // simultaneous open
        self.greet = true;
        None
    }

    fn on_syn_received(&mut self, segment: &Segment, now: Instant) -> Option<Span> {
        if segment.flags.has(TcpFlags::RST) {
            self.on_reset(segment);
        } else if segment.flags.has(TcpFlags::ACK) && segment.ack == self.iss.wrapping_add(1) {
            let rtt = self.sample_handshake(segment, now);
            if let Some(negotiation) = self.negotiation().filter(|_| !segment.flags.has(TcpFlags::SYN)) {
                negotiation.on_last_ack(segment);
            }
            self.establish(rtt, now);
            if !segment.flags.has(TcpFlags::SYN) {
                return self.on_established(segment, now).or(rtt);
            }
            return rtt;
        } else if segment.flags.has(TcpFlags::SYN) {
            self.greet = true; // our SYN-ACK was lost
            if self.negotiation().is_some_and(|negotiation| !negotiation.on_syn(segment)) {
                self.abort();
            }
        }
        None
    }

    /// Takes the number, the options and the window of the peer's SYN.
    fn learn(&mut self, syn: &Segment) {
        let options = syn.syn_options().unwrap_or_default();
        self.timestamps &= syn.has_timestamps();
        self.scaling &= options.window_scale.is_some();
        let greeting = Greeting {
            sack: options.sack_permitted,
            mss: self.config.agreed_mss(options.mss, self.timestamps),
            window: syn.window,
            scale: if self.scaling { options.window_scale.unwrap_or(0).min(14) } else { 0 },
        };
        match &mut self.half {
            Half::Active(sender) => sender.greeted(greeting, &self.config),
            Half::Silent(silent) => silent.greeted(greeting, self.iss),
        }
        self.receiver = Receiver::new(&self.config, syn.seq, if self.scaling { self.config.window_scale() } else { 0 });
        self.receiver.set_ts_recent(syn.tsval);
    }

    /// Takes the round trip time of the handshake (RFC 6298 §3): what the echo of the timestamp tells, or without timestamps the
    /// time since the SYN or SYN-ACK, unless it was sent again (Karn's algorithm).
    fn sample_handshake(&mut self, segment: &Segment, now: Instant) -> Option<Span> {
        let us = if self.timestamps && segment.has_timestamps() {
            timestamp(now).wrapping_sub(segment.tsecr)
        } else if self.greetings == 1 && self.greeted_at != Instant::MAX {
            let left = self.greeted_at.since(now);
            let waited = self.ask(|sender| sender.rtt.rto()).saturating_sub(left);
            u32::try_from(waited.as_nanos() / 1000).unwrap_or(u32::MAX)
        } else {
            return None;
        };
        let sample = Span::from_micros(us.into());
        match &mut self.half {
            Half::Active(sender) => sender.sample_handshake(sample, now),
            Half::Silent(silent) => silent.rtt_us = Some(us),
        }
        if self.receiver.quick.is_some() {
            let (rtt, rto) = self.ask(|sender| (sender.rtt.srtt(), sender.rtt.rto()));
            self.receiver.quick.iter_mut().for_each(|quick| quick.measured(rtt, rto));
        }
        Some(sample)
    }

    /// Ends the handshake, whose round trip took `rtt`, if that is known.
    fn establish(&mut self, rtt: Option<Span>, now: Instant) {
        self.count_marks(now);
        self.state = State::Established;
        self.greeted_at = Instant::MAX;
        self.greet = false;
        let sender = match &mut self.half {
            Half::Active(sender) => sender,
            Half::Silent(silent) => {
                silent.established = true;
                return;
            }
        };
        let requirements = sender.needs.as_ref().map(|needs| needs.requirements);
        if sender.accurate.is_some() {
            // counters take the place of the echo of each segment
        } else if self.ecn || !requirements.is_some_and(|requirements| requirements.accurate_ecn) {
            self.receiver.set_wants(requirements);
        } else {
            self.ect = Ecn::NotEct;
            sender.cc.advise(Advice::WithoutEcn); // as Linux: a control that needs ECN goes on without it, like Reno
        }
        sender.established(self.ecn, rtt, &self.config);
    }

    fn on_established(&mut self, segment: &Segment, now: Instant) -> Option<Span> {
        if self.closed_last && self.is_done() {
            self.state = State::Closed; // RFC 9293 §3.6: what follows LAST-ACK
            self.refuse(segment);
            return None;
        }
        if segment.flags.has(TcpFlags::RST) {
            self.on_reset(segment);
            return None;
        }
        if segment.flags.has(TcpFlags::SYN) {
            if let Some(feedback) = self.receiver.accurate.as_mut().filter(|_| segment.flags.has(TcpFlags::ACK)) {
                feedback.again(segment);
            }
            self.receiver.ack_now = true; // a SYN-ACK again: our ACK was lost (RFC 5961 §4.2 answers with an ACK)
            return None;
        }
        if !segment.flags.has(TcpFlags::ACK) {
            return None; // RFC 9293 §3.10.7.4, fifth
        }
        if !self.can_acknowledge(segment.ack) {
            self.receiver.ack_now = true; // RFC 5961 §5.2
            return None;
        }
        if self.scone().is_some() {
            self.heed(segment, now);
        }
        if !self.receiver.on_segment(segment, &self.config, now) && segment.sequence_len() == 0 {
            return None;
        }
        if segment.flags.has(TcpFlags::FIN) && self.active().is_some_and(Sender::is_closing) {
            self.receiver.ack_now = true; // `tcp_fin` in FIN-WAIT; the RFC's receiver does so in any case
        }
        let sample = match &mut self.half {
            Half::Active(sender) => sender.on_ack(segment, &self.config, now),
            Half::Silent(silent) => {
                silent.on_ack(segment, self.iss);
                None
            }
        };
        if self.close_with_peer && self.receiver.finished() {
            self.close();
        }
        sample
    }

    /// Returns the next segment to send now; `None` if there is none.
    pub fn transmit(&mut self, now: Instant) -> Option<Segment> {
        let next = self.next(now)?;
        let mut segment = Segment::tcp(self.flow, self.role == Role::Client, TcpFlags(0));
        self.emit(&mut segment, next, now);
        Some(segment)
    }

    /// Returns what to send now; `None` if there is nothing. The caller must write it with [`Endpoint::emit`].
    #[inline(always)]
    pub fn next(&mut self, now: Instant) -> Option<Outgoing> {
        if self.state != State::Established {
            return self.next_other();
        }
        let ack = self.receiver.ack_now.then_some(Outgoing::Ack);
        match &mut self.half {
            Half::Active(sender) if ack.is_some() || !sender.has_sent_all() => {
                if ack.is_some() && self.receiver.owes_code() {
                    return ack;
                }
                sender.next(&self.config, now).map(Outgoing::Data).or(ack)
            }
            _ => ack,
        }
    }

    /// Returns what to send outside of an established connection.
    #[cold]
    fn next_other(&self) -> Option<Outgoing> {
        match self.state {
            State::SynSent | State::SynReceived if self.greet => Some(Outgoing::Greeting),
            State::SynReceived if self.receiver.ack_now => Some(Outgoing::Ack),
            _ => self.rare.as_ref()?.reset.is_some().then_some(Outgoing::Reset),
        }
    }

    /// Writes what [`Endpoint::next`] returned into `segment`.
    #[inline]
    pub fn emit(&mut self, segment: &mut Segment, next: Outgoing, now: Instant) {
        match next {
            Outgoing::Data(next) => self.write_segment(segment, Some(next), now),
            Outgoing::Ack => self.write_segment(segment, None, now),
            Outgoing::Greeting => *segment = self.greeting(now),
            Outgoing::Reset => {
                let reset = self.rare.as_mut().and_then(|rare| rare.reset.take());
                *segment = reset.unwrap_or(*segment);
                if segment.has_timestamps() {
                    segment.tsval = timestamp(now); // RFC 7323 §3.2
                }
            }
        }
        if self.config.opaque || self.scone().is_some() {
            segment.set_opaque();
        }
    }

    fn write_segment(&mut self, segment: &mut Segment, next: Option<Next>, now: Instant) {
        *segment = self.template(TcpFlags::ACK, now, self.timestamps);
        let (sack, mss) = match &mut self.half {
            Half::Active(sender) => {
                match next {
                    Some(next) => sender.emit(segment, next, now),
                    None => segment.seq = sender.sequence_number(),
                }
                (sender.sack, sender.mss())
            }
            Half::Silent(silent) => {
                segment.seq = self.iss.wrapping_add(1);
                (silent.sack, silent.mss())
            }
        };
        self.closed_last |= segment.flags.has(TcpFlags::FIN) && self.receiver.finished();
        if let Some(scone) = self.rare.as_mut().and_then(|rare| rare.scone.as_mut()) {
            scone.leave(segment, now);
        }
        self.receiver.fill(segment, sack, mss);
    }

    #[inline]
    fn template(&self, flags: TcpFlags, now: Instant, timestamps: bool) -> Segment {
        let mut segment = Segment::tcp(self.flow, self.role == Role::Client, flags);
        segment.set_ecn(if self.active().is_none_or(Sender::sends_ect) { self.ect } else { Ecn::NotEct });
        if timestamps {
            segment.set_timestamps(Timestamps { val: timestamp(now), ecr: self.receiver.ts_recent() });
        }
        segment
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::config::{Acknowledging, WithoutSack};

    /// RFC 9293 §3.10.7.2: an ACK that comes to a listener is refused, also that of a SYN, and what is no SYN opens nothing.
    #[test]
    fn a_listener_is_opened_by_a_syn_alone() {
        let syn = TcpFlags::SYN;
        for (flags, state) in [
            (syn, State::SynReceived),
            (syn.with(TcpFlags::ACK), State::Listen),
            (TcpFlags::ACK, State::Listen),
            (TcpFlags(0), State::Listen),
        ] {
            let mut server = Endpoint::new(Arc::new(TcpConfig::default()), 0, Role::Server, 1);
            server.on_segment(&Segment::tcp(0, true, flags), Instant::ZERO);
            assert_eq!(
                (server.state(), server.rare.is_some_and(|rare| rare.reset.is_some())),
                (state, state == State::Listen),
                "{flags:?}"
            );
        }
    }

    /// RFC 6691 §2: what a SYN announces counts no options, and who sends takes the room of the timestamps from its segments.
    #[test]
    fn the_options_of_segments_are_taken_from_what_the_peer_announces() {
        for (timestamps, stamped, mss, announced, payload) in [
            (true, true, 1460, 1460, 1448),
            (true, false, 1460, 1460, 1460),
            (false, true, 1460, 1448, 1448),
            (true, true, 1000, 1460, 988),
            (true, false, 1000, 1460, 1000),
            (true, true, 0, 1460, 536 - 12),
            (true, false, 0, 1460, 536),
            (true, true, 10, 1460, 48 - 12), // tcp_min_snd_mss
            (true, true, 9000, 1460, 1448),
        ] {
            for writes in [false, true] {
                let config = TcpConfig { timestamps, ..TcpConfig::default() };
                let half = Half::new(&config, 42, writes);
                let mut server = Endpoint { half, ..Endpoint::new(Arc::new(config), 0, Role::Server, 42) };
                let mut syn = Segment::tcp(0, true, TcpFlags::SYN);
                if stamped {
                    syn.set_timestamps(Timestamps { val: 1, ecr: 0 });
                }
                syn.set_syn_options(crate::segment::SynOptions { mss, window_scale: None, sack_permitted: false });
                server.on_segment(&syn, Instant::ZERO);
                let answer = server.transmit(Instant::ZERO).unwrap();
                let found = (answer.syn_options().unwrap().mss, server.info().snd_mss);
                assert_eq!(found, (announced, payload), "{timestamps} {stamped} {mss} {writes}");
            }
        }
    }

    const MS: u64 = 1_000_000;

    /// What a server sends, and when its timer is due: it greets twice, hears windows, of which one comes late, and then has
    /// data and a FIN to send.
    fn story(mut server: Endpoint, waits: bool) -> Vec<String> {
        let at = |ms: u64| Instant::from_nanos(ms * MS);
        let mut log = Vec::new();
        let mut drain = |server: &mut Endpoint, now: Instant| {
            while let Some(segment) = server.transmit(now) {
                log.push(format!("{now:?} {segment:?}"));
            }
            log.push(format!("{:?} {:?}", server.deadline(), server.windows()));
        };
        let mut syn = Segment::tcp(0, true, TcpFlags::SYN.with(TcpFlags::ECE).with(TcpFlags::CWR));
        (syn.seq, syn.window) = (7000, 900);
        syn.set_timestamps(Timestamps { val: 1, ecr: 0 });
        syn.set_syn_options(crate::segment::SynOptions { mss: 1000, window_scale: Some(2), sack_permitted: true });
        server.on_segment(&syn, at(0));
        drain(&mut server, at(0));
        let again = server.deadline().unwrap();
        server.on_timer(again);
        drain(&mut server, again);
        for (ms, seq, len, window) in
            [(1100, 7001, 0, 500), (1110, 7001, 800, 600), (1111, 7801, 800, 1200), (1112, 7001, 0, 9)]
        {
            let mut segment = Segment::tcp(0, true, TcpFlags::ACK);
            (segment.seq, segment.len, segment.window, segment.ack) = (seq, len, window, 43);
            if server.timestamps {
                segment.set_timestamps(Timestamps { val: 2, ecr: timestamp(again) });
            }
            server.on_segment(&segment, at(ms));
            drain(&mut server, at(ms));
        }
        assert_eq!((server.state(), matches!(server.half, Half::Silent(_))), (State::Established, waits));
        server.write(9000);
        server.close();
        drain(&mut server, at(1200));
        let timeout = server.deadline().unwrap();
        server.on_timer(timeout);
        drain(&mut server, timeout);
        log
    }

    #[test]
    fn a_half_that_waits_sends_what_a_sender_would() {
        let plain = TcpConfig::default;
        let linux = penstock_core::cc::AnyControlConfig::default_of("cubic-linux").unwrap();
        for config in [
            plain(),
            TcpConfig { sack: false, ..plain() },
            TcpConfig { sack: false, without_sack: WithoutSack::Linux, ..plain() },
            TcpConfig { timestamps: false, window_scaling: false, ..plain() },
            TcpConfig { ecn: true, ern: true, ecn_retransmits: true, ..plain() },
            TcpConfig { acknowledging: Acknowledging::Linux, ..plain() },
            TcpConfig { c2ml: penstock_core::cc::c2ml::Form::On, ..plain() },
            TcpConfig { cc: linux, ..plain() },
        ] {
            let server = || Endpoint::new(Arc::new(config.clone()), 0, Role::Server, 42);
            let at_once = Endpoint { half: Half::new(&config, 42, true), ..server() };
            let waits = matches!(server().half, Half::Silent(_));
            assert!(waits || config.cc.name() == "cubic-linux", "{config:?}");
            assert_eq!(story(server(), waits), story(at_once, false), "{config:?}");
        }
    }
}
