//! The headers of the packets of a trace, for Python.

use crate::{TraceError, convert};
use penstock_trace::packets::{COLUMNS, Packets};
use penstock_trace::read;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::Path;

/// Returns the packets of a trace as `{column: (dtype, little-endian bytes)}`; its flows, and what was left out, as JSON.
#[pyfunction]
pub(crate) fn packets<'py>(py: Python<'py>, trace: &str) -> PyResult<(Bound<'py, PyDict>, String, String)> {
    let told = |error| TraceError::new_err(format!("{trace}: {error}"));
    let packets = py.detach(|| read::open(Path::new(trace)).and_then(Packets::of)).map_err(told)?;
    let columns = PyDict::new(py);
    let times: Vec<u8> = packets.t_ns.iter().flat_map(|t| t.to_le_bytes()).collect();
    columns.set_item("t_ns", ("<u8", PyBytes::new(py, &times)))?;
    for (name, column) in COLUMNS.iter().zip(&packets.columns) {
        let bytes: Vec<u8> = column.iter().flat_map(|value| value.to_le_bytes()).collect();
        columns.set_item(name, ("<u4", PyBytes::new(py, &bytes)))?;
    }
    Ok((columns, convert::json(&packets.flows)?, convert::json(&packets.notes)?))
}
