//! Writing of `[[changes]]`.

use super::text;
use crate::orbit::Orbit;
use crate::scenario::{Change, Course};
use penstock_core::units::Span;
use penstock_trace::series::{State, Values};
use toml::{Table, Value};

/// Writes a change of the link that is called `link`.
pub fn change(change: &Change, link: &str) -> Value {
    let mut table = Table::from_iter([
        ("link".to_owned(), Value::String(link.to_owned())),
        ("at".to_owned(), text(change.at)),
        ("direction".to_owned(), Value::String(change.way.name().into())),
        ("tell_after".to_owned(), text(change.tell_after)),
        ("told".to_owned(), Value::Boolean(change.told)),
    ]);
    course(&change.course, &mut table);
    Value::Table(table)
}

/// Writes the keys of the course of a change.
fn course(course: &Course, table: &mut Table) {
    let mut add = |key: &str, value| table.insert(key.to_owned(), value);
    match course {
        Course::Step { values, stations, every } => {
            write_values(values, &mut add);
            every.map(|every| add("every", text(every)));
            stations.as_ref().map(|losses| add("stations", losses.clone().into()));
        }
        Course::Orbit { orbit, step, served } => {
            add("orbit", write_orbit(orbit, *step, *served));
        }
        Course::Trace { file, bin, .. } => {
            add("trace", file.clone().into());
            add("bin", text(bin));
        }
        Course::Table { file, series } => {
            add("table", file.clone().into());
            series.every().map(|every| add("every", text(every)));
        }
        Course::States(states) => {
            add("states", Value::Array(states.iter().map(write_state).collect()));
        }
    }
}

fn write_values(values: &Values, add: &mut impl FnMut(&str, Value) -> Option<Value>) {
    values.rate.map(|rate| add("rate", text(rate)));
    values.delay.map(|delay| add("delay", text(delay)));
    values.loss.map(|loss| add("loss", Value::Float(loss)));
}

fn write_state(state: &State) -> Value {
    let mut table = Table::from_iter([("lasts".to_owned(), text(state.lasts))]);
    write_values(&state.values, &mut |key, value| table.insert(key.to_owned(), value));
    Value::Table(table)
}

fn write_orbit(orbit: &Orbit, step: Span, served: Span) -> Value {
    Value::Table(Table::from_iter([
        ("altitude_km".to_owned(), Value::Float(orbit.altitude_km)),
        ("satellites".to_owned(), Value::Integer(orbit.satellites.into())),
        ("latitude".to_owned(), Value::Float(orbit.latitude)),
        ("apart".to_owned(), Value::Float(orbit.apart)),
        ("processing".to_owned(), text(orbit.processing)),
        ("step".to_owned(), text(step)),
        ("served".to_owned(), text(served)),
    ]))
}
