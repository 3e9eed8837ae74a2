//! The parameters of CAKE.

use super::Cake;
use super::acks::AckFilter;
use super::hashing::Isolation;
use super::tins::Tins;
use crate::config::{Compat, ConfigError, Discipline, LinkFacts};
use crate::link_layer::{Framing, LinkLayer};
use crate::packet::Packet;
use crate::units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The limit in packets of `mtu` bytes, if no memory limit is given.
const PACKETS: u64 = 10_240;
/// The least memory limit of a shaper, unless one is given.
const LEAST_MEMORY: u64 = 4 << 20;
/// The least bandwidth: a sixteenth of it is still more than the kernel's least rate of 0 B/s, which is no limit.
const LEAST_BANDWIDTH: Rate = Rate::from_bps(1000);

/// Parameters of CAKE. Names and defaults are those of tc-cake(8).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Rate of the shaper; null is unlimited: the link is the bottleneck (tc: unlimited).
    pub bandwidth: Option<Rate>,
    /// How packets are divided among tins: "besteffort", "diffserv3", "diffserv4", "diffserv8" or "precedence" (tc:
    /// diffserv3).
    pub tins: Tins,
    /// What gets an equal share: "flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost" or
    /// "triple-isolate" (tc: triple-isolate).
    pub isolation: Isolation,
    /// Usual round trip time, which is the interval of COBALT (tc: 100ms).
    pub rtt: Span,
    /// Acceptable queueing delay; null is a twentieth of rtt (tc: 5ms). In a slow tin the time of 1.5 packets of mtu takes
    /// its place.
    pub target: Option<Span>,
    /// Bytes added to the size of each packet, which may be negative (tc: 0, from -64 to 256).
    pub overhead: i32,
    /// The least size of a packet on the link below, in bytes (tc: 0).
    pub mpu: u32,
    /// Framing of the link below: "none", "atm" or "ptm" (tc: noatm).
    pub framing: Framing,
    /// Filter of ACKs: "no", "yes" or "aggressive" (tc: no-ack-filter).
    pub ack_filter: AckFilter,
    /// Set the Diffserv codepoint of packets to 0 once it has chosen their tin (tc: nowash). Simulated packets have none.
    pub wash: bool,
    /// Charge dropped packets as if they were sent, for a shaper behind the bottleneck (tc: egress).
    pub ingress: bool,
    /// Bytes that all queues together may hold, in addition to the limit of the link's queue; null is four times the bytes
    /// of rtt at bandwidth, within 4MiB and 10240 packets of mtu.
    pub memory_limit: Option<Bytes>,
    /// Largest packet, from which the least useful target and the memory limit follow (Linux on Ethernet: 1514B).
    pub mtu: Bytes,
    /// Key of the hash; with null a random key is drawn when the first packet arrives.
    pub perturbation: Option<u64>,
    /// "source" drops from the fattest queue when there is no room; "linux" from the one that the heap of Linux 6.18 has on
    /// top.
    pub compat: Compat,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            bandwidth: None,
            tins: Tins::default(),
            isolation: Isolation::default(),
            rtt: Span::from_millis(100),
            target: None,
            overhead: 0,
            mpu: 0,
            framing: Framing::default(),
            ack_filter: AckFilter::default(),
            wash: false,
            ingress: false,
            memory_limit: None,
            mtu: Bytes::new(1514),
            perturbation: None,
            compat: Compat::Source,
        }
    }
}

impl Config {
    pub(super) fn target(&self) -> Span {
        self.target.unwrap_or_else(|| self.rtt.div(20))
    }

    /// What packets take of the link below.
    pub(super) fn layer(&self) -> LinkLayer {
        LinkLayer { overhead: self.overhead, mpu: self.mpu, framing: self.framing }
    }

    /// The bandwidth in bytes per second; 0 is unlimited.
    pub(super) fn rate(&self) -> u64 {
        self.bandwidth.map_or(0, |rate| rate.as_bps() / 8)
    }

    /// Returns the memory limit as `cake_reconfigure()` computes it.
    pub(super) fn memory(&self) -> u64 {
        if let Some(limit) = self.memory_limit {
            return limit.get();
        }
        let most = PACKETS * self.mtu.get();
        if self.bandwidth.is_none() {
            return most;
        }
        let rtt = u128::from(self.rtt.as_nanos() / 1000);
        let of_rtt = u64::try_from(u128::from(self.rate()) * rtt / 250_000).unwrap_or(u64::MAX);
        of_rtt.max(LEAST_MEMORY).min(most)
    }
}

impl Discipline for Config {
    type Queue<P: Packet> = Cake<P>;

    fn validate(&self) -> Result<(), ConfigError> {
        if self.bandwidth.is_some_and(|rate| rate < LEAST_BANDWIDTH) {
            return Err(ConfigError::new("bandwidth", "must be at least 1kbit/s; leave it out for no limit"));
        }
        let (least, most) = (Span::from_micros(1), Span::from_secs(3600));
        if !(least..=most).contains(&self.rtt) {
            return Err(ConfigError::new("rtt", "must be within 1us and 3600s"));
        }
        if self.target.is_some_and(|target| !(least..=most).contains(&target)) {
            return Err(ConfigError::new(
                "target",
                "must be within 1us and 3600s; leave it out for a twentieth of rtt",
            ));
        }
        if let Some((key, message)) = self.layer().mistake() {
            return Err(ConfigError::new(key, message));
        }
        if self.memory_limit.is_some_and(|limit| limit == Bytes::ZERO || limit.get() > u32::MAX.into()) {
            return Err(ConfigError::new("memory_limit", "must be above 0B and at most 4294967295B"));
        }
        if self.mtu == Bytes::ZERO || self.mtu > Bytes::new(1 << 20) {
            return Err(ConfigError::new("mtu", "must be above 0B and at most 1MiB"));
        }
        Ok(())
    }

    fn build<P: Packet>(&self, link: &LinkFacts) -> Cake<P> {
        Cake::new(self, link.limit)
    }
}
