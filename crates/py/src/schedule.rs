//! Packet schedulers driven by a list of events, for comparison with their readable twins.

use crate::own::PyLibrary;
use penstock_core::foreign::Library as _;
use penstock_core::sched::script;
use penstock_core::sched::table::{AnySchedulerConfig, NAMES};
use penstock_core::units::Bytes;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

fn mistake(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// Passes the events ("arrive", class, size), ("depart", 0, 0), ("progress", 0, bytes sent so far), ("weight", class,
/// weight) and ("channel", class, 0 or 1) to the scheduler `name`, then, with `drain`, takes all packets that are left.
/// Returns the numbers of packets, in order of arrival, as they leave, with -1 where no packet left, and the state of the
/// scheduler at the end. `settings` are the scheduler's parameters as JSON; `library` finds schedulers that are not in the
/// table.
#[pyfunction]
#[pyo3(signature = (name, weights, events, max_packet=1500, settings="{}", library=None, drain=true))]
#[allow(clippy::too_many_arguments, reason = "they are keyword arguments in Python")]
pub(crate) fn schedule(
    py: Python<'_>,
    name: &str,
    weights: Vec<u32>,
    events: Vec<(String, u32, u64)>,
    max_packet: u64,
    settings: &str,
    library: Option<Py<PyAny>>,
    drain: bool,
) -> PyResult<(Vec<i64>, String)> {
    let library = PyLibrary::new(library);
    let config = config(&library, name, settings).map_err(|error| library.failure(py).unwrap_or(error))?;
    let played =
        library.run(py, || script::play(&config, &weights, Bytes::new(max_packet), events, drain).map_err(mistake))?;
    let order = played.order.into_iter().map(|packet| packet.map_or(-1, |packet| packet as i64));
    Ok((order.collect(), played.state))
}

/// Returns a scheduler of the table or of the library.
fn config(library: &PyLibrary, name: &str, settings: &str) -> PyResult<AnySchedulerConfig> {
    if let Some(read) = AnySchedulerConfig::deserialize(name, &mut serde_json::Deserializer::from_str(settings)) {
        return read.map_err(mistake);
    }
    match library.scheduler(name, &serde_json::from_str(settings).map_err(mistake)?) {
        Some(found) => found.map(AnySchedulerConfig::Foreign).map_err(mistake),
        None => Err(mistake(format!("there is no scheduler {name:?}; known: {}", NAMES.join(", ")))),
    }
}
