//! A queue of packets in order of arrival. Each can be drawn with equal probability and removed in O(1).

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone)]
struct Node<P> {
    packet: P,
    older: u32,
    newer: u32,
}

/// A linked list in an array without holes: the place of a packet that leaves is filled by the last one of the array.
#[derive(Debug, Clone)]
pub(super) struct Line<P> {
    nodes: Vec<Node<P>>,
    oldest: u32,
    newest: u32,
}

impl<P> Line<P> {
    pub(super) fn new() -> Self {
        Self { nodes: Vec::new(), oldest: NONE, newest: NONE }
    }

    /// Returns the number of packets. Their places are 0 to this number less one, in no order.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns true if the place of one more packet would not fit into 32 bits.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.nodes.len() >= NONE as usize
    }

    /// Returns the packet at a place; `None` if the place is not below [`Line::len`].
    #[inline]
    pub(super) fn get(&self, place: usize) -> Option<&P> {
        self.nodes.get(place).map(|node| &node.packet)
    }

    /// Appends a packet. The line must not be full.
    #[inline]
    pub(super) fn push_back(&mut self, packet: P) {
        let (place, older) = (self.nodes.len() as u32, self.newest);
        self.nodes.push(Node { packet, older, newer: NONE });
        self.set_newer(older, place);
        self.newest = place;
    }

    /// Removes the packet which has waited longest.
    #[inline]
    pub(super) fn pop_front(&mut self) -> Option<P> {
        self.remove(self.oldest as usize)
    }

    /// Removes the packet at a place. Another packet may then move to that place.
    #[inline]
    pub(super) fn remove(&mut self, place: usize) -> Option<P> {
        let (older, newer) = self.nodes.get(place).map(|node| (node.older, node.newer))?;
        self.set_newer(older, newer);
        self.set_older(newer, older);
        let gone = self.nodes.swap_remove(place);
        // The packet that was last in the array is now at this place, so the links of its neighbours change.
        if let Some(moved) = self.nodes.get(place) {
            let (older, newer, place) = (moved.older, moved.newer, place as u32);
            self.set_newer(older, place);
            self.set_older(newer, place);
        }
        Some(gone.packet)
    }

    /// Sets the newer neighbour of the packet at `of`; if `of` is `NONE`, sets the oldest packet.
    #[inline]
    fn set_newer(&mut self, of: u32, newer: u32) {
        match self.nodes.get_mut(of as usize) {
            Some(node) => node.newer = newer,
            None => self.oldest = newer,
        }
    }

    /// Sets the older neighbour of the packet at `of`; if `of` is `NONE`, sets the newest packet.
    #[inline]
    fn set_older(&mut self, of: u32, older: u32) {
        match self.nodes.get_mut(of as usize) {
            Some(node) => node.older = older,
            None => self.newest = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop, prop_assert_eq, prop_oneof, proptest};
    use proptest::strategy::{Just, Strategy};

    #[derive(Debug, Clone)]
    enum Step {
        Push,
        Pop,
        Remove(usize),
    }

    proptest! {
        #[test]
        fn is_a_queue_from_which_any_packet_can_be_taken(
            steps in prop::collection::vec(
                prop_oneof![3 => Just(Step::Push), 1 => Just(Step::Pop), 1 => any::<usize>().prop_map(Step::Remove)],
                0..200,
            ),
        ) {
            let (mut line, mut model, mut number) = (Line::new(), Vec::new(), 0);
            for step in steps {
                match step {
                    Step::Push => {
                        line.push_back(number);
                        model.push(number);
                        number += 1;
                    }
                    Step::Pop if model.is_empty() => prop_assert_eq!(line.pop_front(), None),
                    Step::Pop => prop_assert_eq!(line.pop_front(), Some(model.remove(0))),
                    Step::Remove(_) if model.is_empty() => prop_assert_eq!(line.remove(0), None),
                    Step::Remove(n) => {
                        let place = n % line.len();
                        let packet = *line.get(place).unwrap();
                        prop_assert_eq!(line.remove(place), Some(packet));
                        model.retain(|p| *p != packet);
                    }
                }
                prop_assert_eq!(line.len(), model.len());
                let mut left = line.clone();
                prop_assert_eq!(std::iter::from_fn(|| left.pop_front()).collect::<Vec<i32>>(), &model[..]);
            }
        }
    }
}
