//! `[cooperation]`: the gateway of a bottleneck and what is special about nodes behind it.

use super::paths;
use super::raw::{RawCooperation, text};
use super::{Check, Checker, FlowSpec, LinkSpec, MAX_DURATION};
use crate::actors::cooperation::{ADVERTISE, LEASE, Lie, NodeSpec, Spec as Cooperation};
use penstock_core::coop::policy::{Policy, Sharing};
use penstock_core::units::Span;
use std::collections::BTreeSet;
use toml::{Table, Value};

impl Checker<'_> {
    pub(super) fn cooperation(&self, links: &[LinkSpec], flows: &[FlowSpec]) -> Check<Option<Cooperation>> {
        let Some(raw) = &self.raw.cooperation else { return Ok(None) };
        let at = |key: &str, message: &str| self.source.at(&["cooperation", key], message);
        let link = self.link_of("link", &raw.link, links)?;
        let policy = Policy { literal: raw.literal, ..Policy::of(raw.sharing.unwrap_or(Sharing::UnweightedFair)) };
        policy.validate().map_err(|e| at(e.key, &e.to_string()))?;
        let (lease, advertise) = (raw.lease.unwrap_or(LEASE), raw.advertise.unwrap_or(ADVERTISE));
        self.within_span("lease", &["cooperation", "lease"], lease, Span::from_millis(100), Span::from_secs(3600))?;
        self.within_span("advertise", &["cooperation", "advertise"], advertise, Span::from_millis(10), lease)?;
        if let Some(silent) = raw.silent_from {
            self.within_span("silent_from", &["cooperation", "silent_from"], silent, Span::ZERO, MAX_DURATION)?;
        }
        let gateway = &links[link].a;
        for flow in flows {
            if flow.from != *gateway && paths::slowest(links, &flow.from, gateway).is_none() {
                return Err(at("link", &format!("no path from {:?} to the gateway at {gateway:?}", flow.from)));
            }
        }
        let nodes = self.special_nodes(raw, links, flows)?;
        Ok(Some(Cooperation { link, policy, lease, advertise, silent_from: raw.silent_from, nodes }))
    }

    fn link_of(&self, key: &str, name: &str, links: &[LinkSpec]) -> Check<usize> {
        let known: Vec<&str> = links.iter().map(|l| l.name.as_str()).collect();
        let found = known.iter().position(|known| *known == name);
        found.ok_or_else(|| self.source.unknown(&["cooperation", key], "link", name, &known))
    }

    fn special_nodes(&self, raw: &RawCooperation, links: &[LinkSpec], flows: &[FlowSpec]) -> Check<Vec<NodeSpec>> {
        let known: BTreeSet<&str> = flows.iter().filter_map(|f| f.node.as_deref()).collect();
        let known: Vec<&str> = known.into_iter().collect();
        let mut nodes = Vec::new();
        for node in &raw.nodes {
            if !known.contains(&node.name.as_str()) {
                return Err(self.source.unknown(&["cooperation", "nodes"], "node", &node.name, &known));
            }
            let csi = node.csi.as_ref().map(|name| self.link_of("nodes", name, links)).transpose()?;
            nodes.push(NodeSpec { name: node.name.clone(), csi, lie: node.lie });
        }
        Ok(nodes)
    }
}

/// As it is written back.
pub(super) fn write(spec: &Cooperation, links: &[LinkSpec]) -> Value {
    let sharing = Value::try_from(spec.policy.sharing).unwrap_or(Value::Boolean(false));
    let mut table = Table::from_iter([
        ("link".to_owned(), Value::String(links[spec.link].name.clone())),
        ("sharing".to_owned(), sharing),
        ("literal".to_owned(), Value::Boolean(spec.policy.literal)),
        ("lease".to_owned(), text(spec.lease)),
        ("advertise".to_owned(), text(spec.advertise)),
    ]);
    table.extend(spec.silent_from.map(|at| ("silent_from".to_owned(), text(at))));
    let node = |node: &NodeSpec| {
        let mut table = Table::from_iter([("name".to_owned(), Value::String(node.name.clone()))]);
        table.extend(node.csi.map(|link| ("csi".to_owned(), Value::String(links[link].name.clone()))));
        let word = Lie::ALL.iter().find(|(_, lie)| node.lie == Some(*lie)).map(|(word, _)| *word);
        table.extend(word.map(|word| ("lie".to_owned(), Value::String(word.into()))));
        Value::Table(table)
    };
    if !spec.nodes.is_empty() {
        table.insert("nodes".to_owned(), Value::Array(spec.nodes.iter().map(node).collect()));
    }
    Value::Table(table)
}
