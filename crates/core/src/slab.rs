//! The packets of many queues in one array: each queue is a list of indices in the array, and so are the free places.
//! Next to each packet is a note of its owner, such as its arrival time or its size.

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone)]
struct Place<P, N> {
    packet: Option<P>,
    note: N,
    next: u32,
}

/// The array of packets. It grows to the largest backlog so far and never shrinks.
#[derive(Debug, Clone)]
pub(crate) struct Slab<P, N> {
    places: Vec<Place<P, N>>,
    free: u32,
}

/// A queue of packets in a [`Slab`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct List {
    head: u32,
    tail: u32,
}

impl Default for List {
    fn default() -> Self {
        Self { head: NONE, tail: NONE }
    }
}

/// The place of a packet in the array, valid while the packet waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position(u32);

/// A packet that was taken out, with its note and its former place.
#[derive(Debug)]
pub(crate) struct Taken<P, N> {
    pub packet: P,
    pub note: N,
    pub position: Position,
}

impl<P, N: Copy> Slab<P, N> {
    pub fn new() -> Self {
        Self { places: Vec::new(), free: NONE }
    }

    /// Appends a packet to `list`; returns the packet if there are no indices left.
    #[inline]
    pub fn push(&mut self, list: &mut List, packet: P, note: N) -> Result<Position, P> {
        if self.free == NONE && self.places.len() >= NONE as usize {
            return Err(packet);
        }
        let place = Place { packet: Some(packet), note, next: NONE };
        let index = if self.free == NONE {
            self.places.push(place);
            (self.places.len() - 1) as u32
        } else {
            let index = self.free;
            let slot = &mut self.places[index as usize];
            self.free = slot.next;
            *slot = place;
            index
        };
        match list.tail {
            NONE => list.head = index,
            tail => self.places[tail as usize].next = index,
        }
        list.tail = index;
        Ok(Position(index))
    }

    /// Removes the first packet of `list`.
    #[inline]
    pub fn pop(&mut self, list: &mut List) -> Option<Taken<P, N>> {
        let index = list.head;
        let place = self.places.get_mut(index as usize)?;
        let packet = place.packet.take()?;
        list.head = place.next;
        if list.head == NONE {
            list.tail = NONE;
        }
        place.next = self.free;
        let note = place.note;
        self.free = index;
        Some(Taken { packet, note, position: Position(index) })
    }

    /// The note of the first packet of `list`; `None` if the list is empty.
    #[inline]
    pub fn first(&self, list: &List) -> Option<N> {
        self.places.get(list.head as usize).map(|place| place.note)
    }

    /// The place of the first packet of `list`; `None` if the list is empty.
    #[inline]
    pub fn front(&self, list: &List) -> Option<Position> {
        (list.head != NONE).then_some(Position(list.head))
    }

    /// The place of the last packet of `list`; `None` if the list is empty.
    #[inline]
    pub fn back(&self, list: &List) -> Option<Position> {
        (list.tail != NONE).then_some(Position(list.tail))
    }

    /// The place of the packet behind the one at `position` in its list; `None` for the last one.
    #[inline]
    pub fn behind(&self, position: Position) -> Option<Position> {
        let next = self.places.get(position.0 as usize)?.next;
        (next != NONE).then_some(Position(next))
    }

    /// The packet at `position`.
    #[inline]
    pub fn packet_mut(&mut self, position: Position) -> Option<&mut P> {
        self.places.get_mut(position.0 as usize)?.packet.as_mut()
    }

    /// Removes the packet behind the one at `before` in `list`, or the first one if that is `None`.
    #[inline]
    pub fn remove_behind(&mut self, list: &mut List, before: Option<Position>) -> Option<Taken<P, N>> {
        let Some(Position(before)) = before else { return self.pop(list) };
        let mut rest = List { head: self.places.get(before as usize)?.next, tail: list.tail };
        let taken = self.pop(&mut rest)?;
        self.places[before as usize].next = rest.head;
        list.tail = if rest.head == NONE { before } else { rest.tail };
        Some(taken)
    }

    /// Number of places allocated so far.
    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.places.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_share_places_and_keep_their_order() {
        let (mut slab, mut a, mut b) = (Slab::new(), List::default(), List::default());
        for n in 0..3 {
            slab.push(&mut a, n, 'a').unwrap();
            slab.push(&mut b, 10 + n, 'b').unwrap();
        }
        assert_eq!((slab.first(&a), slab.first(&b), slab.first(&List::default())), (Some('a'), Some('b'), None));
        assert_eq!(slab.pop(&mut a).unwrap().packet, 0);
        assert_eq!(slab.pop(&mut b).unwrap().packet, 10);
        slab.push(&mut a, 3, 'a').unwrap();
        slab.push(&mut a, 4, 'a').unwrap();
        assert_eq!(slab.capacity(), 6, "free places are used again");
        let rest: Vec<i32> = std::iter::from_fn(|| slab.pop(&mut a)).map(|t| t.packet).collect();
        assert_eq!(rest, [1, 2, 3, 4]);
        assert!(slab.pop(&mut a).is_none());
        assert_eq!(slab.pop(&mut b).unwrap().packet, 11);
    }

    #[test]
    fn a_packet_may_leave_from_anywhere_in_its_list() {
        for gone in 0..4 {
            let (mut slab, mut list) = (Slab::new(), List::default());
            let places: Vec<Position> = (0..4).map(|n| slab.push(&mut list, n, ()).unwrap()).collect();
            let before = (gone > 0).then(|| places[gone - 1]);
            assert_eq!(slab.remove_behind(&mut list, before).unwrap().packet, gone);
            let mut rest = places.iter().enumerate().filter(|(n, _)| *n != gone).map(|(_, place)| *place);
            let walked = std::iter::successors(slab.front(&list), |place| slab.behind(*place));
            assert!(walked.eq(rest.clone()) && slab.back(&list) == rest.next_back());
            slab.push(&mut list, 9, ()).unwrap();
            *slab.packet_mut(slab.front(&list).unwrap()).unwrap() += 10;
            let left: Vec<usize> = std::iter::from_fn(|| slab.pop(&mut list)).map(|taken| taken.packet).collect();
            let mut wanted: Vec<usize> = (0..4).filter(|n| *n != gone).chain([9]).collect();
            wanted[0] += 10;
            assert_eq!(left, wanted);
            assert!(slab.remove_behind(&mut list, None).is_none());
        }
    }
}
