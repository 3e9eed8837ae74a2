//! TCP segments of both directions through a discipline, for comparison with its readable twin.

use crate::own::PyLibrary;
use crate::replay::{config, trace_error};
use penstock_core::config::LinkFacts;
use penstock_core::fact::Fact;
use penstock_core::packet::{Ecn, FlowId, NodeId, PlainSegment, TcpFlags, Timestamps};
use penstock_core::units::{Bytes, Instant, Limit, Rate, UnitError};
use penstock_trace::replay::segments::{Seen, Step, play};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// A segment, as any object with these attributes; the window scale and the options are `None` without the option.
#[derive(FromPyObject)]
pub(crate) struct Shown {
    t_ns: u64,
    inbound: bool,
    flow: u32,
    flags: u8,
    seq: u32,
    ack: u32,
    payload: u32,
    window: u16,
    scale: Option<u8>,
    mss: Option<u16>,
    timestamps: Option<(u32, u32)>,
    size: u64,
    ecn: u8,
}

/// A segment, or a fact as (time in ns, name, index, value).
#[derive(FromPyObject)]
pub(crate) enum Given {
    #[pyo3(transparent)]
    Shown(Shown),
    Told(u64, String, u32, u64),
}

/// The window with which a segment left, and for an outbound one its fate, the time of that in ns and its ECN field.
type Answer = (u16, Option<(&'static str, u64, u8)>);

impl Given {
    fn step(&self) -> PyResult<(Instant, Step)> {
        match self {
            Self::Shown(shown) => Ok((Instant::from_nanos(shown.t_ns), shown.step()?)),
            Self::Told(t_ns, name, index, value) => {
                Ok((Instant::from_nanos(*t_ns), Step::Told(fact(name, *index, *value)?)))
            }
        }
    }
}

impl Shown {
    fn step(&self) -> PyResult<Step> {
        let segment = PlainSegment {
            flow: FlowId(self.flow),
            flags: TcpFlags(self.flags),
            seq: self.seq,
            ack: self.ack,
            payload_len: self.payload,
            window: self.window,
            window_scale: self.scale,
            mss: self.mss,
            timestamps: self.timestamps.map(|(val, ecr)| Timestamps { val, ecr }),
        };
        if self.inbound {
            return Ok(Step::Inbound(segment));
        }
        if self.ecn > 3 {
            return Err(PyValueError::new_err(format!("ecn is {}; 0 to 3 are allowed", self.ecn)));
        }
        Ok(Step::Outbound(segment, Bytes::new(self.size), Ecn::from_bits(self.ecn)))
    }
}

fn fact(name: &str, index: u32, value: u64) -> PyResult<Fact> {
    match name {
        "owner" => Ok(Fact::Owner { flow: FlowId(index), node: NodeId(value as u32) }),
        "budget" => Ok(Fact::Budget { node: NodeId(index), budget: (value > 0).then(|| Rate::from_bps(value)) }),
        "rest" => Ok(Fact::Rest(Rate::from_bps(value))),
        "rate" if value > 0 => Ok(Fact::Rate(Rate::from_bps(value))),
        "gone" => Ok(Fact::Gone(NodeId(index))),
        "flow-gone" => Ok(Fact::FlowGone(FlowId(index))),
        "channel" if value <= 1_000_000 => Ok(Fact::Channel { station: index, loss: value as f64 / 1e6 }),
        _ => Err(PyValueError::new_err(format!(
            "fact {name:?} with {value}: owner, budget, rest, rate, gone, flow-gone, channel (to 1000000) are allowed"
        ))),
    }
}

/// Plays TCP segments of both directions, in the order of time, through `aqm` before a link. Returns for each segment the
/// window with which it left, with the fate, its time and the ECN field if it is outbound, and the report of the
/// discipline as JSON, if it has one. Facts are ("owner", flow, node), ("budget", node, bit/s or 0 for none),
/// ("rest", 0, bit/s), ("rate", 0, bit/s) of the link or not, ("gone", node, 0), ("flow-gone", flow, 0) and
/// ("channel", station, lost packets of a million), each after its time. The other arguments are those of `replay`.
#[pyfunction]
#[pyo3(signature = (steps, aqm, rate, limit, settings=Vec::new(), seed=1, library=None))]
#[allow(clippy::too_many_arguments, reason = "they are keyword arguments in Python")]
pub(crate) fn replay_segments(
    py: Python<'_>,
    steps: Vec<Given>,
    aqm: &str,
    rate: &str,
    limit: &str,
    settings: Vec<String>,
    seed: u64,
    library: Option<Py<PyAny>>,
) -> PyResult<(Vec<Answer>, Option<String>)> {
    let bad = |what: &str, error: UnitError| PyValueError::new_err(format!("{what}: {error}"));
    let rate: Rate = rate.parse().map_err(|e| bad("rate", e))?;
    let limit: Limit = limit.parse().map_err(|e| bad("limit", e))?;
    let steps = steps.iter().map(Given::step).collect::<PyResult<Vec<_>>>()?;
    let library = PyLibrary::new(library);
    let config = config(&library, aqm, &settings).map_err(|e| library.failure(py).unwrap_or(e))?;
    let (seen, report) = library
        .run(py, || play(steps, &config, LinkFacts { rate, limit }, seed).map_err(|e| trace_error("segments", &e)))?;
    let answer = |Seen { window, fate }: Seen| {
        (window, fate.map(|record| (record.fate.name(), record.t_fate.as_nanos(), record.ecn_out as u8)))
    };
    Ok((seen.into_iter().map(answer).collect(), report))
}
