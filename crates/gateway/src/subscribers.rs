//! The table `[subscribers]`: who counts as one, and what each gets of the link.
//!
//! ```toml
//! [subscribers]
//! house = ["10.1.0.0/28"]         # a list alone: weight 1
//!
//! [subscribers.street]            # a group: it has members and no prefixes
//! ceiling = "15Mbit/s"
//!
//! [subscribers.shop]
//! prefixes = ["10.2.0.0/16"]
//! parent = "street"
//! weight = 2
//! guaranteed = "5Mbit/s"          # of the download; `reverse_guaranteed` is that of the upload
//! discipline = { name = "fq-codel", target = "10ms" }
//! ```
//!
//! A list has prefixes of both families and hardware addresses (MAC), all of which count as one; no address is of two.
//! As soon as one of them is a table, the queue of both directions is a [`tree`].

use penstock_conntrack::{Named, Prefix};
use penstock_core::config::ConfigError;
use penstock_core::packet::NodeId;
use penstock_core::registry::{AnyConfig, tree};
use penstock_core::sched::Weight;
use penstock_core::sched::tree::{Branch, guaranteed};
use penstock_core::units::{Bytes, Limit, Rate};
use penstock_grammar::named::Disciplines;
use penstock_grammar::source::Value;
use penstock_grammar::{Diagnosis, Source as Text, fields, link};
use penstock_shaper::direction::Direction;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::{BTreeMap, BTreeSet};

/// The keys of a subscriber that is a table.
#[derive(Debug, Default, Deserialize)]
struct Keys {
    #[serde(default)]
    prefixes: Vec<Prefix>,
    parent: Option<String>,
    weight: Option<Weight>,
    guaranteed: Option<Rate>,
    ceiling: Option<Rate>,
    reverse_guaranteed: Option<Rate>,
    reverse_ceiling: Option<Rate>,
    #[serde(rename = "discipline")]
    _discipline: Option<IgnoredAny>,
}

/// A subscriber, or a group of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Subscriber {
    name: String,
    /// Prefixes and hardware addresses; none for a group.
    prefixes: Vec<Prefix>,
    /// What it is in the trees of both directions.
    branches: [Branch; 2],
    discipline: Option<AnyConfig>,
}

/// The table `[subscribers]`, in the order of the names.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Subscribers {
    pub list: Vec<Subscriber>,
    /// True if each has a part of the link.
    pub tree: bool,
}

const RATES: [[&str; 2]; 2] = [["guaranteed", "ceiling"], ["reverse_guaranteed", "reverse_ceiling"]];

impl Subscribers {
    pub fn read(source: &Text<'_>) -> Result<Self, Diagnosis> {
        let Some(value) = source.get(&["subscribers"]) else { return Ok(Self::default()) };
        let names: Vec<String> = source.read::<BTreeMap<String, IgnoredAny>>(value)?.into_keys().collect();
        let of = |name: &str| source.get(&["subscribers", name]).unwrap_or(value);
        let list =
            names.iter().map(|name| subscriber(source, name, of(name), &names)).collect::<Result<Vec<_>, _>>()?;
        let tree = names.iter().any(|name| of(name).get_ref().as_table().is_some());
        let all = Self { list, tree };
        all.check_prefixes(source)?;
        Ok(all)
    }

    fn check_prefixes(&self, source: &Text<'_>) -> Result<(), Diagnosis> {
        let parents: BTreeSet<usize> = self.list.iter().filter_map(|one| one.branches[0].parent).collect();
        for (at, Subscriber { name, prefixes, discipline, .. }) in self.list.iter().enumerate() {
            let (key, what) = match (prefixes.is_empty(), parents.contains(&at)) {
                (true, false) => ("prefixes", "it needs at least one prefix, or members that name it as `parent`"),
                (false, true) => ("prefixes", "it has members, so it is a group: give its prefixes to a member"),
                (true, true) if discipline.is_some() => {
                    ("discipline", "a group holds no packets: each of its members has a discipline")
                }
                _ => continue,
            };
            return Err(source.at(&["subscribers", name, key], what));
        }
        self.check_overlaps(source)
    }

    /// Refuses a prefix that has addresses of another subscriber.
    fn check_overlaps(&self, source: &Text<'_>) -> Result<(), Diagnosis> {
        let of = |(at, subscriber): (usize, &Subscriber)| {
            let prefixes = subscriber.prefixes.clone().into_iter().enumerate();
            prefixes.map(move |(n, prefix)| (prefix, (at, n))).collect::<Vec<_>>()
        };
        let mut all: Vec<_> = self.list.iter().enumerate().flat_map(of).collect();
        all.sort_unstable();
        let mut around: Option<(Prefix, (usize, usize))> = None;
        for (prefix, place) in all {
            match around.filter(|(outer, _)| outer.contains(prefix)) {
                Some((_, first)) if first.0 != place.0 => return Err(self.overlap(source, [first, place])),
                Some(_) => {}
                None => around = Some((prefix, place)),
            }
        }
        Ok(())
    }

    /// Two prefixes of two subscribers have the same addresses.
    fn overlap(&self, source: &Text<'_>, places: [(usize, usize); 2]) -> Diagnosis {
        let mut told = places.map(|place| {
            let value = self.prefix(source, place);
            let (text, span) = value.map_or(("", 0..0), |value| (value.get_ref().as_str().unwrap_or(""), value.span()));
            (span, text.to_owned(), &self.list[place.0].name)
        });
        told.sort_by_key(|(span, ..)| span.start);
        let [(before, first, name), (span, second, _)] = told;
        let line = source.span(before, "").line;
        let what = if first == second { "is" } else { "has addresses of" };
        source.span(span, &format!("{second} {what} {first} of {name:?} in line {line}; an address has one subscriber"))
    }

    /// Returns a prefix as the file has it: that with number `n` of a subscriber.
    fn prefix<'v, 'a>(&self, source: &'v Text<'a>, (at, n): (usize, usize)) -> Option<&'v Value<'a>> {
        let (name, n) = (self.list[at].name.as_str(), n.to_string());
        source.get(&["subscribers", name, "prefixes", &n]).or_else(|| source.get(&["subscribers", name, &n]))
    }

    /// Refuses hardware addresses, if there are some, with this sentence.
    pub fn refuse_hardware(&self, source: &Text<'_>, why: &str) -> Result<(), Diagnosis> {
        let of = |one: &Subscriber| one.prefixes.iter().position(|prefix| prefix.is_hardware());
        let found = self.list.iter().enumerate().find_map(|(at, one)| Some((at, of(one)?)));
        let Some(place) = found else { return Ok(()) };
        let span = self.prefix(source, place).map_or(0..0, |value| value.span());
        Err(source.span(span, &format!("a hardware address cannot be known here: {why}")))
    }

    /// Checks that a tree can be kept before links of these rates, with these disciplines of the others.
    pub fn check(&self, source: &Text<'_>, rates: [Rate; 2], others: [&AnyConfig; 2]) -> Result<(), Diagnosis> {
        for direction in Direction::BOTH.into_iter().filter(|_| self.tree) {
            let at = direction.index();
            if let Some(what) = tree::refused(others[at]) {
                let own = ["discipline", "reverse_discipline"][at];
                let place = if source.get(&[own]).is_some() { own } else { "discipline" };
                return Err(source.at(&[place], &what));
            }
            let config = self.config(direction, others[at], |_| NodeId::NOBODY);
            config.check(rates[at]).map_err(|wrong| {
                let key = match wrong.key {
                    "guaranteed" => RATES[at][0],
                    "ceiling" => RATES[at][1],
                    other => other,
                };
                let rate =
                    if source.get(&["link", "reverse_rate"]).is_some() { ["rate", "reverse_rate"][at] } else { "rate" };
                let line = source.at(&["link", rate], "").line;
                let beside = if wrong.beside_rate { format!(" (`{rate}` in line {line})") } else { String::new() };
                source.at(&["subscribers", &config.members[wrong.member].name, key], &(wrong.what + &beside))
            })?;
        }
        Ok(())
    }

    pub fn named(&self) -> Vec<Named> {
        let own = self.list.iter().filter(|subscriber| !subscriber.prefixes.is_empty());
        own.map(|Subscriber { name, prefixes, .. }| Named { name: name.clone(), prefixes: prefixes.clone() }).collect()
    }

    /// Returns how much all queues of a direction together may hold, if each has this limit.
    pub fn room(&self, limit: Limit) -> Limit {
        match limit {
            _ if !self.tree => limit,
            Limit::Packets(packets) => Limit::Packets(packets.saturating_mul(tree::QUEUES)),
            Limit::Bytes(bytes) => Limit::Bytes(Bytes::new(bytes.get().saturating_mul(tree::QUEUES))),
        }
    }

    /// Returns what all of them have guaranteed in a direction.
    pub fn guaranteed(&self, direction: Direction) -> u64 {
        let branches: Vec<Branch> = self.list.iter().map(|of| of.branches[direction.index()]).collect();
        let sums = guaranteed(&branches);
        branches.iter().zip(sums).filter(|(branch, _)| branch.parent.is_none()).map(|(_, sum)| sum).sum()
    }

    /// Returns the discipline of a direction, in which `others` is that of whoever has none; `number` tells the number of a
    /// subscriber by its name.
    pub fn discipline(&self, direction: Direction, others: &AnyConfig, number: impl Fn(&str) -> NodeId) -> AnyConfig {
        if self.tree { AnyConfig::Tree(Box::new(self.config(direction, others, number))) } else { others.clone() }
    }

    fn config(&self, direction: Direction, others: &AnyConfig, number: impl Fn(&str) -> NodeId) -> tree::Config {
        let member = |of: &Subscriber| {
            let discipline = of.discipline.as_ref().unwrap_or(others);
            tree::Member {
                name: of.name.clone(),
                branch: of.branches[direction.index()],
                queue: (!of.prefixes.is_empty()).then(|| (number(&of.name), discipline.clone())),
            }
        };
        tree::Config { members: self.list.iter().map(member).collect(), others: others.clone() }
    }

    /// Tells what is another: how many came, went and changed.
    pub fn difference(&self, new: &Self) -> String {
        let by_name = |all: &Self| {
            // Places in the list are others if somebody came or went.
            let one = |of: &Subscriber| {
                let parent = of.branches[0].parent.map(|at| all.list[at].name.clone());
                let branches = of.branches.map(|branch| Branch { parent: None, ..branch });
                (of.name.clone(), (parent, Subscriber { branches, ..of.clone() }))
            };
            all.list.iter().map(one).collect::<BTreeMap<_, _>>()
        };
        let (old, new) = (by_name(self), by_name(new));
        let added = new.keys().filter(|name| !old.contains_key(*name)).count();
        let removed = old.keys().filter(|name| !new.contains_key(*name)).count();
        let changed = new.iter().filter(|(name, one)| old.get(*name).is_some_and(|before| before != *one)).count();
        format!("{added} added, {removed} removed, {changed} changed")
    }
}

fn subscriber(source: &Text<'_>, name: &str, value: &Value<'_>, names: &[String]) -> Result<Subscriber, Diagnosis> {
    let invalid = |e: ConfigError| source.at(&["subscribers", name, e.key], &e.to_string());
    if name.is_empty() {
        return Err(source.span(value.span(), "a subscriber needs a name"));
    }
    let keys = match value.get_ref().as_table() {
        Some(_) => source.table(value, &[fields::of::<Keys>()])?.part()?,
        None => Keys { prefixes: source.read(value)?, ..Keys::default() },
    };
    let rates = [[keys.guaranteed, keys.ceiling], [keys.reverse_guaranteed, keys.reverse_ceiling]];
    for (key, rate) in RATES.as_flattened().iter().zip(rates.as_flattened()) {
        rate.map_or(Ok(()), |rate| link::rate(key, rate)).map_err(invalid)?;
    }
    let parent = |parent: String| {
        // Names are in order.
        let place = names.binary_search(&parent).ok().filter(|_| parent != name);
        place.ok_or_else(|| {
            let known: Vec<&str> = names.iter().map(String::as_str).filter(|other| *other != name).collect();
            source.unknown(&["subscribers", name, "parent"], "group", &parent, &known)
        })
    };
    let (parent, weight) = (keys.parent.map(parent).transpose()?, keys.weight.unwrap_or(Weight::ONE));
    let branches = rates.map(|[guaranteed, ceiling]| Branch { parent, weight, guaranteed, ceiling });
    let discipline = source.get(&["subscribers", name, "discipline"]);
    let discipline = discipline.map(|value| source.named(value, &Disciplines::built_in())).transpose()?;
    Ok(Subscriber { name: name.into(), prefixes: keys.prefixes, branches, discipline })
}
