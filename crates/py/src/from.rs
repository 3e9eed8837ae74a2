//! The files of other tools as the link of a scenario.

use crate::{ScenarioError, convert};
use penstock_grammar::from::{Given, read};
use pyo3::prelude::*;
use serde_json::json;

/// Reads files, each a name and its bytes.
///
/// Returns as JSON what was recognised, the tables of the link, and what has no counterpart, also as a text.
#[pyfunction]
#[pyo3(name = "link_from")]
pub(crate) fn link(files: Vec<(String, Vec<u8>)>) -> PyResult<String> {
    let given: Vec<Given<'_>> = files.iter().map(|(name, bytes)| Given { name, bytes }).collect();
    let described = read(&given).map_err(|mistake| ScenarioError::new_err(mistake.to_string()))?;
    let listed: Vec<String> = described.scenario_notes().iter().map(ToString::to_string).collect();
    convert::json(&json!({ "format": described.format.to_string(), "text": described.link(), "listed": listed }))
}
