//! What `apply` reads of a file: what can change while packets pass. What needs a new start is refused by its key, with its line.

use crate::file::{File, Keys, Kind};
use crate::link::source::From;
use crate::settings::Settings;
use penstock_appliance::socket::message::Refusal;
use penstock_grammar::{Diagnosis, Source as Text};
use penstock_shaper::direction::Direction;
use std::ops::Range;

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
    name: String,
    text: String,
    /// Where the limits and the disciplines of both directions stand.
    places: Places,
}

impl Read {
    /// Reads a file, which takes as long as the file is; `own` is that with which the run began.
    ///
    /// # Errors
    /// Refuses a mistake in the file, and what needs a new start.
    pub fn of(name: &str, text: &str, own: &File) -> Result<Self, Refusal> {
        // Whoever shows a refusal says that it is an error.
        let refusal = |mistake: Box<Diagnosis>| Refusal::new(plain(&mistake));
        let (settings, places) = Self::settings(name, text, own).map_err(refusal)?;
        Ok(Self { settings, name: name.to_owned(), text: text.to_owned(), places })
    }

    fn settings(name: &str, text: &str, own: &File) -> Result<(Settings, Places), Box<Diagnosis>> {
        let parsed = Text::parse(text, name)?;
        let Kind::Link(new) = Kind::parse(text, name)? else {
            return Err(Box::new(
                parsed.at(&[], "this file governs no link, and a gateway that runs cannot become one of budgets only"),
            ));
        };
        if let Some(place) = fixed(own, &new) {
            return Err(Box::new(parsed.at(place, &stays(&place.join(".")))));
        }
        let span = |place: &[&str]| parsed.get(place).map(|value| value.span());
        let places = [("limit", "discipline"), ("reverse_limit", "reverse_discipline")].map(|(limit, own)| {
            let limit = span(&["link", limit]).or_else(|| span(&["link"]));
            [limit, span(&[own]).or_else(|| span(&["discipline"]))].map(Option::unwrap_or_default)
        });
        Ok((Settings::of(&new), places))
    }

    /// Returns what to go to from `present`; `refuses` tells why a direction cannot get a discipline or a limit.
    ///
    /// # Errors
    /// Refuses what cannot change while packets pass, with its line.
    pub fn wanted(
        &self,
        present: &Settings,
        refuses: impl Fn(Direction, &Settings) -> Option<String>,
    ) -> Result<Settings, Refusal> {
        let mut wanted = self.settings.clone();
        if wanted.source == present.source && wanted.source.from != From::File {
            // The file says nothing new of the rates: what their source has told holds.
            (0..2).for_each(|at| wanted[at].rate = present[at].rate);
        }
        for direction in Direction::BOTH {
            let at = direction.index();
            if let Some(why) = refuses(direction, &wanted) {
                let place = &self.places[at][usize::from(wanted[at].aqm != present[at].aqm)];
                let mistake = Diagnosis::new(&self.text, &self.name, place.clone(), &why);
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
