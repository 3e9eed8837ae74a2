//! The headers of all packets of a trace as columns, for programs that look at a capture as a whole.
//!
//! Every column has a number of 32 bits for each packet, 0 where the packet has no such field; only the times have
//! 64 bits. A CSV file has flows, sizes and the ECN field alone.

use crate::arrival::{Arrival, FlowTable};
use crate::error::ReadError;
pub use crate::fields::{MSS, TCP, TIMESTAMPS, WINDOW_SCALE};
use crate::link::Mac;
use crate::notes::Notes;
use crate::read::Arrivals;
use crate::window::Found;
use penstock_core::packet::FlowId;
use std::io::Read;
use std::net::IpAddr;

/// Names of the columns, in the order of [`Packets::columns`].
///
/// `back` is 1 if the packet goes against the first packet of its flow; `interface` is the interface of a pcapng file or of
/// a cooked capture, `sender` the number of the sender's Ethernet address, from 1 on; `way` is 1 for a packet that the capturing machine
/// received, and 2 for one that it sent; `dropped` is 1 for a packet of which a capture of the simulator says so. `flags` has the
/// flags of TCP, and above them [`TCP`] and the other bits of this module; `payload` are the bytes after the header of TCP or
/// UDP; `record` is the number of the packet in the file, which packets share that were split ([`Arrivals::cutting`]).
pub const COLUMNS: [&str; 18] = [
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
    "record",
];

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
        while let Some((arrival, found)) = arrivals.next_found()? {
            let number = numbers.id(arrival.flow).0;
            if number as usize == packets.flows.len() {
                packets.flows.push(flow(&arrival, found.as_ref()));
            }
            let row = match &found {
                Some(found) => row(found, &packets.flows[number as usize], &mut senders),
                None => [0; COLUMNS.len() - 4],
            };
            let record = found.map_or(packets.t_ns.len() as u32, |found| found.record as u32);
            packets.t_ns.push(arrival.t.as_nanos());
            let first = [number, arrival.size.get() as u32, arrival.ecn as u32];
            for (column, value) in packets.columns.iter_mut().zip(first.into_iter().chain(row).chain([record])) {
                column.push(value);
            }
        }
        packets.notes = arrivals.notes();
        Ok(packets)
    }
}

fn flow(arrival: &Arrival, found: Option<&Found>) -> Flow {
    Flow {
        label: arrival.label,
        protocol: found.map_or(0, |found| found.protocol),
        source: found.map(|found| found.source),
        destination: found.map(|found| found.destination),
        source_port: found.map_or(0, |found| found.ports.0),
        destination_port: found.map_or(0, |found| found.ports.1),
    }
}

/// Returns the columns from `back` to `window_scale`.
fn row(found: &Found, flow: &Flow, senders: &mut FlowTable<Mac>) -> [u32; COLUMNS.len() - 4] {
    let forward = Some(found.source) == flow.source && found.ports.0 == flow.source_port;
    let sender = found.sender.map_or(0, |mac| senders.id(mac).0 + 1);
    let link = [!forward as u32, found.interface, sender, found.way as u32, found.dropped as u32];
    std::array::from_fn(|at| if at < link.len() { link[at] } else { found.fields[at - link.len()] })
}
