//! TEMPEST, the test environment for packet schedulers.

use crate::convert;
use crate::own::PyLibrary;
use penstock_core::sched::table;
use penstock_tempest::{Plan, Request, RunError, run};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// Runs the test that `request`, a JSON object of flags and their texts, describes; returns the report as JSON. `library`
/// finds schedulers that are not in the table.
#[pyfunction]
#[pyo3(signature = (request, library=None))]
pub(crate) fn tempest(py: Python<'_>, request: &str, library: Option<Py<PyAny>>) -> PyResult<String> {
    let mistake = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
    let request: Request = serde_json::from_str(request).map_err(|error| mistake(&error))?;
    let library = PyLibrary::new(library);
    let plan = Plan::with(&request, &library);
    let plan = plan.map_err(|error| library.failure(py).unwrap_or_else(|| mistake(&error)))?;
    let report = library.run(py, || {
        run(&plan).map_err(|error| match error {
            RunError::Mistake(error) => mistake(&error),
            RunError::Stuck(_) => PyRuntimeError::new_err(error.to_string()),
        })
    })?;
    convert::json(&report)
}

/// Returns every scheduler with its parameters, as JSON.
#[pyfunction]
pub(crate) fn schedulers() -> PyResult<String> {
    convert::json(&table::entries())
}
