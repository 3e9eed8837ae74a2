//! Changes of the link during a run: steps, a trace of Mahimahi, or a table. They are those of `[[changes]]` of scenarios.

use crate::carried::Carried;
use crate::settings::Settings;
use penstock_core::units::{Instant, Rate, Span};
use penstock_grammar::link;
use penstock_grammar::range::{MAX_DURATION, within};
use penstock_grammar::source::Value;
use penstock_grammar::{Diagnosis, Source, fields};
use penstock_shaper::direction::Direction;
use penstock_shaper::path as shaper;
use penstock_trace::recorded;
use penstock_trace::series::{Player, Point, Series, Values, Way};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const BIN: Span = Span::from_millis(100);
const SHORTEST: Span = Span::from_millis(1);
const LONGEST_BIN: Span = Span::from_secs(3600);

/// The keys of a change.
#[derive(Debug, Deserialize)]
struct ChangeKeys {
    #[serde(default)]
    at: Span,
    every: Option<Span>,
    #[serde(default)]
    direction: Way,
    rate: Option<Rate>,
    delay: Option<Span>,
    loss: Option<f64>,
    trace: Option<PathBuf>,
    table: Option<PathBuf>,
    bin: Option<Span>,
}

/// How a link changes.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    ways: Way,
    at: Span,
    series: Arc<Series>,
}

impl Course {
    /// Reads a trace of Mahimahi for the rate of one direction.
    pub fn of_trace(direction: Direction, file: &Path) -> Result<Self, String> {
        let ways = if direction == Direction::Forward { Way::Forward } else { Way::Reverse };
        let (name, text) = text_of(file, None)?;
        let series = recorded::mahimahi(&text, &name, BIN).map_err(|mistake| mistake.to_string())?;
        moving(&series).map_err(|what| format!("{name}: {what}"))?;
        Ok(Self { ways, at: Span::ZERO, series: Arc::new(series) })
    }

    /// Returns whether it changes a direction.
    fn changes(&self, direction: Direction) -> bool {
        self.ways == Way::Both || (self.ways == Way::Forward) == (direction == Direction::Forward)
    }

    /// Returns the rate with which a direction begins; `None` if that is another one, or begins with its own rate.
    pub fn first_rate(&self, direction: Direction) -> Option<Rate> {
        let first = self.series.points().first().filter(|first| self.at + first.at == Span::ZERO)?;
        first.values.rate.filter(|_| self.changes(direction))
    }
}

/// Reads `[[changes]]`, or returns the first mistake at its place. Files are looked for in the directory of the file that names
/// them, then in the current one.
pub fn read<'a>(source: &Source<'a>, value: &Value<'a>) -> Result<Vec<Course>, Diagnosis> {
    let list = source.list(value)?;
    list.iter().map(|value| one(source, value)).collect()
}

fn one<'a>(source: &Source<'a>, value: &Value<'a>) -> Result<Course, Diagnosis> {
    let table = source.table(value, &[fields::of::<ChangeKeys>()])?;
    let keys: ChangeKeys = table.part()?;
    let at = |key: &str, what: &str| table.invalid_at(key, what);
    let checked = |result: Result<(), penstock_core::config::ConfigError>| result.map_err(|e| table.invalid(&e));
    keys.rate.map_or(Ok(()), |rate| checked(link::rate("rate", rate)))?;
    keys.delay.map_or(Ok(()), |delay| checked(link::delay("delay", delay)))?;
    keys.loss.map_or(Ok(()), |loss| checked(link::loss("loss", loss)))?;
    keys.every.map_or(Ok(()), |every| checked(within("every", &every, SHORTEST..=MAX_DURATION)))?;
    keys.bin.map_or(Ok(()), |bin| checked(within("bin", &bin, SHORTEST..=LONGEST_BIN)))?;
    checked(within("at", &keys.at, Span::ZERO..=MAX_DURATION))?;
    let ChangeKeys { rate, delay, loss, every, .. } = keys;
    let step = Values { rate, delay, loss };
    let is_step = step != Values::default();
    if usize::from(is_step) + usize::from(keys.trace.is_some()) + usize::from(keys.table.is_some()) != 1 {
        let what = "a change has new values (`rate`, `delay`, `loss`), or a `trace`, or a `table`; give each of its own [[changes]]";
        let key = if keys.table.is_some() { "table" } else { "trace" };
        return Err(at(key, what));
    }
    if keys.bin.is_some() && keys.trace.is_none() {
        return Err(at("bin", "`bin` is for a `trace`"));
    }
    if every.is_some() && keys.trace.is_some() {
        return Err(at("every", "`every` is for steps and a `table`; a trace begins again by itself"));
    }
    let series = if let Some(file) = &keys.trace {
        let (name, text) = text_of(file, Some(source)).map_err(|what| at("trace", &what))?;
        recorded::mahimahi(&text, &name, keys.bin.unwrap_or(BIN))
            .map_err(|mistake| at("trace", &mistake.to_string()))?
    } else if let Some(file) = &keys.table {
        let (name, text) = text_of(file, Some(source)).map_err(|what| at("table", &what))?;
        recorded::table(&text, &name, every, keys.direction).map_err(|mistake| at("table", &mistake.to_string()))?
    } else {
        Series::new(vec![Point { at: Span::ZERO, values: step }], every)
    };
    moving(&series).map_err(|what| at("trace", what))?;
    Ok(Course { ways: keys.direction, at: keys.at, series: Arc::new(series) })
}

/// Refuses a rate of zero, with which a transmission would never end.
fn moving(series: &Series) -> Result<(), &'static str> {
    let stands = |point: &Point| point.values.rate.is_some_and(|rate| rate.as_bps() == 0);
    if series.points().iter().any(stands) {
        Err("its rate falls to 0; the emulator's is at least 1 bit/s")
    } else {
        Ok(())
    }
}

/// Returns the name of a file and its text.
fn text_of(file: &Path, source: Option<&Source<'_>>) -> Result<(String, String), String> {
    let beside = source.and_then(|source| Path::new(source.file()).parent()).map(|directory| directory.join(file));
    let place = beside.filter(|place| place.exists()).unwrap_or_else(|| file.to_owned());
    let name = file.to_string_lossy().into_owned();
    let failed = |error| format!("cannot read {name}: {error}");
    let size = std::fs::metadata(&place).map_err(failed)?.len();
    if size > recorded::MAX_BYTES as u64 {
        return Err(format!("{name} has {size} bytes; allowed are {}", recorded::MAX_BYTES));
    }
    std::fs::read_to_string(&place).map(|text| (name.clone(), text)).map_err(failed)
}

/// Plays the changes of a link.
#[derive(Debug)]
pub struct Playing(Vec<(Course, Player)>);

impl Playing {
    /// Begins all changes at the time 0 of the run.
    pub fn new(courses: &[Course]) -> Self {
        let player = |course: &Course| Player::of_series(Arc::clone(&course.series), Instant::ZERO + course.at);
        Self(courses.iter().map(|course| (course.clone(), player(course))).collect())
    }

    /// Returns when the next change is due; `None` if there is none any more.
    pub fn next(&self) -> Option<Instant> {
        self.0.iter().map(|(_, player)| player.due).min().filter(|due| *due < Instant::MAX)
    }

    /// Changes the link as it is to change at this time.
    pub fn play(&mut self, at: Instant, path: &mut shaper::Path<Carried>, settings: &mut Settings) {
        while let Some((ways, Values { rate, delay, loss })) = self.step(at) {
            for direction in Direction::BOTH.into_iter().filter(|direction| ways[direction.index()]) {
                let bottleneck = path.direction_mut(direction);
                let way = &mut settings.0[direction.index()];
                if let Some(rate) = rate {
                    bottleneck.set_rate(rate, at);
                    way.config.rate = rate;
                }
                if let Some(delay) = delay {
                    (bottleneck.line.delay, way.config.delay) = (delay, delay);
                }
                if let Some(loss) = loss {
                    bottleneck.set_loss(loss);
                    way.loss = loss;
                }
            }
        }
    }

    /// Takes the next change, of those that are due at `at`; says which directions it changes. `None` if none is due.
    fn step(&mut self, at: Instant) -> Option<([bool; 2], Values)> {
        let (course, player) = self.0.iter_mut().find(|(_, player)| player.due <= at)?;
        Some((Direction::BOTH.map(|direction| course.changes(direction)), player.step()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn courses(text: &str) -> Result<Vec<Course>, Diagnosis> {
        let source = Source::parse(text, "a.toml")?;
        read(&source, source.get(&["changes"]).unwrap())
    }

    /// Times in milliseconds, directions and rates in kbit/s of the first changes.
    fn played(text: &str, most: usize) -> Vec<(u64, [bool; 2], Option<u64>)> {
        let mut playing = Playing::new(&courses(text).unwrap());
        let mut next = || {
            let at = playing.next()?;
            let (ways, values) = playing.step(at)?;
            Some((at.as_nanos() / 1_000_000, ways, values.rate.map(|rate| rate.as_bps() / 1000)))
        };
        (0..most).map_while(|_| next()).collect()
    }

    #[test]
    fn steps_come_at_their_times_and_again() {
        let text = "[[changes]]\nat = \"5s\"\nrate = \"2Mbit/s\"\ndirection = \"reverse\"\n\
                    [[changes]]\nat = \"1s\"\nevery = \"3s\"\nrate = \"1Mbit/s\"\n";
        let (both, back) = ([true, true], [false, true]);
        let expected =
            [(1000, both, Some(1000)), (4000, both, Some(1000)), (5000, back, Some(2000)), (7000, both, Some(1000))];
        assert_eq!(played(text, 4), expected);
        assert_eq!(played("[[changes]]\nloss = 0.1\n", 9).len(), 1, "a step comes once");
    }

    /// 12 Mbit/s for a second, then 1.2 Mbit/s.
    #[test]
    fn a_trace_of_mahimahi_is_played_and_begins_again() {
        let file = std::env::temp_dir().join(format!("penstock-trace-{}", std::process::id()));
        let ms = (1..=1000).chain((1..=100).map(|ten| 1000 + 10 * ten)).map(|ms: u32| ms.to_string());
        std::fs::write(&file, ms.collect::<Vec<_>>().join("\n")).unwrap();
        let text = format!("[[changes]]\ntrace = {file:?}\nbin = \"1s\"\n");
        let both = [true, true];
        assert_eq!(played(&text, 3), [(0, both, Some(12_000)), (1000, both, Some(1200)), (2000, both, Some(12_000))]);
        let course = Course::of_trace(Direction::Reverse, &file).unwrap();
        let rates = [Direction::Forward, Direction::Reverse].map(|direction| course.first_rate(direction));
        assert_eq!(rates, [None, Some(Rate::from_bps(12_000_000))]);
        std::fs::remove_file(file).unwrap();
    }

    #[test]
    fn mistakes_are_told_at_their_line() {
        for (text, line, what) in [
            ("at = \"1s\"", 1, "a change has new values"),
            ("rate = \"1Mbit/s\"\ntrace = \"x\"", 3, "a change has new values"),
            ("loss = 2.0", 2, "allowed is a probability"),
            ("loss = 0.1\nbin = \"1s\"", 3, "`bin` is for a `trace`"),
            ("trace = \"x\"\nevery = \"1s\"", 3, "a trace begins again by itself"),
            ("rate = \"1Mbit/s\"\nevery = \"1us\"", 3, "allowed are 1ms to"),
            ("trace = \"/nowhere/x\"", 2, "cannot read /nowhere/x"),
            ("trace = \"/etc/passwd\"", 2, "is not a whole number of milliseconds"),
            ("orbit = \"leo\"", 2, "unknown field `orbit`"),
        ] {
            let mistake = courses(&format!("[[changes]]\n{text}\n")).unwrap_err();
            assert!(mistake.what.contains(what) && mistake.line == line, "{text}: {mistake}");
        }
    }
}
