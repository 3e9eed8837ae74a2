//! For any text, reading returns a value or a mistake with its place: nothing panics and nothing overflows the stack.

use penstock_grammar::link::Link;
use penstock_grammar::named::Disciplines;
use penstock_grammar::source::Source;
use proptest::prelude::*;

/// Reads a text as a configuration with `[link]` and `[aqm]`.
fn read(text: &str) -> Result<(), penstock_grammar::Diagnosis> {
    let source = Source::parse(text, "f.toml")?;
    let known: [&[&str]; 1] = [&["link", "aqm", "a"]];
    source.table(source.root(), &known)?;
    if let Some(link) = source.get(&["link"]) {
        source.read::<Link>(link)?;
    }
    if let Some(aqm) = source.get(&["aqm"]) {
        source.named(aqm, &Disciplines::built_in())?;
    }
    Ok(())
}

#[test]
fn ten_thousand_levels_are_refused() {
    let n = 10_000;
    let deep = [
        format!("a = {}1{}", "[".repeat(n), "]".repeat(n)),
        format!("a = {}", "[".repeat(n)),
        format!("a = {}1{}", "{ a = ".repeat(n), " }".repeat(n)),
        format!("{} = 1", vec!["a"; n].join(".")),
        format!("[{}]\nb = 1", vec!["a"; n].join(".")),
        format!("[[{}]]\nb = 1", vec!["a"; n].join(".")),
        format!("aqm = {{ name = \"codel\", {} = 1 }}", vec!["a"; n].join(".")),
    ];
    for text in deep {
        let mistake = read(&text).expect_err(&text[..20]);
        assert!(mistake.what.contains("recurs"), "{}", mistake.what);
    }
}

/// Each header and each key is within the limit of nesting, but together they are deeper: their depths add up.
#[test]
fn depths_of_headers_and_keys_add_up_within_the_stack() {
    let seventy = vec!["a"; 70].join(".");
    let inline = format!("{}1{}", "{ a = ".repeat(70), " }".repeat(70));
    let text = format!("[a.{seventy}]\n{seventy} = {inline}\n");
    let source = Source::parse(&text, "f.toml").unwrap();
    assert!(source.read::<Link>(source.root()).is_err());
    assert!(source.read::<serde_json::Value>(source.root()).unwrap().is_object());
}

#[test]
fn huge_numbers_are_refused_in_words() {
    let digits = "9".repeat(5000);
    for value in [digits.clone(), format!("1e{digits}"), format!("\"{digits}Mbit/s\""), format!("-{digits}")] {
        let mistake = read(&format!("[link]\nrate = {value}\ndelay = \"1ms\"")).unwrap_err();
        assert_eq!(mistake.line, 2, "{}", mistake.what);
        let mistake = read(&format!("[aqm]\nname = \"codel\"\ntarget = {value}")).unwrap_err();
        assert_eq!(mistake.line, 3, "{}", mistake.what);
    }
}

#[test]
fn broken_and_empty_texts_are_answered() {
    for text in
        ["\0", "=", "[", "[[", "é = ", "a = \"\\", "aqm = 3", "aqm = []", "aqm = {}", "link = 3", "[aqm]\nname = 3"]
    {
        assert!(read(text).is_err(), "{text:?}");
    }
    assert!(read("").is_ok());
    assert!(read("\u{feff}").is_ok());
}

proptest! {
    #[test]
    fn any_text_is_answered(text in "[\\[\\]{}=.\"'#a-cé0-9\\n ,-]{0,200}") {
        if let Err(mistake) = read(&text) {
            prop_assert!(mistake.line >= 1 && mistake.column >= 1);
            prop_assert!(mistake.to_string().starts_with("error: "));
        }
    }

    #[test]
    fn any_value_of_a_known_key_is_answered(
        key in "rate|delay|limit|loss", name in "codel|pink|fq|lte-bearers|nothing", value in "[\\[\\]{}=.\"a-z0-9 ,/-]{0,40}",
    ) {
        let _ = read(&format!("[link]\nrate = \"1Mbit/s\"\ndelay = \"1ms\"\n{key} = {value}\n"));
        let _ = read(&format!("[aqm]\nname = {name:?}\ntarget = {value}\nflows = {value}\n"));
    }
}
