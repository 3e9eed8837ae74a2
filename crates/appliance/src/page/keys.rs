//! The table `[page]` of the file of an appliance.

use penstock_core::config::ConfigError;
use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// Where the page is unless the file says another place.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7080);
/// How to make a token and its hash.
const HOW: &str = "make a token and its hash with: token=$(head -c 24 /dev/urandom | base64); echo \"$token\"; \
                   printf %s \"$token\" | sha256sum";

/// The keys of `[page]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub struct PageKeys {
    listen: SocketAddr,
    readers: Vec<String>,
    operators: Vec<String>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    history: Option<PathBuf>,
}

impl Default for PageKeys {
    fn default() -> Self {
        Self { listen: LISTEN, readers: Vec::new(), operators: Vec::new(), certificate: None, key: None, history: None }
    }
}

/// The SHA-256 of a token.
pub type Hash = [u8; 32];

/// The settings of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Address and port.
    pub listen: SocketAddr,
    /// Hashes of tokens that may look.
    pub readers: Vec<Hash>,
    /// Hashes of tokens that may change rates as well.
    pub operators: Vec<Hash>,
    /// The certificate with its chain, and its key, as PEM files.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// The file that keeps the last day.
    pub history: Option<PathBuf>,
}

impl PageKeys {
    /// Checks the keys; the error is the first that is wrong.
    pub fn settings(self) -> Result<Settings, ConfigError> {
        let hashes = |key: &'static str, texts: &[String]| {
            let what = format!("{key} has a text that is no SHA-256 of a token (64 hexadecimal digits); {HOW}");
            let hashes: Option<Vec<Hash>> = texts.iter().map(|text| hash(text)).collect();
            hashes.ok_or_else(|| ConfigError::new(key, what))
        };
        let (readers, operators) = (hashes("readers", &self.readers)?, hashes("operators", &self.operators)?);
        let tls = match (self.certificate, self.key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            (Some(_), None) => return Err(ConfigError::new("certificate", "a certificate needs its `key`")),
            (None, Some(_)) => return Err(ConfigError::new("key", "a key needs its `certificate`")),
        };
        let needs = |what: String| {
            let message = format!("{} is not only for this machine, so the page needs {what}", self.listen);
            Err(ConfigError::new("listen", message))
        };
        if !self.listen.ip().is_loopback() {
            if tls.is_none() {
                return needs("`certificate` and `key` (TLS)".into());
            }
            if readers.is_empty() && operators.is_empty() {
                return needs(format!("`readers` or `operators`; {HOW}"));
            }
        }
        Ok(Settings { listen: self.listen, readers, operators, tls, history: self.history })
    }
}

/// Reads 64 hexadecimal digits.
fn hash(text: &str) -> Option<Hash> {
    let digit = |at: usize| text.as_bytes().get(at).and_then(|byte| char::from(*byte).to_digit(16));
    let mut hash = [0; 32];
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = (digit(2 * at)? * 16 + digit(2 * at + 1)?) as u8;
    }
    (text.len() == 64).then_some(hash)
}
