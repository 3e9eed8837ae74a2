//! The identity of a node on its disk: a file that only its owner reads.

use crate::agent::Identity;
use crate::frame::Frame;
use crate::identity::{Credentials, Secret, bytes, hex};
use crate::roster;
use penstock_core::coop::message::Message;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const FORMAT: u64 = 1;
const FILE: &str = "identity.json";

/// Why there is no identity.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The node has not enrolled.
    #[error("{} is not there: this node has not enrolled; see `penstock-agent enrol --help`", .0.display())]
    NotEnrolled(PathBuf),
    /// The node has enrolled before.
    #[error("{} is there: this node has enrolled; remove the file to enrol again", .0.display())]
    Enrolled(PathBuf),
    /// The file is not what it should be.
    #[error("{}: this is not an identity of version {FORMAT}; enrol again", .0.display())]
    Damaged(PathBuf),
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] roster::Error),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    format: u64,
    secret: String,
    certificate: String,
    authority: String,
    /// A hello with the ticket, as it is said in a session.
    hello: String,
}

/// The file of an identity in this directory.
pub fn path(directory: &Path) -> PathBuf {
    directory.join(FILE)
}

/// Fails if the directory has an identity, or cannot be made.
pub fn is_free(directory: &Path) -> Result<(), Error> {
    roster::directory(directory)?;
    if path(directory).exists() { Err(Error::Enrolled(path(directory))) } else { Ok(()) }
}

/// Keeps an identity.
pub fn save(directory: &Path, identity: &Identity) -> Result<(), Error> {
    let hello = Message::ClientHello { node: identity.node, ask: 0, state: Some(identity.ticket) };
    let kept = Kept {
        format: FORMAT,
        secret: identity.own.secret.hex().to_string(),
        certificate: hex(&identity.own.certificate),
        authority: hex(&identity.authority),
        hello: hex(&Frame::Message(hello).encode()),
    };
    roster::directory(directory)?;
    Ok(roster::write(&path(directory), &serde_json::json!(kept).to_string())?)
}

/// Reads an identity.
pub fn load(directory: &Path) -> Result<Identity, Error> {
    let path = path(directory);
    match roster::read(&path) {
        Ok(Some(kept)) => understood(&kept).ok_or(Error::Damaged(path)),
        Ok(None) => Err(Error::NotEnrolled(path)),
        Err(roster::Error::Damaged(path)) => Err(Error::Damaged(path)),
        Err(error) => Err(error.into()),
    }
}

fn understood(kept: &Kept) -> Option<Identity> {
    let Ok(Frame::Message(Message::ClientHello { node, state: Some(ticket), .. })) =
        Frame::decode(&bytes(&kept.hello)?)
    else {
        return None;
    };
    let own = Credentials { secret: Secret::from_hex(&kept.secret)?, certificate: bytes(&kept.certificate)?.into() };
    let authority = bytes(&kept.authority)?.into();
    (kept.format == FORMAT).then_some(Identity { node, own, authority, ticket })
}
