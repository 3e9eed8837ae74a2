//! A first-in first-out list of classes, linked through the array of classes. Nothing is allocated when a class joins
//! or leaves.

/// The index that stands for "no class".
pub(super) const NONE: u32 = u32::MAX;

/// A class that can be in a list.
pub(super) trait Linked {
    /// The index of the next class in the list; [`NONE`] at the end.
    fn next(&self) -> u32;
    /// Sets the index of the next class in the list.
    fn set_next(&mut self, next: u32);
}

/// A list of classes. Several lists may share one array if no class is in two of them at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Round {
    head: u32,
    tail: u32,
}

impl Default for Round {
    fn default() -> Self {
        Self { head: NONE, tail: NONE }
    }
}

impl Round {
    /// The class at the front; `None` if the list is empty.
    #[inline]
    pub fn first(&self) -> Option<usize> {
        (self.head != NONE).then_some(self.head as usize)
    }

    /// Appends `class` to the list.
    #[inline(always)]
    pub fn push<C: Linked>(&mut self, classes: &mut [C], class: usize) {
        classes[class].set_next(NONE);
        match self.tail {
            NONE => self.head = class as u32,
            tail => classes[tail as usize].set_next(class as u32),
        }
        self.tail = class as u32;
    }

    /// Puts `class` before all others.
    #[inline]
    pub fn push_front<C: Linked>(&mut self, classes: &mut [C], class: usize) {
        classes[class].set_next(self.head);
        if self.head == NONE {
            self.tail = class as u32;
        }
        self.head = class as u32;
    }

    /// Appends all classes of `other` in their order.
    #[inline]
    pub fn append<C: Linked>(&mut self, classes: &mut [C], other: Self) {
        if self.tail == NONE {
            *self = other;
        } else if other.head != NONE {
            classes[self.tail as usize].set_next(other.head);
            self.tail = other.tail;
        }
    }

    /// Moves the class at the front to the end.
    #[inline(always)]
    pub fn rotate<C: Linked>(&mut self, classes: &mut [C]) {
        if self.head != self.tail {
            let first = self.head;
            self.head = classes[first as usize].next();
            classes[first as usize].set_next(NONE);
            classes[self.tail as usize].set_next(first);
            self.tail = first;
        }
    }

    /// Removes the class at the front and returns it.
    #[inline(always)]
    pub fn pop<C: Linked>(&mut self, classes: &[C]) -> Option<usize> {
        let first = self.first()?;
        self.head = classes[first].next();
        if self.head == NONE {
            self.tail = NONE;
        }
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Linked for u32 {
        fn next(&self) -> u32 {
            *self
        }
        fn set_next(&mut self, next: u32) {
            *self = next;
        }
    }

    #[test]
    fn a_list_is_first_in_first_out() {
        let (mut round, mut classes) = (Round::default(), vec![NONE; 4]);
        assert_eq!(round.pop(&classes), None);
        for class in [2, 0, 3] {
            round.push(&mut classes, class);
        }
        assert_eq!(round.pop(&classes), Some(2));
        round.push(&mut classes, 2);
        round.rotate(&mut classes);
        let rest: Vec<usize> = std::iter::from_fn(|| round.pop(&classes)).collect();
        assert_eq!(rest, [3, 2, 0]);
        assert_eq!(round, Round::default());
        round.push(&mut classes, 1);
        round.rotate(&mut classes);
        assert_eq!(round.first(), Some(1), "alone it stays where it is");
        round.push_front(&mut classes, 3);
        assert_eq!([round.pop(&classes), round.pop(&classes), round.pop(&classes)], [Some(3), Some(1), None]);
        round.push_front(&mut classes, 2);
        round.push(&mut classes, 1);
        assert_eq!([round.pop(&classes), round.pop(&classes), round.pop(&classes)], [Some(2), Some(1), None]);
        round.push(&mut classes, 1);
        let mut other = Round::default();
        round.append(&mut classes, other);
        [0, 2].into_iter().for_each(|class| other.push(&mut classes, class));
        round.append(&mut classes, other);
        round.push(&mut classes, 3);
        let all: Vec<usize> = std::iter::from_fn(|| round.pop(&classes)).collect();
        assert_eq!(all, [1, 0, 2, 3]);
        round.append(&mut classes, Round::default());
        assert_eq!(round, Round::default());
    }
}
