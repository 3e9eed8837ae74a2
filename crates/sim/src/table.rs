//! Tables stored by column: the form in which a run returns its results.

/// One column of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// A column of unsigned 64-bit integers.
    U64(Vec<u64>),
    /// A column of floating point numbers.
    F64(Vec<f64>),
    /// A column of unsigned 32-bit integers.
    U32(Vec<u32>),
}

/// A table with named columns of equal length.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Name of the table and of the file to which it is written.
    pub name: &'static str,
    /// The columns with their names; a name ends with the unit of its values.
    pub columns: Vec<(&'static str, Column)>,
}
