//! The sending half of an endpoint: a [`Sender`], or what is known before there is anything to send.
//!
//! Of most connections one side sends ACKs alone until it closes. Its sender would only keep what the handshake agreed on and
//! the window of the peer, in a third of the memory of a flow. So it is made when the application writes or closes.

use super::config::TcpConfig;
use super::peer::{Greeting, PeerWindow};
use super::sender::Sender;
use super::sequence;
use crate::segment::Segment;
use penstock_core::cc::AnyControlConfig;
use penstock_core::units::{Instant, Span};

/// A sending half. Both forms give the same segments.
#[derive(Debug, Clone)]
pub enum Half {
    /// Nothing was written, and no sender was needed so far.
    Silent(Silent),
    /// The sender.
    Active(Box<Sender>),
}

impl Half {
    /// Creates the half of a side whose SYN has the number `iss`, which `writes` data from the beginning or may wait. A sender
    /// that acts without data is made at once.
    pub fn new(config: &TcpConfig, iss: u32, writes: bool) -> Self {
        let sender = Sender::new(config, iss);
        // A foreign control is told of each connection once.
        let waits = !config.accurate_ecn && !matches!(config.cc, AnyControlConfig::Foreign(_));
        if writes || !waits || !sender.acts_on_data_alone() {
            return Self::Active(Box::new(sender));
        }
        let peer = PeerWindow::new(first(iss));
        Self::Silent(Silent {
            peer,
            rtt_us: None,
            mss: config.mss.get() as u16,
            back_offs: 0,
            sack: config.sack,
            established: false,
        })
    }
}

/// Returns the number of the first data byte after a SYN with the number `iss`.
fn first(iss: u32) -> u64 {
    sequence::initial(iss) + 1
}

/// What a sender would know that had nothing to send.
#[derive(Debug, Clone, Copy)]
pub struct Silent {
    pub peer: PeerWindow,
    /// Round trip time of the handshake in microseconds; `None` until it is known.
    pub rtt_us: Option<u32>,
    mss: u16,
    /// How often the timer of the handshake has fired.
    pub back_offs: u8,
    pub sack: bool,
    pub established: bool,
}

impl Silent {
    /// Takes the peer's SYN or SYN-ACK; ours had the number `iss`.
    pub fn greeted(&mut self, greeting: Greeting, iss: u32) {
        self.sack &= greeting.sack;
        self.mss = greeting.mss;
        self.peer = PeerWindow::of_greeting(first(iss), greeting.window, greeting.scale);
    }

    /// Takes the acknowledgment of an acceptable segment: of a side without data it tells the window alone, and nothing if it
    /// acknowledges anything but the SYN.
    #[inline]
    pub fn on_ack(&mut self, segment: &Segment, iss: u32) {
        if segment.ack == iss.wrapping_add(1) {
            self.peer.update(segment, first(iss));
        }
    }

    /// Returns the segment size in use, in bytes.
    pub fn mss(&self) -> u64 {
        self.mss.into()
    }

    /// Makes the sender of a connection whose SYN had the number `iss` and which agreed on ECN if `ecn` is true.
    #[cold]
    pub fn sender(&self, config: &TcpConfig, iss: u32, ecn: bool) -> Sender {
        let mut sender = Sender::new(config, iss);
        sender.agree_sack(self.sack, config);
        sender.agree_mss(self.mss.into(), config);
        sender.peer = self.peer;
        (0..self.back_offs).for_each(|_| sender.rtt.back_off());
        let rtt = self.rtt_us.map(|us| Span::from_micros(us.into()));
        if let Some(rtt) = rtt {
            sender.sample_handshake(rtt, Instant::ZERO); // the time is asked for only after a move, which makes a sender
        }
        if self.established {
            sender.established(ecn, rtt, config);
        }
        sender
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A half that waits takes no more than the words of its handshake, and a sender is not larger than it has to be.
    #[test]
    fn the_memory_of_a_sending_half_is_bounded() {
        assert!(size_of::<Half>() <= 32, "{} bytes", size_of::<Half>());
        assert!(size_of::<Sender>() <= 408, "{} bytes", size_of::<Sender>());
    }
}
