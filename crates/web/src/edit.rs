//! Setting of values in the text of a scenario. Everything else in the text stays as it is, comments included.

use crate::session::{FILE, Mistake};
use penstock_grammar::Source;
use penstock_grammar::source::Value;
use std::fmt::Write as _;
use toml::de::{DeTable, DeValue};

/// Sets the value at a path of keys and indices to a literal of TOML, such as `"5ms"` with its quotes. A key that is not
/// there is added to its table, and a table that is not there is added to the file.
///
/// # Errors
/// Returns the mistake in the text, or one without a place if the path leads through a list that has no such entry.
pub fn set(text: &str, path: &[&str], literal: &str) -> Result<String, Mistake> {
    let source = Source::parse(text, FILE)?;
    if let Some(value) = source.get(path).filter(|value| is_inline(text, value)) {
        return Ok(splice(text, value.span().start, value.span().end, literal));
    }
    let Some((key, parent)) = path.split_last() else { return Ok(text.to_owned()) };
    match source.get(parent) {
        Some(table) => add_key(text, table, parent.is_empty(), key, literal),
        None => add_table(text, parent, &[(key, literal)]),
    }
}

/// Replaces the table at a path of keys, or adds it: its keys are then `pairs`, whose values are literals of TOML.
///
/// # Errors
/// Returns the mistake in the text.
pub fn set_table(text: &str, path: &[&str], pairs: &[(&str, &str)]) -> Result<String, Mistake> {
    let source = Source::parse(text, FILE)?;
    match source.get(path) {
        Some(value) if is_inline(text, value) => {
            let pairs: Vec<String> = pairs.iter().map(|(key, literal)| format!("{key} = {literal}")).collect();
            let table = format!("{{ {} }}", pairs.join(", "));
            Ok(splice(text, value.span().start, value.span().end, &table))
        }
        Some(value) => {
            let begin = value.span().start;
            let rest = &text[begin..];
            let end = rest.match_indices("\n[").next().map_or(text.len(), |(at, _)| begin + at + 1);
            let blank = if end < text.len() { "\n" } else { "" };
            Ok(splice(text, begin, end, &format!("{}{blank}", written(path, pairs))))
        }
        None => add_table(text, path, pairs),
    }
}

/// True if the value stands behind `key =`, and not below a heading.
fn is_inline(text: &str, value: &Value<'_>) -> bool {
    let headed = |value: &Value<'_>| {
        matches!(value.get_ref(), DeValue::Table(_)) && !text[value.span().start..].starts_with('{')
    };
    match value.get_ref() {
        DeValue::Array(entries) => !entries.iter().any(headed),
        _ => !headed(value),
    }
}

fn splice(text: &str, begin: usize, end: usize, new: &str) -> String {
    format!("{}{new}{}", &text[..begin], &text[end..])
}

fn add_key(text: &str, table: &Value<'_>, is_root: bool, key: &str, literal: &str) -> Result<String, Mistake> {
    let DeValue::Table(entries) = table.get_ref() else {
        return Err(Mistake { line: 0, column: 0, text: format!("`{key}` cannot be set: it is not in a table") });
    };
    let last = last_inline(text, entries);
    if !is_root && is_inline(text, table) {
        let end = last.unwrap_or(table.span().start + 1);
        let comma = if entries.is_empty() { "" } else { "," };
        return Ok(splice(text, end, end, &format!("{comma} {key} = {literal}")));
    }
    let begin = if is_root { 0 } else { end_of_line(text, table.span().start) };
    let at = last.map_or(begin, |end| end_of_line(text, end));
    let line_break = if at > 0 && !text[..at].ends_with('\n') { "\n" } else { "" };
    Ok(splice(text, at, at, &format!("{line_break}{key} = {literal}\n")))
}

/// Returns where the last value of a table ends that does not stand below a heading of its own.
fn last_inline(text: &str, entries: &DeTable<'_>) -> Option<usize> {
    entries.iter().filter(|(_, value)| is_inline(text, value)).map(|(_, value)| value.span().end).max()
}

fn end_of_line(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |n| at + n + 1)
}

fn add_table(text: &str, path: &[&str], pairs: &[(&str, &str)]) -> Result<String, Mistake> {
    if let Some(index) = path.iter().find(|key| key.parse::<usize>().is_ok()) {
        return Err(Mistake { line: 0, column: 0, text: format!("there is no entry {index} in `{}`", path.join(".")) });
    }
    Ok(format!("{}\n\n{}", text.trim_end(), written(path, pairs)))
}

fn written(path: &[&str], pairs: &[(&str, &str)]) -> String {
    let mut table = format!("[{}]\n", path.join("."));
    for (key, literal) in pairs {
        let _ = writeln!(table, "{key} = {literal}");
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# mine\nname = \"a\"\n\n[topology]\nrate = \"1Mbit/s\" # slow\n\n[aqm]\nname = \"codel\"\n\
                        target = \"5ms\"\n\n[[flows]]\nkind = \"bulk\"\n[[flows]]\nkind = \"voip\"\ncount = 2\n";

    fn changed(text: &str, from: &str, to: &str) -> String {
        assert!(text.contains(from));
        text.replacen(from, to, 1)
    }

    #[test]
    fn a_value_is_replaced_and_comments_stay() {
        let set = set(TEXT, &["topology", "rate"], "\"2Mbit/s\"").unwrap();
        assert_eq!(set, changed(TEXT, "1Mbit", "2Mbit"));
    }

    #[test]
    fn a_key_is_added_to_its_own_table() {
        let added = set(TEXT, &["topology", "limit"], "\"9p\"").unwrap();
        assert_eq!(added, changed(TEXT, "# slow\n", "# slow\nlimit = \"9p\"\n"));
        let added = set(TEXT, &["flows", "0", "count"], "3").unwrap();
        assert_eq!(added, changed(TEXT, "kind = \"bulk\"\n", "kind = \"bulk\"\ncount = 3\n"));
        assert_eq!(set(TEXT, &["flows", "1", "count"], "3").unwrap(), changed(TEXT, "count = 2", "count = 3"));
        assert_eq!(set(TEXT, &["seed"], "3").unwrap(), changed(TEXT, "\"a\"\n", "\"a\"\nseed = 3\n"));
    }

    #[test]
    fn a_table_is_added_at_the_end() {
        assert_eq!(set(TEXT, &["tcp", "cc"], "\"bbr\"").unwrap(), format!("{TEXT}\n[tcp]\ncc = \"bbr\"\n"));
    }

    #[test]
    fn a_table_within_a_line_gets_its_key_there() {
        let text = "tcp = { cc = \"cubic\" }\n";
        assert_eq!(set(text, &["tcp", "sack"], "false").unwrap(), "tcp = { cc = \"cubic\", sack = false }\n");
        assert_eq!(set("tcp = {}\n", &["tcp", "sack"], "false").unwrap(), "tcp = { sack = false}\n");
    }

    #[test]
    fn a_discipline_is_replaced_with_all_its_parameters() {
        let pie = [("name", "\"pie\"")];
        let expected = changed(TEXT, "name = \"codel\"\ntarget = \"5ms\"\n", "name = \"pie\"\n");
        assert_eq!(set_table(TEXT, &["aqm"], &pie).unwrap(), expected);
        assert_eq!(set_table("aqm = \"codel\"\n", &["aqm"], &pie).unwrap(), "aqm = { name = \"pie\" }\n");
        assert_eq!(set_table("seed = 1\n", &["aqm"], &pie).unwrap(), "seed = 1\n\n[aqm]\nname = \"pie\"\n");
        let last = "seed = 1\n[aqm]\nname = \"codel\"\n";
        assert_eq!(set_table(last, &["aqm"], &pie).unwrap(), "seed = 1\n[aqm]\nname = \"pie\"\n");
    }

    #[test]
    fn what_cannot_be_set_is_refused() {
        assert_eq!(set("x = ", &["seed"], "1").unwrap_err().line, 1);
        assert!(set(TEXT, &["flows", "7", "count"], "1").unwrap_err().text.contains("no entry 7"));
        assert!(set(TEXT, &["name", "x"], "1").unwrap_err().text.contains("not in a table"));
    }
}
