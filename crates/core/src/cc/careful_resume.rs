//! Careful Resume: a connection begins with half of the window that an earlier one had on the same path.
//!
//! Source: RFC 9959 (draft-ietf-tsvwg-careful-resume). An option of NewReno and CUBIC, to which somebody else tells what was
//! saved: `resume_cwnd` and `resume_rtt`.
//!
//! | phase | enters on | window | leaves to |
//! |---|---|---|---|
//! | Reconnaissance §3.2 | start | that of the control, from IW | Unvalidated: IW is acknowledged, more is to be sent, and saved_rtt/2 < RTT <= 10 saved_rtt; else Normal |
//! | Unvalidated §3.3 | path confirmed | jump_cwnd = saved_cwnd/2, paced over one RTT; does not grow | Validating: the window is full, its first packet is acknowledged, or an RTT has passed |
//! | Validating §3.4 | | flight_size; grows by the control | Normal: its last packet is acknowledged |
//! | Safe Retreat §3.5 | congestion, or the RTT fell | PipeSize/2; does not grow | Normal, ssthresh = Beta PipeSize: the last packet is acknowledged |
//! | Normal §3.7 | | that of the control | |
//!
//! PipeSize is flight_size when the window jumps, plus all that is delivered from then on. At the end of Unvalidated, with
//! flight_size < IW or flight_size <= PipeSize, the window is PipeSize (at least IW) and nothing remains to be validated.
//! A timeout ends it all (§3.6). Cost: O(1) per event. Tests: `start/tests.rs`, where each MUST of the text has one that names its
//! section.
//!
//! DIFFERENCE: nothing is saved, and no parameters expire (§3.1, §4.3.1): a scenario tells what a connection is to resume, and
//! whoever writes it for two flows breaks the rule of one connection at a time (§3.2). `max_jump` has no limit of its own. Pinned by
//! `two_connections_jump_as_far_as_they_are_told`.

use super::start::Saved;
use super::{Ack, Loss};
use crate::units::{Bytes, Instant, Rate, Span};

/// jump_cwnd is this part of saved_cwnd (§3.3), and CWND in Safe Retreat this part of PipeSize (§3.5).
const HALF: u64 = 2;
/// A round trip of this part of saved_rtt, or less, is that of another path (§3.2, §4.2.1).
const RTT_LEAST_PART: u64 = 2;
/// So is one of more than this many times saved_rtt (§4.2.1).
const RTT_MOST_TIMES: u64 = 10;
/// 1/Beta, with the default of Beta (§2.4).
const PER_BETA: u64 = 2;
/// The least window, in segments, after congestion (§3.5).
const LEAST_SEGMENTS: u64 = 2;

/// Where a connection is. Numbers of bytes count from the beginning of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Reconnaissance,
    /// `first` is the number of the first unvalidated byte.
    Unvalidated {
        since: Instant,
        first: Bytes,
    },
    /// `last` is the number after the last unvalidated byte.
    Validating {
        last: Bytes,
    },
    SafeRetreat {
        last: Bytes,
        window: Bytes,
    },
    Normal,
}

/// What an event asks of the control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The control takes the event itself.
    Control,
    /// The window stays.
    Hold,
    /// The window is this from now on; the threshold stays.
    Window(Bytes),
    /// The window is this, and then the control takes the event.
    WindowThenControl(Bytes),
    /// Window and threshold are this.
    Retreat(Bytes),
    /// Window and threshold with which the control goes on.
    Leave(Bytes, Bytes),
}

/// The state of Careful Resume for one connection.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CarefulResume {
    /// saved_cwnd and saved_rtt; `None` once they have turned out to be wrong.
    saved: Option<Saved>,
    mss: Bytes,
    initial_window: Bytes,
    phase: Phase,
    /// Bytes acknowledged.
    acked: Bytes,
    /// [`Ack::delivered`] of the last ACK.
    delivered: Bytes,
    pipe_size: Bytes,
    jump_cwnd: Bytes,
    /// The current RTT: the sample of the last ACK.
    rtt: Span,
}

impl CarefulResume {
    /// Creates the state of a new connection.
    pub fn new(saved: Saved, mss: Bytes, initial_window: Bytes) -> Self {
        Self {
            saved: Some(saved),
            mss,
            initial_window,
            phase: Phase::Reconnaissance,
            acked: Bytes::ZERO,
            delivered: Bytes::ZERO,
            pipe_size: Bytes::ZERO,
            jump_cwnd: saved.cwnd / HALF,
            rtt: Span::ZERO,
        }
    }

    /// True if the control is on its own.
    pub fn is_over(&self) -> bool {
        self.phase == Phase::Normal
    }

    /// True while the control takes all events itself.
    pub fn leaves_alone(&self) -> bool {
        matches!(self.phase, Phase::Reconnaissance | Phase::Normal)
    }

    /// True in Safe Retreat.
    pub fn is_retreating(&self) -> bool {
        matches!(self.phase, Phase::SafeRetreat { .. })
    }

    /// The round trip time is too short for the path on which these parameters were saved (§3.2).
    fn is_too_short(&self, rtt: Span) -> bool {
        self.saved.is_none_or(|saved| rtt * RTT_LEAST_PART <= saved.rtt)
    }

    /// Takes what every ACK tells, whatever the phase.
    fn note(&mut self, ack: &Ack) {
        self.acked += ack.acked;
        self.pipe_size += ack.delivered.saturating_sub(self.delivered);
        self.delivered = ack.delivered;
        self.rtt = ack.rtt.unwrap_or(ack.srtt);
    }

    /// Takes an ACK outside loss recovery.
    pub fn on_ack(&mut self, ack: &Ack) -> Step {
        let step = match self.phase {
            // Everything that the window allows had left before this ACK came (§3.3, last_unvalidated_packet_sent).
            Phase::Unvalidated { .. }
                if ack.in_flight + self.mss > self.jump_cwnd && !self.is_too_short(ack.min_rtt) =>
            {
                Some(self.validate(ack.in_flight))
            }
            _ => None,
        };
        self.note(ack);
        match (self.phase, step) {
            (Phase::Unvalidated { since, first }, _) => self.send_unvalidated(ack, since, first),
            (Phase::SafeRetreat { .. }, _) => self.retreat_on(),
            (phase, step) => {
                self.end_of_path_check(phase, ack);
                match step {
                    Some(Step::Window(cwnd)) => Step::WindowThenControl(cwnd),
                    _ => Step::Control,
                }
            }
        }
    }

    /// Gives up on a path that is too short, and ends with the last unvalidated packet.
    fn end_of_path_check(&mut self, phase: Phase, ack: &Ack) {
        let over = match phase {
            Phase::Reconnaissance => self.is_too_short(ack.min_rtt),
            Phase::Validating { last } => self.acked >= last,
            _ => false,
        };
        if over {
            self.phase = Phase::Normal;
        }
    }

    /// Takes an ACK in the Unvalidated Phase.
    fn send_unvalidated(&mut self, ack: &Ack, since: Instant, first: Bytes) -> Step {
        let flight = ack.in_flight.saturating_sub(ack.acked);
        if self.is_too_short(ack.min_rtt) {
            return self.retreat(self.acked + flight);
        }
        if self.acked > first || ack.now > since + self.rtt { self.validate(flight) } else { Step::Hold }
    }

    /// Jumps after an ACK that confirms the path: returns the new window. The control has taken the ACK, and its window is `cwnd`.
    /// A sender that has no more to send than that window allows waits (§3.2).
    pub fn confirm(&mut self, ack: &Ack, cwnd: Bytes) -> Option<Bytes> {
        let due = self.phase == Phase::Reconnaissance && self.acked >= self.initial_window && ack.cwnd_limited;
        let saved = self.saved.filter(|_| due)?;
        if ack.min_rtt > saved.rtt * RTT_MOST_TIMES || self.jump_cwnd <= cwnd {
            self.phase = Phase::Normal;
            return None;
        }
        let flight = ack.in_flight.saturating_sub(ack.acked);
        self.pipe_size = flight;
        self.phase = Phase::Unvalidated { since: ack.now, first: self.acked + flight };
        Some(self.jump_cwnd)
    }

    /// Ends the Unvalidated Phase with `flight` in flight (§3.3, Check flight_size).
    fn validate(&mut self, flight: Bytes) -> Step {
        if flight < self.initial_window || flight <= self.pipe_size {
            self.phase = Phase::Normal;
            return Step::Window(self.pipe_size.max(self.initial_window));
        }
        self.phase = Phase::Validating { last: self.acked + flight };
        Step::Window(flight)
    }

    /// When the Unvalidated Phase ends at the latest; [`Instant::MAX`] in all others.
    pub fn deadline(&self) -> Instant {
        match self.phase {
            Phase::Unvalidated { since, .. } => since + self.rtt + Span::from_nanos(1),
            _ => Instant::MAX,
        }
    }

    /// Data is about to be sent more than a round trip after the window jumped.
    pub fn on_deadline(&mut self, flight: Bytes) -> Step {
        self.validate(flight)
    }

    /// The pace of the Unvalidated Phase: jump_cwnd in each round trip (§4.3.2).
    pub fn pacing_rate(&self) -> Option<Rate> {
        let Phase::Unvalidated { .. } = self.phase else { return None };
        let bits = u128::from(self.jump_cwnd.get()) * 8 * 1_000_000_000 / u128::from(self.rtt.as_nanos().max(1));
        Some(Rate::from_bps(u64::try_from(bits).unwrap_or(u64::MAX).max(1)))
    }

    /// Takes a congestion signal. The control takes it as well.
    pub fn on_loss(&mut self, loss: &Loss) -> Step {
        match self.phase {
            Phase::Unvalidated { .. } => self.retreat(self.acked + loss.in_flight),
            Phase::Validating { last } => self.retreat(last),
            Phase::SafeRetreat { window, .. } => Step::Retreat(window),
            Phase::Reconnaissance | Phase::Normal => {
                self.phase = Phase::Normal;
                Step::Control
            }
        }
    }

    /// What is validated of the window.
    pub fn pipe_size(&self) -> Bytes {
        self.pipe_size
    }

    fn retreat(&mut self, last: Bytes) -> Step {
        let window = (self.pipe_size / HALF).max(LEAST_SEGMENTS * self.mss);
        self.saved = None;
        self.phase = Phase::SafeRetreat { last, window };
        Step::Retreat(window)
    }

    /// A further loss takes the window down with the control's.
    pub fn shrink(&mut self, to: Bytes) -> Step {
        let Phase::SafeRetreat { last, window } = self.phase else { return Step::Control };
        let window = window.min(to);
        self.phase = Phase::SafeRetreat { last, window };
        Step::Retreat(window)
    }

    /// Takes an ACK within loss recovery.
    pub fn on_recovery_ack(&mut self, ack: &Ack) {
        self.note(ack);
    }

    /// An ACK or the end of a recovery in Safe Retreat: it ends when the last unvalidated packet is acknowledged.
    pub fn retreat_on(&mut self) -> Step {
        match self.phase {
            Phase::SafeRetreat { last, window } if self.acked >= last => {
                self.phase = Phase::Normal;
                Step::Leave(window, self.pipe_size / PER_BETA)
            }
            Phase::SafeRetreat { window, .. } => Step::Retreat(window),
            _ => Step::Control,
        }
    }
}
