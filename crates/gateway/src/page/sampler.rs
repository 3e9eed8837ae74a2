//! Asks the gateway once a second, and keeps its last answers and the rows of a day. Browsers and Prometheus get these, so
//! that a hundred of them ask the gateway no more than one.

use crate::page::history::{COLUMNS, History, Row};
use penstock_appliance::socket::client::{Connection, Error};
use penstock_appliance::socket::message::{By, Request, Set};
use serde_json::{Value, json};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// How often the gateway is asked.
const EVERY: Duration = Duration::from_secs(1);
/// Number of flows and of subscribers that are listed.
const MOST: usize = 20;

/// The last answers of the gateway.
#[derive(Debug, Clone, Default)]
pub struct Now {
    /// The answer to `status`.
    pub status: Value,
    /// The answers to `top`, by flow and by node.
    pub top: [Value; 2],
    /// The row of the last second.
    pub row: Option<Row>,
}

/// What the threads of the page share.
#[derive(Debug)]
pub struct Sampler {
    connection: Mutex<Connection>,
    now: Mutex<Now>,
    history: Mutex<History>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sampler {
    /// Asks over this connection.
    pub fn new(connection: Connection, history: History) -> Self {
        Self { connection: Mutex::new(connection), now: Mutex::default(), history: Mutex::new(history) }
    }

    /// Asks until there is no answer; returns why.
    pub fn run(&self) -> Error {
        loop {
            let begin = Instant::now();
            if let Err(error) = self.sample(unix_time()) {
                return error;
            }
            std::thread::sleep(EVERY.saturating_sub(begin.elapsed()));
        }
    }

    fn sample(&self, at: i64) -> Result<(), Error> {
        let mut connection = locked(&self.connection);
        let status = connection.ask(&Request::Status)?;
        // A gateway that only gives budgets sees no packets, and refuses.
        let mut top = |by| match connection.ask(&Request::Top { by, most: MOST }) {
            Err(Error::Refused(_)) => Ok(json!({"entries": []})),
            told => told,
        };
        let top = [top(By::Flow)?, top(By::Node)?];
        drop(connection);
        let mut now = locked(&self.now);
        let row = (!now.status.is_null()).then(|| row(at, &now.status, &status));
        *now = Now { status, top, row };
        drop(now);
        row.into_iter().for_each(|row| locked(&self.history).add(row));
        Ok(())
    }

    /// Sets values as `penstock-gateway set` does.
    ///
    /// # Errors
    /// Returns why the gateway refuses.
    pub fn set(&self, request: Set) -> Result<Value, Error> {
        locked(&self.connection).ask(&Request::Set(request))
    }

    /// Returns the last answers.
    pub fn now(&self) -> Now {
        locked(&self.now).clone()
    }

    /// Returns the rows of the last `span` seconds.
    pub fn last(&self, span: i64) -> Value {
        locked(&self.history).last(span)
    }

    /// Returns what a page gets each second.
    pub fn shown(&self, role: &str, login: bool) -> Value {
        let Now { status, top: [flows, nodes], row } = self.now();
        let row = row.as_ref().map_or(Value::Null, super::history::shown);
        json!({"status": status, "flows": flows, "nodes": nodes, "row": row, "columns": COLUMNS, "role": role, "login": login})
    }
}

/// Returns the seconds since 1970.
pub fn unix_time() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}

/// Returns the row of the time between two answers.
fn row(at: i64, old: &Value, new: &Value) -> Row {
    let read = |status: &Value, path: &str| status.pointer(path).and_then(Value::as_f64);
    let now = |path: &str| read(new, path).map_or(f32::NAN, |value| value as f32);
    let grown = |path: &str| Some((read(new, path)? - read(old, path)?).max(0.0));
    let seconds = grown("/elapsed_s").unwrap_or(1.0).max(1e-3);
    let ratio = |part: Option<f64>, whole: Option<f64>, scale: f64| match (part, whole) {
        (Some(part), Some(whole)) if whole > 0.0 => (scale * part / whole) as f32,
        _ => f32::NAN,
    };
    let ways = ["forward", "reverse"];
    let passed = |at: usize| {
        let observed = grown(&format!("/observed/{at}/bytes")).unwrap_or(0.0);
        (8.0 * (grown(&format!("/{}/delivered/bytes", ways[at])).unwrap_or(0.0) + observed) / seconds) as f32
    };
    let delay = |at: usize| ratio(grown(&format!("/delays/{at}/sum_s")), grown(&format!("/delays/{at}/count")), 1e3);
    let drops = |at: usize| {
        let causes = ["early", "overflow", "dequeue"]
            .map(|cause| grown(&format!("/{}/dropped/{cause}", ways[at])).unwrap_or(0.0));
        causes.iter().sum::<f64>() as f32
    };
    let window =
        |at: usize| ratio(grown(&format!("/windows/{at}/written")), grown(&format!("/windows/{at}/advertised")), 1.0);
    let past = ["/past/opened/packets", "/past/overflow_at_least"].map(|path| grown(path).unwrap_or(0.0));
    let values = [
        passed(0),
        passed(1),
        now("/forward/rate_bps"),
        now("/reverse/rate_bps"),
        delay(0),
        delay(1),
        drops(0),
        drops(1),
        now("/link/wan_ms"),
        now("/link/wan_least_ms"),
        now("/link/lan_least_ms"),
        now("/link/queue_ms"),
        window(0),
        window(1),
        now("/flows/entries"),
        past.iter().sum::<f64>() as f32,
    ];
    Row { at, values }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_what_has_grown_between_two_answers() {
        let status = |elapsed: f64, bytes: u64, sum: f64, count: u64, early: u64| {
            let way = json!({"delivered": {"bytes": bytes}, "dropped": {"early": early, "overflow": 1, "dequeue": 0}, "rate_bps": 9_000_000});
            json!({"elapsed_s": elapsed, "forward": way, "reverse": way, "delays": [{"sum_s": sum, "count": count}, {"sum_s": 0, "count": 0}],
                "windows": [{"written": 10 * count, "advertised": 20 * count}], "link": {"wan_ms": 41.5}, "past": {"overflow_at_least": early}})
        };
        let row = row(7, &status(1.0, 1000, 0.5, 10, 2), &status(3.0, 251_000, 0.6, 30, 5));
        let value = |name: &str| row.values[COLUMNS.iter().position(|column| *column == name).unwrap()];
        assert_eq!((row.at, value("down_bps"), value("down_set_bps"), value("down_drops")), (7, 1e6, 9e6, 3.0));
        assert!((value("down_delay_ms") - 5.0).abs() < 1e-4 && value("up_delay_ms").is_nan());
        assert_eq!((value("down_window"), value("wan_ms"), value("past")), (0.5, 41.5, 3.0));
    }
}
