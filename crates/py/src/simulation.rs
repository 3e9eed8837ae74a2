//! A run, driven from Python in steps so that it can show progress and be interrupted.

use crate::{BrokenInvariant, ScenarioError, convert};
use penstock_core::units::Span;
use penstock_sim::scenario::Scenario;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One run of one scenario.
#[pyclass(frozen, module = "penstock._penstock")]
pub(crate) struct Simulation {
    resolved: String,
    seed: u64,
    run: Mutex<penstock_sim::Simulation>,
}

impl Simulation {
    fn run(&self) -> MutexGuard<'_, penstock_sim::Simulation> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn capture(run: &mut penstock_sim::Simulation, scenario: &Scenario, path: &Path) -> io::Result<()> {
    let out = Box::new(BufWriter::new(File::create(path)?));
    match path.extension().is_some_and(|ending| ending == "csv") {
        true => run.capture_csv_to(out, scenario),
        false => run.capture_to(out, scenario),
    }
}

fn unwritable(path: &Path, error: &io::Error) -> String {
    format!("{}: cannot be written: {error}", path.display())
}

#[pymethods]
impl Simulation {
    /// Reads a scenario; `file` is the name used in messages, `seed` replaces the scenario's, `pcapng` is a file for
    /// the packets of the bottlenecks, which are written as CSV if its name ends in `.csv`.
    #[new]
    #[pyo3(signature = (text, file, seed=None, pcapng=None))]
    fn new(py: Python<'_>, text: &str, file: &str, seed: Option<u64>, pcapng: Option<PathBuf>) -> PyResult<Self> {
        let mut scenario = Scenario::parse(text, file).map_err(|d| ScenarioError::new_err(d.to_string()))?;
        if let Some(seed) = seed {
            scenario.seed = seed;
        }
        let mut run = py.detach(|| penstock_sim::Simulation::new(&scenario));
        if let Some(path) = pcapng {
            capture(&mut run, &scenario, &path).map_err(|error| ScenarioError::new_err(unwritable(&path, &error)))?;
        }
        Ok(Self { resolved: scenario.resolved(), seed: scenario.seed, run: Mutex::new(run) })
    }

    /// Simulates up to `seconds` more; true when the run is over. Other Python threads run meanwhile.
    fn advance(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        py.detach(|| {
            let mut run = self.run();
            let over = run
                .advance(Span::from_secs_f64(seconds))
                .map_err(|broken| BrokenInvariant::new_err(broken.to_string()))?;
            if over {
                run.finish_capture()?;
            }
            Ok(over)
        })
    }

    /// Simulated time so far.
    #[getter]
    fn now_s(&self) -> f64 {
        self.run().now().as_secs_f64()
    }

    /// Simulated time at the end of the run.
    #[getter]
    fn duration_s(&self) -> f64 {
        self.run().duration().as_secs_f64()
    }

    /// The seed in use.
    #[getter]
    fn seed(&self) -> u64 {
        self.seed
    }

    /// The scenario with every default written out, as TOML.
    fn resolved(&self) -> &str {
        &self.resolved
    }

    /// What the run measured, as JSON; the same bytes for the same scenario and seed.
    fn summary(&self) -> PyResult<String> {
        convert::json(&self.run().summary())
    }

    /// `{table: {column: (dtype, little-endian bytes)}}`.
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        convert::tables(py, &self.run().tables())
    }
}
