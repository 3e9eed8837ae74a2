//! Lines of fixed number in sets of eight, found by a keyed hash. No list, no lock, and no memory beyond the lines, so
//! that the same layout works in an array of eBPF.
//!
//! A hash selects two sets, and its line is in one of them. A set has a head of 64 bytes with a tag and the time of last
//! use of each of its lines. A line has no key but the whole hash of it, 64 bits under a secret key: that two of 65,536
//! connections have the same is as likely as 10^-10.

use penstock_core::units::{Instant, Span};

/// Number of lines in a set.
pub(crate) const WAYS: usize = 8;
/// Binary logarithm of a tick in nanoseconds: 1.05 ms, so that ticks last 52 days until they repeat.
const TICK: u32 = 20;

fn ticks(now: Instant) -> u32 {
    (now.as_nanos() >> TICK) as u32
}

/// Returns a span in ticks, at most half of what can be distinguished.
fn ticks_of(span: Span) -> u32 {
    (span.as_nanos() >> TICK).min(u64::from(u32::MAX >> 1)) as u32
}

/// The tags (0 for a free line) and times of last use of eight lines.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
struct Head {
    tags: [u32; WAYS],
    used: [u32; WAYS],
}

/// Sets of lines.
#[derive(Debug, Clone)]
pub(crate) struct Sets<L> {
    heads: Vec<Head>,
    /// Each with its hash.
    lines: Vec<(u64, L)>,
    len: u32,
    hand: usize,
}

fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32 | 1
}

/// Returns the first of the places with the largest value.
pub(crate) fn most<T: PartialOrd>(places: impl Iterator<Item = usize>, value: impl Fn(usize) -> T) -> Option<usize> {
    places.reduce(|best, at| if value(at) > value(best) { at } else { best })
}

impl<L: Clone + Default> Sets<L> {
    /// Creates sets for at least `lines` lines: the next power of two, at least one set.
    pub fn new(lines: u32) -> Self {
        let sets = (lines.max(1) as usize).div_ceil(WAYS).next_power_of_two();
        Self { heads: vec![Head::default(); sets], lines: vec![(0, L::default()); sets * WAYS], len: 0, hand: 0 }
    }

    /// Number of lines in use.
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Number of lines, in use or not.
    pub fn capacity(&self) -> u32 {
        self.lines.len() as u32
    }

    /// Returns the two sets of a hash, which may be the same.
    pub fn sets_of(&self, hash: u64) -> [usize; 2] {
        let mask = self.heads.len() - 1;
        [hash as usize & mask, (hash >> 24) as usize & mask]
    }

    /// Returns the place of the line with this hash.
    #[inline]
    pub fn find(&self, hash: u64) -> Option<usize> {
        let [first, second] = self.sets_of(hash);
        self.find_in(first, hash).or_else(|| self.find_in(second, hash))
    }

    #[inline]
    fn find_in(&self, set: usize, hash: u64) -> Option<usize> {
        let tag = tag(hash);
        let hit = |(way, known): (usize, &u32)| {
            let at = set * WAYS + way;
            (*known == tag && self.lines[at].0 == hash).then_some(at)
        };
        self.heads[set].tags.iter().enumerate().find_map(hit)
    }

    /// Returns a free place for this hash, in the emptier of its two sets.
    pub fn vacancy(&self, hash: u64) -> Option<usize> {
        let free = |set: usize| self.heads[set].tags.iter().filter(|tag| **tag == 0).count();
        let [first, second] = self.sets_of(hash);
        let set = if free(second) > free(first) { second } else { first };
        let way = self.heads[set].tags.iter().position(|tag| *tag == 0)?;
        Some(set * WAYS + way)
    }

    /// Returns a free place for this hash. If there is none, the line goes that was unused for longest, of those that may go.
    pub fn room(&mut self, hash: u64, now: Instant, may_go: impl Fn(usize) -> bool) -> Option<usize> {
        self.vacancy(hash).or_else(|| {
            let at = most(self.rivals(hash).filter(|at| may_go(*at)), |at| self.unused(at, now))?;
            self.take(at);
            Some(at)
        })
    }

    /// Returns the places in use in the two sets of this hash.
    pub fn rivals(&self, hash: u64) -> impl Iterator<Item = usize> + '_ {
        let [first, second] = self.sets_of(hash);
        let other = (second != first).then_some(second);
        self.in_set(first).chain(other.into_iter().flat_map(|set| self.in_set(set)))
    }

    /// Returns the places in use in one set.
    pub fn in_set(&self, set: usize) -> impl Iterator<Item = usize> + '_ {
        (0..WAYS).filter(move |way| self.heads[set].tags[*way] != 0).map(move |way| set * WAYS + way)
    }

    /// Number of sets.
    pub fn sets(&self) -> usize {
        self.heads.len()
    }

    /// Puts a line into a free place.
    pub fn put(&mut self, at: usize, hash: u64, line: L, now: Instant) {
        debug_assert!(self.heads[at / WAYS].tags[at % WAYS] == 0, "a place has one line");
        self.heads[at / WAYS].tags[at % WAYS] = tag(hash);
        self.lines[at] = (hash, line);
        self.touch(at, now);
        self.len += 1;
    }

    /// Takes a line out of its place.
    pub fn take(&mut self, at: usize) -> L {
        debug_assert!(self.heads[at / WAYS].tags[at % WAYS] != 0, "a place that is in use");
        self.heads[at / WAYS].tags[at % WAYS] = 0;
        self.len -= 1;
        std::mem::take(&mut self.lines[at].1)
    }

    /// Notes that a line was used.
    #[inline]
    pub fn touch(&mut self, at: usize, now: Instant) {
        self.heads[at / WAYS].used[at % WAYS] = ticks(now);
    }

    /// Returns for how many ticks a line was not used.
    #[inline]
    pub fn unused(&self, at: usize, now: Instant) -> u32 {
        ticks(now).wrapping_sub(self.heads[at / WAYS].used[at % WAYS])
    }

    /// Returns whether a line was not used for longer than this.
    #[inline]
    pub fn is_over(&self, at: usize, limit: Span, now: Instant) -> bool {
        self.unused(at, now) > ticks_of(limit)
    }

    /// Returns the line at a place in use.
    #[inline]
    pub fn line(&self, at: usize) -> &L {
        &self.lines[at].1
    }

    /// Returns the line at a place in use.
    #[inline]
    pub fn line_mut(&mut self, at: usize) -> &mut L {
        &mut self.lines[at].1
    }

    /// Looks at the set under the hand: returns the place of a line there that was unused for longer than its limit, or
    /// moves the hand on if there is none. No limit is below `least`. A caller who frees what it gets frees all idle lines
    /// within as many calls as there are sets and idle lines.
    #[inline]
    pub fn swept(&mut self, least: Span, now: Instant, limit: impl Fn(&L) -> Span) -> Option<usize> {
        let (set, ticks, most) = (self.hand, ticks(now), ticks_of(least));
        let Head { tags, used } = &self.heads[set];
        let is_old = |(tag, used): (&u32, &u32)| (*tag != 0) & (ticks.wrapping_sub(*used) > most);
        let old = tags.iter().zip(used).fold(false, |old, line| old | is_old(line));
        let idle = |at: &usize| self.is_over(*at, least.max(limit(self.line(*at))), now);
        let found = if old { self.in_set(set).find(idle) } else { None };
        if found.is_none() {
            self.hand = (set + 1) & (self.heads.len() - 1);
        }
        found
    }
}
