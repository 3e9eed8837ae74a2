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
    /// The file cannot be read.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] roster::Error),
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
///
/// # Errors
/// Says which.
pub fn is_free(directory: &Path) -> Result<(), Error> {
    roster::directory(directory)?;
    if path(directory).exists() { Err(Error::Enrolled(path(directory))) } else { Ok(()) }
}

/// Keeps an identity.
///
/// # Errors
/// Fails if the file cannot be written.
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
///
/// # Errors
/// Says why there is none.
pub fn load(directory: &Path) -> Result<Identity, Error> {
    let path = path(directory);
    let text = std::fs::read_to_string(&path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => Error::NotEnrolled(path.clone()),
        _ => Error::Io { path: path.clone(), source },
    })?;
    read(&text).ok_or(Error::Damaged(path))
}

fn read(text: &str) -> Option<Identity> {
    let kept: Kept = serde_json::from_str(text).ok()?;
    let Ok(Frame::Message(Message::ClientHello { node, state: Some(ticket), .. })) =
        Frame::decode(&bytes(&kept.hello)?)
    else {
        return None;
    };
    let own = Credentials { secret: Secret::from_hex(&kept.secret)?, certificate: bytes(&kept.certificate)?.into() };
    let authority = bytes(&kept.authority)?.into();
    (kept.format == FORMAT).then_some(Identity { node, own, authority, ticket })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Authority;
    use penstock_core::coop::state::State;
    use penstock_core::coop::{Key, Keyring, NodeId, Share};

    #[test]
    fn an_identity_comes_back_and_damage_is_told() {
        let directory = std::env::temp_dir().join(format!("penstock-identity-{}", std::process::id()));
        assert!(matches!(load(&directory), Err(Error::NotEnrolled(_))));
        let ticket = State::ticket(NodeId(7), Share::default()).sign(&Keyring::new(1, &Key::new([1; 32])));
        let authority = Authority::new().unwrap();
        let own = authority.gateway().unwrap();
        let identity = Identity { node: NodeId(7), own, authority: authority.0.certificate, ticket };
        save(&directory, &identity).unwrap();
        let again = load(&directory).unwrap();
        assert_eq!((again.node, again.ticket, again.own.secret), (NodeId(7), ticket, identity.own.secret));
        assert!(matches!(is_free(&directory), Err(Error::Enrolled(_))));
        let text = std::fs::read_to_string(path(&directory)).unwrap();
        std::fs::write(path(&directory), text.replace("\"format\":1", "\"format\":2")).unwrap();
        assert!(matches!(load(&directory), Err(Error::Damaged(_))));
        std::fs::remove_dir_all(directory).unwrap();
    }
}
