//! What keeps a gateway or a node from beginning.

use crate::{identity, roster};

/// Why a gateway or a node cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value does not work.
    #[error(transparent)]
    Config(#[from] penstock_core::config::ConfigError),
    /// The directory cannot be used.
    #[error(transparent)]
    Roster(#[from] roster::Error),
    /// A certificate or a key cannot be used.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// There are no random numbers, or a key is none.
    #[error(transparent)]
    Identity(#[from] identity::Error),
}
