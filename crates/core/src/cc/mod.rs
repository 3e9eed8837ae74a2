//! Congestion control: the TCP endpoint detects loss, the control owns the window.
//!
//! Sizes are bytes. A control is told of events and asked for its window; it never reads a clock. The contract with the
//! endpoint, event by event:
//!
//! | the endpoint sees | it calls | the control |
//! |---|---|---|
//! | an ACK of new data outside loss recovery, or after a timeout | [`on_ack`](CongestionControl::on_ack) | grows |
//! | fast recovery begins, or an ECN echo; once per window | [`on_loss`](CongestionControl::on_loss) | sets `ssthresh` |
//! | recovery ended; at once for an ECN echo | [`on_recovered`](CongestionControl::on_recovered) | falls to `ssthresh` |
//! | the first timeout of a segment | [`on_rto`](CongestionControl::on_rto) | sets `ssthresh`, falls to one segment |
//! | new data after an idle time | [`on_idle`](CongestionControl::on_idle) | restarts |
//! | an ACK during loss recovery, if the control wants it | [`on_recovery_ack`](CongestionControl::on_recovery_ack) | measures |
//! | the time of the next burst, and data to send | [`on_burst`](CongestionControl::on_burst) | opens the window by a burst |
//!
//! During recovery the endpoint alone decides what may be sent (PRR, down to `ssthresh`); `cwnd` is not asked for.

use crate::units::{Instant, Rate, Span};

#[cfg(test)]
mod driver;

mod hystart;
mod window;

pub mod bbr;
pub mod bic;
pub mod c2ml;
pub mod compound;
pub mod cubic;
pub mod cubic_linux;
pub mod dctcp;
pub mod foreign;
pub mod highspeed;
pub mod hybla;
pub mod newreno;
pub mod noordwijk;
pub mod prague;
pub mod scalable;
pub mod vegas;
pub mod westwood;

use bbr::Bbr;
use bic::Bic;
use c2ml::C2ml;
use compound::Compound;
use cubic::Cubic;
use cubic_linux::CubicLinux;
use dctcp::Dctcp;
use foreign::Running;
use highspeed::HighSpeed;
use hybla::Hybla;
use newreno::NewReno;
use noordwijk::Noordwijk;
use prague::Prague;
use scalable::Scalable;
use vegas::Vegas;
use westwood::Westwood;

/// What a control is told when a connection begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Segment size in bytes; 0 is taken as 1.
    pub mss: u64,
    /// Initial window in bytes.
    pub initial_window: u64,
    /// Slow start threshold in bytes before the first signal; `u64::MAX` is none. BBR and Noordwijk have none.
    pub initial_ssthresh: u64,
    /// CUBIC's slow start is HyStart++.
    pub hystart: bool,
}

impl Setup {
    /// [`Setup::initial_ssthresh`] in segments; infinite if there is none.
    fn first_threshold(&self, mss: f64) -> f64 {
        if self.initial_ssthresh == u64::MAX { f64::INFINITY } else { self.initial_ssthresh as f64 / mss }
    }
}

/// What a control wants of its endpoint beyond the events above.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wants {
    /// [`Ack::rate`] is filled, and [`CongestionControl::on_recovery_ack`] called.
    pub rate: bool,
    /// The receiver acknowledges every segment.
    pub ack_per_segment: bool,
    /// Every ACK tells whether the segment it is for was marked (RFC 8257 §3.2), and [`Ack::marked`] is filled.
    pub accurate_ecn: bool,
    /// Segments carry ECT(1) (RFC 9331) instead of ECT(0).
    pub ect1: bool,
}

/// A sample of the delivery rate (draft-cheng-iccrg-delivery-rate-estimation): what was delivered between two points.
/// The first is the last delivery before the newest segment acknowledged was sent, the second this ACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateSample {
    /// [`Ack::delivered`] at the first point.
    pub prior_delivered: u64,
    /// The time between the points, as seen by the receiver or the sender, whichever is longer.
    pub interval: Span,
    /// The application had too little to send at the first point.
    pub app_limited: bool,
    /// Bytes in flight after this ACK.
    pub in_flight: u64,
    /// Bytes of the connection found lost so far, counted when they are sent again.
    pub lost: u64,
}

/// What an ACK of new data tells.
#[derive(Debug, Clone, Copy)]
pub struct Ack {
    /// When it arrived.
    pub now: Instant,
    /// Bytes newly acknowledged, cumulatively. After a timeout this may be more than a window.
    pub acked: u64,
    /// A new round trip time sample, if this ACK gave one.
    pub rtt: Option<Span>,
    /// Smoothed round trip time (RFC 6298).
    pub srtt: Span,
    /// Smallest round trip time of the connection so far.
    pub min_rtt: Span,
    /// Bytes in flight before this ACK.
    pub in_flight: u64,
    /// True when the flight was limited by the congestion window; a window not in use does not grow (RFC 7661).
    pub cwnd_limited: bool,
    /// Bytes of the connection delivered so far, with what was SACKed, counted from any number on.
    pub delivered: u64,
    /// Bytes of `acked` that arrived marked; only with [`Wants::accurate_ecn`].
    pub marked: u64,
    /// A rate sample; only with [`Wants::rate`].
    pub rate: Option<RateSample>,
}

/// A congestion signal.
#[derive(Debug, Clone, Copy)]
pub struct Loss {
    /// When it was noticed.
    pub now: Instant,
    /// Bytes in flight (FlightSize of RFC 5681).
    pub in_flight: u64,
    /// True for an ECN echo, false for a lost packet.
    pub ecn: bool,
}

/// A window algorithm.
pub trait CongestionControl {
    /// Congestion window in bytes.
    fn cwnd(&self) -> u64;
    /// Slow start threshold in bytes; before the first signal that of [`Setup`].
    fn ssthresh(&self) -> u64;
    /// New data was acknowledged outside loss recovery.
    fn on_ack(&mut self, ack: &Ack);
    /// Once per window of data: the network is congested. Sets `ssthresh`; the endpoint brings the window down.
    fn on_loss(&mut self, loss: &Loss);
    /// Loss recovery ended; the window becomes `ssthresh` unless the control knows better.
    fn on_recovered(&mut self, now: Instant);
    /// The retransmission timer fired for a segment not yet sent again: once per loss event (RFC 5681 §3.1).
    fn on_rto(&mut self, loss: &Loss);
    /// The connection was idle for longer than the retransmission timeout (RFC 5681 §4.1): restart the window.
    fn on_idle(&mut self, now: Instant, initial_window: u64);
    /// Pacing rate, if the control paces.
    fn pacing_rate(&self) -> Option<Rate> {
        None
    }
    /// What the control wants of its endpoint; it never changes.
    fn wants(&self) -> Wants {
        Wants::default()
    }
    /// Data was acknowledged during loss recovery; only with [`Wants::rate`].
    fn on_recovery_ack(&mut self, _ack: &Ack) {}
    /// When the next burst is due, for a control that sends in bursts: [`Instant::MAX`] is never, the past at once.
    fn next_burst(&self) -> Instant {
        Instant::MAX
    }
    /// The burst that was due may begin; its size and the next time are set.
    fn on_burst(&mut self, _now: Instant, _in_flight: u64) {}
    /// Somebody who knows the path better sets window and threshold. A control with a model of its own may ignore it.
    fn adopt(&mut self, _cwnd: u64, _ssthresh: u64) {}
    /// Bursts are to carry no more than this rate in segments of so many bytes; `None` ends it. Only for controls that
    /// send in bursts.
    fn limit_bursts(&mut self, _limit: Option<(Rate, u64)>) {}
}

/// Makes [`AnyCc`] of the list of controls.
macro_rules! controls {
    ($($variant:ident $type:ident $name:literal $about:literal $source:literal)*) => {
        /// Any control, by match and not by a table of functions: a control is asked several times per segment. All but
        /// the smallest are boxed, so that a flow that does without is small.
        #[derive(Debug, Clone, PartialEq)]
        pub enum AnyCc {
            /// NewReno.
            NewReno(NewReno),
            $(#[doc = $about] $variant(Box<$type>),)*
            /// One that is not in this crate.
            Foreign(Box<Running>),
            /// Any of them with a budget.
            C2ml(Box<C2ml<AnyCc>>),
        }

        /// The names of all controls.
        pub const NAMES: &[&str] = &["newreno", $($name),*];

        /// Name, one line, and source of each control.
        pub const ABOUT: &[(&str, &str, &str)] = &[
            ("newreno", "slow start, one segment more each round trip, half the window on loss", "RFC 5681, 6582, 3465"),
            $(($name, $about, $source)),*
        ];

        impl AnyCc {
            /// The control with this name.
            pub fn new(name: &str, setup: &Setup) -> Option<Self> {
                Some(match name {
                    "newreno" => Self::NewReno(NewReno::new(setup)),
                    $($name => Self::$variant(Box::new($type::new(setup))),)*
                    _ => return None,
                })
            }

            /// The same with a budget, as `form` says; segments have `headers` bytes besides payload.
            #[must_use]
            pub fn with_budget(self, setup: &Setup, form: c2ml::Form, headers: u64) -> Self {
                match form {
                    c2ml::Form::Off => self,
                    _ => Self::C2ml(Box::new(C2ml::new(self, setup, form, headers))),
                }
            }

            /// The budget of a control that has one.
            pub fn cooperation(&mut self) -> Option<&mut C2ml<AnyCc>> {
                match self {
                    Self::C2ml(cc) => Some(cc),
                    _ => None,
                }
            }

            /// Bytes on the heap.
            pub fn heap_bytes(&self) -> usize {
                match self {
                    Self::NewReno(_) => 0,
                    $(Self::$variant(_) => size_of::<$type>(),)*
                    Self::Foreign(_) => size_of::<Running>(),
                    Self::C2ml(cc) => size_of::<C2ml<AnyCc>>() + cc.control().heap_bytes(),
                }
            }

            /// The name with which [`AnyCc::new`] makes it, or that of a foreign one.
            pub fn name(&self) -> &str {
                match self {
                    Self::NewReno(_) => "newreno",
                    $(Self::$variant(_) => $name,)*
                    Self::Foreign(cc) => cc.name(),
                    Self::C2ml(cc) => cc.control().name(),
                }
            }
        }

        macro_rules! each {
            ($self:ident, $cc:ident => $call:expr) => {
                match $self {
                    Self::NewReno($cc) => $call,
                    $(Self::$variant($cc) => $call,)*
                    Self::Foreign($cc) => $call,
                    Self::C2ml($cc) => $call,
                }
            };
        }
    };
}

/// For what is asked with every packet: the two controls that are used most by a branch each, to be inlined; the others
/// by a call and a jump through a table.
macro_rules! most {
    ($self:ident, $cc:ident => $call:expr, $others:expr) => {
        if let Self::NewReno($cc) = $self {
            $call
        } else if let Self::Cubic($cc) = $self {
            $call
        } else {
            $others
        }
    };
}

controls! {
    Cubic Cubic "cubic" "the window is a cubic function of the time since the last loss" "RFC 9438, RFC 9406"
    CubicLinux CubicLinux "cubic-linux" "CUBIC in whole segments, as Linux computes it" "Linux tcp_cubic.c"
    Bic Bic "bic" "a binary search for the window of the last loss" "Xu, Harfoush, Rhee, INFOCOM 2004"
    HighSpeed HighSpeed "highspeed" "growth and reduction that depend on the window" "RFC 3649"
    Hybla Hybla "hybla" "a long path grows as fast as a short one" "Caini, Firrincieli, IJSCN 22, 2004"
    Westwood Westwood "westwood" "a loss leaves what the path carries, by an estimate of the bandwidth (Westwood+)" "Grieco, Mascolo, CCR 34(2), 2004"
    Scalable Scalable "scalable" "growth and reduction in proportion to the window" "Kelly, CCR 33(2), 2003"
    Vegas Vegas "vegas" "two to four segments in the queue, by round trip times" "Brakmo, Peterson, JSAC 13(8), 1995"
    Compound Compound "compound" "Reno's window, and beside it one that delay controls" "Tan, Song, Zhang, Sridharan, INFOCOM 2006"
    Noordwijk Noordwijk "noordwijk" "bursts by a timer, for satellite links with bandwidth on demand" "Roseti, Kristiansen, 2008; the Modena dissertation 2.2"
    Bbr Bbr "bbr" "the window and the pace are made of a model of the path (version 1)" "Cardwell et al., ACM Queue 14(5), 2016"
    Dctcp Dctcp "dctcp" "the window falls with the part of the packets that were marked" "RFC 8257"
    Prague Prague "prague" "a scalable control for L4S queues" "draft-briscoe-iccrg-prague-congestion-control"
}

/// True for a control that counts marks: without ECN it has nothing to go by.
pub fn needs_ecn(name: &str) -> bool {
    let setup = Setup { mss: 1, initial_window: 1, initial_ssthresh: u64::MAX, hystart: false };
    AnyCc::new(name, &setup).is_some_and(|cc| cc.wants().accurate_ecn)
}

impl AnyCc {
    #[inline(never)]
    fn cwnd_of_others(&self) -> u64 {
        each!(self, cc => cc.cwnd())
    }
    #[inline(never)]
    fn ssthresh_of_others(&self) -> u64 {
        each!(self, cc => cc.ssthresh())
    }
    #[inline(never)]
    fn on_ack_of_others(&mut self, ack: &Ack) {
        each!(self, cc => cc.on_ack(ack));
    }
}

impl CongestionControl for AnyCc {
    #[inline]
    fn cwnd(&self) -> u64 {
        most!(self, cc => cc.cwnd(), self.cwnd_of_others())
    }
    #[inline]
    fn ssthresh(&self) -> u64 {
        most!(self, cc => cc.ssthresh(), self.ssthresh_of_others())
    }
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        most!(self, cc => cc.on_ack(ack), self.on_ack_of_others(ack));
    }
    fn on_loss(&mut self, loss: &Loss) {
        each!(self, cc => cc.on_loss(loss));
    }
    fn on_recovered(&mut self, now: Instant) {
        each!(self, cc => cc.on_recovered(now));
    }
    fn on_rto(&mut self, loss: &Loss) {
        each!(self, cc => cc.on_rto(loss));
    }
    fn on_idle(&mut self, now: Instant, initial_window: u64) {
        each!(self, cc => cc.on_idle(now, initial_window));
    }
    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        each!(self, cc => cc.pacing_rate())
    }
    fn wants(&self) -> Wants {
        each!(self, cc => cc.wants())
    }
    fn on_recovery_ack(&mut self, ack: &Ack) {
        each!(self, cc => cc.on_recovery_ack(ack));
    }
    #[inline]
    fn next_burst(&self) -> Instant {
        each!(self, cc => cc.next_burst())
    }
    fn on_burst(&mut self, now: Instant, in_flight: u64) {
        each!(self, cc => cc.on_burst(now, in_flight));
    }
    fn adopt(&mut self, cwnd: u64, ssthresh: u64) {
        each!(self, cc => cc.adopt(cwnd, ssthresh));
    }
    fn limit_bursts(&mut self, limit: Option<(Rate, u64)>) {
        each!(self, cc => cc.limit_bursts(limit));
    }
}

#[cfg(test)]
mod tests {
    use super::driver::{self, MSS};
    use super::*;

    #[test]
    fn every_name_builds_its_control_and_no_other_name_does() {
        assert!(NAMES.iter().eq(ABOUT.iter().map(|(name, ..)| name)), "every control is described");
        for name in NAMES {
            let cc = AnyCc::new(name, &driver::SETUP).expect(name);
            assert_eq!((cc.cwnd(), cc.ssthresh(), cc.pacing_rate()), (10 * MSS, u64::MAX, None));
            assert_eq!(cc.name(), *name);
        }
        assert!(matches!(AnyCc::new("newreno", &driver::SETUP), Some(AnyCc::NewReno(_))));
        assert!(matches!(AnyCc::new("cubic", &driver::SETUP), Some(AnyCc::Cubic(_))));
        assert_eq!(AnyCc::new("tahoe", &driver::SETUP), None);
    }

    #[test]
    fn the_controls_that_count_marks_need_ecn() {
        let found: Vec<_> = NAMES.iter().copied().filter(|name| needs_ecn(name)).collect();
        assert_eq!(found, ["dctcp", "prague"]);
        assert!(!needs_ecn("tahoe"));
    }

    /// One of each event, to the control by itself and through the enum: the same state after each.
    fn same_through_the_enum<C: CongestionControl + Clone>(mut cc: C, wrap: impl Fn(C) -> AnyCc) {
        let mut any = wrap(cc.clone());
        let now = Instant::from_nanos(1_000_000);
        let events: [fn(&mut dyn CongestionControl, Instant); 5] = [
            |cc, _| cc.on_ack(&driver::ack(MSS, 100)),
            |cc, _| cc.on_loss(&driver::loss(10 * MSS)),
            |cc, now| cc.on_recovered(now),
            |cc, now| cc.on_idle(now, 3 * MSS),
            |cc, _| cc.on_rto(&driver::loss(8 * MSS)),
        ];
        for event in events {
            let before = any.clone();
            event(&mut cc, now);
            event(&mut any, now);
            assert_eq!(any, wrap(cc.clone()));
            assert_ne!(any, before, "each of these events changes something");
        }
    }

    #[test]
    fn the_enum_passes_every_event_on() {
        same_through_the_enum(NewReno::new(&driver::SETUP), AnyCc::NewReno);
        same_through_the_enum(Cubic::new(&driver::SETUP), |cc| AnyCc::Cubic(Box::new(cc)));
        same_through_the_enum(Bbr::new(&driver::SETUP), |cc| AnyCc::Bbr(Box::new(cc)));
        same_through_the_enum(Bic::new(&driver::SETUP), |cc| AnyCc::Bic(Box::new(cc)));
        same_through_the_enum(Compound::new(&driver::SETUP), |cc| AnyCc::Compound(Box::new(cc)));
        same_through_the_enum(Dctcp::new(&driver::SETUP), |cc| AnyCc::Dctcp(Box::new(cc)));
        same_through_the_enum(HighSpeed::new(&driver::SETUP), |cc| AnyCc::HighSpeed(Box::new(cc)));
        same_through_the_enum(Hybla::new(&driver::SETUP), |cc| AnyCc::Hybla(Box::new(cc)));
        same_through_the_enum(Noordwijk::new(&driver::SETUP), |cc| AnyCc::Noordwijk(Box::new(cc)));
        same_through_the_enum(Prague::new(&driver::SETUP), |cc| AnyCc::Prague(Box::new(cc)));
        same_through_the_enum(Scalable::new(&driver::SETUP), |cc| AnyCc::Scalable(Box::new(cc)));
        same_through_the_enum(Vegas::new(&driver::SETUP), |cc| AnyCc::Vegas(Box::new(cc)));
        same_through_the_enum(Westwood::new(&driver::SETUP), |cc| AnyCc::Westwood(Box::new(cc)));
    }

    proptest::proptest! {
        /// Whatever happens, there is a window to send with or a time at which it opens, a threshold of two segments, and no
    /// panic.
        #[test]
        fn no_order_of_events_leaves_a_connection_without_a_window(
            mss in 0u64..9000,
            events in proptest::collection::vec((0u8..8, 0u64..1 << 40, 0u64..100_000_000), 1..200),
        ) {
            for name in NAMES {
                let initial_ssthresh = if mss % 3 == 0 { 4 * mss } else { u64::MAX };
                let setup = Setup { mss, initial_window: 10 * mss.max(1), initial_ssthresh, hystart: mss % 2 == 1 };
                let mut cc = AnyCc::new(name, &setup).expect(name);
                let (mut now, mut delivered) = (Instant::ZERO, 0);
                for (what, bytes, gap_us) in &events {
                    now += Span::from_micros(*gap_us);
                    let loss = Loss { now, in_flight: *bytes, ecn: bytes % 2 == 0 };
                    delivered += bytes;
                    let rate = (bytes % 3 > 0).then_some(RateSample {
                        prior_delivered: delivered.saturating_sub(gap_us * 7),
                        interval: Span::from_micros(*gap_us),
                        app_limited: bytes % 5 == 0,
                        in_flight: bytes / 2,
                        lost: delivered / 3,
                    });
                    let facts = Ack { now, delivered, marked: bytes / 2, rate, ..driver::ack(*bytes, 100) };
                    match what {
                        0 | 1 => cc.on_ack(&Ack { cwnd_limited: *what == 0, ..facts }),
                        2 => cc.on_loss(&loss),
                        3 => cc.on_recovered(now),
                        4 => cc.on_rto(&loss),
                        5 => cc.on_idle(now, setup.initial_window),
                        6 => cc.on_recovery_ack(&facts),
                        _ => cc.on_burst(now, *bytes),
                    }
                    let opens = cc.next_burst() < Instant::MAX;
                    proptest::prop_assert!(cc.cwnd() >= mss || opens, "{name}: {} after {what}", cc.cwnd());
                    proptest::prop_assert!(cc.ssthresh() >= 2 * mss);
                }
            }
        }
    }
}
