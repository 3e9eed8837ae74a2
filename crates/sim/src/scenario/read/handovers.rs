//! Reading of `[[handovers]]`.

use super::{Check, Checker};
use crate::actors::Traffic;
use crate::scenario::{Cooperation, FlowSpec, Handover, LinkSpec, Procedure, paths};
use crate::segment::Segment;
use penstock_core::config::LinkFacts;
use penstock_core::units::Span;
use penstock_grammar::range::MAX_DURATION;
use serde::Deserialize;
use std::collections::BTreeSet;

/// Default of the interruption of a handover: the bound of IMT-Advanced within a carrier (Report ITU-R M.2134 §4.7).
const INTERRUPTION: Span = Span::from_micros(27_500);
const MAX_INTERRUPTION: Span = Span::from_secs(60);

/// The keys of one table `[[handovers]]`.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HandoverKeys {
    pub at: Span,
    pub from: String,
    pub to: String,
    pub procedure: String,
    pub interruption: Option<Span>,
    pub flows: Option<Vec<u32>>,
}

/// The routers at which the hosts of a flow are, and since when they can be moved again.
#[derive(Debug, Clone)]
struct Where<'a> {
    spec: &'a FlowSpec,
    ends: [&'a str; 2],
    since: Span,
}

impl Checker<'_> {
    /// Reads all moves, in the order of their times.
    pub(super) fn handovers(
        &self,
        links: &[LinkSpec],
        flows: &[FlowSpec],
        cooperation: Option<&Cooperation>,
    ) -> Check<Vec<Handover>> {
        let gateway = cooperation.map(|spec| links[spec.link].a.as_str());
        let each = flows.iter().flat_map(|spec| std::iter::repeat_n(spec, spec.count as usize));
        let place = |spec| Where { spec, ends: [&spec.from, &spec.to], since: Span::ZERO };
        let mut hosts: Vec<Where<'_>> = each.map(place).collect();
        let mut order: Vec<usize> = (0..self.keys.handovers.len()).collect();
        order.sort_by_key(|i| self.keys.handovers[*i].at);
        let handover = |i: &usize| self.handover(&i.to_string(), &self.keys.handovers[*i], links, gateway, &mut hosts);
        order.iter().map(handover).collect()
    }

    fn handover<'a>(
        &'a self,
        index: &str,
        raw: &'a HandoverKeys,
        links: &'a [LinkSpec],
        gateway: Option<&'a str>,
        hosts: &mut [Where<'a>],
    ) -> Check<Handover> {
        let path = |key| ["handovers", index, key];
        let procedure = Procedure::ALL.into_iter().find(|(name, _)| *name == raw.procedure);
        let Some((_, procedure)) = procedure else {
            let known = Procedure::ALL.map(|(name, _)| name);
            return Err(self.source.unknown(&path("procedure"), "procedure", &raw.procedure, &known));
        };
        self.within_span("at", &path("at"), raw.at, Span::ZERO, MAX_DURATION)?;
        let interruption = raw.interruption.unwrap_or(INTERRUPTION);
        self.within_span("interruption", &path("interruption"), interruption, Span::ZERO, MAX_INTERRUPTION)?;
        self.cells(index, raw, links)?;
        let movers = self.movers(index, raw, hosts)?;
        let mut others = BTreeSet::new();
        let clients = movers.iter().any(|flow| hosts[*flow as usize].ends[0] == raw.from);
        if let Some(gateway) = gateway.filter(|_| clients) {
            self.nodes_are_whole(index, raw, &movers, hosts)?;
            others.insert(gateway);
        }
        for flow in &movers {
            let host = &mut hosts[*flow as usize];
            others.insert(self.can_move(index, raw, *flow, host)?);
            host.ends = host.ends.map(|end| if end == raw.from { raw.to.as_str() } else { end });
            host.since = raw.at + interruption;
        }
        others.into_iter().try_for_each(|other| self.cells_let_go(index, raw, links, other))?;
        let (from, to) = (raw.from.clone(), raw.to.clone());
        Ok(Handover { at: raw.at, from, to, procedure, interruption, flows: movers })
    }

    /// Checks that the routers of both cells exist and differ.
    fn cells(&self, index: &str, raw: &HandoverKeys, links: &[LinkSpec]) -> Check<()> {
        let routers: BTreeSet<&str> = links.iter().flat_map(|link| [link.a.as_str(), link.b.as_str()]).collect();
        let known: Vec<&str> = routers.into_iter().collect();
        for (key, router) in [("from", &raw.from), ("to", &raw.to)] {
            if !known.contains(&router.as_str()) {
                return Err(self.source.unknown(&["handovers", index, key], "router", router, &known));
            }
        }
        if raw.from == raw.to {
            let message = format!("a handover goes from one cell to another, not from {:?} to itself", raw.to);
            return Err(self.source.at(&["handovers", index, "to"], &message));
        }
        Ok(())
    }

    /// Returns the flows that the table names, or else all flows which have a host in the old cell.
    fn movers(&self, index: &str, raw: &HandoverKeys, hosts: &[Where<'_>]) -> Check<Vec<u32>> {
        let at = |key: &str, message: String| Err(self.source.at(&["handovers", index, key], &message));
        let Some(named) = &raw.flows else {
            let there = (0..).zip(hosts).filter(|(_, host)| host.ends.contains(&raw.from.as_str()));
            let there: Vec<u32> = there.map(|(flow, _)| flow).collect();
            return if there.is_empty() {
                at("from", format!("nobody is at {:?} at {}", raw.from, raw.at))
            } else {
                Ok(there)
            };
        };
        let named: BTreeSet<u32> = named.iter().copied().collect();
        for flow in &named {
            let Some(host) = hosts.get(*flow as usize) else {
                return at(
                    "flows",
                    format!("there is no flow {flow}; they are numbered from 0 to {}", hosts.len() - 1),
                );
            };
            if !host.ends.contains(&raw.from.as_str()) {
                let [a, b] = host.ends;
                let message =
                    format!("flow {flow} has no host at {:?} at {}, but at {a:?} and {b:?}", raw.from, raw.at);
                return at("flows", message);
            }
        }
        if named.is_empty() {
            at("flows", "name a flow, or leave `flows` out".into())
        } else {
            Ok(named.into_iter().collect())
        }
    }

    /// Checks that a node moves as a whole: the clients of all its flows move, or none. Some of them may move by
    /// another procedure, like bearers, with a table of their own for the same time.
    fn nodes_are_whole(&self, index: &str, raw: &HandoverKeys, movers: &[u32], hosts: &[Where<'_>]) -> Check<()> {
        let at = |key: &str, message: String| Err(self.source.at(&["handovers", index, key], &message));
        let named =
            self.keys.handovers.iter().filter(|other| is_with(raw, other)).filter_map(|other| other.flows.as_ref());
        let together: BTreeSet<u32> = named.flatten().chain(movers).copied().collect();
        let moving = movers.iter().map(|flow| &hosts[*flow as usize]).filter(|host| host.ends[0] == raw.from);
        for name in moving.filter_map(|host| host.spec.node.as_ref()).collect::<BTreeSet<_>>() {
            let of_node = (0..).zip(hosts).filter(|(_, host)| host.spec.node.as_ref() == Some(name));
            let flows: Vec<u32> = of_node.map(|(flow, _)| flow).collect();
            let here = |flow: &u32| hosts[*flow as usize].ends[0];
            // Flows which an earlier table moves at the same time are in the new cell already.
            let comes = |flow: &u32| here(flow) == raw.to && together.contains(flow);
            if let Some(apart) = flows.iter().find(|flow| here(flow) != raw.from && !comes(flow)) {
                let message = format!(
                    "node {name:?} takes part in [cooperation] and is one host, but its flow {apart} is at {:?}, not at \
                     {:?}: a node that moves has all its flows at one router",
                    here(apart),
                    raw.from
                );
                return at("from", message);
            }
            if !flows.iter().all(|flow| together.contains(flow)) {
                let message = format!(
                    "node {name:?} takes part in [cooperation] and moves as one host: name its flows {flows:?}, or \
                     leave `flows` out"
                );
                return at("flows", message);
            }
        }
        Ok(())
    }

    /// Returns the router at the other end of a flow, or a mistake if its host cannot move.
    fn can_move<'a>(&self, index: &str, raw: &HandoverKeys, flow: u32, host: &Where<'a>) -> Check<&'a str> {
        let at = |key: &str, message: String| Err(self.source.at(&["handovers", index, key], &message));
        if raw.at < host.since {
            return at("at", format!("flow {flow} is on its way to another cell until {}", host.since));
        }
        if matches!(host.spec.traffic, Traffic::SynFlood(_)) {
            return at("from", format!("flow {flow} is a flood, which has no host that could move"));
        }
        let other = if host.ends[0] == raw.from { host.ends[1] } else { host.ends[0] };
        if other == raw.to {
            return at("to", format!("flow {flow} would go from {other:?} to itself"));
        }
        Ok(other)
    }

    /// Checks that both cells are connected with the other end, and that their queues can take out the packets of a
    /// flow.
    fn cells_let_go(&self, index: &str, raw: &HandoverKeys, links: &[LinkSpec], other: &str) -> Check<()> {
        let at = |key: &str, message: String| Err(self.source.at(&["handovers", index, key], &message));
        // A node at the gateway's own router has no link to the gateway, so there is nothing to check.
        for (key, cell) in [("from", &raw.from), ("to", &raw.to)].into_iter().filter(|(_, cell)| *cell != other) {
            let Some(link) = paths::first_link(links, cell, other) else {
                return at(key, format!("no path from {cell:?} to {other:?}, the other end of a flow that moves"));
            };
            let spec = &links[link];
            let facts = LinkFacts { rate: spec.queue.layer.of_packets(spec.link.rate), limit: spec.link.limit };
            let mut queues = [&spec.queue, &spec.reverse_queue].into_iter();
            if let Some(queue) = queues.find(|queue| !queue.config.build::<Segment>(&facts).gives_up()) {
                let (name, link) = (queue.config.name(), &spec.name);
                let message = format!(
                    "the queue {name:?} of link {link:?} cannot give up a flow that moves; \"lte-bearers\", \"droptail\" \
                     and AQMs with one queue can"
                );
                return at(key, message);
            }
        }
        Ok(())
    }
}

/// True if both tables belong to the same move.
fn is_with(one: &HandoverKeys, other: &HandoverKeys) -> bool {
    let of = |raw: &HandoverKeys| (raw.at, raw.interruption.unwrap_or(INTERRUPTION));
    of(one) == of(other) && (&one.from, &one.to) == (&other.from, &other.to)
}
