//! A run which Python drives in steps, so that it can show progress and be interrupted.

use crate::own::PyLibrary;
use crate::{BrokenInvariant, ScenarioError, convert};
use penstock_core::impair::{Aggregate, Impairments, Police, Reorder};
use penstock_core::units::{Span, UnitError};
use penstock_sim::TcpTrace;
use penstock_sim::scenario::{Scenario, Way};
use penstock_trace::series::Values;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
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
    library: PyLibrary,
    run: Mutex<Run>,
}

struct Run {
    simulation: penstock_sim::Simulation,
    trace: Option<TcpTrace>,
}

impl Run {
    fn advance(&mut self, by: Span) -> PyResult<bool> {
        let over = match &mut self.trace {
            Some(trace) => trace.advance(&mut self.simulation, by),
            None => self.simulation.advance(by),
        };
        let over = over.map_err(|broken| BrokenInvariant::new_err(broken.to_string()))?;
        if over {
            self.simulation.finish_capture()?;
        }
        Ok(over)
    }
}

impl Simulation {
    fn run(&self) -> MutexGuard<'_, Run> {
        // A run with Python algorithms releases the interpreter while it holds the lock, so whoever waits for the lock
        // must release it too.
        Python::attach(|py| self.run.lock_py_attached(py)).unwrap_or_else(PoisonError::into_inner)
    }
}

fn capture(run: &mut penstock_sim::Simulation, scenario: &Scenario, path: &Path) -> io::Result<()> {
    let out = Box::new(BufWriter::new(File::create(path)?));
    match path.extension().is_some_and(|ending| ending == "csv") {
        true => run.capture_csv_to(out, scenario),
        false => run.capture_to(out, scenario),
    }
}

/// Reads impairments whose parts are texts with units.
fn impairments(
    police: Option<(&str, &str)>,
    aggregate: Option<&str>,
    reorder: Option<(f64, &str)>,
) -> Result<Impairments, String> {
    let bad = |what: &str, error: UnitError| format!("{what}: {error}");
    let mut found = Impairments::default();
    if let Some((rate, burst)) = police {
        let rate = rate.parse().map_err(|e| bad("rate", e))?;
        found.police = Some(Police { rate, burst: burst.parse().map_err(|e| bad("burst", e))? });
    }
    if let Some(interval) = aggregate {
        found.aggregate =
            Some(Aggregate { interval: interval.parse().map_err(|e| bad("interval", e))?, packets: None });
    }
    if let Some((share, by)) = reorder {
        found.reorder = Some(Reorder { share, by: by.parse().map_err(|e| bad("by", e))? });
    }
    Ok(found)
}

fn unwritable(path: &Path, error: &io::Error) -> String {
    format!("{}: cannot be written: {error}", path.display())
}

#[pymethods]
impl Simulation {
    /// Reads a scenario; `file` is the name used in messages, `seed` replaces the scenario's, `pcapng` is a file for
    /// the packets of the bottlenecks, which are written as CSV if its name ends in `.csv`, `library` finds algorithms
    /// that are not in the registry and reads the files that the scenario names.
    #[new]
    #[pyo3(signature = (text, file, seed=None, pcapng=None, library=None))]
    fn new(
        py: Python<'_>,
        text: &str,
        file: &str,
        seed: Option<u64>,
        pcapng: Option<PathBuf>,
        library: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let library = PyLibrary::new(library);
        let mut scenario = Scenario::parse_with(text, file, &library)
            .map_err(|d| library.failure(py).unwrap_or_else(|| ScenarioError::new_err(d.to_string())))?;
        if let Some(seed) = seed {
            scenario.seed = seed;
        }
        let mut simulation = library.run(py, || Ok(penstock_sim::Simulation::new(&scenario)))?;
        if let Some(path) = pcapng {
            capture(&mut simulation, &scenario, &path)
                .map_err(|error| ScenarioError::new_err(unwritable(&path, &error)))?;
        }
        let run = Mutex::new(Run { simulation, trace: None });
        Ok(Self { resolved: scenario.resolved(), seed: scenario.seed, library, run })
    }

    /// Simulates at most `seconds` more; returns true when the run is over. Other Python threads run at the same time.
    fn advance(&self, py: Python<'_>, seconds: f64) -> PyResult<bool> {
        self.library.run(py, || self.run().advance(Span::from_secs_f64(seconds)))
    }

    /// Samples these flows, or the first eight connections if none is named, every `interval` from now on; returns
    /// their numbers.
    fn trace(&self, flows: Vec<u32>, interval: &str) -> PyResult<Vec<u32>> {
        let interval: Span = interval.parse().map_err(|e| PyValueError::new_err(format!("interval: {e}")))?;
        let mut run = self.run();
        let trace =
            TcpTrace::new(&run.simulation, &flows, interval).map_err(|e| PyValueError::new_err(e.to_string()))?;
        let chosen = trace.flows().to_vec();
        run.trace = Some(trace);
        Ok(chosen)
    }

    /// Returns the samples in the form of [`Simulation::tables`], and removes them.
    fn traced<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tables = self.run().trace.take().map(TcpTrace::tables).unwrap_or_default();
        convert::tables(py, &tables)
    }

    /// Returns the state of the congestion control of a flow, field by field; `None` for a flow without a connection that
    /// lasts.
    fn control(&self, flow: usize) -> Option<String> {
        self.run().simulation.control_now(flow)
    }

    /// Changes rate, delay (texts with units) or loss of a link in both directions, from now on; `link` is its index among
    /// those of the scenario.
    #[pyo3(signature = (link, rate=None, delay=None, loss=None))]
    fn steer(&self, link: usize, rate: Option<&str>, delay: Option<&str>, loss: Option<f64>) -> PyResult<()> {
        let bad = |what: &str, error: UnitError| PyValueError::new_err(format!("{what}: {error}"));
        let rate = rate.map(str::parse).transpose().map_err(|e| bad("rate", e))?;
        let delay = delay.map(str::parse).transpose().map_err(|e| bad("delay", e))?;
        let mut run = self.run();
        let now = run.simulation.now();
        run.simulation.steer(link, Way::Both, now, Values { rate, delay, loss });
        Ok(())
    }

    /// Changes what a link does to packets before and behind its queue, from now on and in one direction: it drops those
    /// above the rate and the burst of `police`, releases them in bursts an `aggregate` after the first of each, or delays a
    /// `reorder` of them (a share and a time). What is not given ends.
    #[pyo3(signature = (link, reverse=false, police=None, aggregate=None, reorder=None))]
    fn impair(
        &self,
        link: usize,
        reverse: bool,
        police: Option<(&str, &str)>,
        aggregate: Option<&str>,
        reorder: Option<(f64, &str)>,
    ) -> PyResult<()> {
        let impairments = impairments(police, aggregate, reorder).map_err(PyValueError::new_err)?;
        let done = self.run().simulation.impair(link, reverse, &impairments);
        done.map_err(|mistake| PyValueError::new_err(mistake.message))
    }

    /// Lets the application of a flow have `count` bytes to send from now on, in place of what was not sent yet. Returns
    /// false for a flow without a connection that lasts.
    fn offer(&self, flow: usize, count: u64) -> bool {
        self.run().simulation.supply(flow, count)
    }

    /// Returns the path of each flow from its client to its server: for each link between routers its index among those of
    /// the scenario, and whether the flow crosses it from its second end to its first.
    fn paths(&self) -> Vec<Vec<(usize, bool)>> {
        let run = self.run();
        run.simulation.paths().map(|path| path.iter().map(|step| (step.link, step.reverse)).collect()).collect()
    }

    /// Returns the transfers that each flow is going to begin, asked before the run: for each the seconds before it (since
    /// the begin of the one before for `web`, since its end for `http`), and its size in bytes.
    fn transfers_ahead(&self) -> Vec<Vec<(f64, u64)>> {
        let run = self.run();
        let all = run.simulation.transfers_ahead(run.simulation.duration());
        all.map(|of| of.iter().map(|one| (one.wait.as_secs_f64(), one.size)).collect()).collect()
    }

    /// Simulated time so far, in seconds.
    #[getter]
    fn now_s(&self) -> f64 {
        self.run().simulation.now().as_secs_f64()
    }

    /// Simulated time at the end of the run, in seconds.
    #[getter]
    fn duration_s(&self) -> f64 {
        self.run().simulation.duration().as_secs_f64()
    }

    /// Seed of the run.
    #[getter]
    fn seed(&self) -> u64 {
        self.seed
    }

    /// The scenario with every default written out, as TOML.
    fn resolved(&self) -> &str {
        &self.resolved
    }

    /// Returns the results of the run as JSON: the same bytes for the same scenario and seed.
    fn summary(&self) -> PyResult<String> {
        convert::json(&self.run().simulation.summary())
    }

    /// Returns tables as `{table: {column: (dtype, little-endian bytes)}}`.
    fn tables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        convert::tables(py, &self.run().simulation.tables())
    }
}
