//! What the program finds where it runs: interfaces, the place of its control socket, and the two outputs.

use crate::error::Error;
use nix::sys::signal::Signal;
use penstock_appliance::error::Error as AskError;
use penstock_appliance::output::print;
pub(crate) use penstock_appliance::output::say;
use penstock_appliance::socket::place;
use penstock_appliance::socket::server::Server;
use penstock_linux::links;
use penstock_linux::signals::Signals;

/// Returns the index of an interface.
pub(crate) fn interface(key: &'static str, name: &str) -> Result<u32, Error> {
    links::index(name).map_err(|source| Error::NoInterface { key, source })
}

/// Opens the control socket of this name.
pub(crate) fn server(name: &str) -> Result<Server, Error> {
    Server::open(&place::named(name)?).map_err(|e| AskError::Control(format!("{e} (`name` in the file)")).into())
}

/// Opens the signals. SIGHUP applies the file, also if `nohup` or a supervisor lets the process ignore it.
pub(crate) fn signals() -> Result<Signals, Error> {
    Ok(Signals::open(&[Signal::SIGHUP])?)
}

/// Prints on the standard output; returns the exit code 0.
pub(crate) fn printed(text: &str) -> Result<u8, Error> {
    print(text).map(|()| 0).map_err(Error::io("cannot write to the standard output"))
}
