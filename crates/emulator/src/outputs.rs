//! The files that are written while packets pass, and what they take out of the bottlenecks.

use crate::carried::Carried;
use crate::cli::Plan;
use crate::error::Error;
use crate::mahimahi::Mahimahi;
use crate::packets::{Csv, FateFile, Lines, Written};
use crate::pcapng::Pcapng;
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
    packets: Option<FateFile<Csv>>,
    capture: Option<(FateFile<Pcapng>, Taps)>,
    logs: [Option<(FateFile<Mahimahi>, LinkLog)>; 2],
}

impl Outputs {
    /// Opens the files that are wanted; `epoch` is the begin of the run.
    pub fn open(plan: &Plan, epoch: std::time::Instant) -> Result<Self, Error> {
        let (run, [there, back]) = (&plan.file.run, &plan.settings.0);
        let capture = |path| FateFile::start(path, Pcapng::since(epoch)).map(|file| (file, Taps::empty()));
        let log =
            |path, name, rate| FateFile::start(path, Mahimahi::new(name, rate)).map(|file| (file, LinkLog::empty()));
        let [up, down] = [&run.uplink_log, &run.downlink_log].map(Option::as_deref);
        Ok(Self {
            packets: run.packets.as_deref().map(|path| FateFile::start(path, Csv)).transpose()?,
            capture: run.pcapng.as_deref().map(capture).transpose()?,
            logs: [
                up.map(|path| log(path, "uplink", there.config.rate)).transpose()?,
                down.map(|path| log(path, "downlink", back.config.rate)).transpose()?,
            ],
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
            *empty = file.exchange(std::mem::take(empty));
        }
        for direction in Direction::BOTH {
            let records = &mut path.direction_mut(direction).line.records;
            if let Some((file, empty)) = &mut self.logs[direction.index()]
                && let Some(log) = &mut records.log
                && (log.packets() >= least || until.is_some())
            {
                let full = log.exchange(std::mem::take(empty), until);
                *empty = file.exchange(full);
            }
            if let Some(file) = &mut self.packets
                && let Some(journal) = &mut records.journal
                && journal.len() >= least
            {
                (_, *journal) = file.exchange((direction, std::mem::take(journal)));
            }
        }
    }

    /// Returns what became of the packets of `--packets` and `--pcapng` up to now.
    pub fn lines(&self) -> [Option<Lines>; 2] {
        let capture = self.capture.as_ref().map(|(file, _)| &file.written);
        [self.packets.as_ref().map(|file| &file.written), capture].map(|file| file.map(Written::lines))
    }

    /// Ends the files, and returns [`Outputs::lines`] and all files. Each has this long to be written; then it is left alone
    /// with it.
    pub fn close(self, patience: Duration) -> ([Option<Lines>; 2], Vec<Written>) {
        let packets = self.packets.map(|file| file.close(patience));
        let capture = self.capture.map(|(file, _)| file.close(patience));
        let logs: Vec<_> = self.logs.into_iter().flatten().map(|(file, _)| file.close(patience)).collect();
        let lines = [&packets, &capture].map(|file| file.as_ref().map(Written::lines));
        (lines, packets.into_iter().chain(capture).chain(logs).collect())
    }
}
