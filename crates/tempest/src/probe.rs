//! Measures the cost of a part of a run: time and, where the machine provides them, instructions, cycles and energy.
//! Only this file accesses the machine.

#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "the cost of a scheduler is what it measures")]

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

/// The directory of Intel's and AMD's energy counters, with one zone for each processor package.
const ZONES: &str = "/sys/class/powercap";

/// The cost of one part of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cost {
    pub ns: f64,
    pub instructions: Option<u64>,
    pub cycles: Option<u64>,
    /// Energy of the whole processor package, which includes other load on the machine.
    pub microjoules: Option<f64>,
}

/// Reads the clock and the counters.
#[derive(Debug)]
pub(crate) struct Probe {
    counters: Option<counters::Counters>,
    /// Why the processor's counters are not read; `None` if they are.
    pub missing: Option<String>,
    zones: Vec<Zone>,
}

impl Probe {
    /// Creates a probe with the counters that this machine has.
    pub fn new() -> Self {
        let (counters, missing) = match counters::Counters::open() {
            Ok(counters) => (Some(counters), None),
            Err(why) => (None, Some(why.to_string())),
        };
        Self { counters, missing, zones: Zone::all() }
    }

    /// Runs `work` and returns its result and its cost.
    pub fn measure<T>(&mut self, work: impl FnOnce() -> T) -> (T, Cost) {
        let energy: Vec<Option<u64>> = self.zones.iter().map(Zone::read).collect();
        let counting = self.counters.as_mut().is_some_and(counters::Counters::start);
        let begin = Instant::now();
        let done = work();
        let ns = begin.elapsed().as_nanos() as f64;
        let counted = if counting { self.counters.as_mut().and_then(counters::Counters::stop) } else { None };
        let used =
            self.zones.iter().zip(energy).map(|(zone, before)| zone.since(before?)).collect::<Option<Vec<f64>>>();
        let microjoules = used.filter(|used| !used.is_empty()).map(|used| used.iter().sum());
        (done, Cost { ns, instructions: counted.map(|c| c.0), cycles: counted.map(|c| c.1), microjoules })
    }
}

/// An energy counter, which wraps after `range` microjoules.
#[derive(Debug)]
struct Zone {
    counter: PathBuf,
    range: u64,
}

impl Zone {
    /// The counters that may be read; on many systems only root may read them.
    fn all() -> Vec<Self> {
        let entries = fs::read_dir(ZONES).into_iter().flatten().flatten();
        let packages = entries.filter(|entry| is_package(&entry.file_name().to_string_lossy()));
        let zone = |path: PathBuf| {
            let range = fs::read_to_string(path.join("max_energy_range_uj")).ok()?.trim().parse().ok()?;
            let zone = Self { counter: path.join("energy_uj"), range };
            zone.read().map(|_| zone)
        };
        packages.filter_map(|entry| zone(entry.path())).collect()
    }

    fn read(&self) -> Option<u64> {
        fs::read_to_string(&self.counter).ok()?.trim().parse().ok()
    }

    fn since(&self, before: u64) -> Option<f64> {
        self.read().map(|now| passed(before, now, self.range) as f64)
    }
}

/// True for a package, such as `intel-rapl:0`; `intel-rapl:0:0` is a part of it.
fn is_package(name: &str) -> bool {
    name.starts_with("intel-rapl:") && name.matches(':').count() == 1
}

fn passed(before: u64, now: u64, range: u64) -> u64 {
    if now >= before { now - before } else { now + range.saturating_sub(before) }
}

#[cfg(target_os = "linux")]
mod counters {
    use perf_event::events::Hardware;
    use perf_event::{Builder, Counter};

    /// The counters of this machine cannot be read.
    #[derive(Debug, thiserror::Error)]
    #[error("not available here: the processor's counters cannot be opened ({0})")]
    pub(super) struct Unavailable(std::io::Error);

    /// The processor's counters for this thread, in user mode.
    #[derive(Debug)]
    pub(super) struct Counters {
        instructions: Counter,
        cycles: Counter,
    }

    impl Counters {
        pub fn open() -> Result<Self, Unavailable> {
            let open = |event| Builder::new(event).build().map_err(Unavailable);
            Ok(Self { instructions: open(Hardware::INSTRUCTIONS)?, cycles: open(Hardware::CPU_CYCLES)? })
        }

        pub fn start(&mut self) -> bool {
            let both = [&mut self.instructions, &mut self.cycles];
            both.into_iter().all(|counter| counter.reset().is_ok() && counter.enable().is_ok())
        }

        /// Instructions and cycles since the start; `None` if they cannot be read.
        pub fn stop(&mut self) -> Option<(u64, u64)> {
            self.instructions.disable().ok()?;
            self.cycles.disable().ok()?;
            Some((self.instructions.read().ok()?, self.cycles.read().ok()?))
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod counters {
    /// This system's counters are not read.
    #[derive(Debug, thiserror::Error)]
    #[error("not available here: only Linux's are read")]
    pub(super) struct Unavailable;

    /// Stands in for the counters on systems without them.
    #[derive(Debug)]
    pub(super) struct Counters;

    impl Counters {
        pub fn open() -> Result<Self, Unavailable> {
            Err(Unavailable)
        }
        pub fn start(&mut self) -> bool {
            false
        }
        pub fn stop(&mut self) -> Option<(u64, u64)> {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_passes_while_there_is_work() {
        let mut probe = Probe::new();
        let (sum, cost) = probe.measure(|| (0..1_000_000_u64).map(std::hint::black_box).sum::<u64>());
        assert_eq!(sum, 499_999_500_000);
        assert!(cost.ns > 10_000.0, "{cost:?}");
        assert_eq!(cost.instructions.is_some(), probe.missing.is_none());
        if let Some(instructions) = cost.instructions {
            assert!(instructions > 1_000_000, "{cost:?}");
        }
        assert_eq!(cost.microjoules.is_some(), !probe.zones.is_empty());
    }

    #[test]
    fn an_energy_counter_may_begin_anew() {
        assert_eq!((passed(10, 25, 100), passed(90, 15, 100)), (15, 25));
        assert!(is_package("intel-rapl:0") && !is_package("intel-rapl:0:1") && !is_package("dtpm"));
    }
}
