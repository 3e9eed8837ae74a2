//! The headers of all packets of a trace as columns, for programs that look at a capture as a whole.
//!
//! Every column has a number of 32 bits for each packet, 0 where the packet has no such field; only the times have
//! 64 bits. A CSV file has flows, sizes and the ECN field alone.

use crate::arrival::{Arrival, FlowTable};
use crate::error::ReadError;
use crate::link::{Mac, Way, sender};
use crate::read::{Arrivals, Held, Notes};
use penstock_core::packet::FlowId;
use penstock_core::wire::TcpOptions;
use std::io::Read;
use std::net::IpAddr;

/// Names of the columns, in the order of [`Packets::columns`].
///
/// `back` is 1 if the packet goes against the first packet of its flow; `interface` is the interface of a pcapng file,
/// `sender` the number of the sender's Ethernet address, from 1 on; `way` is 1 for a packet that the capturing machine
/// received, and 2 for one that it sent; `dropped` is 1 for a packet of which a capture of the simulator says so. `flags` has the flags of TCP, and above them [`TCP`] and the other bits of this
/// module; `payload` are the bytes after the header of TCP or UDP.
pub const COLUMNS: [&str; 17] = [
    "flow",
    "size",
    "ecn",
    "back",
    "interface",
    "sender",
    "way",
    "dropped",
    "flags",
    "seq",
    "ack",
    "window",
    "payload",
    "tsval",
    "tsecr",
    "mss",
    "window_scale",
];

/// Bit of `flags`: the packet has a TCP header, which was captured.
pub const TCP: u32 = 1 << 8;
/// Bit of `flags`: the segment has timestamps.
pub const TIMESTAMPS: u32 = 1 << 9;
/// Bit of `flags`: the segment has a maximum segment size.
pub const MSS: u32 = 1 << 10;
/// Bit of `flags`: the segment has a window scale.
pub const WINDOW_SCALE: u32 = 1 << 11;

const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;

/// A flow of a trace. A CSV file has no addresses.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Flow {
    /// Number of the flow in the trace.
    pub label: u64,
    /// Number of the protocol: 6 is TCP, 17 is UDP.
    pub protocol: u8,
    /// Sender of the first packet.
    pub source: Option<IpAddr>,
    /// Receiver of the first packet.
    pub destination: Option<IpAddr>,
    /// Port of the sender of the first packet; 0 without ports.
    pub source_port: u16,
    /// Port of the receiver of the first packet; 0 without ports.
    pub destination_port: u16,
}

/// The packets of a trace.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Packets {
    /// Times since the first packet in nanoseconds, in order.
    pub t_ns: Vec<u64>,
    /// The columns of [`COLUMNS`].
    pub columns: [Vec<u32>; COLUMNS.len()],
    /// The flows, in the order in which they appear: the column `flow` has the place of each.
    pub flows: Vec<Flow>,
    /// What was left out.
    pub notes: Notes,
}

impl Packets {
    /// Reads a trace to its end.
    ///
    /// # Errors
    /// Returns the first error of the trace.
    pub fn of<R: Read>(mut arrivals: Arrivals<R>) -> Result<Self, ReadError> {
        let mut packets = Self::default();
        let mut senders = FlowTable::<Mac>::default();
        let mut numbers = FlowTable::<FlowId>::default(); // a CSV file has flows of any numbers
        while let Some((arrival, held)) = arrivals.next_held()? {
            let number = numbers.id(arrival.flow).0;
            if number as usize == packets.flows.len() {
                packets.flows.push(flow(&arrival, held.as_ref()));
            }
            let row = match &held {
                Some(held) => row(held, &packets.flows[number as usize], &mut senders),
                None => [0; COLUMNS.len() - 3],
            };
            packets.t_ns.push(arrival.t.as_nanos());
            let first = [number, arrival.size.get() as u32, arrival.ecn as u32];
            for (column, value) in packets.columns.iter_mut().zip(first.into_iter().chain(row)) {
                column.push(value);
            }
        }
        packets.notes = arrivals.notes();
        Ok(packets)
    }
}

fn flow(arrival: &Arrival, held: Option<&Held<'_>>) -> Flow {
    let packet = held.map(|held| held.packet);
    Flow {
        label: arrival.label,
        protocol: packet.map_or(0, |packet| packet.protocol),
        source: packet.map(|packet| packet.source),
        destination: packet.map(|packet| packet.destination),
        source_port: packet.map_or(0, |packet| packet.ports.0),
        destination_port: packet.map_or(0, |packet| packet.ports.1),
    }
}

/// Returns the columns from `back` on.
fn row(held: &Held<'_>, flow: &Flow, senders: &mut FlowTable<Mac>) -> [u32; COLUMNS.len() - 3] {
    let (packet, frame) = (&held.packet, &held.frame);
    let forward = Some(packet.source) == flow.source && packet.ports.0 == flow.source_port;
    let (mac, way) = sender(frame.link, held.data);
    let way = if frame.way == Way::Unknown { way } else { frame.way };
    let sender = mac.map_or(0, |mac| senders.id(mac).0 + 1);
    let link = [!forward as u32, frame.interface, sender, way as u32, frame.dropped as u32];
    let transport = packet.transport.and_then(|at| held.data.get(at..)).unwrap_or_default();
    let after_ip = packet.size.get().saturating_sub(packet.header as u64) as u32;
    let fields = match packet.protocol {
        PROTOCOL_TCP if transport.len() >= 20 => tcp(transport, after_ip),
        PROTOCOL_UDP => [0, 0, 0, 0, after_ip.saturating_sub(8), 0, 0, 0, 0],
        _ => [0; 9],
    };
    std::array::from_fn(|at| if at < link.len() { link[at] } else { fields[at - link.len()] })
}

/// Returns the columns from `flags` on, of a segment whose header and data are `length` bytes.
fn tcp(header: &[u8], length: u32) -> [u32; 9] {
    let be16 = |at: usize| u32::from(header[at]) << 8 | u32::from(header[at + 1]);
    let be32 = |at: usize| be16(at) << 16 | be16(at + 2);
    let header_len = usize::from(header[12] >> 4) * 4;
    let options = TcpOptions::parse(&header[20..header_len.clamp(20, header.len())]);
    let bit = |present: bool, bit: u32| if present { bit } else { 0 };
    let flags = u32::from(header[13])
        | TCP
        | bit(options.timestamps.is_some(), TIMESTAMPS)
        | bit(options.mss.is_some(), MSS)
        | bit(options.window_scale.is_some(), WINDOW_SCALE);
    let stamps = options.timestamps.unwrap_or_default();
    let payload = length.saturating_sub(header_len as u32);
    let (mss, scale) = (options.mss.unwrap_or_default().into(), options.window_scale.unwrap_or_default().into());
    [flags, be32(4), be32(8), be16(14), payload, stamps.val, stamps.ecr, mss, scale]
}
