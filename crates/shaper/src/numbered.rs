//! Hosts with numbers: the class of a packet is that of its host, as that of a flow in a scenario.
//!
//! Disciplines with stations or classes take the number of a flow for its class, and the table of connections numbers flows
//! as they come. With a list of hosts the class of all packets from and to the i-th host is i, or the class that is written.
//! Each connection still has an index of its own; packets of no connection that is tracked, such as datagrams, are one
//! flow for each host.

use penstock_conntrack::{Seen, State};
use penstock_core::fact::{Fact, Opening};
use penstock_core::packet::FlowId;
use penstock_core::wire::{End, Headers, HostKey};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// The largest number of hosts of a list.
const MOST: usize = 10_000;

/// A host of the list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Host {
    /// Its address, of which the first 64 bits count in IPv6.
    pub address: IpAddr,
    /// The class of its packets; `None` for its number.
    pub class: Option<u32>,
}

/// Checks that each host has an address of its own.
///
/// # Errors
/// Says what is wrong with the first that has not.
pub fn validate(hosts: &[Host]) -> Result<(), String> {
    if hosts.len() > MOST {
        return Err(format!("{} hosts; allowed are {MOST}", hosts.len()));
    }
    let mut known = BTreeSet::new();
    for Host { address, .. } in hosts {
        let Some(key) = HostKey::at(*address).filter(|_| address.to_canonical() == *address) else {
            return Err(format!("{address} is the address of no host that sends through a router"));
        };
        if !known.insert(key) {
            return Err(format!("{address} is that of an earlier host, or in its /64"));
        }
    }
    Ok(())
}

/// The class of a flow, as disciplines must be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClassOf {
    flow: FlowId,
    class: u32,
    /// True if somebody wrote it; else it is the number of a host or of a flow.
    pub is_written: bool,
}

impl ClassOf {
    /// Returns the fact that tells it.
    pub fn fact(self) -> Fact {
        Fact::Class { flow: self.flow, class: self.class }
    }
}

/// The hosts of a list, and the classes that disciplines were told.
#[derive(Debug, Default)]
pub(crate) struct Numbered {
    numbers: BTreeMap<HostKey, u32>,
    written: Vec<Option<u32>>,
    told: Vec<Option<u32>>,
}

impl Numbered {
    /// Numbers these hosts from 0 on.
    pub fn new(hosts: &[Host]) -> Self {
        let numbers = (0..).zip(hosts).filter_map(|(number, host)| Some((HostKey::at(host.address)?, number)));
        let written = hosts.iter().map(|host| host.class).collect();
        Self { numbers: numbers.collect(), written, told: Vec::new() }
    }

    /// Returns what the table has seen with the index that the flow has beside the list, and the class of the flow if
    /// disciplines were not told. A packet belongs to the host to which it goes, or else to that from which it comes.
    pub fn number(&mut self, bytes: &[u8], headers: &Headers, seen: Seen) -> (Seen, Option<ClassOf>) {
        if self.numbers.is_empty() {
            return (seen, None);
        }
        let of = |end| HostKey::of(bytes, headers, end).and_then(|host| self.numbers.get(&host).copied());
        let host = of(End::Destination).or_else(|| of(End::Source));
        let (flow, fresh) = match host {
            Some(number) if seen.state == State::Other => (FlowId(number), false),
            _ => (FlowId(seen.flow.0.saturating_add(self.written.len() as u32)), seen.fresh),
        };
        let written = host.and_then(|number| self.written[number as usize]);
        let class = written.or(host).unwrap_or(flow.0);
        let tells = self.note(flow, class).then_some(ClassOf { flow, class, is_written: written.is_some() });
        (Seen { flow, fresh, opening: seen.opening.map(|opening| Opening { flow, ..opening }), ..seen }, tells)
    }

    /// Notes the class of a flow; returns true if it was not known.
    fn note(&mut self, flow: FlowId, class: u32) -> bool {
        let at = flow.0 as usize;
        if at >= self.told.len() {
            self.told.resize(at + 1, None);
        }
        self.told[at].replace(class) != Some(class)
    }

    /// Forgets what was told of all flows.
    pub fn forget_all(&mut self) {
        self.told.fill(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::Classifier;
    use crate::direction::Direction;
    use crate::keys::Keys;
    use crate::nodes::Side;
    use crate::pool::Pool;
    use penstock_core::packet::Packet;
    use penstock_core::units::Instant;

    const UDP: u8 = 17;
    const TCP: u8 = 6;

    fn host(last: u8, class: Option<u32>) -> Host {
        Host { address: [10, 0, 0, last].into(), class }
    }

    struct Bench {
        classifier: Classifier,
        pool: Pool,
    }

    impl Bench {
        fn new(hosts: &[Host]) -> Self {
            let config = penstock_conntrack::Config::default();
            let classifier = Classifier::new(config, Keys::from_seed(1), Side::Left).with_hosts(hosts);
            Self { classifier, pool: Pool::new(100) }
        }

        /// Handles a packet between two hosts and ports; returns its flow, and the classes that are told, without and
        /// with codepoints.
        fn pass(
            &mut self,
            protocol: u8,
            direction: Direction,
            from: (u8, u8),
            to: (u8, u8),
        ) -> (u32, [Option<u32>; 2]) {
            let len = if protocol == TCP { 40 } else { 28 };
            let mut bytes = self.pool.take();
            bytes[..len].fill(0);
            (bytes[0], bytes[3], bytes[9], bytes[21], bytes[23]) = (0x45, len as u8, protocol, from.1, to.1);
            bytes[12..20].copy_from_slice(&[10, 0, 0, from.0, 10, 0, 0, to.0]);
            if protocol == TCP {
                (bytes[32], bytes[33]) = (0x50, 2); // a SYN
            } else {
                bytes[25] = 8;
            }
            let (packet, facts) = self.classifier.packet(direction, bytes, len, Instant::ZERO, &mut self.pool);
            assert!(facts.owner().is_none_or(|owner| owner.flow == packet.flow()));
            let told = [false, true].map(|codepoints| {
                let mut told = facts.told(direction, codepoints).filter_map(|fact| match fact {
                    Fact::Class { flow, class } => Some((flow, class)),
                    _ => None,
                });
                told.next().map(|(flow, class)| (assert_eq!(flow, packet.flow()), class).1)
            });
            (packet.flow().0, told)
        }
    }

    #[test]
    fn datagrams_of_a_host_are_one_flow_in_its_class() {
        let mut bench = Bench::new(&[host(7, None), host(9, Some(3))]);
        assert_eq!(bench.pass(UDP, Direction::Forward, (1, 1), (7, 53)), (0, [Some(0), None]));
        assert_eq!(bench.pass(UDP, Direction::Reverse, (9, 53), (2, 1)), (1, [Some(3), Some(3)]));
        for port in 1..100 {
            assert_eq!(bench.pass(UDP, Direction::Reverse, (7, 53), (1, port)), (0, [None, None]), "it was told");
            assert_eq!(bench.pass(UDP, Direction::Forward, (2, port), (9, 53)), (1, [None, None]));
        }
        assert_eq!(bench.pass(UDP, Direction::Forward, (9, 1), (7, 1)).0, 0, "it is of the host to which it goes");
        let (other, [class, codepoint]) = bench.pass(UDP, Direction::Forward, (1, 1), (2, 1));
        assert!(other > 1 && class == Some(other) && codepoint.is_none(), "other hosts come behind");
        bench.classifier.tell_again();
        assert_eq!(bench.pass(UDP, Direction::Forward, (1, 1), (7, 53)), (0, [Some(0), None]), "to a new discipline");
    }

    #[test]
    fn connections_of_a_host_are_flows_of_their_own_in_its_class() {
        let mut bench = Bench::new(&[host(7, None), host(9, Some(3))]);
        let [one, two, three] = [(7, 80), (7, 81), (9, 80)].map(|to| bench.pass(TCP, Direction::Forward, (1, 1), to));
        assert!(one.0 != two.0 && two.0 != three.0 && [one, two, three].iter().all(|(flow, _)| *flow > 1));
        assert_eq!([one.1, two.1, three.1], [[Some(0), None], [Some(0), None], [Some(3), Some(3)]]);
        assert_eq!(bench.pass(TCP, Direction::Forward, (1, 1), (7, 80)), (one.0, [None, None]));
    }

    #[test]
    fn hosts_have_addresses_of_their_own() {
        assert_eq!(validate(&[host(1, None), host(2, None)]), Ok(()));
        let refused = |hosts: &[Host]| validate(hosts).unwrap_err();
        assert!(refused(&[host(1, None), host(2, None), host(1, Some(1))]).contains("10.0.0.1 is that of an earlier"));
        let at = |text: &str| Host { address: text.parse().unwrap(), class: None };
        assert!(refused(&[at("169.254.0.1")]).contains("of no host"), "of one link");
        assert!(refused(&[at("::ffff:10.0.0.1")]).contains("of no host"), "not on any wire");
        assert!(refused(&[at("2001:db8::1"), at("2001:db8::2")]).contains("/64"));
        assert!(refused(&vec![host(1, None); MOST + 1]).contains("allowed are 10000"));
    }
}
