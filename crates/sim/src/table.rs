//! Tables by column, as runs hand them out.

/// One column of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// Unsigned 64-bit integers.
    U64(Vec<u64>),
    /// Floating point numbers.
    F64(Vec<f64>),
    /// Unsigned 32-bit integers.
    U32(Vec<u32>),
}

/// A table with named columns of equal length.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Its name, which is also its file's.
    pub name: &'static str,
    /// Columns; names end with their unit.
    pub columns: Vec<(&'static str, Column)>,
}
