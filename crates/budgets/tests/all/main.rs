//! Sessions over real sockets. `limit` is a program of its own: it moves its process into a control group.

mod attacks;
mod lab;
mod nodes;
mod sessions;
mod still;
