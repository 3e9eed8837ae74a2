//! Where a queue of a tin stands, and the three lists in which queues take turns: new, old and decaying ones. A queue is in one of them or in none,
//! and may leave from anywhere.

use super::QUEUES;

/// Where a queue stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Set {
    /// In no list.
    #[default]
    None,
    /// It became active and has not used up its first turn.
    Sparse,
    /// As sparse, but it was empty when its turn was used up, and is in the old list.
    SparseWait,
    /// It has used up its turn, and is one of the flows of its hosts.
    Bulk,
    /// It is empty and COBALT is not at rest.
    Decaying,
}

/// The lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Chain {
    /// Queues that have become active, and go first.
    New,
    /// Queues that have used up their turn.
    Old,
    /// Empty queues whose AQM is not at rest.
    Decaying,
}

/// Links to the one before and the next, for all queues and behind them for the lists themselves. What is in no list
/// is linked to itself.
#[derive(Debug, Clone)]
pub(super) struct Chains(Vec<(u16, u16)>);

impl Chains {
    pub fn new() -> Self {
        Self((0..(QUEUES + 3) as u16).map(|at| (at, at)).collect())
    }

    /// The first queue of a list; `None` if the list is empty.
    #[inline]
    pub fn first(&self, chain: Chain) -> Option<usize> {
        let first = usize::from(self.0[QUEUES + chain as usize].1);
        (first < QUEUES).then_some(first)
    }

    /// Takes a queue out of its list, if it is in one.
    #[inline]
    pub fn leave(&mut self, queue: usize) {
        let (before, next) = self.0[queue];
        self.0[usize::from(before)].1 = next;
        self.0[usize::from(next)].0 = before;
        self.0[queue] = (queue as u16, queue as u16);
    }

    /// Moves a queue to the end of a list.
    #[inline]
    pub fn join(&mut self, queue: usize, chain: Chain) {
        self.leave(queue);
        let head = QUEUES + chain as usize;
        let last = self.0[head].0;
        self.0[queue] = (last, head as u16);
        self.0[usize::from(last)].1 = queue as u16;
        self.0[head].0 = queue as u16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_move_between_lists_from_anywhere() {
        let mut chains = Chains::new();
        for queue in [5, 0, 1023] {
            chains.join(queue, Chain::New);
        }
        chains.join(0, Chain::Decaying);
        let mut order = Vec::new();
        while let Some(queue) = chains.first(Chain::New) {
            order.push(queue);
            chains.join(queue, Chain::Old);
        }
        assert_eq!(order, [5, 1023]);
        assert_eq!((chains.first(Chain::Old), chains.first(Chain::Decaying)), (Some(5), Some(0)));
        [5, 5, 1023, 0].into_iter().for_each(|queue| chains.leave(queue));
        assert!([Chain::New, Chain::Old, Chain::Decaying].into_iter().all(|chain| chains.first(chain).is_none()));
    }
}
