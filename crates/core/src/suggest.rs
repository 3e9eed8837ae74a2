//! Messages about unknown names, with a suggestion of the most similar known name ("did you mean"), and about values of
//! a wrong kind, in words of a file and not of a program.

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

/// The message for an unknown name, such as `no cell "x" (did you mean "y"?); there are y, z`.
pub fn unknown_name(what: &str, name: &str, known: &[&str]) -> String {
    format!("no {what} {name:?}{}; there are {}", suggestion(name, known), known.join(", "))
}

/// Says in plain words what is said of a value of the wrong kind in those of the libraries that read files: `invalid
/// type: string "x", expected u64` becomes `"x" is not allowed here: write a whole number from 0 on`. What a name in
/// front says, such as `codel: `, stays; any other message is returned as it is.
pub fn plain(message: &str) -> String {
    let (start, rest) = match ["invalid type: ", "invalid value: "].iter().find_map(|head| {
        let at = message.find(head)?;
        Some((&message[..at], &message[at + head.len()..]))
    }) {
        Some(parts) => parts,
        None => return plain_variant(message),
    };
    let Some((found, wanted)) = rest.split_once(", expected ") else { return message.to_owned() };
    format!("{start}{} is not allowed here: write {}", plain_found(found), plain_kind(wanted))
}

/// The same of a name that is none of a few: `unknown variant` is a word of programs.
fn plain_variant(message: &str) -> String {
    match message.split_once("unknown variant `") {
        Some((start, rest)) => {
            format!("{start}`{}", rest.replacen("`, expected ", "` is not allowed here, expected ", 1))
        }
        None => message.to_owned(),
    }
}

/// The value that was found, as it stands in the file.
fn plain_found(found: &str) -> &str {
    let value = ["integer ", "floating point ", "boolean ", "string ", "character "].iter().find_map(|kind| {
        let value = found.strip_prefix(kind)?;
        Some(value.trim_matches('`'))
    });
    match (value, found) {
        (Some(value), _) => value,
        (None, "sequence" | "array") => "a list",
        (None, "map" | "table") => "a table",
        (None, "unit value" | "null" | "Option value") => "nothing",
        (None, "integer" | "float") => "a number",
        (None, "boolean") => "true or false",
        (None, "string") => "a text",
        (None, "datetime") => "a date",
        (None, other) => other,
    }
}

/// What is allowed, for the types whose names say it only to programmers.
fn plain_kind(wanted: &str) -> String {
    let bits = |kind: char| wanted.strip_prefix(kind).filter(|rest| rest.bytes().all(|c| c.is_ascii_digit()));
    match wanted {
        "u64" | "usize" | "u128" => "a whole number from 0 on".to_owned(),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u16" => format!("a whole number from 0 to {}", u16::MAX),
        "u8" => format!("a whole number from 0 to {}", u8::MAX),
        "a boolean" => "true or false".to_owned(),
        "a string" | "a borrowed string" => "a text in quotes".to_owned(),
        "a sequence" | "an array" => "a list".to_owned(),
        "a map" => "a table".to_owned(),
        _ if bits('i').is_some() || wanted == "isize" => "a whole number".to_owned(),
        _ if bits('f').is_some() => "a number".to_owned(),
        _ if wanted.starts_with("a nonzero ") => "a whole number above 0".to_owned(),
        _ if wanted.starts_with("struct ") => "a table".to_owned(),
        _ if wanted.starts_with("tuple ") || wanted.starts_with("an array of length ") => "a list".to_owned(),
        other => other.to_owned(),
    }
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
    fn names_are_a_list_of_words() {
        assert_eq!(
            unknown_name("cell", "yy", &["y", "zz"]),
            "no cell \"yy\" (did you mean \"y\"?); there are y, zz",
            "no brackets and no quotes of a program"
        );
    }

    /// The sentences on the left are those of serde and serde_json for these types.
    #[test]
    fn types_of_programs_become_words_of_files() {
        for (kind, words) in [("u64", "a whole number from 0 on"), ("f64", "a number"), ("i32", "a whole number")] {
            let told = plain(&format!("invalid type: string \"two\", expected {kind}"));
            assert_eq!(told, format!("\"two\" is not allowed here: write {words}"));
        }
        let value = |json: &str| {
            let value: serde_json::Value = serde_json::from_str(json).unwrap();
            serde_json::from_value::<u8>(value).unwrap_err().to_string()
        };
        assert!(plain(&value("-2")).starts_with("-2 is not allowed here: write a whole number from 0 to 255"));
        assert!(plain(&value("1.5")).starts_with("1.5 is not allowed here"));
        assert!(plain(&value("[1]")).starts_with("a list is not allowed here"));
        assert!(plain(&value("{}")).starts_with("a table is not allowed here"));
        assert!(plain(&value("null")).starts_with("nothing is not allowed here"));
        let flag = serde_json::from_value::<bool>(3.into()).unwrap_err().to_string();
        assert!(plain(&format!("codel: {flag}")).starts_with("codel: 3 is not allowed here: write true or false"));
        let text = serde_json::from_value::<String>(true.into()).unwrap_err().to_string();
        assert!(plain(&text).starts_with("true is not allowed here: write a text in quotes"), "{text}");
        assert_eq!(plain("the link is full"), "the link is full");
        assert_eq!(plain("unknown variant `a`, expected `b` or `c`"), "`a` is not allowed here, expected `b` or `c`");
    }

    #[test]
    fn an_unknown_key_comes_with_its_neighbour() {
        assert_eq!(unknown_key("sede", &["seed"]), "unknown field `sede` (did you mean `seed`?), expected `seed`");
        assert_eq!(unknown_key("zzzzz", &["a", "b"]), "unknown field `zzzzz`, expected `a` or `b`");
        assert_eq!(unknown_key("x", &[]), "unknown field `x`, there are no keys");
    }
}
