//! Requests and answers, each one line of JSON.

use penstock_core::suggest::suggestion;
use penstock_core::units::Span;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::fmt;
use std::ops::RangeInclusive;

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
    /// The times after which they may return: up to a week.
    pub const ALLOWED: RangeInclusive<Span> = Span::from_secs(1)..=Span::from_secs(7 * 86_400);

    /// Returns the time after which the former values return.
    pub const fn span(self) -> Span {
        match self {
            Self::For(span) | Self::Confirmed(span) => span,
        }
    }

    /// Returns an object with what it says of the end of a change.
    pub(crate) fn tell(mut object: Value, until: Option<Self>) -> Value {
        match until {
            Some(Self::For(span)) => object["for"] = span.to_string().into(),
            Some(Self::Confirmed(span)) => object["confirm"] = span.to_string().into(),
            None => {}
        }
        object
    }
}

/// Who is counted by `top`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// List each flow
    #[default]
    Flow,
    /// List each host with all its flows: hosts of the LAN, or of the side that `--nodes` of the emulator selects
    Node,
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

    /// Refuses what a file or a value has wrong. Whoever shows a refusal says that it is an error.
    pub fn of(wrong: &impl fmt::Display) -> Self {
        let said = wrong.to_string();
        Self::new(said.strip_prefix("error: ").unwrap_or(&said))
    }

    /// Creates a refusal of a name which is none of `allowed`, with a suggestion.
    pub fn unknown(what: &str, name: &str, allowed: &[&str]) -> Self {
        Self::among(format!("there is no {what} {name:?}{}", suggestion(name, allowed)), allowed)
    }

    fn among(what: impl Into<String>, allowed: &[&str]) -> Self {
        Self { what: what.into(), allowed: allowed.iter().map(|&word| word.to_owned()).collect() }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if self.allowed.is_empty() { Ok(()) } else { write!(f, "; allowed: {}", self.allowed.join(", ")) }
    }
}

impl Request {
    /// Reads one request, with or without its line feed; refuses the first mistake, with what is allowed.
    pub fn parse(line: &[u8]) -> Result<Self, Refusal> {
        let example = r#"{"v":1,"do":"status"}"#;
        let value = serde_json::from_slice(line)
            .map_err(|e| Refusal::new(format!("the request is not one line of JSON such as {example}: {e}")))?;
        let Value::Object(mut keys) = value else {
            return Err(Refusal::new(format!("a request is a JSON object such as {example}")));
        };
        version(keys.remove("v"))?;
        let verb = keys.remove("do");
        let (request, more): (_, &[&str]) = match verb.as_ref().and_then(Value::as_str) {
            Some("status") => (Self::Status, &[]),
            Some("top") => {
                (Self::Top { by: by(keys.remove("by"))?, most: most(keys.remove("most"))? }, &["by", "most"])
            }
            Some("set") => {
                let set = Set { values: values(keys.remove("values"))?, until: until(&mut keys)? };
                (Self::Set(set), &["values", "for", "confirm"])
            }
            Some("apply") => {
                let [name, text] = ["name", "text"].map(|key| word(key, keys.remove(key)));
                let apply = Apply { name: name?, text: text?, until: until(&mut keys)? };
                (Self::Apply(apply), &["name", "text", "for", "confirm"])
            }
            Some("keep") => (Self::Keep, &[]),
            Some("rollback") => (Self::Rollback, &[]),
            Some(other) => return Err(Refusal::unknown("verb", other, &VERBS)),
            None => return Err(Refusal::among("`do` must name the verb", &VERBS)),
        };
        match keys.keys().next() {
            Some(key) => Err(Refusal::unknown("key", key, &[&["v", "do"], more].concat())),
            None => Ok(request),
        }
    }

    /// Returns the request as a line with its line feed.
    pub fn line(&self) -> String {
        let value = match self {
            Self::Status => json!({"v": VERSION, "do": "status"}),
            Self::Top { by, most } => json!({"v": VERSION, "do": "top", "by": by, "most": most}),
            Self::Set(Set { values, until }) => {
                let values: Map<_, _> = values.iter().map(|(k, v)| (k.clone(), Value::from(v.clone()))).collect();
                Until::tell(json!({"v": VERSION, "do": "set", "values": values}), *until)
            }
            Self::Apply(Apply { name, text, until }) => {
                Until::tell(json!({"v": VERSION, "do": "apply", "name": name, "text": text}), *until)
            }
            Self::Keep => json!({"v": VERSION, "do": "keep"}),
            Self::Rollback => json!({"v": VERSION, "do": "rollback"}),
        };
        format!("{value}\n")
    }
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
    Err(Refusal::among(what, &[&VERSION.to_string()]))
}

fn by(value: Option<Value>) -> Result<By, Refusal> {
    let Some(value) = value else { return Ok(By::default()) };
    By::deserialize(&value)
        .map_err(|_| Refusal::unknown("list by", value.as_str().unwrap_or_default(), &["flow", "node"]))
}

fn most(value: Option<Value>) -> Result<usize, Refusal> {
    let Some(value) = value else { return Ok(ENTRIES) };
    let number = value.as_u64().and_then(|n| usize::try_from(n).ok()).filter(|n| (1..=MOST_ENTRIES).contains(n));
    let allowed = format!("1 to {MOST_ENTRIES}");
    number.ok_or_else(|| Refusal::among(format!("`most` cannot be {value}"), &[&allowed]))
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
    let allowed = |span: &Span| Until::ALLOWED.contains(span);
    let words = r#""1s" to "168h", a time in quotes with its unit"#;
    read.filter(allowed).ok_or_else(|| Refusal::among(format!("`{key}` cannot be {value}"), &[words]))
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

/// Reads an answer. The error is the refusal of the appliance, or one that says that the answer cannot be read.
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
