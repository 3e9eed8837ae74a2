//! Reads any trace as a sequence of arrivals; the format is recognized by the first bytes.

use crate::arrival::{Arrival, FlowTable, MAX_TIME, Nodes};
use crate::capture::{Capture, Frame, PCAPNG_MAGIC, pcap_magic};
use crate::error::ReadError;
use crate::link::{FlowKey, IpPacket, ip_packet};
use crate::table::Table;
use penstock_core::packet::FlowId;
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
    /// Where the file ends within a packet; `None` if it does not. All packets before are whole.
    pub cut_short: Option<Cut>,
}

/// The place at which a capture ends within a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct Cut {
    /// Number of the packet, beginning with 1.
    pub packet: u64,
    /// Offset at which its record or block begins.
    pub byte: u64,
}

/// A reader whose first bytes have been read and are read again.
type Peeked<R> = Chain<Cursor<Vec<u8>>, R>;

/// The arrivals of a trace, in order of time. The iterator ends after the first error.
#[derive(Debug)]
pub struct Arrivals<R> {
    source: Source<Peeked<R>>,
    nodes: Option<Nodes>,
    /// See [`Arrivals::keeping`]; and the number of packets so far.
    keep: Option<Vec<u8>>,
    seen: usize,
    notes: Notes,
    ended: bool,
}

#[derive(Debug)]
enum Source<R> {
    Frames(Box<Frames<R>>),
    Table(Box<Table<R>>),
}

/// The IP packets of a capture.
#[derive(Debug)]
struct Frames<R> {
    capture: Capture<R>,
    data: Vec<u8>,
    flows: FlowTable<FlowKey>,
    first: Option<i128>,
    last: Instant,
}

/// An IP packet of a capture, and the frame that holds it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held<'a> {
    pub frame: Frame,
    pub data: &'a [u8],
    pub packet: IpPacket,
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
    let capture = |capture| {
        let (data, flows) = (Vec::new(), FlowTable::default());
        Source::Frames(Box::new(Frames { capture, data, flows, first: None, last: Instant::ZERO }))
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
    Ok(Arrivals { source, nodes: None, keep: None, seen: 0, notes: Notes::default(), ended: false })
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

    /// Keeps of all packets only those whose byte is not zero, in the order of the trace; packets beyond the last byte
    /// are kept. Flows and nodes are numbered as without it.
    #[must_use]
    pub fn keeping(self, keep: Vec<u8>) -> Self {
        Self { keep: Some(keep), ..self }
    }

    fn is_kept(&mut self) -> bool {
        let at = self.seen;
        self.seen += 1;
        self.keep.as_ref().and_then(|keep| keep.get(at)).is_none_or(|byte| *byte != 0)
    }

    fn advance(&mut self) -> Result<Option<Arrival>, ReadError> {
        loop {
            let found = self.next_held()?.map(|(arrival, _)| arrival);
            if found.is_none() || self.is_kept() {
                return Ok(found);
            }
        }
    }

    /// Returns the next packet, whether it is kept or not, and the frame that holds it; a CSV file has no frames.
    pub(crate) fn next_held(&mut self) -> Result<Option<(Arrival, Option<Held<'_>>)>, ReadError> {
        let frames = match &mut self.source {
            Source::Table(table) => return Ok(table.next_arrival()?.map(|arrival| (arrival, None))),
            Source::Frames(frames) => frames,
        };
        let Some((t, flow, frame, packet)) = frames.next(&mut self.notes)? else { return Ok(None) };
        let node = self.nodes.as_mut().map(|nodes| nodes.of(flow, packet.source, packet.destination));
        let IpPacket { size, ecn, ern, dscp, .. } = packet;
        let arrival = Arrival { t, flow, label: flow.0.into(), node, size, ecn, ern, dscp: Some(dscp) };
        Ok(Some((arrival, Some(Held { frame, data: &frames.data, packet }))))
    }
}

impl<R: Read> Frames<R> {
    /// Returns time, flow, frame and contents of the next IP packet.
    fn next(&mut self, notes: &mut Notes) -> Result<Option<(Instant, FlowId, Frame, IpPacket)>, ReadError> {
        while let Some(frame) = self.frame(notes)? {
            notes.frames += 1;
            let Some(packet) = ip_packet(frame.link, &self.data, frame.original_len) else {
                notes.not_ip += 1;
                continue;
            };
            let Some(epoch_ns) = frame.epoch_ns else {
                notes.untimed += 1;
                continue;
            };
            let t = self.time(epoch_ns, notes)?;
            return Ok(Some((t, self.flows.id(packet.key), frame, packet)));
        }
        Ok(None)
    }

    /// Reads the next frame; a file that ends within a packet ends before it.
    fn frame(&mut self, notes: &mut Notes) -> Result<Option<Frame>, ReadError> {
        match self.capture.next_frame(&mut self.data) {
            Err(ReadError::Cut { packet, offset, .. }) => {
                notes.cut_short = Some(Cut { packet, byte: offset });
                Ok(None)
            }
            other => other,
        }
    }

    /// Returns the time since the first packet, which never goes back.
    fn time(&mut self, epoch_ns: i128, notes: &mut Notes) -> Result<Instant, ReadError> {
        let since_first = epoch_ns - *self.first.get_or_insert(epoch_ns);
        if since_first > i128::from(MAX_TIME.as_nanos()) {
            let what = format!(
                "frame {} of the capture is stamped {} s after its first packet; at most {} s are allowed",
                notes.frames,
                since_first / 1_000_000_000,
                MAX_TIME.as_nanos() / 1_000_000_000
            );
            return Err(ReadError::Format(what));
        }
        let t = Instant::from_nanos(u64::try_from(since_first).unwrap_or(0));
        notes.out_of_order += u64::from(t < self.last || since_first < 0);
        self.last = t.max(self.last);
        Ok(self.last)
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
