//! Flows: the traffic of one application between two hosts, and what is measured of it.

use crate::actors::AnyApplication;
use crate::actors::bulk::Tcp;
use crate::digest::Digest;
use penstock_core::units::{Instant, Span};

/// One flow and what is measured of it.
#[derive(Debug)]
pub struct Flow {
    /// Name of the kind of traffic, as in scenarios and tables.
    pub kind: &'static str,
    /// When the application begins.
    pub start: Instant,
    /// When the application stops; `Instant::MAX` means never.
    pub stop: Instant,
    /// What the two hosts of the flow do.
    pub application: AnyApplication,
    /// Cursors at which its routes begin in the table of routes: from the client, from the server.
    pub routes: [u32; 2],
    /// Round trip times that the client measured.
    pub rtt: Digest,
    /// When all data of its TCP connection was delivered; `Instant::MAX` means not yet. A stream that was stopped is
    /// complete when what it had sent before is delivered.
    pub completed: Instant,
    /// When data of a flow without such a connection was last delivered after `stop`; zero if none was.
    pub trailed: Instant,
    /// Number of bytes delivered up to the last full second.
    pub counted: u64,
}

impl Flow {
    /// Returns the TCP connection of the flow; `None` if it has none that lasts as long as the flow.
    #[inline]
    pub fn tcp(&self) -> Option<&Tcp> {
        match &self.application {
            AnyApplication::Tcp(tcp) => Some(tcp),
            AnyApplication::Other(_) => None,
        }
    }

    /// Returns the TCP connection of the flow mutably; `None` if it has none that lasts as long as the flow.
    #[inline]
    pub fn tcp_mut(&mut self) -> Option<&mut Tcp> {
        match &mut self.application {
            AnyApplication::Tcp(tcp) => Some(tcp),
            AnyApplication::Other(_) => None,
        }
    }

    /// Returns the number of payload bytes delivered to the application.
    pub fn delivered(&self) -> u64 {
        self.application.get().delivered()
    }

    /// Returns the congestion window of the client in bytes; zero for a flow that is not a single connection.
    pub fn cwnd(&self) -> u64 {
        self.tcp().map_or_else(|| self.application.get().window(), |tcp| tcp.client.windows().0)
    }

    /// Returns the number of bytes of state on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.application.heap_bytes() + self.rtt.heap_bytes()
    }

    /// True if the flow is one connection that sends as much as its window allows.
    pub fn fills_a_window(&self) -> bool {
        self.tcp().is_some() || self.application.get().fills_a_window()
    }

    /// Records that all data of the connection is delivered, if it is.
    #[inline]
    pub fn note_complete(&mut self, now: Instant) {
        if self.completed == Instant::MAX && self.tcp().is_some_and(Tcp::is_complete) {
            self.completed = now;
        }
    }

    /// Records that data was delivered, of a flow without a connection of its own.
    #[inline]
    pub fn note_delivery(&mut self, now: Instant) {
        if now > self.stop {
            self.trailed = now;
        }
        if self.completed == Instant::MAX && self.application.get().is_complete() {
            self.completed = now;
        }
    }

    /// Returns how long the flow was active, up to `now`: from its start until all was delivered or it was stopped. Data
    /// that was on the way when a flow was stopped is delivered later; the flow is active until then, so that no flow
    /// has a higher goodput than its path has a rate.
    pub fn active(&self, now: Instant) -> Span {
        let end = match self.tcp() {
            Some(_) => self.completed,
            None => self.completed.min(self.stop.max(self.trailed)),
        };
        end.min(now).since(self.start)
    }

    /// True if the flow was active during all of `[from, to]`: it had begun, had not stopped and was not complete.
    pub fn active_throughout(&self, from: Instant, to: Instant) -> bool {
        self.start <= from && self.completed.min(self.stop) >= to
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tcp::Endpoint;

    /// The memory of a flow is bounded. Nearly every flow is a plain connection; every other application is in a box.
    #[test]
    fn a_flow_is_two_endpoints_and_little_else() {
        assert!(size_of::<Endpoint>() <= 168, "{} bytes", size_of::<Endpoint>());
        assert!(size_of::<AnyApplication>() <= 2 * size_of::<Endpoint>() + 2 * size_of::<u64>());
        let others = size_of::<&str>() + size_of::<Digest>() + 6 * size_of::<u64>();
        assert!(size_of::<Flow>() <= size_of::<AnyApplication>() + others);
    }
}
