//! What a run has decided before its first event: the paths of its flows, and what their applications have drawn. Programs
//! that play the same scenario in another world read it here.

pub use crate::actors::application::Coming;
use crate::run::Simulation;
use penstock_core::units::Span;

/// One direction of a link between routers, on the path of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Index of the link among those of the scenario.
    pub link: usize,
    /// True if the flow crosses it from its second end to its first.
    pub reverse: bool,
}

impl Simulation {
    /// Returns the links between routers from the client of each flow to its server, in order; the path back is the same.
    pub fn paths(&self) -> impl Iterator<Item = Vec<Step>> {
        self.actors.flows.iter().map(|flow| {
            let links = self.world.path(flow.routes[0]);
            links.map(|link| Step { link: link.duplex(), reverse: !link.is_forward() }).collect()
        })
    }

    /// Returns the transfers that each flow is going to begin within a time of its start, which must be asked before the
    /// run begins. Whether `web` refuses one of them depends on the run.
    pub fn transfers_ahead(&self, within: Span) -> impl Iterator<Item = Vec<Coming>> {
        self.actors.flows.iter().map(move |flow| flow.application.get().coming(within))
    }
}
