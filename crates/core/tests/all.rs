//! The tests of this crate from outside, as one program: it is linked once, and its tests run beside each other. Each file of
//! this folder has its line here (tests/test_dependencies.py).

mod bounds;
mod bytes;
mod cake_kernel;
mod coop;
mod every_discipline;
mod facts;
mod golden;
mod modular;
mod schedulers;
