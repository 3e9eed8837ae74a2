//! Diagnoses: a mistake in a file with its place, what is wrong, and what is allowed.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use std::fmt;
use std::ops::Range;

/// A mistake in a file. [`Display`](fmt::Display) shows it below its line, as compilers do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    /// Name of the file, as the caller gave it.
    pub file: String,
    /// Number of the line, beginning with 1.
    pub line: usize,
    /// Column in characters, beginning with 1.
    pub column: usize,
    /// What is wrong and what is allowed, as one sentence.
    pub what: String,
    /// All names that are allowed here, if the mistake is a name; otherwise empty.
    pub allowed: Vec<String>,
    /// The sentence together with the line of the file, ready to print.
    drawn: String,
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.drawn)
    }
}

impl std::error::Error for Diagnosis {}

impl Diagnosis {
    /// Creates the diagnosis of the mistake `what` at these bytes of `text`.
    pub fn new(text: &str, file: &str, span: Range<usize>, what: &str) -> Self {
        let start = boundary(text, span.start);
        // Only the first line of a long span is underlined, because the begin of a table is easier to see than all of
        // it.
        let line_end = text[start..].find('\n').map_or(text.len(), |n| start + n);
        let end = boundary(text, span.end.max(start)).min(line_end).max(start);
        let snippet = Snippet::source(text).path(file).annotation(AnnotationKind::Primary.span(start..end));
        let report = &[Level::ERROR.primary_title(what).element(snippet)];
        let line_start = text[..start].rfind('\n').map_or(0, |n| n + 1);
        Self {
            file: file.to_owned(),
            line: text[..start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            what: what.to_owned(),
            allowed: Vec::new(),
            drawn: Renderer::plain().render(report),
        }
    }

    /// Returns the diagnosis with the names that are allowed in place of the wrong name.
    #[must_use]
    pub fn with_allowed<S: Into<String>>(mut self, allowed: impl IntoIterator<Item = S>) -> Self {
        self.allowed = allowed.into_iter().map(Into::into).collect();
        self
    }
}

/// Returns the last boundary of a character that is not after `at`.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|i| text.is_char_boundary(*i)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns_count_from_one_and_columns_are_characters() {
        let text = "a = 1\n\"é\" = x\n";
        let at = text.find('x').unwrap();
        let mistake = Diagnosis::new(text, "f.toml", at..at + 1, "no x");
        assert_eq!((mistake.line, mistake.column), (2, 7));
        assert!(mistake.to_string().contains("f.toml:2:7"), "{mistake}");
        assert!(mistake.to_string().starts_with("error: no x"), "{mistake}");
    }

    #[test]
    fn a_span_outside_the_text_or_within_a_character_is_drawn_at_its_edge() {
        for span in [0..0, 1..2, 90..99, 3..400] {
            let mistake = Diagnosis::new("é = 1", "f", span, "what");
            assert_eq!(mistake.line, 1);
        }
        assert_eq!(Diagnosis::new("", "f", 5..9, "what").column, 1);
    }
}
