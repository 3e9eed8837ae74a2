//! quinn-proto, a QUIC that is released and used (<https://github.com/quinn-rs/quinn>), with its own TLS, congestion
//! controls, loss recovery, pacing and path MTU discovery. All settings are its defaults, if none is named here.
//!
//! What comes from the seed instead of the system: keys and random numbers, connection IDs, and the date in tokens. A
//! datagram is one UDP datagram; the simulated host has no segmentation offload.

mod tls;

use bytes::{Bytes, BytesMut};
use penstock_core::packet::Ecn;
use penstock_core::stack::{Figures, MakeStack, Setup, Side, Stack};
use penstock_core::units::{Instant, Span};
use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent,
    Dir, EcnCodepoint, Endpoint, EndpointConfig, Event, ServerConfig, StreamEvent, StreamId, TimeSource, Transmit,
    TransportConfig, VarInt,
};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::hmac;
use std::collections::VecDeque;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant as StdInstant, SystemTime};

/// The version with which this crate was built.
pub const VERSION: &str = "quinn-proto 0.11.19";
/// What a stream is offered at one time; the bytes are zero.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// A congestion control for connections of quinn.
#[derive(Clone)]
pub enum Control {
    /// Its CUBIC, which is its default.
    Cubic,
    /// Its NewReno.
    NewReno,
    /// Its BBR.
    Bbr,
    /// A control of one's own, with a name for messages.
    Own(String, Arc<dyn ControllerFactory + Send + Sync>),
}

impl fmt::Debug for Control {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cubic => "cubic",
            Self::NewReno => "newreno",
            Self::Bbr => "bbr",
            Self::Own(name, _) => name,
        })
    }
}

impl Control {
    /// Returns the released control of this name, CUBIC for an empty one; `None` if there is none.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "" | "cubic" => Some(Self::Cubic),
            "newreno" => Some(Self::NewReno),
            "bbr" => Some(Self::Bbr),
            _ => None,
        }
    }

    fn factory(&self) -> Arc<dyn ControllerFactory + Send + Sync> {
        match self {
            Self::Cubic => Arc::new(CubicConfig::default()),
            Self::NewReno => Arc::new(NewRenoConfig::default()),
            Self::Bbr => Arc::new(BbrConfig::default()),
            Self::Own(_, factory) => factory.clone(),
        }
    }
}

/// Connections of quinn.
#[derive(Debug, Clone)]
pub struct Quinn {
    control: Control,
}

impl Default for Quinn {
    fn default() -> Self {
        Self::with(Control::Cubic)
    }
}

impl Quinn {
    /// Uses a congestion control.
    pub fn with(control: Control) -> Self {
        Self { control }
    }

    /// Makes one end of a connection, whose other end is somewhere else.
    ///
    /// # Errors
    /// Returns why there is none, as a sentence without a full stop.
    pub fn end(&self, side: Side, setup: &Setup) -> Result<Box<dyn Stack>, String> {
        let mut transport = TransportConfig::default();
        transport.congestion_controller_factory(self.control.factory());
        Ok(Box::new(End::new(side, setup, Arc::new(transport))?))
    }
}

impl MakeStack for Quinn {
    fn make(&self, setup: &Setup) -> Result<[Box<dyn Stack>; 2], String> {
        Ok([self.end(Side::Client, setup)?, self.end(Side::Server, setup)?])
    }
    fn version(&self) -> String {
        format!("{VERSION} with {:?}", self.control)
    }
}

/// One end of a connection, with the endpoint that it needs.
struct End {
    side: Side,
    /// What the stack takes as time zero.
    zero: StdInstant,
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    /// How a client begins; taken when it does.
    begins: Option<ClientConfig>,
    stream: Option<StreamId>,
    /// State of the random numbers of the handshake.
    random: u64,
    /// Datagrams of the endpoint itself.
    answers: VecDeque<(Vec<u8>, Option<EcnCodepoint>)>,
    connected: bool,
    ended: Option<String>,
    failure: Option<String>,
}

impl fmt::Debug for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("End").field("side", &self.side).field("ended", &self.ended).finish_non_exhaustive()
    }
}

fn address(of: Side) -> SocketAddr {
    (Ipv4Addr::new(10, 0, 0, 1 + of as u8), 443).into()
}

/// The first eight bytes of a seed, as a number of its own for each end.
fn random_state(seed: &[u8; 32], side: Side) -> u64 {
    let mut first = [0; 8];
    first.copy_from_slice(&seed[8 * side as usize..][..8]);
    u64::from_le_bytes(first)
}

impl End {
    fn new(side: Side, setup: &Setup, transport: Arc<TransportConfig>) -> Result<Self, String> {
        let tls = tls::shared()?;
        let mut seed = setup.seed;
        seed[31] ^= side as u8;
        let mut config = EndpointConfig::new(Arc::new(hmac::Key::new(hmac::HMAC_SHA256, &seed)));
        config.rng_seed(Some(seed)).cid_generator(|| Box::new(Ids));
        let mut server = ServerConfig::new(tls.server.clone(), Arc::new(Salt::new(HKDF_SHA256, &[]).extract(&seed)));
        server.transport_config(transport.clone()).time_source(Arc::new(NoDate));
        let mut client = ClientConfig::new(tls.client.clone());
        client.transport_config(transport).initial_dst_cid_provider(Arc::new(|| id(20)));
        let mut random = random_state(&seed, side);
        let server = (side == Side::Server).then(|| Arc::new(server));
        let endpoint = tls::drawing_from(&mut random, || Endpoint::new(Arc::new(config), server, true, None));
        Ok(Self {
            side,
            zero: StdInstant::now(),
            endpoint,
            connection: None,
            begins: (side == Side::Client).then_some(client),
            stream: None,
            random,
            answers: VecDeque::new(),
            connected: false,
            ended: None,
            failure: None,
        })
    }

    fn std(&self, now: Instant) -> StdInstant {
        self.zero + Duration::from_nanos(now.as_nanos())
    }

    /// Begins the handshake, if that is still to be done.
    fn begin(&mut self, now: Instant) {
        let (now, Some(config)) = (self.std(now), self.begins.take()) else { return };
        let peer = address(Side::Server);
        match tls::drawing_from(&mut self.random, || self.endpoint.connect(now, config, peer, tls::NAME)) {
            Ok(connection) => self.connection = Some(connection),
            Err(error) => self.failure = Some(format!("the connection cannot begin: {error}")),
        }
    }

    /// Exchanges events between connection and endpoint, and notes what the application should know.
    fn settle(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            let answered = tls::drawing_from(&mut self.random, || self.endpoint.handle_event(*handle, event));
            if let Some(event) = answered {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => self.connected = true,
                Event::ConnectionLost { reason } => self.ended = ending(&reason),
                Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                    self.stream = connection.streams().accept(Dir::Uni)
                }
                _ => {}
            }
        }
    }

    fn answer(&mut self, transmit: &Transmit, bytes: &[u8]) {
        self.answers.push_back((bytes[..transmit.size].to_vec(), transmit.ecn));
    }

    fn take(&mut self, event: DatagramEvent, now: StdInstant, buffer: &mut Vec<u8>) {
        match event {
            DatagramEvent::ConnectionEvent(_, event) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            DatagramEvent::NewConnection(incoming) if self.connection.is_none() => {
                match self.endpoint.accept(incoming, now, buffer, None) {
                    Ok(connection) => self.connection = Some(connection),
                    Err(error) => {
                        self.ended = ending(&error.cause);
                        if let Some(transmit) = error.response {
                            self.answer(&transmit, buffer);
                        }
                    }
                }
            }
            DatagramEvent::NewConnection(incoming) => self.endpoint.ignore(incoming),
            DatagramEvent::Response(transmit) => self.answer(&transmit, buffer),
        }
    }
}

/// Why a connection ended, unless an application closed it.
fn ending(reason: &ConnectionError) -> Option<String> {
    match reason {
        ConnectionError::ApplicationClosed(_) | ConnectionError::LocallyClosed => None,
        other => Some(other.to_string()),
    }
}

impl Stack for End {
    fn receive(&mut self, datagram: &[u8], ecn: Ecn, now: Instant) {
        let (now, peer) = (self.std(now), address(if self.side == Side::Client { Side::Server } else { Side::Client }));
        let (ecn, data) = (EcnCodepoint::from_bits(ecn as u8), BytesMut::from(datagram));
        let mut random = self.random;
        tls::drawing_from(&mut random, || {
            let mut buffer = Vec::new();
            if let Some(event) = self.endpoint.handle(now, peer, None, ecn, data, &mut buffer) {
                self.take(event, now, &mut buffer);
            }
        });
        self.random = random;
        self.settle();
    }

    fn transmit(&mut self, datagram: &mut Vec<u8>, now: Instant) -> Option<Ecn> {
        self.begin(now);
        let named = |ecn: Option<EcnCodepoint>| ecn.map_or(Ecn::NotEct, |ecn| Ecn::from_bits(ecn as u8));
        if let Some((bytes, ecn)) = self.answers.pop_front() {
            datagram.extend_from_slice(&bytes);
            return Some(named(ecn));
        }
        let now = self.std(now);
        let (_, connection) = self.connection.as_mut()?;
        let transmit = tls::drawing_from(&mut self.random, || connection.poll_transmit(now, 1, datagram));
        self.settle();
        transmit.map(|transmit| named(transmit.ecn))
    }

    fn deadline(&mut self) -> Option<Instant> {
        let (_, connection) = self.connection.as_mut()?;
        let at = connection.poll_timeout()?;
        Some(Instant::from_nanos(at.saturating_duration_since(self.zero).as_nanos() as u64))
    }

    fn wake(&mut self, now: Instant) {
        let now = self.std(now);
        if let Some((_, connection)) = &mut self.connection {
            tls::drawing_from(&mut self.random, || connection.handle_timeout(now));
        }
        self.settle();
    }

    fn write(&mut self, bytes: u64, _: Instant) -> u64 {
        let Some((_, connection)) = self.connection.as_mut().filter(|_| self.connected) else { return 0 };
        self.stream = self.stream.or_else(|| connection.streams().open(Dir::Uni));
        let Some(stream) = self.stream else { return 0 };
        let mut written = 0;
        while written < bytes {
            let size = (bytes - written).min(ZEROS.len() as u64) as usize;
            let mut chunk = [Bytes::from_static(&ZEROS[..size])];
            match connection.send_stream(stream).write_chunks(&mut chunk) {
                Ok(took) if took.bytes > 0 => written += took.bytes as u64,
                _ => break,
            }
        }
        written
    }

    fn finish(&mut self, _: Instant) {
        if let (Some((_, connection)), Some(stream)) = (&mut self.connection, self.stream) {
            // It fails if the stream is closed already, and then there is nothing to finish.
            let _ = connection.send_stream(stream).finish();
        }
    }

    fn read(&mut self, _: Instant) -> u64 {
        let received = self.stream.filter(|_| self.side == Side::Server);
        let (Some((_, connection)), Some(stream)) = (&mut self.connection, received) else { return 0 };
        let mut stream = connection.recv_stream(stream);
        let Ok(mut chunks) = stream.read(true) else { return 0 };
        let mut read = 0;
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            read += chunk.bytes.len() as u64;
        }
        // The connection is asked for datagrams in any case.
        let _ = chunks.finalize();
        read
    }

    fn close(&mut self, now: Instant) {
        let now = self.std(now);
        if let Some((_, connection)) = &mut self.connection {
            connection.close(now, VarInt::from_u32(0), Bytes::new());
        }
        self.settle();
    }

    fn figures(&self) -> Figures {
        let Some((_, connection)) = &self.connection else { return Figures::default() };
        let path = connection.stats().path;
        Figures {
            connected: self.connected,
            window: connection.congestion_state().window(),
            round_trip: self.connected.then(|| Span::from_nanos(connection.rtt().as_nanos() as u64)),
            lost: path.lost_packets,
        }
    }

    fn ended(&self) -> Option<&str> {
        self.ended.as_deref()
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + size_of::<Connection>()
    }
}

/// A connection ID of this length from the random numbers of the end at work.
fn id(length: usize) -> ConnectionId {
    let mut bytes = [0; 20];
    tls::fill(&mut bytes[..length]);
    ConnectionId::new(&bytes[..length])
}

/// Connection IDs of 8 bytes.
struct Ids;

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        id(8)
    }
    fn cid_len(&self) -> usize {
        8
    }
    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// The date in tokens, which is always the same.
struct NoDate;

impl TimeSource for NoDate {
    fn now(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
    }
}
