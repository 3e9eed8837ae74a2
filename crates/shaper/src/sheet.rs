//! Sheets on which what becomes of packets is kept until somebody writes it to a file.

/// Number of packets in a sheet.
pub const ENTRIES: usize = 4096;

/// Packets that wait to be written together.
pub trait Sheet: Sized + Send + 'static {
    /// Creates an empty sheet, with room for [`ENTRIES`] packets and some more.
    fn empty() -> Self;
    /// Returns the number of packets.
    fn packets(&self) -> usize;
    /// Forgets all packets, and keeps the room.
    fn clear(&mut self);
}
