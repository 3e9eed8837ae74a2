//! Reads any trace as a sequence of arrivals; the format is recognized by the first bytes.

use crate::arrival::{Arrival, FlowTable, MAX_TIME, Nodes};
use crate::capture::{Capture, PCAPNG_MAGIC, pcap_magic};
use crate::error::ReadError;
use crate::link::{FlowKey, ip_packet};
use crate::table::Table;
use penstock_core::units::Instant;
use penstock_core::wire::End;
use std::io::{BufReader, Chain, Cursor, Read};
use std::path::Path;

/// What was left out or changed while a capture was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Notes {
    /// Number of frames in the file.
    pub frames: u64,
    /// Number of frames left out because they hold no IP packet or too little of it was captured.
    pub not_ip: u64,
    /// Number of frames left out because the capture has no time for them.
    pub untimed: u64,
    /// Number of packets with an earlier time than the packet before; they are taken to arrive together with it.
    pub out_of_order: u64,
}

/// A reader whose first bytes have been read and are read again.
type Peeked<R> = Chain<Cursor<Vec<u8>>, R>;

/// The arrivals of a trace, in order of time. The iterator ends after the first error.
#[derive(Debug)]
pub struct Arrivals<R> {
    source: Source<Peeked<R>>,
    nodes: Option<Nodes>,
    notes: Notes,
    ended: bool,
}

#[derive(Debug)]
enum Source<R> {
    Capture { capture: Box<Capture<R>>, data: Vec<u8>, flows: FlowTable<FlowKey>, first: Option<i128>, last: Instant },
    Table(Box<Table<R>>),
}

/// Opens a trace file.
///
/// # Errors
/// Returns [`ReadError::Open`], or an error of [`read`].
#[expect(clippy::disallowed_types, reason = "the one function of this crate that opens a file")]
pub fn open(path: &Path) -> Result<Arrivals<BufReader<std::fs::File>>, ReadError> {
    let file =
        std::fs::File::open(path).map_err(|source| ReadError::Open { path: path.display().to_string(), source })?;
    read(BufReader::new(file))
}

/// Reads a trace, which is pcap, pcapng or CSV, recognized by the first bytes. The reader should be buffered.
///
/// The times of a capture are counted from its first packet; the times of CSV are used as they are.
///
/// # Errors
/// Returns [`ReadError::Format`] if the format is none of these, or an error in the header of the format.
pub fn read<R: Read>(mut reader: R) -> Result<Arrivals<R>, ReadError> {
    let mut start = Vec::with_capacity(4);
    reader.by_ref().take(4).read_to_end(&mut start).map_err(|source| ReadError::Io { offset: 0, source })?;
    let magic = <[u8; 4]>::try_from(&start[..]).unwrap_or_default();
    let looks_like_text = start.iter().all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace())
        || start.starts_with("\u{feff}".as_bytes());
    let whole = Cursor::new(start.clone()).chain(reader);
    let capture = |capture| Source::Capture {
        capture: Box::new(capture),
        data: Vec::new(),
        flows: FlowTable::default(),
        first: None,
        last: Instant::ZERO,
    };
    let source = if magic == PCAPNG_MAGIC {
        capture(Capture::pcapng(whole)?)
    } else if pcap_magic(magic).is_some() {
        capture(Capture::pcap(whole)?)
    } else if start.is_empty() {
        return Err(ReadError::Format("the trace is empty".into()));
    } else if looks_like_text {
        Source::Table(Box::new(Table::new(whole)?))
    } else if start.starts_with(&[0x1f, 0x8b]) || start.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        return Err(ReadError::Format("the trace is compressed; unpack it first".into()));
    } else {
        return Err(ReadError::Format(format!("the trace begins with the unknown bytes {start:02x?}")));
    };
    Ok(Arrivals { source, nodes: None, notes: Notes::default(), ended: false })
}

impl<R: Read> Arrivals<R> {
    /// Gives each flow an owner from now on: the host at this end of the first packet of the flow. In a capture which
    /// contains the begin of its flows, the hosts that open them are at the source, whatever the direction of later
    /// packets; in a capture of traffic to clients, the clients are at the destination. CSV has no hosts.
    #[must_use]
    pub fn with_nodes(self, end: End) -> Self {
        Self { nodes: Some(Nodes::new(end)), ..self }
    }

    /// Returns what was left out or changed so far; all zero for CSV, whose mistakes are errors.
    pub fn notes(&self) -> Notes {
        self.notes
    }

    fn advance(&mut self) -> Result<Option<Arrival>, ReadError> {
        let (capture, data, flows, first, last) = match &mut self.source {
            Source::Table(table) => return table.next_arrival(),
            Source::Capture { capture, data, flows, first, last } => (capture, data, flows, first, last),
        };
        while let Some(frame) = capture.next_frame(data)? {
            self.notes.frames += 1;
            let Some(packet) = ip_packet(frame.link, data, frame.original_len) else {
                self.notes.not_ip += 1;
                continue;
            };
            let Some(epoch_ns) = frame.epoch_ns else {
                self.notes.untimed += 1;
                continue;
            };
            let since_first = epoch_ns - *first.get_or_insert(epoch_ns);
            if since_first > i128::from(MAX_TIME.as_nanos()) {
                let what = format!(
                    "frame {} of the capture is stamped {} s after its first packet; at most {} s are allowed",
                    self.notes.frames,
                    since_first / 1_000_000_000,
                    MAX_TIME.as_nanos() / 1_000_000_000
                );
                return Err(ReadError::Format(what));
            }
            let t = Instant::from_nanos(u64::try_from(since_first).unwrap_or(0));
            self.notes.out_of_order += u64::from(t < *last || since_first < 0);
            *last = t.max(*last);
            let flow = flows.id(packet.key);
            let node = self.nodes.as_mut().map(|nodes| nodes.of(flow, packet.source, packet.destination));
            let (size, ecn, ern) = (packet.size, packet.ecn, packet.ern);
            return Ok(Some(Arrival { t: *last, flow, label: flow.0.into(), node, size, ecn, ern }));
        }
        Ok(None)
    }
}

impl<R: Read> Iterator for Arrivals<R> {
    type Item = Result<Arrival, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let item = self.advance().transpose();
        self.ended = !matches!(item, Some(Ok(_)));
        item
    }
}
