//! The results of a run: as one JSON object, or as a table for people.

use crate::cli::Plan;
use penstock_shaper::classify::Unclassified;
use penstock_shaper::direction::Direction;
use penstock_shaper::emissions::{AlgorithmTime, Emissions, Stopwatch};

use crate::machine::Machine;
use crate::packets::Lines;
use penstock_appliance::change::Change;
use penstock_appliance::record::Place;
use penstock_conntrack::Gauges;
use penstock_core::packet::Packet;
use penstock_core::units::{Bytes, Span};
use penstock_linux::stalls::Stalls;
use penstock_shaper::bottleneck::Config;
use penstock_shaper::histogram::Percentiles;
use penstock_shaper::intake::Intake;
use penstock_shaper::path::Path;
use penstock_shaper::report::{DISTURBED_ABOVE, DirectionReport, Frames, Lent};
use serde::Serialize;
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
    pub pcapng_file: Option<Captured>,
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

/// What became of the packets of a capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Captured {
    /// Number of packets that were written.
    pub packets: u64,
    /// Number of packets that were lost: the file was too slow, or could not be written.
    pub lost: u64,
    /// The first error of the file; `None` if there was none.
    pub error: Option<String>,
}

/// What the emulator observed of itself and its surroundings.
pub struct Observed<'a> {
    /// How packets were written.
    pub emissions: [&'a Emissions; 2],
    /// How packets were read.
    pub intakes: [&'a Intake; 2],
    /// What became of frames at ports.
    pub frames: [Option<Frames>; 2],
    /// Numbers of packets that were not shown to elements on the ACK path.
    pub unclassified: Unclassified,
    /// Counters of the table of connections.
    pub flows: Gauges,
    /// The machine on which it runs.
    pub machine: &'a Machine,
    /// Numbers of packets that were forwarded at once in each direction, if all are.
    pub bare: Option<[u64; 2]>,
    /// The files of `--packets` and `--pcapng`.
    pub lines: [Option<Lines>; 2],
    /// The time that disciplines take, if one of them is of somebody's own crate.
    pub stopwatch: Option<&'a Stopwatch>,
    /// What was set while packets passed.
    pub changes: &'a [Change],
    /// What became of packets in the queues of the kernel.
    pub through: [Option<Lent>; 2],
    /// Why the run ended, and how long it took, up to now.
    pub run: (String, Span),
}

impl Report {
    /// Creates the report from the counters.
    pub fn new<P: Packet>(plan: &Plan, configs: &[Config; 2], path: &Path<P>, observed: Observed<'_>) -> Self {
        let one = |d: Direction| {
            let (emissions, intake) = (observed.emissions[d.index()], observed.intakes[d.index()]);
            let config = &configs[d.index()];
            let report = DirectionReport::new(config, path.direction(d), emissions, intake);
            DirectionReport { frames: observed.frames[d.index()], through: observed.through[d.index()], ..report }
        };
        let [packets_file, pcapng_file] = observed.lines.clone();
        let algorithm = observed.stopwatch.map(|watch| algorithm(configs, path, watch));
        let disturbed_by = causes(&observed, algorithm.as_ref());
        Self {
            wire: plan.wire.clone(),
            ends: [0, 1]
                .map(|at| Place { interface: plan.interfaces[at].name().to_owned(), netns: plan.netns[at].clone() }),
            elapsed_s: observed.run.1.as_secs_f64(),
            seed: plan.seed,
            ended: observed.run.0,
            disturbed: !disturbed_by.is_empty(),
            disturbed_by,
            disturbed_above_us: DISTURBED_ABOVE.as_nanos() as f64 / 1e3,
            unclassified: observed.unclassified,
            stalled: observed.machine.stalls,
            short_of_memory: observed.machine.short_of_memory,
            packets_file,
            pcapng_file: pcapng_file.map(|Lines { lines, lost, error }| Captured { packets: lines, lost, error }),
            algorithm,
            changes: observed.changes.to_vec(),
            cpu_s: cpu_s(),
            awake: observed.machine.awake.is_some(),
            bare: observed.bare,
            flows: observed.flows,
            forward: one(Direction::Forward),
            reverse: one(Direction::Reverse),
        }
    }
}

/// Returns the processor time of all threads of this process in seconds.
fn cpu_s() -> f64 {
    let spent = nix::time::clock_gettime(nix::time::ClockId::CLOCK_PROCESS_CPUTIME_ID);
    spent.map_or(0.0, |time| std::time::Duration::from(time).as_secs_f64())
}

/// Returns the time that the disciplines take, and the budget of this path.
fn algorithm<P: Packet>(configs: &[Config; 2], path: &Path<P>, watch: &Stopwatch) -> AlgorithmTime {
    let arrived = Direction::BOTH.map(|direction| path.direction(direction).server.stats().arrived);
    let (packets, bytes) = arrived.iter().fold((0, 0), |sum, one| (sum.0 + one.packets, sum.1 + one.bytes));
    let rate = configs.iter().map(|config| config.rate).max_by_key(|rate| rate.as_bps());
    watch.read(Bytes::new(bytes / packets.max(1)), rate.unwrap_or(configs[0].rate))
}

/// Returns why the machine had an effect on the numbers.
fn causes(observed: &Observed<'_>, algorithm: Option<&AlgorithmTime>) -> Vec<&'static str> {
    let starved = |intake: &Intake| intake.starved.as_secs_f64() > STARVED_PART * observed.run.1.as_secs_f64();
    [
        ("lateness", observed.emissions.iter().any(|e| e.lateness.percentile(99.0) > DISTURBED_ABOVE)),
        ("unread", observed.intakes.iter().any(|intake| intake.unread > 0)),
        ("starved", observed.intakes.iter().any(|intake| starved(intake))),
        ("stalled", observed.machine.stalls.any()),
        ("algorithm", algorithm.is_some_and(AlgorithmTime::is_over)),
    ]
    .into_iter()
    .filter_map(|(cause, is)| is.then_some(cause))
    .collect()
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
        if let Some(Captured { packets, lost, .. }) = &self.pcapng_file {
            writeln!(f, "capture: {packets} packets, {lost} lost")?;
        }
        if let Some(AlgorithmTime { packet_us, budget_us }) = &self.algorithm {
            let Percentiles { mean, p99, .. } = packet_us;
            writeln!(f, "algorithm: {mean:.1} us per packet, p99 {p99:.1} us, budget {budget_us:.1} us")?;
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
    /// Returns the report as one line of JSON, or as a table.
    ///
    /// # Errors
    /// Fails if the report cannot be written as JSON.
    pub fn text(&self, json: bool) -> serde_json::Result<String> {
        if json { Ok(serde_json::to_string(self)? + "\n") } else { Ok(self.to_string()) }
    }

    /// Returns the reports of several wires as one line of JSON, or as tables.
    ///
    /// # Errors
    /// Fails if a report cannot be written as JSON.
    pub fn text_of_all(reports: &[Self], json: bool) -> serde_json::Result<String> {
        if json {
            return Ok(serde_json::json!({ "wires": serde_json::to_value(reports)? }).to_string() + "\n");
        }
        let texts: Vec<String> = reports.iter().map(Self::to_string).collect();
        Ok(texts.join("\n"))
    }

    /// Returns what a cause of disturbance means.
    fn sentence(&self, cause: &str) -> String {
        let both = [&self.forward, &self.reverse];
        match cause {
            "unread" => format!("{} packets were not read in time", both.iter().map(|d| d.unread).sum::<u64>()),
            "starved" => format!(
                "a wire was idle for {:.3} s while packets waited to be read",
                both.iter().map(|d| d.starved_s).sum::<f64>()
            ),
            "stalled" => format!(
                "the process was stopped {} times, {:.3} s in all, and the machine suspended for {:.3} s",
                self.stalled.times, self.stalled.total_s, self.stalled.suspended_s
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
    use penstock_core::wire::RealPacket;

    /// The report of 10 s in which packets waited for so many milliseconds while a wire was idle.
    fn report(starved: [u64; 2]) -> Report {
        let plan = Options::try_parse_from(["penstock-emulate", "--rate", "1Mbit/s"]).unwrap().plan().unwrap();
        let path: Path<RealPacket> = Path::new(&plan.bottlenecks[0], &plan.bottlenecks[1], Streams::new(1));
        let intakes = starved.map(|ms| {
            let mut intake = Intake::default();
            intake.starved = Span::from_millis(ms);
            intake
        });
        let observed = Observed {
            emissions: [&Emissions::default(), &Emissions::default()],
            intakes: intakes.each_ref(),
            frames: [None, None],
            unclassified: Unclassified::default(),
            flows: Gauges::default(),
            machine: &Machine::new(1, None),
            bare: None,
            lines: [None, None],
            stopwatch: None,
            changes: &[],
            through: [None; 2],
            run: ("duration".into(), Span::from_secs(10)),
        };
        Report::new(&plan, &plan.bottlenecks, &path, observed)
    }

    /// 0.1 + 0.2 s of 10 s are more than 1 % in which a packet waited and the wire was idle.
    #[test]
    fn a_starved_wire_is_told_in_a_sentence() {
        let text = report([100, 200]).to_string();
        let sentence = "DISTURBED: a wire was idle for 0.300 s while packets waited to be read; try --realtime";
        assert!(text.contains(sentence), "{text}");
    }

    #[test]
    fn a_run_that_nothing_disturbed_says_nothing_of_it() {
        let report = report([0, 0]);
        assert!(!report.disturbed && report.disturbed_by.is_empty());
        let text = report.to_string();
        assert!(!text.contains("DISTURBED") && !text.contains("short of memory"), "{text}");
        assert!(text.ends_with("\nended: duration\n"), "{text}");
        assert_eq!(report.text(false).unwrap(), text);
        let json = Report::text_of_all(&[report.clone(), report.clone()], true).unwrap();
        assert!(json.starts_with("{\"wires\":[{") && json.ends_with("}]}\n"), "{json}");
        assert_eq!(Report::text_of_all(&[report.clone(), report], false).unwrap(), format!("{text}\n{text}"));
    }
}
