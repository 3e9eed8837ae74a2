//! Lines of `tc` as interfaces with their disciplines, classes and filters.

use super::kinds::{self, Args};
use super::words::{Command, Object, Verb, commands};
use super::{Key, Note, Text, Way, quoted, red};
use crate::Diagnosis;

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
    pub fn root(&self) -> Option<&Queue> {
        self.queues.iter().find(|queue| queue.place == Place::Root)
    }

    /// Returns the discipline under one with this number, or under a class of it.
    pub fn below(&self, handle: Handle) -> Option<&Queue> {
        let is_below = |queue: &&Queue| matches!(queue.place, Place::Under(at) if at == handle);
        self.queues.iter().find(is_below)
    }

    /// True if it redirects or polices what it receives.
    pub fn receives(&self) -> bool {
        self.queues.iter().any(|queue| queue.place == Place::Ingress)
    }

    /// Returns the first discipline under one with this number, in whichever class.
    pub fn first_below(&self, major: Option<u16>) -> Option<&Queue> {
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
pub(super) struct Devices {
    pub list: Vec<Device>,
    /// Pairs of an interface and the IFB to which it redirects what it receives.
    pub redirected: Vec<(String, String)>,
    pub stabs: Vec<(String, usize, Vec<String>)>,
    pub notes: Vec<Note>,
}

impl Devices {
    pub fn of(text: &Text<'_>) -> Result<Self, Diagnosis> {
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

/// Reads a discipline that is one queue for a link.
pub(super) fn known(args: &mut Args<'_>, way: &mut Way) -> Result<(), Diagnosis> {
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
