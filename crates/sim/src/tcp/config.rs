//! The options of a host's TCP. The defaults are those of a current Linux host; the options exist to match the
//! simulators that papers used.

use super::scone::INTERVALS;
use penstock_core::cc::c2ml::Form;
use penstock_core::cc::{self, AnyCc, AnyControlConfig};
use penstock_core::config::ConfigError;
use penstock_core::units::{Bytes, Span};
use penstock_grammar::range::within;
use serde::{Deserialize, Serialize};

/// Bytes of the timestamp option with its padding (RFC 7323, appendix A).
pub(super) const TIMESTAMPS: u64 = 12;
/// What a host takes that announces nothing (RFC 9293 §3.7.1).
const DEFAULT_MSS: u64 = 536;
/// The least that a host may announce to effect (`TCP_MIN_SND_MSS`).
const LEAST_MSS: u64 = 48;

/// The sender's rule for short segments when the peer's window is small (silly window avoidance).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SillyWindow {
    /// Linux: one short segment may be outstanding (Minshall's variant of Nagle's rule).
    #[default]
    Minshall,
    /// RFC 9293 §3.8.6.2.1: full segments only, unless half the largest window is free and nothing is in flight.
    Strict,
}

/// How a sender without SACK recovers from losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WithoutSack {
    /// NewReno of RFC 6582, the impatient variant: duplicate ACKs inflate the window, and only the first partial ACK
    /// restarts the timer.
    #[default]
    Rfc6582,
    /// Linux: a duplicate ACK counts as a SACKed segment, and every partial ACK restarts the timer.
    Linux,
}

/// When a receiver acknowledges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Acknowledging {
    /// RFC 5681 §4.2: every second segment or after `delayed_ack_timeout`, and at once out of order.
    #[default]
    Rfc5681,
    /// Linux: as RFC 5681, but each of the first segments and of those after a pause or a duplicate at once, and from the fourth
    /// ACK on for one gap those out of order together, after a twentieth of the round trip time, 1 ms at most.
    Linux,
}

/// The window that a receiver advertises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiveWindow {
    /// All of `receive_buffer`, from the beginning.
    #[default]
    Fixed,
    /// Linux: it begins with 64 kB and grows with what arrives, up to `receive_buffer`.
    Linux,
}

/// The options of one TCP endpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct TcpConfig {
    /// The congestion control with its parameters.
    pub cc: AnyControlConfig,
    /// Whether the control keeps to the budget that a gateway gives its node: "off", "on", or "literal" (Figure 2.13).
    pub c2ml: Form,
    /// The flow stands for one of QUIC with throughput advice (SCONE), for which it asks this often; none is TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scone: Option<Span>,
    /// No element of the network sees the header of the transport, as with QUIC.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub opaque: bool,
    /// Largest payload of a segment.
    pub mss: Bytes,
    /// Initial window in segments (RFC 6928).
    pub initial_window: u32,
    /// Initial slow start threshold; `None` is without limit (RFC 5681 §3.1: arbitrarily high).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_ssthresh: Option<Bytes>,
    /// Selective acknowledgments (RFC 2018, RFC 6675).
    pub sack: bool,
    /// The form of recovery where SACK was not agreed.
    pub without_sack: WithoutSack,
    /// Proportional rate reduction (RFC 9937).
    pub prr: bool,
    /// RACK-TLP (RFC 8985): losses are detected by time, and the end of a flight is probed. Needs `sack`.
    pub rack: bool,
    /// Limited transmit (RFC 3042).
    pub limited_transmit: bool,
    /// Timestamps (RFC 7323).
    pub timestamps: bool,
    /// Window scaling (RFC 7323).
    pub window_scaling: bool,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// Accurate feedback of marks (RFC 9768), where the peer has it as well; needs `ecn`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub accurate_ecn: bool,
    /// Accurate feedback has the option with counters of bytes (RFC 9768 §3.2.3), which is optional there.
    #[serde(skip_serializing_if = "is_true")]
    pub accurate_ecn_option: bool,
    /// Retransmissions are ECN-capable, which RFC 3168 §6.1.5 forbids; has an effect only if ECN was negotiated.
    pub ecn_retransmits: bool,
    /// Explicit rate notification (document 003 §III.A); has an effect only if ECN was negotiated.
    pub ern: bool,
    /// With `ern`: ERN-capable segments are announced by ECT(1) instead of header bits (document 003 §V).
    pub ern_ect1: bool,
    /// A misbehaving receiver: it acknowledges this number of bytes beyond what it has received, and treats lost data
    /// as received.
    pub optimistic_ack: Bytes,
    /// When this host acknowledges data.
    pub acknowledging: Acknowledging,
    /// Every segment is acknowledged at once, without delayed ACKs.
    pub ack_every_segment: bool,
    /// Longest delay of an ACK (RFC 5681 §4.2: at most 500 ms).
    pub delayed_ack_timeout: Span,
    /// Lower bound of the retransmission timeout (RFC 6298 §2.4 says 1 s; Linux 200 ms).
    pub min_rto: Span,
    /// Lower bound of the timeout's variance term, `max(G, 4 RTTVAR)` (RFC 6298 §2.3; Linux 200 ms).
    pub rto_granularity: Span,
    /// Size of the receive buffer, which bounds the advertised window.
    pub receive_buffer: Bytes,
    /// Whether the advertised window grows.
    #[serde(skip_serializing_if = "ReceiveWindow::is_fixed")]
    pub receive_window: ReceiveWindow,
    /// Size of the send buffer, which bounds the unacknowledged data.
    pub send_buffer: Bytes,
    /// The sender's rule for short segments (silly window avoidance).
    pub silly_window: SillyWindow,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_true(value: &bool) -> bool {
    *value
}

impl Default for TcpConfig {
    fn default() -> Self {
        Self {
            cc: AnyControlConfig::Cubic(cc::cubic::Config::default()),
            c2ml: Form::Off,
            scone: None,
            opaque: false,
            mss: Bytes::new(1448),
            initial_window: 10,
            initial_ssthresh: None,
            sack: true,
            without_sack: WithoutSack::Rfc6582,
            prr: true,
            rack: false,
            limited_transmit: true,
            timestamps: true,
            window_scaling: true,
            ecn: false,
            accurate_ecn: false,
            accurate_ecn_option: true,
            ecn_retransmits: false,
            ern: false,
            ern_ect1: false,
            optimistic_ack: Bytes::ZERO,
            acknowledging: Acknowledging::Rfc5681,
            ack_every_segment: false,
            delayed_ack_timeout: Span::from_millis(40),
            min_rto: Span::from_millis(200),
            rto_granularity: Span::from_millis(200),
            receive_buffer: Bytes::new(6_000_000),
            receive_window: ReceiveWindow::Fixed,
            send_buffer: Bytes::new(16_000_000),
            silly_window: SillyWindow::Minshall,
        }
    }
}

impl ReceiveWindow {
    fn is_fixed(&self) -> bool {
        *self == Self::Fixed
    }
}

impl TcpConfig {
    /// Checks that all values are allowed and fit together.
    ///
    /// # Errors
    /// Returns the first option whose value is not allowed.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.cc.validate()?;
        if self.needs_ecn() && !self.ecn {
            return Err(ConfigError::new(
                "ecn",
                format!("{} goes by marks: set it to true or leave it out", self.cc.name()),
            ));
        }
        if self.accurate_ecn && !self.ecn {
            return Err(ConfigError::new("accurate_ecn", "needs ecn = true: it says how marks are fed back"));
        }
        if self.accurate_ecn && self.ern {
            return Err(ConfigError::new("accurate_ecn", "and ern take the same place in the header: choose one"));
        }
        if self.ecn_retransmits && !self.ecn {
            return Err(ConfigError::new(
                "ecn_retransmits",
                "needs ecn = true: retransmissions are then ECN-capable as well",
            ));
        }
        if self.ern && !self.ecn {
            return Err(ConfigError::new("ern", "needs ecn = true: routers answer a rate by marking"));
        }
        if self.ern_ect1 && !self.ern {
            return Err(ConfigError::new("ern_ect1", "needs ern = true: it says how that is told"));
        }
        if self.rack && !self.sack {
            return Err(ConfigError::new("rack", "needs sack = true: it looks at which segments arrived"));
        }
        if let Some(interval) = self.scone {
            within("scone", &interval, INTERVALS)?;
            for (key, set) in [("c2ml", self.c2ml != Form::Off), ("ern", self.ern), ("accurate_ecn", self.accurate_ecn)]
            {
                if set {
                    return Err(ConfigError::new(
                        "scone",
                        format!("cannot be together with {key}: leave one of them out"),
                    ));
                }
            }
        }
        let within = |key, value: u64, low: u64, high: u64, unit: &str| {
            let message = || format!("{value}{unit} is not within {low}{unit} and {high}{unit}");
            if (low..=high).contains(&value) { Ok(()) } else { Err(ConfigError::new(key, message())) }
        };
        within("mss", self.mss.get(), 64, 65_000, "B")?;
        within("initial_window", self.initial_window.into(), 1, 10_000, "")?;
        if let Some(threshold) = self.initial_ssthresh {
            within("initial_ssthresh", threshold.get(), self.mss.get(), 1 << 40, "B")?;
        }
        within("receive_buffer", self.receive_buffer.get(), self.mss.get(), 1 << 30, "B")?;
        within("send_buffer", self.send_buffer.get(), self.mss.get(), 1 << 40, "B")?;
        within("optimistic_ack", self.optimistic_ack.get(), 0, 1 << 20, "B")?;
        let ms = |span: Span| span.as_nanos() / 1_000_000;
        within("delayed_ack_timeout", ms(self.delayed_ack_timeout), 1, 500, "ms")?;
        within("min_rto", ms(self.min_rto), 1, 60_000, "ms")?;
        within("rto_granularity", ms(self.rto_granularity), 0, 60_000, "ms")
    }

    /// Returns what a control must know of this host, for segments of `mss` bytes. `iss`, the number of the connection's SYN,
    /// distinguishes one connection from another.
    pub(super) fn setup(&self, mss: u64, iss: u32) -> cc::Setup {
        let mss = Bytes::new(mss);
        cc::Setup {
            mss,
            initial_window: mss * u64::from(self.initial_window),
            initial_ssthresh: self.initial_ssthresh.unwrap_or(Bytes::MAX),
            paced: false,
            seed: iss.into(),
        }
    }

    /// True if the control counts marks, and therefore works only with `ecn`.
    pub fn needs_ecn(&self) -> bool {
        self.cc.requirements().accurate_ecn
    }

    /// Creates the control of a new connection with segments of `mss` bytes and this number of the SYN.
    pub(super) fn control(&self, mss: u64, iss: u32) -> AnyCc {
        let setup = self.setup(mss, iss);
        let headers = Bytes::new(if self.timestamps { 52 } else { 40 }); // IPv4 20, TCP 20, timestamps 12
        let form = if self.scone.is_some() { Form::On } else { self.c2ml };
        self.cc.build(&setup).with_budget(&setup, form, headers)
    }

    /// Returns the payload of the largest packet of this host, which its SYN announces (`tcp_advertise_mss`): options are not counted
    /// (RFC 6691 §2).
    pub(super) fn advertised_mss(&self) -> u64 {
        self.mss.get() + if self.timestamps { TIMESTAMPS } else { 0 }
    }

    /// Returns the payload of a full segment to a host that announces `theirs`, 0 if nothing, with timestamps if both have them
    /// (`__tcp_mtu_to_mss`, `tcp_mtu_to_mss`).
    pub(super) fn agreed_mss(&self, theirs: u16, timestamps: bool) -> u16 {
        let theirs = if theirs == 0 { DEFAULT_MSS } else { theirs.into() };
        let whole = self.advertised_mss().min(theirs).max(LEAST_MSS);
        (whole - if timestamps { TIMESTAMPS } else { 0 }) as u16
    }

    /// Returns the smallest window scale with which the receive buffer can be advertised; at most 14 (RFC 7323 §2.3).
    pub(super) fn window_scale(&self) -> u8 {
        (0..14).find(|s| self.receive_buffer.get() >> s <= 0xffff).unwrap_or(14)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rack_needs_sack() {
        let refused = |rack, sack| TcpConfig { rack, sack, ..TcpConfig::default() }.validate();
        assert_eq!(refused(true, false).unwrap_err().key, "rack");
        assert_eq!((refused(true, true), refused(false, false)), (Ok(()), Ok(())));
    }

    #[test]
    fn advice_is_asked_for_twice_in_a_period_and_stands_alone() {
        let asked = |interval| TcpConfig { scone: Some(Span::from_millis(interval)), ..TcpConfig::default() };
        assert_eq!((asked(20_000).validate(), asked(33_500).validate()), (Ok(()), Ok(())));
        for wrong in [
            asked(33_501),
            asked(99),
            TcpConfig { c2ml: Form::On, ..asked(20_000) },
            TcpConfig { ecn: true, ern: true, ..asked(20_000) },
            TcpConfig { ecn: true, accurate_ecn: true, ..asked(20_000) },
        ] {
            assert_eq!(wrong.validate().unwrap_err().key, "scone");
        }
    }

    #[test]
    fn controls_that_count_marks_are_refused_without_ecn() {
        let config =
            |cc: &str, ecn| TcpConfig { cc: AnyControlConfig::default_of(cc).unwrap(), ecn, ..TcpConfig::default() };
        for cc in ["dctcp", "prague"] {
            assert_eq!(config(cc, false).validate().unwrap_err().key, "ecn");
            assert_eq!(config(cc, true).validate(), Ok(()));
        }
        assert_eq!(config("bbr", false).validate(), Ok(()));
    }

    #[test]
    fn accurate_feedback_needs_ecn_and_no_rates() {
        let checked = |ecn, ern| TcpConfig { accurate_ecn: true, ecn, ern, ..TcpConfig::default() }.validate();
        assert_eq!(checked(false, false).unwrap_err().key, "accurate_ecn");
        assert_eq!(checked(true, true).unwrap_err().key, "accurate_ecn");
        assert_eq!(checked(true, false), Ok(()));
    }

    #[test]
    fn a_rate_is_told_only_to_routers_that_can_answer() {
        let refused = |ecn, ern, ern_ect1| TcpConfig { ecn, ern, ern_ect1, ..TcpConfig::default() }.validate();
        assert_eq!(refused(false, true, false).unwrap_err().key, "ern");
        assert_eq!(refused(true, false, true).unwrap_err().key, "ern_ect1");
        let again = TcpConfig { ecn_retransmits: true, ..TcpConfig::default() };
        assert_eq!(again.validate().unwrap_err().key, "ecn_retransmits");
        for (ern, ern_ect1) in [(false, false), (true, false), (true, true)] {
            assert_eq!(refused(true, ern, ern_ect1), Ok(()));
        }
    }
}
