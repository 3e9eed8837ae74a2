//! What the rate of the link is, and where the bottleneck is.
//!
//! The rates of the file hold, unless there is a source: a [timetable], a [script] of the modem, or the
//! [estimator](penstock_core::estimate). [Round trips](trips) tell where the bottleneck is. When a source is silent or wrong, the last good rates hold, and after `plain_after` packets pass
//! as if there were no shaper; the status says so. A rate that somebody sets holds until it is rolled back.

pub mod script;
pub mod source;
pub mod steer;
pub mod timetable;
pub mod trips;
pub mod verdict;
