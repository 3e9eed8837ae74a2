//! The equations of a scenario.

use crate::own::PyLibrary;
use crate::{ScenarioError, convert};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Solves the equations of a scenario; the arguments are those of `Simulation`.
///
/// Returns the scenario with every default written out, its seed, the summary as JSON and the tables.
#[pyfunction]
#[pyo3(signature = (text, file, seed=None, library=None))]
pub(crate) fn fluid<'py>(
    py: Python<'py>,
    text: &str,
    file: &str,
    seed: Option<u64>,
    library: Option<Py<PyAny>>,
) -> PyResult<(String, u64, String, Bound<'py, PyDict>)> {
    let library = PyLibrary::new(library);
    let read = penstock_fluid::read(text, file, seed, &library)
        .map_err(|d| library.failure(py).unwrap_or_else(|| ScenarioError::new_err(d.to_string())))?;
    let found = py.detach(|| penstock_fluid::outcome(&read.scenario, read.model));
    let tables = convert::tables(py, &found.tables)?;
    Ok((read.scenario.resolved(), read.scenario.seed, convert::json(&found.summary)?, tables))
}
