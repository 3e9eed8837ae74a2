//! The keys of a link for what it does to packets besides queueing and transmitting them, in both directions. They are the
//! same in scenarios and in the configurations of programs.

use crate::link;
use crate::range::within;
use crate::source::Table;
use crate::{Diagnosis, Source, fields};
use penstock_core::config::ConfigError;
use penstock_core::impair::{Aggregate, Gilbert, Impairments, Jitter, Police, Reorder};
use penstock_core::suggest::unknown_name;
use penstock_core::units::{Bytes, Span};
use serde::{Deserialize, Serialize};

/// The smallest burst of a policer, a packet of Ethernet: with less no full packet ever conforms.
const LEAST_BURST: Bytes = Bytes::new(1500);
const MOST_BURST: Bytes = Bytes::new(1_000_000_000);
const MOST_PACKETS: u32 = 1_000_000;
const LEAST_TIME: Span = Span::from_micros(1);
const MOST_TIME: Span = Span::from_secs(10);

/// The impairments of a link in both directions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ImpairmentKeys {
    /// A token bucket without a queue, from the first end to the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    police: Option<Police>,
    /// Packets are released in bursts, from the first end to the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregate: Option<Aggregate>,
    /// Some packets are overtaken, from the first end to the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    reorder: Option<Reorder>,
    /// The delay varies, from the first end to the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    jitter: Option<Jitter>,
    /// Part of the packets that arrive twice, from the first end to the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate: Option<f64>,
    /// Losses in a row (Gilbert and Elliott), from the first end to the second.
    #[serde(skip_serializing_if = "Option::is_none")]
    gilbert: Option<Gilbert>,
    /// A token bucket without a queue, from the second end to the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    reverse_police: Option<Police>,
    /// Packets are released in bursts, from the second end to the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    reverse_aggregate: Option<Aggregate>,
    /// Some packets are overtaken, from the second end to the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    reverse_reorder: Option<Reorder>,
    /// The delay varies, from the second end to the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    reverse_jitter: Option<Jitter>,
    /// Part of the packets that arrive twice, from the second end to the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    reverse_duplicate: Option<f64>,
    /// Losses in a row, from the second end to the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    reverse_gilbert: Option<Gilbert>,
}

impl ImpairmentKeys {
    /// Returns the keys that say what a link does from its first end to its second, and back.
    pub fn of([there, back]: [Impairments; 2]) -> Self {
        let copies = |of: Impairments| Some(of.duplicate).filter(|share| *share > 0.0);
        Self {
            police: there.police,
            aggregate: there.aggregate,
            reorder: there.reorder,
            jitter: there.jitter,
            duplicate: copies(there),
            gilbert: there.gilbert,
            reverse_police: back.police,
            reverse_aggregate: back.aggregate,
            reverse_reorder: back.reorder,
            reverse_jitter: back.jitter,
            reverse_duplicate: copies(back),
            reverse_gilbert: back.gilbert,
        }
    }

    /// Returns the keys that are set, with their values as TOML has them.
    pub fn told(&self) -> Vec<(String, String)> {
        let keys = toml::Table::try_from(self).unwrap_or_default();
        keys.into_iter().map(|(key, value)| (key, value.to_string())).collect()
    }

    fn directions(&self) -> [Impairments; 2] {
        let Self { police, aggregate, reorder, jitter, duplicate, gilbert, .. } = *self;
        let there =
            Impairments { police, aggregate, reorder, jitter, duplicate: duplicate.unwrap_or_default(), gilbert };
        let back = Impairments {
            police: self.reverse_police,
            aggregate: self.reverse_aggregate,
            reorder: self.reverse_reorder,
            jitter: self.reverse_jitter,
            duplicate: self.reverse_duplicate.unwrap_or_default(),
            gilbert: self.reverse_gilbert,
        };
        [there, back]
    }

    /// Returns what a link does from its first end to its second, and back.
    ///
    /// # Errors
    /// Returns the first key whose value is not allowed, with its prefix, and the message.
    pub fn checked(&self) -> Result<[Impairments; 2], (String, String)> {
        let both = self.directions();
        for (impairments, prefix) in both.iter().zip(["", "reverse_"]) {
            validate(impairments).map_err(|e| (format!("{prefix}{}", e.key), e.message))?;
        }
        Ok(both)
    }
}

/// Reads the impairments in the table of a link, or returns the first mistake at its place.
pub fn read(table: &Table<'_, '_>) -> Result<[Impairments; 2], Diagnosis> {
    let keys: ImpairmentKeys = table.part()?;
    keys.checked().map_err(|(key, message)| table.invalid_at(&key, &message))
}

/// Puts the value of a key of one direction in the place of that of `present`. The value has the form of TOML, or
/// `part=value,part=value`, or for jitter that of `by` alone; `"none"` ends the impairment.
///
/// # Errors
/// Says what is wrong, and what is allowed.
pub fn set(present: Impairments, key: &str, value: &str) -> Result<Impairments, String> {
    let read = |text: &str| -> Result<ImpairmentKeys, Diagnosis> {
        let source = Source::parse(text, "value")?;
        source.table(source.root(), &[fields::of::<ImpairmentKeys>()])?.part()
    };
    if !Impairments::KEYS.contains(&key) {
        return Err(unknown_name("impairment", key, &Impairments::KEYS));
    }
    if value.contains(['\n', '\r']) {
        return Err("a value has one line".to_owned());
    }
    let keys = match value {
        "none" => ImpairmentKeys::default(),
        value => read(&format!("{key} = {}", in_toml(key, value))).map_err(|mistake| mistake.what)?,
    };
    let [new, _] = keys.directions();
    let mut all = present;
    match key {
        "police" => all.police = new.police,
        "aggregate" => all.aggregate = new.aggregate,
        "reorder" => all.reorder = new.reorder,
        "jitter" => all.jitter = new.jitter,
        "duplicate" => all.duplicate = new.duplicate,
        _ => all.gilbert = new.gilbert,
    }
    validate(&all).map_err(|e| e.message)?;
    Ok(all)
}

fn in_toml(key: &str, value: &str) -> String {
    let quoted = |text: &str| match text.parse::<f64>().is_ok() || ["true", "false"].contains(&text) {
        true => text.to_owned(),
        false => toml::Value::from(text).to_string(),
    };
    if value.starts_with('{') || value.starts_with('"') || key == "duplicate" {
        return value.to_owned();
    }
    let parts = value.split(',').map(|part| match part.split_once('=') {
        Some((name, of)) => format!("{} = {}", name.trim(), quoted(of.trim())),
        None => format!("by = {}", quoted(part.trim())),
    });
    format!("{{ {} }}", parts.collect::<Vec<_>>().join(", "))
}

/// Checks that all values are allowed.
///
/// # Errors
/// Returns the first key whose value is not allowed, without the prefix of the reverse direction.
pub fn validate(impairments: &Impairments) -> Result<(), ConfigError> {
    if let Some(Police { rate, burst }) = impairments.police {
        named("police", link::rate("rate", rate))?;
        named("police", within("burst", &burst, LEAST_BURST..=MOST_BURST))?;
    }
    if let Some(Aggregate { interval, packets }) = impairments.aggregate {
        named("aggregate", within("interval", &interval, LEAST_TIME..=MOST_TIME))?;
        named("aggregate", within("packets", &packets.unwrap_or(2), 2..=MOST_PACKETS))?;
    }
    if let Some(Reorder { share, by }) = impairments.reorder {
        named("reorder", link::loss("share", share))?;
        named("reorder", within("by", &by, LEAST_TIME..=MOST_TIME))?;
    }
    if let Some(Jitter { by, correlation, distribution: _, keep_order: _ }) = impairments.jitter {
        named("jitter", within("by", &by, LEAST_TIME..=MOST_TIME))?;
        named("jitter", within("correlation", &correlation, 0.0..=1.0))?;
    }
    link::loss("duplicate", impairments.duplicate)?;
    if let Some(Gilbert { to_bad, to_good, bad, good }) = impairments.gilbert {
        for (key, value) in [("to_bad", to_bad), ("to_good", to_good), ("bad", bad), ("good", good)] {
            named("gilbert", link::loss(key, value))?;
        }
    }
    let moves = if impairments.reorder.is_some() { "reorder" } else { "jitter" };
    if impairments.aggregate.is_some() && (impairments.reorder.is_some() || impairments.jitter.is_some()) {
        let message = "a direction of a link aggregates, or reorders and varies its delay, not both; two links can";
        return Err(ConfigError::new(moves, message));
    }
    Ok(())
}

/// Gives a mistake within a table the name of the table's key.
fn named(key: &'static str, checked: Result<(), ConfigError>) -> Result<(), ConfigError> {
    checked.map_err(|mistake| ConfigError::new(key, mistake.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets each in turn; returns what is set as a file has it, or the message of the first that is refused.
    fn after(written: &[(&str, &str)]) -> Result<Vec<(String, String)>, String> {
        let set = |present, (key, value): &(&str, &str)| set(present, key, value);
        let all = written.iter().try_fold(Impairments::default(), set)?;
        let keys = ImpairmentKeys::of([all, Impairments::default()]);
        assert_eq!(keys.checked(), Ok([all, Impairments::default()]));
        Ok(keys.told())
    }

    #[test]
    fn a_value_may_be_written_without_the_signs_of_toml() {
        let told = |written: &[(&str, &str)]| -> Vec<String> {
            after(written).unwrap().into_iter().map(|(key, value)| format!("{key} = {value}")).collect()
        };
        let jitter = "jitter = { by = \"5ms\", correlation = 0.25, distribution = \"normal\", keep_order = true }";
        for value in [
            "by=5ms,correlation=0.25,distribution=normal,keep_order=true",
            "5ms, correlation = 0.25, distribution = normal, keep_order = true",
            "{ by = \"5ms\", correlation = 0.25, distribution = \"normal\", keep_order = true }",
        ] {
            assert_eq!(told(&[("jitter", value)]), [jitter], "{value}");
        }
        assert_eq!(told(&[("duplicate", "0.1"), ("jitter", "5ms"), ("jitter", "none")]), ["duplicate = 0.1"]);
        assert_eq!(
            told(&[("police", "rate=5Mbit/s,burst=20kB")]),
            ["police = { rate = \"5Mbit/s\", burst = \"20kB\" }"]
        );
        assert_eq!(told(&[("duplicate", "0.1"), ("duplicate", "none")]), [""; 0]);
    }

    #[test]
    fn what_cannot_be_set_is_told() {
        for (key, value, what) in [
            ("jitter", "", "is not a time; write \"5ms\""),
            ("jitter", "5", "a time in quotes with its unit"),
            ("jitter", "5ms,corelation=0.5", "correlation"),
            ("jitter", "5ms,correlation=-1", "correlation is -1; allowed are 0 to 1"),
            ("jitter", "5ms\n[x]", "one line"),
            ("jitter", "{ by = \"5ms\" }\nduplicate = 1", "one line"),
            ("duplicate", "often", ""),
            ("duplicate", "nan", "duplicate is NaN; allowed is a probability from 0 to 1"),
            ("gilbert", "to_bad=0.1", "to_good"),
            ("reorder", "0.1", "a time in quotes with its unit"),
            ("slow", "1", "no impairment \"slow\""),
        ] {
            let message = after(&[(key, value)]).unwrap_err();
            assert!(message.contains(what), "{key}={value}: {message}");
        }
        let both = after(&[("aggregate", "interval=5ms"), ("reorder", "share=0.1,by=5ms")]).unwrap_err();
        assert!(both.contains("not both"), "{both}");
    }
}
