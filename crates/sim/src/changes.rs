//! What changes on the links while a run goes on: rate, delay, loss, each at its time, once or periodically.
//!
//! A packet that is being transmitted keeps the rate with which it began. A shorter delay does not let packets overtake
//! each other. A discipline may be told of a new rate late, or not at all.

use crate::link::{Link, Outlet};
use crate::scenario::{Change, Way};
use penstock_core::units::{Instant, Rate, Span};

/// One thing to do to one direction of a link.
#[derive(Debug, Clone, Copy)]
enum Action {
    Rate(Rate),
    Delay(Span),
    Loss(f64),
    Tell(Rate),
    /// The losses in this place of the list.
    Stations(usize),
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    at: Instant,
    every: Option<Span>,
    link: usize,
    action: Action,
}

/// All changes of a run, in the order of the file.
#[derive(Debug, Default)]
pub struct Changes {
    entries: Vec<Entry>,
    /// What stations lose, for the changes that say so.
    losses: Vec<Vec<f64>>,
}

impl Changes {
    /// The changes of a scenario, whose links come in pairs of both directions.
    pub fn new(changes: &[Change]) -> Self {
        let mut all = Self::default();
        for change in changes {
            all.entries.extend(entries(change));
            if let Some(losses) = &change.stations {
                let (at, action) = (Instant::ZERO + change.at, Action::Stations(all.losses.len()));
                all.entries.push(Entry { at, every: change.every, link: 2 * change.link, action });
                all.losses.push(losses.clone());
            }
        }
        all
    }

    /// When the next one is due.
    pub fn next(&self) -> Option<Instant> {
        self.entries.iter().map(|e| e.at).min().filter(|at| *at != Instant::MAX)
    }

    /// Makes those that are due at `now`, and tells which links they concern.
    pub fn apply(&mut self, links: &mut [Link], now: Instant, outlet: &mut Outlet, mut touched: impl FnMut(usize)) {
        for entry in self.entries.iter_mut().filter(|e| e.at <= now) {
            let link = &mut links[entry.link];
            match entry.action {
                Action::Rate(rate) => link.set_rate(rate, now, outlet),
                Action::Delay(delay) => link.set_delay(delay, now, outlet),
                Action::Loss(probability) => link.set_loss(probability, now, outlet),
                Action::Tell(rate) => link.tell_rate(rate, now, outlet),
                Action::Stations(place) => link.set_stations(&self.losses[place], now, outlet),
            }
            entry.at = entry.every.map_or(Instant::MAX, |every| entry.at + every);
            touched(entry.link);
        }
    }
}

fn entries(change: &Change) -> Vec<Entry> {
    let at = Instant::ZERO + change.at;
    let told = change.told.then(|| change.rate.map(Action::Tell)).flatten();
    let actions = [
        (at, change.rate.map(Action::Rate)),
        (at, change.delay.map(Action::Delay)),
        (at, change.loss.map(Action::Loss)),
        (at + change.tell_after, told),
    ];
    let ways: &[usize] = match change.way {
        Way::Both => &[0, 1],
        Way::Forward => &[0],
        Way::Reverse => &[1],
    };
    let of = |way: &usize| 2 * change.link + way;
    let all = ways.iter().flat_map(|way| actions.iter().map(move |(at, action)| (of(way), *at, *action)));
    all.filter_map(|(link, at, action)| Some(Entry { at, every: change.every, link, action: action? })).collect()
}
