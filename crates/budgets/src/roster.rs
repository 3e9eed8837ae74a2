//! What a gateway knows of its nodes, in a directory that only it may read.
//!
//! | file | content |
//! |---|---|
//! | `authority.json` | the secret keys of the authority, of the gateway and of states, with the certificates |
//! | `incarnation` | a number that grows with each start |
//! | `tokens/HASH.json` | a token that may still be used: by how many, until when, for which share |
//! | `nodes/NUMBER.json` | a node: its name, its share and the hash of its key; without this file its certificate is worth nothing |

use crate::identity::{self, Authority, Credentials, Public, Secret, Token, bytes, fingerprint, hex};
use penstock_core::coop::{Key, Keyring, NodeId, Share};
use penstock_core::units::Span;
use penstock_linux::random;
use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The version of the files.
const FORMAT: u64 = 1;
/// Longest name of a node in bytes.
pub const LONGEST_NAME: usize = 64;
/// Most nodes for which one token may stand.
pub const MOST_USES: u32 = 10_000;
/// Longest time for which a token may stand.
pub const LONGEST_TOKEN: Span = Span::from_secs(30 * 86_400);

/// Why a roster cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read or written.
    #[error("{}: {}", .0.display(), .1)]
    Io(PathBuf, #[source] io::Error),
    /// A file is not what it should be.
    #[error("{}: this is not a file of version {FORMAT} of this program", .0.display())]
    Damaged(PathBuf),
    /// A key or a certificate cannot be made.
    #[error(transparent)]
    Identity(#[from] identity::Error),
    /// The token is unknown, used up or too old.
    #[error("the token is unknown, used up or too old")]
    Token,
}

/// What a token gives.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// The version of the file.
    pub format: u64,
    /// The share of each node that enrols with it.
    pub share: Share,
    /// How many nodes may still enrol.
    pub uses: u32,
    /// Until when, in seconds since 1970.
    pub until: u64,
}

/// A node that has enrolled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Member {
    /// The version of the file.
    pub format: u64,
    /// The number of the node.
    pub node: u32,
    /// How the node calls itself.
    pub name: String,
    /// Its share.
    pub share: Share,
    /// The hash of its public key.
    pub key: String,
    /// When it enrolled, in seconds since 1970.
    pub enrolled: u64,
}

/// The secrets of a gateway.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Secrets {
    format: u64,
    authority: [String; 2],
    gateway: [String; 2],
    states: String,
}

/// The directory of a gateway.
#[derive(Debug, Clone)]
pub struct Roster {
    directory: PathBuf,
    authority: Authority,
    gateway: Credentials,
    states: Secret,
}

fn io(path: &Path) -> impl Fn(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io(path.clone(), source)
}

/// Writes a whole file that only its owner reads, or leaves what is there.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Error> {
    let fresh = path.with_extension("new");
    let _ = std::fs::remove_file(&fresh);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    written.and_then(|()| std::fs::rename(&fresh, path)).map_err(io(path))?;
    let directory = path.parent().unwrap_or(Path::new("."));
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(io(directory))
}

/// Makes a directory that only its owner reads.
pub(crate) fn directory(path: &Path) -> Result<(), Error> {
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(io(path))
}

/// Reads a whole file; `None` if there is none.
pub(crate) fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>, Error> {
    match std::fs::read_to_string(path) {
        Ok(text) => serde_json::from_str(&text).map(Some).map_err(|_| Error::Damaged(path.to_owned())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(io(path)(e)),
    }
}

fn unix() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

impl Roster {
    /// Opens the directory of a gateway; makes it with new keys if there is none.
    pub fn open(path: &Path) -> Result<Self, Error> {
        for part in ["", "tokens", "nodes"] {
            directory(&path.join(part))?;
        }
        let file = path.join("authority.json");
        let secrets: Secrets = match read(&file)? {
            Some(secrets) => secrets,
            None => {
                let fresh = Self::fresh()?;
                write(&file, &json!(fresh).to_string())?;
                fresh
            }
        };
        Self::with(path, &secrets).ok_or(Error::Damaged(file))
    }

    fn fresh() -> Result<Secrets, Error> {
        let authority = Authority::new()?;
        let gateway = authority.gateway()?;
        let pair = |one: &Credentials| [one.secret.hex().to_string(), hex(&one.certificate)];
        let states = Secret::draw()?.hex().to_string();
        Ok(Secrets { format: FORMAT, authority: pair(&authority.0), gateway: pair(&gateway), states })
    }

    fn with(path: &Path, secrets: &Secrets) -> Option<Self> {
        let credentials = |[secret, certificate]: &[String; 2]| {
            Some(Credentials { secret: Secret::from_hex(secret)?, certificate: bytes(certificate)?.into() })
        };
        Some(Self {
            directory: path.to_owned(),
            authority: Authority(credentials(&secrets.authority)?),
            gateway: credentials(&secrets.gateway)?,
            states: Secret::from_hex(&secrets.states).filter(|_| secrets.format == FORMAT)?,
        })
    }

    /// The certificate of the gateway, with its key.
    pub fn gateway(&self) -> &Credentials {
        &self.gateway
    }

    /// The certificate of the authority.
    pub fn authority(&self) -> &CertificateDer<'static> {
        &self.authority.0.certificate
    }

    /// The key that signs states.
    pub fn keyring(&self) -> Keyring {
        Keyring::new(1, &Key::new(*self.states.bytes()))
    }

    /// A secret for one purpose, derived from the key of states.
    pub fn derived(&self, purpose: &str) -> [u8; 32] {
        *blake3::keyed_hash(self.states.bytes(), purpose.as_bytes()).as_bytes()
    }

    /// Returns a number that is larger than at every start before. It does not depend on a clock. Fails if the file cannot
    /// be written, or holds no number.
    pub fn next_incarnation(&self) -> Result<u64, Error> {
        let path = self.directory.join("incarnation");
        let next = read::<u64>(&path)?.unwrap_or(0).checked_add(1).ok_or(Error::Damaged(path.clone()))?;
        write(&path, &next.to_string()).map(|()| next)
    }

    fn token_file(&self, key: &Public) -> PathBuf {
        self.directory.join("tokens").join(format!("{}.json", fingerprint(key)))
    }

    fn node_file(&self, node: NodeId) -> PathBuf {
        self.directory.join("nodes").join(format!("{}.json", node.0))
    }

    /// Makes a token. Only its hash is kept.
    pub fn invite(&self, share: Share, uses: u32, lasts: Span) -> Result<Token, Error> {
        let secret = Secret::draw()?;
        let until = unix() + lasts.as_nanos() / 1_000_000_000;
        let offer = Offer { format: FORMAT, share, uses, until };
        write(&self.token_file(&secret.public()?), &json!(offer).to_string())?;
        Ok(Token { secret, authority: fingerprint(self.authority()) })
    }

    /// What the token with this public key gives, if it may still be used.
    pub fn offer(&self, key: &Public) -> Option<Offer> {
        let offer: Offer = read(&self.token_file(key)).ok()??;
        (offer.uses > 0 && unix() < offer.until).then_some(offer)
    }

    /// Uses a token once: the key `node_key` becomes a node, and gets a certificate. Fails if the token may not be used, or
    /// the node cannot be kept.
    pub fn enrol(
        &self,
        token: &Public,
        node_key: &Public,
        name: &str,
    ) -> Result<(Member, CertificateDer<'static>), Error> {
        let offer = self.offer(token).ok_or(Error::Token)?;
        let path = self.token_file(token);
        // The token is used up before the node is made: a crash in between wastes a use and gives none away.
        match offer.uses {
            1 => std::fs::remove_file(&path).map_err(io(&path))?,
            uses => write(&path, &json!(Offer { uses: uses - 1, ..offer.clone() }).to_string())?,
        }
        let node = self.free_node()?;
        let member = Member {
            format: FORMAT,
            node: node.0,
            name: name.chars().filter(|c| !c.is_control()).collect(),
            share: offer.share,
            key: fingerprint(node_key),
            enrolled: unix(),
        };
        write(&self.node_file(node), &json!(member).to_string())?;
        let certificate = self.authority.node(node_key, node)?;
        Ok((member, certificate))
    }

    /// Nobody chooses the number of its node.
    fn free_node(&self) -> Result<NodeId, Error> {
        loop {
            let node = NodeId(u32::from_ne_bytes(random::bytes().map_err(identity::Error::Random)?));
            if node.0 != 0 && !self.node_file(node).try_exists().map_err(io(&self.directory))? {
                return Ok(node);
            }
        }
    }

    /// Number of nodes that have enrolled and were not removed since.
    pub fn enrolled(&self) -> Result<usize, Error> {
        let path = self.directory.join("nodes");
        let files = std::fs::read_dir(&path).map_err(io(&path))?;
        Ok(files.flatten().filter(|file| file.path().extension().is_some_and(|end| end == "json")).count())
    }

    /// The node with this number, if it has enrolled with this key and was not removed since.
    pub fn member(&self, node: NodeId, key: &Public) -> Option<Member> {
        let member: Member = read(&self.node_file(node)).ok()??;
        (member.key == fingerprint(key) && member.node == node.0 && member.share.checked().is_some()).then_some(member)
    }
}
