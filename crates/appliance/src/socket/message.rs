//! Requests and answers, each one line of JSON.

use penstock_core::suggest::suggestion;
use penstock_core::units::Span;
use serde_json::{Map, Value, json};
use std::fmt;

/// The version of the protocol.
pub const VERSION: u64 = 1;
/// Longest request in bytes, with its line feed.
pub const LONGEST_REQUEST: usize = 1024 * 1024;
/// Longest answer in bytes that a client reads.
pub const LONGEST_ANSWER: usize = 4 * 1024 * 1024;
/// The largest number of entries that one may ask `top` for.
pub const MOST_ENTRIES: usize = 1000;

const VERBS: [&str; 6] = ["status", "top", "set", "apply", "keep", "rollback"];
const ENTRIES: usize = 20;

/// What a client asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// All counters, as in the report.
    Status,
    /// Who carries most.
    Top {
        /// Who is counted: flows or nodes.
        by: By,
        /// The largest number of entries to return.
        most: usize,
    },
    /// New values of parameters. All of them are applied or none.
    Set(Set),
    /// What a file says, as far as it differs. All of it is applied or nothing.
    Apply(Apply),
    /// What was set for a time, or until it is confirmed, stays.
    Keep,
    /// The values before the last change return.
    Rollback,
}

/// New values of parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Set {
    /// Keys with their values, in the order of the request.
    pub values: Vec<(String, String)>,
    /// When the former values return; `None` if they do not.
    pub until: Option<Until>,
}

/// A file of settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Apply {
    /// The name of the file, for messages.
    pub name: String,
    /// Its text.
    pub text: String,
    /// When the former values return; `None` if they do not.
    pub until: Option<Until>,
}

/// When former values return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// After this time.
    For(Span),
    /// After this time, unless the change is confirmed before (`keep`).
    Confirmed(Span),
}

impl Until {
    /// The longest time: a week.
    pub const LONGEST: Span = Span::from_secs(7 * 86_400);

    /// Returns the time after which the former values return.
    pub const fn span(self) -> Span {
        match self {
            Self::For(span) | Self::Confirmed(span) => span,
        }
    }
}

/// Who is counted by `top`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum By {
    /// List each flow
    #[default]
    Flow,
    /// List each host with all its flows: hosts of the LAN, or of the side that `--nodes` of the emulator selects
    Node,
}

impl By {
    /// All words with their meaning.
    pub const WORDS: [(&'static str, Self); 2] = [("flow", Self::Flow), ("node", Self::Node)];

    /// Returns the word of the protocol.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Flow => "flow",
            Self::Node => "node",
        }
    }
}

/// Why a request was not fulfilled, and what would have been.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong, as a sentence.
    pub what: String,
    /// What is allowed instead; empty if there is no list.
    pub allowed: Vec<String>,
}

impl Refusal {
    /// Creates a refusal that has no list of what is allowed.
    pub fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), allowed: Vec::new() }
    }

    /// Creates a refusal of a name which is none of `allowed`, with a suggestion.
    pub fn unknown(what: &str, name: &str, allowed: &[&str]) -> Self {
        let what = format!("there is no {what} {name:?}{}", suggestion(name, allowed));
        Self { what, allowed: allowed.iter().map(|&word| word.to_owned()).collect() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if self.allowed.is_empty() { Ok(()) } else { write!(f, "; allowed: {}", self.allowed.join(", ")) }
    }
}

impl Request {
    /// Reads one request, with or without its line feed.
    ///
    /// # Errors
    /// Returns the first mistake, with what is allowed.
    pub fn parse(line: &[u8]) -> Result<Self, Refusal> {
        let example = r#"{"v":1,"do":"status"}"#;
        let value = serde_json::from_slice(line)
            .map_err(|e| Refusal::new(format!("the request is not one line of JSON such as {example}: {e}")))?;
        let Value::Object(mut keys) = value else {
            return Err(Refusal::new(format!("a request is a JSON object such as {example}")));
        };
        version(keys.remove("v"))?;
        let request = match keys.remove("do").as_ref().and_then(Value::as_str) {
            Some("status") => Self::Status,
            Some("top") => Self::Top { by: by(keys.remove("by"))?, most: most(keys.remove("most"))? },
            Some("set") => Self::Set(Set { values: values(keys.remove("values"))?, until: until(&mut keys)? }),
            Some("apply") => Self::Apply(Apply {
                name: word("name", keys.remove("name"))?,
                text: word("text", keys.remove("text"))?,
                until: until(&mut keys)?,
            }),
            Some("keep") => Self::Keep,
            Some("rollback") => Self::Rollback,
            Some(other) => return Err(Refusal::unknown("verb", other, &VERBS)),
            None => {
                let allowed = VERBS.map(str::to_owned).to_vec();
                return Err(Refusal { what: "`do` must name the verb".into(), allowed });
            }
        };
        match keys.keys().next() {
            Some(key) => Err(Refusal::unknown("key", key, request.keys())),
            None => Ok(request),
        }
    }

    /// Returns the keys of this kind of request.
    fn keys(&self) -> &'static [&'static str] {
        match self {
            Self::Status | Self::Keep | Self::Rollback => &["v", "do"],
            Self::Top { .. } => &["v", "do", "by", "most"],
            Self::Set(_) => &["v", "do", "values", "for", "confirm"],
            Self::Apply(_) => &["v", "do", "name", "text", "for", "confirm"],
        }
    }

    /// Returns the request as a line with its line feed.
    pub fn line(&self) -> String {
        let value = match self {
            Self::Status => json!({"v": VERSION, "do": "status"}),
            Self::Top { by, most } => json!({"v": VERSION, "do": "top", "by": by.word(), "most": most}),
            Self::Set(Set { values, until }) => {
                let values: Map<_, _> = values.iter().map(|(k, v)| (k.clone(), Value::from(v.clone()))).collect();
                with_end(json!({"v": VERSION, "do": "set", "values": values}), *until)
            }
            Self::Apply(Apply { name, text, until }) => {
                with_end(json!({"v": VERSION, "do": "apply", "name": name, "text": text}), *until)
            }
            Self::Keep => json!({"v": VERSION, "do": "keep"}),
            Self::Rollback => json!({"v": VERSION, "do": "rollback"}),
        };
        format!("{value}\n")
    }
}

/// Adds when former values return.
fn with_end(mut request: Value, until: Option<Until>) -> Value {
    match until {
        Some(Until::For(span)) => request["for"] = span.to_string().into(),
        Some(Until::Confirmed(span)) => request["confirm"] = span.to_string().into(),
        None => {}
    }
    request
}

fn word(key: &str, value: Option<Value>) -> Result<String, Refusal> {
    let Some(Value::String(text)) = value else { return Err(Refusal::new(format!("`{key}` must be a text"))) };
    Ok(text)
}

fn version(value: Option<Value>) -> Result<(), Refusal> {
    let what = match value {
        Some(v) if v.as_u64() == Some(VERSION) => return Ok(()),
        Some(v) => format!("version {v} of the protocol is not spoken here"),
        None => "`v`, the version of the protocol, is missing".to_owned(),
    };
    Err(Refusal { what, allowed: vec![VERSION.to_string()] })
}

fn by(value: Option<Value>) -> Result<By, Refusal> {
    let Some(value) = value else { return Ok(By::default()) };
    let word = value.as_str().unwrap_or_default();
    let known = By::WORDS.into_iter().find(|(known, _)| *known == word);
    known.map(|(_, by)| by).ok_or_else(|| Refusal::unknown("list by", word, &By::WORDS.map(|(word, _)| word)))
}

fn most(value: Option<Value>) -> Result<usize, Refusal> {
    let Some(value) = value else { return Ok(ENTRIES) };
    let number = value.as_u64().and_then(|n| usize::try_from(n).ok()).filter(|n| (1..=MOST_ENTRIES).contains(n));
    number.ok_or_else(|| Refusal {
        what: format!("`most` cannot be {value}"),
        allowed: vec![format!("1 to {MOST_ENTRIES}")],
    })
}

fn values(value: Option<Value>) -> Result<Vec<(String, String)>, Refusal> {
    let Some(Value::Object(values)) = value else {
        return Err(Refusal::new(r#"`values` must be an object such as {"rate":"10Mbit/s"}"#));
    };
    if values.is_empty() {
        return Err(Refusal::new("`values` has no key, so there is nothing to set"));
    }
    let text = |(key, value): (String, Value)| match value {
        Value::String(text) => Ok((key, text)),
        Value::Number(_) | Value::Bool(_) | Value::Array(_) => Ok((key, value.to_string())),
        _ => {
            Err(Refusal::new(format!("the value of {key:?} is neither a text nor a number, true or false, nor a list")))
        }
    };
    values.into_iter().map(text).collect()
}

fn until(keys: &mut Map<String, Value>) -> Result<Option<Until>, Refusal> {
    match (keys.remove("for"), keys.remove("confirm")) {
        (None, None) => Ok(None),
        (Some(value), None) => Ok(Some(Until::For(span("for", &value)?))),
        (None, Some(value)) => Ok(Some(Until::Confirmed(span("confirm", &value)?))),
        (Some(_), Some(_)) => Err(Refusal::new("`for` and `confirm` exclude each other")),
    }
}

fn span(key: &str, value: &Value) -> Result<Span, Refusal> {
    let read = value.as_str().and_then(|text| text.parse().ok());
    let allowed = |span: &Span| (Span::from_secs(1)..=Until::LONGEST).contains(span);
    read.filter(allowed).ok_or_else(|| Refusal {
        what: format!("`{key}` cannot be {value}"),
        allowed: vec![r#""1s" to "168h", a time in quotes with its unit"#.to_owned()],
    })
}

/// What an appliance answers: the text of a JSON value, or a refusal.
pub type Answer = Result<String, Refusal>;

/// Returns an answer as a line with its line feed.
pub fn answer_line(answer: &Answer) -> String {
    match answer {
        Ok(json) => format!("{{\"v\":{VERSION},\"ok\":{json}}}\n"),
        Err(Refusal { what, allowed }) => {
            format!("{}\n", json!({"v": VERSION, "error": {"what": what, "allowed": allowed}}))
        }
    }
}

/// Reads an answer.
///
/// # Errors
/// Returns the refusal of the appliance, or one that says that the answer cannot be read.
pub fn parse_answer(line: &[u8]) -> Result<Value, Refusal> {
    let unreadable = |why: String| Refusal::new(format!("the answer cannot be read: {why}"));
    let mut answer: Value = serde_json::from_slice(line).map_err(|e| unreadable(e.to_string()))?;
    if answer["v"].as_u64() != Some(VERSION) {
        return Err(unreadable(format!("its version is {}, not {VERSION}", answer["v"])));
    }
    if let Some(error) = answer.get("error") {
        let allowed = error["allowed"].as_array().map(Vec::as_slice).unwrap_or_default();
        return Err(Refusal {
            what: error["what"].as_str().unwrap_or("refused without a reason").to_owned(),
            allowed: allowed.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        });
    }
    match answer.get_mut("ok") {
        Some(ok) => Ok(ok.take()),
        None => Err(unreadable("it has neither `ok` nor `error`".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn refused(line: &str) -> Refusal {
        Request::parse(line.as_bytes()).unwrap_err()
    }

    #[test]
    fn the_lines_of_the_documentation_are_read() {
        let parse = |line: &str| Request::parse(line.as_bytes()).unwrap();
        assert_eq!(parse(r#"{"v":1,"do":"status"}"#), Request::Status);
        assert_eq!(parse("{\"v\":1,\"do\":\"top\"}\r\n"), Request::Top { by: By::Flow, most: 20 });
        assert_eq!(parse(r#"{"v":1,"do":"top","by":"node","most":3}"#), Request::Top { by: By::Node, most: 3 });
        let set = parse(r#"{"v":1,"do":"set","values":{"rate":"5Mbit/s","loss":0.01}}"#);
        let values = vec![("loss".into(), "0.01".into()), ("rate".into(), "5Mbit/s".into())];
        assert_eq!(set, Request::Set(Set { values, until: None }));
        let set = parse(r#"{"v":1,"do":"set","values":{"stations":[0.1,{"technology":"wifi","snr_db":9}]}}"#);
        let values = vec![("stations".into(), r#"[0.1,{"snr_db":9,"technology":"wifi"}]"#.into())];
        assert_eq!(set, Request::Set(Set { values, until: None }), "a list stays JSON");
        let set = parse(r#"{"v":1,"do":"set","values":{"rate":"5Mbit/s"},"for":"2h"}"#);
        let values = vec![("rate".into(), "5Mbit/s".into())];
        assert_eq!(set, Request::Set(Set { values, until: Some(Until::For(Span::from_secs(7200))) }));
        let apply = parse(r#"{"v":1,"do":"apply","name":"f","text":"a = 1\n"}"#);
        assert_eq!(apply, Request::Apply(Apply { name: "f".into(), text: "a = 1\n".into(), until: None }));
        assert_eq!(parse(r#"{"v":1,"do":"keep"}"#), Request::Keep);
        assert_eq!(parse(r#"{"v":1,"do":"rollback"}"#), Request::Rollback);
    }

    #[test]
    fn a_refusal_says_what_is_allowed() {
        assert_eq!(refused(r#"{"do":"status"}"#).allowed, ["1"]);
        assert_eq!(refused(r#"{"v":2,"do":"status"}"#).allowed, ["1"]);
        assert_eq!(refused(r#"{"v":1}"#).allowed, VERBS);
        let verb = refused(r#"{"v":1,"do":"staus"}"#);
        assert!(verb.what.contains("did you mean \"status\"?") && verb.allowed == VERBS, "{verb}");
        assert_eq!(refused(r#"{"v":1,"do":"status","most":1}"#).allowed, ["v", "do"]);
        assert_eq!(refused(r#"{"v":1,"do":"top","by":"nodes"}"#).allowed, ["flow", "node"]);
        for most in ["0", "1001", "-1", "1.5", "\"7\"", "1e99"] {
            let refusal = refused(&format!(r#"{{"v":1,"do":"top","most":{most}}}"#));
            assert_eq!(refusal.allowed, ["1 to 1000"], "{most}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_a_sentence() {
        let deep = format!(r#"{{"v":1,"do":{}"#, "[".repeat(LONGEST_REQUEST));
        for line in ["", "\n", "null", "[]", "{", "\u{feff}{}", r#"{"v":1,"do":7}"#, &deep] {
            assert!(!refused(line).what.is_empty(), "{line:?}");
        }
        for until in [r#""for":7"#, r#""for":"0s""#, r#""confirm":"200h""#, r#""for":"1s","confirm":"1s""#] {
            let refusal = refused(&format!(r#"{{"v":1,"do":"set","values":{{"rate":"1Mbit/s"}},{until}}}"#));
            assert!(refusal.what.contains("`for`") || refusal.what.contains("`confirm`"), "{until}: {refusal}");
        }
        for values in ["7", "{}", r#"{"rate":null}"#, r#"{"rate":{"a":1}}"#] {
            assert!(refused(&format!(r#"{{"v":1,"do":"set","values":{values}}}"#)).what.contains("value"), "{values}");
        }
    }

    #[test]
    fn answers_come_back_as_they_were_given() {
        assert_eq!(parse_answer(answer_line(&Ok("{\"a\":1}".into())).as_bytes()), Ok(json!({"a": 1})));
        let refusal = Refusal { what: "a \"quoted\"\nline".into(), allowed: vec!["x".into(), "y".into()] };
        let line = answer_line(&Err(refusal.clone()));
        assert_eq!(line.matches('\n').count(), 1, "an answer is one line");
        assert_eq!(parse_answer(line.as_bytes()), Err(refusal));
        for line in ["", "{}", r#"{"v":1}"#, r#"{"v":9,"ok":1}"#] {
            assert!(parse_answer(line.as_bytes()).is_err(), "{line}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_request_or_a_refusal(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Request::parse(&bytes);
            let _ = parse_answer(&bytes);
        }

        #[test]
        fn what_a_request_writes_is_what_it_reads(
            key in "[a-z_.]{1,20}", value in "\\PC{0,20}", most in 1..=MOST_ENTRIES, node in any::<bool>(),
            s in 1..=604_800u64,
        ) {
            let by = if node { By::Node } else { By::Flow };
            let span = Span::from_secs(s);
            let sets = [None, Some(Until::For(span)), Some(Until::Confirmed(span))];
            let sets = sets.map(|until| Request::Set(Set { values: vec![(key.clone(), value.clone())], until }));
            let others = [Request::Status, Request::Top { by, most }, Request::Keep, Request::Rollback];
            let applies = [None, Some(Until::Confirmed(span))];
            let applies = applies.map(|until| Request::Apply(Apply { name: key.clone(), text: value.clone(), until }));
            for request in others.into_iter().chain(sets).chain(applies) {
                prop_assert_eq!(Request::parse(request.line().as_bytes()), Ok(request));
            }
        }
    }
}
