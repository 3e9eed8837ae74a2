//! The Python binding: it converts values and holds no algorithm.

mod convert;
mod endpoint;
mod fluid;
mod from;
mod gym;
mod orbit;
mod own;
mod packets;
mod replay;
mod schedule;
mod segments;
mod simulation;
mod stack;
mod tempest;

use pyo3::create_exception;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

create_exception!(penstock, ScenarioError, PyValueError, "A scenario that cannot be run; its text is the diagnosis.");
create_exception!(penstock, TraceError, PyValueError, "A trace that cannot be read; its text says where and why.");
create_exception!(penstock, BrokenInvariant, PyRuntimeError, "An invariant broke during a run; its text says which.");

/// Returns every algorithm with its parameters, as JSON.
#[pyfunction]
fn entries() -> PyResult<String> {
    convert::json(&penstock_core::registry::all_entries())
}

/// Returns the names of the stacks that can be hosted without a program, with their versions.
#[pyfunction]
fn stacks() -> Vec<(&'static str, String)> {
    let version = |name: &str| penstock_stacks::released(name)?.ok().map(|stack| stack.make().version());
    penstock_stacks::NAMES.iter().map(|name| (*name, version(name).unwrap_or_default())).collect()
}

/// Returns the defaults of `[tcp]` in scenarios, as JSON.
#[pyfunction]
fn tcp_defaults() -> PyResult<String> {
    convert::json(&penstock_sim::tcp::TcpConfig::default())
}

/// Returns the JSON Schema of scenario files.
#[pyfunction]
fn scenario_schema() -> PyResult<String> {
    convert::json(&penstock_sim::scenario::schema())
}

/// Returns the JSON Schema of the summaries of runs.
#[pyfunction]
fn summary_schema() -> PyResult<String> {
    convert::json(&penstock_sim::summary::schema())
}

#[pymodule]
fn _penstock(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("ScenarioError", module.py().get_type::<ScenarioError>())?;
    module.add("TraceError", module.py().get_type::<TraceError>())?;
    module.add("BrokenInvariant", module.py().get_type::<BrokenInvariant>())?;
    module.add("TCP_STATES", penstock_sim::tcp_trace::STATES)?;
    module.add_class::<simulation::Simulation>()?;
    module.add_class::<gym::Environments>()?;
    module.add_class::<orbit::Orbit>()?;
    module.add_class::<endpoint::Endpoint>()?;
    module.add_class::<own::Ack>()?;
    module.add_class::<own::Loss>()?;
    module.add_class::<own::Packet>()?;
    module.add_class::<own::Segment>()?;
    module.add_function(wrap_pyfunction!(entries, module)?)?;
    module.add_function(wrap_pyfunction!(stacks, module)?)?;
    module.add_class::<stack::Stack>()?;
    module.add_function(wrap_pyfunction!(tcp_defaults, module)?)?;
    module.add_function(wrap_pyfunction!(fluid::fluid, module)?)?;
    module.add_function(wrap_pyfunction!(gym::observed, module)?)?;
    module.add_function(wrap_pyfunction!(from::link, module)?)?;
    module.add_function(wrap_pyfunction!(packets::packets, module)?)?;
    module.add_function(wrap_pyfunction!(scenario_schema, module)?)?;
    module.add_function(wrap_pyfunction!(summary_schema, module)?)?;
    module.add_function(wrap_pyfunction!(replay::replay, module)?)?;
    module.add_function(wrap_pyfunction!(replay::on_wire, module)?)?;
    module.add_function(wrap_pyfunction!(replay::replay_control, module)?)?;
    module.add_function(wrap_pyfunction!(replay::replay_state, module)?)?;
    module.add_function(wrap_pyfunction!(replay::replay_rounds, module)?)?;
    module.add_function(wrap_pyfunction!(schedule::schedule, module)?)?;
    module.add_function(wrap_pyfunction!(segments::replay_segments, module)?)?;
    module.add_function(wrap_pyfunction!(tempest::tempest, module)?)?;
    module.add_function(wrap_pyfunction!(tempest::schedulers, module)?)
}
