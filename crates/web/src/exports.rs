//! The functions that WebAssembly exports. A page calls them with numbers only: it writes texts to the place that
//! `input` returns, and reads answers from the place that `output` names.
//!
//! Each function with an answer returns 0 and leaves the answer as a text, or 1 and leaves a mistake as JSON. Runs are
//! known by numbers which the page chooses. Own code instead of wasm-bindgen: there are few functions, and the module
//! needs no second program that has to have exactly the version of a library.

// The only unsafe thing is that an exported name could be that of another function. No pointer is read here: the page
// writes into a buffer and reads from one that this file owns.
#![allow(unsafe_code)]

use crate::session::{Mistake, Session};
use crate::{edit, packets};
use penstock_core::units::{Instant, Span};
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::collections::BTreeMap;

#[derive(Default)]
struct State {
    input: Vec<u8>,
    output: Vec<u8>,
    sessions: BTreeMap<u32, Session>,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

type Answer = Result<String, Mistake>;

/// Runs `work` with what the page has written, and leaves its answer for the page.
fn answer(work: impl FnOnce(&mut BTreeMap<u32, Session>, &str) -> Answer) -> u32 {
    STATE.with_borrow_mut(|state| {
        let input = std::mem::take(&mut state.input);
        let answer = work(&mut state.sessions, &String::from_utf8_lossy(&input));
        let failed = answer.is_err();
        state.output = answer.unwrap_or_else(|mistake| json(&mistake)).into_bytes();
        failed.into()
    })
}

fn json<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

fn mistake(text: String) -> Mistake {
    Mistake { line: 0, column: 0, text }
}

fn with_session(number: u32, work: impl FnOnce(&mut Session, &str) -> Answer) -> u32 {
    answer(|sessions, input| match sessions.get_mut(&number) {
        Some(session) => work(session, input),
        None => Err(mistake(format!("there is no run {number}"))),
    })
}

/// Makes room for an input of this many bytes; returns where.
#[unsafe(no_mangle)]
pub extern "C" fn input(bytes: usize) -> *mut u8 {
    STATE.with_borrow_mut(|state| {
        state.input = vec![0; bytes];
        state.input.as_mut_ptr()
    })
}

/// Returns where the answer is.
#[unsafe(no_mangle)]
pub extern "C" fn output() -> *const u8 {
    STATE.with_borrow(|state| state.output.as_ptr())
}

/// Returns the number of bytes of the answer.
#[unsafe(no_mangle)]
pub extern "C" fn output_bytes() -> usize {
    STATE.with_borrow(|state| state.output.len())
}

/// Keeps the message of a panic as the answer, before the module stops.
#[unsafe(no_mangle)]
pub extern "C" fn begin() {
    std::panic::set_hook(Box::new(|info| {
        let text = info.to_string();
        STATE.with(|state| {
            if let Ok(mut state) = state.try_borrow_mut() {
                state.output = text.into_bytes();
            }
        });
    }));
}

/// Opens the scenario in the input as the run `number`, with this simulated time between samples; answers with its
/// description.
#[unsafe(no_mangle)]
pub extern "C" fn open(number: u32, interval_s: f64) -> u32 {
    answer(|sessions, text| {
        let session = Session::open(text, Span::from_secs_f64(interval_s))?;
        let description = json(&session.describe());
        sessions.insert(number, session);
        Ok(description)
    })
}

/// Forgets a run.
#[unsafe(no_mangle)]
pub extern "C" fn close(number: u32) {
    STATE.with_borrow_mut(|state| drop(state.sessions.remove(&number)));
}

/// Simulates at most `seconds` more with samples; answers `true` when the run is over, else `false`.
#[unsafe(no_mangle)]
pub extern "C" fn advance(number: u32, seconds: f64) -> u32 {
    with_session(number, |session, _| {
        session.samples().clear();
        session.advance(Span::from_secs_f64(seconds)).map(|over| over.to_string())
    })
}

/// Simulates at most `seconds` more without samples; answers `true` when the run is over, else `false`.
#[unsafe(no_mangle)]
pub extern "C" fn skip(number: u32, seconds: f64) -> u32 {
    with_session(number, |session, _| session.skip(Span::from_secs_f64(seconds)).map(|over| over.to_string()))
}

/// Returns where the samples of the last `advance` are: rows of 32-bit numbers.
#[unsafe(no_mangle)]
pub extern "C" fn rows(number: u32) -> *const f32 {
    STATE.with_borrow_mut(|state| {
        state.sessions.get_mut(&number).map_or(std::ptr::null(), |s| s.samples().rows().as_ptr())
    })
}

/// Returns how many numbers there are in these samples.
#[unsafe(no_mangle)]
pub extern "C" fn rows_len(number: u32) -> usize {
    STATE.with_borrow_mut(|state| state.sessions.get_mut(&number).map_or(0, |s| s.samples().rows().len()))
}

/// Returns how many numbers a row has.
#[unsafe(no_mangle)]
pub extern "C" fn width(number: u32) -> usize {
    STATE.with_borrow_mut(|state| state.sessions.get_mut(&number).map_or(0, |s| s.samples().width()))
}

/// Returns the simulated time of a run in seconds.
#[unsafe(no_mangle)]
pub extern "C" fn now(number: u32) -> f64 {
    STATE.with_borrow_mut(|state| state.sessions.get_mut(&number).map_or(0.0, |s| s.simulation().now().as_secs_f64()))
}

/// What the page writes for `change`.
#[derive(Deserialize)]
struct ChangeInput {
    link: String,
    keys: String,
}

/// Changes a link while the run goes on; answers with the entry of `[[changes]]`.
#[unsafe(no_mangle)]
pub extern "C" fn change(number: u32) -> u32 {
    with_session(number, |session, input| {
        let wanted: ChangeInput = parse(input)?;
        session.change(&wanted.link, &wanted.keys)
    })
}

fn parse<'de, T: Deserialize<'de>>(input: &'de str) -> Result<T, Mistake> {
    serde_json::from_str(input).map_err(|error| mistake(error.to_string()))
}

/// Answers with the results of a run up to now as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn summary(number: u32) -> u32 {
    with_session(number, |session, _| Ok(session.summary()))
}

/// Answers with the packets of the scenario in the input which leave its queues from `from_s` on for `length_s`.
#[unsafe(no_mangle)]
pub extern "C" fn packets_of(from_s: f64, length_s: f64) -> u32 {
    let from = Instant::ZERO + Span::from_secs_f64(from_s);
    answer(|_, text| packets::packets(text, from, Span::from_secs_f64(length_s)))
}

/// What the page writes for `edit_text`: a literal for one key, or all keys of a table.
#[derive(Deserialize)]
struct EditInput {
    text: String,
    path: Vec<String>,
    literal: Option<String>,
    #[serde(default)]
    table: Vec<(String, String)>,
}

/// Sets a value in the text of a scenario; answers with the new text.
#[unsafe(no_mangle)]
pub extern "C" fn edit_text() -> u32 {
    answer(|_, input| {
        let wanted: EditInput = parse(input)?;
        let path: Vec<&str> = wanted.path.iter().map(String::as_str).collect();
        let pairs: Vec<_> = wanted.table.iter().map(|(key, literal)| (key.as_str(), literal.as_str())).collect();
        match &wanted.literal {
            Some(literal) => edit::set(&wanted.text, &path, literal),
            None => edit::set_table(&wanted.text, &path, &pairs),
        }
    })
}

/// Answers with every discipline and every congestion control with its parameters, as JSON.
#[unsafe(no_mangle)]
pub extern "C" fn entries() -> u32 {
    answer(|_, _| Ok(json(&penstock_core::registry::all_entries())))
}
