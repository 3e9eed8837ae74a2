//! Reads any trace as a sequence of arrivals; the format is recognized by the first bytes.

use crate::arrival::{Arrival, FlowTable, MAX_TIME, Nodes};
use crate::capture::{Capture, Frame, PCAPNG_MAGIC, pcap_magic};
use crate::clock::{Clock, Progress};
use crate::copies::{Copies, Kind};
use crate::error::ReadError;
use crate::fields::fields;
use crate::link::{FlowKey, IpPacket, LinkType, Unread, Way, interface, ip_packet, sender};
use crate::notes::{Cut, Notes};
use crate::table::Table;
pub use crate::window::Cutting;
use crate::window::{Found, Window};
use flate2::read::MultiGzDecoder;
use penstock_core::wire::End;
use std::io::{BufReader, Chain, Cursor, Read};
use std::net::IpAddr;
use std::path::Path;

/// A reader whose first bytes have been read and are read again.
type Peeked<R> = Chain<Cursor<Vec<u8>>, R>;

/// A reader of a trace that may be compressed with gzip.
#[derive(Debug)]
enum Unpacked<R> {
    Plain(Peeked<R>),
    Gzip(Box<Peeked<MultiGzDecoder<Peeked<R>>>>),
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(plain) => plain.read(into),
            Self::Gzip(packed) => packed.read(into),
        }
    }
}

/// The arrivals of a trace, in order of time. The iterator ends after the first error.
#[derive(Debug)]
pub struct Arrivals<R> {
    source: Source<Unpacked<R>>,
    nodes: Option<Nodes>,
    /// See [`Arrivals::keeping`].
    keep: Option<Vec<u8>>,
    /// Number of packets so far.
    seen: u64,
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
    records: u64,
    clock: Clock,
    copies: Copies,
    window: Window,
    cuttings: Vec<Cutting>,
    flows: FlowTable<FlowKey>,
    has_ended: bool,
    notes: Notes,
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

/// Reads a trace, which is pcap, pcapng or CSV, recognized by the first bytes; it may be compressed with gzip. The reader
/// should be buffered.
///
/// The times of a capture are counted from its first packet; the times of CSV are used as they are.
///
/// # Errors
/// Returns [`ReadError::Format`] if the format is none of these, or an error in the header of the format.
pub fn read<R: Read>(reader: R) -> Result<Arrivals<R>, ReadError> {
    let (start, whole) = peeked(reader)?;
    let (start, whole) = if start.starts_with(&[0x1f, 0x8b]) {
        let (start, inner) = peeked(MultiGzDecoder::new(whole))?;
        (start, Unpacked::Gzip(Box::new(inner)))
    } else {
        (start, Unpacked::Plain(whole))
    };
    let magic = <[u8; 4]>::try_from(&start[..]).unwrap_or_default();
    let looks_like_text = start.iter().all(|b| b.is_ascii_graphic() || b.is_ascii_whitespace())
        || start.starts_with("\u{feff}".as_bytes());
    let source = if magic == PCAPNG_MAGIC {
        Source::Frames(Box::new(Frames::new(Capture::pcapng(whole)?)))
    } else if pcap_magic(magic).is_some() {
        Source::Frames(Box::new(Frames::new(Capture::pcap(whole)?)))
    } else if start.is_empty() {
        return Err(ReadError::Format("the trace is empty".into()));
    } else if looks_like_text {
        Source::Table(Box::new(Table::new(whole)?))
    } else if let Some(name) = compressed(magic) {
        return Err(ReadError::Format(format!("the trace is compressed with {name}; unpack it first (gzip is read)")));
    } else {
        return Err(ReadError::Format(format!("the trace begins with the unknown bytes {start:02x?}")));
    };
    Ok(Arrivals { source, nodes: None, keep: None, seen: 0, ended: false })
}

/// Returns the first four bytes, or fewer of a shorter reader, and a reader that has them again.
fn peeked<R: Read>(mut reader: R) -> Result<(Vec<u8>, Peeked<R>), ReadError> {
    let mut start = Vec::with_capacity(4);
    reader.by_ref().take(4).read_to_end(&mut start).map_err(|source| ReadError::Io { offset: 0, source })?;
    Ok((start.clone(), Cursor::new(start).chain(reader)))
}

/// The name of a format of compressed files that is not read.
fn compressed(magic: [u8; 4]) -> Option<&'static str> {
    Some(match magic {
        [0x28, 0xb5, 0x2f, 0xfd] => "zstd",
        [0xfd, b'7', b'z', b'X'] => "xz",
        [0x04, 0x22, 0x4d, 0x18] => "lz4",
        _ => return None,
    })
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
        match &self.source {
            Source::Table(_) => Notes::default(),
            Source::Frames(frames) => frames.told(),
        }
    }

    /// Keeps only those packets of the trace whose byte is not zero, by the number of their record in the file; packets
    /// beyond the last byte are kept. Flows and nodes are numbered as without it.
    #[must_use]
    pub fn keeping(self, keep: Vec<u8>) -> Self {
        Self { keep: Some(keep), ..self }
    }

    /// Splits the packets of a capture as this list says, by the number of their record in the file. CSV is not split.
    #[must_use]
    pub fn cutting(mut self, cuttings: Vec<Cutting>) -> Self {
        if let Source::Frames(frames) = &mut self.source {
            frames.cuttings = cuttings;
        }
        self
    }

    fn is_kept(&self, record: u64) -> bool {
        self.keep.as_ref().and_then(|keep| keep.get(record as usize)).is_none_or(|byte| *byte != 0)
    }

    fn advance(&mut self) -> Result<Option<Arrival>, ReadError> {
        while let Some((arrival, found)) = self.next_found()? {
            if self.is_kept(found.map_or(self.seen - 1, |found| found.record)) {
                return Ok(Some(arrival));
            }
        }
        Ok(None)
    }

    /// Returns the next packet, whether it is kept or not, and what a capture says of it.
    pub(crate) fn next_found(&mut self) -> Result<Option<(Arrival, Option<Found>)>, ReadError> {
        let next = match &mut self.source {
            Source::Table(table) => table.next_arrival()?.map(|arrival| (arrival, None)),
            Source::Frames(frames) => frames.next(&mut self.nodes)?.map(|(arrival, found)| (arrival, Some(found))),
        };
        if next.is_none() && self.seen == 0 {
            return Err(match &self.source {
                Source::Table(_) => ReadError::NoRows,
                Source::Frames(frames) => ReadError::Nothing(frames.told().nothing()),
            });
        }
        self.seen += 1;
        Ok(next)
    }
}

impl<R: Read> Frames<R> {
    fn new(capture: Capture<R>) -> Self {
        Self {
            capture,
            data: Vec::new(),
            records: 0,
            clock: Clock::default(),
            copies: Copies::default(),
            window: Window::default(),
            cuttings: Vec::new(),
            flows: FlowTable::default(),
            has_ended: false,
            notes: Notes::default(),
        }
    }

    fn told(&self) -> Notes {
        let (odd, mut notes) = (self.capture.odd(), self.notes.clone());
        (notes.odd, notes.first_odd) = (odd.records, odd.first.clone());
        (notes.clock_set, notes.out_of_order) = (self.clock.set, self.clock.out_of_order);
        notes.restored = self.clock.out_of_order.saturating_sub(self.window.late);
        notes.split = self.window.split;
        if notes.frames == 0 {
            notes.unread.extend(self.capture.unread_link_types().iter().map(|n| (Unread::LinkType(*n).to_string(), 0)));
        }
        notes
    }

    /// Returns the next packet in order of time.
    fn next(&mut self, nodes: &mut Option<Nodes>) -> Result<Option<(Arrival, Found)>, ReadError> {
        while !self.has_ended && !self.window.is_full() {
            match self.found()? {
                Some(found) => {
                    let cutting = self.cuttings.get(found.record as usize).copied();
                    self.window.put(&found, cutting);
                }
                None => self.has_ended = true,
            }
        }
        let Some(found) = self.window.take() else { return Ok(None) };
        let flow = self.flows.id(found.key);
        let node = nodes.as_mut().map(|nodes| nodes.of(flow, found.source, found.destination));
        let Found { t, size, ecn, ern, dscp, .. } = found;
        Ok(Some((Arrival { t, flow, label: flow.0.into(), node, size, ecn, ern, dscp: Some(dscp) }, found)))
    }

    /// Returns the next packet in the order of the file.
    fn found(&mut self) -> Result<Option<Found>, ReadError> {
        while let Some(frame) = self.frame()? {
            self.notes.frames += 1;
            let read = |link: LinkType| ip_packet(link, &self.data, frame.original_len).map(|packet| (link, packet));
            let (link, packet) = match frame.link.map_err(|what| Unread::LinkType(what.0)).and_then(read) {
                Ok(found) => found,
                Err(why) => {
                    self.notes.unread(why);
                    continue;
                }
            };
            let Some(epoch_ns) = frame.epoch_ns else {
                self.notes.untimed += 1;
                continue;
            };
            let found = self.of(&frame, link, &packet, epoch_ns);
            if found.t == MAX_TIME {
                let (frame, most) = (self.notes.frames, MAX_TIME.as_nanos() / 1_000_000_000);
                let what = format!("frame {frame} comes {most} s after the first packet, or later; give a part of it");
                return Err(ReadError::Format(format!("the capture is too long: {what}")));
            }
            match self.copies.of(link, &found, self.data.get(packet.inside..).unwrap_or_default()) {
                Kind::New => {
                    self.records += 1;
                    return Ok(Some(found));
                }
                Kind::Translated(record) if is_inside(&found) => self.window.rename(record, &found),
                Kind::Copy | Kind::Translated(_) => {}
            }
            self.notes.copies += 1;
        }
        Ok(None)
    }

    fn of(&mut self, frame: &Frame, link: LinkType, packet: &IpPacket, epoch_ns: i128) -> Found {
        let fields = fields(packet, &self.data);
        let forward = (packet.source, packet.ports.0) <= (packet.destination, packet.ports.1);
        let numbers = (fields[0] != 0).then_some((fields[1], fields[2]));
        let t = self.clock.time(epoch_ns, &Progress { key: packet.key, forward, numbers });
        let (mac, way) = sender(link, &self.data);
        Found {
            t,
            record: self.records,
            key: packet.key,
            source: packet.source,
            destination: packet.destination,
            protocol: packet.protocol,
            ports: packet.ports,
            size: packet.size,
            fits: packet.fits,
            ecn: packet.ecn,
            ern: packet.ern,
            dscp: packet.dscp,
            id: packet.id,
            interface: interface(link, &self.data).unwrap_or(frame.interface),
            sender: mac,
            way: if frame.way == Way::Unknown { way } else { frame.way },
            dropped: frame.dropped,
            fields,
        }
    }

    /// Reads the next frame; a file that ends within a packet, or is broken from a place on, ends before it.
    fn frame(&mut self) -> Result<Option<Frame>, ReadError> {
        match self.capture.next_frame(&mut self.data) {
            Err(ReadError::Cut { packet, offset, what, .. } | ReadError::Capture { packet, offset, what, .. }) => {
                self.notes.cut_short = Some(Cut { packet, byte: offset, what });
                Ok(None)
            }
            // A compressed file that was cut ends in an error of its reader.
            Err(ReadError::Io { offset, source }) if source.kind() == std::io::ErrorKind::UnexpectedEof => {
                let what = "the compressed file ends there".to_owned();
                self.notes.cut_short = Some(Cut { packet: self.notes.frames + 1, byte: offset, what });
                Ok(None)
            }
            other => other,
        }
    }
}

/// Returns true if both ends of a packet may be those that hosts behind a translator of addresses know: one is private.
fn is_inside(found: &Found) -> bool {
    let private = |address: IpAddr| match address {
        IpAddr::V4(four) => four.is_private() || four.octets()[0] == 100 && four.octets()[1] & 0xc0 == 64,
        IpAddr::V6(six) => six.is_unique_local(),
    };
    private(found.source) || private(found.destination)
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
