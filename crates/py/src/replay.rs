//! Recorded arrivals through a queue discipline.

use crate::{BrokenInvariant, TraceError, convert};
use penstock_core::registry::LinkFacts;
use penstock_core::settings::config_from_settings;
use penstock_core::units::{Limit, Rate, UnitError};
use penstock_trace::error::{ReadError, ReplayError};
use penstock_trace::replay::{COLUMNS, Record, replay_each};
use penstock_trace::summary::Summary;
use penstock_trace::{control, read};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// What a replay tells: the discipline's numbers, and what was left out of the trace.
#[derive(serde::Serialize)]
struct Told {
    #[serde(flatten)]
    summary: Summary,
    notes: read::Notes,
}

/// Replays the trace file `trace` through `aqm` before a link and returns the summary as JSON; `settings` are texts
/// `key=value`. With `csv`, a binary file object, every packet is written to it.
#[pyfunction]
#[pyo3(signature = (trace, aqm, rate, limit, settings=Vec::new(), seed=1, csv=None))]
#[allow(clippy::too_many_arguments, reason = "they are keyword arguments in Python")]
pub(crate) fn replay(
    py: Python<'_>,
    trace: &str,
    aqm: &str,
    rate: &str,
    limit: &str,
    settings: Vec<String>,
    seed: u64,
    csv: Option<Py<PyAny>>,
) -> PyResult<String> {
    let bad = |what: &str, error: UnitError| PyValueError::new_err(format!("{what}: {error}"));
    let rate: Rate = rate.parse().map_err(|e| bad("rate", e))?;
    let limit: Limit = limit.parse().map_err(|e| bad("limit", e))?;
    let config = config_from_settings(aqm, &settings).map_err(|e| PyValueError::new_err(e.to_string()))?;
    let told = py.detach(|| -> PyResult<Told> {
        let mut arrivals = read::open(Path::new(trace)).map_err(|e| trace_error(trace, &e.into()))?;
        let mut rows = csv.map(Rows::new).transpose()?;
        let each = |packet: &Record| {
            if let Some(rows) = &mut rows {
                rows.row(packet);
            }
        };
        let summary = replay_each(&mut arrivals, &config, LinkFacts { rate, limit }, seed, each)
            .map_err(|e| trace_error(trace, &e))?;
        if let Some(rows) = rows {
            rows.finish()?;
        }
        Ok(Told { summary, notes: arrivals.notes() })
    })?;
    convert::json(&told)
}

/// Gives the congestion control `cc` the events of the file `script`; writes a row of CSV after each to `csv`.
#[pyfunction]
pub(crate) fn replay_control(py: Python<'_>, script: &str, cc: &str, csv: Py<PyAny>) -> PyResult<u64> {
    py.detach(|| -> PyResult<u64> {
        let told = |error: ReadError| TraceError::new_err(format!("{script}: {error}"));
        let open = |source| ReadError::Open { path: script.to_owned(), source };
        let events = std::fs::File::open(script).map_err(open).map_err(|e| TraceError::new_err(e.to_string()))?;
        let mut replay = control::Replay::new(events, cc).map_err(|e| PyValueError::new_err(e.to_string()))?;
        let mut out = BufWriter::with_capacity(1 << 18, PyFile(csv));
        writeln!(out, "{}", control::COLUMNS)?;
        let mut rows = 0;
        while let Some(row) = replay.next_row().map_err(told)? {
            writeln!(out, "{row}")?;
            rows += 1;
        }
        out.flush()?;
        Ok(rows)
    })
}

fn trace_error(trace: &str, error: &ReplayError) -> PyErr {
    match error {
        ReplayError::Broken { .. } => BrokenInvariant::new_err(error.to_string()),
        _ => TraceError::new_err(format!("{trace}: {error}")),
    }
}

/// Rows of CSV for a Python file; the first failure ends the writing and is told at the end.
struct Rows {
    out: BufWriter<PyFile>,
    next_id: u64,
    failed: Option<io::Error>,
}

impl Rows {
    fn new(file: Py<PyAny>) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(1 << 18, PyFile(file));
        writeln!(out, "{COLUMNS}")?;
        Ok(Self { out, next_id: 0, failed: None })
    }

    fn row(&mut self, packet: &Record) {
        if self.failed.is_none() {
            self.failed = packet.write_csv(self.next_id, &mut self.out).err();
        }
        self.next_id += 1;
    }

    fn finish(mut self) -> PyResult<()> {
        match self.failed.take() {
            Some(error) => Err(error.into()),
            None => Ok(self.out.flush()?),
        }
    }
}

/// A binary file object of Python.
struct PyFile(Py<PyAny>);

impl Write for PyFile {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        Python::attach(|py| {
            py.check_signals()?;
            self.0.call_method1(py, "write", (PyBytes::new(py, data),))
        })?;
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Python::attach(|py| self.0.call_method0(py, "flush"))?;
        Ok(())
    }
}
