//! The sides of sessions as a UDP socket serves them.

use crate::agent::{Agent, Enrolment};
use crate::gateway::Role;
use penstock_core::units::Instant;
use penstock_linux::udp::Side;
use std::net::SocketAddr;

macro_rules! side {
    ($($name:ident),*) => {$(
        impl Side for $name {
            fn receive(&mut self, from: SocketAddr, datagram: &[u8], now: Instant) {
                Self::receive(self, from, datagram, now);
            }
            fn poll(&mut self, now: Instant) {
                Self::poll(self, now);
            }
            fn next_timeout(&self) -> Option<Instant> {
                Self::next_timeout(self)
            }
            fn transmit(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
                Self::transmit(self)
            }
        }
    )*};
}
side!(Agent, Enrolment, Role);
