//! What disciplines were told of flows, so that they are told again only what is new.

use penstock_core::packet::FlowId;

/// What disciplines were told of each flow, by its number.
#[derive(Debug)]
pub(crate) struct Told<T>(Vec<Option<T>>);

impl<T> Default for Told<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T: Copy + PartialEq> Told<T> {
    /// Notes what is told of a flow; returns true if it was not known.
    pub fn note(&mut self, flow: FlowId, value: T) -> bool {
        let at = flow.0 as usize;
        if at >= self.0.len() {
            self.0.resize(at + 1, None);
        }
        self.0[at].replace(value) != Some(value)
    }

    /// Returns what was told of a flow last.
    pub fn of(&self, flow: FlowId) -> Option<T> {
        self.0.get(flow.0 as usize).copied().flatten()
    }

    /// Forgets what was told of a flow whose index another connection takes over.
    pub fn forget(&mut self, flow: FlowId) {
        self.0.get_mut(flow.0 as usize).into_iter().for_each(|told| *told = None);
    }

    /// Forgets what was told of all flows.
    pub fn forget_all(&mut self) {
        self.0.fill(None);
    }
}
