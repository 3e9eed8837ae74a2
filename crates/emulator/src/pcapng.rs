//! A capture of the emulator as pcapng, in the form of the simulator's (`penstock_trace::pcapng`): packets when they left the
//! queue, sent or dropped, with the reason as a comment. The times are those of the calendar, so that captures taken at the
//! hosts fit.

use crate::packets::Form;
use penstock_core::units::{Bytes, Span};
use penstock_shaper::tap::{Fate, SNAP, Taps};
use penstock_trace::pcapng::{LOSS_COMMENT, MARK_COMMENT, Writer, drop_comment};
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

fn comment(fate: Fate) -> Option<&'static str> {
    match fate {
        Fate::Sent => None,
        Fate::Marked => Some(MARK_COMMENT),
        Fate::Lost => Some(LOSS_COMMENT),
        Fate::Dropped(reason) => Some(drop_comment(reason)),
    }
}

/// A capture with an interface for each queue.
#[derive(Debug)]
pub struct Pcapng {
    writer: Option<Writer<Vec<u8>>>,
    /// The begin of the run by the calendar.
    zero: Span,
}

impl Pcapng {
    /// Creates the form of a capture. `epoch` is when the run began.
    pub fn since(epoch: std::time::Instant) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let zero = now.saturating_sub(epoch.elapsed());
        Self { writer: None, zero: Span::from_nanos(u64::try_from(zero.as_nanos()).unwrap_or_default()) }
    }
}

impl Form for Pcapng {
    type Sheet = Taps;
    /// They hold a quarter of a million packets in 40 MB.
    const SHEETS: usize = 64;

    fn option(&self) -> &'static str {
        "--pcapng"
    }

    fn head(&mut self, text: &mut Vec<u8>) -> io::Result<()> {
        let mut writer = Writer::new(Vec::new())?;
        for name in ["forward", "reverse"] {
            writer.add_interface(name, Bytes::new(SNAP as u64))?;
        }
        text.append(writer.get_mut());
        self.writer = Some(writer);
        Ok(())
    }

    fn write(&mut self, sheet: &Taps, text: &mut Vec<u8>) -> io::Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let [mut forward, mut reverse] = sheet.each_ref().map(|way| way.iter().peekable());
        loop {
            let earlier = match (forward.peek(), reverse.peek()) {
                (Some(one), Some(other)) => other.at < one.at,
                (one, _) => one.is_none(),
            };
            let next = if earlier { reverse.next() } else { forward.next() };
            let Some(entry) = next else { break };
            writer.packet(u32::from(earlier), entry.at + self.zero, entry.size, entry.head(), comment(entry.fate))?;
        }
        text.append(writer.get_mut());
        Ok(())
    }
}
