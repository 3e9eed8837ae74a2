//! What changes on the links while a run goes on: rate, delay, loss, by single steps or by a series of them.
//!
//! A packet that is being transmitted keeps the rate with which it began when a step comes, while the rates of a series
//! hold for its rest. A shorter delay does not let packets overtake each other. A discipline may be told of a new rate
//! late, or not at all; what tells it plays the same series once more.

mod history;

use super::action::{Action, Context};
use crate::link::Alteration;
use crate::numbers::LinkDir;
use crate::orbit::Orbit;
use crate::series::{Player, Point, Series, State, Values, Walk};
use crate::table::Table;
use history::History;
use penstock_core::fact::Fact;
use penstock_core::rng::{Rng, Streams};
use penstock_core::units::{Instant, Rate, Span};
use std::sync::Arc;

/// The directions of a link that a change concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Both.
    Both,
    /// From its first end to its second.
    Forward,
    /// From its second end to its first.
    Reverse,
}

impl Way {
    /// All of them, with their words.
    pub const ALL: [(&'static str, Self); 3] =
        [("both", Self::Both), ("forward", Self::Forward), ("reverse", Self::Reverse)];

    /// The word of scenarios.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, way)| *way == self).map_or("both", |(name, _)| name)
    }
}

/// A change of a link.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The index of the link among those of the scenario.
    pub link: usize,
    /// When it happens, or begins.
    pub at: Span,
    /// Which directions.
    pub way: Way,
    /// What becomes of the link.
    pub course: Course,
    /// How long after a change of the rate the discipline is told.
    pub tell_after: Span,
    /// The discipline is told at all.
    pub told: bool,
}

/// What becomes of a link.
#[derive(Debug, Clone, PartialEq)]
pub enum Course {
    /// One step.
    Step {
        /// What the link becomes.
        values: Values,
        /// The new losses of the stations behind the link, forward.
        stations: Option<Vec<f64>>,
        /// How long until it happens again.
        every: Option<Span>,
    },
    /// The delay over satellites.
    Orbit {
        /// They and the ground stations.
        orbit: Orbit,
        /// For how long at most a delay is held.
        step: Span,
        /// How long the first satellite has served at the beginning.
        served: Span,
    },
    /// The rates of a trace of Mahimahi.
    Trace {
        /// The name of the file.
        file: String,
        /// The shortest stretch with one rate.
        bin: Span,
        /// What the file says.
        series: Arc<Series>,
    },
    /// What a table says.
    Table {
        /// The name of the file.
        file: String,
        /// What the file says.
        series: Arc<Series>,
    },
    /// Random states, one after another.
    States(Arc<[State]>),
}

/// What a step does to one direction of a link.
#[derive(Debug, Clone, Copy)]
enum Does {
    /// The link becomes what the step says, and the history of this number is told; a rate may hold at once, for what is
    /// being transmitted too.
    Become { history: usize, at_once: bool },
    /// Its discipline is told of the rate.
    Tell,
    /// Its stations have the losses in this place of the list.
    Stations(usize),
}

/// One for each direction of a link that changes, however many steps there are.
#[derive(Debug)]
struct Entry {
    player: Player,
    link: LinkDir,
    does: Does,
}

/// A link as it is when the run begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Before {
    /// Its name, after which its random numbers are named.
    pub name: String,
    /// Its rate, in both directions.
    pub rate: Rate,
    /// Its delay, in both directions.
    pub delay: Span,
    /// The probabilities of loss, forward and reverse.
    pub losses: [f64; 2],
}

/// All changes of a run, in the order of the file.
#[derive(Debug, Default)]
pub struct Changes {
    entries: Vec<Entry>,
    /// What stations lose, for the changes that say so.
    losses: Vec<Vec<f64>>,
    histories: Vec<History>,
}

impl Changes {
    /// Prepares changes of these links; what becomes of them is kept for a table if `keeps_rows`.
    pub fn new(changes: &[Change], links: &[Before], streams: &Streams, keeps_rows: bool) -> Self {
        let mut all = Self { histories: history::of(changes, links, keeps_rows), ..Self::default() };
        for (place, change) in changes.iter().enumerate() {
            all.add(change, || streams.get(&stream_name(changes, links, place)));
        }
        all
    }

    fn add(&mut self, change: &Change, stream: impl FnOnce() -> Rng) {
        let player = player(&change.course, Instant::ZERO + change.at, stream);
        let tells = change.told && has_rates(&change.course);
        for link in directions(change) {
            let mut add = |player, does| self.entries.push(Entry { player, link, does });
            let history = self.histories.binary_search_by_key(&link, History::link);
            if let Some(history) = history.ok().filter(|_| becomes(change)) {
                add(player.clone(), Does::Become { history, at_once: changes_rate_at_once(change) });
            }
            if tells {
                add(player.clone().later(change.tell_after), Does::Tell);
            }
        }
        if let Course::Step { stations: Some(losses), .. } = &change.course {
            let does = Does::Stations(self.losses.len());
            self.entries.push(Entry { player, link: LinkDir::forward(change.link), does });
            self.losses.push(losses.clone());
        }
    }

    /// When the next one is due.
    pub fn next(&self) -> Option<Instant> {
        self.entries.iter().map(|e| e.player.due).min().filter(|at| *at != Instant::MAX)
    }

    /// Makes the changes that are due.
    pub fn step(&mut self, context: &mut Context<'_>) {
        let now = context.now;
        let due = |entry: &&mut Entry| entry.player.due <= now;
        let mut touched = Vec::new();
        for entry in self.entries.iter_mut().filter(due) {
            let values = entry.player.step();
            match entry.does {
                Does::Become { history, at_once } => {
                    alterations(values, at_once).for_each(|what| context.act(Action::Alter(entry.link, what)));
                    self.histories[history].became(values, now);
                }
                Does::Tell => {
                    values.rate.into_iter().for_each(|rate| context.act(Action::Tell(entry.link, Fact::Rate(rate))));
                }
                Does::Stations(place) => context.act(Action::Stations(entry.link, place)),
            }
            touched.push(entry.link);
        }
        // A link's next event is only known when all that happens to it at one time has happened.
        touched.into_iter().for_each(|link| context.act(Action::Review(link)));
    }

    /// What the stations of a link lose after the change of this number, see [`Action::Stations`].
    pub fn losses(&self, place: usize) -> &[f64] {
        &self.losses[place]
    }

    /// What links became: the table `link_changes`, if anything changes and the run keeps tables.
    pub fn table(&self) -> Option<Table> {
        history::table(&self.histories)
    }
}

fn player(course: &Course, begin: Instant, stream: impl FnOnce() -> Rng) -> Player {
    match course {
        Course::Step { values, every, .. } => {
            let point = Point { at: Span::ZERO, values: *values };
            Player::of_series(Arc::new(Series::new(vec![point], *every)), begin)
        }
        Course::Orbit { orbit, step, served } => Player::of_series(Arc::new(orbit.series(*step, *served)), begin),
        Course::Trace { series, .. } | Course::Table { series, .. } => Player::of_series(series.clone(), begin),
        Course::States(states) => Player::of_walk(Walk::new(states.clone(), stream()), begin),
    }
}

/// Rate, delay or loss are said.
fn becomes(change: &Change) -> bool {
    !matches!(change.course, Course::Step { values, .. } if values == Values::default())
}

/// The rate of a series holds at once: were a packet to keep the rate of an outage, it would take the good time after it.
pub fn changes_rate_at_once(change: &Change) -> bool {
    !matches!(change.course, Course::Step { .. }) && has_rates(&change.course)
}

/// There are rates of which the discipline may be told.
fn has_rates(course: &Course) -> bool {
    match course {
        Course::Step { values, .. } => values.rate.is_some(),
        Course::Orbit { .. } => false,
        Course::Trace { series, .. } | Course::Table { series, .. } => {
            series.points().iter().any(|p| p.values.rate.is_some())
        }
        Course::States(states) => states.iter().any(|state| state.values.rate.is_some()),
    }
}

fn alterations(values: Values, at_once: bool) -> impl Iterator<Item = Alteration> {
    let rate = values.rate.map(if at_once { Alteration::RateAtOnce } else { Alteration::Rate });
    rate.into_iter().chain(values.delay.map(Alteration::Delay)).chain(values.loss.map(Alteration::Loss))
}

/// The directions of the link that a change concerns.
pub fn directions(change: &Change) -> impl Iterator<Item = LinkDir> {
    let forward = LinkDir::forward(change.link);
    let ways: &[bool] = match change.way {
        Way::Both => &[true, false],
        Way::Forward => &[true],
        Way::Reverse => &[false],
    };
    ways.iter().map(move |is_forward| if *is_forward { forward } else { forward.reverse() })
}

/// The stream of random numbers of a change by random states: one for both directions and for what tells the discipline.
/// The second such change of a link has a stream of its own.
fn stream_name(changes: &[Change], links: &[Before], place: usize) -> String {
    let link = changes[place].link;
    let is_random = |change: &&Change| change.link == link && matches!(change.course, Course::States(_));
    let before = changes[..place].iter().filter(is_random).count();
    let number = if before == 0 { String::new() } else { (before + 1).to_string() };
    format!("{}/states{number}", links[link].name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network;
    use crate::scenario::Scenario;
    use crate::world::World;
    use penstock_core::foreign::{Config, Control, Library, LibraryError};
    use serde_json::{Map, Value};

    /// One file, whatever its name.
    struct File(String);

    impl Library for File {
        fn control(&self, _: &str, _: &Map<String, Value>) -> Option<Result<Control, LibraryError>> {
            None
        }
        fn aqm(&self, _: &str, _: &Map<String, Value>) -> Option<Result<Config, LibraryError>> {
            None
        }
        fn file(&self, _: &str) -> Option<Result<String, LibraryError>> {
            Some(Ok(self.0.clone()))
        }
    }

    fn scenario(change: &str, file: &str) -> Scenario {
        let text = format!(
            "duration = \"1000s\"\n[topology]\nkind = \"dumbbell\"\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\nlimit = \"9p\"\n\
             [[flows]]\nkind = \"bulk\"\n[[changes]]\nlink = \"bottleneck\"\n{change}"
        );
        Scenario::parse_with(&text, "test.toml", &File(file.into())).unwrap_or_else(|e| panic!("{e}"))
    }

    fn changes_of(scenario: &Scenario) -> Changes {
        network::build(scenario).changes
    }

    /// 100,000 chances, one per millisecond, in stretches of 1 ms: two directions, each with
    /// an entry that changes the link and one that tells the discipline.
    /// Each is asked once for each step and has nothing to search.
    #[test]
    fn a_long_trace_costs_as_much_per_step_as_a_short_one() {
        let trace: String = (1..=100_000).map(|ms| format!("{ms}\n")).collect();
        let scenario = scenario("trace = \"long\"\nbin = \"1ms\"\n", &trace);
        let mut network = network::build(&scenario);
        let mut changes = std::mem::take(&mut network.changes);
        let mut world = World::new(network.layout, network.links, network.routes);
        assert_eq!(changes.entries.len(), 4);
        let (mut looks, mut made) = (0, 0);
        while let Some(now) = changes.next().filter(|now| now.as_secs_f64() < 99.9995) {
            world.now = now;
            let mut actions = Vec::new();
            changes.step(&mut Context::new(&world, &mut actions));
            made += actions.iter().filter(|action| matches!(action, Action::Review(_))).count();
            looks += 1;
        }
        assert_eq!((looks, made), (100_000, 4 * 100_000));
    }

    #[test]
    fn who_tells_of_states_by_lot_tells_the_same_ones_late() {
        let states = "states = [{ rate = \"2Mbit/s\", lasts = \"3s\" }, { rate = \"1Mbit/s\", lasts = \"1s\" }, \
                      { rate = \"500kbit/s\", lasts = \"2s\" }]\ntell_after = \"250ms\"\n";
        let mut changes = changes_of(&scenario(states, ""));
        let is = |entry: &Entry| matches!(entry.does, Does::Tell);
        assert_eq!(changes.entries.iter().map(is).collect::<Vec<_>>(), [false, true, false, true]);
        let first = changes.entries[0].player.clone();
        for entry in &mut changes.entries {
            let (mut model, late) = (first.clone(), if is(entry) { Span::from_millis(250) } else { Span::ZERO });
            for _ in 0..1000 {
                assert_eq!((entry.player.due, entry.player.step()), (model.due + late, model.step()));
            }
        }
    }

    #[test]
    fn what_is_not_told_has_no_teller() {
        for (told, entries) in [("told = false\n", 1), ("", 2)] {
            let change = format!(
                "states = [{{ rate = \"2Mbit/s\", lasts = \"3s\" }}, {{ rate = \"1Mbit/s\", lasts = \"1s\" }}]\n\
                                  direction = \"forward\"\n{told}"
            );
            assert_eq!(changes_of(&scenario(&change, "")).entries.len(), entries);
        }
        assert_eq!(changes_of(&scenario("orbit = \"meo\"", "")).entries.len(), 2, "a delay is not told");
    }

    #[test]
    fn two_walks_of_a_link_are_not_the_same() {
        let states = "states = [{ loss = 0.1, lasts = \"3s\" }, { loss = 0.2, lasts = \"1s\" }]\n";
        let two = format!(
            "{states}direction = \"forward\"\n[[changes]]\nlink = \"bottleneck\"\n{states}direction = \"reverse\"\n"
        );
        let mut changes = changes_of(&scenario(&two, ""));
        let mut first_change = |entry: usize| {
            changes.entries[entry].player.step();
            changes.entries[entry].player.due
        };
        assert_ne!(first_change(0), first_change(1));
        let alone = changes_of(&scenario(states, "")).entries[0].player.clone();
        let mut again = changes_of(&scenario(&two, "")).entries[0].player.clone();
        let mut alone = alone;
        assert_eq!((alone.step(), alone.due), (again.step(), again.due), "what is added later shifts nothing");
    }
}
