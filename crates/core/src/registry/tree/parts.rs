//! What each subscriber could have of the link if it used all that it can get: the advice of its flows is divided from
//! that, and nothing else follows it.
//!
//! Once a second it is found out what each branch has sent. A branch that sent three quarters of what it could have wants
//! all that it can get, any other one what it sent and an eighth more, both up to its ceiling. What a group has is
//! divided as the tree serves it:
//!
//! ```text
//! own(c)   = min(guaranteed(c), wants(c))
//! extra(c) = wants(c) - own(c)
//! level    such that   own(all) + sum of min(extra(c), weight(c) * level) = what the group has
//! part(c)  = guaranteed(c) + weight(c) * level     with all that c can get as what it wants; at most its ceiling
//! ```
//!
//! Members are ranked by extra / weight with sums of those before, so that a question costs O(depth log n); the look costs
//! O(n log n). Nothing is allocated after a change of the branches.

use crate::allocation::ratio;
use crate::sched::tree::{Branch, depth, guaranteed};
use crate::units::{Instant, Rate, Span};

/// How often it is found out who uses what.
const PERIOD: Span = Span::from_secs(1);

/// A branch.
#[derive(Debug, Clone, Copy, Default)]
struct Member {
    /// The bytes that it had sent at the last look; of a group always 0.
    sent: u64,
    /// Bits per second between the last two looks.
    rate: u64,
    /// What it wants, in bits per second.
    wants: u64,
    /// What it has guaranteed; cut in proportion if the link has less than all guarantees.
    guaranteed: u64,
    /// Its place among the ranks.
    rank: usize,
}

impl Member {
    fn own(&self) -> u64 {
        self.guaranteed.min(self.wants)
    }

    fn extra(&self) -> u64 {
        self.wants - self.own()
    }
}

/// A member among those of its group, by the level at which it has what it wants.
#[derive(Debug, Clone, Copy, Default)]
struct Rank {
    /// 0 for what has no parent, else the parent and 1.
    group: usize,
    level: u64,
    at: usize,
    /// The sums of what those before it want beyond their guarantees, and of their weights.
    extra: u64,
    weight: u64,
}

/// The members of a group.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    begin: usize,
    end: usize,
    own: u64,
    extra: u64,
    weight: u64,
}

/// What the branches of a tree use.
#[derive(Debug, Clone, Default)]
pub(super) struct Parts {
    members: Vec<Member>,
    ranks: Vec<Rank>,
    groups: Vec<Group>,
    /// Branches so that each comes after its parent.
    downwards: Vec<usize>,
    /// What each has guaranteed by the settings.
    guaranteed: Vec<u64>,
    /// What each could have at the last look.
    parts: Vec<u64>,
    looked: Instant,
}

impl Parts {
    /// Those of a tree of these branches, of which `was` (new, old) were others of an earlier tree.
    pub fn new(branches: &[Branch], link: Rate, old: &Self, was: &[(usize, usize)]) -> Self {
        let n = branches.len();
        let mut members = vec![Member::default(); n];
        was.iter().for_each(|(new, before)| members[*new] = old.members.get(*before).copied().unwrap_or_default());
        let mut downwards: Vec<usize> = (0..n).collect();
        downwards.sort_by_key(|at| depth(branches, *at));
        let ranks = (0..n).map(|at| Rank { at, ..Rank::default() }).collect();
        let (groups, guaranteed, looked) = (vec![Group::default(); n + 1], guaranteed(branches), old.looked);
        let mut all = Self { members, ranks, groups, downwards, guaranteed, parts: vec![0; n], looked };
        all.rank(branches, link);
        all
    }

    /// Looks, if the last look was a second ago, at what branches have sent since the start; groups need not be told.
    pub fn look(&mut self, branches: &[Branch], link: Rate, sent: impl Fn(usize) -> u64, now: Instant) {
        let span = now.since(self.looked);
        if span < PERIOD {
            return;
        }
        self.looked = now;
        for (at, member) in self.members.iter_mut().enumerate() {
            let before = std::mem::replace(&mut member.sent, sent(at));
            member.rate = ratio(member.sent.saturating_sub(before), 8_000_000_000, span.as_nanos());
        }
        for at in self.downwards.iter().rev() {
            let rate = self.members[*at].rate;
            if let Some(parent) = branches[*at].parent {
                self.members[parent].rate = self.members[parent].rate.saturating_add(rate);
            }
        }
        for n in 0..self.downwards.len() {
            let at = self.downwards[n];
            let above = branches[at].parent.map_or(link.as_bps(), |parent| self.parts[parent]);
            self.parts[at] = self.part(branches, at, above);
        }
        for (member, part) in self.members.iter_mut().zip(&self.parts) {
            let all = member.rate / 3 >= part / 4;
            member.wants = if all { u64::MAX } else { member.rate.saturating_add(member.rate / 8) };
        }
        self.rank(branches, link);
    }

    /// Ranks all members anew, before a link of this rate.
    pub fn rank(&mut self, branches: &[Branch], link: Rate) {
        let top = branches.iter().zip(&self.guaranteed).filter(|(branch, _)| branch.parent.is_none());
        let promised = top.fold(0u64, |sum, (_, own)| sum.saturating_add(*own)).max(1);
        for ((member, branch), own) in self.members.iter_mut().zip(branches).zip(&self.guaranteed) {
            member.guaranteed = ratio(*own, link.as_bps().min(promised), promised);
            member.wants = branch.ceiling.map_or(member.wants, |ceiling| member.wants.min(ceiling.as_bps()));
        }
        for rank in &mut self.ranks {
            let (branch, member) = (&branches[rank.at], &self.members[rank.at]);
            let level = member.extra() / u64::from(branch.weight.get());
            *rank = Rank { group: group(branch), level, at: rank.at, extra: 0, weight: 0 };
        }
        self.ranks.sort_unstable_by_key(|rank| (rank.group, rank.level, rank.at));
        self.groups.fill(Group::default());
        for (n, rank) in self.ranks.iter_mut().enumerate() {
            let (group, member) = (&mut self.groups[rank.group], &mut self.members[rank.at]);
            if group.weight == 0 {
                group.begin = n;
            }
            (rank.extra, rank.weight, member.rank) = (group.extra, group.weight, n);
            group.end = n + 1;
            group.own = group.own.saturating_add(member.own());
            group.extra = group.extra.saturating_add(member.extra());
            group.weight += u64::from(branches[rank.at].weight.get());
        }
    }

    /// Returns what a branch could have, in bits per second, if its group has `above`.
    fn part(&self, branches: &[Branch], at: usize, above: u64) -> u64 {
        let (branch, member) = (&branches[at], &self.members[at]);
        let (group, weight) = (self.groups[group(branch)], u64::from(branch.weight.get()));
        let others = group.own.saturating_sub(member.own());
        let left = above.saturating_sub(others).saturating_sub(member.guaranteed);
        // The level if those whose sums these are have what they want, without this member, which wants everything.
        let level = |n: usize, extra: u64, have: u64| {
            let [extra_of_it, weight_of_it] = if member.rank < n { [member.extra(), weight] } else { [0, 0] };
            let rest = left.saturating_sub(extra.saturating_sub(extra_of_it));
            rest / (group.weight - (have - weight_of_it)).max(1)
        };
        let ranks = &self.ranks[group.begin..group.end];
        let full =
            ranks.partition_point(|rank| level(self.members[rank.at].rank, rank.extra, rank.weight) > rank.level);
        let level = match ranks.get(full) {
            Some(rank) => level(group.begin + full, rank.extra, rank.weight),
            None => level(group.end, group.extra, group.weight),
        };
        let part = member.guaranteed.saturating_add(level.saturating_mul(weight)).min(above.max(member.guaranteed));
        branch.ceiling.map_or(part, |ceiling| part.min(ceiling.as_bps()))
    }

    /// Returns what a branch could have of a link of this rate.
    pub fn of(&self, branches: &[Branch], at: usize, link: Rate) -> Rate {
        let above = branches[at].parent.map_or(link, |parent| self.of(branches, parent, link));
        Rate::from_bps(self.part(branches, at, above.as_bps()))
    }
}

/// The group of a branch.
fn group(branch: &Branch) -> usize {
    branch.parent.map_or(0, |parent| parent + 1)
}
