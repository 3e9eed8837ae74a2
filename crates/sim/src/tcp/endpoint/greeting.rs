//! The SYN and SYN-ACK of an endpoint, and what they agree on about ECN (RFC 3168 §6.1.1, RFC 9768 §3.1).

use super::{Endpoint, State};
use crate::segment::{Segment, SynOptions};
use crate::tcp::accecn::{self, Mode};
use penstock_core::packet::{Ecn, TcpFlags};
use penstock_core::units::Instant;

impl Endpoint {
    /// Takes the offer of ECN in the peer's SYN.
    pub(super) fn agree(&mut self, syn: &Segment) {
        match self.negotiation() {
            Some(negotiation) => {
                negotiation.on_syn(syn);
                self.ecn = negotiation.mode != Mode::NotEcn;
            }
            None => self.ecn &= syn.flags.has(TcpFlags::ECE.with(TcpFlags::CWR)),
        }
    }

    /// Begins Accurate ECN if the handshake has agreed on it.
    pub(super) fn count_marks(&mut self, now: Instant) {
        let server = self.state == State::SynReceived;
        let negotiation = self.rare.as_mut().and_then(|rare| rare.negotiation.take());
        let Some(negotiation) = negotiation.filter(|agreed| agreed.mode == Mode::Accurate) else { return };
        let (ect, sack) = (self.ect, self.sack());
        if negotiation.linux && ect == Ecn::NotEct {
            self.ect = Ecn::Ect0; // `tcp_ecn_send`: every segment from now on
        }
        let (feedback, mut marks) = negotiation.halves(server, ect, sack);
        self.receiver.accurate = Some(Box::new(feedback.with_option(self.config.accurate_ecn_option)));
        marks.send_option(self.config.accurate_ecn_option);
        let sender = self.sender();
        sender.accurate = Some(Box::new(marks));
        if negotiation.was_marked() {
            sender.greeting_was_marked(now);
        }
    }

    /// Takes the answer to the offer of ECN in a SYN-ACK.
    pub(super) fn take_answer(&mut self, syn_ack: &Segment) {
        match self.negotiation() {
            Some(negotiation) => {
                negotiation.on_syn_ack(syn_ack);
                self.ecn = negotiation.mode != Mode::NotEcn;
            }
            // RFC 3168 §6.1.1: a SYN-ACK with ECE and without CWR agrees to ECN.
            None => self.ecn &= syn_ack.flags.has(TcpFlags::ECE) && !syn_ack.flags.has(TcpFlags::CWR),
        }
    }

    /// Creates a SYN or SYN-ACK with its options; the window field of both is not scaled.
    pub(super) fn greeting(&mut self, now: Instant) -> Segment {
        let answering = self.state == State::SynReceived;
        let mut flags = TcpFlags::SYN;
        if answering {
            flags = flags.with(TcpFlags::ACK);
        }
        if self.ecn && self.negotiation().is_none() {
            // RFC 3168 §6.1.1. A retransmitted SYN does not offer ECN (§6.1.1.1).
            flags = flags.with(if answering { TcpFlags::ECE } else { TcpFlags::ECE.with(TcpFlags::CWR) });
            if self.greetings > 0 && !answering {
                flags = TcpFlags::SYN;
            }
        }
        let mut segment = self.template(flags, now, self.timestamps);
        segment.set_syn_options(SynOptions {
            mss: self.config.advertised_mss() as u16,
            window_scale: self.scaling.then(|| self.config.window_scale()),
            sack_permitted: if answering { self.sack() } else { self.config.sack },
        });
        let greetings = self.greetings;
        if let Some(negotiation) = self.negotiation() {
            let (ace, option) = negotiation.greeting(answering, greetings);
            let linux = negotiation.linux;
            segment.set_ace(ace);
            if option && self.config.accurate_ecn_option {
                segment.set_accecn(&accecn::first_option(linux));
            }
        }
        segment.seq = self.iss;
        segment.ack = if answering { self.receiver.ack_number() } else { 0 };
        segment.window = self.config.receive_buffer.get().min(0xffff) as u16;
        self.greet = false;
        self.greetings = self.greetings.saturating_add(1);
        self.greeted_at = now + self.ask(|sender| sender.rtt.rto());
        segment
    }
}
