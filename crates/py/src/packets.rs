//! The headers of the packets of a trace, for Python.

use crate::{TraceError, convert};
use penstock_trace::packets::{COLUMNS, Packets};
use penstock_trace::read;
use penstock_trace::read::Cutting;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use std::path::Path;

/// Returns the packets of a trace as `{column: (dtype, little-endian bytes)}`; its flows, and what was left out, as JSON.
/// `cutting` says how packets are split, see [`Cutting::of_bytes`].
#[pyfunction]
#[pyo3(signature = (trace, cutting=None))]
pub(crate) fn packets<'py>(
    py: Python<'py>,
    trace: &str,
    cutting: Option<Vec<u8>>,
) -> PyResult<(Bound<'py, PyDict>, String, String)> {
    let told = |error| TraceError::new_err(format!("{trace}: {error}"));
    let cuttings = cutting.map_or(Vec::new(), |bytes| Cutting::of_bytes(&bytes));
    let read = || read::open(Path::new(trace)).and_then(|arrivals| Packets::of(arrivals.cutting(cuttings)));
    let packets = py.detach(read).map_err(told)?;
    let columns = PyDict::new(py);
    let times: Vec<u8> = packets.t_ns.iter().flat_map(|t| t.to_le_bytes()).collect();
    columns.set_item("t_ns", ("<u8", PyBytes::new(py, &times)))?;
    for (name, column) in COLUMNS.iter().zip(&packets.columns) {
        let bytes: Vec<u8> = column.iter().flat_map(|value| value.to_le_bytes()).collect();
        columns.set_item(name, ("<u4", PyBytes::new(py, &bytes)))?;
    }
    Ok((columns, convert::json(&packets.flows)?, convert::json(&packets.notes)?))
}
