//! Sessions over QUIC, without a socket: bytes and times go in, bytes, frames and the next time come out.
//!
//! quinn-proto has the protocol. This file adds what is ours: the cookie of RFC 9000 (Retry) before anything is kept of a
//! peer, one stream of frames per session, and bounds on everything that a peer can make grow.

use crate::frame;
use bytes::{Bytes, BytesMut};
use penstock_core::coop::message::version;
use penstock_core::units::{Instant, Span};
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, Endpoint as Quic, EndpointConfig,
    EndpointEvent, Event as Happened, HashedConnectionIdGenerator, IdleTimeout, Incoming, ServerConfig, StreamEvent,
    StreamId, TransportConfig, VarInt,
};
use rustls::pki_types::CertificateDer;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Largest number of peers at a time that have not proved who they are, or are over and still told so. Who comes then
/// is refused and may try again, unless another address has more of them than its own: then the oldest one of that
/// address goes.
pub const MOST_HANDSHAKES: usize = 256;
/// Bytes of a stream that may wait to be read or sent.
const WINDOW: u32 = 8192;
/// Bytes of datagrams that may wait to be sent; newer ones replace older ones.
const DATAGRAMS: usize = 4096;
/// A session in which nothing arrives for this time is over.
pub const SILENCE: Duration = Duration::from_secs(10);
/// The least interval between two messages to peers whose sessions nobody knows: they are shorter than what they answer.
const RESETS: Duration = Duration::from_millis(1);
/// Frames that a peer may send at once, and how many more each second.
const FRAMES: (f64, f64) = (64.0, 32.0);

/// A session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id(usize);

/// Why a session is closed by us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Close {
    /// It has done what it was for.
    Done = 0,
    /// The peer said what nobody may say.
    Malformed = 1,
    /// The peer says too much.
    TooMuch = 2,
    /// The node has a newer session.
    Replaced = 3,
    /// The peer may not be here any more.
    Refused = 4,
    /// This gateway is a standby, and the one before it is there.
    Standby = 5,
    /// Another address has the lease of the node.
    Elsewhere = 6,
}

impl Close {
    /// True if the node of a session that was closed for this must give up what it holds.
    fn takes_away(reason: &ConnectionError) -> bool {
        let ConnectionError::ApplicationClosed(closed) = reason else { return false };
        [Self::Replaced, Self::Elsewhere].iter().any(|why| closed.error_code == VarInt::from_u32(*why as u32))
    }
}

/// What has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Both sides have proved who they are.
    Connected(Id),
    /// A frame has come on the stream.
    Frame(Id, Vec<u8>),
    /// A datagram has come.
    Datagram(Id, Bytes),
    /// A session is over; the flag says that another host has what the peer gave to this one.
    Lost(Id, String, bool),
}

/// What an endpoint counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Counters {
    /// Datagrams that arrived.
    pub datagrams: u64,
    /// Those of version 1 of C²LP, which has no session.
    pub version_1: u64,
    /// Peers that were asked to prove their address.
    pub cookies: u64,
    /// Peers that had to go because too many handshakes went on, or that were refused because of too many sessions.
    pub crowded: u64,
    /// Handshakes that failed: no certificate, a wrong one, or silence.
    pub failed: u64,
    /// Sessions closed because the peer sent what is no frame, or too many of them.
    pub closed: u64,
}

struct Session {
    connection: Connection,
    remote: SocketAddr,
    since: Instant,
    stream: Option<StreamId>,
    /// True until both sides have proved who they are, or failed to.
    handshaking: bool,
    /// True from then on until the session is over.
    connected: bool,
    input: Vec<u8>,
    output: Vec<u8>,
    /// How many frames the peer may send now, and when that was computed.
    allowance: (f64, Instant),
    deadline: Option<std::time::Instant>,
}

/// One end of sessions.
pub struct Endpoint {
    quic: Quic,
    epoch: std::time::Instant,
    sessions: BTreeMap<usize, Session>,
    deadlines: BTreeSet<(std::time::Instant, usize)>,
    most: usize,
    handshakes: usize,
    out: VecDeque<(SocketAddr, Vec<u8>)>,
    events: VecDeque<Event>,
    counters: Counters,
    serves: bool,
}

/// The host of an address, or its /64 of IPv6, in which a host has as many addresses as it likes.
fn network(address: SocketAddr) -> IpAddr {
    match address.ip().to_canonical() {
        IpAddr::V6(ip) => Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64).into(),
        v4 => v4,
    }
}

fn transport() -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config
        .max_concurrent_bidi_streams(1u8.into())
        .max_concurrent_uni_streams(0u8.into())
        .stream_receive_window(WINDOW.into())
        .receive_window(WINDOW.into())
        .send_window(WINDOW.into())
        .crypto_buffer_size(WINDOW as usize)
        .datagram_receive_buffer_size(Some(DATAGRAMS))
        .datagram_send_buffer_size(DATAGRAMS)
        .max_idle_timeout(IdleTimeout::try_from(SILENCE).ok())
        .mtu_discovery_config(None)
        .enable_segmentation_offload(false)
        .allow_spin(false);
    Arc::new(config)
}

impl Endpoint {
    fn new(server: Option<ServerConfig>, reset_key: &[u8; 32], most: usize) -> Self {
        // A gateway that starts again with the same key can tell its nodes that their sessions are over.
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, reset_key);
        let mut config = EndpointConfig::new(Arc::new(key));
        let word = u64::from_le_bytes(std::array::from_fn(|i| blake3::hash(reset_key).as_bytes()[i]));
        config.cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(word)));
        config.min_reset_interval(RESETS);
        let serves = server.is_some();
        Self {
            quic: Quic::new(Arc::new(config), server.map(Arc::new), false, None),
            epoch: std::time::Instant::now(),
            sessions: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            most,
            handshakes: 0,
            out: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
            serves,
        }
    }

    /// Creates the end of a gateway, for at most `most` sessions.
    pub fn server(tls: Arc<dyn quinn_proto::crypto::ServerConfig>, reset_key: &[u8; 32], most: usize) -> Self {
        let mut config = ServerConfig::with_crypto(tls);
        config.transport_config(transport());
        // A budget belongs to the address from which its node has shown that it is there. A node that moves opens another
        // session.
        config.migration(false);
        Self::new(Some(config), reset_key, most)
    }

    /// Creates the end of a node.
    pub fn client(reset_key: &[u8; 32]) -> Self {
        Self::new(None, reset_key, 4)
    }

    fn at(&self, now: Instant) -> std::time::Instant {
        self.epoch + Duration::from_nanos(now.as_nanos())
    }

    /// The counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Number of handshakes that go on.
    pub fn handshakes(&self) -> usize {
        self.handshakes
    }

    /// Begins a session with a gateway; `None` if the address is none for a session.
    pub fn connect(
        &mut self,
        remote: SocketAddr,
        tls: Arc<dyn quinn_proto::crypto::ClientConfig>,
        now: Instant,
    ) -> Option<Id> {
        let mut config = ClientConfig::new(tls);
        config.transport_config(transport());
        let (handle, connection) = self.quic.connect(self.at(now), config, remote, crate::identity::GATEWAY).ok()?;
        self.add(handle, connection, remote, now);
        self.pump(handle.0, now);
        Some(Id(handle.0))
    }

    fn add(&mut self, handle: ConnectionHandle, connection: Connection, remote: SocketAddr, now: Instant) {
        let session = Session {
            connection,
            remote,
            since: now,
            stream: None,
            handshaking: true,
            connected: false,
            input: Vec::new(),
            output: Vec::new(),
            allowance: (FRAMES.0, now),
            deadline: None,
        };
        self.handshakes += 1;
        self.sessions.insert(handle.0, session);
    }

    /// Takes a datagram that has arrived.
    pub fn receive(&mut self, from: SocketAddr, datagram: &[u8], now: Instant) {
        self.counters.datagrams += 1;
        if version(datagram) == Some(1) {
            self.counters.version_1 += 1;
            return;
        }
        let (at, mut answer) = (self.at(now), Vec::new());
        match self.quic.handle(at, from, None, None, BytesMut::from(datagram), &mut answer) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(session) = self.sessions.get_mut(&handle.0) {
                    session.connection.handle_event(event);
                    self.pump(handle.0, now);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.incoming(incoming, now),
            Some(DatagramEvent::Response(transmit)) => self.out.push_back((transmit.destination, answer)),
            None => {}
        }
    }

    /// Somebody new: nothing is kept until the address is proved.
    fn incoming(&mut self, incoming: Incoming, now: Instant) {
        let (remote, at, mut answer) = (incoming.remote_address(), self.at(now), Vec::new());
        let response = if !incoming.remote_address_validated() {
            let retry = self.quic.retry(incoming, &mut answer).ok();
            self.counters.cookies += u64::from(retry.is_some());
            retry
        } else if !self.serves || self.sessions.len() >= self.most + 2 * MOST_HANDSHAKES || !self.has_room(remote) {
            self.counters.crowded += 1;
            Some(self.quic.refuse(incoming, &mut answer))
        } else {
            match self.quic.accept(incoming, at, &mut answer, None) {
                Ok((handle, connection)) => {
                    self.add(handle, connection, remote, now);
                    self.pump(handle.0, now);
                    None
                }
                Err(refused) => {
                    self.counters.failed += 1;
                    refused.response
                }
            }
        };
        self.out.extend(response.map(|transmit| (transmit.destination, answer)));
    }

    /// Makes room for one more who has proved nothing but its address; returns whether there is any.
    fn has_room(&mut self, remote: SocketAddr) -> bool {
        let strange = |(_, session): &(&usize, &Session)| !session.connected;
        let mut of: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for (_, session) in self.sessions.iter().filter(strange) {
            *of.entry(network(session.remote)).or_default() += 1;
        }
        if of.values().sum::<usize>() < MOST_HANDSHAKES {
            return true;
        }
        let own = of.get(&network(remote)).copied().unwrap_or(0);
        let rank = |session: &Session| (of[&network(session.remote)], std::cmp::Reverse(session.since));
        let worst = self.sessions.iter().filter(strange).max_by_key(|(_, session)| rank(session));
        let worst = worst.filter(|(_, session)| rank(session).0 > own + 1).map(|(id, _)| *id);
        worst.map(|id| self.forget(id)).is_some()
    }

    /// Forgets a peer, without a word to it.
    fn forget(&mut self, id: usize) {
        let Some(mut session) = self.sessions.remove(&id) else { return };
        self.counters.crowded += 1;
        if session.handshaking {
            self.over(id, &mut session, "too many handshakes".into(), false);
        }
        session.deadline.take().map(|deadline| self.deadlines.remove(&(deadline, id)));
        self.quic.handle_event(ConnectionHandle(id), EndpointEvent::drained());
    }

    /// Does what is due.
    pub fn poll(&mut self, now: Instant) {
        let at = self.at(now);
        while let Some(&(deadline, id)) = self.deadlines.first().filter(|(deadline, _)| *deadline <= at) {
            self.deadlines.remove(&(deadline, id));
            if let Some(session) = self.sessions.get_mut(&id) {
                session.deadline = None;
                session.connection.handle_timeout(at);
                self.pump(id, now);
            }
        }
    }

    /// When [`Endpoint::poll`] is to be called next.
    pub fn next_timeout(&self) -> Option<Instant> {
        let (at, _) = self.deadlines.first()?;
        Some(Instant::ZERO + Span::from_nanos(at.saturating_duration_since(self.epoch).as_nanos() as u64))
    }

    /// The next datagram to send.
    pub fn transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.out.pop_front()
    }

    /// The next event.
    pub fn event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// The certificate of the peer of a session.
    pub fn certificate(&self, id: Id) -> Option<CertificateDer<'static>> {
        let identity = self.sessions.get(&id.0)?.connection.crypto_session().peer_identity()?;
        identity.downcast::<Vec<CertificateDer<'static>>>().ok()?.into_iter().next()
    }

    /// The address of the peer of a session.
    pub fn remote(&self, id: Id) -> Option<SocketAddr> {
        self.sessions.get(&id.0).map(|session| session.remote)
    }

    /// The round trip time of a session.
    pub fn rtt(&self, id: Id) -> Option<Duration> {
        self.sessions.get(&id.0).map(|session| session.connection.rtt())
    }

    /// Sends a frame on the stream of a session. False if the session is gone or has not taken what it got before.
    pub fn send(&mut self, id: Id, bytes: &[u8], now: Instant) -> bool {
        let Some(session) = self.sessions.get_mut(&id.0).filter(|session| session.connected) else { return false };
        if session.output.len() > WINDOW as usize {
            return false;
        }
        frame::put(bytes, &mut session.output);
        self.pump(id.0, now);
        true
    }

    /// Sends a datagram, which may be lost.
    pub fn send_datagram(&mut self, id: Id, bytes: Bytes, now: Instant) {
        if let Some(session) = self.sessions.get_mut(&id.0).filter(|session| session.connected) {
            let _ = session.connection.datagrams().send(bytes, true);
            self.pump(id.0, now);
        }
    }

    /// Closes a session.
    pub fn close(&mut self, id: Id, why: Close, now: Instant) {
        if let Some(mut session) = self.sessions.remove(&id.0) {
            self.end(id.0, &mut session, why, now);
            self.sessions.insert(id.0, session);
            self.pump(id.0, now);
        }
    }

    /// Closes a session, and tells so as if it had been lost.
    fn end(&mut self, id: usize, session: &mut Session, why: Close, now: Instant) {
        self.counters.closed += u64::from(matches!(why, Close::Malformed | Close::TooMuch));
        let reason = format!("{why:?}");
        session.connection.close(self.at(now), VarInt::from_u32(why as u32), reason.clone().into());
        self.over(id, session, format!("closed here: {reason}"), false);
    }

    /// A session, or a handshake, is over.
    fn over(&mut self, id: usize, session: &mut Session, why: String, elsewhere: bool) {
        if session.handshaking {
            self.handshakes -= 1;
            self.counters.failed += 1;
        }
        (session.handshaking, session.connected) = (false, false);
        self.events.push_back(Event::Lost(Id(id), why, elsewhere));
    }

    /// Lets a connection do what it can: events, stream, datagrams to send, its timer.
    fn pump(&mut self, id: usize, now: Instant) {
        let at = self.at(now);
        let Some(mut session) = self.sessions.remove(&id) else { return };
        self.pass_on(id, &mut session);
        while let Some(event) = session.connection.poll() {
            self.happened(id, &mut session, event);
        }
        self.read(id, &mut session, now);
        session.write();
        loop {
            let mut datagram = Vec::with_capacity(1500);
            let Some(transmit) = session.connection.poll_transmit(at, 1, &mut datagram) else { break };
            self.out.push_back((transmit.destination, datagram));
        }
        self.pass_on(id, &mut session);
        session.remote = session.connection.remote_address();
        if let Some(old) = session.deadline.take() {
            self.deadlines.remove(&(old, id));
        }
        if session.connection.is_drained() {
            return;
        }
        session.deadline = session.connection.poll_timeout();
        if let Some(deadline) = session.deadline {
            self.deadlines.insert((deadline, id));
        }
        self.sessions.insert(id, session);
    }

    /// Tells the other connections what concerns them.
    fn pass_on(&mut self, id: usize, session: &mut Session) {
        while let Some(event) = session.connection.poll_endpoint_events() {
            if let Some(event) = self.quic.handle_event(ConnectionHandle(id), event) {
                session.connection.handle_event(event);
            }
        }
    }

    fn happened(&mut self, id: usize, session: &mut Session, event: Happened) {
        match event {
            Happened::Connected => {
                (session.handshaking, session.connected) = (false, true);
                self.handshakes -= 1;
                if !self.serves {
                    session.stream = session.connection.streams().open(Dir::Bi);
                }
                self.events.push_back(Event::Connected(Id(id)));
            }
            Happened::ConnectionLost { reason } => {
                self.over(id, session, reason.to_string(), Close::takes_away(&reason));
            }
            Happened::Stream(StreamEvent::Opened { dir: Dir::Bi }) if session.stream.is_none() => {
                session.stream = session.connection.streams().accept(Dir::Bi);
            }
            Happened::DatagramReceived => {
                while let Some(bytes) = session.connection.datagrams().recv() {
                    self.events.push_back(Event::Datagram(Id(id), bytes));
                }
            }
            _ => {}
        }
    }

    fn read(&mut self, id: usize, session: &mut Session, now: Instant) {
        let Some(stream) = session.stream.filter(|_| session.connected) else { return };
        session.fill(stream);
        loop {
            let why = match frame::take(&mut session.input) {
                Ok(None) => return,
                Ok(Some(frame)) if session.may_speak(now) => {
                    self.events.push_back(Event::Frame(Id(id), frame));
                    continue;
                }
                Ok(Some(_)) => Close::TooMuch,
                Err(_) => Close::Malformed,
            };
            return self.end(id, session, why, now);
        }
    }
}

impl Session {
    /// Reads what the stream has.
    fn fill(&mut self, stream: StreamId) {
        let mut receive = self.connection.recv_stream(stream);
        let Ok(mut chunks) = receive.read(true) else { return };
        while let Ok(Some(chunk)) = chunks.next(WINDOW as usize) {
            self.input.extend_from_slice(&chunk.bytes);
        }
        let _ = chunks.finalize();
    }

    fn write(&mut self) {
        let Some(stream) = self.stream.filter(|_| !self.output.is_empty()) else { return };
        if let Ok(written) = self.connection.send_stream(stream).write(&self.output) {
            self.output.drain(..written);
        }
    }

    /// Counts a frame; false if the peer sends too many.
    fn may_speak(&mut self, now: Instant) -> bool {
        let (left, at) = self.allowance;
        let left = (left + now.since(at).as_secs_f64() * FRAMES.1).min(FRAMES.0) - 1.0;
        self.allowance = (left.max(0.0), now);
        left >= 0.0
    }
}
