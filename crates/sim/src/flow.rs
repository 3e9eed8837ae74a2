//! Flows: the traffic of one application between two hosts, and what is measured of it.

use crate::actors::AnyApplication;
use crate::actors::bulk::Tcp;
use crate::digest::Digest;
use penstock_core::units::Instant;

/// One flow.
#[derive(Debug)]
pub struct Flow {
    /// The kind of its traffic, as scenarios and tables have it.
    pub kind: &'static str,
    /// When the application begins.
    pub start: Instant,
    /// When it stops; `Instant::MAX` is never.
    pub stop: Instant,
    /// What its hosts do.
    pub application: AnyApplication,
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
    /// Its TCP connection, if it has one that lasts as long as the flow.
    #[inline]
    pub fn tcp(&self) -> Option<&Tcp> {
        match &self.application {
            AnyApplication::Tcp(tcp) => Some(tcp),
            AnyApplication::Other(_) => None,
        }
    }

    /// The same, to be driven.
    #[inline]
    pub fn tcp_mut(&mut self) -> Option<&mut Tcp> {
        match &mut self.application {
            AnyApplication::Tcp(tcp) => Some(tcp),
            AnyApplication::Other(_) => None,
        }
    }

    /// Payload bytes delivered to the application.
    pub fn delivered(&self) -> u64 {
        self.application.get().delivered()
    }

    /// Congestion window of the client in bytes; zero for what is not one TCP connection.
    pub fn cwnd(&self) -> u64 {
        self.tcp().map_or(0, |tcp| tcp.client.windows().0)
    }

    /// Bytes of state on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.application.heap_bytes() + self.rtt.heap_bytes()
    }

    /// True if the flow sent, or could have, during all of `[from, to]`.
    pub fn active_throughout(&self, from: Instant, to: Instant) -> bool {
        self.start <= from && self.completed.min(self.stop) >= to
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Endpoint;

    /// Memory per flow has a bar, and nearly every flow is a plain connection: all else is in boxes.
    #[test]
    fn a_flow_is_two_endpoints_and_little_else() {
        assert!(size_of::<AnyApplication>() <= 2 * size_of::<Endpoint>() + 2 * size_of::<u64>());
        let others = size_of::<&str>() + size_of::<Digest>() + 5 * size_of::<u64>();
        assert!(size_of::<Flow>() <= size_of::<AnyApplication>() + others);
    }
}
