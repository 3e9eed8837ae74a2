//! Packets and segments for tests of disciplines. Other crates use them with the feature `testing`.

use crate::packet::{Ecn, FlowId, NoTcp, Packet, TcpFlags, TcpView};
use crate::units::Bytes;

/// A packet with a number by which a test identifies it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Numbered {
    /// The number that identifies the packet.
    pub number: u64,
    /// The index of the packet's flow.
    pub flow: u32,
    /// The size of the packet on the link, in bytes.
    pub size: u64,
    /// The ECN field of the IP header.
    pub ecn: Ecn,
}

impl Numbered {
    /// Creates a packet that is not ECN-capable.
    pub fn new(number: u64, flow: u32, size: u64) -> Self {
        Self { number, flow, size, ecn: Ecn::NotEct }
    }

    /// Replaces the ECN field.
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

/// A TCP segment whose fields a test can set. It has no options unless they are set.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Segment {
    /// The index of the segment's flow.
    pub flow: u32,
    /// The TCP flags.
    pub flags: TcpFlags,
    /// The sequence number.
    pub seq: u32,
    /// The acknowledgment number.
    pub ack: u32,
    /// The length of the payload, in bytes.
    pub len: u32,
    /// The window field, unscaled.
    pub window: u16,
    /// The window scale option, if present.
    pub scale: Option<u8>,
    /// The option of the maximum segment size, in bytes, if present.
    pub mss: Option<u16>,
    /// The timestamps option, if present: TSval and TSecr.
    pub ts: Option<(u32, u32)>,
}

impl Segment {
    /// Creates a segment without payload and options, with the largest window field.
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
