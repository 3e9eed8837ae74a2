//! The lines of a recorded file, and what can be wrong with them.

/// Largest size of a text in bytes.
pub const MAX_BYTES: usize = 64 << 20;
/// Largest number of lines.
pub const MAX_LINES: usize = 10_000_000;
/// A mistake in a recorded file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}{}: {what}", line.map(|line| format!(":{line}")).unwrap_or_default())]
pub struct RecordedError {
    /// Name of the file.
    pub file: String,
    /// Number of the line, beginning with 1; `None` if the mistake concerns the whole file.
    pub line: Option<usize>,
    /// What is wrong, and what is allowed.
    pub what: String,
}

/// What is wrong in a text, with the number of the line; `None` if it concerns the whole text.
pub struct Mistake {
    line: Option<usize>,
    what: String,
}

impl Mistake {
    pub fn in_line(self, number: usize) -> Self {
        Self { line: Some(number), ..self }
    }

    pub fn in_file(self, file: &str) -> RecordedError {
        RecordedError { file: file.to_owned(), line: self.line, what: self.what }
    }
}

impl From<String> for Mistake {
    fn from(what: String) -> Self {
        Self { line: None, what }
    }
}

/// Iterates over the lines that are not empty, with their numbers. A text that is too long is refused before it is
/// read.
pub fn lines(text: &str) -> Result<impl Iterator<Item = (usize, &str)>, Mistake> {
    if text.len() > MAX_BYTES {
        return Err(Mistake::from(format!("has {} bytes; allowed are {MAX_BYTES}", text.len())));
    }
    if text.bytes().filter(|byte| *byte == b'\n').count() > MAX_LINES {
        return Err(Mistake::from(format!("has more than {MAX_LINES} lines, which is the most that is allowed")));
    }
    let text = text.trim_start_matches('\u{feff}');
    Ok((1..).zip(text.lines()).map(|(number, line)| (number, line.trim())).filter(|(_, line)| !line.is_empty()))
}
