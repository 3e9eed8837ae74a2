//! Lines of `tc` as devices with their disciplines, and these as the two directions of a link.

use super::kinds::{self, Args};
use super::words::{Command, Object, Verb, commands};
use super::{Description, Format, Key, LEAST_RATE, Note, Text, Way, classes, netem, quoted, red};
use crate::Diagnosis;
use penstock_core::link_layer::LinkLayer;

/// A number of tc: major and minor.
pub(super) type Handle = (u16, u16);

/// Where a discipline stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Under(Handle),
    Ingress,
}

/// A discipline of an interface.
#[derive(Debug, Clone)]
pub(super) struct Queue {
    pub line: usize,
    pub kind: String,
    pub major: Option<u16>,
    place: Place,
    pub words: Vec<String>,
}

/// A class of an interface.
#[derive(Debug, Clone)]
pub(super) struct Class {
    pub line: usize,
    pub kind: String,
    pub id: Handle,
    pub parent: Handle,
    pub words: Vec<String>,
}

/// A filter of an interface, as the words behind `dev` and the like.
#[derive(Debug, Clone)]
pub(super) struct Filter {
    pub line: usize,
    pub words: Vec<String>,
}

/// An interface.
#[derive(Debug, Clone, Default)]
pub(super) struct Device {
    pub name: String,
    queues: Vec<Queue>,
    pub classes: Vec<Class>,
    pub filters: Vec<Filter>,
}

impl Device {
    /// Returns the discipline at the root.
    fn root(&self) -> Option<&Queue> {
        self.queues.iter().find(|queue| queue.place == Place::Root)
    }

    /// Returns the discipline under one with this number, or under a class of it.
    pub fn below(&self, handle: Handle) -> Option<&Queue> {
        let is_below = |queue: &&Queue| matches!(queue.place, Place::Under(at) if at == handle);
        self.queues.iter().find(is_below)
    }

    /// Returns the first discipline under one with this number, in whichever class.
    fn first_below(&self, major: Option<u16>) -> Option<&Queue> {
        let is_below = |queue: &&Queue| matches!(queue.place, Place::Under((at, _)) if Some(at) == major);
        self.queues.iter().find(is_below)
    }
}

pub(super) fn handle(text: &str) -> Option<Handle> {
    let (major, minor) = text.split_once(':')?;
    let hex = |text: &str| {
        if text.is_empty() { Some(0) } else { u16::from_str_radix(text.trim_start_matches("0x"), 16).ok() }
    };
    Some((hex(major)?, hex(minor)?))
}

/// What stands before the kind in a command or a line that was shown.
#[derive(Default)]
struct Head {
    device: Option<String>,
    place: Option<Place>,
    handle: Option<Handle>,
    class: Option<Handle>,
    stab: Vec<String>,
    rest: Vec<String>,
}

fn head(text: &Text<'_>, command: &Command) -> Result<Head, Diagnosis> {
    let mut head = Head::default();
    let mut words = command.words.iter();
    if command.verb == Verb::Shown {
        let kind = words.next().cloned().unwrap_or_default();
        let number = words.next().and_then(|word| handle(word));
        let wrong =
            || text.wrong(command.line, "a line of what tc shows has a kind and a number, such as `qdisc cake 8001:`");
        match command.object {
            Object::Class => head.class = Some(number.ok_or_else(wrong)?),
            Object::Qdisc => head.handle = Some(number.ok_or_else(wrong)?),
            Object::Filter => {}
        }
        head.rest.push(kind);
    }
    let wrong = |word: &str| text.wrong(command.line, &format!("{word} is no number of tc, such as 1: or 1:10"));
    while let Some(word) = words.next() {
        let mut number = || {
            let value = words.next().map_or("", String::as_str);
            handle(value).ok_or_else(|| wrong(if value.is_empty() { word } else { value }))
        };
        match word.as_str() {
            "dev" => head.device = words.next().cloned(),
            "root" => head.place = Some(Place::Root),
            "parent" => head.place = Some(Place::Under(number()?)),
            "handle" if command.object == Object::Qdisc => head.handle = Some(number()?),
            "classid" if command.object == Object::Class => head.class = Some(number()?),
            "ingress" | "clsact" if head.rest.is_empty() => {
                head.place = Some(Place::Ingress);
                head.rest.push(word.clone());
                break;
            }
            "refcnt" | "leaf" if command.verb == Verb::Shown => drop(words.next()),
            "offloaded" | "[Unknown" if command.verb == Verb::Shown => {}
            "estimator" => drop((words.next(), words.next())),
            "stab" => head.stab = stab(&mut words),
            _ => {
                head.rest.push(word.clone());
                break;
            }
        }
    }
    head.rest.extend(words.cloned());
    Ok(head)
}

/// Takes the words of `stab`.
fn stab(words: &mut std::slice::Iter<'_, String>) -> Vec<String> {
    let mut all = Vec::new();
    while let Some(word) = words.as_slice().first() {
        if !["overhead", "mpu", "mtu", "tsize", "linklayer", "cell_log", "size_log"].contains(&word.as_str()) {
            break;
        }
        all.extend(words.by_ref().take(2).cloned());
    }
    all
}

/// Disciplines whose `change` leaves what it does not name; the others begin anew.
const KEEPING: [&str; 5] = ["cake", "fq_codel", "codel", "pie", "fq_pie"];

/// All interfaces, and which of them get what others receive.
#[derive(Default)]
struct Devices {
    list: Vec<Device>,
    /// Pairs of an interface and the IFB to which it redirects what it receives.
    redirected: Vec<(String, String)>,
    stabs: Vec<(String, usize, Vec<String>)>,
    notes: Vec<Note>,
}

impl Devices {
    fn of(text: &Text<'_>) -> Result<Self, Diagnosis> {
        let read = commands(text)?;
        if read.list.is_empty() {
            let what = "neither lines of tc (`tc qdisc add dev eth0 root cake bandwidth 20Mbit`, or what `tc qdisc show` prints), \
                        nor ShapedDevices.csv or network.json of LibreQoS";
            return Err(text.wrong(1, what));
        }
        let mut all = Self::default();
        for command in &read.list {
            all.take(text, command)?;
        }
        for (line, word) in read.others {
            all.notes.push(text.note(line, &word, "this is no line of tc", "see whether it is needed"));
        }
        Ok(all)
    }

    fn device(&mut self, name: String) -> &mut Device {
        let at = self.list.iter().position(|device| device.name == name).unwrap_or(self.list.len());
        if at == self.list.len() {
            self.list.push(Device { name, ..Device::default() });
        }
        &mut self.list[at]
    }

    fn take(&mut self, text: &Text<'_>, command: &Command) -> Result<(), Diagnosis> {
        let line = command.line;
        if command.object == Object::Filter && command.verb == Verb::Shown {
            self.notes.push(text.note(
                line,
                "filter",
                "filters that tc shows are not read",
                "give the commands that make them",
            ));
            return Ok(());
        }
        let head = head(text, command)?;
        let only = self.list.first().filter(|_| self.list.len() == 1).map(|device| device.name.clone());
        // `tc class show dev eth0` does not repeat the interface.
        let of_class = head.class.and_then(|(major, _)| self.by_major(major)).or(only);
        let Some(name) = head.device.clone().or(of_class.filter(|_| command.verb == Verb::Shown)) else {
            return Err(text.wrong(line, "it has no `dev`; tc needs the interface"));
        };
        if !head.stab.is_empty() {
            self.stabs.push((name.clone(), line, head.stab.clone()));
        }
        match command.object {
            Object::Filter => self.filter(name, line, &command.words),
            Object::Class => self.class(text, name, command, head)?,
            Object::Qdisc => self.queue(text, name, command, head)?,
        }
        Ok(())
    }

    fn by_major(&self, major: u16) -> Option<String> {
        let has = |device: &&Device| device.queues.iter().any(|queue| queue.major == Some(major));
        self.list.iter().find(has).map(|device| device.name.clone())
    }

    fn filter(&mut self, name: String, line: usize, words: &[String]) {
        let redirect =
            words.windows(4).find(|four| four[0] == "mirred" && four[1] == "egress" && four[2] == "redirect");
        if let Some(target) = redirect.and_then(|_| words.iter().skip_while(|word| *word != "redirect").nth(2)) {
            self.redirected.push((name, target.clone()));
            return;
        }
        self.device(name).filters.push(Filter { line, words: words.to_vec() });
    }

    fn class(&mut self, text: &Text<'_>, name: String, command: &Command, head: Head) -> Result<(), Diagnosis> {
        let (line, words) = (command.line, head.rest);
        let Some(id) = head.class else {
            return Err(text.wrong(line, "a class has no `classid`, without which nothing can name it"));
        };
        let parent = match head.place {
            Some(Place::Under(parent)) => parent,
            _ => (id.0, 0),
        };
        let device = self.device(name);
        device.classes.retain(|class| class.id != id);
        if command.verb == Verb::Delete {
            return Ok(());
        }
        let kind = words.first().cloned().unwrap_or_default();
        device.classes.push(Class { line, kind, id, parent, words: words.into_iter().skip(1).collect() });
        Ok(())
    }

    fn queue(&mut self, text: &Text<'_>, name: String, command: &Command, head: Head) -> Result<(), Diagnosis> {
        let (line, mut words) = (command.line, head.rest.into_iter());
        let kind = words.next().unwrap_or_default();
        let place = match head.place {
            Some(Place::Under((0xffff, _))) if kind == "ingress" || kind == "clsact" => Place::Ingress,
            Some(Place::Under(handle)) => Place::Under(handle),
            Some(place) => place,
            None if kind == "ingress" || kind == "clsact" => Place::Ingress,
            None if command.verb == Verb::Delete => Place::Root,
            None => return Err(text.wrong(line, "it has neither `root` nor `parent`; tc needs one of them")),
        };
        let device = self.device(name);
        if command.verb == Verb::Delete {
            if place == Place::Root {
                *device = Device { name: device.name.clone(), ..Device::default() };
            }
            device.queues.retain(|queue| queue.place != place);
            return Ok(());
        }
        if kind.is_empty() {
            return Err(text.wrong(line, "it has no discipline, such as cake or fq_codel"));
        }
        let before = device.queues.iter_mut().find(|queue| queue.place == place);
        let queue = Queue { line, kind, major: head.handle.map(|(major, _)| major), place, words: words.collect() };
        match before {
            // What was set holds, unless it is set again.
            Some(before)
                if command.verb == Verb::Change
                    && before.kind == queue.kind
                    && KEEPING.contains(&queue.kind.as_str()) =>
            {
                before.line = line;
                before.words.extend(queue.words);
            }
            Some(before) if command.verb == Verb::Add && place != Place::Ingress => {
                let what = format!(
                    "{} has a discipline there since line {}; tc refuses a second one",
                    device.name, before.line
                );
                return Err(text.wrong(line, &what));
            }
            Some(before) => *before = queue,
            None => device.queues.push(queue),
        }
        Ok(())
    }
}

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
    let receives = |device: &&Device| device.queues.iter().any(|queue| queue.place == Place::Ingress);
    let receiving = devices.list.iter().find(receives).map(|device| device.name.as_str());
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

/// Reads a discipline that is one queue for a link.
fn known(args: &mut Args<'_>, way: &mut Way) -> Result<(), Diagnosis> {
    if args.kind == "red" { red::read(args, way) } else { kinds::read(args, way) }
}

/// The discipline of a class, or of one under another discipline.
pub(super) fn leaf(text: &Text<'_>, device: &Device, at: Handle, notes: &mut Vec<Note>) -> Result<Way, Diagnosis> {
    let mut way = Way::default();
    let plain =
        Key { key: "name", value: quoted("droptail"), from: "a class without a discipline has one queue".into() };
    match device.below(at) {
        Some(queue) if kinds::is_known(&queue.kind) => {
            known(&mut Args::new(text, queue.line, &queue.kind, &queue.words, notes), &mut way)?;
        }
        Some(queue) => {
            let mut args = Args::new(text, queue.line, &queue.kind, &queue.words, notes);
            args.note("", "this discipline cannot be that of a subscriber here", "a plain queue is written");
            way.discipline = vec![plain];
        }
        None => way.discipline = vec![plain],
    }
    Ok(way)
}
