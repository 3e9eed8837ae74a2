//! First-in first-out lists of classes which share their memory in chunks of one cache line: to read a list of thousands from its
//! front costs a line for fifteen of its classes. Chunks that become free are used again; memory never shrinks.

const NONE: u32 = u32::MAX;
/// Number of classes in a chunk: a cache line less the number of the next chunk.
const ROOM: usize = 15;

#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Chunk {
    classes: [u32; ROOM],
    next: u32,
}

/// A list of classes in [`Chunks`].
#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    /// The chunk with the first class; [`NONE`] if the list is empty.
    head: u32,
    /// The chunk with the last class.
    tail: u32,
    /// The place of the first class in its chunk.
    first: u8,
    /// The place after the last class in its chunk.
    end: u8,
}

impl Default for List {
    fn default() -> Self {
        Self { head: NONE, tail: NONE, first: 0, end: 0 }
    }
}

/// The chunks of all lists.
#[derive(Debug, Clone)]
pub(super) struct Chunks {
    chunks: Vec<Chunk>,
    free: u32,
}

impl Default for Chunks {
    fn default() -> Self {
        Self { chunks: Vec::new(), free: NONE }
    }
}

impl List {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head == NONE
    }
}

impl Chunks {
    /// The first class of a list; `None` if it is empty.
    #[inline]
    pub fn first(&self, list: &List) -> Option<u32> {
        self.chunks.get(list.head as usize).map(|chunk| chunk.classes[usize::from(list.first)])
    }

    /// Appends a class to a list.
    #[inline]
    pub fn push(&mut self, list: &mut List, class: u32) {
        if list.is_empty() || usize::from(list.end) == ROOM {
            self.lengthen(list);
        }
        self.chunks[list.tail as usize].classes[usize::from(list.end)] = class;
        list.end += 1;
    }

    /// Removes the first class of a list, if there is one.
    #[inline]
    pub fn pop(&mut self, list: &mut List) {
        if list.is_empty() {
            return;
        }
        list.first += 1;
        if list.head == list.tail && list.first == list.end {
            self.release(list.head);
            *list = List::default();
        } else if usize::from(list.first) == ROOM {
            let next = self.release(list.head);
            (list.head, list.first) = (next, 0);
        }
    }

    /// Appends an empty chunk to a list.
    fn lengthen(&mut self, list: &mut List) {
        let chunk = self.take();
        match list.tail {
            NONE => list.head = chunk,
            tail => self.chunks[tail as usize].next = chunk,
        }
        (list.tail, list.end) = (chunk, 0);
    }

    fn take(&mut self) -> u32 {
        if self.free == NONE {
            self.chunks.push(Chunk { classes: [NONE; ROOM], next: NONE });
            return (self.chunks.len() - 1) as u32;
        }
        let chunk = self.free;
        self.free = std::mem::replace(&mut self.chunks[chunk as usize].next, NONE);
        chunk
    }

    /// Frees a chunk; returns the one that followed it.
    fn release(&mut self, chunk: u32) -> u32 {
        let next = std::mem::replace(&mut self.chunks[chunk as usize].next, self.free);
        self.free = chunk;
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        /// Three lists behave as three queues and use no more chunks than their longest lengths need.
        #[test]
        fn lists_are_first_in_first_out(steps in prop::collection::vec((0..3usize, any::<bool>(), 1..40u32), 1..60)) {
            let (mut chunks, mut lists) = (Chunks::default(), [List::default(); 3]);
            let mut model: [VecDeque<u32>; 3] = Default::default();
            let (mut class, mut most) = (0, 0);
            for (list, adds, times) in steps {
                for _ in 0..times {
                    if adds {
                        class += 1;
                        chunks.push(&mut lists[list], class);
                        model[list].push_back(class);
                    } else {
                        chunks.pop(&mut lists[list]);
                        model[list].pop_front();
                    }
                    let chunks_of = |len: usize| if len == 0 { 0 } else { (len + ROOM - 1).div_ceil(ROOM) };
                    let needed: usize = model.iter().map(|queue| chunks_of(queue.len())).sum();
                    most = most.max(needed);
                    prop_assert_eq!(chunks.first(&lists[list]), model[list].front().copied());
                    prop_assert_eq!(lists[list].is_empty(), model[list].is_empty());
                }
            }
            prop_assert!(chunks.chunks.len() <= most, "{} chunks", chunks.chunks.len());
        }
    }
}
