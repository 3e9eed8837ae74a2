//! Hosts with numbers: the class of a packet is that of its host, as that of a flow in a scenario.
//!
//! Disciplines with stations or classes take the number of a flow for its class, and the table of connections numbers flows
//! as they come. With a list of hosts the class of all packets from and to the i-th host is i, or the class that is written.
//! Each connection still has an index of its own; packets of no connection that is tracked, such as datagrams, are one
//! flow for each host.

use crate::told::Told;
use penstock_conntrack::{Seen, State};
use penstock_core::fact::Opening;
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

/// Checks that each host has an address of its own. The error is about the first that has not.
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
    pub flow: FlowId,
    pub class: u32,
    /// True if somebody wrote it; else it is the number of a host or of a flow.
    pub is_written: bool,
}

/// The hosts of a list, and the classes that disciplines were told.
#[derive(Debug, Default)]
pub(crate) struct Numbered {
    numbers: BTreeMap<HostKey, u32>,
    written: Vec<Option<u32>>,
    pub told: Told<u32>,
}

impl Numbered {
    /// Numbers these hosts from 0 on.
    pub fn new(hosts: &[Host]) -> Self {
        let numbers = (0..).zip(hosts).filter_map(|(number, host)| Some((HostKey::at(host.address)?, number)));
        let written = hosts.iter().map(|host| host.class).collect();
        Self { numbers: numbers.collect(), written, told: Told::default() }
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
        let tells = self.told.note(flow, class).then_some(ClassOf { flow, class, is_written: written.is_some() });
        (Seen { flow, fresh, opening: seen.opening.map(|opening| Opening { flow, ..opening }), ..seen }, tells)
    }
}
