//! Reading of the course of a change: a step, or a series from an orbit, a file, or random states.

use super::change_keys::{ChangeKeys, OrbitKeys, RingKeys, STEP, StateKeys};
use super::{Check, Checker};
use crate::orbit::Orbit;
use crate::scenario::{Course, LinkSpec};
use penstock_core::foreign::LibraryError;
use penstock_core::units::{Rate, Span};
use penstock_grammar::link;
use penstock_grammar::range::MAX_DURATION;
use penstock_grammar::stations;
use penstock_trace::recorded;
use penstock_trace::series::{State, Values, Way};
use std::sync::Arc;

const SERIES: [&str; 4] = ["orbit", "trace", "table", "states"];
const BIN: Span = Span::from_millis(100);
const MIN_SPAN: Span = Span::from_millis(1);
const MAX_BIN: Span = Span::from_secs(3600);
const MAX_STEPS: u64 = 1_000_000;
const MAX_STATES: usize = 1000;

impl ChangeKeys {
    /// Lists which of these keys the file gives.
    fn written(&self) -> impl Iterator<Item = &'static str> {
        let series = [self.orbit.is_some(), self.trace.is_some(), self.table.is_some(), self.states.is_some()];
        let step = [self.rate.is_some(), self.delay.is_some(), self.loss.is_some(), self.stations.is_some()];
        let keys = SERIES.into_iter().chain(["rate", "delay", "loss", "stations"]);
        keys.zip(series.into_iter().chain(step)).filter(|(_, is)| *is).map(|(key, _)| key)
    }
}

impl Checker<'_> {
    /// Reads the course of a change, which must have exactly one of the forms.
    pub(super) fn course(&self, index: &str, raw: &ChangeKeys, link: &LinkSpec) -> Check<Course> {
        let at = |key: &str, message: &str| Err(self.source.at(&["changes", index, key], message));
        let mut written = raw.written();
        let (Some(first), second) = (written.next(), written.next()) else {
            let message = "nothing changes: give `rate`, `delay`, `loss` or `stations`, or one of `orbit`, `trace`, \
                           `table` and `states`";
            return at("link", message);
        };
        if let Some(second) = second.filter(|_| SERIES.contains(&first)) {
            let message = format!(
                "`{first}` and `{second}` in one change; give each of its own [[changes]], whose `link` is the same"
            );
            return at(second, &message);
        }
        if raw.bin.is_some() && first != "trace" {
            return at("bin", "`bin` is for a `trace`");
        }
        if raw.every.is_some() && SERIES.contains(&first) && first != "table" {
            return at(
                "every",
                "`every` is for steps and a `table`; orbits and traces begin again by themselves, states have no end",
            );
        }
        if let Some(every) = raw.every {
            self.within_span("every", &["changes", index, "every"], every, MIN_SPAN, MAX_DURATION)?;
        }
        match (&raw.orbit, &raw.trace, &raw.table, &raw.states) {
            (Some(orbit), ..) => self.orbit(index, orbit),
            (_, Some(file), ..) => self.trace(index, file, raw.bin.unwrap_or(BIN)),
            (_, _, Some(file), _) => self.table(index, file, raw),
            (.., Some(states)) => self.states(index, states),
            _ => self.step(index, raw, link),
        }
    }

    fn step(&self, index: &str, raw: &ChangeKeys, link: &LinkSpec) -> Check<Course> {
        let values = self.values(&["changes", index], raw.rate, raw.delay, raw.loss)?;
        let behind = link.queue.stations.len();
        let stations = raw.stations.clone();
        let checked = stations.as_ref().map_or(Ok(()), |losses| stations::new_losses(losses, behind));
        self.placed(&["changes", index], checked)?;
        Ok(Course::Step { values, stations, every: raw.every })
    }

    fn values(&self, path: &[&str], rate: Option<Rate>, delay: Option<Span>, loss: Option<f64>) -> Check<Values> {
        if let Some(rate) = rate {
            self.placed(path, link::rate("rate", rate))?;
        }
        if let Some(delay) = delay {
            self.placed(path, link::delay("delay", delay))?;
        }
        if let Some(loss) = loss {
            self.placed(path, link::loss("loss", loss))?;
        }
        Ok(Values { rate, delay, loss })
    }

    fn orbit(&self, index: &str, raw: &OrbitKeys) -> Check<Course> {
        let path = ["changes", index, "orbit"];
        let (orbit, step, served) = match raw {
            OrbitKeys::Known(word) => {
                let words = Orbit::PRESETS.map(|(word, _)| word);
                let Some((_, orbit)) = Orbit::PRESETS.into_iter().find(|(known, _)| known == word) else {
                    return Err(self.source.unknown(&path, "orbit", word, &words));
                };
                (orbit, STEP, Span::ZERO)
            }
            OrbitKeys::Of(ring) => (self.ring(index, ring)?, ring.step, ring.served),
        };
        if !orbit.is_seen() {
            let message = "no satellite of this orbit is always above the horizon of both stations; more `satellites`, a \
                           greater `altitude_km`, a lower `latitude` or stations less `apart` would be";
            return Err(self.source.at(&path, message));
        }
        let steps = orbit.steps(step);
        if steps > MAX_STEPS {
            let message =
                format!("a passage has {steps} steps of {step}; allowed are {MAX_STEPS}: give a longer `step`");
            return Err(self.source.at(&path, &message));
        }
        Ok(Course::Orbit { orbit, step, served })
    }

    /// Reads the numbers of an orbit and checks their bounds.
    fn ring(&self, index: &str, raw: &RingKeys) -> Check<Orbit> {
        let path = |key| ["changes", index, "orbit", key];
        let numbers = [
            ("altitude_km", raw.altitude_km, 100.0, 50_000.0),
            ("satellites", raw.satellites.into(), 1.0, 1000.0),
            ("latitude", raw.latitude, -90.0, 90.0),
            ("apart", raw.apart, -180.0, 180.0),
        ];
        for (key, value, low, high) in numbers {
            if !(low..=high).contains(&value) {
                let message = format!("{key} is {value}; allowed are {low} to {high}");
                return Err(self.source.at(&path(key), &message));
            }
        }
        let spans = [
            ("processing", raw.processing, Span::ZERO, Span::from_secs(10)),
            ("step", raw.step, MIN_SPAN, MAX_DURATION),
            ("served", raw.served, Span::ZERO, MAX_DURATION),
        ];
        for (key, value, low, high) in spans {
            self.within_span(key, &path(key), value, low, high)?;
        }
        let RingKeys { altitude_km, satellites, latitude, apart, processing, .. } = *raw;
        Ok(Orbit { altitude_km, satellites, latitude, apart, processing })
    }

    fn trace(&self, index: &str, file: &str, bin: Span) -> Check<Course> {
        self.within_span("bin", &["changes", index, "bin"], bin, MIN_SPAN, MAX_BIN)?;
        let path = ["changes", index, "trace"];
        let series = recorded::mahimahi(&self.file(&path, file)?, file, bin);
        let series = Arc::new(series.map_err(|mistake| self.source.at(&path, &mistake.to_string()))?);
        Ok(Course::Trace { file: file.to_owned(), bin, series })
    }

    fn table(&self, index: &str, file: &str, raw: &ChangeKeys) -> Check<Course> {
        let path = ["changes", index, "table"];
        let series = {
            let named = Way::ALL.into_iter().find(|(word, _)| *word == raw.direction);
            let way = named.map_or(Way::Both, |(_, way)| way);
            recorded::table(&self.file(&path, file)?, file, raw.every, way)
        };
        let series = Arc::new(series.map_err(|mistake| self.source.at(&path, &mistake.to_string()))?);
        Ok(Course::Table { file: file.to_owned(), series })
    }

    /// Returns the text of a file, which the library must be able to read.
    fn file(&self, path: &[&str], name: &str) -> Check<String> {
        let nobody = || Err(LibraryError(format!("nothing here can read the file {name:?}: `penstock run` does")));
        self.library.file(name).unwrap_or_else(nobody).map_err(|error| self.source.at(path, &error.to_string()))
    }

    fn states(&self, index: &str, raw: &[StateKeys]) -> Check<Course> {
        let at = |place: usize, key: &str, message: String| {
            Err(self.source.at(&["changes", index, "states", &place.to_string(), key], &message))
        };
        if !(2..=MAX_STATES).contains(&raw.len()) {
            let message = format!("a link has 2 to {MAX_STATES} states, not {}", raw.len());
            return Err(self.source.at(&["changes", index, "states"], &message));
        }
        let said = |state: &StateKeys| {
            [("rate", state.rate.is_some()), ("delay", state.delay.is_some()), ("loss", state.loss.is_some())]
        };
        let mut states = Vec::with_capacity(raw.len());
        for (place, state) in raw.iter().enumerate() {
            if said(state).iter().all(|(_, is)| !is) {
                return at(place, "lasts", "this state is like any other: give `rate`, `delay` or `loss`".into());
            }
            if let Some(((key, _), _)) = said(state).iter().zip(said(&raw[0])).find(|(here, first)| **here != *first) {
                return at(place, key, format!("`{key}` is said of some states only; say it of all or of none"));
            }
            let place = place.to_string();
            let lasts = ["changes", index, "states", &place, "lasts"];
            self.within_span("lasts", &lasts, state.lasts, MIN_SPAN, MAX_DURATION)?;
            let values = self.values(&lasts[..4], state.rate, state.delay, state.loss)?;
            states.push(State { values, lasts: state.lasts });
        }
        Ok(Course::States(states.into()))
    }
}
