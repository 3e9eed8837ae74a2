//! Sessions over real sockets. `limit` is a program of its own: it moves its process into a control group.

mod attacks;
mod file;
mod frames;
mod kept;
mod lab;
mod nodes;
mod options;
mod refused;
mod served;
mod sessions;
mod standby;
mod still;
