//! Packets and segments for tests of disciplines. Other crates get them with the feature `testing`.

use crate::packet::{Ecn, FlowId, NoTcp, Packet, TcpFlags, TcpView};
use crate::units::Bytes;

/// A packet that can be told from others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Numbered {
    /// What tells it from the others.
    pub number: u64,
    /// The index of its flow.
    pub flow: u32,
    /// Its size on the link, in bytes.
    pub size: u64,
    /// Its ECN field.
    pub ecn: Ecn,
}

impl Numbered {
    /// Makes a packet that is not capable of ECN.
    pub fn new(number: u64, flow: u32, size: u64) -> Self {
        Self { number, flow, size, ecn: Ecn::NotEct }
    }

    /// Makes the same packet with another ECN field.
    pub fn with_ecn(self, ecn: Ecn) -> Self {
        Self { ecn, ..self }
    }
}

impl Packet for Numbered {
    type Tcp = NoTcp;

    fn size(&self) -> Bytes {
        Bytes::new(self.size)
    }
    fn flow(&self) -> FlowId {
        FlowId(self.flow)
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark_ce(&mut self) {
        assert!(self.ecn.is_capable(), "a packet that is not ECN-capable was marked");
        self.ecn = Ecn::Ce;
    }
    fn tcp(&mut self) -> Option<&mut NoTcp> {
        None
    }
}

/// A TCP segment each of whose fields a test can set. Without options unless it has some.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// The index of its flow.
    pub flow: u32,
    /// Its flags.
    pub flags: TcpFlags,
    /// Its sequence number.
    pub seq: u32,
    /// What it acknowledges.
    pub ack: u32,
    /// The length of its payload, in bytes.
    pub len: u32,
    /// Its window field, unscaled.
    pub window: u16,
    /// Its window scale option.
    pub scale: Option<u8>,
    /// Its option of the largest segment, in bytes.
    pub mss: Option<u16>,
    /// Its timestamps option: value and echo.
    pub ts: Option<(u32, u32)>,
}

impl Segment {
    /// Makes a segment without payload and options, with the largest window.
    pub fn new(flow: u32, flags: TcpFlags, seq: u32, ack: u32) -> Self {
        Self { flow, flags, seq, ack, len: 0, window: u16::MAX, scale: None, mss: None, ts: None }
    }
}

impl TcpView for Segment {
    fn flow(&self) -> FlowId {
        FlowId(self.flow)
    }
    fn flags(&self) -> TcpFlags {
        self.flags
    }
    fn seq(&self) -> u32 {
        self.seq
    }
    fn ack(&self) -> u32 {
        self.ack
    }
    fn payload_len(&self) -> u32 {
        self.len
    }
    fn window(&self) -> u16 {
        self.window
    }
    fn set_window(&mut self, window: u16) {
        self.window = window;
    }
    fn window_scale(&self) -> Option<u8> {
        self.scale
    }
    fn mss(&self) -> Option<u16> {
        self.mss
    }
    fn timestamps(&self) -> Option<(u32, u32)> {
        self.ts
    }
}
