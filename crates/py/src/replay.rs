//! Replay of recorded arrivals and of scripts of events, for Python.

use crate::own::PyLibrary;
use crate::{BrokenInvariant, TraceError, convert};
use penstock_core::cc::AnyControlConfig;
use penstock_core::cc::c2ml::Form;
use penstock_core::config::LinkFacts;
use penstock_core::key_value::{split_setting, value_of};
use penstock_core::link_layer::LinkLayer;
use penstock_core::registry::AnyConfig;
use penstock_core::rng::Rng;
use penstock_core::settings::{config_from_library, control_from_library};
use penstock_core::units::{Bytes, Instant, Limit, Rate, Span, UnitError};
use penstock_core::wire::End;
use penstock_sim::scenario::LayerKeys;
use penstock_trace::control::{Endpoint, Event, Round, play_rounds};
use penstock_trace::error::{ReadError, ReplayError};
use penstock_trace::notes::Notes;
use penstock_trace::read::Cutting;
use penstock_trace::record::{COLUMNS, Record};
use penstock_trace::replay::{Conditions, replay_under, state_at};
use penstock_trace::summary::Summary;
use penstock_trace::{control, draws, read};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// The greatest offset of a clock; disciplines with timers are stepped through it.
const MAX_OFFSET: Span = Span::from_secs(1_000_000);

/// The results of a replay: the discipline's totals, and what was left out of the trace.
#[derive(serde::Serialize)]
struct Told {
    #[serde(flatten)]
    summary: Summary,
    notes: Notes,
}

/// Replays the trace file `trace` through `aqm` before a link and returns the summary as JSON; `settings` are texts
/// `key=value`. With `csv`, a binary file object, every packet is written to it; `library` finds algorithms that are not in
/// the registry. `nodes` says which end of a flow's first packet is its node: `source`, `destination` or `none`.
/// `clock_offset` is the time of the discipline's clock at the beginning of the trace; `draws` names a file of random
/// numbers, or a generator, in place of the discipline's own stream. `keep` has a byte for each packet of the trace, zero
/// for those that are left out, by the number of its record. `cutting` says how packets are split
/// ([`Cutting::of_bytes`]). `layer` has texts `key=value`: what the link adds to each packet ([`LayerKeys`]).
#[pyfunction]
#[pyo3(signature = (trace, aqm, rate, limit, settings=Vec::new(), seed=1, csv=None, library=None, nodes="none",
                    clock_offset="0s", draws=None, keep=None, layer=Vec::new(), cutting=None))]
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
    library: Option<Py<PyAny>>,
    nodes: &str,
    clock_offset: &str,
    draws: Option<&str>,
    keep: Option<Vec<u8>>,
    layer: Vec<String>,
    cutting: Option<Vec<u8>>,
) -> PyResult<String> {
    let end = end(nodes)?;
    let conditions = Conditions { layer: layer_of(&layer)?, ..conditions(seed, clock_offset, draws)? };
    let bad = |what: &str, error: UnitError| PyValueError::new_err(format!("{what}: {error}"));
    let rate: Rate = rate.parse().map_err(|e| bad("rate", e))?;
    let limit: Limit = limit.parse().map_err(|e| bad("limit", e))?;
    let library = PyLibrary::new(library);
    let config = config(&library, aqm, &settings).map_err(|e| library.failure(py).unwrap_or(e))?;
    let told = library.run(py, || -> PyResult<Told> {
        let mut arrivals = read::open(Path::new(trace)).map_err(|e| trace_error(trace, &e.into()))?;
        if let Some(end) = end {
            arrivals = arrivals.with_nodes(end);
        }
        if let Some(keep) = keep {
            arrivals = arrivals.keeping(keep);
        }
        if let Some(cutting) = cutting {
            arrivals = arrivals.cutting(Cutting::of_bytes(&cutting));
        }
        let mut rows = csv.map(Rows::new).transpose()?;
        let each = |packet: &Record| {
            if let Some(rows) = &mut rows {
                rows.row(packet);
            }
        };
        let summary = replay_under(&mut arrivals, &config, LinkFacts { rate, limit }, &conditions, each)
            .map_err(|e| trace_error(trace, &e))?;
        if let Some(rows) = rows {
            rows.finish()?;
        }
        Ok(Told { summary, notes: arrivals.notes() })
    })?;
    convert::json(&told)
}

fn conditions(seed: u64, clock_offset: &str, source: Option<&str>) -> PyResult<Conditions> {
    let refused = |what: String| PyValueError::new_err(format!("clock offset: {what}"));
    let clock_offset: Span = clock_offset.parse().map_err(|error: UnitError| refused(error.to_string()))?;
    if clock_offset > MAX_OFFSET {
        return Err(refused(format!("{clock_offset} is more than a million seconds")));
    }
    let draws = source.map(draws_of).transpose()?;
    Ok(Conditions { clock_offset, draws, ..Conditions::seeded(seed) })
}

/// Returns the random numbers of a file or of the generator with this name.
fn draws_of(source: &str) -> PyResult<Rng> {
    let told = |error: ReadError| TraceError::new_err(format!("{source}: {error}"));
    if let Some(generator) = draws::generator(source).map_err(told)? {
        return Ok(generator);
    }
    let file = open(source)?;
    draws::read(file).map(Rng::given).map_err(told)
}

fn open(path: &str) -> PyResult<std::fs::File> {
    let failed = |source| TraceError::new_err(ReadError::Open { path: path.to_owned(), source }.to_string());
    std::fs::File::open(path).map_err(failed)
}

fn end(nodes: &str) -> PyResult<Option<End>> {
    match nodes {
        "source" => Ok(Some(End::Source)),
        "destination" => Ok(Some(End::Destination)),
        "none" => Ok(None),
        _ => Err(PyValueError::new_err(format!("nodes: {nodes:?} is none of source, destination, none"))),
    }
}

/// Returns a discipline of the registry or of the library.
pub(crate) fn config(library: &PyLibrary, aqm: &str, settings: &[String]) -> PyResult<AnyConfig> {
    config_from_library(aqm, settings, library).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// Returns a congestion control of the table or of the library.
fn control_config(library: &PyLibrary, cc: &str, settings: &[String]) -> PyResult<AnyControlConfig> {
    control_from_library(cc, settings, library).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// Reads what a link adds from texts `key=value`.
fn layer_of(layer: &[String]) -> PyResult<LinkLayer> {
    LayerKeys::read(layer).map_err(|e| PyValueError::new_err(format!("layer: {}", e.message)))
}

/// Returns what a packet of `size` bytes takes of a link that adds what `layer` says in texts `key=value`.
#[pyfunction]
pub(crate) fn on_wire(layer: Vec<String>, size: u64) -> PyResult<u64> {
    Ok(layer_of(&layer)?.on_wire(Bytes::new(size)).get())
}

/// Replays the trace up to the packet `last` and the time `at_ns`, and returns the state of the discipline then, for people
/// to read. The other arguments are those of [`replay`].
#[pyfunction]
#[pyo3(signature = (trace, aqm, rate, limit, last, at_ns, settings=Vec::new(), seed=1, library=None))]
#[allow(clippy::too_many_arguments, reason = "they are keyword arguments in Python")]
pub(crate) fn replay_state(
    py: Python<'_>,
    trace: &str,
    aqm: &str,
    rate: &str,
    limit: &str,
    last: u64,
    at_ns: u64,
    settings: Vec<String>,
    seed: u64,
    library: Option<Py<PyAny>>,
) -> PyResult<String> {
    let bad = |what: &str, error: UnitError| PyValueError::new_err(format!("{what}: {error}"));
    let link = LinkFacts {
        rate: rate.parse().map_err(|e| bad("rate", e))?,
        limit: limit.parse().map_err(|e| bad("limit", e))?,
    };
    let library = PyLibrary::new(library);
    let config = config(&library, aqm, &settings).map_err(|e| library.failure(py).unwrap_or(e))?;
    library.run(py, || {
        let arrivals = read::open(Path::new(trace)).map_err(|e| trace_error(trace, &e.into()))?;
        state_at(arrivals, &config, link, &Conditions::seeded(seed), last, Instant::from_nanos(at_ns))
            .map_err(|e| trace_error(trace, &e))
    })
}

/// Plays the events of the file `script` to the congestion control `cc`, and writes a row of CSV to `csv` after each
/// event, with the control's own state if `state` is set. `library` finds controls that are not in the registry;
/// `settings` are texts `key=value`: parameters of the control, or of its [`endpoint`].
#[pyfunction]
#[pyo3(signature = (script, cc, csv, library=None, settings=Vec::new(), state=false))]
pub(crate) fn replay_control(
    py: Python<'_>,
    script: &str,
    cc: &str,
    csv: Py<PyAny>,
    library: Option<Py<PyAny>>,
    settings: Vec<String>,
    state: bool,
) -> PyResult<u64> {
    let library = PyLibrary::new(library);
    let (endpoint, settings) = endpoint(&settings)?;
    let control = control_config(&library, cc, &settings).map_err(|e| library.failure(py).unwrap_or(e))?;
    library.run(py, || -> PyResult<u64> {
        let told = |error: ReadError| TraceError::new_err(format!("{script}: {error}"));
        let mut replay = control::Replay::new(open(script)?, &control, &endpoint);
        let mut out = BufWriter::with_capacity(1 << 18, PyFile(csv));
        writeln!(out, "{}{}", control::COLUMNS, if state { ",state" } else { "" })?;
        let mut rows = 0;
        while let Some(row) = replay.next_row().map_err(told)? {
            if state {
                writeln!(out, "{row},\"{}\"", replay.state().replace('"', "\"\""))?;
            } else {
                writeln!(out, "{row}")?;
            }
            rows += 1;
        }
        out.flush()?;
        Ok(rows)
    })
}

/// Gives the congestion control `cc` rounds of ACKs: of each its begin in microseconds, the number of ACKs and the event at
/// its end, or "-". Returns window and threshold in segments at the end of each round; the threshold is `None` if there is
/// none.
#[pyfunction]
#[pyo3(signature = (cc, rtt_us, rounds, library=None, settings=Vec::new()))]
pub(crate) fn replay_rounds(
    py: Python<'_>,
    cc: &str,
    rtt_us: u64,
    rounds: Vec<(u64, u64, String)>,
    library: Option<Py<PyAny>>,
    settings: Vec<String>,
) -> PyResult<Vec<(f64, Option<f64>)>> {
    let library = PyLibrary::new(library);
    let (endpoint, settings) = endpoint(&settings)?;
    let control = control_config(&library, cc, &settings).map_err(|e| library.failure(py).unwrap_or(e))?;
    let rounds: Vec<Round> = rounds
        .into_iter()
        .map(|(t_us, segments, name)| {
            let event = Event::named(&name);
            match name.as_str() {
                "-" | "loss" | "ecn" | "rto" => Ok(Round { t_us, segments, event }),
                _ => Err(PyValueError::new_err(format!("event {name:?}: loss, ecn, rto and - are allowed"))),
            }
        })
        .collect::<PyResult<_>>()?;
    let mss = endpoint.setup.mss.as_f64();
    let found = library
        .run(py, || -> PyResult<_> { Ok(play_rounds(&control, &endpoint, Span::from_micros(rtt_us), rounds)) })?;
    let threshold = |size: Bytes| (size < Bytes::MAX).then(|| size.as_f64() / mss);
    Ok(found.into_iter().map(|(cwnd, ssthresh)| (cwnd.as_f64() / mss, threshold(ssthresh))).collect())
}

/// Takes the settings that are the endpoint's; returns those of the control.
fn endpoint(settings: &[String]) -> PyResult<(Endpoint, Vec<String>)> {
    let refused = |error: String| PyValueError::new_err(error);
    let (mut endpoint, mut others, mut given) = (Endpoint::default(), Vec::new(), Vec::new());
    for text in settings {
        let (key, value) = split_setting(text).map_err(|e| refused(e.to_string()))?;
        match key.as_str() {
            "mss" => endpoint.setup.mss = Bytes::new(number(&key, value.trim_end_matches('B'), 1, 65_000)?),
            "paced" => endpoint.setup.paced = value_of(&value).as_bool().ok_or_else(|| refused(truth(&key, &value)))?,
            "min_rto" => endpoint.min_rto = value.parse().map_err(|e: UnitError| refused(format!("{key}: {e}")))?,
            "c2ml" => endpoint.c2ml = form(&value)?,
            "headers" => endpoint.headers = Bytes::new(number(&key, value.trim_end_matches('B'), 0, 65_000)?),
            "initial_window" | "initial_ssthresh" => given.push((key, value)),
            _ => others.push(text.clone()),
        }
    }
    let mss = endpoint.setup.mss;
    endpoint.setup.initial_window = 10 * mss;
    for (key, value) in given {
        let segments = mss * number(&key, &value, 1, 1 << 20)?;
        match key.as_str() {
            "initial_window" => endpoint.setup.initial_window = segments,
            _ => endpoint.setup.initial_ssthresh = segments,
        }
    }
    Ok((endpoint, others))
}

fn form(value: &str) -> PyResult<Form> {
    match value {
        "off" => Ok(Form::Off),
        "on" => Ok(Form::On),
        "literal" => Ok(Form::Literal),
        _ => Err(PyValueError::new_err(format!("c2ml is {value:?}; off, on and literal are allowed"))),
    }
}

fn truth(key: &str, value: &str) -> String {
    format!("{key} is {value:?}; true and false are allowed")
}

fn number(key: &str, value: &str, low: u64, high: u64) -> PyResult<u64> {
    value.parse().ok().filter(|found| (low..=high).contains(found)).ok_or_else(|| {
        PyValueError::new_err(format!("{key} is {value:?}; whole numbers from {low} to {high} are allowed"))
    })
}

pub(crate) fn trace_error(trace: &str, error: &ReplayError) -> PyErr {
    match error {
        ReplayError::Broken { .. } => BrokenInvariant::new_err(error.to_string()),
        _ => TraceError::new_err(format!("{trace}: {error}")),
    }
}

/// Writes rows of CSV to a Python file; after the first error nothing more is written, and the error is returned at the
/// end.
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

/// A binary file object of Python as a writer.
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
