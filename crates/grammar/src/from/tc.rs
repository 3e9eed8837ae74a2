//! Interfaces with their disciplines as the two directions of a link.

use super::devices::{Device, Devices, Queue, known};
use super::kinds::{self, Args};
use super::{Description, Format, LEAST_RATE, Note, Text, Way, classes, netem};
use crate::Diagnosis;
use penstock_core::link_layer::LinkLayer;

/// A device as a direction of the link.
struct Shaped<'a> {
    device: &'a Device,
    line: usize,
    way: Way,
    members: Vec<super::tree::Member>,
    notes: Vec<Note>,
    is_download: bool,
}

/// Reads lines of tc.
pub(super) fn read(text: &Text<'_>) -> Result<Description, Diagnosis> {
    let devices = Devices::of(text)?;
    let mut all = Vec::new();
    let mut notes = devices.notes.clone();
    for device in devices.list.iter().filter(|device| device.name != "lo") {
        all.extend(shaped(text, &devices, device, &mut notes)?);
    }
    let has_link = |shaped: &Shaped<'_>| shaped.way.rate.is_some() || !shaped.way.wire.is_empty();
    if all.iter().any(has_link) {
        for other in all.extract_if(.., |shaped| !has_link(shaped)) {
            let word = format!("{} {}", other.device.name, other.device.root().map_or("", |queue| &queue.kind));
            let why = "it has no rate, so it is not before the link";
            notes.push(text.note(other.line, &word, why, "leave it to the kernel"));
        }
    }
    if let Some(other) = notes.iter().find(|note| note.why == UNKNOWN).filter(|_| all.is_empty()) {
        let what = format!(
            "{}: {UNKNOWN}; there are cake, fq_codel, codel, pie, fq_pie, red, sfq, tbf, htb, pfifo and netem",
            other.word
        );
        return Err(text.wrong(other.line, &what));
    }
    let [down, up] = directions(text, all)?;
    let wan = wan(&devices, [down.as_ref(), up.as_ref()]);
    Ok(described(text, wan, notes, [down, up].map(Option::unwrap_or_default)))
}

/// Joins both directions.
fn described(text: &Text<'_>, wan: (String, String), mut notes: Vec<Note>, [down, up]: [Told; 2]) -> Description {
    let (mut gateway_notes, mut scenario_notes) = (Vec::new(), Vec::new());
    if wan.1.is_empty() {
        gateway_notes.push(text.note(1, "dev", "no line tells the interface to the link", "write its name as `wan`"));
    }
    let members = classes::joined(down.members, up.members, &mut gateway_notes);
    notes.extend([down.notes, up.notes].concat());
    let ways = [down.way, up.way];
    for (way, name) in ways.iter().zip(["download", "upload"]) {
        untold(text, way, name, [&mut notes, &mut gateway_notes, &mut scenario_notes]);
        let real: Vec<&str> = way.wire.iter().filter(|key| !key.from.is_empty()).map(|key| key.key).collect();
        if !real.is_empty() {
            let why = "a gateway is before a real link, which does this itself or not at all";
            let instead = "see `penstock new scenario NAME --from`, or penstock-emulate";
            gateway_notes.push(text.note(way.wire_line, &format!("netem {}", real.join(", ")), why, instead));
        }
    }
    let rates = ways.each_ref().map(|way| way.rate.as_ref().map(|(rate, _)| *rate));
    let members = super::tree::fit(members, rates, &mut gateway_notes);
    if let Some(first) = members.first() {
        let why = "a scenario has no tree of subscribers";
        scenario_notes.push(first.note("and all others", why, "the link alone is written"));
    }
    let files = vec![text.name.into()];
    let format = Format::Tc;
    Description { format, files, wan, ways, members, busiest: None, notes, gateway_notes, scenario_notes }
}

/// What stays of a device when its direction is known.
#[derive(Default)]
struct Told {
    device: String,
    way: Way,
    members: Vec<super::tree::Member>,
    notes: Vec<Note>,
    line: usize,
}

/// Finds which device is the download, and which the upload.
fn directions(text: &Text<'_>, all: Vec<Shaped<'_>>) -> Result<[Option<Told>; 2], Diagnosis> {
    let mut ways = [None, None];
    for Shaped { device, line, way, members, notes, is_download } in all {
        let told = Told { device: device.name.clone(), way, members, notes, line };
        let place: &mut Option<Told> = &mut ways[if is_download { 0 } else { 1 }];
        if let Some(before) = place.replace(told) {
            let both = format!("{} (line {}) and {} (line {line})", before.device, before.line, device.name);
            let what = if is_download {
                format!("{both} are both for downloads; leave the lines of one link")
            } else {
                format!(
                    "{both} both send; leave the lines of the interface to the link, and those of its IFB or of a cake with `ingress`"
                )
            };
            return Err(text.wrong(line, &what));
        }
    }
    if ways.iter().all(Option::is_none) {
        return Err(text.wrong(1, "no line has a discipline at the root of an interface that is known here"));
    }
    Ok(ways)
}

/// Returns the interface to the link, and where it comes from.
fn wan(devices: &Devices, [down, up]: [Option<&Told>; 2]) -> (String, String) {
    if let Some(up) = up {
        return (up.device.clone(), format!("line {}", up.line));
    }
    let of = down.map_or("", |down| down.device.as_str());
    let line = down.map_or(0, |down| down.line);
    let redirects = devices.redirected.iter().find(|(_, to)| to == of).map(|(from, _)| from.as_str());
    let named = of.strip_prefix("ifb4").filter(|name| !name.is_empty());
    let receiving = devices.list.iter().find(|device| device.receives()).map(|device| device.name.as_str());
    let own = Some(of).filter(|name| !name.is_empty() && !name.starts_with("ifb"));
    match redirects.or(named).or(own).or(receiving) {
        Some(name) => (name.into(), format!("line {line}")),
        None => ("eth0".into(), String::new()),
    }
}

/// Notes what a direction does not say: for both files, for that of a gateway, for a scenario.
fn untold(text: &Text<'_>, way: &Way, name: &str, [all, gateway, scenario]: [&mut Vec<Note>; 3]) {
    if way.rate.is_none() {
        let why = format!("no line tells the rate of the {name}");
        let instead = "10Gbit/s are written, at which hardly anything waits here; write the rate of the link, a little less than it carries";
        gateway.push(text.note(1, name, &why, instead));
        scenario.push(text.note(1, name, &why, "that of every new scenario is written; write the rate of the link"));
    } else if way.is_raw || !way.counts_ip {
        let why = format!(
            "tc counts the header of the interface (14 bytes with Ethernet) of the {name}, a link here counts IP packets"
        );
        all.push(text.note(1, "overhead", &why, "add 14 to `overhead` of the link for the same rate"));
    }
}

/// Reads the disciplines of a device; `None` if it has none that is known at the root.
fn shaped<'a>(
    text: &'a Text<'_>,
    devices: &Devices,
    device: &'a Device,
    lost: &mut Vec<Note>,
) -> Result<Option<Shaped<'a>>, Diagnosis> {
    let Some(root) = device.root() else { return Ok(None) };
    let (mut notes, mut way, mut members) = (Vec::new(), Way::default(), Vec::new());
    let is_ifb = device.name.starts_with("ifb") || devices.redirected.iter().any(|(_, to)| *to == device.name);
    let is_download = is_ifb || (root.kind == "cake" && is_ingress(&root.words));
    let known = chain(text, device, root, is_download, (&mut way, &mut members, &mut notes))?;
    for (_, line, words) in devices.stabs.iter().filter(|(name, ..)| *name == device.name) {
        stab_layer(text, *line, words, &mut way, &mut notes)?;
    }
    if let Some((rate, _)) = &way.rate
        && *rate < LEAST_RATE
    {
        let what = format!("{rate} is less than a link here can have, {LEAST_RATE}, a packet in a second");
        return Err(text.wrong(root.line, &what));
    }
    if !known {
        lost.append(&mut notes);
        return Ok(None);
    }
    notes.extend(classes::unused(text, device, !members.is_empty()));
    Ok(Some(Shaped { device, line: root.line, way, members, notes, is_download }))
}

fn is_ingress(words: &[String]) -> bool {
    words.iter().rev().find(|word| ["ingress", "egress"].contains(&word.as_str())).is_some_and(|word| word == "ingress")
}

/// What is read of a device: its direction, its subscribers, what has no counterpart.
type Parts<'p> = (&'p mut Way, &'p mut Vec<super::tree::Member>, &'p mut Vec<Note>);

/// Why a discipline is not read.
const UNKNOWN: &str = "this discipline is not here";

/// What comes of a discipline.
enum Step {
    /// One below it may say more.
    GoesOn,
    Known,
    Unknown,
}

/// Reads a discipline, and those below it; true if it is one that is known.
fn chain(
    text: &Text<'_>,
    device: &Device,
    root: &Queue,
    is_download: bool,
    (way, members, notes): Parts<'_>,
) -> Result<bool, Diagnosis> {
    let mut queue = root;
    for seen in 0..MOST_NESTED {
        match step(text, device, queue, is_download, (way, members, notes))? {
            Step::GoesOn => {}
            Step::Known => return Ok(true),
            Step::Unknown => return Ok(seen > 0),
        }
        let Some(next) = device.first_below(queue.major).filter(|next| next.line != queue.line) else {
            return Ok(queue.kind != "mq");
        };
        let is_wire = queue.kind == "netem";
        if let Some(limit) = way.limit.as_ref().filter(|_| is_wire) {
            let word = format!("netem limit {}", limit.value.trim_matches('"'));
            let instead = "the limit of the queue below it is written";
            notes.push(text.note(queue.line, &word, "a wire holds what is on it", instead));
        }
        queue = next;
    }
    Err(text.wrong(queue.line, "disciplines are nested too deeply"))
}

/// The most disciplines below each other.
const MOST_NESTED: usize = 16;

/// Reads one discipline.
fn step(
    text: &Text<'_>,
    device: &Device,
    queue: &Queue,
    is_download: bool,
    (way, members, notes): Parts<'_>,
) -> Result<Step, Diagnosis> {
    let mut args = Args::new(text, queue.line, &queue.kind, &queue.words, notes);
    match queue.kind.as_str() {
        "netem" => netem::read(&mut args, way).map(|()| Step::GoesOn),
        "tbf" => kinds::tbf(&mut args, way).map(|()| Step::GoesOn),
        "mq" => Ok(Step::GoesOn),
        "noqueue" | "ingress" | "clsact" => Ok(Step::Unknown),
        "htb" => classes::read(text, device, queue, is_download, (way, members, notes)).map(|()| Step::Known),
        kind if kinds::is_known(kind) => known(&mut args, way).map(|()| Step::Known),
        _ => {
            args.note("", UNKNOWN, "take one of `penstock list`; what is below it is not read");
            Ok(Step::Unknown)
        }
    }
}

/// Reads what `stab` adds to packets.
fn stab_layer(
    text: &Text<'_>,
    line: usize,
    words: &[String],
    way: &mut Way,
    notes: &mut Vec<Note>,
) -> Result<(), Diagnosis> {
    let mut args = Args::new(text, line, "stab", words, notes);
    let mut layer = LinkLayer::default();
    while let Some(word) = args.next() {
        match word {
            "overhead" => {
                layer.overhead = args.value(word, |text| text.parse().map_err(|_| format!("{text:?} is no number")))?
            }
            "mpu" => layer.mpu = args.value(word, |text| text.parse().map_err(|_| format!("{text:?} is no number")))?,
            "linklayer" => layer.framing = args.value(word, kinds::framing)?,
            _ => drop(args.next()),
        }
    }
    if let Some((key, what)) = layer.mistake() {
        return Err(args.wrong(&format!("{key} {what}")));
    }
    way.layer_from = args.from("");
    way.layer = layer;
    Ok(())
}
