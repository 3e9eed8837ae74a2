//! The tests of this crate from outside, as one program: it is linked once, and its tests run beside each other. Each file of
//! this folder has its line here (tests/test_dependencies.py).

mod kernel;
mod kernel_controls;
mod nodes;
mod packets;
mod pcapng;
mod read;
mod replay;
mod theory;
