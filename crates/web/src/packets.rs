//! What became of single packets: the run is simulated again up to a time, and from there on each packet at the measured
//! queues is written down.
//!
//! A run that nobody asks about packets pays nothing. A run can be repeated because it is the same for the same scenario
//! and seed.

use crate::session::{Mistake, Session};
use penstock_core::units::{Instant, Span};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// A text which a capture writes and somebody else reads.
#[derive(Debug, Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the packets which leave the measured queues of a scenario from `from` on for `length`, sent or dropped, as
/// CSV with the columns of [`penstock_sim::capture::CSV_HEADER`].
///
/// # Errors
/// Returns the mistake in the text, or a violated invariant.
pub fn packets(text: &str, from: Instant, length: Span) -> Result<String, Mistake> {
    let mut session = Session::open(text, Span::from_secs(1))?;
    session.skip(from.since(Instant::ZERO))?;
    let out = Shared::default();
    let scenario = session.scenario().clone();
    let simulation = session.simulation();
    let written = simulation.capture_csv_to(Box::new(out.clone()), &scenario).and_then(|()| {
        let _ = simulation.advance(length); // a violated invariant ends the run that is watched, too
        simulation.finish_capture()
    });
    written.map_err(|error| Mistake { line: 0, column: 0, text: error.to_string() })?;
    let bytes = out.0.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
