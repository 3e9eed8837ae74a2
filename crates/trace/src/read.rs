//! Any trace, told apart by its first bytes, as a sequence of arrivals.

use crate::arrival::{Arrival, FlowTable, MAX_TIME, Nodes};
use crate::capture::{Capture, PCAPNG_MAGIC, pcap_magic};
use crate::error::ReadError;
use crate::link::{FlowKey, ip_packet};
use crate::table::Table;
use penstock_core::units::Instant;
use penstock_core::wire::End;
use std::io::{BufReader, Chain, Cursor, Read};
use std::path::Path;

/// What was left out or bent while a capture was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Notes {
    /// Frames of the file.
    pub frames: u64,
    /// Frames left out: no IP packet in them, or too little of it was captured.
    pub not_ip: u64,
    /// Frames left out: the capture has no time for them.
    pub untimed: u64,
    /// Packets stamped earlier than their predecessor; they are taken to arrive together with it.
    pub out_of_order: u64,
}

/// A reader whose first bytes were looked at.
type Peeked<R> = Chain<Cursor<Vec<u8>>, R>;

/// The arrivals of a trace, in order of time. Ends after the first error.
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
/// [`ReadError::Open`], and those of [`read`].
#[expect(clippy::disallowed_types, reason = "the one function of this crate that opens a file")]
pub fn open(path: &Path) -> Result<Arrivals<BufReader<std::fs::File>>, ReadError> {
    let file =
        std::fs::File::open(path).map_err(|source| ReadError::Open { path: path.display().to_string(), source })?;
    read(BufReader::new(file))
}

/// Reads a trace: pcap, pcapng or CSV, told apart by the first bytes. Give a buffered reader.
///
/// The times of a capture are counted from its first packet; those of CSV are taken as they are.
///
/// # Errors
/// [`ReadError::Format`] when it is none of these; the errors of the format's header.
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
    /// Tells from now on whose each flow is: the host at this end of its first packet. A capture in which flows begin has
    /// the hosts that open them at the source, whichever way its packets go; one of what goes to clients has these at the
    /// destination. CSV knows no hosts.
    #[must_use]
    pub fn with_nodes(self, end: End) -> Self {
        Self { nodes: Some(Nodes::new(end)), ..self }
    }

    /// What was left out or bent so far; all zero for CSV, which is refused instead.
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
