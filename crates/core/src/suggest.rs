//! "Did you mean": the names that are most like one that is not known.

/// The names closest to `name`, best first, for "did you mean".
pub fn nearest<'a>(name: &str, known: &[&'a str]) -> Vec<&'a str> {
    let most = (name.chars().count() / 2).clamp(1, 3);
    let mut scored: Vec<_> =
        known.iter().map(|k| (strsim::osa_distance(name, k), *k)).filter(|(d, _)| *d <= most).collect();
    scored.sort_unstable();
    scored.into_iter().map(|(_, k)| k).take(3).collect()
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
}
