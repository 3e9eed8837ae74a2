//! Where the programs are attached: at the interface to the link, whatever its number is.

use crate::error::Error;
use crate::life::Life;
use penstock_linux::bpf::{Attached, Control, Datapath, Gauges};
use penstock_linux::links::Passed;

#[derive(Debug, Default)]
pub(super) struct Place {
    attached: Option<Attached>,
    /// The number of the interface at which they are.
    index: u32,
    failed: Option<String>,
    /// Bytes that passed while the programs were not there, and what they had not counted when they were there last.
    away: [u64; 2],
    uncounted: [u64; 2],
}

/// Bytes of IP that the programs have counted, download and upload.
fn counted(gauges: &Gauges, life: &Life) -> [u64; 2] {
    let header = if life.facts().ethernet { 14 } else { 0 };
    [1, 0].map(|way| {
        let bytes = gauges.bytes[way].saturating_sub(header * gauges.packets[way]);
        bytes + gauges.stale_bytes[way]
    })
}

/// What the interface has counted and the programs have not.
fn uncounted(gauges: &Gauges, life: &Life) -> [u64; 2] {
    let (passed, counted) = (life.passed(), counted(gauges, life));
    [0, 1].map(|at| passed[at].bytes.saturating_sub(counted[at]))
}

impl Place {
    /// Attaches the programs, unless they are there or the interface is not.
    pub fn attach(&mut self, path: &mut Datapath, life: &Life) -> Result<bool, Error> {
        let is_there = self.attached.is_some() && self.index == life.index();
        if life.facts().gone || is_there {
            return Ok(false);
        }
        path.tell(Control { ethernet: life.facts().ethernet, ..path.told().clone() })?;
        self.attached = Some(path.attach(life.name())?);
        self.index = life.index();
        Ok(true)
    }

    /// Follows the interface. Returns what happened.
    pub fn follow(&mut self, path: &mut Datapath, life: &Life) -> Result<Option<String>, Error> {
        let attached = self.attach(path, life);
        let now = uncounted(&path.gauges()?, life);
        let event = match attached {
            Ok(true) => {
                (0..2).for_each(|at| self.away[at] += now[at].saturating_sub(self.uncounted[at]));
                self.failed = None;
                Some(format!("the programs are attached to {} again", life.name()))
            }
            Ok(false) => None,
            Err(error) => {
                let what = format!("the programs cannot be attached to {}: {error}", life.name());
                (self.failed.replace(what.clone()).as_ref() != Some(&what)).then_some(what)
            }
        };
        if self.failed.is_none() {
            self.uncounted = now;
        }
        Ok(event)
    }

    /// Looks whether somebody has taken the programs away: then they are attached again.
    pub fn check(&mut self, path: &Datapath, name: &str) {
        if self.attached == Some(Attached::Tcx) && !path.is_at(name) {
            self.attached = None;
        }
    }

    /// Bytes that have passed less those that the programs let pass for want of a sign of life, and those that passed
    /// without them.
    pub fn taken(&self, gauges: &Gauges, life: &Life) -> [Passed; 2] {
        let passed = life.passed().map(|passed| passed.bytes);
        let bytes = |at: usize| passed[at].saturating_sub(gauges.stale_bytes[1 - at] + self.away[at]);
        [0, 1].map(|at| Passed { packets: 0, bytes: bytes(at) })
    }

    pub fn attached(&self) -> Option<Attached> {
        self.attached
    }

    pub fn failed(&self) -> Option<String> {
        self.failed.clone()
    }
}
