//! A user's mistake: file, line, what is wrong, what is allowed.

use super::raw::KINDS;
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};
use penstock_core::suggest::nearest;
use std::fmt;
use std::ops::Range;

/// A mistake in a scenario, rendered with the line it is on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnosis {
    rendered: String,
}

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rendered)
    }
}

impl std::error::Error for Diagnosis {}

/// A file, to point into.
pub struct Source<'a> {
    text: &'a str,
    file: &'a str,
    tree: Option<toml::Spanned<toml::de::DeTable<'a>>>,
}

impl<'a> Source<'a> {
    pub fn new(text: &'a str, file: &'a str) -> Self {
        Self { text, file, tree: toml::de::DeTable::parse(text).ok() }
    }

    /// What the TOML reader says, at its place.
    pub fn toml(&self, error: &toml::de::Error) -> Diagnosis {
        self.render(error.span().unwrap_or(0..0), error.message())
    }

    /// `message` at the value of a key; at the nearest table around it if the key is not written.
    pub fn at(&self, path: &[&str], message: &str) -> Diagnosis {
        self.render(self.find(path), message)
    }

    /// Like [`Source::at`].
    pub fn at_owned(&self, path: &[String], message: &str) -> Diagnosis {
        self.at(&path.iter().map(String::as_str).collect::<Vec<_>>(), message)
    }

    /// There is no `what` of this name: the nearest, and all there are.
    pub fn unknown(&self, path: &[&str], what: &str, name: &str, known: &[&str]) -> Diagnosis {
        let near = nearest(name, known);
        let hint = near.first().map(|n| format!(" (did you mean {n:?}?)")).unwrap_or_default();
        self.at(path, &format!("no {what} {name:?}{hint}; there are {known:?}"))
    }

    /// The `kind` of the topology: `None` if there is no such table, which the reader itself complains about.
    pub fn topology_kind(&self) -> Option<Result<&str, Diagnosis>> {
        let table = self.tree.as_ref()?.get_ref().get("topology")?.get_ref().as_table()?;
        let Some(kind) = table.get("kind") else {
            return Some(Err(self.at(&["topology"], &format!("`kind` is missing; it is one of {KINDS:?}"))));
        };
        let wrong = || self.at(&["topology", "kind"], &format!("`kind` is a text, one of {KINDS:?}"));
        Some(kind.get_ref().as_str().ok_or_else(wrong))
    }

    fn find(&self, path: &[&str]) -> Range<usize> {
        let Some(tree) = &self.tree else { return 0..0 };
        let mut span = 0..0;
        let mut here = path.first().and_then(|k| tree.get_ref().get_key_value(*k));
        let mut rest = path.get(1..).unwrap_or_default();
        while let Some((_, found)) = here {
            span = found.span();
            here = None;
            if let (Some(key), toml::de::DeValue::Table(table)) = (rest.first(), found.get_ref()) {
                here = table.get_key_value(*key);
                rest = &rest[1..];
            } else if let (Some(index), toml::de::DeValue::Array(array)) = (rest.first(), found.get_ref()) {
                let Some(element) = index.parse().ok().and_then(|i: usize| array.get(i)) else { break };
                span = element.span();
                rest = &rest[1..];
                if let (Some(key), toml::de::DeValue::Table(table)) = (rest.first(), element.get_ref()) {
                    here = table.get_key_value(*key);
                    rest = &rest[1..];
                }
            }
        }
        span
    }

    fn render(&self, span: Range<usize>, message: &str) -> Diagnosis {
        let clamp = |i: usize| (0..=i.min(self.text.len())).rev().find(|i| self.text.is_char_boundary(*i)).unwrap_or(0);
        let start = clamp(span.start);
        // Only the first line of a long span: a whole table underlined says less.
        let line_end = self.text[start..].find('\n').map_or(self.text.len(), |n| start + n);
        let end = clamp(span.end.max(start)).min(line_end).max(start);
        let snippet = Snippet::source(self.text).path(self.file).annotation(AnnotationKind::Primary.span(start..end));
        let report = &[Level::ERROR.primary_title(message).element(snippet)];
        Diagnosis { rendered: Renderer::plain().render(report) }
    }
}
