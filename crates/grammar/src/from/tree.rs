//! Subscribers and groups, whoever told them, as the table `[subscribers]` takes them.

use super::{Key, Note};
use penstock_core::units::Rate;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// The deepest tree.
pub(super) const DEEPEST: usize = 100;

/// A prefix of IPv4, or one of IPv6 up to /64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Prefix {
    is_v6: bool,
    bits: u64,
    length: u8,
}

impl Prefix {
    /// Reads an address or a prefix; true if it was longer than a gateway tells hosts apart.
    pub fn read(text: &str) -> Result<(Self, bool), String> {
        let wrong = || format!("{text:?} is no address or prefix, such as 10.1.0.0/28 or 2001:db8::/56");
        let (address, length) = text.split_once('/').map_or((text, None), |(a, length)| (a, Some(length)));
        let address: IpAddr = address.trim().parse().map_err(|_| wrong())?;
        let (is_v6, bits, most, all) = match address {
            IpAddr::V4(v4) => (false, u64::from(v4.to_bits()), 32, 32),
            IpAddr::V6(v6) => (true, (v6.to_bits() >> 64) as u64, 64, 128),
        };
        let length: u8 = length.map_or(Ok(all), |length| length.trim().parse()).map_err(|_| wrong())?;
        if length > all {
            return Err(wrong());
        }
        let kept = length.min(most);
        let mask = if kept == 0 { 0 } else { (u64::MAX << (64 - kept)) >> (64 - u32::from(most)) };
        Ok((Self { is_v6, bits: bits & mask, length: kept }, length > most))
    }

    fn mask(self) -> u64 {
        let width = if self.is_v6 { 64 } else { 32 };
        if self.length == 0 { 0 } else { (u64::MAX << (64 - self.length)) >> (64 - width) }
    }

    fn contains(self, other: Self) -> bool {
        self.is_v6 == other.is_v6 && self.length <= other.length && other.bits & self.mask() == self.bits
    }
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let address = match u32::try_from(self.bits) {
            Ok(bits) if !self.is_v6 => IpAddr::from(bits.to_be_bytes()),
            _ => IpAddr::from((u128::from(self.bits) << 64).to_be_bytes()),
        };
        write!(f, "{address}/{}", self.length)
    }
}

/// A subscriber or a group.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Member {
    pub name: String,
    /// Which file and line it comes from.
    pub file: String,
    pub line: usize,
    /// What a comment says of it.
    pub about: String,
    pub prefixes: Vec<Prefix>,
    pub parent: Option<usize>,
    /// Of download and upload: guaranteed rate and ceiling, in bits per second.
    pub rates: [[Option<u64>; 2]; 2],
    pub weight: Option<u64>,
    pub discipline: Vec<Key>,
}

impl Member {
    pub(super) fn note(&self, word: &str, why: &str, instead: &str) -> Note {
        let word = super::clipped(&format!("{}: {word}", self.name));
        Note { file: self.file.clone(), line: self.line, word, why: why.into(), instead: instead.into() }
    }
}

/// Gives each member a name of its own: that with a suffix, if another one has it.
pub(super) fn name_apart(members: &mut [Member], suffix: impl Fn(&Member) -> String) {
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    for member in members {
        let own = if member.name.trim().is_empty() { suffix(member) } else { member.name.clone() };
        let own = if own.trim().is_empty() { format!("line {}", member.line) } else { own };
        let more = suffix(member);
        let second = if more.is_empty() || more == own { own.clone() } else { format!("{own} ({more})") };
        let name = [own, second.clone()].into_iter().find(|name| !taken.contains_key(name));
        let name = name.unwrap_or_else(|| {
            let mut next = taken.get(&second).copied().unwrap_or(1);
            loop {
                next += 1;
                let name = format!("{second} {next}");
                if !taken.contains_key(&name) {
                    taken.insert(second.clone(), next);
                    break name;
                }
            }
        });
        taken.insert(name.clone(), 1);
        member.name = name;
    }
}

/// Leaves addresses to the subscriber that has them first.
fn part_prefixes(members: &mut [Member], notes: &mut Vec<Note>) {
    let of = |(at, member): (usize, &Member)| member.prefixes.iter().map(|prefix| (*prefix, at)).collect::<Vec<_>>();
    let mut all: Vec<(Prefix, usize)> = members.iter().enumerate().flat_map(of).collect();
    all.sort_unstable();
    let mut around: Option<(Prefix, usize)> = None;
    for (prefix, at) in all {
        match around.filter(|(outer, _)| outer.contains(prefix)) {
            Some((outer, first)) if first != at => {
                let why =
                    format!("{outer} of {:?} has this address, and an address has one subscriber", members[first].name);
                notes.push(members[at].note(
                    &prefix.to_string(),
                    &why,
                    "it is left out; give the addresses to one of them",
                ));
                members[at].prefixes.retain(|own| *own != prefix);
            }
            Some(_) => {}
            None => around = Some((prefix, at)),
        }
    }
    for member in members {
        member.prefixes.sort_unstable();
        member.prefixes.dedup();
    }
}

/// Removes members that have no packets. Parents stand before their members.
fn prune(members: Vec<Member>, notes: &mut Vec<Note>) -> Vec<Member> {
    let mut keeps: Vec<bool> = members.iter().map(|member| !member.prefixes.is_empty()).collect();
    for at in (0..members.len()).rev() {
        if let Some(parent) = members[at].parent.filter(|_| keeps[at]) {
            keeps[parent] = true;
        }
    }
    let mut places = vec![0; members.len()];
    let mut kept: Vec<Member> = Vec::with_capacity(members.len());
    for (at, member) in members.into_iter().enumerate() {
        if keeps[at] {
            places[at] = kept.len();
            let parent = member.parent.map(|parent| places[parent]);
            kept.push(Member { parent, ..member });
        } else {
            notes.push(member.note(
                "no addresses",
                "a subscriber needs addresses, and a group needs members",
                "it is left out",
            ));
        }
    }
    kept
}

/// Makes of members what a tree before a link of these rates (download, upload) can be. Parents stand before their members.
pub(super) fn fit(mut members: Vec<Member>, rates: [Option<Rate>; 2], notes: &mut Vec<Note>) -> Vec<Member> {
    part_prefixes(&mut members, notes);
    let mut members = prune(members, notes);
    groups(&mut members, notes);
    for (way, name) in ["download", "upload"].into_iter().enumerate() {
        guarantees(&mut members, way, name, rates[way].map(Rate::as_bps), notes);
    }
    members
}

/// A group has no addresses of its own.
fn groups(members: &mut [Member], notes: &mut Vec<Note>) {
    let parents: Vec<usize> = members.iter().filter_map(|member| member.parent).collect();
    for at in parents {
        let member = &mut members[at];
        if !member.prefixes.is_empty() {
            let told = member.prefixes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            member.prefixes.clear();
            notes.push(member.note(
                &told,
                "it has members, so it is a group, which has no addresses",
                "give them to a member",
            ));
        }
        member.discipline.clear();
    }
}

/// Cuts what is guaranteed to what is there.
fn guarantees(members: &mut [Member], way: usize, name: &str, rate: Option<u64>, notes: &mut Vec<Note>) {
    let mut needs = vec![0u64; members.len()];
    let mut parts = vec![1.0f64; members.len()];
    let mut top = 0u64;
    for at in (0..members.len()).rev() {
        let [own, ceiling] = members[at].rates[way];
        let below = needs[at];
        if own.is_some_and(|own| own < below) {
            members[at].rates[way][0] = None;
            let why = format!(
                "its members have more guaranteed of the {name} than the {} of the group",
                told(own.unwrap_or(0))
            );
            notes.push(members[at].note("guarantee", &why, "the guarantee of the group is left out"));
        }
        let own = members[at].rates[way][0];
        let mut need = below.max(own.unwrap_or(0));
        if let Some(ceiling) = ceiling.filter(|ceiling| *ceiling < need) {
            let why = format!("{} of the {name} are guaranteed, of a ceiling of {}", told(need), told(ceiling));
            notes.push(members[at].note("guarantee", &why, "guarantees are cut to it, in proportion"));
            members[at].rates[way][0] = own.map(|own| own.min(ceiling));
            parts[at] = if below > ceiling { ceiling as f64 / below as f64 } else { 1.0 };
            need = ceiling;
        }
        match members[at].parent {
            Some(parent) => needs[parent] = needs[parent].saturating_add(need),
            None => top = top.saturating_add(need),
        }
    }
    let all = match rate {
        Some(rate) if top > rate => {
            if let Some(first) = members.first() {
                let why = format!("{} of the {name} are guaranteed, of a link of {}", told(top), told(rate));
                notes.push(first.note("and all others", &why, "guarantees are cut in proportion"));
            }
            rate as f64 / top as f64
        }
        _ => 1.0,
    };
    // What a member loses by all above it; its own part is that of its members.
    let mut lost = vec![1.0f64; members.len()];
    for at in 0..members.len() {
        lost[at] = members[at].parent.map_or(all, |parent| lost[parent] * parts[parent]);
        if let Some(own) = members[at].rates[way][0].filter(|_| lost[at] < 1.0) {
            // Rounded down in any case, so that no sum is above what it must keep.
            let cut = (own as f64 * lost[at] * (1.0 + 1e-12)) as u64 / 1000 * 1000;
            members[at].rates[way][0] = Some(cut).filter(|bps| *bps > 0);
        }
    }
}

fn told(bps: u64) -> Rate {
    Rate::from_bps(bps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str) -> String {
        Prefix::read(text)
            .map_or_else(|e| e, |(prefix, widened)| format!("{prefix}{}", if widened { " widened" } else { "" }))
    }

    #[test]
    fn prefixes_are_those_of_a_gateway() {
        assert_eq!(prefix("100.64.0.1"), "100.64.0.1/32");
        assert_eq!(prefix("10.1.2.3/24"), "10.1.2.0/24");
        assert_eq!(prefix("0.0.0.0/0"), "0.0.0.0/0");
        assert_eq!(prefix("fdd7:b724:0:100::/56"), "fdd7:b724:0:100::/56");
        assert_eq!(prefix("2001:db8::1"), "2001:db8::/64 widened");
        assert_eq!(prefix("::/0"), "::/0");
        for text in ["", "10.0.0.0/33", "10.0.0", "a::/129", "10.0.0.0/x", "10.0.0.0/-1"] {
            assert!(prefix(text).contains("no address"), "{text}");
        }
    }

    fn member(name: &str, parent: Option<usize>, [guaranteed, ceiling]: [u64; 2], addresses: &str) -> Member {
        let mbit = |n: u64| (n > 0).then_some(n * 1_000_000);
        let rates = [[mbit(guaranteed), mbit(ceiling)], [None, None]];
        let prefixes = addresses.split_whitespace().map(|text| Prefix::read(text).unwrap().0).collect();
        Member { name: name.into(), parent, rates, prefixes, ..Member::default() }
    }

    /// A group of 10 Mbit/s has promised 30: each promise is cut to a third. The link of 8 has then promised 10 and 6: half.
    #[test]
    fn guarantees_are_cut_to_what_is_there() {
        let members = vec![
            member("group", None, [0, 10], ""),
            member("a", Some(0), [12, 20], "10.0.0.1"),
            member("b", Some(0), [18, 20], "10.0.0.2"),
            member("c", None, [6, 4], "10.0.0.3"),
        ];
        let mut notes = Vec::new();
        let rates = [Some(Rate::from_bps(7_000_000)), None];
        let fitted = fit(members, rates, &mut notes);
        let cut: Vec<u64> = fitted.iter().map(|of| of.rates[0][0].unwrap_or(0)).collect();
        // 12 / 3 / 2, 18 / 3 / 2, and 4 / 2, in whole kbit/s.
        assert_eq!(cut, [0, 2_000_000, 3_000_000, 2_000_000]);
        assert_eq!(notes.len(), 3, "the group, c and the link");
    }

    #[test]
    fn an_address_has_one_subscriber_and_who_has_none_goes() {
        let members = vec![
            member("empty", None, [1, 0], ""),
            member("first", None, [1, 0], "10.0.0.0/24"),
            member("within", None, [1, 0], "10.0.0.7 10.0.1.7"),
            member("twice", None, [1, 0], "10.0.0.0/24"),
        ];
        let mut notes = Vec::new();
        let fitted = fit(members, [None, None], &mut notes);
        let told: Vec<String> = fitted.iter().map(|of| format!("{} {:?}", of.name, of.prefixes.len())).collect();
        assert_eq!(told, ["first 1", "within 1"]);
        assert_eq!(notes.len(), 4, "empty, two prefixes, and the one that has none left: {notes:?}");
    }

    #[test]
    fn names_are_told_apart() {
        let mut members = vec![
            Member { name: "a".into(), about: "1".into(), ..Member::default() },
            Member { name: "a".into(), about: "2".into(), ..Member::default() },
            Member { name: "a".into(), about: "2".into(), ..Member::default() },
            Member { name: " ".into(), about: "4".into(), ..Member::default() },
            Member { name: String::new(), line: 7, ..Member::default() },
        ];
        name_apart(&mut members, |member| member.about.clone());
        let names: Vec<&str> = members.iter().map(|member| member.name.as_str()).collect();
        assert_eq!(names, ["a", "a (2)", "a (2) 2", "4", "line 7"]);
    }
}
