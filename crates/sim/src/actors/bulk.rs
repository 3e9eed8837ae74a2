//! One TCP connection for the whole flow: an endless stream (`bulk`) or a file (`transfer`).

use super::AnyApplication;
use super::action::{Action, Socket};
use super::application::{Application, Host, Setup};
use super::settings::{FlowFacts, Settings, file_size};
use crate::segment::Segment;
use crate::tcp::{Counters, Endpoint, Role};
use penstock_core::config::ConfigError;
use penstock_core::units::{Bytes, Instant};
use serde::{Deserialize, Serialize};

/// Number of bytes of an endless stream: more than any run can send.
const ENDLESS: u64 = 1 << 60;

/// The settings of `bulk`: the client always has data to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bulk;

/// The settings of `transfer`: one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Size of the file in bytes.
    pub size: Bytes,
}

/// The keys of `kind = "bulk"`, which has none of its own.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BulkKeys {}

impl Settings for Bulk {
    type Keys = BulkKeys;

    fn read(_: BulkKeys, _: &FlowFacts) -> Result<Self, ConfigError> {
        Ok(Self)
    }
    fn keys(&self) -> BulkKeys {
        BulkKeys {}
    }
}

/// The keys of `kind = "transfer"`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TransferKeys {
    size: Bytes,
}

impl Settings for Transfer {
    type Keys = TransferKeys;
    const NEEDED: &'static [&'static str] = &["size"];

    fn read(keys: TransferKeys, flow: &FlowFacts) -> Result<Self, ConfigError> {
        if flow.stop.is_some() {
            return Err(ConfigError::new("stop", "a transfer stops by itself; leave `stop` out"));
        }
        file_size("size", keys.size).map(|size| Self { size })
    }
    fn keys(&self) -> TransferKeys {
        TransferKeys { size: self.size }
    }
}

impl Bulk {
    /// Creates the connection.
    pub fn build(&self, setup: &Setup<'_>) -> AnyApplication {
        AnyApplication::Tcp(Tcp::new(setup, u64::MAX))
    }
}

impl Transfer {
    /// Creates the connection.
    pub fn build(&self, setup: &Setup<'_>) -> AnyApplication {
        AnyApplication::Tcp(Tcp::new(setup, self.size.get()))
    }
}

/// A TCP connection with both its endpoints.
#[derive(Debug)]
pub struct Tcp {
    /// The endpoint that opens the connection and sends.
    pub client: Endpoint,
    /// The endpoint that receives.
    pub server: Endpoint,
    /// Size of the file in bytes; for a stream `u64::MAX` until it is stopped, and then what it has sent,
    /// if anything.
    size: u64,
}

impl Tcp {
    fn new(setup: &Setup<'_>, size: u64) -> Self {
        let mut iss = setup.stream("iss");
        let mut end = |role| Endpoint::new(setup.tcp.clone(), setup.flow, role, iss.bits() as u32);
        Self { client: end(Role::Client), server: end(Role::Server), size }
    }

    /// Returns one of the two endpoints.
    #[inline]
    pub fn end(&mut self, side: Role) -> &mut Endpoint {
        match side {
            Role::Client => &mut self.client,
            Role::Server => &mut self.server,
        }
    }

    /// True if the server has received the whole file, or all that a stopped stream has sent.
    #[inline]
    pub fn is_complete(&self) -> bool {
        self.server.delivered() >= self.size
    }

    /// Returns the number of bytes of both endpoints on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.client.heap_bytes() + self.server.heap_bytes()
    }
}

impl Application for Tcp {
    fn start(&mut self, host: &mut Host<'_>) -> Option<Instant> {
        self.client.open();
        self.client.write(self.size.min(ENDLESS));
        if self.size != u64::MAX {
            self.client.close();
        }
        host.act(Action::Pump(Socket::Flow(host.flow)));
        (host.stop != Instant::MAX).then_some(host.stop)
    }

    fn wake(&mut self, _: &mut Host<'_>) -> Option<Instant> {
        None // its only wake-up is the stop of the flow
    }

    fn stop(&mut self, host: &mut Host<'_>) {
        self.client.stop();
        if self.client.written() > 0 {
            self.size = self.client.written();
        }
        host.act(Action::Pump(Socket::Flow(host.flow)));
    }

    /// The loop drives the two endpoints itself and never calls this for a TCP flow.
    fn receive(&mut self, packet: &Segment, host: &mut Host<'_>) {
        self.end(Role::receiver_of(packet)).on_segment(packet, host.now);
    }

    fn delivered(&self) -> u64 {
        self.server.delivered()
    }

    fn cc(&self) -> &str {
        self.client.cc_name()
    }

    fn counters(&self) -> Counters {
        self.client.counters()
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.heap_bytes()
    }
}
