//! Classes of htb: subscribers where filters tell their addresses, and else the rate of the link.

use super::devices::{Class, Device, Filter, Handle, Queue, handle, leaf};
use super::kinds::Args;
use super::tree::{DEEPEST, Member, Prefix};
use super::units::{count, rate, size};
use super::{Key, Note, Text, Way};
use crate::Diagnosis;
use penstock_core::link_layer::LinkLayer;
use penstock_core::units::Rate;
use std::collections::BTreeMap;

/// What a class says.
#[derive(Debug, Clone, Copy)]
struct Numbers {
    rate: Rate,
    ceil: Rate,
    /// Bytes of a turn, which divide what is left.
    quantum: u64,
    prio: u64,
    layer: LinkLayer,
}

/// The disciplines' own words: the class of what no filter knows, and the divisor of quanta.
struct Own {
    default: Option<u16>,
    r2q: u64,
}

fn own(args: &mut Args<'_>) -> Result<Own, Diagnosis> {
    let mut own = Own { default: None, r2q: 10 };
    while let Some(word) = args.next() {
        match word {
            "default" => {
                let hex = |text: &str| {
                    let digits = text.trim_start_matches("0x").rsplit(':').next().unwrap_or("");
                    u16::from_str_radix(digits, 16).map_err(|_| format!("{text:?} is no minor number"))
                };
                own.default = Some(args.value(word, hex)?).filter(|minor| *minor > 0);
            }
            "r2q" => own.r2q = args.value(word, count)?.max(1),
            "direct_packets_stat" | "direct_qlen" | "debug" | "ver" => drop(args.next()),
            "offload" => {}
            _ => return Err(args.unknown(word, &["default", "r2q", "offload"])),
        }
    }
    Ok(own)
}

fn numbers(args: &mut Args<'_>, r2q: u64) -> Result<Numbers, Diagnosis> {
    let (mut of, mut ceil, mut quantum, mut prio) = (None, None, None, 0);
    let mut layer = LinkLayer::default();
    let cells = |text: &str| size(text.split('/').next().unwrap_or(text));
    while let Some(word) = args.next() {
        match word {
            "rate" => of = Some(args.value(word, rate)?),
            "ceil" => ceil = Some(args.value(word, rate)?),
            "quantum" => quantum = Some(args.value(word, size)?.get()),
            "prio" => prio = args.value(word, count)?,
            // A link sends one packet after another: no class sends more at once.
            "burst" | "buffer" | "maxburst" | "cburst" | "cbuffer" | "cmaxburst" => drop(args.value(word, cells)?),
            "mtu" | "mpu" | "level" | "leaf" => drop(args.next()),
            "overhead" => {
                layer.overhead = args.value(word, |text| text.parse().map_err(|_| format!("{text:?} is no number")))?
            }
            "linklayer" => layer.framing = args.value(word, super::kinds::framing)?,
            _ => {
                return Err(args
                    .unknown(word, &["rate", "ceil", "burst", "cburst", "quantum", "prio", "overhead", "linklayer"]));
            }
        }
    }
    if let Some((key, what)) = layer.mistake() {
        return Err(args.wrong(&format!("{key} {what}")));
    }
    let Some(rate) = of else { return Err(args.wrong("rate is missing, which tc needs")) };
    // sch_htb.c: bytes per second by r2q, within 1000 and 200000.
    let quantum = quantum.unwrap_or_else(|| (rate.as_bps() / 8 / r2q).clamp(1000, 200_000)).max(1);
    Ok(Numbers { rate, ceil: ceil.unwrap_or(rate).max(rate), quantum, prio, layer })
}

/// A class with its numbers.
struct Read<'a> {
    class: &'a Class,
    numbers: Numbers,
    prefixes: Vec<Prefix>,
}

/// Reads htb at the root of a device.
pub(super) fn read(
    text: &Text<'_>,
    device: &Device,
    queue: &Queue,
    is_download: bool,
    (way, members, notes): (&mut Way, &mut Vec<Member>, &mut Vec<Note>),
) -> Result<(), Diagnosis> {
    let own = own(&mut Args::new(text, queue.line, &queue.kind, &queue.words, notes))?;
    let major = queue.major.unwrap_or(0);
    let mut all = Vec::new();
    for class in device.classes.iter().filter(|class| class.id.0 == major && class.kind == "htb") {
        let mut args = Args::new(text, class.line, &class.kind, &class.words, notes);
        let numbers = numbers(&mut args, own.r2q)?;
        all.push(Read { class, numbers, prefixes: Vec::new() });
    }
    let order = ordered(text, &all)?;
    let mut all: Vec<Read<'_>> = {
        let mut slots: Vec<Option<Read<'_>>> = all.into_iter().map(Some).collect();
        order.into_iter().filter_map(|at| slots[at].take()).collect()
    };
    let Some(first) = all.first() else {
        return Err(
            text.wrong(queue.line, "htb: it has no class, so nothing tells a rate; give the lines `tc class` as well")
        );
    };
    if !first.numbers.layer.is_plain() {
        (way.layer, way.layer_from) = (first.numbers.layer, format!("line {}: htb overhead", first.class.line));
    }
    for filter in &device.filters {
        addresses(text, filter, is_download, &mut all, notes);
    }
    if all.iter().any(|read| !read.prefixes.is_empty()) {
        return subscribers(text, device, (&all, &own), is_download, (way, members, notes));
    }
    link(text, device, (&all, &own, queue.line), (way, notes))
}

/// Returns the places of classes so that parents stand before their members.
fn ordered(text: &Text<'_>, all: &[Read<'_>]) -> Result<Vec<usize>, Diagnosis> {
    let places: BTreeMap<Handle, usize> = all.iter().enumerate().map(|(at, read)| (read.class.id, at)).collect();
    let mut depths = Vec::with_capacity(all.len());
    for read in all {
        let mut depth = 0;
        let mut parent = read.class.parent;
        while parent.1 != 0 {
            let Some(at) = places.get(&parent) else {
                let what = format!("htb: its parent {:x}:{:x} is no class", parent.0, parent.1);
                return Err(text.wrong(read.class.line, &what));
            };
            parent = all[*at].class.parent;
            depth += 1;
            if depth > DEEPEST {
                return Err(
                    text.wrong(read.class.line, "htb: classes are nested too deeply, or in a circle; htb has 8 levels")
                );
            }
        }
        depths.push(depth);
    }
    let mut order: Vec<usize> = (0..all.len()).collect();
    order.sort_by_key(|at| depths[*at]);
    Ok(order)
}

fn by_id(all: &[Read<'_>], id: Handle) -> Option<usize> {
    all.iter().position(|read| read.class.id == id)
}

/// Gives classes the addresses of a filter, or notes why it has no counterpart.
fn addresses(text: &Text<'_>, filter: &Filter, is_download: bool, all: &mut [Read<'_>], notes: &mut Vec<Note>) {
    let words: Vec<&str> = filter.words.iter().map(String::as_str).collect();
    let mut note = |why: &str, instead: &str| {
        let shown = words.iter().skip_while(|word| !FILTERS.contains(word)).copied().collect::<Vec<_>>().join(" ");
        notes.push(text.note(filter.line, &format!("filter {shown}"), why, instead));
    };
    let after = |word: &str| words.iter().skip_while(|other| **other != word).nth(1).copied();
    let class = after("flowid").or_else(|| after("classid")).and_then(handle).and_then(|id| by_id(all, id));
    let Some(class) = class else {
        return note("it names no class of htb that is here", "see whether it is needed");
    };
    let matches: Vec<(&str, &str)> = if words.contains(&"u32") {
        let of = |at: usize| Some((words.get(at + 2).copied()?, words.get(at + 3).copied()?));
        (0..words.len()).filter(|at| words[*at] == "match").filter_map(of).collect()
    } else if words.contains(&"flower") {
        let ends = |key: &'static str| after(key).map(|value| (&key[..3], value));
        let more = ["dst_port", "src_port", "ip_proto", "ip_tos", "vlan_id"].iter().any(|key| words.contains(key));
        let of = ["src_ip", "dst_ip"].into_iter().filter_map(ends);
        if more { Vec::new() } else { of.collect() }
    } else {
        Vec::new()
    };
    let (inner, outer) = if is_download { ("dst", "src") } else { ("src", "dst") };
    match matches.as_slice() {
        [(end, prefix)] if *end == inner => match Prefix::read(prefix) {
            Ok((prefix, widened)) => {
                all[class].prefixes.push(prefix);
                if widened {
                    note("a subscriber of IPv6 has a /64 here", "the whole /64 is written");
                }
            }
            Err(why) => note(&why, "write it as a prefix"),
        },
        [(end, _)] if *end == outer => {
            note("it chooses by the far end of a connection; subscribers are on the side of the LAN", "leave it out");
        }
        _ => note(
            "subscribers are known by their addresses alone, not by ports, marks or protocols",
            "write their prefixes in [subscribers]",
        ),
    }
}

const FILTERS: [&str; 8] = ["u32", "flower", "fw", "basic", "bpf", "matchall", "route", "cgroup"];

/// Makes subscribers and groups of classes.
fn subscribers(
    text: &Text<'_>,
    device: &Device,
    (all, own): (&[Read<'_>], &Own),
    is_download: bool,
    (way, members, notes): (&mut Way, &mut Vec<Member>, &mut Vec<Note>),
) -> Result<(), Diagnosis> {
    let tops: Vec<usize> = (0..all.len()).filter(|at| all[*at].class.parent.1 == 0).collect();
    // A single class at the top without addresses is the link.
    let link = match tops.as_slice() {
        [only] if all[*only].prefixes.is_empty() => Some(*only),
        _ => None,
    };
    let sum = tops.iter().map(|at| all[*at].numbers.ceil.as_bps()).fold(0u64, u64::saturating_add);
    let from = format!("line {}: htb", all[tops.first().copied().unwrap_or(0)].class.line);
    way.rate = Some((Rate::from_bps(sum.min(crate::link::MAX_RATE.as_bps())), from));
    let mut places = BTreeMap::new();
    for (_, read) in all.iter().enumerate().filter(|(at, _)| Some(*at) != link) {
        let Read { class, numbers, prefixes } = read;
        let has_members = all.iter().any(|other| other.class.parent == class.id);
        if prefixes.is_empty() && !has_members {
            without_addresses(text, device, class, own, (way, notes))?;
            continue;
        }
        if numbers.prio > 0 {
            let word = format!("class {:x}:{:x} prio {}", class.id.0, class.id.1, numbers.prio);
            notes.push(text.note(
                class.line,
                &word,
                "no subscriber is served before another here",
                "give it a guarantee",
            ));
        }
        let of = if has_members { Way::default() } else { leaf(text, device, class.id, notes)? };
        limit(text, class, of.limit, (way, notes));
        let mut rates = [[None; 2]; 2];
        rates[if is_download { 0 } else { 1 }] = [Some(numbers.rate.as_bps()), Some(numbers.ceil.as_bps())];
        places.insert(class.id, members.len());
        members.push(Member {
            name: format!("class-{:x}-{:x}", class.id.0, class.id.1),
            file: text.name.into(),
            line: class.line,
            about: format!("line {}: class {:x}:{:x}", class.line, class.id.0, class.id.1),
            prefixes: prefixes.clone(),
            parent: places.get(&class.parent).copied(),
            rates,
            weight: Some(numbers.quantum),
            discipline: of.discipline,
        });
    }
    weights(members);
    Ok(())
}

/// Notes a class without addresses, and takes the discipline of that of all others.
fn without_addresses(
    text: &Text<'_>,
    device: &Device,
    class: &Class,
    own: &Own,
    (way, notes): (&mut Way, &mut Vec<Note>),
) -> Result<(), Diagnosis> {
    let is_default = own.default == Some(class.id.1);
    let why = if is_default {
        "whoever is in no list shares one queue of weight 1 here"
    } else {
        "no filter tells addresses of this class"
    };
    let word = format!("class {:x}:{:x}", class.id.0, class.id.1);
    notes.push(text.note(class.line, &word, why, "give it prefixes in [subscribers] if it is needed"));
    if is_default {
        let of = leaf(text, device, class.id, notes)?;
        (way.discipline, way.limit) = (of.discipline, of.limit);
    }
    Ok(())
}

/// The queue of each subscriber has the limit of the link.
fn limit(text: &Text<'_>, class: &Class, limit: Option<Key>, (way, notes): (&mut Way, &mut Vec<Note>)) {
    let Some(limit) = limit else { return };
    let has = way.limit.get_or_insert_with(|| limit.clone());
    if has.value != limit.value {
        let word = format!("class {:x}:{:x} limit {}", class.id.0, class.id.1, limit.value.trim_matches('"'));
        let why = format!("each queue has the limit of the link, {}", has.value);
        notes.push(text.note(class.line, &word, &why, "see whether it is enough"));
    }
}

/// Weights as small whole numbers: quanta without what all siblings have in common.
fn weights(members: &mut [Member]) {
    let mut common: BTreeMap<Option<usize>, u64> = BTreeMap::new();
    for member in members.iter() {
        let of = common.entry(member.parent).or_insert(0);
        *of = gcd(*of, member.weight.unwrap_or(1));
    }
    for member in members.iter_mut() {
        let by = common.get(&member.parent).copied().unwrap_or(1).max(1);
        member.weight = member.weight.map(|weight| (weight / by).clamp(1, 1 << 20)).filter(|weight| *weight > 1);
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Takes the rate of the link and its discipline from classes without addresses.
fn link(
    text: &Text<'_>,
    device: &Device,
    (all, own, line): (&[Read<'_>], &Own, usize),
    (way, notes): (&mut Way, &mut Vec<Note>),
) -> Result<(), Diagnosis> {
    let is_leaf = |read: &Read<'_>| !all.iter().any(|other| other.class.parent == read.class.id);
    let leaves: Vec<&Read<'_>> = all.iter().filter(|read| is_leaf(read)).collect();
    let default = leaves.iter().find(|read| own.default == Some(read.class.id.1));
    let chosen = match (leaves.as_slice(), default) {
        ([only], _) => *only,
        (_, Some(default)) => *default,
        (more, None) => match more.first() {
            Some(first) => first,
            None => return Err(text.wrong(line, "htb: it has no class that holds packets")),
        },
    };
    // With one leaf the least ceiling above it is the rate; with several, the whole of the tops.
    let tops = all.iter().filter(|read| read.class.parent.1 == 0);
    let sum = tops.map(|read| read.numbers.ceil.as_bps()).fold(0u64, u64::saturating_add);
    let rate = match leaves.len() {
        1 => all.iter().map(|read| read.numbers.ceil.as_bps()).min().unwrap_or(sum),
        _ => sum,
    };
    let top = all.iter().find(|read| read.class.parent.1 == 0).unwrap_or(chosen);
    let from = if leaves.len() == 1 { chosen } else { top };
    way.rate =
        Some((Rate::from_bps(rate.min(crate::link::MAX_RATE.as_bps())), format!("line {}: htb ceil", from.class.line)));
    let of = leaf(text, device, chosen.class.id, notes)?;
    (way.discipline, way.limit) = (of.discipline, of.limit);
    for read in leaves.iter().filter(|_| leaves.len() > 1) {
        let word = format!("class {:x}:{:x}", read.class.id.0, read.class.id.1);
        let why = "no filter tells addresses of this class, and there are no classes by ports or marks here";
        notes.push(text.note(read.class.line, &word, why, "take cake, which has tins, or write [subscribers]"));
    }
    Ok(())
}

/// Notes filters of a device that no class has used.
pub(super) fn unused(text: &Text<'_>, device: &Device, _: bool) -> Vec<Note> {
    let has_classes = !device.classes.is_empty();
    let note = |filter: &Filter| {
        let word = format!("filter {}", filter.words.join(" "));
        text.note(filter.line, &word, "there are no filters here", "see whether it is needed")
    };
    let classes = device.classes.iter().filter(|class| class.kind != "htb").map(|class| {
        text.note(
            class.line,
            &format!("class {}", class.kind),
            "classes of this kind are not here",
            "write [subscribers]",
        )
    });
    device.filters.iter().filter(|_| !has_classes).map(note).chain(classes).collect()
}

/// Joins the subscribers of both directions: those with the same addresses are one, and groups are those of the direction that
/// has more of them.
pub(super) fn joined(down: Vec<Member>, up: Vec<Member>, notes: &mut Vec<Note>) -> Vec<Member> {
    let groups = |members: &[Member]| members.iter().filter(|member| member.prefixes.is_empty()).count();
    let (mut all, others) = if groups(&up) > groups(&down) { (up, down) } else { (down, up) };
    let key = |member: &Member| match member.prefixes.as_slice() {
        [] => (member.name.clone(), Vec::new()),
        prefixes => (String::new(), sorted(prefixes)),
    };
    let known: BTreeMap<_, usize> = all.iter().enumerate().map(|(at, member)| (key(member), at)).collect();
    let mut places = Vec::with_capacity(others.len());
    for other in others {
        let parent = other.parent.map(|parent| places[parent]);
        let at = known.get(&key(&other)).copied().unwrap_or(all.len());
        places.push(at);
        match all.get_mut(at) {
            Some(one) => merge(one, &other, parent, notes),
            None => all.push(Member { parent, ..other }),
        }
    }
    super::tree::name_apart(&mut all, |member| format!("line {}", member.line));
    all
}

/// Gives a subscriber what it has in the other direction.
fn merge(one: &mut Member, other: &Member, parent: Option<usize>, notes: &mut Vec<Note>) {
    for (own, told) in one.rates.as_flattened_mut().iter_mut().zip(other.rates.as_flattened()) {
        *own = own.or(*told);
    }
    let is_plain = |member: &Member| member.discipline.len() == 1;
    let same = |a: &Member, b: &Member| {
        let keys =
            |member: &Member| member.discipline.iter().map(|key| (key.key, key.value.clone())).collect::<Vec<_>>();
        keys(a) == keys(b)
    };
    let mut note = |word: &str, instead: &str| {
        let why = format!("that of {} is another, and a subscriber has one for both directions", one.about);
        notes.push(other.note(word, &why, instead));
    };
    if one.weight != other.weight {
        note("quantum", "the other is the weight");
    }
    if parent.is_some() && one.parent != parent {
        note("parent", "the other is written");
    }
    if !same(one, other) {
        let takes = is_plain(one) && !is_plain(other);
        note("discipline", if takes { "this one is written" } else { "the other is written" });
        if takes {
            one.discipline.clone_from(&other.discipline);
        }
    }
    one.about = format!("{}; {}", one.about, other.about);
}

fn sorted(prefixes: &[Prefix]) -> Vec<Prefix> {
    let mut all = prefixes.to_vec();
    all.sort_unstable();
    all.dedup();
    all
}
