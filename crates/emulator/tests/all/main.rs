//! The emulator between namespaces, with real packets. Where that is not possible, the tests skip and say why.

mod answers;
mod capture;
mod faults;
mod impaired;
mod lab;
mod namespaces;
mod options;
mod plans;
mod ports;
mod wires;
