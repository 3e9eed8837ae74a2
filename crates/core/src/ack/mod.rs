//! Elements on the ACK path: they see the segments of both directions at a gateway and may edit them.

pub mod foreign;
pub mod gate;
pub mod pink;
pub mod qrm;

pub use crate::ack_path::AckPath;
