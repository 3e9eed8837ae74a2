//! One end of a connection of a hosted stack, for hosts with real sockets.

use crate::own::PyLibrary;
use penstock_core::foreign::Library;
use penstock_core::packet::Ecn;
use penstock_core::stack::{Setup, Stack as Hosted};
use penstock_core::units::Instant;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One end of a connection. All times are in nanoseconds since the begin of the run.
#[pyclass(frozen, module = "penstock._penstock")]
pub(crate) struct Stack {
    end: Mutex<Box<dyn Hosted>>,
    version: String,
}

impl Stack {
    fn end(&self) -> MutexGuard<'_, Box<dyn Hosted>> {
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Stack {
    /// Makes an end of connection `number` of the stack `name`; `seed` is the same at the other end.
    #[new]
    #[pyo3(signature = (name, server, number, seed, library=None))]
    fn new(name: &str, server: bool, number: u32, seed: u64, library: Option<Py<PyAny>>) -> PyResult<Self> {
        let refused = |why: String| PyValueError::new_err(format!("{name}: {why}"));
        let found = PyLibrary::new(library).stack(name).ok_or_else(|| refused("there is no such stack".into()))?;
        let found = found.map_err(|error| refused(error.to_string()))?;
        let mut whole = [0; 32];
        whole[..8].copy_from_slice(&seed.to_le_bytes());
        whole[8..12].copy_from_slice(&number.to_le_bytes());
        let [client, listens] = found.make().make(&Setup { number, seed: whole }).map_err(refused)?;
        Ok(Self { end: Mutex::new(if server { listens } else { client }), version: found.make().version() })
    }

    /// Name and version of the stack.
    #[getter]
    fn version(&self) -> &str {
        &self.version
    }

    /// Takes a datagram with its ECN codepoint.
    fn receive(&self, datagram: &[u8], ecn: u8, now_ns: u64) {
        self.end().receive(datagram, Ecn::from_bits(ecn), Instant::from_nanos(now_ns));
    }

    /// Returns the next datagram to be sent and its ECN codepoint; `None` if there is none.
    fn transmit<'py>(&self, py: Python<'py>, now_ns: u64) -> Option<(Bound<'py, PyBytes>, u8)> {
        let mut datagram = Vec::new();
        let ecn = self.end().transmit(&mut datagram, Instant::from_nanos(now_ns))?;
        Some((PyBytes::new(py, &datagram), ecn as u8))
    }

    /// Returns when the end wants to be woken; `None` if it waits for a datagram.
    fn deadline(&self) -> Option<u64> {
        self.end().deadline().map(Instant::as_nanos)
    }

    /// Lets the end act because its deadline has come.
    fn wake(&self, now_ns: u64) {
        self.end().wake(Instant::from_nanos(now_ns));
    }

    /// Offers bytes to be sent; returns how many the end took.
    fn write(&self, count: u64, now_ns: u64) -> u64 {
        self.end().write(count, Instant::from_nanos(now_ns))
    }

    /// Tells that all bytes are written.
    fn finish(&self, now_ns: u64) {
        self.end().finish(Instant::from_nanos(now_ns));
    }

    /// Returns the number of bytes that arrived in order since the last call.
    fn read(&self, now_ns: u64) -> u64 {
        self.end().read(Instant::from_nanos(now_ns))
    }

    /// Closes the connection.
    fn close(&self, now_ns: u64) {
        self.end().close(Instant::from_nanos(now_ns));
    }

    /// Returns whether it is connected, its window in bytes, its smoothed round trip time in seconds, and the number of
    /// datagrams that it believes lost.
    fn figures(&self) -> (bool, u64, Option<f64>, u64) {
        let figures = self.end().figures();
        let round_trip = figures.round_trip.map(|span| span.as_secs_f64());
        (figures.connected, figures.window, round_trip, figures.lost)
    }

    /// Returns why the connection ended or the stack failed; `None` if neither.
    fn ended(&self) -> Option<String> {
        let end = self.end();
        end.failure().or_else(|| end.ended()).map(str::to_owned)
    }
}
