//! The parameters of PINK, their defaults and their checks.

use super::share::payload_rate;
use crate::config::ConfigError;
use crate::units::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a smaller share takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Shrink {
    /// As ACKs advance: the right edge of the window never moves left.
    #[default]
    Advance,
    /// At once, as in the paper: the right edge may move left.
    Immediate,
}

/// Which windows are written into ACKs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Window {
    /// Whole segments whose mean over time is the share, also if receivers delay ACKs; a flow steps up when others have
    /// stepped down; no tails.
    #[default]
    Steady,
    /// Whole segments whose mean over round trips is the share.
    Dither,
    /// The share in bytes, as in the paper.
    Literal,
}

/// Who gets the part of a share which a flow cannot use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Reallocation {
    /// Nobody: eq. 1.
    Off,
    /// The others, by what each flow is measured to use: max-min fairness. An idle flow holds nothing, and what a flow
    /// may send beyond its use is bounded for all flows together.
    #[default]
    Demand,
    /// The others, by eq. 2: a flow whose receiver (or a PINK behind) advertises less than its share leaves the rest.
    Paper,
    /// The form of "demand" with which documents were reproduced. It misjudges flows whose receivers delay ACKs, and lets
    /// each flow that leaves something to others keep a window of eq. 1.
    MaxMin,
}

/// Where the rate of the bottleneck comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RateFrom {
    /// From the configuration, or from the link if the configuration has none; changes of the link are followed then.
    #[default]
    Told,
    /// From the departures of the queue; the told rate is only the start of the estimate.
    Estimated,
}

/// When only flows that transmit data count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// Only flows that transmit count at any time.
    #[default]
    Always,
    /// Only flows that transmit count from a drop on, until no drop happened for `idle_timeout`; otherwise every SYN
    /// counts.
    AfterDrop,
    /// Every flow counts from its SYN until its FIN or RST, even if it never sends data.
    Off,
}

/// The discipline that keeps the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Behind {
    /// One FIFO queue without any AQM.
    #[default]
    Fifo,
    /// A queue for each flow, without any AQM.
    Fq,
    /// One FIFO queue for segments that keep to their windows, and a queue for each flow for all else, without any AQM.
    FqOthers,
    /// FQ-CoDel with its defaults.
    FqCodel,
    /// One queue with QRM: nodes whose flows obey no window are held to their part of the link, and no flow gets a
    /// window larger than its node's part.
    Qrm,
}

/// Parameters of PINK. The defaults are those of the paper where it gives values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Part of the link that is given out as payload, the paper's exploitation parameter c; the rest is for headers.
    pub c: f64,
    /// Rate BW of the bottleneck; by default that of the link. With `rate_from = "estimated"` the start of the
    /// estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Where BW comes from: "told" (`rate`, else the link and its changes) or "estimated" (departures from the queue).
    pub rate_from: RateFrom,
    /// Rate that is not given out, for traffic which obeys no window; by default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserve: Option<Rate>,
    /// Who gets what a flow cannot use: "demand" (the others, by what flows are measured to use), "paper" (eq. 2, by the
    /// windows receivers advertise), "off" (nobody) or "max-min" (an earlier form of "demand").
    pub reallocation: Reallocation,
    /// How a smaller share takes effect: "advance" (no right edge moves left) or "immediate" (the paper's).
    pub shrink: Shrink,
    /// Which windows are written: "steady" (whole segments, their mean over time is the share, and they step when others step
    /// the other way), "dither" (their mean over round trips is the share) or "literal" (the share in bytes).
    pub window: Window,
    /// When only flows that transmit data count: "always", "after-drop" or "off" (every SYN counts until FIN or RST).
    pub sampling: Sampling,
    /// A flow which sent no data for this long stops counting until it sends again. 60 s is the least upper bound that
    /// RFC 6298 §2.5 allows for a retransmission timeout: a flow which is silent for longer has nothing to send.
    pub idle_timeout: Span,
    /// How long after its SYN the first data of a flow are expected. 3 s suffice for one lost SYN (RFC 6298 §2.1: 1 s)
    /// on a long path.
    pub silent_timeout: Span,
    /// The discipline that keeps the packets: "fifo", "fq" (a queue for each flow), "fq-others" (a queue for
    /// each flow that does not keep to its window, one for all that do), "fq-codel", or "qrm" (one queue
    /// that holds nodes to their part of the link).
    pub queue: Behind,
    /// Size of the table of flows, 128 bytes per flow; flows with a higher index are left alone.
    pub max_flows: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            c: 0.95, // 000 §6.5: 0.92 to 0.97; with a 1000-byte MSS in 1052-byte frames the link is full at 0.9506
            rate: None,
            rate_from: RateFrom::Told,
            reserve: None,
            reallocation: Reallocation::Demand,
            shrink: Shrink::Advance,
            window: Window::Steady,
            sampling: Sampling::Always,
            idle_timeout: Span::from_secs(60),
            silent_timeout: Span::from_secs(3),
            queue: Behind::Fifo,
            max_flows: 65_536,
        }
    }
}

impl Config {
    /// Returns what is given out of a link of `rate`, in thousandths of a byte of payload per second: (BW - reserve) * c.
    /// The programs of the kernel's packet path are told this number.
    pub fn capacity(&self, rate: Rate) -> u64 {
        payload_rate(self.rate.unwrap_or(rate), self.reserve, self.c)
    }

    /// Checks that every parameter is within its range.
    pub(super) fn check(&self) -> Result<(), ConfigError> {
        if !(self.c > 0.0 && self.c <= 1.0) {
            return Err(ConfigError::new("c", format!("{} is not above 0 and at most 1", self.c)));
        }
        if let (Some(rate), Some(reserve)) = (self.rate, self.reserve)
            && reserve >= rate
        {
            return Err(ConfigError::new("reserve", format!("{reserve} is not below the rate, {rate}")));
        }
        for (key, span) in [("idle_timeout", self.idle_timeout), ("silent_timeout", self.silent_timeout)] {
            if span < Span::from_secs(1) {
                return Err(ConfigError::new(key, format!("{span} is shorter than 1s, the first retransmission")));
            }
        }
        if !(1..=1 << 24).contains(&self.max_flows) {
            return Err(ConfigError::new("max_flows", format!("{} is not within 1 and 16777216", self.max_flows)));
        }
        Ok(())
    }
}
