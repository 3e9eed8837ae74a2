//! Writes pcapng captures that say why each packet was dropped: with nanosecond times, one interface per queue, and the
//! fate of a packet in its comment, which Wireshark shows.
//!
//! Source: draft-ietf-opsawg-pcapng, §4.1 (section header), §4.2 (interface), §4.3 (enhanced packet). Link type 101:
//! a packet begins with its IP header.

use penstock_core::qdisc::DropReason;
use penstock_core::units::{Bytes, Instant};
use std::io::{self, Write};

const LINKTYPE_RAW: u16 = 101;
const OPT_COMMENT: u16 = 1;
const SHB_USERAPPL: u16 = 4;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;

/// The first letters of the comment of a packet that was dropped.
pub(crate) const DROP: &str = "drop_";

/// Returns the comment of a packet that was dropped.
pub const fn drop_comment(reason: DropReason) -> &'static str {
    match reason {
        DropReason::Early => "drop_early: the AQM refused it on arrival",
        DropReason::Overflow => "drop_overflow: the queue had no room for it",
        DropReason::Dequeue => "drop_dequeue: the AQM dropped it from the queue",
    }
}

/// The comment of a packet that was marked.
pub const MARK_COMMENT: &str = "mark: the AQM set CE instead of dropping it";

/// The comment of a packet that was sent and did not arrive.
pub const LOSS_COMMENT: &str = "lost: the wire lost it behind the queue";

/// A capture which is being written. The writer should be buffered.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    /// Largest number of bytes kept of a packet, for each interface.
    snaplens: Vec<u32>,
    body: Vec<u8>,
}

impl<W: Write> Writer<W> {
    /// Writes the section header.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn new(out: W) -> io::Result<Self> {
        let mut writer = Self { out, snaplens: Vec::new(), body: Vec::new() };
        writer.body.extend_from_slice(&0x1a2b_3c4d_u32.to_le_bytes());
        writer.body.extend_from_slice(&[1, 0, 0, 0]);
        writer.body.extend_from_slice(&u64::MAX.to_le_bytes());
        writer.option(SHB_USERAPPL, b"penstock")?;
        writer.end_of_options();
        writer.block(0x0a0d_0d0a)?;
        Ok(writer)
    }

    /// Adds an interface for one more queue and returns its number. At most `snaplen` bytes of each packet are kept;
    /// zero keeps all.
    ///
    /// # Errors
    /// Returns the error of the writer, or [`io::ErrorKind::InvalidInput`] if the name is longer than 65535 bytes.
    pub fn add_interface(&mut self, name: &str, snaplen: Bytes) -> io::Result<u32> {
        let snaplen = u32::try_from(snaplen.get()).unwrap_or(0);
        self.body.extend_from_slice(&LINKTYPE_RAW.to_le_bytes());
        self.body.extend_from_slice(&[0, 0]);
        self.body.extend_from_slice(&snaplen.to_le_bytes());
        self.option(IF_NAME, name.as_bytes())?;
        self.option(IF_TSRESOL, &[9])?;
        self.end_of_options();
        self.block(1)?;
        self.snaplens.push(if snaplen == 0 { u32::MAX } else { snaplen });
        Ok((self.snaplens.len() - 1) as u32)
    }

    /// Writes a packet of `original_len` bytes, of which `bytes` are available, beginning with the IP header.
    ///
    /// # Errors
    /// Returns the error of the writer, or [`io::ErrorKind::InvalidInput`] if no such interface was added, if `bytes`
    /// are more than the packet has, or if the comment is longer than 65535 bytes.
    pub fn packet(
        &mut self,
        iface: u32,
        t: Instant,
        original_len: Bytes,
        bytes: &[u8],
        comment: Option<&str>,
    ) -> io::Result<()> {
        let snaplen = *self.snaplens.get(iface as usize).ok_or_else(|| invalid("no such interface was added"))?;
        let original = u32::try_from(original_len.get()).map_err(|_| invalid("a packet of more than 4 GiB"))?;
        if bytes.len() as u64 > u64::from(original) {
            return Err(invalid("more bytes were captured than the packet has"));
        }
        let kept = &bytes[..bytes.len().min(snaplen as usize)];
        let ns = t.as_nanos();
        for field in [iface, (ns >> 32) as u32, ns as u32, kept.len() as u32, original] {
            self.body.extend_from_slice(&field.to_le_bytes());
        }
        self.body.extend_from_slice(kept);
        self.pad();
        if let Some(comment) = comment {
            self.option(OPT_COMMENT, comment.as_bytes())?;
            self.end_of_options();
        }
        self.block(6)
    }

    /// Returns the writer, to take out what was written.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Flushes the writer and returns it.
    ///
    /// # Errors
    /// Returns the error of the writer.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn pad(&mut self) {
        self.body.resize(self.body.len().next_multiple_of(4), 0);
    }

    fn option(&mut self, code: u16, value: &[u8]) -> io::Result<()> {
        let Ok(length) = u16::try_from(value.len()) else {
            // An incomplete body must not become a part of the next block.
            self.body.clear();
            return Err(invalid("a name or comment is longer than 65535 bytes"));
        };
        self.body.extend_from_slice(&code.to_le_bytes());
        self.body.extend_from_slice(&length.to_le_bytes());
        self.body.extend_from_slice(value);
        self.pad();
        Ok(())
    }

    fn end_of_options(&mut self) {
        self.body.extend_from_slice(&[0; 4]);
    }

    /// Writes the assembled body as one block of this type.
    fn block(&mut self, kind: u32) -> io::Result<()> {
        let length = (self.body.len() as u32 + 12).to_le_bytes();
        self.out.write_all(&kind.to_le_bytes())?;
        self.out.write_all(&length)?;
        self.out.write_all(&self.body)?;
        self.body.clear();
        self.out.write_all(&length)
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}
