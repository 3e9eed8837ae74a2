//! The files that are written while packets pass, and what they take out of the bottlenecks.

use crate::carried::Carried;
use crate::cli::Plan;
use crate::error::Error;
use crate::mahimahi::{LogFile, Mahimahi};
use crate::packets::{Closed, FateFile, Lines, PacketFile};
use crate::pcapng::{CaptureFile, Pcapng};
use penstock_core::units::Instant;
use penstock_shaper::direction::Direction;
use penstock_shaper::journal::Journal;
use penstock_shaper::log::LinkLog;
use penstock_shaper::path::Path;
use penstock_shaper::sheet::Sheet;
use penstock_shaper::tap::{Tap, Taps};
use std::time::Duration;

/// The files that are wanted, each with an empty sheet where one is needed.
#[derive(Default)]
pub struct Outputs {
    packets: Option<PacketFile>,
    capture: Option<(CaptureFile, Taps)>,
    logs: [Option<(LogFile, LinkLog)>; 2],
}

/// The files, which get no more packets.
pub struct Ended {
    packets: Option<Closed>,
    capture: Option<Closed>,
    logs: Vec<Closed>,
}

impl Ended {
    /// Returns what became of the packets of `--packets` and `--pcapng`.
    pub fn lines(&self) -> [Option<Lines>; 2] {
        [&self.packets, &self.capture].map(|file| file.as_ref().map(Closed::lines))
    }

    /// Returns all files.
    pub fn all(self) -> Vec<Closed> {
        self.packets.into_iter().chain(self.capture).chain(self.logs).collect()
    }
}

impl Outputs {
    /// Opens the files that are wanted; `epoch` is the begin of the run.
    ///
    /// # Errors
    /// Fails if a file cannot be opened or written.
    pub fn open(plan: &Plan, epoch: std::time::Instant) -> Result<Self, Error> {
        let capture = |path| CaptureFile::start(path, Pcapng::since(epoch)).map(|file| (file, Taps::empty()));
        Ok(Self {
            packets: plan.packets.as_deref().map(PacketFile::open).transpose()?,
            capture: plan.pcapng.as_deref().map(capture).transpose()?,
            logs: [log(plan, Direction::Forward)?, log(plan, Direction::Reverse)?],
        })
    }

    /// Lets the path keep what the files need.
    pub fn fill_from(&self, path: &mut Path<Carried>) {
        for (direction, log) in Direction::BOTH.into_iter().zip(&self.logs) {
            let records = &mut path.direction_mut(direction).line.records;
            records.journal = self.packets.as_ref().map(|_| Journal::default());
            records.tap = self.capture.as_ref().map(|_| Tap::new(Carried::bytes));
            records.log = log.as_ref().map(|_| LinkLog::default());
        }
    }

    /// Hands journals, taps and logs with at least so many packets to the threads that write them. `until` is a time up to
    /// which all events have happened, if one is known.
    pub fn exchange(&mut self, path: &mut Path<Carried>, least: usize, until: Option<Instant>) {
        if let Some((file, empty)) = &mut self.capture
            && path.swap_taps(empty, least)
        {
            // A sheet has both directions, so that packets are in the file in the order of time.
            *empty = file.exchange_sheet(std::mem::take(empty));
        }
        for direction in Direction::BOTH {
            let records = &mut path.direction_mut(direction).line.records;
            if let Some((file, empty)) = &mut self.logs[direction.index()]
                && let Some(log) = &mut records.log
                && (log.packets() >= least || until.is_some())
            {
                let full = log.exchange(std::mem::take(empty), until);
                *empty = file.exchange_sheet(full);
            }
            if let Some(file) = &mut self.packets
                && let Some(journal) = &mut records.journal
                && journal.len() >= least
            {
                file.exchange(direction, journal);
            }
        }
    }

    /// Returns what became of the packets of `--packets` and `--pcapng` up to now.
    pub fn lines(&self) -> [Option<Lines>; 2] {
        [self.packets.as_ref().map(FateFile::lines), self.capture.as_ref().map(|(file, _)| file.lines())]
    }

    /// Ends the files. Each has this long to be written; then it is left alone with it.
    pub fn close(&mut self, patience: Duration) -> Ended {
        Ended {
            packets: self.packets.take().map(|file| file.close(patience)),
            capture: self.capture.take().map(|(file, _)| file.close(patience)),
            logs: self.logs.iter_mut().filter_map(|log| log.take().map(|(file, _)| file.close(patience))).collect(),
        }
    }
}

/// Opens the file for the log of a direction, if one is wanted.
fn log(plan: &Plan, direction: Direction) -> Result<Option<(LogFile, LinkLog)>, Error> {
    let Some(path) = &plan.logs[direction.index()] else { return Ok(None) };
    let form = Mahimahi::new(["uplink", "downlink"][direction.index()], plan.bottlenecks[direction.index()].rate);
    Ok(Some((LogFile::start(path, form)?, LinkLog::empty())))
}
