//! A request to TEMPEST: the flags of 002 §4.3.2.6 by name, each as text.

use serde::Deserialize;

/// The flags that were given. [`Plan::of`](crate::Plan::of) defines their meaning, defaults and limits.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[allow(missing_docs, reason = "each is the flag of its name")]
pub struct Request {
    pub n: Option<String>,
    pub qmin: Option<String>,
    pub qmax: Option<String>,
    pub len: Option<String>,
    pub burst: Option<String>,
    pub qsing: Option<String>,
    pub mode: Option<String>,
    pub alg: Option<String>,
    pub qos: Option<String>,
    pub mac: Option<String>,
    pub flows: Option<String>,
    pub flowsets: Option<String>,
    pub flowsmac: Option<String>,
    pub flowsetsmac: Option<String>,
    pub qmac: Option<String>,
    pub wdistr: Option<String>,
    pub ploss: Option<String>,
    pub intgr_th: Option<String>,
    // These flags are not in the document.
    pub qcount: Option<String>,
    pub psing: Option<String>,
    pub rate: Option<String>,
    pub seed: Option<String>,
    pub repeat: Option<String>,
    pub measure: Option<String>,
}
