//! What the program finds where it runs: interfaces, the place of its control socket, and the two outputs.

use crate::error::Error;
use nix::net::if_::{if_nameindex, if_nametoindex};
use penstock_appliance::error::Error as AskError;
use penstock_appliance::output::print;
use penstock_appliance::socket::place;
use penstock_appliance::socket::server::Server;
use penstock_core::suggest::suggestion;
use std::io::Write as _;

/// Returns the index of an interface.
pub(crate) fn interface(key: &'static str, name: &str) -> Result<u32, Error> {
    if_nametoindex(name).map_err(|_| {
        let known = if_nameindex().map(|all| all.iter().map(|one| one.name().to_string_lossy().into_owned()).collect());
        let known: Vec<String> = known.unwrap_or_default();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        Error::NoInterface { key, name: name.to_owned(), hint: suggestion(name, &known) }
    })
}

/// Opens the control socket of this name.
pub(crate) fn server(name: &str) -> Result<Server, Error> {
    let control = |what: String| Error::Ask(AskError::Control(what));
    let directory = place::directory().ok_or_else(|| control("there is no directory of control sockets".into()))?;
    Server::open(&place::socket(&directory, name)).map_err(|e| control(format!("{e} (`name` in the file)")))
}

/// Prints on the standard output; returns the exit code 0.
pub(crate) fn printed(text: &str) -> Result<u8, Error> {
    print(text).map(|()| 0).map_err(Error::io("cannot write to the standard output"))
}

/// Prints a line on the standard error. If nobody can be told, nobody is.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
