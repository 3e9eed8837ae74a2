//! Asks the appliance once a second, and keeps its last answers and the rows of a day. Browsers and Prometheus get these, so
//! that a hundred of them ask it no more than one.

use crate::page::Content;
use crate::page::history::{History, Row, names, shown};
use crate::socket::client::{Connection, Error};
use crate::socket::message::{By, Request, Set};
use serde_json::{Value, json};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

const EVERY: Duration = Duration::from_secs(1);
/// Number of flows and of subscribers that are listed.
const MOST: usize = 20;

#[derive(Debug, Clone, Default)]
pub struct Now {
    pub status: Value,
    /// The answers to `top`, by flow and by node.
    pub top: [Value; 2],
    pub row: Option<Row>,
}

/// What the threads of the page share.
#[derive(Debug)]
pub struct Sampler {
    pub content: &'static Content,
    connection: Mutex<Connection>,
    now: Mutex<Now>,
    history: Mutex<History>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sampler {
    pub fn new(content: &'static Content, connection: Connection, history: History) -> Self {
        Self { content, connection: Mutex::new(connection), now: Mutex::default(), history: Mutex::new(history) }
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
        // An appliance that sees no packets, such as one that only gives budgets, refuses.
        let mut top = |by| match connection.ask(&Request::Top { by, most: MOST }) {
            Err(Error::Refused(_)) => Ok(json!({"entries": []})),
            told => told,
        };
        let top = [top(By::Flow)?, top(By::Node)?];
        drop(connection);
        let mut now = locked(&self.now);
        let row = (!now.status.is_null()).then(|| Row { at, values: (self.content.row)(&now.status, &status).into() });
        *now = Now { status, top, row: row.clone() };
        drop(now);
        row.into_iter().for_each(|row| locked(&self.history).add(row));
        Ok(())
    }

    /// Sets values as the verb `set` does.
    pub fn set(&self, request: Set) -> Result<Value, Error> {
        locked(&self.connection).ask(&Request::Set(request))
    }

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
        let row = row.as_ref().map_or(Value::Null, shown);
        json!({"status": status, "flows": flows, "nodes": nodes, "row": row, "columns": names(self.content.columns), "role": role, "login": login})
    }
}

pub fn unix_time() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64)
}
