//! Dense indices, given out and taken back.

/// Indices from 0 on; the one that came back last is given first.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pool {
    free: Vec<u32>,
    next: u32,
}

impl Pool {
    pub fn new(size: u32) -> Self {
        Self { free: Vec::with_capacity(size as usize), next: 0 }
    }

    /// Returns an index, and whether it was in use before.
    pub fn take(&mut self) -> (u32, bool) {
        match self.free.pop() {
            Some(index) => (index, true),
            None => {
                self.next += 1;
                (self.next - 1, false)
            }
        }
    }

    pub fn give(&mut self, index: u32) {
        self.free.push(index);
    }
}
