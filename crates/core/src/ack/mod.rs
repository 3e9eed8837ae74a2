//! Elements on the ACK path: they see both directions at a gateway and may edit what passes.

pub mod gate;
pub mod pink;
pub mod qrm;

pub use crate::ack_path::AckPath;
