//! Reading of `[[flows]]` and `[tcp]`. The keys of each kind of traffic are in the file of that kind.

use super::{Check, Checker, profile};
use crate::actors::Traffic;
use crate::actors::settings::FlowFacts;
use crate::scenario::profiles::Profile;
use crate::scenario::{FlowSpec, LinkSpec, paths};
use crate::tcp::TcpConfig;
use penstock_core::units::{Rate, Span};
use penstock_grammar::fields;
use penstock_grammar::link;
use penstock_grammar::range::MAX_DURATION;
use penstock_grammar::source::Table;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeSet;

const MAX_FLOWS: u64 = 200_000;

/// The keys that all kinds of traffic have.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
pub(super) struct FlowKeys {
    /// The kind of traffic.
    kind: String,
    /// Number of equal flows.
    #[serde(default = "one")]
    count: u64,
    /// When the first flow starts.
    #[serde(default)]
    start: Span,
    /// Time between the starts of two consecutive flows.
    #[serde(default)]
    start_step: Span,
    /// Upper bound of the random time that is added to each start.
    #[serde(default)]
    start_spread: Span,
    /// When the flows stop.
    stop: Option<Span>,
    /// In a dumbbell: "forward", from left to right, or "reverse".
    direction: Option<String>,
    /// Delay of the client's access link.
    access_delay: Option<Span>,
    /// Router to which the clients are attached.
    from: Option<String>,
    /// Router to which the servers are attached.
    to: Option<String>,
    /// Name of the node to which the flows belong.
    node: Option<String>,
    /// Class of the flows in disciplines with classes.
    class: Option<u32>,
    /// Weight of each flow among the flows of its node.
    weight: Option<u32>,
    /// No element of the network sees the transport of the flows, as with QUIC or in a tunnel: their controls react, and no window
    /// of theirs can be written.
    opaque: Option<bool>,
    #[serde(rename = "cc")]
    #[schemars(skip)]
    _cc: Option<IgnoredAny>,
    #[serde(rename = "tcp")]
    #[schemars(skip)]
    _tcp: Option<IgnoredAny>,
}

fn one() -> u64 {
    1
}

impl<'a> Checker<'a> {
    pub(super) fn flows(&self, links: &[LinkSpec]) -> Check<Vec<FlowSpec>> {
        let tables = self.source.get(&["flows"]).map(|value| self.source.list(value)).transpose()?.unwrap_or_default();
        let kinds = Traffic::NAMES.iter().map(|kind| Traffic::keys_of(kind));
        let known: Vec<_> = std::iter::once(fields::of::<FlowKeys>()).chain(kinds).collect();
        let mut flows = Vec::with_capacity(tables.len());
        for (i, value) in tables.iter().enumerate() {
            let table = self.source.table(value, &known)?;
            flows.push(self.flow(&i.to_string(), &table, links)?);
        }
        let total: u64 = flows.iter().map(|f| f.count).fold(0, u64::saturating_add);
        if flows.is_empty() || total > MAX_FLOWS {
            let message =
                format!("a scenario has 1 to {MAX_FLOWS} flows; this one has {total}: write [[flows]] tables");
            return Err(self.source.at(&["flows"], &message));
        }
        Ok(flows)
    }

    fn flow(&self, index: &str, table: &Table<'_, 'a>, links: &[LinkSpec]) -> Check<FlowSpec> {
        let keys: FlowKeys = table.part()?;
        self.counted(index, &keys)?;
        self.times(index, &keys)?;
        let (from, to) = self.ends(index, &keys)?;
        let slowest = self.route(index, &from, &to, links)?;
        self.keys_belong(index, &keys.kind, table)?;
        let mut tcp = self.tcp(index, table)?;
        tcp.opaque = keys.opaque.unwrap_or(tcp.opaque);
        let facts = FlowFacts { count: keys.count, stop: keys.stop, mss: tcp.mss, slowest, library: self.library };
        let own = table.only(Traffic::keys_of(&keys.kind));
        let Some(traffic) = Traffic::read(&keys.kind, own, &facts) else {
            return Err(self.source.unknown(&["flows", index, "kind"], "kind", &keys.kind, Traffic::NAMES));
        };
        let traffic = traffic.map_err(|e| self.source.toml(&e, table.span()))?;
        let traffic = traffic.map_err(|e| table.invalid(&e))?;
        let weight = self.weight(index, &keys)?;
        if keys.opaque.is_some() && !traffic.uses_tcp() {
            let message = format!("kind {:?} has no TCP whose header could be hidden", keys.kind);
            return Err(self.source.at(&["flows", index, "opaque"], &message));
        }
        Ok(FlowSpec {
            count: keys.count,
            start: keys.start,
            start_step: keys.start_step,
            start_spread: keys.start_spread,
            stop: keys.stop,
            access_delay: keys.access_delay,
            node: keys.node,
            class: keys.class,
            weight,
            from,
            to,
            // For traffic without TCP nothing is written back, so the default keeps equal scenarios equal.
            tcp: if traffic.uses_tcp() { tcp } else { TcpConfig::default() },
            traffic,
        })
    }

    /// Refuses a table of no flows, which would be a flow that is missing in silence.
    fn counted(&self, index: &str, keys: &FlowKeys) -> Check<()> {
        if keys.count > 0 {
            return Ok(());
        }
        Err(self.source.at(&["flows", index, "count"], &format!("count is 0; allowed are 1 to {MAX_FLOWS}")))
    }

    fn times(&self, index: &str, keys: &FlowKeys) -> Check<()> {
        let spans = [("start", keys.start), ("start_step", keys.start_step), ("start_spread", keys.start_spread)];
        for (key, span) in spans {
            self.within_span(key, &["flows", index, key], span, Span::ZERO, MAX_DURATION)?;
        }
        if keys.stop.is_some_and(|stop| stop <= keys.start) {
            let message = format!("stop must be after start ({})", keys.start);
            return Err(self.source.at(&["flows", index, "stop"], &message));
        }
        self.placed(&["flows", index], link::delay("access_delay", keys.access_delay.unwrap_or_default()))
    }

    /// Checks that the table has all keys that the kind needs, and none of another kind.
    fn keys_belong(&self, index: &str, kind: &str, table: &Table<'_, '_>) -> Check<()> {
        if !Traffic::NAMES.contains(&kind) {
            return Err(self.source.unknown(&["flows", index, "kind"], "kind", kind, Traffic::NAMES));
        }
        let (common, own) = (fields::of::<FlowKeys>(), Traffic::keys_of(kind));
        if let Some(key) = table.keys().find(|key| !common.contains(key) && !own.contains(key)) {
            let message = format!("`{key}` means nothing for kind {kind:?}");
            return Err(self.source.at(&["flows", index, key], &message));
        }
        match Traffic::needed_by(kind).iter().find(|key| table.get(key).is_none()) {
            Some(key) => Err(self.source.at(&["flows", index, "kind"], &format!("kind {kind:?} needs `{key}`"))),
            None => Ok(()),
        }
    }

    fn weight(&self, index: &str, keys: &FlowKeys) -> Check<u32> {
        let weight = keys.weight.unwrap_or(1);
        if (1..=1000).contains(&weight) && (keys.weight.is_none() || keys.node.is_some()) {
            return Ok(weight);
        }
        let message = "`weight` is 1 to 1000, among the flows of one `node`";
        Err(self.source.at(&["flows", index, "weight"], message))
    }

    /// Returns the routers at which a flow's hosts are: those named, or in a dumbbell those that its direction gives.
    fn ends(&self, index: &str, keys: &FlowKeys) -> Check<(String, String)> {
        let at = |key: &str, message: &str| self.source.at(&["flows", index, key], message);
        let dumbbell = self.topology_kind()? == "dumbbell";
        let (left, right) = match keys.direction.as_deref() {
            Some(_) if !dumbbell => return Err(at("direction", "`direction` is for a dumbbell; name `from` and `to`")),
            None | Some("forward") => ("left", "right"),
            Some("reverse") => ("right", "left"),
            Some(other) => {
                let known = ["forward", "reverse"];
                return Err(self.source.unknown(&["flows", index, "direction"], "direction", other, &known));
            }
        };
        let end = |key: &str, value: &Option<String>, default: &str| match (dumbbell, value) {
            (true, None) => Ok(default.to_owned()),
            (true, Some(_)) => {
                let message = "a dumbbell's flows go from left to right, or back with `direction = \"reverse\"`; \
                               leave `from` and `to` out";
                Err(at(key, message))
            }
            (false, Some(node)) => Ok(node.clone()),
            (false, None) => Err(at("kind", &format!("`{key}` is missing: name the router of the flow's hosts"))),
        };
        Ok((end("from", &keys.from, left)?, end("to", &keys.to, right)?))
    }

    fn route(&self, index: &str, from: &str, to: &str, links: &[LinkSpec]) -> Check<Rate> {
        let at = |key: &str, message: &str| Err(self.source.at(&["flows", index, key], message));
        let routers: BTreeSet<&str> = links.iter().flat_map(|l| [l.a.as_str(), l.b.as_str()]).collect();
        for (key, router) in [("from", from), ("to", to)] {
            if !routers.contains(router) {
                let known: Vec<&str> = routers.into_iter().collect();
                return Err(self.source.unknown(&["flows", index, key], "router", router, &known));
            }
        }
        if from == to {
            return at("to", &format!("a flow goes from one router to another, not from {from:?} to itself"));
        }
        match paths::slowest(links, from, to) {
            Some(slowest) => Ok(slowest),
            None => at("to", &format!("no path from {from:?} to {to:?}; add links between them")),
        }
    }

    /// Returns the profile of a flow's hosts: that of its `tcp`, of `[tcp]`, or of the file.
    fn hosts(&self, index: &str) -> Check<Option<Profile>> {
        for path in [&["flows", index, "tcp", "profile"][..], &["tcp", "profile"]] {
            if let Some(value) = self.source.get(path) {
                let Some(name) = value.get_ref().as_str() else {
                    return Err(self.source.at(path, "`profile` is a text, such as \"linux\""));
                };
                return profile(self.source, path, name).map(Some);
            }
        }
        Ok(self.profile.clone())
    }

    /// Reads the scenario's `[tcp]`, over that of its profile, overridden by the flow's `tcp` and `cc`.
    fn tcp(&self, index: &str, flow: &Table<'_, 'a>) -> Check<TcpConfig> {
        let known = [fields::of::<TcpConfig>(), &["hystart", "profile"]];
        let hosts = self.hosts(index)?;
        let mut written = Table::empty(self.source, flow.span());
        for value in [self.source.get(&["tcp"]), flow.get("tcp")].into_iter().flatten() {
            written.put_over(&self.source.table(value, &known)?);
        }
        // Without SACK there is nothing that RACK could look at, in no host.
        let blind = written.get("sack").is_some_and(|sack| sack.get_ref().as_bool() == Some(false));
        let mut merged = Table::empty(self.source, flow.span());
        for (key, value) in hosts.iter().flat_map(Profile::tcp).filter(|(key, _)| !(blind && key == "rack")) {
            merged.put(key, &value);
        }
        // Hosts with one value for both keys, as Linux has (`rto_min` of a route), are told it once.
        let is_one = hosts.as_ref().is_some_and(Profile::has_one_timeout);
        let told = written.get("min_rto").filter(|_| is_one && written.get("rto_granularity").is_none());
        merged.put_over(&written);
        if let Some(least) = told {
            merged.put("rto_granularity", least);
        }
        merged.take("profile");
        if let Some(cc) = self.source.get(&["flows", index, "cc"]) {
            merged.put("cc", cc);
        }
        let (cc, hystart) = (merged.take("cc"), merged.take("hystart"));
        let cc = self.control(cc, hystart, hosts.as_ref())?;
        let mut config: TcpConfig = merged.part()?;
        config.cc = cc.unwrap_or(config.cc);
        // As in Linux (TCP_CONG_NEEDS_ECN), a control that counts marks turns ECN on, unless the file says otherwise.
        config.ecn |= config.needs_ecn() && written.get("ecn").is_none();
        config.validate().map_err(|e| self.source.span(merged.place(e.key), &e.to_string()))?;
        Ok(config)
    }
}
