//! The ACK filter of cake: an ACK that arrives may take the place of one which it makes redundant.
//!
//! Source: Høiland-Jørgensen, Täht, Morton 2018, §III-D; `cake_ack_filter()` of sch_cake.c; tc-cake(8). Of two redundant
//! ACKs in the queue the one nearer to the head goes; the aggressive form removes the only one, if it stands directly
//! before the arrival.
//!
//! ```text
//! redundant   flags ACK alone, or with ECE or CWR; no payload; no option but timestamps, none later than the arrival's;
//!             acknowledges less than the arrival
//! kept        the last redundant ACK before the flags ECE and CWR change
//! ```

use crate::packet::{Packet, PlainSegment, TcpFlags, Timestamps};
use crate::slab::{List, Position, Slab};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether ACKs are filtered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AckFilter {
    /// All ACKs are kept (tc: no-ack-filter).
    #[default]
    No,
    /// At least two redundant ACKs of a flow are kept (tc: ack-filter).
    Yes,
    /// One redundant ACK of a flow is enough (tc: ack-filter-aggressive).
    Aggressive,
}

/// True if `a` is later than `b` in a circle of 32 bits.
fn is_after(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) < 0
}

/// The two flags that tell of congestion.
fn signals(segment: &PlainSegment) -> u8 {
    segment.flags.0 & TcpFlags::ECE.with(TcpFlags::CWR).0
}

/// True if what `old` says is in `new` as well.
fn is_redundant(old: &PlainSegment, new: &PlainSegment) -> bool {
    let others = !TcpFlags::ECE.with(TcpFlags::CWR).0;
    let has_options_of_a_syn = old.window_scale.is_some() || old.mss.is_some();
    let Timestamps { val, ecr } = new.timestamps.unwrap_or_default();
    let is_later = |times: Timestamps| is_after(times.val, val) || is_after(times.ecr, ecr);
    old.flags.0 & others == TcpFlags::ACK.0
        && old.payload_len == 0
        && !has_options_of_a_syn
        && !old.timestamps.is_some_and(is_later)
        && is_after(new.ack, old.ack)
}

/// Returns the place before that of an ACK which the last packet of `list` makes redundant, and which may go.
pub(super) fn redundant<P: Packet, N: Copy>(
    slab: &mut Slab<P, N>,
    list: &List,
    aggressive: bool,
) -> Option<Option<Position>> {
    let last = slab.back(list).filter(|last| slab.front(list) != Some(*last))?;
    let new = segment(slab, last)?;
    if new.flags.0 & TcpFlags::SYN.with(TcpFlags::ACK).0 != TcpFlags::ACK.0 {
        return None;
    }
    // The first ACK that may go, as the place before it and itself; and its flags.
    let mut eligible: Option<(Option<Position>, Position, u8)> = None;
    let (mut before, mut at, mut found) = (None, slab.front(list), 0);
    while let Some(place) = at.filter(|place| *place != last) {
        if let Some(old) = segment(slab, place).filter(|old| old.flow == new.flow) {
            if eligible.is_some_and(|(_, _, flags)| flags != signals(&old)) {
                (eligible, found) = (None, found - 1);
            }
            if is_redundant(&old, &new) {
                let (before, ..) = *eligible.get_or_insert((before, place, signals(&old)));
                if found > 0 {
                    return Some(before);
                }
                found += 1;
            }
        }
        (before, at) = (Some(place), slab.behind(place));
    }
    let (before, place, flags) = eligible.filter(|_| aggressive)?;
    (slab.behind(place) == Some(last) && flags == signals(&new)).then_some(before)
}

fn segment<P: Packet, N: Copy>(slab: &mut Slab<P, N>, place: Position) -> Option<PlainSegment> {
    let packet = slab.packet_mut(place)?;
    packet.tcp().map(|segment| PlainSegment::of(segment))
}
