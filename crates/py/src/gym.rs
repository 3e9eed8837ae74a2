//! Episodes of learning agents, many at a time: `python/penstock/gym`.
//!
//! Episodes share nothing, so the threads which advance them take one after another, and the results do not depend on their
//! number. Python lends arrays for what agents give and get; a step keeps its own and allocates nothing.

mod pool;

use crate::{BrokenInvariant, ScenarioError, convert};
use penstock_core::units::Span;
use penstock_sim::agents::{Agent, Episode, Settings, WIDTH, Weights};
use pool::{Pool, Work};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

fn agent(name: &str) -> PyResult<Agent> {
    match name {
        "cc" => Ok(Agent::Control),
        "aqm" => Ok(Agent::Aqm),
        _ => Err(PyValueError::new_err(format!("agent is {name:?}: \"cc\" and \"aqm\" are allowed"))),
    }
}

/// Returns the names of what an agent observes.
#[pyfunction]
pub(crate) fn observed(name: &str) -> PyResult<Vec<&'static str>> {
    Ok(agent(name)?.observed().to_vec())
}

/// One place of an environment, and what its agent gives and gets.
struct Place {
    settings: Settings,
    episode: Option<Episode>,
    /// The scenario and the seed of the episode to begin; `None` to go on.
    next: Option<(String, u64)>,
    action: f32,
    row: [f32; WIDTH],
    reward: f64,
    failure: Option<PyErr>,
}

impl Work for Place {
    fn work(&mut self) {
        self.reward = 0.0;
        match (self.next.take(), &mut self.episode) {
            (Some((text, seed)), _) => match Episode::new(&text, "episode.toml", seed, self.settings) {
                Ok(mut episode) => {
                    episode.begin(&mut self.row);
                    self.episode = Some(episode);
                }
                Err(mistake) => self.failure = Some(ScenarioError::new_err(mistake.to_string())),
            },
            (None, Some(episode)) => match episode.step(self.action, &mut self.row) {
                Ok(reward) => self.reward = reward,
                Err(broken) => self.failure = Some(BrokenInvariant::new_err(broken.to_string())),
            },
            (None, None) => {}
        }
    }

    fn broken(&mut self) {
        self.episode = None;
        self.failure = Some(PyRuntimeError::new_err("the simulator panicked; what it said is above"));
    }
}

/// The places, and what is copied to and from Python.
struct Batch {
    pool: Pool<Place>,
    actions: Vec<f32>,
    rows: Vec<f32>,
    rewards: Vec<f64>,
    over: Vec<u8>,
}

impl Batch {
    /// Lets all places work, and collects what they tell.
    fn round(&mut self, py: Python<'_>) -> PyResult<()> {
        let Self { pool, rows, rewards, over, .. } = self;
        py.detach(|| pool.round());
        let mut failure = None;
        pool.each(|index, place| {
            rows[index * WIDTH..][..WIDTH].copy_from_slice(&place.row);
            rewards[index] = place.reward;
            over[index] = place.episode.as_ref().is_some_and(Episode::is_over).into();
            failure = failure.take().or_else(|| place.failure.take());
        });
        failure.map_or(Ok(()), Err)
    }
}

/// Places for episodes that go on side by side.
#[pyclass(frozen, module = "penstock._penstock")]
pub(crate) struct Environments {
    batch: Mutex<Batch>,
}

/// Checks that an array has as many numbers as are needed.
fn expect<T: Element>(name: &str, buffer: &PyBuffer<T>, count: usize) -> PyResult<()> {
    if buffer.item_count() == count {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("{name}: {} numbers; {count} are needed", buffer.item_count())))
}

/// Copies numbers into an array of Python.
fn lend<T: Element>(py: Python<'_>, name: &str, to: &PyBuffer<T>, from: &[T]) -> PyResult<()> {
    expect(name, to, from.len())?;
    to.copy_from_slice(py, from)
}

impl Environments {
    fn batch(&self) -> MutexGuard<'_, Batch> {
        Python::attach(|py| self.batch.lock_py_attached(py)).unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Environments {
    /// Creates places without episodes. `interval` is the time between two decisions, `weights` are those of throughput, delay
    /// and loss in rewards, `pacing` is the pace of a control in windows per round trip.
    #[new]
    #[pyo3(signature = (count, agent, interval, weights, pacing=None, threads=1))]
    fn new(
        count: usize,
        agent: &str,
        interval: &str,
        weights: (f64, f64, f64),
        pacing: Option<f64>,
        threads: usize,
    ) -> PyResult<Self> {
        let interval: Span = interval.parse().map_err(|e| PyValueError::new_err(format!("interval: {e}")))?;
        let weights = Weights { throughput: weights.0, delay: weights.1, loss: weights.2 };
        let settings = Settings { agent: self::agent(agent)?, interval, weights, pacing };
        let place = |_| Place {
            settings,
            episode: None,
            next: None,
            action: 0.0,
            row: [0.0; WIDTH],
            reward: 0.0,
            failure: None,
        };
        let batch = Batch {
            pool: Pool::new((0..count).map(place).collect(), threads),
            actions: vec![0.0; count],
            rows: vec![0.0; count * WIDTH],
            rewards: vec![0.0; count],
            over: vec![0; count],
        };
        Ok(Self { batch: Mutex::new(batch) })
    }

    /// Takes a number of each agent, and writes what the agents get: their rows, their rewards, and whether their episodes are
    /// over. In an episode that is over nothing happens. In the places of `episodes` (place, scenario and seed), an episode
    /// begins instead; its reward is 0.
    #[pyo3(signature = (actions, observations, rewards, over, episodes=Vec::new()))]
    fn step(
        &self,
        py: Python<'_>,
        actions: PyBuffer<f32>,
        observations: PyBuffer<f32>,
        rewards: PyBuffer<f64>,
        over: PyBuffer<u8>,
        episodes: Vec<(usize, String, u64)>,
    ) -> PyResult<()> {
        let mut guard = self.batch();
        let batch: &mut Batch = &mut guard;
        expect("actions", &actions, batch.actions.len())?;
        actions.copy_to_slice(py, &mut batch.actions)?;
        if let Some(index) = batch.actions.iter().position(|action| !action.is_finite()) {
            let found = batch.actions[index];
            return Err(PyValueError::new_err(format!("action {index} is {found}: it must be a finite number")));
        }
        let Batch { pool, actions, .. } = batch;
        pool.each(|index, place| place.action = actions[index]);
        for (index, text, seed) in episodes {
            let known = pool.one(index, |place| place.next = Some((text, seed)));
            known.ok_or_else(|| PyValueError::new_err(format!("there is no place {index}")))?;
        }
        batch.round(py)?;
        lend(py, "observations", &observations, &batch.rows)?;
        lend(py, "rewards", &rewards, &batch.rewards)?;
        lend(py, "over", &over, &batch.over)
    }

    /// Returns the results of the run of a place so far, as JSON; `None` if it has none.
    fn summary(&self, place: usize) -> PyResult<Option<String>> {
        let told = |place: &mut Place| place.episode.as_ref().map(|episode| episode.simulation().summary());
        let summary = self.batch().pool.one(place, told).flatten();
        summary.as_ref().map(convert::json).transpose()
    }
}
