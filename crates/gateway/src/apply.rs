//! What `apply` reads of a file: what can change while packets pass. What needs a new start is refused by its key, with its line.

use crate::file::{File, Kind};
use crate::link::source::From;
use crate::settings::Settings;
use penstock_appliance::socket::message::Refusal;
use penstock_grammar::{Diagnosis, Source as Text};
use penstock_shaper::direction::Direction;
use serde_json::{Value, json};
use std::ops::Range;

/// Returns where the first key stands that differs and needs a new start.
fn fixed(old: &File, new: &File) -> Option<Vec<String>> {
    let differs = |was: Value, is: Value| Some(was.as_object()?.keys().find(|key| was[*key] != is[*key])?.clone());
    // Budgets are held by the numbers that subscribers have.
    let tables = [
        ("subscribers", old.enforces() && old.settings.subscribers != new.settings.subscribers),
        ("page", old.page != new.page),
        ("c2ml", old.c2ml != new.c2ml),
    ];
    let interface = || differs(json!(old.interfaces), json!(new.interfaces)).map(|key| vec!["interfaces".into(), key]);
    let table = || tables.into_iter().find_map(|(table, differs)| differs.then(|| vec![table.to_owned()]));
    differs(json!(old.keys), json!(new.keys)).map(|key| vec![key]).or_else(interface).or_else(table)
}

/// A file that was read and compared with the one with which a run began.
#[derive(Debug, Clone)]
pub struct Read {
    settings: Settings,
    name: String,
    text: String,
    /// Bytes of the text: of the limit and of the discipline of each direction.
    places: [[Range<usize>; 2]; 2],
}

impl Read {
    /// Reads a file, which takes as long as the file is; `own` is that with which the run began. Refuses a mistake in the file,
    /// and what needs a new start.
    pub fn of(name: &str, text: &str, own: &File) -> Result<Self, Refusal> {
        Self::compared(name, text, own).map_err(|mistake| Refusal::of(&mistake))
    }

    fn compared(name: &str, text: &str, own: &File) -> Result<Self, Box<Diagnosis>> {
        let source = Text::parse(text, name)?;
        let Kind::Link(new) = Kind::parse(text, name)? else {
            let what = "this file governs no link, and a gateway that runs cannot become one of budgets only";
            return Err(Box::new(source.at(&[], what)));
        };
        if let Some(place) = fixed(own, &new) {
            let key = place.join(".");
            let what = format!("`{key}` cannot change while the gateway runs; end it, and start it with this file");
            let place: Vec<&str> = place.iter().map(String::as_str).collect();
            return Err(Box::new(source.at(&place, &what)));
        }
        let span = |place: &[&str]| source.get(place).map(|value| value.span());
        let places = [("limit", "discipline"), ("reverse_limit", "reverse_discipline")].map(|(limit, own)| {
            let limit = span(&["link", limit]).or_else(|| span(&["link"]));
            [limit, span(&[own]).or_else(|| span(&["discipline"]))].map(Option::unwrap_or_default)
        });
        Ok(Self { settings: new.settings, name: name.to_owned(), text: text.to_owned(), places })
    }

    /// Returns what to go to from `present`; `refuses` tells why a direction cannot get a discipline or a limit while packets
    /// pass.
    pub fn wanted(
        &self,
        present: &Settings,
        refuses: impl Fn(Direction, &Settings) -> Option<String>,
    ) -> Result<Settings, Refusal> {
        let mut wanted = self.settings.clone();
        if wanted.source == present.source && wanted.source.from != From::File {
            // The file says nothing new of the rates: what their source has told holds.
            (0..2).for_each(|at| wanted.ways[at].rate = present.ways[at].rate);
        }
        for direction in Direction::BOTH {
            let at = direction.index();
            if let Some(why) = refuses(direction, &wanted) {
                let place = &self.places[at][usize::from(wanted.ways[at].aqm != present.ways[at].aqm)];
                return Err(Refusal::of(&Diagnosis::new(&self.text, &self.name, place.clone(), &why)));
            }
        }
        Ok(wanted)
    }
}
