//! Why a run ended.

use penstock_linux::signals::is_orderly;

/// Why a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It goes on.
    Not,
    /// The duration is over.
    Duration,
    /// A signal came.
    Signal(nix::sys::signal::Signal),
    /// Something failed, as the sentence says.
    Failed(String),
}

impl Ended {
    /// Returns why, as reports tell it.
    pub fn text(&self) -> String {
        match self {
            Self::Not => "running".into(),
            Self::Duration => "duration".into(),
            Self::Signal(signal) => signal.as_str().into(),
            Self::Failed(why) => why.clone(),
        }
    }

    /// Returns what failed, as a sentence; nothing if the run ended as it should.
    pub fn failure(&self) -> Option<String> {
        match self {
            Self::Failed(why) => Some(why.clone()),
            Self::Signal(signal) if !is_orderly(*signal) => Some(format!("the run was ended by {signal}")),
            _ => None,
        }
    }
}
