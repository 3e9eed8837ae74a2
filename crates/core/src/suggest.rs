//! Messages about unknown names, with a suggestion of the most similar known name ("did you mean").

/// The known names that are closest to `name`, best first.
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Vec<&'a str> {
    let most = (name.chars().count() / 2).clamp(1, 3);
    let mut scored: Vec<_> =
        known.iter().map(|k| (strsim::osa_distance(name, k), *k)).filter(|(d, _)| *d <= most).collect();
    scored.sort_unstable();
    scored.into_iter().map(|(_, k)| k).take(3).collect()
}

/// The text ` (did you mean "red"?)`, or an empty text if no known name is similar.
pub fn suggestion(name: &str, known: &[&str]) -> String {
    nearest(name, known).first().map(|near| format!(" (did you mean {near:?}?)")).unwrap_or_default()
}

/// The message for an unknown name, such as `no cell "x" (did you mean "y"?); there are ["y", "z"]`.
pub fn unknown_name(what: &str, name: &str, known: &[&str]) -> String {
    format!("no {what} {name:?}{}; there are {known:?}", suggestion(name, known))
}

/// The message for an unknown key, such as "unknown field `sede`, expected ...", with a suggestion and all known keys.
pub fn unknown_key(key: &str, known: &[&str]) -> String {
    let hint = nearest(key, known).first().map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
    let quoted: Vec<String> = known.iter().map(|key| format!("`{key}`")).collect();
    let expected = match quoted.as_slice() {
        [] => "there are no keys".to_owned(),
        [one] => format!("expected {one}"),
        [one, other] => format!("expected {one} or {other}"),
        many => format!("expected one of {}", many.join(", ")),
    };
    format!("unknown field `{key}`{hint}, {expected}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_finds_its_neighbour() {
        let known = ["droptail", "codel", "pie", "red"];
        assert_eq!(nearest("droptial", &known), ["droptail"]);
        assert_eq!(nearest("codle", &known), ["codel"]);
        assert!(nearest("zzzzzzzzzz", &known).is_empty());
        assert_eq!(nearest("rde", &["pie", "red"]), ["red"]);
    }

    #[test]
    fn an_unknown_key_comes_with_its_neighbour() {
        assert_eq!(unknown_key("sede", &["seed"]), "unknown field `sede` (did you mean `seed`?), expected `seed`");
        assert_eq!(unknown_key("zzzzz", &["a", "b"]), "unknown field `zzzzz`, expected `a` or `b`");
        assert_eq!(unknown_key("x", &[]), "unknown field `x`, there are no keys");
    }
}
