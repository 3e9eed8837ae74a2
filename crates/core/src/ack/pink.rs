//! PINK, passive inverse feedback: writes smaller windows into passing ACKs, so that senders never fill the queue.
//!
//! Source: Casoni, Grazia, Klapez, Patriciello, "How to avoid TCP congestion without dropping packets: an effective AQM
//! called PINK", Computer Communications 103 (2017), §3 (eq. 1), §3.1 (eq. 2, Table 1, Figures 2 to 4), §4. Window
//! semantics: RFC 9293 §3.8.6, RFC 7323 §2.
//!
//! A sender has at most one advertised window in flight per round trip. The gateway knows the link, counts the flows
//! and measures their round trip times, so it can tell each flow the window that is exactly its share:
//!
//! ```text
//! B_i = floor(BW * RTT_i_min * c / n)                                              (eq. 1)
//! B_i = floor(BW * RTT_i_min * c / n) + floor(BW_free * RTT_i_min * c / n_good)    (eq. 2)
//! ```
//!
//! BW is the rate of the link, RTT_i_min the smallest *whole* round trip (WAN half + LAN half), n the number of flows
//! that count, c the part of the link for payload. BW_free is what flows that cannot use their share (*bad* flows)
//! leave to the n_good others. The sum of all B_i is at most the bandwidth-delay product, so the queue is as well
//! (Theorem 1).
//!
//! | phase | begins with | windows | counts in n |
//! |---|---|---|---|
//! | Unseen | - | untouched | no |
//! | Stranger | a segment of a flow whose SYN was missed: its window scale is unknown | untouched | while it sends data |
//! | Opening | SYN without ACK, from either side | SYN untouched | from its first data on |
//! | Open | SYN-ACK: both options known | clamped, from the SYN-ACK on | from its first data on |
//! | Closed | a credible RST, or the outbound FIN acknowledged | untouched | no |
//!
//! Invariants: no window is raised, zeroed, or cut below one segment; with `shrink = "advance"` no right edge moves
//! left (unless the window scale is coarse, or the flow has nothing more to send); `started + woken = active + waiting +
//! ended + expired`. Packets are never judged. Cost: O(1) per segment, 128 bytes per flow. What each rule is for is
//! explained in `docs/algorithms/pink.md`.
//!
//! DIFFERENCE: the whole RTT replaces the WAN half (`the_share_is_that_of_the_whole_round_trip`).
//! DIFFERENCE: claims of bad flows are kept, not BW_free (`eq_2_by_hand`, `what_a_flow_left_returns_when_it_goes`,
//! `the_letter_of_the_figures_gives_out_more_than_there_is`).
//! DIFFERENCE: who cannot use its share is measured, and an idle flow holds nothing, unless `reallocation = "paper"`
//! (`who_has_nothing_more_to_send_leaves_its_share_with_the_next_ack`,
//! `a_flow_of_one_short_segment_takes_from_others_what_it_sends`, `delayed_acks_cost_no_packet`,
//! `flows_that_the_budget_of_their_node_holds_back_leave_the_rest_to_others`,
//! `idle_flows_take_nothing_from_their_node`, `a_flow_that_is_alone_with_a_budget_keeps_it`,
//! `who_can_use_more_of_a_budget_again_takes_nothing_from_other_nodes`). What idle flows may send at once is bounded for all together, for which the
//! right edge of a flow that has nothing more to send may move left
//! (`what_idle_flows_may_send_at_once_is_bounded_for_all_together`, `theorem_1_with_flows_that_pause_and_wake`).
//! DIFFERENCE: the mean of windows is over time, unless `window = "dither"`, and a flow steps up when others have stepped
//! down (`what_is_due_follows_the_time_that_a_round_took`, `a_flow_steps_up_when_others_have_stepped_down`,
//! `the_sum_of_windows_stays_that_of_the_shares`, `nothing_is_owed_for_a_pause`,
//! `a_sender_that_splits_segments_gets_no_room_for_a_tail`).
//! DIFFERENCE: a cut takes effect as ACKs advance, unless `shrink = "immediate"`
//! (`a_cut_takes_effect_as_acks_advance`, `an_immediate_cut_moves_the_edge_left`).
//! DIFFERENCE: windows are whole segments and first flights are half, unless `window = "literal"`
//! (`windows_dither_between_whole_segments`, `the_first_flight_is_half_the_share`, `literal_windows_are_eq_1`).
//! DIFFERENCE: windows grow as ACKs arrive, and not into what others still have in flight
//! (`a_larger_share_is_given_out_at_its_own_pace`, `who_grow_share_half_the_product_or_half_the_queue`,
//! `a_newcomer_waits_for_cuts_of_longer_round_trips`).
//! DIFFERENCE: the round trip is that of a full segment (`the_round_trip_is_that_of_a_full_segment`).
//! DIFFERENCE: no window is below one segment; ACKs whose share is are counted (`a_share_below_one_segment_is_counted`,
//! `the_part_of_acks_and_the_flows_below_one_segment_are_told`).
//! DIFFERENCE: a FIN counts when it is acknowledged (`a_flow_ends_when_its_fin_is_acknowledged`); idle and silent flows
//! do not count (`a_flow_that_never_sends_stops_counting`, `an_idle_flow_stops_counting_and_its_data_bring_it_back`),
//! unless `sampling = "off"` (`counting_every_syn_gives_the_link_to_the_flood`).
//! DIFFERENCE: sampling does not wait for a drop (`a_flood_costs_the_capacity_it_occupies_and_no_more`).
//! DIFFERENCE: flows whose SYN was missed count (`unknown_scale_means_hands_off`).
//! DIFFERENCE: with a coarse window scale a right edge may move left by less than one unit of the field
//! (`a_coarse_scale_still_lets_a_cut_happen`).

use crate::ack_path::{AckPath, Kept};
use crate::allocation::Members;
use crate::fact::Fact;
use crate::judge::{Aqm, Meta};
use crate::packet::{FlowId, TcpFlags, TcpView};
use crate::qdisc::{Backlog, Verdict};
use crate::rng::Rng;
use crate::units::{Bytes, Instant, Limit, Rate, Span};

mod backlog;
mod behind;
mod census;
mod config;
mod flow;
mod gain;
mod growth;
mod handover;
mod handshake;
mod hosts;
mod kept;
mod lists;
mod owners;
mod place;
mod rate;
mod share;
mod steps;
#[cfg(test)]
mod tests;

pub use behind::Queue;
pub use census::{CensusError, PinkStats};
pub use config::{Behind, Config, RateFrom, Reallocation, Sampling, Shrink, Window};
pub use hosts::Standing;

use backlog::Backlogs;
use census::Census;
use flow::{COARSE, FIN_SENT, Flight, Flow, GROWS, HELD, KNOWN, LACKING, Phase, up};
use hosts::Hosts;
use owners::Owners;
use rate::Estimator;
use share::{CREDIT, MAX_WINDOW, MILLI, Shares, payload_rate, rate_of, time_of, window_of, wire_rate};
use steps::{Owed, Step};

/// The state of PINK for one direction of a link.
#[derive(Debug, Clone)]
pub struct Pink {
    config: Box<Config>,
    shares: Shares,
    flows: Vec<Flow>,
    census: Census,
    owners: Owners,
    /// Sums over hosts, if shares are those of hosts first.
    hosts: Option<Box<Hosts>>,
    /// How the last segment stands to its window.
    standing: Option<(FlowId, u32, Standing)>,
    /// The rate BW that is shared out now.
    rate: Rate,
    estimator: Option<Box<Estimator>>,
    /// Sum of the surplus of all flows, in bytes per second: the rate of data in flight beyond shares.
    surplus: u64,
    /// When the surplus will have drained.
    surplus_until: Instant,
    /// The limit of the queue; unlimited until [`Pink::before`] sets it.
    room: Limit,
    /// Number of flows whose windows are growing.
    growing: u64,
    backlogs: Backlogs,
    owed: Owed,
    /// The last segment, if it keeps to its window.
    kept: Option<Kept>,
    stats: PinkStats,
}

/// The inputs of the decision about the window of an ACK.
struct AckContext {
    now: Instant,
    /// Bytes of payload in a full segment.
    full: u64,
    /// Bytes that one unit of the window field stands for.
    unit: u64,
    /// Window which the receiver advertised, in bytes.
    told: u64,
    /// Largest window in bytes for which the discipline behind PINK accepts the flow's packets.
    taken: u64,
    /// The budget of the flow's node holds it back: its level is no less than `taken`, but for a segment ("demand").
    held_back: bool,
    /// The same, and no other flow of the node could use what this one leaves.
    own: bool,
    /// Round trip time of a full segment; `None` while none is known.
    rtt: Option<Span>,
    /// Window in bytes which the flow would get if it could use it.
    level: u64,
    /// Window in bytes which the flow gets; `None` while no round trip time is known.
    share: Option<u64>,
}

impl Pink {
    /// Creates PINK without flows, for a link of `rate` or of the rate in the configuration if it has one.
    pub fn new(config: &Config, rate: Rate) -> Self {
        let rate = config.rate.unwrap_or(rate);
        Self {
            shares: Shares::new(payload_rate(rate, config.reserve, config.c)),
            census: Census::new(config),
            flows: Vec::new(),
            owners: Owners::default(),
            hosts: None,
            standing: None,
            rate,
            estimator: (config.rate_from == RateFrom::Estimated).then(|| Box::new(Estimator::new(rate))),
            surplus: 0,
            surplus_until: Instant::ZERO,
            room: Limit::Bytes(Bytes::new(u64::MAX)),
            growing: 0,
            backlogs: Backlogs::default(),
            owed: Owed::default(),
            kept: None,
            stats: PinkStats::default(),
            config: Box::new(config.clone()),
        }
    }

    /// Tells how much the queue may hold, so that growing windows cause only bursts for which the queue has room.
    pub fn before(self, room: Limit) -> Self {
        Self { room, ..self }
    }

    /// Returns the counters since the start.
    pub fn stats(&self) -> &PinkStats {
        &self.stats
    }

    /// Returns the number of flows that count: n of eq. 1.
    pub fn active(&self) -> u64 {
        self.stats.active
    }

    /// Number of bytes of state per flow.
    pub const BYTES_PER_FLOW: usize = size_of::<Flow>();

    /// Returns the memory allocated for the table of flows, unused places included.
    pub fn memory(&self) -> Bytes {
        Bytes::new((self.flows.capacity() * size_of::<Flow>()) as u64)
    }

    /// Returns the rate BW that is shared out, told or estimated.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    fn share_out(&mut self, rate: Rate) {
        self.rate = rate;
        self.shares.capacity = payload_rate(rate, self.config.reserve, self.config.c);
    }

    /// Returns the index of a segment's flow in the table, which grows for a new index. `None` beyond `max_flows`.
    #[inline]
    fn index<S: TcpView>(&mut self, segment: &S) -> Option<usize> {
        self.index_of(segment.flow())
    }

    fn index_of(&mut self, flow: FlowId) -> Option<usize> {
        let id = flow.0;
        if id >= self.config.max_flows {
            self.stats.beyond_table += 1;
            return None;
        }
        let id = id as usize;
        if id >= self.flows.len() {
            if id >= self.flows.capacity() {
                // Reserve an eighth more than needed; the default growth would double the table.
                self.flows.reserve_exact(id + 1 - self.flows.len() + id / 8);
            }
            self.flows.resize_with(id + 1, Flow::default);
        }
        Some(id)
    }

    /// Does what both directions have in common: timeouts, SYN, RST. Returns the flow, or `None` if nothing more is to
    /// be done for the segment.
    #[inline]
    fn arrive<S: TcpView>(&mut self, segment: &S, outbound: bool, now: Instant) -> Option<usize> {
        self.expire(now);
        let id = self.index(segment)?;
        let flags = segment.flags();
        if flags.has(TcpFlags::RST) {
            self.on_rst(id, segment, outbound, now);
            return None;
        }
        if flags.has(TcpFlags::SYN) && !flags.has(TcpFlags::ACK) && !self.on_syn(id, segment, outbound, now) {
            return None;
        }
        match self.flows[id].phase {
            Phase::Unseen => {
                self.flows[id].phase = Phase::Stranger;
                self.stats.left_alone += 1;
                Some(id)
            }
            Phase::Closed if outbound && self.flows[id].reopens(segment, now) => {
                let flow = &mut self.flows[id];
                flow.phase = if flow.has(KNOWN) { Phase::Open } else { Phase::Stranger };
                flow.set(FIN_SENT, false);
                Some(id)
            }
            Phase::Closed => {
                if !outbound && flags.has(TcpFlags::ACK) {
                    self.flows[id].pass_closed(segment);
                }
                None
            }
            _ => Some(id),
        }
    }

    /// Returns true with "demand".
    #[inline]
    fn demands(&self) -> bool {
        self.config.reallocation == Reallocation::Demand
    }

    /// Returns the window of a bad flow with "max-min": eq. 1 or twice what the flow uses, whichever is larger, so that
    /// the flow can show that it needs more.
    fn room_to_grow(&self, flow: &Flow, rtt: Span) -> u64 {
        let doubled = window_of(2 * MILLI * u64::from(flow.claim), rtt, 1);
        self.shares.equal(rtt).max(doubled)
    }

    /// Decides whether a sending flow is good or bad, by the window it could use (Figures 2 to 4). A flow which counts
    /// only because of its SYN stays good.
    #[inline]
    fn judge(&mut self, id: usize, ack: u32, context: &AckContext, rtt: Span, now: Instant) {
        let flow = &self.flows[id];
        if !flow.is_busy() {
            return;
        }
        if flow.flight() == Flight::Later && (context.own || flow.has(LACKING) && !self.wants_less(id)) {
            self.note_budget(id, context, rtt);
        }
        if context.own {
            return self.flows[id].forget_interval();
        }
        let flow = &self.flows[id];
        if self.demands() && !self.wants_less(id) && flow.is_done(ack) {
            let claim = rate_of(u64::from(ack.wrapping_sub(flow.acked)), rtt);
            self.flows[id].forget_interval();
            return self.set_lacking(id, Some(claim));
        }
        if self.flows[id].flight() != Flight::Later {
            return;
        }
        let usable = context.told.min(context.taken);
        match self.config.reallocation {
            Reallocation::Off => {}
            Reallocation::Paper if usable < context.level => self.set_lacking(id, Some(rate_of(usable, rtt))),
            Reallocation::Paper if usable > context.level && flow.has(LACKING) => self.set_lacking(id, None),
            Reallocation::Paper => {}
            Reallocation::MaxMin | Reallocation::Demand => self.judge_by_use(id, context, rtt, now),
        }
    }

    /// Decides with "max-min" whether a flow is good or bad, at the end of a measurement interval.
    #[inline(never)]
    fn judge_by_use(&mut self, id: usize, context: &AckContext, rtt: Span, now: Instant) {
        let Some((used, more)) = self.flows[id].answer(context.full, rtt, now) else { return };
        let claim = used.saturating_add(used / 8); // room to grow until the end of the next interval
        // Whether a flow grows shows only against an interval before.
        let flow = &self.flows[id];
        let first = self.demands() && flow.claim == 0 && !flow.has(LACKING);
        let held_back = self.demands() && context.taken < context.level;
        let could_use = if held_back { context.taken } else { context.level };
        let good = more || first || window_of(MILLI * u64::from(claim), rtt, 1) >= could_use;
        if good && held_back {
            self.set_held_back(id, rate_of(context.taken, rtt));
        } else if good {
            self.set_lacking(id, None);
            self.flows[id].claim = used;
        } else {
            self.set_lacking(id, Some(claim));
        }
        self.flows[id].forget_interval();
    }

    fn context<S: TcpView>(&self, id: usize, segment: &S, budget: Option<Rate>, now: Instant) -> AckContext {
        let flow = &self.flows[id];
        let syn = segment.flags().has(TcpFlags::SYN);
        let scale = if syn { 0 } else { flow.scale().unwrap_or(0) }; // RFC 7323 §2.2: never in a SYN
        let full = flow.segment(segment.timestamps().is_some());
        let seen = flow.round_trip().or_else(|| flow.probe.wan_at_least(now).filter(|_| flow.flight() == Flight::None));
        let rtt = seen.map(|rtt| rtt + time_of(full, self.rate));
        let level = rtt.map_or(0, |rtt| self.level_of(id, full, rtt));
        let (taken, users) = rtt.map_or((MAX_WINDOW, 1), |rtt| self.taken(id, budget, rtt));
        let held_back = self.demands() && self.owners.has_node(id) && taken < MAX_WINDOW.min(level + full);
        AckContext {
            now,
            full,
            unit: 1 << scale,
            told: u64::from(segment.window()) << scale,
            taken,
            held_back,
            own: held_back && users == 1,
            rtt,
            level,
            share: rtt.map(|_| level.min(taken)),
        }
    }

    /// Clamps the window of an inbound segment that acknowledges something.
    fn clamp<S: TcpView>(&mut self, id: usize, segment: &mut S, budget: Option<Rate>, now: Instant) {
        let mut context = self.context(id, segment, budget, now);
        let by_use = matches!(self.config.reallocation, Reallocation::MaxMin | Reallocation::Demand);
        if let Some(rtt) = context.rtt {
            if !segment.flags().has(TcpFlags::SYN) {
                self.judge(id, segment.ack(), &context, rtt, now);
            }
            if by_use && self.wants_less(id) {
                let most = match self.config.reallocation {
                    Reallocation::Demand => self.allowance(id, context.full, rtt),
                    _ => self.room_to_grow(&self.flows[id], rtt),
                };
                context.share = context.share.map(|share| share.min(most));
            }
            if let Some(estimator) = &mut self.estimator {
                estimator.note_round_trip(rtt);
            }
        }
        let surplus = self.note_surplus(id, segment.ack(), &context, now);
        self.stats.acks += 1;
        let small = context.share.is_some_and(|share| share < context.full);
        self.stats.below_one_segment += u64::from(small);
        self.set_small(id, small && self.flows[id].listed.is_some());
        let edge = self.demands().then_some(self.flows[id].edge);
        let ours = self.write(id, segment, &context, surplus);
        let flow = &mut self.flows[id];
        flow.mark(HELD, ours);
        if by_use && !flow.is_measuring() && flow.flight() == Flight::Later {
            flow.ask(edge, ours, now);
        }
    }

    /// Returns the window of a flow with this share at an ACK, before growth: it ends a round and steps if that is due.
    #[inline]
    fn due_window(
        &mut self,
        id: usize,
        ack: u32,
        share: u64,
        before: Option<u64>,
        lacks: bool,
        context: &AckContext,
    ) -> u64 {
        let &AckContext { full, unit, .. } = context;
        let (steady, coarse) = (self.config.window == Window::Steady, COARSE * unit > full);
        let beyond = if steady { self.backlogs.beyond(full, coarse, self.rate) } else { Span::ZERO };
        let settled = steady && (self.flows[id].has(GROWS) || lacks);
        let flow = &mut self.flows[id];
        let owed = flow.credit;
        let most = if steady { flow.most_owed(flow.stride(full, unit)) } else { 0 }.max(CREDIT * full.max(unit));
        let due = flow.turn_round(ack, most, settled, context.now, |flow| match context.rtt {
            Some(rtt) if steady => flow.due(share, rtt, beyond, context.now),
            _ => share,
        });
        let steps = steady && flow.flight() == Flight::Later;
        match before.filter(|_| steps) {
            Some(before) => {
                let crowded = self.is_crowded(full, context.rtt);
                let segment = self.flows[id].stride(full, unit);
                self.step(id, &Step { share, due, before, segment, crowded }, owed, unit)
            }
            None => self.config.window.grant(flow, share, full, unit),
        }
    }

    /// Writes the window. Returns true if PINK's share, and not the receiver's window, limits the flow. If only the pace
    /// of growth limits a bad flow the result is false: that does not show that the flow could use more than its claim.
    fn write<S: TcpView>(&mut self, id: usize, segment: &mut S, context: &AckContext, surplus: u64) -> bool {
        let &AckContext { full, unit, told, share, .. } = context;
        let (ack, demands, wants_less) = (segment.ack(), self.demands(), self.wants_less(id));
        // A flow that its node's budget holds back uses all of its window, though it lacks.
        let lacks = wants_less && (demands || context.taken >= context.level);
        let flow = &mut self.flows[id];
        let before = flow.held();
        if before.is_none() {
            let allowed = flow.edge;
            flow.begin(ack, full, id);
            self.note_birth(id, ack, allowed);
        }
        let flow = &mut self.flows[id];
        let newly = flow.note_ack(ack, full);
        flow.let_through(ack, 0); // the ACK of a window probe may be beyond the edge
        if told == 0 {
            return false; // a zero window is never changed
        }
        // Without a round trip time there is no share: the window grows by half of what is acknowledged.
        let Some(share) = share.or(before.map(|before| before + newly / 2)) else {
            flow.let_through(ack, told);
            return false;
        };
        let (steady, coarse) = (self.config.window == Window::Steady, COARSE * unit > full);
        let mut granted = self.due_window(id, ack, share, before.filter(|_| !lacks), lacks, context);
        let by_share = granted < told;
        if self.config.window != Window::Literal {
            let free = (surplus > 0).then(|| share.saturating_sub(surplus));
            let room = self.grow(id, before, newly, granted, free, context);
            granted = granted.min(up(room.max(full), unit));
        }
        let flow = &mut self.flows[id];
        if steady && !coarse && !flow.has(GROWS) {
            granted = flow.without_tail(ack, granted, full, unit);
        }
        let granted = self.young_window(id, ack, granted, full, unit);
        let flow = &mut self.flows[id];
        let idle = demands && flow.has(LACKING) && flow.is_done(ack);
        let allowed = if idle { granted } else { self.config.shrink.allow(flow, ack, granted, full, unit) };
        let written = allowed.min(told);
        if written < told {
            segment.set_window((written / unit) as u16);
            self.stats.rewritten += 1;
        }
        if idle {
            flow.edge = ack; // nothing is in flight, so the edge may move left
        }
        flow.let_through(ack, written);
        written < told && (by_share || !wants_less)
    }
}

impl AckPath for Pink {
    const ACTIVE: bool = true;

    fn outbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        let Some(id) = self.arrive(segment, true, now) else { return };
        let before = self.flows[id].probe.outbound_end();
        self.flows[id].probe.outbound(segment, now);
        self.note_answer(id, segment, true);
        self.note_standing(id, segment.payload_len(), before);
        if segment.payload_len() > 0 {
            self.note_kept(id, before);
            self.note_sending(id, now);
            let exact = self.demands();
            self.flows[id].note_data(segment, exact, now);
            let stamped = segment.timestamps().is_some();
            self.note_held(id, stamped);
            self.note_short(id, stamped);
        }
        if segment.flags().has(TcpFlags::FIN) {
            self.flows[id].set(FIN_SENT, true);
        }
    }

    fn inbound<S: TcpView>(&mut self, segment: &mut S, now: Instant) {
        self.inbound_within(segment, None, now);
    }

    fn kept(&mut self) -> Option<Kept> {
        self.kept.take()
    }

    fn shares(&self) -> Option<(Rate, Members)> {
        let reserve = self.config.reserve.map_or(0, Rate::as_bps);
        let Shares { n, lacking, claims, .. } = self.shares;
        let claims = wire_rate(claims, self.config.c);
        Some((Rate::from_bps(self.rate.as_bps().saturating_sub(reserve)), Members { n, lacking, claims }))
    }

    fn inbound_within<S: TcpView>(&mut self, segment: &mut S, budget: Option<Rate>, now: Instant) {
        let Some(id) = self.arrive(segment, false, now) else { return };
        if self.flows[id].phase != Phase::Stranger && !self.flows[id].believes_ack(segment) {
            self.stats.implausible += 1;
            return;
        }
        self.flows[id].probe.inbound(segment, now);
        self.note_answer(id, segment, false);
        let flow = &self.flows[id];
        if !segment.flags().has(TcpFlags::ACK) {
            return;
        }
        if flow.has(FIN_SENT) && flow.probe.outbound_end() == Some(segment.ack()) {
            return self.end(id, now);
        }
        if flow.phase == Phase::Open {
            self.clamp(id, segment, budget, now);
        }
    }
}

impl Aqm for Pink {
    fn on_dequeue(&mut self, packet: &Meta, _: Span, backlog: Backlog, now: Instant, _: &mut Rng) -> Verdict {
        self.backlogs.note(backlog.bytes);
        if let Some(estimator) = &mut self.estimator
            && estimator.note_departure(packet.size, backlog.bytes, self.config.c, now)
        {
            let rate = estimator.rate();
            self.share_out(rate);
        }
        Verdict::Pass
    }

    fn on_overflow(&mut self, now: Instant) {
        self.sample(now);
    }

    fn on_empty(&mut self, _: Instant) {
        if let Some(estimator) = &mut self.estimator {
            estimator.note_empty();
        }
    }

    fn on_fact(&mut self, fact: &Fact, now: Instant) {
        match *fact {
            Fact::Rate(rate) if self.config.rate.is_none() && self.estimator.is_none() => self.share_out(rate),
            Fact::Advised(Members { n, lacking, claims }) => {
                let claims = if claims == 0 { 0 } else { payload_rate(Rate::from_bps(claims), None, self.config.c) };
                self.shares.advised = Members { n, lacking, claims };
            }
            Fact::Owner { flow, node } => self.set_owner(flow, node),
            Fact::FlowGone(flow) => self.forget(flow, now),
            Fact::Opened(opening) => self.take_over(&opening, now),
            _ => {}
        }
    }

    /// Returns the counters, the current rate, and the part of ACKs whose flow had a share below one segment.
    fn report(&self) -> Option<serde_json::Value> {
        let mut report = serde_json::to_value(self.stats).ok()?;
        report["rate_bps"] = self.rate.as_bps().into();
        report["below_one_segment_share"] = self.stats.below_fraction().into();
        Some(report)
    }
}
