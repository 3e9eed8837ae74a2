//! What is known of a client. It travels with the client, signed by the gateway (State_i and blob_i of 2.3.2).

use super::keys::{Keyring, TAG, Tag};
pub use crate::packet::NodeId;
use crate::units::{Instant, Rate};
use serde::{Deserialize, Serialize};

/// Bytes of a state on the wire, with its tag.
pub const STATE_BYTES: usize = SIGNED_BYTES + TAG;
/// What the tag covers: at most 55 bytes, so that SHA-256 needs one block.
const SIGNED_BYTES: usize = 52;
/// The form of these bytes.
const VERSION: u8 = 1;
/// Classes of priority.
pub const CLASSES: usize = 4;
/// The largest weight.
pub const MAX_WEIGHT: u16 = 1000;

/// What a client is entitled to, beside others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Share {
    /// Its class: 0 goes first, 3 last.
    pub class: u8,
    /// Its weight among those of its class, 1 to 1000.
    pub weight: u16,
}

impl Default for Share {
    fn default() -> Self {
        Self { class: CLASSES as u8 - 1, weight: 1 }
    }
}

impl Share {
    /// None if there is no such class or weight.
    pub fn new(class: u8, weight: u16) -> Option<Self> {
        let allowed = usize::from(class) < CLASSES && (1..=MAX_WEIGHT).contains(&weight);
        allowed.then_some(Self { class, weight })
    }
}

/// What a client says it can use: a rate in bits per second, or all it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim(u64);

impl Claim {
    /// Whatever it is given.
    pub const ALL: Self = Self(u64::MAX);

    /// At most `bps` bits per second; the largest number stands for all.
    pub const fn bps(bps: u64) -> Self {
        Self(bps)
    }
    /// Bits per second, `u64::MAX` for all.
    pub const fn as_bps(self) -> u64 {
        self.0
    }
}

impl From<Option<Rate>> for Claim {
    fn from(rate: Option<Rate>) -> Self {
        rate.map_or(Self::ALL, |rate| Self(rate.as_bps()))
    }
}

/// Where a client stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Entitled to its share; the operator hands this out before there is a gateway to ask.
    Ticket,
    /// Asked to show that it is there; it holds nothing yet.
    Invited,
    /// It uses what it is given.
    Good,
    /// It cannot use an equal share, and holds what it claims.
    Bad,
}

impl Status {
    const ALL: [Self; 4] = [Self::Ticket, Self::Invited, Self::Good, Self::Bad];
}

/// State_i.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// Whose.
    pub node: NodeId,
    /// What it is entitled to.
    pub share: Share,
    /// s of the source.
    pub status: Status,
    /// What it holds at most.
    pub claim: Claim,
    /// Bits per second and unit of weight that its class was given when this was signed; `u64::MAX` if it holds nothing.
    pub level: u64,
    /// The gateway forgets the client unless it hears of it before; by the gateway's clock.
    pub until: Instant,
    /// Grows with each state that a gateway signs.
    pub seq: u64,
    /// Which gateway, and which of its lives, signed.
    pub incarnation: u64,
}

impl State {
    /// A state without a session: what a node's share is, for the operator to sign.
    pub fn ticket(node: NodeId, share: Share) -> Self {
        let (until, level) = (Instant::MAX, u64::MAX);
        Self { node, share, status: Status::Ticket, claim: Claim::ALL, level, until, seq: 0, incarnation: 0 }
    }

    /// bw of the source, in bits per second.
    pub fn budget(&self) -> u64 {
        budget(self.share, self.claim, self.level)
    }

    /// Signs with the ring's newest key.
    pub fn sign(self, ring: &Keyring) -> Signed {
        let key = ring.id();
        Signed { state: self, key, tag: ring.sign(&bytes(&self, key)) }
    }
}

/// What a client may use: its weight times the level of its class, and not more than it claims.
pub fn budget(share: Share, claim: Claim, level: u64) -> u64 {
    claim.0.min(level.saturating_mul(share.weight.into()))
}

/// A state and the tag that shows who made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signed {
    state: State,
    key: u8,
    tag: Tag,
}

impl Signed {
    /// What it says. Only who holds the key can tell whether it is true.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// True if a holder of the key signed it.
    pub fn is_genuine(&self, ring: &Keyring) -> bool {
        ring.verify(self.key, &bytes(&self.state, self.key), &self.tag)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&bytes(&self.state, self.key));
        out.extend_from_slice(&self.tag);
    }

    /// None if these are not the bytes of a state.
    pub(super) fn read(from: &[u8; STATE_BYTES]) -> Option<Self> {
        let (signed, tag) = from.split_at(SIGNED_BYTES);
        let word = |at: usize| u64::from_be_bytes(std::array::from_fn(|i| signed[at + i]));
        let status = *Status::ALL.get(usize::from(signed[0]))?;
        let share = Share::new(signed[1], u16::from_be_bytes([signed[2], signed[3]]))?;
        let node = NodeId(u32::from_be_bytes([signed[4], signed[5], signed[6], signed[7]]));
        let (seq, incarnation, until) = (word(8), word(16), Instant::from_nanos(word(24)));
        let (claim, level, key) = (Claim(word(32)), word(40), signed[48]);
        let known = signed[49] == VERSION && signed[50..] == [0, 0];
        let state = State { node, share, status, claim, level, until, seq, incarnation };
        known.then_some(Self { state, key, tag: std::array::from_fn(|i| tag[i]) })
    }
}

/// What is signed. docs/c2lp.md has it byte by byte.
fn bytes(state: &State, key: u8) -> [u8; SIGNED_BYTES] {
    let mut out = [0; SIGNED_BYTES];
    out[0] = state.status as u8;
    out[1] = state.share.class;
    out[2..4].copy_from_slice(&state.share.weight.to_be_bytes());
    out[4..8].copy_from_slice(&state.node.0.to_be_bytes());
    out[8..16].copy_from_slice(&state.seq.to_be_bytes());
    out[16..24].copy_from_slice(&state.incarnation.to_be_bytes());
    out[24..32].copy_from_slice(&state.until.as_nanos().to_be_bytes());
    out[32..40].copy_from_slice(&state.claim.0.to_be_bytes());
    out[40..48].copy_from_slice(&state.level.to_be_bytes());
    out[48] = key;
    out[49] = VERSION;
    out
}
