//! The end of an audit: queues are emptied, deliveries are compared with what left, and the results with each other.

use crate::actors::AnyApplication;
use crate::audit::{Audit, Audited, Left, Promises, Rule};
use crate::network::Bottleneck;
use crate::run::Simulation;
use crate::scenario::Scenario;
use crate::summary::{BottleneckSummary, FlowSummary, Quantiles, RttSummary, Summary};
use penstock_core::units::{Bytes, Instant, Span};
use serde_json::Value;

/// Numbers of summaries are rounded to six places.
const ROUNDED: f64 = 1e-6;
/// Round trips are measured in timestamps of a microsecond, at both ends.
const TICKS_MS: f64 = 0.002;
/// Keys of summaries that may be null, because there may be nothing of which they are the number.
const MAY_BE_NULL: [&str; 10] =
    ["goodput_bps", "completion_s", "ecn_lost_why", "mean_1s", "worst_1s", "loss", "playout_ms", "late", "r", "mos"];

impl Simulation {
    /// Lets an audit follow the measured queues. Must be called before the run begins.
    pub fn audit(&mut self, scenario: &Scenario) {
        let queues = self.measured.bottlenecks.iter().map(|b| (b.name.clone(), promises(b)));
        let estimates = scenario.links.iter().any(|link| link.estimate.is_some());
        let is_constant = scenario.changes.is_empty() && scenario.handovers.is_empty() && !estimates;
        self.world.outlet.audit = Some(Box::new(Audit::new(queues, liars(scenario), is_constant)));
    }

    /// Ends the audit of a run that is over, and empties its queues; returns what broke a rule. A run without an audit
    /// has no packets.
    pub fn end_audit(&mut self) -> Audited {
        let summary = self.summary();
        let Some(mut audit) = self.world.outlet.audit.take() else { return Audited::default() };
        self.check_deliveries(&mut audit);
        audit.check_summary(&summary, self.now());
        self.check_paths(&mut audit, &summary);
        self.world.outlet.audit = Some(audit);
        self.drain();
        let Some(audit) = self.world.outlet.audit.take() else { return Audited::default() };
        let packets = audit.queues.iter().map(|books| books.entered.packets).sum();
        Audited { packets, violations: audit.found }
    }

    /// Asks the measured queues for packets until they must be empty.
    fn drain(&mut self) {
        let world = &mut self.world;
        for (number, bottleneck) in (0..).zip(&self.measured.bottlenecks) {
            let end = world.links[bottleneck.link.index()].drain(world.now, &mut world.outlet);
            if let Some(audit) = &mut world.outlet.audit {
                audit.drained(number, end);
            }
        }
    }

    fn check_deliveries(&self, audit: &mut Audit) {
        for (number, bottleneck) in (0..).zip(&self.measured.bottlenecks) {
            let mut sum = 0;
            for id in &bottleneck.flows {
                if audit.liars.contains(id) {
                    continue;
                }
                let flow = &self.actors.flows[*id as usize];
                let left = audit.queues[number].left.get(id).copied().unwrap_or_default();
                audit.check_delivery(number, *id, flow.kind, flow.delivered(), left, self.now());
                sum += flow.delivered();
            }
            audit.check_sum(number, sum, self.now());
        }
        for (id, flow) in (0..).zip(&self.actors.flows) {
            if let AnyApplication::Tcp(tcp) = &flow.application
                && !audit.liars.contains(&id)
            {
                audit.check_ends(id, [tcp.client.acked(), tcp.server.delivered(), tcp.client.written()], self.now());
            }
        }
    }

    /// Compares round trips with delays, which must be those of the begin.
    fn check_paths(&self, audit: &mut Audit, summary: &Summary) {
        if !audit.is_constant {
            return;
        }
        let delay = |cursor: u32| {
            let route = self.world.outlet.routes[cursor as usize..].iter().take_while(|hop| **hop != crate::world::END);
            route.fold(Span::ZERO, |sum, hop| sum + self.world.delay(*hop))
        };
        let rates = self.measured.bottlenecks.iter().map(|b| (b, self.world.rate(b.link).as_bps() as f64));
        let rates: Vec<_> = rates.collect();
        for (flow, told) in self.actors.flows.iter().zip(&summary.flows) {
            // Such a receiver acknowledges what is still on its way.
            if audit.liars.contains(&told.id) {
                continue;
            }
            let [there, back] = flow.routes.map(delay);
            audit.check_round_trip(told, (there + back).as_millis_f64(), self.now());
            let crossed = rates.iter().filter(|(bottleneck, _)| bottleneck.flows.contains(&told.id));
            if let Some(rate) = crossed.map(|(_, rate)| *rate).min_by(f64::total_cmp) {
                audit.check_goodput(told, rate, self.now());
            }
        }
    }
}

fn promises(bottleneck: &Bottleneck) -> Promises {
    let Bottleneck { limit, may_idle, .. } = *bottleneck;
    Promises { limit, may_idle, order_by_kind: bottleneck.aqm == "dualpi2" }
}

/// Lists the flows whose receivers acknowledge what they have not got.
fn liars(scenario: &Scenario) -> Vec<u32> {
    let each = scenario.flows.iter().flat_map(|spec| std::iter::repeat_n(spec, spec.count as usize));
    (0..).zip(each).filter(|(_, spec)| spec.tcp.optimistic_ack > Bytes::ZERO).map(|(flow, _)| flow).collect()
}

impl Audit {
    /// Compares what a flow delivered with what of it has left a queue. Sessions deliver what their connections carry,
    /// which have numbers of their own.
    pub(super) fn check_delivery(
        &mut self,
        queue: usize,
        flow: u32,
        kind: &str,
        delivered: u64,
        left: Left,
        now: Instant,
    ) {
        let most = match kind {
            "bulk" | "transfer" => left.deliverable(),
            "cbr" | "onoff" | "video" => left.bytes,
            _ => return,
        };
        if delivered > most {
            let message = format!("flow {flow} delivered {delivered} bytes, and {most} have left");
            self.report_at(queue as u32, Rule::Delivered, now, message);
        }
    }

    /// Compares what all flows through a queue delivered with all payload that has left.
    pub(super) fn check_sum(&mut self, queue: usize, delivered: u64, now: Instant) {
        let left = self.queues[queue].payload;
        if delivered > left {
            let message = format!("{delivered} bytes were delivered, and {left} have left");
            self.report_at(queue as u32, Rule::Delivered, now, message);
        }
    }

    /// Compares both ends of a connection: acknowledged, delivered and written bytes.
    pub(super) fn check_ends(&mut self, flow: u32, [acked, delivered, written]: [u64; 3], now: Instant) {
        if acked > delivered || delivered > written {
            let message = format!("of {written} bytes {delivered} were delivered and {acked} acknowledged");
            self.report(Rule::Delivered, &format!("flow {flow}"), now, message);
        }
    }

    /// Compares the numbers of a summary with each other.
    pub(super) fn check_summary(&mut self, summary: &Summary, now: Instant) {
        let told = serde_json::to_value(summary).unwrap_or_default();
        if let Some(path) = null_in(&told) {
            self.report(Rule::Summary, &path, now, "it is no number".to_owned());
        }
        for (number, queue) in summary.bottlenecks.iter().enumerate() {
            self.check_queue(number, queue, now);
        }
        let spread = [("goodput_1s_bps", &summary.goodput_1s_bps)];
        spread.into_iter().for_each(|(name, values)| self.check_quantiles(name, values, now));
        let jain = [summary.jain.overall, summary.jain.mean_1s, summary.jain.worst_1s];
        if !jain.iter().all(|index| index.is_nan() || (0.0..=1.0 + ROUNDED).contains(index)) {
            self.report(Rule::Summary, "jain", now, format!("{jain:?} are no indices"));
        }
        self.check_rtts("rtt_ms", &summary.rtt_ms, now);
        for flow in &summary.flows {
            self.check_rtts(&format!("flow {}", flow.id), &flow.rtt_ms, now);
            if flow.goodput_bps.is_nan() != (flow.start_s >= summary.duration_s) {
                let message = format!("it began after {} s, and its goodput is {}", flow.start_s, flow.goodput_bps);
                self.report(Rule::Summary, &format!("flow {}", flow.id), now, message);
            }
            let end = summary.duration_s - flow.start_s + ROUNDED;
            if flow.completion_s.is_some_and(|after| !(0.0..=end).contains(&after)) {
                let message = format!("it was complete after {:?} of {end} s", flow.completion_s);
                self.report(Rule::Summary, &format!("flow {}", flow.id), now, message);
            }
        }
    }

    fn check_queue(&mut self, number: usize, queue: &BottleneckSummary, now: Instant) {
        self.check_quantiles(&queue.name, &queue.queue_delay_ms, now);
        if !(0.0..=1.0 + ROUNDED).contains(&queue.utilization) {
            self.report(Rule::Summary, &queue.name, now, format!("its utilization is {}", queue.utilization));
        }
        if queue.queue_bytes.mean > queue.queue_bytes.max as f64 + ROUNDED {
            self.report(Rule::Summary, &queue.name, now, format!("{:?} waited", queue.queue_bytes));
        }
        let Some(books) = self.queues.get(number) else { return };
        let dropped = queue.drops_overflow + queue.drops_aqm;
        let told = [queue.packets_all, queue.bytes_all, dropped, queue.dropped_bytes, queue.marks];
        let (sent, lost) = (books.sent, books.dropped);
        let seen = [sent.packets, sent.bytes, lost.packets, lost.bytes, books.marked];
        if told != seen || queue.packets > queue.packets_all || queue.lost > queue.packets_all {
            let message = format!("sent, dropped, marked: the results have {told:?}, and there were {seen:?}");
            self.report(Rule::Summary, &queue.name, now, message);
        }
    }

    fn check_quantiles(&mut self, name: &str, of: &Quantiles, now: Instant) {
        let rising = [of.p10, of.p50, of.p90, of.p99, of.max];
        if *of == Quantiles::MISSING {
            return;
        }
        if !rising.is_sorted() || of.mean > of.max + ROUNDED || of.p10 < 0.0 || of.mean < 0.0 {
            self.report(Rule::Summary, name, now, format!("the quantiles are {of:?}"));
        }
    }

    fn check_rtts(&mut self, name: &str, of: &RttSummary, now: Instant) {
        let rising = [of.min, of.p10, of.p50, of.p90, of.p99];
        if *of == RttSummary::MISSING {
            return;
        }
        if !rising.is_sorted() || of.mean + ROUNDED < of.min || of.min < 0.0 {
            self.report(Rule::Summary, name, now, format!("the round trip times are {of:?}"));
        }
    }

    pub(super) fn check_round_trip(&mut self, flow: &FlowSummary, least_ms: f64, now: Instant) {
        // A round trip that was not measured is less than nothing.
        if flow.rtt_ms.min + TICKS_MS < least_ms {
            let message = format!("a round trip took {} ms, and the path takes {least_ms} ms", flow.rtt_ms.min);
            self.report(Rule::Summary, &format!("flow {}", flow.id), now, message);
        }
    }

    pub(super) fn check_goodput(&mut self, flow: &FlowSummary, rate_bps: f64, now: Instant) {
        if flow.goodput_bps > rate_bps * (1.0 + ROUNDED) {
            let message = format!("its goodput is {} bit/s over a link of {rate_bps} bit/s", flow.goodput_bps);
            self.report(Rule::Summary, &format!("flow {}", flow.id), now, message);
        }
    }
}

/// Returns the path of a number that is missing, and should not be: alone among others that are there. JSON has no such
/// numbers: they are written as null.
pub(super) fn null_in(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(i, item)| null_in(item).map(|path| format!("{i}/{path}")))
        }
        Value::Object(keys) if !keys.is_empty() && keys.values().all(Value::is_null) => None,
        Value::Object(keys) => {
            let mut keys = keys.iter().filter(|(key, value)| !(value.is_null() && MAY_BE_NULL.contains(&key.as_str())));
            keys.find_map(|(key, value)| null_in(value).map(|path| format!("{key}/{path}")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
