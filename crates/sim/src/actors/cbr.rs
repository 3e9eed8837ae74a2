//! Datagrams at a constant rate, all the time or during on-times.

use penstock_core::units::{Bytes, Rate, Span};

/// UDP at a constant rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Cbr {
    /// Rate of the IP packets.
    pub rate: Rate,
    /// Payload of the packets: one size, or several.
    pub packet_size: Vec<Bytes>,
    /// How often each of these sizes is sent, in proportion to the others.
    pub packet_weights: Vec<f64>,
}

/// UDP at a constant rate during exponential on-times.
#[derive(Debug, Clone, PartialEq)]
pub struct OnOff {
    /// What is sent during an on-time.
    pub on: Cbr,
    /// Mean of on-times.
    pub mean_on: Span,
    /// Mean of off-times.
    pub mean_off: Span,
}
