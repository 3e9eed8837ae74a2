//! Explicit congestion notification: which segments carry ECT, and whether connections use ECN.
//!
//! Sources: RFC 3168 §6.1 for the controls that take a mark as a loss: only new data carries ECT, while SYNs, ACKs,
//! retransmissions, probes of the window and resets are Not-ECT. Controls that count marks ([`accurate_ecn`]) are made
//! for queues that drop what they cannot mark above a low threshold; RFC 8257 §3.6 wants ECT on their SYNs, SYN-ACKs
//! and resets. Linux sends every segment of theirs as ECT (`tcp_ca_needs_ecn`): it sets ECT on the socket when the SYN
//! leaves (`tcp_ecn_send_syn`), and on listening sockets, whose SYN-ACKs carry it whatever the SYN asked for
//! (`tcp_v4_send_synack`); ACKs and retransmissions keep it (`tcp_ecn_send`); if the handshake does not agree on ECN the
//! connection goes on as Reno without it (`dctcp_init`). A reset for which there is no connection is Not-ECT.
//!
//! [`accurate_ecn`]: Requirements::accurate_ecn

use super::config::TcpConfig;
use penstock_core::cc::Requirements;
use penstock_core::packet::Ecn;
use serde::Serialize;

/// Returns the ECN field that every segment of a connection carries, whatever the segment holds.
pub fn of_every_segment(config: &TcpConfig, requirements: Option<Requirements>) -> Ecn {
    match requirements {
        Some(Requirements { accurate_ecn: true, ect1, .. }) if config.ecn => {
            if ect1 {
                Ecn::Ect1
            } else {
                Ecn::Ect0
            }
        }
        _ => Ecn::NotEct,
    }
}

/// Why a connection that asked for ECN goes on without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EcnLost {
    /// The peer did not agree.
    Declined,
    /// The SYN was retransmitted. A retransmitted SYN does not offer ECN (RFC 3168 §6.1.1.1), in case that something on
    /// the path drops SYNs that do.
    SynRetransmitted,
}

/// How many connections were to use ECN, and how many do. Those which are in neither `used` nor `lost` have no handshake
/// behind them yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, schemars::JsonSchema)]
pub struct EcnUse {
    /// Number of connections with `ecn = true`.
    #[serde(rename = "ecn_asked")]
    pub asked: u64,
    /// Number of them that use ECN.
    #[serde(rename = "ecn_used")]
    pub used: u64,
    /// Number of them that go on without ECN.
    #[serde(rename = "ecn_lost")]
    pub lost: u64,
    /// Number of connections with accurate feedback (RFC 9768); absent if there is none.
    #[serde(rename = "ecn_accurate", skip_serializing_if = "is_zero")]
    pub accurate: u64,
    /// Why they do: the first reason that applies of `syn-retransmitted` and `declined`; `null` if none is lost.
    #[serde(rename = "ecn_lost_why")]
    pub why: Option<EcnLost>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl std::ops::AddAssign for EcnUse {
    fn add_assign(&mut self, other: Self) {
        self.asked += other.asked;
        self.used += other.used;
        self.lost += other.lost;
        self.why = self.why.max(other.why);
        self.accurate += other.accurate;
    }
}
