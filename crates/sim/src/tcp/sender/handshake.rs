//! What the handshake tells the sender.

use super::{EmulatedSack, Sender, TcpConfig};
use crate::tcp::ern::RateTeller;
use crate::tcp::peer::{Greeting, PeerWindow};
use crate::tcp::scoreboard::Scoreboard;
use penstock_core::units::Span;

impl Sender {
    /// True if nothing but data, a FIN or a budget makes the sender act.
    pub fn acts_on_data_alone(&self) -> bool {
        self.needs.is_none() && self.board.rack.is_none()
    }

    /// Takes the peer's SYN or SYN-ACK.
    pub fn greeted(&mut self, greeting: Greeting, config: &TcpConfig) {
        self.agree_sack(greeting.sack, config);
        self.agree_mss(greeting.mss.into(), config);
        self.peer = PeerWindow::of_greeting(self.una, greeting.window, greeting.scale);
    }

    /// Ends the handshake, which agreed on ECN if `ecn` is true and whose round trip took `rtt`, if that is known.
    pub fn established(&mut self, ecn: bool, rtt: Option<Span>, config: &TcpConfig) {
        self.rtt.reset_backoff();
        self.ecn = ecn;
        self.ecn_again = ecn && config.ecn_retransmits;
        if let Some(rtt) = rtt
            && let Some(cc) = self.cc.cooperation()
        {
            cc.set_rtt(rtt);
        }
        self.ern = RateTeller::of(ecn, config);
    }

    /// Takes the segment size that both sides agree on.
    pub fn agree_mss(&mut self, agreed: u64, config: &TcpConfig) {
        if agreed != self.mss {
            self.mss = agreed;
            let budget = self.cc.cooperation().and_then(|cc| cc.budget());
            self.cc = config.control(agreed, (self.una - 1) as u32);
            if let Some(cc) = self.cc.cooperation() {
                cc.set_budget(budget);
            }
        }
    }

    /// Sets whether the peer takes SACK. Without SACK there is no RACK either.
    pub fn agree_sack(&mut self, permitted: bool, config: &TcpConfig) {
        self.sack &= permitted;
        if !self.sack {
            self.board = Scoreboard::default();
            self.emulated = EmulatedSack::of(config);
        }
        if self.tells_segments()
            && let Some(rack) = &mut self.board.rack
        {
            rack.remember_declared();
        }
    }
}
