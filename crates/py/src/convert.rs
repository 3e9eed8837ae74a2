//! Conversion of Rust values to values that Python takes without loss.

use penstock_sim::{Column, Table};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// Returns `value` as JSON.
pub(crate) fn json<T: serde::Serialize + ?Sized>(value: &T) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| PyRuntimeError::new_err(error.to_string()))
}

/// Returns tables as `{table: {column: (dtype, little-endian bytes)}}`.
pub(crate) fn tables<'py>(py: Python<'py>, tables: &[Table]) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    for table in tables {
        let columns = PyDict::new(py);
        for (name, column) in &table.columns {
            let (dtype, bytes) = little_endian(column);
            columns.set_item(name, (dtype, PyBytes::new(py, &bytes)))?;
        }
        out.set_item(table.name, columns)?;
    }
    Ok(out)
}

fn little_endian(column: &Column) -> (&'static str, Vec<u8>) {
    match column {
        Column::U64(values) => ("<u8", values.iter().flat_map(|v| v.to_le_bytes()).collect()),
        Column::F64(values) => ("<f8", values.iter().flat_map(|v| v.to_le_bytes()).collect()),
        Column::U32(values) => ("<u4", values.iter().flat_map(|v| v.to_le_bytes()).collect()),
    }
}
