//! What `TCP_INFO` of Linux tells of a sender (`tcp_get_info` of `net/ipv4/tcp.c`).

use super::{Phase, Sender, TcpConfig};
use crate::tcp::snapshot::TcpInfo;
use penstock_core::cc::CongestionControl;
use penstock_core::units::{Bytes, Span};

/// `TCP_INFINITE_SSTHRESH`.
const WITHOUT_LIMIT: u64 = 0x7fff_ffff;

impl Sender {
    /// Returns the state of the sender in the units of Linux.
    pub fn info(&self, config: &TcpConfig) -> TcpInfo {
        let segments = |bytes: u64| bytes.div_ceil(self.mss.max(1));
        let us = |span: Span| span.as_nanos() / 1000;
        let counted = match &self.board.rack {
            Some(rack) => rack.counted(),
            None => crate::tcp::rack::Counted {
                out: segments(self.flight()),
                sacked: segments(self.sacked()),
                lost: segments(self.flight().saturating_sub(self.sacked()).saturating_sub(self.pipe)),
                ..Default::default()
            },
        };
        let ca_state = match self.phase {
            Phase::Open if counted.sacked + counted.lost > 0 => 1,
            Phase::Open => 0,
            Phase::Cwr => 2,
            Phase::Recovery => 3,
            Phase::Loss => 4,
        };
        let ssthresh = self.cc.ssthresh();
        let left = self.app_end.saturating_sub(self.nxt).min(self.mss);
        let room = self.window(config).saturating_sub(self.pipe);
        TcpInfo {
            ca_state,
            snd_cwnd: self.window(config) / self.mss.max(1),
            snd_ssthresh: if ssthresh == Bytes::MAX { WITHOUT_LIMIT } else { ssthresh.get() / self.mss.max(1) },
            snd_mss: self.mss,
            unacked: counted.out,
            sacked: counted.sacked,
            lost: counted.lost,
            retrans: counted.again,
            reordering: counted.reordering(self.mss),
            reord_seen: counted.disorders,
            rtt: us(self.rtt.srtt()),
            min_rtt: us(self.rtt.min_rtt()),
            rto: us(self.rtt.rto()),
            backoff: self.rtt.backoff(),
            busy: self.app_end > self.una,
            window_limited: left > 0 && room >= left && self.edge().saturating_sub(self.nxt) < left,
            ..self.accurate.as_ref().map(|marks| marks.info()).unwrap_or_default()
        }
    }
}
