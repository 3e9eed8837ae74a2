//! Changes of links during a run: rate, delay and loss, by single steps or by a series of steps.
//!
//! A packet that is being transmitted when a single step comes keeps the rate with which its transmission began; the
//! rates of a series apply to the rest of the packet. After the delay has been reduced, packets still do not overtake
//! each other. A discipline may be told of a new rate late, or not at all: a second copy of the series tells it, later
//! by that time.

mod history;

use super::action::{Action, Context};
use crate::link::Alteration;
use crate::numbers::LinkDir;
use crate::orbit::Orbit;
use crate::table::Table;
use history::History;
use penstock_core::fact::Fact;
use penstock_core::rng::{Rng, Streams};
use penstock_core::units::{Instant, Rate, Span};
pub use penstock_trace::series::Way;
use penstock_trace::series::{Player, Point, Series, State, Values, Walk};
use std::sync::Arc;

/// A change of a link, or a series of changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Index of the link among those of the scenario.
    pub link: usize,
    /// When the change happens, or when its series begins.
    pub at: Span,
    /// The directions that change.
    pub way: Way,
    /// How the link changes.
    pub course: Course,
    /// How long after a change of the rate the discipline is told of it.
    pub tell_after: Span,
    /// True if the discipline is told of new rates at all.
    pub told: bool,
}

/// The course of a change: one step or a series of steps.
#[derive(Debug, Clone, PartialEq)]
pub enum Course {
    /// One step, which may be repeated.
    Step {
        /// The new rate, delay and loss.
        values: Values,
        /// The new probabilities of loss of the stations behind the link, forward; `None` leaves them as they are.
        stations: Option<Vec<f64>>,
        /// Time until the step is repeated; `None` if it happens once.
        every: Option<Span>,
    },
    /// The delay of a path over satellites.
    Orbit {
        /// The satellites and the ground stations.
        orbit: Orbit,
        /// The longest time for which one value of the delay is kept.
        step: Span,
        /// For how long the first satellite has been in use when the change begins.
        served: Span,
    },
    /// The rates of a Mahimahi trace.
    Trace {
        /// Name of the file.
        file: String,
        /// The shortest interval with one rate.
        bin: Span,
        /// The steps in the file.
        series: Arc<Series>,
    },
    /// The steps of a table of times.
    Table {
        /// Name of the file.
        file: String,
        /// The steps in the file.
        series: Arc<Series>,
    },
    /// Random states, one after another.
    States(Arc<[State]>),
}

/// What an entry does to its direction of a link.
#[derive(Debug, Clone, Copy)]
enum Effect {
    /// Sets the values of the step and records them in the history with this index. With `at_once` a new rate also
    /// applies to the packet that is being transmitted.
    Become { history: usize, at_once: bool },
    /// Tells the discipline the rate.
    Tell,
    /// Sets the probabilities of loss of the stations to those at this index of the list.
    Stations(usize),
}

impl Effect {
    /// Keeps the index of the history right when another history is put in at `place`.
    fn make_room(&mut self, place: usize) {
        if let Self::Become { history, .. } = self
            && *history >= place
        {
            *history += 1;
        }
    }
}

/// One series for one direction of a link, however many steps it has.
#[derive(Debug)]
struct Entry {
    player: Player,
    link: LinkDir,
    effect: Effect,
}

/// The properties of a link when the run begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Before {
    /// Name of the link, from which its random streams are named.
    pub name: String,
    /// Rates: forward, reverse.
    pub rates: [Rate; 2],
    /// Propagation delays: forward, reverse.
    pub delays: [Span; 2],
    /// Probabilities of loss: forward, reverse.
    pub losses: [f64; 2],
}

/// All changes of a run, in the order of the scenario.
#[derive(Debug, Default)]
pub struct Changes {
    entries: Vec<Entry>,
    /// Probabilities of loss of stations, for the changes that have them.
    losses: Vec<Vec<f64>>,
    histories: Vec<History>,
}

impl Changes {
    /// Prepares changes of these links. With `keeps_rows` the values of the links are recorded for a table.
    pub fn new(changes: &[Change], links: &[Before], streams: &Streams, keeps_rows: bool) -> Self {
        let mut all = Self { histories: history::of(changes, links, keeps_rows), ..Self::default() };
        for (place, change) in changes.iter().enumerate() {
            all.add(change, || streams.get(&stream_name(changes, links, place)));
        }
        all
    }

    /// Adds a change while the run goes on, as if the scenario had had it from the beginning. `links` are the properties
    /// of the links now; they count for a link that has not changed so far.
    pub fn join(&mut self, change: &Change, links: &[Before], keeps_rows: bool, streams: &Streams) {
        for history in history::of(std::slice::from_ref(change), links, keeps_rows) {
            if let Err(place) = self.histories.binary_search_by_key(&history.link(), History::link) {
                self.histories.insert(place, history);
                self.entries.iter_mut().for_each(|entry| entry.effect.make_room(place));
            }
        }
        self.add(change, || streams.get(&stream_name(std::slice::from_ref(change), links, 0)));
    }

    fn add(&mut self, change: &Change, stream: impl FnOnce() -> Rng) {
        let player = player(&change.course, Instant::ZERO + change.at, stream);
        let tells = change.told && has_rates(&change.course);
        for link in directions(change) {
            let mut add = |player, effect| self.entries.push(Entry { player, link, effect });
            let history = self.histories.binary_search_by_key(&link, History::link);
            if let Some(history) = history.ok().filter(|_| becomes(change)) {
                add(player.clone(), Effect::Become { history, at_once: changes_rate_at_once(change) });
            }
            if tells {
                add(player.clone().later(change.tell_after), Effect::Tell);
            }
        }
        if let Course::Step { stations: Some(losses), .. } = &change.course {
            let effect = Effect::Stations(self.losses.len());
            self.entries.push(Entry { player, link: LinkDir::forward(change.link), effect });
            self.losses.push(losses.clone());
        }
    }

    /// Returns when the next change is due; `None` if no more will come.
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
            match entry.effect {
                Effect::Become { history, at_once } => {
                    alterations(values, at_once).for_each(|what| context.act(Action::Alter(entry.link, what)));
                    self.histories[history].became(values, now);
                }
                Effect::Tell => {
                    values.rate.into_iter().for_each(|rate| context.act(Action::Tell(entry.link, Fact::Rate(rate))));
                }
                Effect::Stations(place) => context.act(Action::Stations(entry.link, place)),
            }
            touched.push(entry.link);
        }
        // The next event of a link is known only after all its changes at this time.
        touched.into_iter().for_each(|link| context.act(Action::Review(link)));
    }

    /// Returns the probabilities of loss at this index of the list, see [`Action::Stations`].
    pub fn losses(&self, place: usize) -> &[f64] {
        &self.losses[place]
    }

    /// Returns the values of the links over time as the table `link_changes`; `None` if nothing changes or the run
    /// keeps no tables.
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

/// True if the change sets rate, delay or loss.
fn becomes(change: &Change) -> bool {
    !matches!(change.course, Course::Step { values, .. } if values == Values::default())
}

/// True if new rates of a change apply at once: with a series, a packet that kept the rate of an outage would block the
/// wire for long after the outage.
pub fn changes_rate_at_once(change: &Change) -> bool {
    !matches!(change.course, Course::Step { .. }) && has_rates(&change.course)
}

/// True if the course has rates of which the discipline may be told.
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

/// Returns the directions of the link that a change concerns.
pub fn directions(change: &Change) -> impl Iterator<Item = LinkDir> {
    let forward = LinkDir::forward(change.link);
    let ways: &[bool] = match change.way {
        Way::Both => &[true, false],
        Way::Forward => &[true],
        Way::Reverse => &[false],
    };
    ways.iter().map(move |is_forward| if *is_forward { forward } else { forward.reverse() })
}

/// Names the random stream of a change by random states. Both directions and the copy that tells the discipline draw
/// the same states from streams of this name. A second such change of the link has another name.
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

    /// Serves this text for any file name.
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

    /// A trace has 100,000 opportunities, one per millisecond, in intervals of 1 ms. Each of its two directions has an
    /// entry that changes the link and one that tells the discipline. Each entry is called once for each step and has
    /// nothing to search.
    #[test]
    fn a_long_trace_costs_as_much_per_step_as_a_short_one() {
        let trace: String = (1..=100_000).map(|ms| format!("{ms}\n")).collect();
        let scenario = scenario("trace = \"long\"\nbin = \"1ms\"\n", &trace);
        let mut network = network::build(&scenario);
        let mut changes = std::mem::take(&mut network.changes);
        let mut world = World::new(network.layout, network.links, network.access, network.routes);
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
        let is = |entry: &Entry| matches!(entry.effect, Effect::Tell);
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

    /// The name of a stream decides its numbers: the first change by states of a link keeps the one without a number.
    #[test]
    fn each_change_by_states_of_a_link_has_its_stream() {
        let states = "states = [{ rate = \"2Mbit/s\", lasts = \"3s\" }, { rate = \"1Mbit/s\", lasts = \"1s\" }]\n";
        let change = scenario(states, "").changes.remove(0);
        let changes = [change.clone(), change.clone(), change];
        let before = Before {
            name: "bottleneck".into(),
            rates: [Rate::from_bps(1); 2],
            delays: [Span::ZERO; 2],
            losses: [0.0; 2],
        };
        let names = [0, 1, 2].map(|place| stream_name(&changes, std::slice::from_ref(&before), place));
        assert_eq!(names, ["bottleneck/states", "bottleneck/states2", "bottleneck/states3"]);
    }
}
