//! The loaded programs and their maps.

use crate::bpf::error::Error;
use crate::bpf::layout::{CONTROL, Control, Gauges, PROCESSOR, SUMS, Sums};
use crate::bpf::object::Object;
use aya::TestRunOptions;
use aya::maps::{Array, MapData, PerCpuArray};
use aya::programs::SchedClassifier;
pub use aya::programs::TcAttachType as Hook;
use aya::programs::tc::{self, NlOptions, TcAttachOptions, TcError};
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/pink.bpf.o"));
static COST: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/cost.bpf.o"));
/// The programs of a gateway (`bpf/pink.bpf.c`), and those that tell what they cost (`bpf/cost.bpf.c`). All of these make their
/// packet that of the next flow: `shell` does no more, `visit_parse` reads its headers as well, and `visit_find` finds its
/// connection. `visit_plain` shows it as data that leave to the link, with a window that stays, `visit_data` with one above the
/// share of the other direction, and `visit_ack` as an ACK that comes from the link.
const PROGRAMS: [&str; 9] =
    ["outward", "inward", "sweep", "shell", "visit_parse", "visit_find", "visit_plain", "visit_data", "visit_ack"];

/// Where the programs of a gateway are attached.
const HOOKS: [(&str, Hook); 2] = [("outward", Hook::Egress), ("inward", Hook::Ingress)];
/// Connections in a set.
pub const WAYS: u32 = 16;
/// Sets that one run of the sweep looks at.
const SWEPT: u32 = 256;

/// How programs are attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Attached {
    /// By TCX links, which go with the process.
    Tcx,
    /// By filters of clsact, which stay: without a heartbeat they let everything pass untouched.
    Clsact,
}

/// The programs in the kernel. When this is dropped, or the process dies, links go and packets pass as before.
pub struct Datapath {
    object: Object,
    control: Array<MapData, [u64; CONTROL]>,
    sums: Array<MapData, [u64; SUMS]>,
    processors: PerCpuArray<MapData, [u64; PROCESSOR]>,
    numbers: Array<MapData, [u64; 1]>,
    told: Control,
    next: u32,
}

/// The kernel's monotonic clock in nanoseconds, which the programs read.
pub fn clock() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |now| Duration::from(now).as_nanos() as u64)
}

impl Datapath {
    /// Loads the programs with a table for `control.sets` sets. Fails if this build has none, or the kernel refuses them.
    pub fn load(control: Control) -> Result<Self, Error> {
        Self::load_from(OBJECT, &PROGRAMS[..3], control)
    }

    /// Loads the programs and those that tell what they cost.
    pub fn load_to_measure(control: Control) -> Result<Self, Error> {
        Self::load_from(COST, &PROGRAMS, control)
    }

    fn load_from(object: &[u8], programs: &[&'static str], control: Control) -> Result<Self, Error> {
        let rooms = [("heads", control.sets), ("lines", control.sets * WAYS)];
        let mut object = Object::load(object, &rooms, programs)?;
        let (known, sums, numbers) = (object.map("control")?, object.map("sums")?, object.map("numbers")?);
        let processors = object.map("processors")?;
        let mut path = Self { control: known, sums, processors, numbers, object, told: control.clone(), next: 0 };
        for index in 0..2 {
            path.sums.set(index, Sums::at_start(), 0).map_err(Error::refused("a value"))?;
        }
        path.tell(control)?;
        Ok(path)
    }

    /// Attaches both programs to an interface, and to no other: by TCX, or by clsact where there is no TCX.
    pub fn attach(&mut self, interface: &str) -> Result<Attached, Error> {
        self.object.detach(|_| true);
        if HOOKS.iter().try_for_each(|(name, hook)| self.object.attach(name, interface, *hook)).is_ok() {
            return Ok(Attached::Tcx);
        }
        self.object.detach(|_| true);
        match tc::qdisc_add_clsact(interface) {
            Ok(()) | Err(TcError::AlreadyAttached) => {}
            Err(error) => return Err(Error::refused("clsact")(error)),
        }
        for (name, hook) in HOOKS {
            // What a process that died has left.
            let _ = tc::qdisc_detach_program(interface, hook, name);
            self.object.attach_by(name, interface, hook, TcAttachOptions::Netlink(NlOptions::default()))?;
        }
        Ok(Attached::Clsact)
    }

    /// Returns whether both programs are at an interface, as far as the kernel tells that: of filters of clsact it does
    /// not.
    pub fn is_at(&self, interface: &str) -> bool {
        HOOKS
            .iter()
            .all(|(name, hook)| programs_at(interface, *hook).map_or(true, |found| found.iter().any(|one| one == name)))
    }

    /// What the programs were told last.
    pub fn told(&self) -> &Control {
        &self.told
    }

    /// Tells the programs new values.
    pub fn tell(&mut self, control: Control) -> Result<(), Error> {
        self.control.set(0, control.words(), 0).map_err(Error::refused("a value"))?;
        self.told = control;
        Ok(())
    }

    /// Returns whether the programs have the values that they were told last.
    pub fn is_as_told(&self) -> Result<bool, Error> {
        let words = self.control.get(&0, 0).map_err(Error::refused("a read"))?;
        Ok(words == self.told.words())
    }

    /// Gives a sign of life.
    pub fn beat(&mut self) -> Result<(), Error> {
        let heartbeat = clock();
        self.tell(Control { heartbeat, ..self.told.clone() })
    }

    /// Applies the timeouts to all connections.
    pub fn sweep(&mut self) -> Result<(), Error> {
        (0..self.told.sets.div_ceil(SWEPT)).try_for_each(|_| self.sweep_some())
    }

    /// Applies the timeouts to the next 256 sets, 4096 connections.
    pub fn sweep_some(&mut self) -> Result<(), Error> {
        let count = SWEPT.min(self.told.sets - self.next);
        let packet = [u64::from(self.next).to_ne_bytes(), u64::from(count).to_ne_bytes()].concat();
        self.next = (self.next + count) % self.told.sets;
        let options = TestRunOptions { data_in: Some(&packet), ..TestRunOptions::new() };
        self.object.test("sweep", options).map(drop)
    }

    /// Sums and counters of data toward the link and from it.
    pub fn sums(&self) -> Result<[Sums; 2], Error> {
        let counters = self.counters()?;
        let read = |index| self.sums.get(&index, 0).map_err(Error::refused("a read"));
        Ok([Sums::read(&read(0)?, &counters, 0), Sums::read(&read(1)?, &counters, 1)])
    }

    /// Counters of packets and connections.
    pub fn gauges(&self) -> Result<Gauges, Error> {
        let [numbered] = self.numbers.get(&0, 0).map_err(Error::refused("a read"))?;
        Ok(Gauges::read(&self.counters()?, numbered))
    }

    /// The counters of all processors, added. One of them may count down what another one counted up.
    fn counters(&self) -> Result<[u64; PROCESSOR], Error> {
        let mut sum = [0u64; PROCESSOR];
        for words in self.processors.get(&0, 0).map_err(Error::refused("a read"))?.iter() {
            sum.iter_mut().zip(words).for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
        }
        Ok(sum)
    }

    /// Tells the programs that measure how many flows there are, and begins anew.
    pub fn visit(&mut self, flows: u32) -> Result<(), Error> {
        let mut visits: Array<MapData, [u64; 2]> = self.object.map("visits")?;
        let mut each = 0..visits.len();
        each.try_for_each(|by| visits.set(by, [u64::from(flows), 0], 0).map_err(Error::refused("a value")))
    }

    /// Bytes of machine code of each loaded program, its functions included, and instructions that the verifier looked at.
    pub fn sizes(&self) -> Result<Vec<(String, u32, u32)>, Error> {
        let loaded = self.object.ebpf.programs().filter(|(_, program)| program.fd().is_ok());
        let size = |(name, program): (&str, &aya::programs::Program)| {
            let info = program.info().map_err(Error::refused("a query"))?;
            Ok((name.to_owned(), info.size_jitted(), info.verified_instruction_count().unwrap_or(0)))
        };
        let mut sizes = loaded.map(size).collect::<Result<Vec<_>, Error>>()?;
        sizes.sort_unstable();
        Ok(sizes)
    }

    /// Runs the program with this name on a packet, `repeat` times; returns the packet after it and the mean time of a run.
    pub fn test(&self, program: &str, packet: &mut [u8], repeat: u32) -> Result<Duration, Error> {
        let before = packet.to_vec();
        let options =
            TestRunOptions { data_in: Some(&before), data_out: Some(packet), repeat, ..TestRunOptions::new() };
        Ok(self.object.test(program, options)?.duration)
    }
}

/// Names of the programs that are attached to an interface by TCX. Fails where there is no TCX.
pub fn programs_at(interface: &str, hook: Hook) -> Result<Vec<String>, Error> {
    let (_, found) = SchedClassifier::query_tcx(interface, hook).map_err(Error::refused("a query"))?;
    Ok(found.iter().filter_map(|program| program.name_as_str().map(str::to_owned)).collect())
}
