//! What the program finds where it runs: interfaces, the place of its control socket, and the two outputs.

use crate::error::Error;
use nix::sys::signal::Signal;
use penstock_appliance::error::Error as AskError;
use penstock_appliance::output::print;
pub use penstock_appliance::output::say;
use penstock_appliance::socket::place;
use penstock_appliance::socket::server::Server;
use penstock_linux::links;
use penstock_linux::scheduling;
use penstock_linux::signals::Signals;
use serde::Serialize;
use serde_json::Value;

/// Returns why one has to wait for an interface, which a key of the file names; `None` if it is there.
pub fn missing(key: &str, name: &str) -> Option<String> {
    links::index(name).err().map(|error| format!("`{key}`: {error}"))
}

/// Makes this thread prompt, with real-time priority if that is wanted and allowed. Returns what was not allowed.
pub fn prompt(realtime: bool) -> Result<Option<String>, Error> {
    let refused = scheduling::prompt(realtime).err();
    if refused.is_some() {
        scheduling::prompt(false)?;
    }
    Ok(refused.map(|why| format!("this process has no precedence over others: {why}")))
}

/// Opens the control socket of this name.
pub fn server(name: &str) -> Result<Server, Error> {
    Server::open(&place::named(name)?).map_err(|e| AskError::User(format!("{e} (`name` in the file)")).into())
}

/// Opens the signals. SIGHUP applies the file, also if `nohup` or a supervisor lets the process ignore it.
pub fn signals() -> Result<Signals, Error> {
    Ok(Signals::open(&[Signal::SIGHUP])?)
}

/// Prints a text on the standard output; returns the exit code 0.
pub fn printed(text: &str) -> Result<u8, Error> {
    print(text).map(|()| 0).map_err(Error::io("cannot write to the standard output"))
}

/// Prints an answer, for programs or for people.
pub fn answered(json: bool, answer: &Value, text: impl FnOnce(&Value) -> String) -> Result<u8, Error> {
    printed(&if json { format!("{answer}\n") } else { text(answer) })
}

/// Prints the last status of a run, and why it failed if it did; returns the exit code.
pub fn ended(
    json: bool,
    status: &impl Serialize,
    text: fn(&Value) -> String,
    failed: Option<String>,
) -> Result<u8, Error> {
    failed.iter().for_each(|why| say(&format!("error: {why}")));
    answered(json, &serde_json::to_value(status).unwrap_or(Value::Null), text)?;
    Ok(u8::from(failed.is_some()))
}
