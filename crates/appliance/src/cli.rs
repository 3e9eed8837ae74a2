//! The options of what asks an appliance that runs.

use crate::error::Error;
use crate::socket::message::{Apply, By, LONGEST_REQUEST, Request, Set, Until};
use crate::socket::place::is_name;
use clap::Args;
use penstock_core::key_value::split_setting;
use penstock_core::units::{Span, UnitError};
use std::path::PathBuf;

/// Which run to ask, and how to print its answer.
#[derive(Debug, Clone, Args)]
pub struct Ask {
    /// Name of the instance [default: the only one that is running]
    #[arg(long, value_name = "NAME", value_parser = name, conflicts_with = "socket")]
    pub name: Option<String>,
    /// Path of the control socket [default: /run/penstock/NAME.sock]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Print the answer as a JSON object
    #[arg(long)]
    pub json: bool,
}

/// A file, and how to print what it means.
#[derive(Debug, Clone, Args)]
pub struct Described {
    /// Configuration file
    pub file: PathBuf,
    /// Print the result as a JSON object
    #[arg(long)]
    pub json: bool,
}

/// The options of `top`.
#[derive(Debug, Clone, Args)]
pub struct Top {
    /// Which run to ask.
    #[command(flatten)]
    pub ask: Ask,
    /// List flows or hosts
    #[arg(long, value_enum, default_value_t = By::Flow)]
    pub by: By,
    /// Maximum number of entries
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub most: u16,
}

impl Top {
    /// Returns the question that these options ask.
    pub fn request(&self) -> Request {
        Request::Top { by: self.by, most: usize::from(self.most) }
    }
}

/// The options of `record`.
#[derive(Debug, Clone, Args)]
pub struct Record {
    /// Which run to ask for its interface.
    #[command(flatten)]
    pub ask: Ask,
    /// How long to record: 10min
    #[arg(value_name = "TIME", value_parser = lasting)]
    pub duration: Span,
    /// Record this interface [default: the one of the running program]
    #[arg(long, value_name = "NAME")]
    pub interface: Option<String>,
    /// Network namespace of this interface: a name of `ip netns`, or a path [default: the current one]
    #[arg(long, value_name = "NS", requires = "interface")]
    pub netns: Option<String>,
    /// Write the capture to this file, which must not exist yet
    #[arg(long, value_name = "FILE", default_value = "record.pcap")]
    pub out: PathBuf,
}

/// The options of `support`.
#[derive(Debug, Clone, Args)]
pub struct Support {
    /// Which run to ask for its status.
    #[command(flatten)]
    pub ask: Ask,
    /// Add this configuration file, without its secrets
    pub file: Option<PathBuf>,
    /// Write the archive to this file
    #[arg(long, value_name = "FILE", default_value = "support.tar.gz")]
    pub out: PathBuf,
}

/// Reads how long something lasts, which is a second or more.
pub fn within(text: &str, longest: Span) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|e: UnitError| e.to_string())?;
    let allowed = (Span::from_secs(1)..=longest).contains(&span);
    if allowed { Ok(span) } else { Err(format!("{span} is not within 1s and {longest}")) }
}

fn lasting(text: &str) -> Result<Span, String> {
    within(text, *Until::ALLOWED.end())
}

/// Reads a name of a control socket; the error says what is allowed.
pub fn name(text: &str) -> Result<String, String> {
    if is_name(text) {
        return Ok(text.to_owned());
    }
    Err(format!("{text:?} is no name; allowed are up to 64 letters, digits, '-', '_' and '.', which is not the first"))
}

/// When former values return.
#[derive(Debug, Clone, Copy, Args)]
pub struct Temporary {
    /// Undo the change after this time: 2h
    #[arg(long = "for", value_name = "TIME", value_parser = lasting)]
    duration: Option<Span>,
    /// Undo the change after this time, unless `set --keep` confirms it
    #[arg(long, value_name = "TIME", value_parser = lasting, conflicts_with = "duration")]
    confirm: Option<Span>,
}

impl Temporary {
    fn until(self) -> Option<Until> {
        self.duration.map(Until::For).or(self.confirm.map(Until::Confirmed))
    }
}

/// A change of an appliance that runs, or the order to keep the last one.
#[derive(Debug, Clone, Args)]
pub struct Change {
    /// Which run to ask.
    #[command(flatten)]
    pub ask: Ask,
    /// Parameters and their new values: rate=2Mbit/s
    #[arg(value_name = "KEY=VALUE", required_unless_present = "keep")]
    pub values: Vec<String>,
    /// When the former values return.
    #[command(flatten)]
    pub until: Temporary,
    /// Keep the last change that was made with --for or --confirm
    #[arg(long, conflicts_with_all = ["values", "duration", "confirm"])]
    pub keep: bool,
}

/// A file whose settings are to hold.
#[derive(Debug, Clone, Args)]
pub struct Applied {
    /// Which run to ask.
    #[command(flatten)]
    pub ask: Ask,
    /// Configuration file
    pub file: PathBuf,
    /// When the former values return.
    #[command(flatten)]
    pub until: Temporary,
}

impl Change {
    /// Returns what these options ask; the error names the first text that is no setting such as `rate=2Mbit/s`.
    pub fn request(&self) -> Result<Request, Error> {
        if self.keep {
            return Ok(Request::Keep);
        }
        let values: Result<_, _> = self.values.iter().map(|text| split_setting(text)).collect();
        let values = values.map_err(|e| Error::User(e.to_string()))?;
        Ok(Request::Set(Set { values, until: self.until.until() }))
    }
}

impl Applied {
    /// Returns what these options ask, with this text of the file; fails if it is longer than a request may be.
    pub fn request(&self, text: String) -> Result<Request, Error> {
        let name = self.file.to_string_lossy().into_owned();
        let request = Request::Apply(Apply { name, text, until: self.until.until() });
        if request.line().len() > LONGEST_REQUEST {
            let file = self.file.display();
            return Err(Error::User(format!("{file} is longer than a request may be ({LONGEST_REQUEST} bytes)")));
        }
        Ok(request)
    }
}
