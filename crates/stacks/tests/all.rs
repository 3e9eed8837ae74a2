//! The tests of this crate from outside, as one program. Each file of this folder has its line here.

mod bad;
mod children;
mod quinn;
mod readme;
