//! One side of a simulated TCP connection for Python, which drives it segment by segment.

use crate::convert;
use penstock_core::packet::{AccEcn, ByteCounters, Ecn, Packet, TcpFlags, Timestamps};
use penstock_core::units::Instant;
use penstock_sim::segment::{Segment, SynOptions};
use penstock_sim::tcp::{Role, State, TcpConfig};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// MSS, window scale and SACK permission of a SYN.
type Greeting = (u16, Option<u8>, bool);
/// Whether the counter of ECT(1) is the first, and the counters in their order.
type Counters = (bool, Vec<u32>);
/// A segment: flags with AE as bit 8, number, payload, acknowledgment, window, ECN field, options of a SYN, timestamps, SACK blocks,
/// counters of Accurate ECN.
type Sent = (u16, u32, u16, u32, u16, u8, Option<Greeting>, Option<(u32, u32)>, Vec<(u32, u32)>, Option<Counters>);

/// One side of a connection. Times are in nanoseconds.
#[pyclass(unsendable, module = "penstock._penstock")]
pub(crate) struct Endpoint {
    endpoint: penstock_sim::tcp::Endpoint,
    client: bool,
}

#[pymethods]
impl Endpoint {
    /// Creates a closed client or a listening server, with options as JSON, whose SYN will have the number `iss`. It reads and
    /// closes by hand.
    #[new]
    fn new(config: &str, client: bool, iss: u32) -> PyResult<Self> {
        let config: TcpConfig =
            serde_json::from_str(config).map_err(|error| PyValueError::new_err(error.to_string()))?;
        config.validate().map_err(|error| PyValueError::new_err(error.to_string()))?;
        let role = if client { Role::Client } else { Role::Server };
        let mut endpoint = penstock_sim::tcp::Endpoint::new(Arc::new(config), 0, role, iss);
        endpoint.close_by_hand();
        Ok(Self { endpoint, client })
    }

    /// Opens the connection of a client.
    fn open(&mut self) {
        self.endpoint.open();
    }

    /// Writes `n` bytes.
    fn write(&mut self, n: u64) {
        self.endpoint.write(n);
    }

    /// Closes the direction to the peer after all bytes written.
    fn close(&mut self) {
        self.endpoint.close();
    }

    /// Aborts the connection with a reset.
    fn abort(&mut self) {
        self.endpoint.abort();
    }

    /// Stops reading at once: from now on [`Endpoint::read`] reads. Must be called after the handshake.
    fn read_by_hand(&mut self) {
        self.endpoint.read_by_hand();
    }

    /// Reads `n` bytes that have arrived.
    fn read(&mut self, n: u64) {
        self.endpoint.read(n);
    }

    /// Takes a segment of the peer.
    #[pyo3(signature = (now_ns, flags, seq, len, ack, window, ecn, syn=None, timestamps=None, sacks=vec![], accecn=None))]
    #[expect(clippy::too_many_arguments, reason = "the fields of a segment")]
    fn arrive(
        &mut self,
        now_ns: u64,
        flags: u16,
        seq: u32,
        len: u16,
        ack: u32,
        window: u16,
        ecn: u8,
        syn: Option<Greeting>,
        timestamps: Option<(u32, u32)>,
        sacks: Vec<(u32, u32)>,
        accecn: Option<Counters>,
    ) {
        let mut segment = Segment::tcp(0, !self.client, TcpFlags(flags as u8));
        (segment.seq, segment.len, segment.ack, segment.window) = (seq, len, ack, window);
        segment.set_ecn(Ecn::from_bits(ecn));
        if let Some((val, ecr)) = timestamps {
            segment.set_timestamps(Timestamps { val, ecr });
        }
        if let Some((mss, window_scale, sack_permitted)) = syn {
            segment.set_syn_options(SynOptions { mss, window_scale, sack_permitted });
        }
        for block in sacks {
            segment.add_sack(block);
        }
        if let Some((ect1_first, fields)) = accecn {
            let [first, ce, last] = [0, 1, 2].map(|place| fields.get(place).copied().unwrap_or(0));
            let (ect0, ect1) = if ect1_first { (last, first) } else { (first, last) };
            segment.set_accecn(&AccEcn::new(ect1_first, fields.len() as u8, &ByteCounters { ect0, ce, ect1 }));
        }
        if flags & 0x100 != 0 {
            segment.set_ace(segment.ace() | 4);
        }
        self.endpoint.on_segment(&segment, Instant::from_nanos(now_ns));
    }

    /// Returns when `on_timer` has something to do; `None` if no timer is set.
    fn deadline(&self) -> Option<u64> {
        self.endpoint.deadline().map(Instant::as_nanos)
    }

    /// Handles all timers that are due.
    fn on_timer(&mut self, now_ns: u64) {
        self.endpoint.on_timer(Instant::from_nanos(now_ns));
    }

    /// Returns the next segment to send now; `None` if there is none.
    fn transmit(&mut self, now_ns: u64) -> Option<Sent> {
        let segment = self.endpoint.transmit(Instant::from_nanos(now_ns))?;
        let ae = if segment.ace() & 4 == 0 { 0 } else { 0x100 };
        let timestamps = segment.has_timestamps().then_some((segment.tsval, segment.tsecr));
        Some((
            u16::from(segment.flags.0) | ae,
            segment.seq,
            segment.len,
            segment.ack,
            segment.window,
            segment.ecn() as u8,
            segment.syn_options().map(|syn| (syn.mss, syn.window_scale, syn.sack_permitted)),
            timestamps,
            if segment.flags.has(TcpFlags::SYN) { vec![] } else { segment.sacks().to_vec() },
            segment.accecn().map(|option| (option.ect1_first(), option.fields().to_vec())),
        ))
    }

    /// State of the handshake: "closed", "listen", "syn-sent", "syn-received" or "established".
    #[getter]
    fn state(&self) -> &'static str {
        match self.endpoint.state() {
            State::Closed => "closed",
            State::Listen => "listen",
            State::SynSent => "syn-sent",
            State::SynReceived => "syn-received",
            State::Established => "established",
        }
    }

    /// Bytes that arrived in order.
    #[getter]
    fn delivered(&self) -> u64 {
        self.endpoint.delivered()
    }

    /// Bytes that the peer has acknowledged.
    #[getter]
    fn acked(&self) -> u64 {
        self.endpoint.acked()
    }

    /// True if the peer has closed its direction and everything of it has arrived.
    #[getter]
    fn peer_finished(&self) -> bool {
        self.endpoint.peer_finished()
    }

    /// True if the peer has acknowledged the FIN of this side.
    #[getter]
    fn all_acked(&self) -> bool {
        self.endpoint.all_acked()
    }

    /// Returns what `TCP_INFO` of Linux tells, as JSON.
    fn info(&self) -> PyResult<String> {
        convert::json(&self.endpoint.info())
    }
}
