//! `apply`: what a file says becomes what holds, as far as it differs and can change while packets pass. What needs a new start
//! is refused by its key, with its line, and then nothing is changed. SIGHUP applies the file with which the run began.

use crate::file::{File, Keys, Kind};
use crate::history::Settings;
use crate::link::source::From;
use crate::setting::{Adjustable, Records, done};
use penstock_appliance::socket::message::{Answer, Apply, Refusal};
use penstock_appliance::socket::server::Peer;
use penstock_grammar::{Diagnosis, Source as Text};
use penstock_shaper::direction::Direction;
use serde_json::{Map, Value};
use std::ops::Range;
use std::path::PathBuf;

/// The file with which a run began.
#[derive(Debug, Clone)]
pub struct Own {
    /// Where it is.
    pub path: PathBuf,
    /// What it said, without what options added.
    pub file: File,
}

/// What is said of a key that cannot change.
fn stays(key: &str) -> String {
    format!("`{key}` cannot change while the gateway runs; end it, and start it with this file")
}

/// Returns where the first key stands that differs and needs a new start.
fn fixed(old: &File, new: &File) -> Option<&'static [&'static str]> {
    let Keys { name, mode, datapath, queue, patience, firewall, observe, realtime, log, scone } = &old.keys;
    let keys = &new.keys;
    // Budgets are held by the numbers that subscribers have.
    let held = old.c2ml.as_ref().is_some_and(|c2ml| c2ml.enforce);
    let differ: [(bool, &'static [&'static str]); 15] = [
        (*name != keys.name, &["name"]),
        (*mode != keys.mode, &["mode"]),
        (*datapath != keys.datapath, &["datapath"]),
        (*queue != keys.queue, &["queue"]),
        (*patience != keys.patience, &["patience"]),
        (*firewall != keys.firewall, &["firewall"]),
        (*observe != keys.observe, &["observe"]),
        (*realtime != keys.realtime, &["realtime"]),
        (*log != keys.log, &["log"]),
        (*scone != keys.scone, &["scone"]),
        (old.interfaces.wan != new.interfaces.wan, &["interfaces", "wan"]),
        (old.interfaces.lan != new.interfaces.lan, &["interfaces", "lan"]),
        (held && old.subscribers != new.subscribers, &["subscribers"]),
        (old.page != new.page, &["page"]),
        (old.c2ml != new.c2ml, &["c2ml"]),
    ];
    differ.into_iter().find_map(|(differs, place)| differs.then_some(place))
}

/// Bytes of a file: of the limit and of the discipline of each direction.
type Places = [[Range<usize>; 2]; 2];

/// A file that was read and compared with the one with which a run began.
#[derive(Debug, Clone)]
pub struct Read {
    settings: Settings,
    file: Apply,
    /// Where the limits and the disciplines of both directions stand.
    places: Places,
}

impl Read {
    /// Reads a file, which takes as long as the file is; `own` is that with which the run began.
    ///
    /// # Errors
    /// Refuses a mistake in the file, and what needs a new start.
    pub fn of(file: Apply, own: &File) -> Result<Self, Refusal> {
        // Whoever shows a refusal says that it is an error.
        let refusal = |mistake: Box<Diagnosis>| Refusal::new(plain(&mistake));
        let (settings, places) = Self::settings(&file, own).map_err(refusal)?;
        Ok(Self { settings, file, places })
    }

    fn settings(file: &Apply, own: &File) -> Result<(Settings, Places), Box<Diagnosis>> {
        let text = Text::parse(&file.text, &file.name)?;
        let Kind::Link(new) = Kind::parse(&file.text, &file.name)? else {
            return Err(Box::new(
                text.at(&[], "this file governs no link, and a gateway that runs cannot become one of budgets only"),
            ));
        };
        if let Some(place) = fixed(own, &new) {
            return Err(Box::new(text.at(place, &stays(&place.join(".")))));
        }
        let span = |place: &[&str]| text.get(place).map(|value| value.span());
        let places = [("limit", "discipline"), ("reverse_limit", "reverse_discipline")].map(|(limit, own)| {
            let limit = span(&["link", limit]).or_else(|| span(&["link"]));
            [limit, span(&[own]).or_else(|| span(&["discipline"]))].map(Option::unwrap_or_default)
        });
        Ok((Settings::of(&new), places))
    }

    /// Returns what to go to from what holds now.
    fn wanted(&self, gateway: &impl Adjustable) -> Result<Settings, Refusal> {
        let (present, mut wanted) = (gateway.settings(), self.settings.clone());
        if wanted.source == present.source && wanted.source.from != From::File {
            // The file says nothing new of the rates: what their source has told holds.
            (0..2).for_each(|at| wanted[at].rate = present[at].rate);
        }
        for direction in Direction::BOTH {
            let at = direction.index();
            if let Some(why) = gateway.refuses(direction, &wanted) {
                let place = &self.places[at][usize::from(wanted[at].aqm != present[at].aqm)];
                let mistake = Diagnosis::new(&self.file.text, &self.file.name, place.clone(), &why);
                return Err(Refusal::new(plain(&mistake)));
            }
        }
        Ok(wanted)
    }
}

/// Returns a mistake without the word `error`.
fn plain(mistake: &Diagnosis) -> String {
    let said = mistake.to_string();
    said.strip_prefix("error: ").unwrap_or(&said).to_owned()
}

/// Tells what is another.
fn difference(old: &Settings, new: &Settings) -> Map<String, Value> {
    let mut set = Map::new();
    for (at, prefix) in ["", "reverse_"].into_iter().enumerate() {
        let (old, new) = (&old[at], &new[at]);
        let mut tell = |differs: bool, key: &str, value: String| {
            if differs {
                set.insert(format!("{prefix}{key}"), value.into());
            }
        };
        tell(old.rate != new.rate, "rate", new.rate.to_string());
        tell(old.limit != new.limit, "limit", new.limit.to_string());
        let parameters = serde_json::to_value(&new.aqm).unwrap_or_default();
        let parameters = if parameters.is_object() { parameters.to_string() } else { String::new() };
        tell(old.aqm != new.aqm, "discipline", format!("{} {parameters}", new.aqm.name()).trim_end().to_owned());
    }
    if old.subscribers != new.subscribers {
        set.insert("subscribers".into(), old.subscribers.difference(&new.subscribers).into());
    }
    // Rates of the file are told above.
    if old.source != new.source && [&old.source, &new.source].iter().any(|source| source.from != From::File) {
        set.insert("source".into(), serde_json::to_value(new.source.from).unwrap_or_default());
    }
    set
}

/// Makes what a file says what holds, all of it or nothing, and reads it back.
///
/// # Errors
/// Refuses what cannot change while packets pass, and any change while another one is temporary.
pub fn apply(gateway: &mut impl Adjustable, peer: Option<Peer>, read: &Read) -> Answer {
    gateway.records().history.may_set()?;
    let wanted = read.wanted(gateway)?;
    let former = gateway.settings().clone();
    let set = difference(&former, &wanted);
    let now = if set.is_empty() { gateway.now() } else { gateway.go_to(&wanted)? };
    if let Err(why) = gateway.read_back() {
        let back = gateway.go_to(&former).err().map_or_else(String::new, |why| format!("; they are not back: {why}"));
        return Err(Refusal::new(format!("{why}, so the former values return{back}")));
    }
    gateway.by_hand(false);
    let is_other = !set.is_empty();
    let until = read.file.until.filter(|_| is_other);
    let details = done(now.as_secs_f64(), set, until);
    let Records { history, log, .. } = gateway.records();
    if is_other {
        history.note(former, until, now);
    }
    log.add(peer, "apply", &details);
    Ok(details.to_string())
}

/// Reads the file with which a run began, as SIGHUP asks for.
///
/// # Errors
/// Fails if it cannot be read, and refuses what [`Read::of`] does.
pub fn again(own: &Own) -> Result<Read, Refusal> {
    let name = own.path.to_string_lossy().into_owned();
    let text = std::fs::read_to_string(&own.path).map_err(|e| Refusal::new(format!("cannot read {name}: {e}")))?;
    Read::of(Apply { name, text, until: None }, &own.file)
}

/// Applies what [`again`] has read, and notes what came of it.
pub fn apply_again(gateway: &mut impl Adjustable, read: Result<Read, Refusal>) {
    let name = gateway.own().path.display().to_string();
    let applied = read.and_then(|read| apply(gateway, None, &read));
    let now = gateway.now();
    gateway.note(
        now,
        match applied {
            Ok(_) => format!("{name} was applied (SIGHUP)"),
            Err(refusal) => format!("{name} was not applied (SIGHUP): {refusal}"),
        },
    );
}
