//! The layout of numbers: links in pairs.

/// One direction of a duplex link, as its place in the list of all links. The two directions stand side by side: those
/// of the scenario's links first, forward before reverse, then those of the hosts' access links, from the host before
/// to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkDir(u32);

impl LinkDir {
    /// The forward direction of the duplex link with this number.
    pub fn forward(duplex: usize) -> Self {
        Self(2 * duplex as u32)
    }

    /// The direction that stands at this place.
    #[inline]
    pub const fn at(place: u32) -> Self {
        Self(place)
    }

    /// The other direction of the same link.
    #[inline]
    pub const fn reverse(self) -> Self {
        Self(self.0 ^ 1)
    }

    /// True for the direction from the first end to the second, or from a host.
    pub const fn is_forward(self) -> bool {
        self.0 & 1 == 0
    }

    /// The number of the duplex link.
    pub const fn duplex(self) -> usize {
        self.0 as usize / 2
    }

    /// Its place in the list of all links.
    #[inline]
    pub const fn place(self) -> u32 {
        self.0
    }

    /// Its place in the list of all links, as an index.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
