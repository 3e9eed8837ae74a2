//! Bottlenecks, classifier and table together, in virtual time.

mod classifier;
mod hostile;
mod lab;
mod nodes;
mod parity;
mod stations;
mod virtual_time;
