//! Captures of the packets of chosen queues, each with the reason of its drop or mark: as pcapng, or as CSV with the
//! time that each packet waited.

use crate::audit::Audit;
use crate::segment::Segment;
use penstock_core::packet::{Packet, TcpFlags, TcpView};
use penstock_core::qdisc::{DropReason, PacketObserver};
use penstock_core::units::{Bytes, Instant};
use penstock_trace::headers::{self, Ip, Tcp, Udp};
use penstock_trace::pcapng::{MARK_COMMENT, Writer, drop_comment};
use std::io::{self, Write};

/// The writer to which a capture goes.
pub type Sink = Box<dyn Write + Send>;

/// The first line of a capture as CSV. `t_ns` is the start of transmission or the time of the drop, `bytes` the size of
/// the IP packet; `fate` is `sent`, `mark`, or the word of a [`DropReason`].
pub const CSV_HEADER: &str = "queue,t_ns,waited_ns,flow,bytes,fate";

/// The file format of a capture.
enum Form {
    Pcapng(Writer<Sink>),
    /// CSV, with the names of the captured queues.
    Csv(Sink, Vec<String>),
}

/// One packet of a capture which is not written yet.
#[derive(Clone, Copy)]
struct Pending {
    at: Instant,
    interface: u32,
    /// Number of the packet among all that are not written yet.
    number: u32,
    drop: Option<DropReason>,
    packet: Segment,
}

/// A capture of chosen queues of a run.
///
/// Links take their decisions late, each link in its own order (`link.rs`). A capture therefore holds packets back
/// until all links have caught up ([`Capture::flush`]), and writes them in the order of time, those of one time in the
/// order of the queues. So it needs no events of its own, and a run with a capture has the events of one without.
pub struct Capture {
    form: Form,
    /// What was captured since the last [`Capture::flush`].
    pending: Vec<Pending>,
    /// Interface in the file for each queue; `None` for a queue that is not captured.
    interfaces: Vec<Option<u32>>,
    /// The first error of the writer. After an error nothing more is written.
    error: Option<io::Error>,
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture").field("interfaces", &self.interfaces).finish_non_exhaustive()
    }
}

impl Capture {
    /// Creates a capture as pcapng of the queues for which `chosen` gives a name.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn new(out: Sink, chosen: &[Option<String>]) -> io::Result<Self> {
        let mut writer = Writer::new(out)?;
        let add = |name: &Option<String>| name.as_ref().map(|n| writer.add_interface(n, Bytes::ZERO)).transpose();
        let interfaces = chosen.iter().map(add).collect::<io::Result<_>>()?;
        Ok(Self { form: Form::Pcapng(writer), pending: Vec::new(), interfaces, error: None })
    }

    /// Creates a capture as CSV of the queues for which `chosen` gives a name, with the columns of [`CSV_HEADER`].
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn csv(mut out: Sink, chosen: &[Option<String>]) -> io::Result<Self> {
        writeln!(out, "{CSV_HEADER}")?;
        let mut names = Vec::new();
        let mut add = |name: &Option<String>| {
            name.as_ref().map(|name| {
                names.push(name.clone());
                names.len() as u32 - 1
            })
        };
        let interfaces = chosen.iter().map(&mut add).collect();
        Ok(Self { form: Form::Csv(out, names), pending: Vec::new(), interfaces, error: None })
    }

    /// Completes and flushes the file.
    ///
    /// # Errors
    /// Returns the first error of any write.
    pub fn finish(mut self) -> io::Result<()> {
        self.flush();
        match self.error {
            Some(error) => Err(error),
            None => match self.form {
                Form::Pcapng(writer) => writer.finish().map(drop),
                Form::Csv(mut out, _) => out.flush(),
            },
        }
    }

    /// Writes the packets captured so far. All captured queues must have caught up, so that none of them captures a
    /// packet of an earlier time afterwards.
    pub fn flush(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.sort_unstable_by_key(|one| (one.at, one.interface, one.number));
        for one in &pending {
            if self.error.is_none() {
                self.error = self.form.write(one).err();
            }
        }
        pending.clear();
        self.pending = pending; // keeps its memory
    }

    fn add(&mut self, queue: u32, packet: &Segment, at: Instant, drop: Option<DropReason>) {
        let Some(Some(interface)) = self.interfaces.get(queue as usize).copied() else { return };
        let number = self.pending.len() as u32;
        self.pending.push(Pending { at, interface, number, drop, packet: *packet });
    }
}

impl Form {
    fn write(&mut self, one: &Pending) -> io::Result<()> {
        let packet = &one.packet;
        match self {
            Self::Pcapng(writer) => {
                let headers = if packet.is_udp() { udp(packet) } else { tcp(packet) };
                let mark = packet.is_marked().then_some(MARK_COMMENT);
                let comment = one.drop.map(drop_comment).or(mark);
                writer.packet(one.interface, one.at, headers.original_len, &headers.bytes, comment)
            }
            Self::Csv(out, names) => row(out, &names[one.interface as usize], packet, one.at, one.drop),
        }
    }
}

/// Writes one row. `Segment::at` is the time at which the packet entered the queue.
fn row(out: &mut Sink, name: &str, packet: &Segment, now: Instant, drop: Option<DropReason>) -> io::Result<()> {
    let fate = drop.map_or(if packet.is_marked() { "mark" } else { "sent" }, DropReason::fate);
    let (t, waited) = (now.as_nanos(), now.since(packet.at).as_nanos());
    writeln!(out, "{name},{t},{waited},{},{},{fate}", packet.flow, packet.size().get())
}

/// Returns the addresses of a packet. Hosts are numbered so that flow `f` runs from host 10.(2f) to host 10.(2f + 1).
fn ip(packet: &Segment) -> Ip {
    let (client, server) = (2 * packet.flow + 1, 2 * packet.flow + 2);
    let (src, dst) = if packet.from_client() { (client, server) } else { (server, client) };
    Ip { src, dst, ecn: packet.ecn() }
}

const CLIENT_PORT: u16 = 40_000;
const SERVER_PORT: u16 = 5_001;

fn ports(packet: &Segment) -> (u16, u16) {
    if packet.from_client() { (CLIENT_PORT, SERVER_PORT) } else { (SERVER_PORT, CLIENT_PORT) }
}

fn tcp(packet: &Segment) -> headers::Headers {
    let (src_port, dst_port) = ports(packet);
    let options = packet.syn_options();
    headers::tcp(&Tcp {
        ip: ip(packet),
        src_port,
        dst_port,
        seq: packet.seq,
        ack: if packet.flags.has(TcpFlags::ACK) { packet.ack } else { 0 },
        flags: packet.flags,
        window: packet.window,
        payload: Bytes::new(packet.len.into()),
        mss: options.map(|o| o.mss),
        window_scale: options.and_then(|o| o.window_scale),
        sack_permitted: options.is_some_and(|o| o.sack_permitted),
        timestamps: packet.timestamps(),
        ern: packet.explicit_rate(),
        ae: packet.ace() & 4 != 0,
        accecn: packet.accecn(),
        sack: packet.sacks(),
    })
}

fn udp(packet: &Segment) -> headers::Headers {
    let (src_port, dst_port) = ports(packet);
    headers::udp(&Udp { ip: ip(packet), src_port, dst_port, payload: Bytes::new(packet.len.into()) })
}

/// The observer of one queue, which passes its packets to the capture and to the audit.
pub struct Recorder<'a> {
    capture: Option<&'a mut Capture>,
    audit: Option<&'a mut Audit>,
    queue: u32,
}

impl<'a> Recorder<'a> {
    /// Creates the recorder of one queue. If there is neither capture nor audit, it costs two tests per packet.
    pub(crate) fn new(capture: &'a mut Option<Capture>, audit: &'a mut Option<Box<Audit>>, queue: u32) -> Self {
        Self { capture: capture.as_mut(), audit: audit.as_deref_mut(), queue }
    }

    /// Records what the discipline returned: a packet begins its transmission, or there is none.
    #[inline]
    pub fn answered(&mut self, answer: Option<&Segment>, now: Instant) {
        if let (Some(capture), Some(packet)) = (&mut self.capture, answer) {
            capture.add(self.queue, packet, now, None);
        }
        if let Some(audit) = &mut self.audit {
            audit.asked(self.queue, answer, now);
        }
    }
}

impl PacketObserver<Segment> for Recorder<'_> {
    fn dropped(&mut self, packet: Segment, reason: DropReason, now: Instant) {
        if let Some(capture) = &mut self.capture {
            capture.add(self.queue, &packet, now, Some(reason));
        }
        if let Some(audit) = &mut self.audit {
            audit.dropped(self.queue, &packet, now);
        }
    }

    /// A capture has a marked packet when it is sent.
    fn marked(&mut self, _: &Segment, _: Instant) {
        if let Some(audit) = &mut self.audit {
            audit.marked(self.queue);
        }
    }
}
