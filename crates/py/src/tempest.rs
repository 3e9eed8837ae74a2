//! TEMPEST, the test environment for packet schedulers.

use crate::convert;
use penstock_core::sched::table;
use penstock_tempest::{Plan, Request, RunError, run};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Runs the test that `request`, a JSON object of flags and their texts, describes; returns the report as JSON.
#[pyfunction]
pub(crate) fn tempest(py: Python<'_>, request: &str) -> PyResult<String> {
    let mistake = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
    let request: Request = serde_json::from_str(request).map_err(|error| mistake(&error))?;
    let plan = Plan::of(&request).map_err(|error| mistake(&error))?;
    let report = py.detach(|| run(&plan)).map_err(|error| match error {
        RunError::Mistake(error) => mistake(&error),
        RunError::Stuck(_) => PyRuntimeError::new_err(error.to_string()),
    })?;
    convert::json(&report)
}

/// Returns every scheduler with its parameters, as JSON.
#[pyfunction]
pub(crate) fn schedulers() -> PyResult<String> {
    convert::json(&table::entries())
}
