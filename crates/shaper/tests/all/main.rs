//! Bottlenecks, classifier and table together, in virtual time.

mod announced;
mod classifier;
mod hostile;
mod impaired;
mod lab;
mod layers;
mod measures;
mod nodes;
mod parity;
mod stations;
mod talkers;
mod virtual_time;
