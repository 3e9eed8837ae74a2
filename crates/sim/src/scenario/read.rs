//! Reading of scenarios from TOML: the result is a checked [`Scenario`], or a diagnosis that shows the line and says
//! what is allowed.
//!
//! The keys of each table stand in a struct beside the functions that check them: those of the whole file here, the others
//! in the folder.

mod change_keys;
mod changes;
mod controls;
mod cooperation;
mod courses;
mod estimates;
mod flows;
mod handovers;
mod schema;
mod topology;

use super::profiles::{self, Profile};
use super::{Invariants, Output, Scenario, write};
pub use schema::schema;

use change_keys::ChangeKeys;
use cooperation::CooperationKeys;
use handovers::HandoverKeys;
use penstock_core::config::ConfigError;
use penstock_core::foreign::Library;
use penstock_core::units::{Bytes, Span};
use penstock_grammar::range::{MAX_DURATION, outside};
use penstock_grammar::{Diagnosis, Source};
use serde::Deserialize;
use serde::de::IgnoredAny;
use toml::Spanned;

type Check<T> = Result<T, Diagnosis>;

/// The keys of a file. Tables whose keys depend on their `kind` are read where they are checked.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Keys {
    /// Name of the scenario; by default that of the file.
    name: Option<String>,
    /// The profile whose values the keys have that the file does not give.
    profile: Option<String>,
    /// Simulated time.
    duration: Span,
    /// Seed of all random streams.
    #[serde(default = "one")]
    seed: u64,
    /// Time at the beginning which the statistics by seconds leave out.
    #[serde(default)]
    warmup: Span,
    #[serde(rename = "topology")]
    #[schemars(skip)]
    _topology: IgnoredAny,
    #[serde(rename = "aqm")]
    #[schemars(skip)]
    _aqm: Option<IgnoredAny>,
    #[serde(rename = "tcp")]
    #[schemars(skip)]
    _tcp: Option<IgnoredAny>,
    #[serde(rename = "flows")]
    #[schemars(skip)]
    _flows: Option<IgnoredAny>,
    /// Changes of links.
    #[serde(default)]
    changes: Vec<ChangeKeys>,
    /// Moves of hosts between cells.
    #[serde(default)]
    handovers: Vec<HandoverKeys>,
    /// The gateway that grants budgets.
    cooperation: Option<CooperationKeys>,
    /// What a run records.
    #[serde(default)]
    output: OutputKeys,
    /// Conditions that must hold throughout a run.
    #[serde(default)]
    invariants: InvariantKeys,
}

fn one() -> u64 {
    1
}

/// The keys of `[output]`.
#[derive(Debug, Clone, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct OutputKeys {
    /// True if tables by seconds are kept.
    series: bool,
    /// Names of the queues to capture.
    pcapng: Vec<String>,
}

impl Default for OutputKeys {
    fn default() -> Self {
        Self { series: true, pcapng: Vec::new() }
    }
}

/// The keys of `[invariants]`.
#[derive(Debug, Clone, Default, Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct InvariantKeys {
    /// Largest number of bytes that may wait at any bottleneck.
    max_queue: Option<Bytes>,
    /// True if no packet may be dropped at any bottleneck.
    no_drops: bool,
}

impl Scenario {
    /// Reads a scenario; `file` is the name of the file in messages.
    ///
    /// # Errors
    /// Returns the first mistake with its line.
    pub fn parse(text: &str, file: &str) -> Result<Self, Diagnosis> {
        Self::parse_with(text, file, &())
    }

    /// Reads a scenario which may use algorithms of a library and may name files that the library reads.
    ///
    /// # Errors
    /// Returns the first mistake with its line.
    pub fn parse_with(text: &str, file: &str, library: &dyn Library) -> Result<Self, Diagnosis> {
        let source = Source::parse(text, file)?;
        let keys: Keys = source.read(source.root())?;
        let profile = keys.profile.as_deref().map(|name| profile(&source, &["profile"], name)).transpose()?;
        Checker { source: &source, keys, profile, library }.scenario(file)
    }
}

/// Finds the profile that the file names at a path.
fn profile(source: &Source<'_>, path: &[&str], name: &str) -> Check<Profile> {
    let at = source.get(path).map_or(0..0, Spanned::span);
    Profile::find(name, at).ok_or_else(|| {
        let known = profiles::names();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        source.unknown(path, "profile", name, &known)
    })
}

/// A scenario file that is being read and checked.
struct Checker<'a> {
    source: &'a Source<'a>,
    keys: Keys,
    profile: Option<Profile>,
    library: &'a dyn Library,
}

impl Checker<'_> {
    fn scenario(&self, file: &str) -> Check<Scenario> {
        let keys = &self.keys;
        self.within_span("duration", &["duration"], keys.duration, Span::from_nanos(1), MAX_DURATION)?;
        if keys.warmup >= keys.duration {
            return Err(self
                .source
                .at(&["warmup"], &format!("warmup must be shorter than duration ({})", keys.duration)));
        }
        let (links, access) = self.topology()?;
        let flows = self.flows(&links)?;
        self.captures(&links)?;
        self.estimates_stand_alone(&links)?;
        let changes = self.changes(&links)?;
        let cooperation = self.cooperation(&links, &flows)?;
        let handovers = self.handovers(&links, &flows, cooperation.as_ref())?;
        let stem = std::path::Path::new(file).file_stem().map(|s| s.to_string_lossy().into_owned());
        let name = keys.name.clone().or(stem).unwrap_or_else(|| "scenario".into());
        let mut scenario = Scenario {
            name,
            duration: keys.duration,
            seed: keys.seed,
            warmup: keys.warmup,
            links,
            access,
            flows,
            changes,
            handovers,
            cooperation,
            invariants: Invariants { max_queue: keys.invariants.max_queue, no_drops: keys.invariants.no_drops },
            output: Output { series: keys.output.series, pcapng: keys.output.pcapng.clone() },
            resolved: String::new(),
        };
        scenario.resolved = write::write(&scenario);
        Ok(scenario)
    }

    fn within_span(&self, what: &str, path: &[&str], value: Span, low: Span, high: Span) -> Check<()> {
        if (low..=high).contains(&value) {
            return Ok(());
        }
        Err(self.source.at(path, &outside(what, &value, &low, &high)))
    }

    /// Turns a mistake of a configuration into a diagnosis at the key that it names, in the table at a path.
    fn placed<T>(&self, path: &[&str], checked: Result<T, ConfigError>) -> Check<T> {
        checked.map_err(|e| self.source.at(&[path, &[e.key]].concat(), &e.message))
    }
}
