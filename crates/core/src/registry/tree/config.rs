//! The settings of a tree of subscribers, and what is wrong with them.

use super::Tree;
use crate::config::tables::written;
use crate::config::{ConfigError, LinkFacts};
use crate::packet::{Ecn, FlowId, NoTcp, NodeId, Packet};
use crate::registry::AnyConfig;
use crate::sched::Weight;
use crate::sched::tree::{Branch, depth, guaranteed};
use crate::units::{Bytes, Limit, Rate};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

/// The branch of those who have no place of their own.
pub(super) const ALONE: Branch = Branch { parent: None, weight: Weight::ONE, guaranteed: None, ceiling: None };

/// A subscriber, or a group of subscribers and groups.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Its name, by which it is the same member in other settings.
    pub name: String,
    /// Its place and its rates. Parents are places in [`Config::members`].
    pub branch: Branch,
    /// The number of the subscriber, as [`Fact::Owner`](crate::fact::Fact::Owner) tells it, and the discipline of its queue;
    /// `None` for a group.
    pub queue: Option<(NodeId, AnyConfig)>,
}

/// The settings of a tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Subscribers and groups.
    pub members: Vec<Member>,
    /// The discipline of the queue of all others, whose weight is 1.
    pub others: AnyConfig,
}

/// What is wrong with a tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Wrong {
    /// The place of the member.
    pub member: usize,
    /// The key of the member: `parent`, `guaranteed`, `ceiling` or `discipline`.
    pub key: &'static str,
    /// What, and what is allowed.
    pub what: String,
    /// True if it is the rate of the link with which the key does not go together.
    pub beside_rate: bool,
}

impl Config {
    /// The branches of the tree, that of all others at the end.
    pub(super) fn branches(&self) -> Vec<Branch> {
        self.members.iter().map(|member| member.branch).chain([ALONE]).collect()
    }

    /// The name of a branch, and the discipline of its queue; `None` for a group.
    pub(super) fn queue(&self, branch: usize) -> (&str, Option<&AnyConfig>) {
        match self.members.get(branch) {
            Some(member) => (&member.name, member.queue.as_ref().map(|(_, discipline)| discipline)),
            None => ("", Some(&self.others)),
        }
    }

    /// Checks that all guarantees can be kept before a link of this rate.
    ///
    /// # Errors
    /// Returns the first member that is wrong.
    pub fn check(&self, rate: Rate) -> Result<(), Wrong> {
        let branches = self.branches();
        let wrong = |member, key, what: String| Wrong { member, key, what, beside_rate: false };
        for (at, member) in self.members.iter().enumerate() {
            if depth(&branches, at) >= branches.len() {
                return Err(wrong(at, "parent", "its parents go round in a circle".into()));
            }
            let refused = member.queue.as_ref().and_then(|(_, discipline)| refused(discipline));
            if let Some(what) = refused {
                return Err(wrong(at, "discipline", what));
            }
        }
        let sums = guaranteed(&branches);
        let mut promised = 0u64;
        for (at, Member { branch, .. }) in self.members.iter().enumerate() {
            let sum = Rate::from_bps(sums[at]);
            if branch.guaranteed.is_some_and(|own| own < sum) {
                return Err(wrong(at, "guaranteed", format!("its members have {sum} guaranteed, which is more")));
            }
            if branch.ceiling.is_some_and(|ceiling| ceiling.as_bps() < sums[at]) {
                return Err(wrong(
                    at,
                    "ceiling",
                    format!("it, or its members together, have {sum} guaranteed, which is more"),
                ));
            }
            promised = promised.saturating_add(if branch.parent.is_none() { sums[at] } else { 0 });
            if promised > rate.as_bps() {
                let promised = Rate::from_bps(promised);
                let what = format!("with this, {promised} are guaranteed, but the rate of the link is {rate}");
                return Err(Wrong { beside_rate: true, ..wrong(at, "guaranteed", what) });
            }
        }
        Ok(())
    }

    /// Refuses what a tree cannot have.
    ///
    /// # Errors
    /// Names what is wrong.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let highest = Rate::from_bps(u64::MAX);
        self.check(highest).map_err(|wrong| ConfigError::new(wrong.key, wrong.what))?;
        refused(&self.others).map_or(Ok(()), |what| Err(ConfigError::new("name", what)))
    }

    /// Builds the tree before a link. Call it only after [`Config::validate`].
    pub fn build<P: Packet>(&self, link: &LinkFacts) -> Tree<P> {
        Tree::new(self, link)
    }

    /// The rate that the discipline of a branch is told: the least ceiling from it up to the link.
    pub(super) fn told(branches: &[Branch], at: usize, rate: Rate) -> Rate {
        let above = std::iter::successors(Some(at), |at| branches[*at].parent);
        above.filter_map(|at| branches[at].ceiling).chain([rate]).min_by_key(|rate| rate.as_bps()).unwrap_or(rate)
    }
}

/// Returns why a subscriber cannot have this discipline; `None` if it can.
pub fn refused(discipline: &AnyConfig) -> Option<String> {
    if let Err(wrong) = discipline.validate() {
        return Some(wrong.to_string());
    }
    let any = LinkFacts { rate: Rate::from_bps(1_000_000), limit: Limit::Packets(1) };
    let nested = matches!(discipline, AnyConfig::Tree(_));
    let sees = discipline.build::<NoPacket>(&any).sees_segments();
    (nested || sees).then(|| {
        let name = discipline.name();
        format!("{name} divides the rate of a whole link; a subscriber in a tree has another discipline, such as \"fq-codel\"")
    })
}

/// A packet that does not exist, to ask a discipline what it does without one.
enum NoPacket {}

impl Packet for NoPacket {
    type Tcp = NoTcp;

    fn size(&self) -> Bytes {
        match *self {}
    }
    fn flow(&self) -> FlowId {
        match *self {}
    }
    fn ecn(&self) -> Ecn {
        match *self {}
    }
    fn mark_ce(&mut self) {
        match *self {}
    }
    fn tcp(&mut self) -> Option<&mut NoTcp> {
        match *self {}
    }
}

impl Serialize for Config {
    /// Subscribers may be many: how many there are, and the discipline of all others.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut others = Map::from_iter([("name".to_owned(), Value::from(self.others.name()))]);
        others.append(&mut written(&self.others));
        let subscribers = self.members.iter().filter(|member| member.queue.is_some()).count();
        json!({"subscribers": subscribers, "others": others}).serialize(serializer)
    }
}
