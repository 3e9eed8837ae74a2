//! What a gateway with the kernel data path answers at its control socket.

use super::{Kernel, ways};
use crate::apply::{self, Own, Read};
use crate::history::Settings;
use crate::setting::{self, Adjustable, Records};
use penstock_appliance::socket::message::{Answer, Refusal, Request};
use penstock_appliance::socket::server::Peer;
use penstock_core::units::Instant;
use penstock_linux::bpf::Control;
use penstock_shaper::direction::Direction;

/// Carries out a request from the control socket and returns the answer to it.
pub fn answer(kernel: &mut Kernel, peer: Peer, request: Request) -> Answer {
    match request {
        Request::Status => serde_json::to_string(&kernel.report()).map_err(|e| Refusal::new(e.to_string())),
        Request::Top { .. } => {
            Err(Refusal::new("the kernel data path counts no flows by rate; `status` has its counters"))
        }
        Request::Set(set) => setting::set(kernel, peer, &set),
        Request::Apply(file) => {
            let read = Read::of(file, &kernel.own.file)?;
            apply::apply(kernel, Some(peer), &read)
        }
        Request::Keep => setting::keep(kernel, peer),
        Request::Rollback => setting::rollback(kernel, peer),
    }
}

impl Adjustable for Kernel {
    fn settings(&self) -> &Settings {
        &self.settings
    }

    fn keeps_connections(&self, _: Direction) -> bool {
        true
    }

    fn go_to(&mut self, wanted: &Settings) -> Result<Instant, Refusal> {
        let control = Control { ways: ways(wanted).map_err(Refusal::new)?, ..self.path.told().clone() };
        self.path.tell(control).map_err(|error| Refusal::new(error.to_string()))?;
        self.settings.clone_from(wanted);
        Ok(self.now())
    }

    /// What the programs do not have, a file cannot have.
    fn refuses(&self, _: Direction, _: &Settings) -> Option<String> {
        None
    }

    fn read_back(&self) -> Result<(), String> {
        let wanted = ways(&self.settings)?;
        let is_as_told = self.path.is_as_told().map_err(|error| error.to_string())?;
        if is_as_told && self.path.told().ways == wanted {
            return Ok(());
        }
        Err("the programs have other values than they were told".into())
    }

    fn own(&self) -> &Own {
        &self.own
    }

    /// There is no source of rates.
    fn by_hand(&mut self, _: bool) {}

    fn now(&self) -> Instant {
        self.now()
    }

    fn note(&mut self, now: Instant, what: String) {
        self.note(now, what);
    }

    fn records(&mut self) -> Records<'_> {
        Records { history: &mut self.history, changes: &mut self.changes, log: &mut self.log }
    }
}
