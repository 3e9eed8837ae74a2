//! The results of a run: as one JSON object, or as a table for people.

use crate::packets::Lines;
use penstock_appliance::change::Change;
use penstock_appliance::record::Place;
use penstock_conntrack::Gauges;
use penstock_linux::stalls::Stalls;
use penstock_shaper::classify::Unclassified;
use penstock_shaper::emissions::AlgorithmTime;
use penstock_shaper::histogram::{Percentiles, shown};
use penstock_shaper::report::{DISTURBED_ABOVE, DirectionReport};
use serde::{Serialize, Serializer};
use std::fmt;

/// A wire that was idle for more than this part of the run although a packet waited to be read is disturbed.
const STARVED_PART: f64 = 0.01;
/// The results of a whole run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Name of the wire, if the file has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wire: Option<String>,
    /// The left and the right interface, with their namespaces.
    pub ends: [Place; 2],
    /// Duration of the run in seconds.
    pub elapsed_s: f64,
    /// Seed of every random stream.
    pub seed: u64,
    /// Why the run ended: `running`, `duration`, a signal, or a sentence about what failed.
    pub ended: String,
    /// True if the machine had an effect on the numbers; `disturbed_by` says which.
    pub disturbed: bool,
    /// Why the run is disturbed: `lateness` (the 99th percentile in a direction was above `disturbed_above_us`), `unread`
    /// (the kernel dropped packets that were not read in time), `starved` (a wire was idle for more than 1% of the run
    /// although a packet waited to be read), `stalled`, `algorithm` (one of somebody's own takes longer than its budget).
    pub disturbed_by: Vec<&'static str>,
    /// The bound [`DISTURBED_ABOVE`] in microseconds.
    pub disturbed_above_us: f64,
    /// Numbers of packets that were not shown to elements on the ACK path.
    pub unclassified: Unclassified,
    /// Times in which the process was stopped, or the machine suspended.
    pub stalled: Stalls,
    /// Number of times at which there was no memory for another packet, which then waited in the kernel.
    pub short_of_memory: u64,
    /// What became of the lines of `--packets`; `None` without that file.
    pub packets_file: Option<Lines>,
    /// What became of the packets of `--pcapng`.
    #[serde(serialize_with = "captured")]
    pub pcapng_file: Option<Lines>,
    /// The time that an algorithm of somebody's own takes; `None` without one.
    pub algorithm: Option<AlgorithmTime>,
    /// What was set while packets passed, the first 256 values.
    pub changes: Vec<Change>,
    /// Processor time of this process so far, in seconds.
    pub cpu_s: f64,
    /// True if the processors of the machine were kept awake.
    pub awake: bool,
    /// Numbers of packets that were forwarded at once, from left to right and from right to left; `None` unless all are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bare: Option<[u64; 2]>,
    /// Counters of the table of connections.
    pub flows: Gauges,
    /// Results from left to right.
    pub forward: DirectionReport,
    /// Results from right to left.
    pub reverse: DirectionReport,
}

/// What became of the packets of a capture: they are no lines.
fn captured<S: Serializer>(lines: &Option<Lines>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Captured<'a> {
        packets: u64,
        lost: u64,
        error: &'a Option<String>,
    }
    let captured = lines.as_ref().map(|Lines { lines, lost, error }| Captured { packets: *lines, lost: *lost, error });
    captured.serialize(serializer)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(wire) = &self.wire {
            writeln!(f, "wire {wire}")?;
        }
        writeln!(f, "{:<22}{:>24}{:>24}", format!("{:.3} s", self.elapsed_s), "left to right", "right to left")?;
        for ((name, forward), (_, reverse)) in self.forward.rows().into_iter().zip(self.reverse.rows()) {
            writeln!(f, "{name:<22}{forward:>24}{reverse:>24}")?;
        }
        for (way, report) in [("left to right", &self.forward), ("right to left", &self.reverse)] {
            if let Some(through) = &report.through {
                writeln!(f, "through a kernel, {way}: {through}")?;
            }
        }
        let Unclassified { malformed, untracked, not_from_syn, signed } = self.unclassified;
        writeln!(
            f,
            "forwarded unseen: {malformed} malformed, {untracked} untracked, {not_from_syn} without a TCP start, {signed} \
             signed"
        )?;
        let Gauges { entries_most, capacity, half_open_most, promoted, .. } = self.flows;
        writeln!(
            f,
            "connections: {promoted}, at most {entries_most} of {capacity} at once and {half_open_most} half-open"
        )?;
        for Change { at_s, key, value } in &self.changes {
            writeln!(f, "set after {at_s:.3} s: {key}={value}")?;
        }
        if let Some(Lines { lines, lost, .. }) = &self.packets_file {
            writeln!(f, "file of packets: {lines} lines, {lost} lost")?;
        }
        if let Some(Lines { lines, lost, .. }) = &self.pcapng_file {
            writeln!(f, "capture: {lines} packets, {lost} lost")?;
        }
        if let Some(AlgorithmTime { packet_us, budget_us }) = &self.algorithm {
            let Percentiles { mean, p99, .. } = packet_us;
            let [mean, p99, budget] = [*mean, *p99, *budget_us].map(|us| shown([us], 1, "us"));
            writeln!(f, "algorithm: {mean} per packet, p99 {p99}, budget {budget}")?;
        }
        writeln!(f, "processor time: {:.3} s", self.cpu_s)?;
        if let Some([forward, reverse]) = self.bare {
            writeln!(f, "forwarded at once: {forward} packets from left to right, {reverse} from right to left")?;
        }
        if self.short_of_memory > 0 {
            writeln!(f, "short of memory {} times: packets waited in the kernel", self.short_of_memory)?;
        }
        if self.disturbed {
            let why: Vec<String> = self.disturbed_by.iter().map(|cause| self.sentence(cause)).collect();
            writeln!(f, "DISTURBED: {}; try --realtime, or a quieter machine", why.join("; "))?;
        }
        writeln!(f, "ended: {}", self.ended)
    }
}

impl Report {
    /// Finds out whether the machine had an effect on the numbers, and why.
    #[must_use]
    pub fn judged(mut self) -> Self {
        let ways = [&self.forward, &self.reverse];
        let causes = [
            ("lateness", ways.iter().any(|way| way.lateness_us.p99 > self.disturbed_above_us)),
            ("unread", ways.iter().any(|way| way.unread > 0)),
            ("starved", ways.iter().any(|way| way.starved_s > STARVED_PART * self.elapsed_s)),
            ("stalled", self.stalled.any()),
            ("algorithm", self.algorithm.as_ref().is_some_and(AlgorithmTime::is_over)),
        ];
        self.disturbed_by = causes.into_iter().filter_map(|(cause, is)| is.then_some(cause)).collect();
        self.disturbed = !self.disturbed_by.is_empty();
        self
    }

    /// Returns the report as one line of JSON, or as a table.
    pub fn text(&self, json: bool) -> serde_json::Result<String> {
        if json { Ok(serde_json::to_string(self)? + "\n") } else { Ok(self.to_string()) }
    }

    /// Returns the reports of several wires as one line of JSON, or as tables.
    pub fn text_of_all(reports: &[Self], json: bool) -> serde_json::Result<String> {
        if json {
            return Ok(serde_json::json!({ "wires": serde_json::to_value(reports)? }).to_string() + "\n");
        }
        let texts: Vec<String> = reports.iter().map(Self::to_string).collect();
        Ok(texts.join("\n"))
    }

    /// Returns what a cause of disturbance means.
    fn sentence(&self, cause: &str) -> String {
        let ([there, back], stalled) = ([&self.forward, &self.reverse], &self.stalled);
        match cause {
            "unread" => format!("{} packets were not read in time", there.unread + back.unread),
            "starved" => {
                let seconds = there.starved_s + back.starved_s;
                format!("a wire was idle for {seconds:.3} s while packets waited to be read")
            }
            "stalled" => format!(
                "the process was stopped {} times, {:.3} s in all, and the machine suspended for {:.3} s",
                stalled.times, stalled.total_s, stalled.suspended_s
            ),
            "algorithm" => "the algorithm takes longer than its budget".to_owned(),
            _ => format!("more than 1% of the packets were over {DISTURBED_ABOVE} late"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Options;
    use clap::Parser;
    use penstock_core::rng::Streams;
    use penstock_core::units::Span;
    use penstock_core::wire::RealPacket;
    use penstock_shaper::emissions::Emissions;
    use penstock_shaper::intake::Intake;
    use penstock_shaper::path::Path;

    /// The report of 10 s, each with what went wrong in one direction.
    fn report(change: impl Fn([&mut Intake; 2], [&mut Emissions; 2], &mut Stalls)) -> Report {
        let options = Options::try_parse_from(["penstock-emulate", "--rate", "1Mbit/s"]).unwrap();
        let plan = options.plans(&()).unwrap().remove(0);
        let configs = plan.settings.0.map(|way| way.config);
        let path: Path<RealPacket> = Path::new(&configs[0], &configs[1], Streams::new(1));
        let (mut intakes, mut emissions, mut stalled) = <([Intake; 2], [Emissions; 2], Stalls)>::default();
        change(intakes.each_mut(), emissions.each_mut(), &mut stalled);
        let [forward, reverse] = penstock_shaper::direction::Direction::BOTH.map(|d| {
            let at = d.index();
            DirectionReport::new(&configs[at], path.direction(d), &emissions[at], &intakes[at])
        });
        Report {
            wire: None,
            ends: ["l", "r"].map(|interface| Place { interface: interface.into(), netns: None }),
            elapsed_s: 10.0,
            seed: 1,
            ended: "duration".into(),
            disturbed: false,
            disturbed_by: Vec::new(),
            disturbed_above_us: 1000.0,
            unclassified: Unclassified::default(),
            stalled,
            short_of_memory: 0,
            packets_file: None,
            pcapng_file: Some(Lines { lines: 3, lost: 1, error: None }),
            algorithm: None,
            changes: Vec::new(),
            cpu_s: 0.0,
            awake: false,
            bare: None,
            flows: Gauges::default(),
            forward,
            reverse,
        }
        .judged()
    }

    /// 0.1 + 0.2 s of 10 s are more than 1 % in which a packet waited and the wire was idle.
    #[test]
    fn what_disturbed_a_run_is_told_in_a_sentence() {
        let ms = Span::from_millis;
        let late = |e: &mut Emissions, ms: u64| e.lateness.record(Span::from_millis(ms));
        let starved = |[there, back]: [&mut Intake; 2], [a, b]: [u64; 2]| {
            (there.starved, back.starved) = (ms(a), ms(b));
        };
        let stopped = |stalls: &mut Stalls| (stalls.times, stalls.total_s) = (2, 1.5);
        for (report, cause, sentence) in [
            (
                report(|i, _, _| starved(i, [100, 200])),
                "starved",
                "a wire was idle for 0.300 s while packets waited to be read",
            ),
            (report(|_, [_, e], _| late(e, 2)), "lateness", "more than 1% of the packets were over 1ms late"),
            (report(|[i, _], _, _| i.unread = 7), "unread", "7 packets were not read in time"),
            (report(|_, _, s| stopped(s)), "stalled", "the process was stopped 2 times, 1.500 s in all"),
        ] {
            assert!(report.disturbed && report.disturbed_by == [cause], "{:?}", report.disturbed_by);
            assert!(report.to_string().contains(&format!("DISTURBED: {sentence}")), "{report}");
        }
        let calm = report(|i, _, _| starved(i, [100, 100]));
        assert!(!calm.disturbed && calm.disturbed_by.is_empty(), "{calm}");
    }

    #[test]
    fn a_report_is_a_table_or_a_line_of_json() {
        let report = report(|_, _, _| ());
        let text = report.to_string();
        assert!(!text.contains("DISTURBED") && !text.contains("short of memory"), "{text}");
        assert!(text.contains("capture: 3 packets, 1 lost\n") && text.ends_with("\nended: duration\n"), "{text}");
        assert_eq!(report.text(false).unwrap(), text);
        assert!(report.text(true).unwrap().contains(r#""pcapng_file":{"packets":3,"lost":1,"error":null}"#));
        let json = Report::text_of_all(&[report.clone(), report.clone()], true).unwrap();
        assert!(json.starts_with("{\"wires\":[{") && json.ends_with("}]}\n"), "{json}");
        assert_eq!(Report::text_of_all(&[report.clone(), report], false).unwrap(), format!("{text}\n{text}"));
    }
}
