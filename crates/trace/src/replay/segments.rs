//! TCP segments of both directions through a discipline, for comparison of elements on the ACK path with their readable
//! twins.
//!
//! Outbound segments are shown to the discipline and arrive at its queue, which the link serves as in any replay; inbound
//! segments are shown alone. At one time, timers and the link come first, then the steps in their order.

use super::{Conditions, Run};
use crate::arrival::Arrival;
use crate::error::ReplayError;
use crate::record::Record;
use penstock_core::ack::AckPath;
use penstock_core::config::LinkFacts;
use penstock_core::fact::Fact;
use penstock_core::packet::{Ecn, Ern, PlainSegment};
use penstock_core::qdisc::Qdisc;
use penstock_core::registry::AnyConfig;
use penstock_core::units::{Bytes, Instant};

/// What happens at a gateway.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// A segment in the direction of the bottleneck, with the size and the ECN field of its packet.
    Outbound(PlainSegment, Bytes, Ecn),
    /// A segment from the far side of the bottleneck.
    Inbound(PlainSegment),
    /// Something that the discipline is told.
    Told(Fact),
}

/// What became of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// The window field when the segment left.
    pub window: u16,
    /// The fate of an outbound segment.
    pub fate: Option<Record>,
}

/// Plays steps in the order of time. Returns what became of each segment, in their order, and the discipline's own report
/// after the last departure, as JSON.
///
/// # Errors
/// Returns the errors of [`replay`](super::replay).
pub fn play(
    steps: impl IntoIterator<Item = (Instant, Step)>,
    config: &AnyConfig,
    link: LinkFacts,
    seed: u64,
) -> Result<(Vec<Seen>, Option<String>), ReplayError> {
    config.validate()?;
    let (mut windows, mut fates) = (Vec::new(), Vec::new());
    let note = |record: &Record| fates.push(*record);
    let mut run = Run::new(config.name(), config.build(&link), link.rate, &Conditions::seeded(seed), note);
    for (t, step) in steps {
        run.advance_to(t)?;
        windows.extend(run.take_step(t, step)?);
    }
    run.drain()?;
    let report = run.server.qdisc().report().map(|report| report.to_string());
    run.finish()?;
    let mut fates = fates.into_iter();
    let seen = |(window, outbound): (u16, bool)| Seen { window, fate: if outbound { fates.next() } else { None } };
    Ok((windows.into_iter().map(seen).collect(), report))
}

impl<Q: Qdisc<super::Job> + AckPath, F: FnMut(&Record)> Run<Q, F> {
    /// Returns the window with which a segment leaves, and whether it is an outbound one; `None` if the step is no segment.
    fn take_step(&mut self, t: Instant, step: Step) -> Result<Option<(u16, bool)>, ReplayError> {
        match step {
            Step::Told(fact) => {
                self.server.on_fact(&fact, self.now);
                self.server.offer(self.now, &mut self.ledger);
                Ok(None)
            }
            Step::Inbound(mut segment) => {
                self.server.qdisc_mut().inbound(&mut segment, self.now);
                Ok(Some((segment.window, false)))
            }
            Step::Outbound(mut segment, size, ecn) => {
                self.server.qdisc_mut().outbound(&mut segment, self.now);
                let (flow, label) = (segment.flow, segment.flow.0.into());
                self.arrive(&Arrival { t, flow, label, node: None, size, ecn, ern: Ern::default(), dscp: None })?;
                Ok(Some((segment.window, true)))
            }
        }
    }
}
