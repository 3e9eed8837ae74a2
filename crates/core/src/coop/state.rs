//! The state of a client, signed by the gateway. It travels with the client (State_i and blob_i of 2.3.2).

pub use super::floor::CLASSES;
use super::floor::Floor;
use super::keys::{Keyring, TAG, Tag};
use crate::allocation::Kept;
pub use crate::packet::NodeId;
use crate::units::{Instant, Rate};
use serde::{Deserialize, Serialize};

/// Length of a state on the wire in bytes, with its tag.
pub const STATE_BYTES: usize = SIGNED_BYTES + TAG;
/// Length of what the tag covers: at most 55 bytes, so that SHA-256 needs one block.
const SIGNED_BYTES: usize = 52;
/// The version of this encoding; a state without a floor has no other bytes than before there were any.
const VERSION: u8 = 1;
/// The version of the encoding of a state with a floor.
const WITH_FLOOR: u8 = 2;
/// The largest weight of a client.
pub const MAX_WEIGHT: u16 = 1000;

/// The share that a client is entitled to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Share {
    /// The priority class: 0 goes first, 3 last.
    pub class: u8,
    /// The weight within the class, 1 to 1000.
    pub weight: u16,
    /// The rate that the client has before weights divide the rest.
    #[serde(skip_serializing_if = "Floor::is_of_class")]
    pub floor: Floor,
}

impl Default for Share {
    fn default() -> Self {
        Self { class: CLASSES as u8 - 1, weight: 1, floor: Floor::NONE }
    }
}

impl Share {
    /// Returns the share; `None` if there is no such class or weight.
    #[must_use]
    pub fn checked(self) -> Option<Self> {
        let allowed = usize::from(self.class) < CLASSES && (1..=MAX_WEIGHT).contains(&self.weight);
        allowed.then_some(self)
    }
}

/// The rate that a client says it can use, in bits per second, or all that it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Claim(u64);

impl Claim {
    /// The claim of a client which can use any budget.
    pub const ALL: Self = Self(u64::MAX);

    /// A claim of `bps` bits per second; `u64::MAX` stands for [`Claim::ALL`].
    pub const fn bps(bps: u64) -> Self {
        Self(bps)
    }
    /// The claim in bits per second, `u64::MAX` for [`Claim::ALL`].
    pub const fn as_bps(self) -> u64 {
        self.0
    }
}

impl From<Option<Rate>> for Claim {
    fn from(rate: Option<Rate>) -> Self {
        rate.map_or(Self::ALL, |rate| Self(rate.as_bps()))
    }
}

/// The standing of a client with the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// The client is entitled to its share; the operator issues this state before the client contacts a gateway.
    Ticket,
    /// The client is asked to prove that it is alive; it holds no budget yet.
    Invited,
    /// The client uses what it is given.
    Good,
    /// The client cannot use an equal share, and holds what it claims.
    Bad,
}

impl Status {
    const ALL: [Self; 4] = [Self::Ticket, Self::Invited, Self::Good, Self::Bad];
}

/// The state of a client, State_i of the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    /// The client to which the state belongs.
    pub node: NodeId,
    /// The share that the client is entitled to.
    pub share: Share,
    /// The standing of the client, s of the source.
    pub status: Status,
    /// The most that the client may hold.
    pub claim: Claim,
    /// The level of the client's class when the state was signed, in bits per second and unit of weight; `u64::MAX` if
    /// the client holds nothing.
    pub level: u64,
    /// The time, by the gateway's clock, at which the gateway forgets the client unless it hears from it before.
    pub until: Instant,
    /// The sequence number, which grows with each state that a gateway signs.
    pub seq: u64,
    /// The number of the gateway that signed; a gateway gets a larger one at each start.
    pub incarnation: u64,
}

impl State {
    /// Creates the state of a node which has no session; the operator signs it as a ticket.
    pub fn ticket(node: NodeId, share: Share) -> Self {
        let (until, level) = (Instant::MAX, u64::MAX);
        Self { node, share, status: Status::Ticket, claim: Claim::ALL, level, until, seq: 0, incarnation: 0 }
    }

    /// The budget of the client in bits per second, bw of the source, unless floors are cut.
    pub fn budget(&self) -> u64 {
        budget(self.share, self.claim, self.level, Kept::ALL)
    }

    /// Signs the state with the newest key of `ring`.
    pub fn sign(self, ring: &Keyring) -> Signed {
        let key = ring.id();
        Signed { state: self, key, tag: ring.sign(&bytes(&self, key)) }
    }
}

/// The budget of a client in bits per second: its weight times the level of its class, at least what is kept of its floor,
/// but at most its claim.
pub fn budget(share: Share, claim: Claim, level: u64, kept: Kept) -> u64 {
    let floor = kept.part(share.class.into(), share.floor.as_bps().min(claim.0));
    claim.0.min(level.saturating_mul(share.weight.into())).max(floor)
}

/// A state with the tag that proves who signed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Signed {
    state: State,
    key: u8,
    tag: Tag,
}

impl Signed {
    /// The state as it was received. Use [`Signed::is_genuine`] before relying on it.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// True if the tag was made with a key of `ring`.
    pub fn is_genuine(&self, ring: &Keyring) -> bool {
        ring.verify(self.key, &bytes(&self.state, self.key), &self.tag)
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&bytes(&self.state, self.key));
        out.extend_from_slice(&self.tag);
    }

    /// Reads a state; `None` if the bytes do not encode one.
    pub(super) fn read(from: &[u8; STATE_BYTES]) -> Option<Self> {
        let (signed, tag) = from.split_at(SIGNED_BYTES);
        let word = |at: usize| u64::from_be_bytes(std::array::from_fn(|i| signed[at + i]));
        let status = *Status::ALL.get(usize::from(signed[0]))?;
        let floor = Floor::from_bits(u16::from_be_bytes([signed[50], signed[51]]));
        let share = Share { class: signed[1], weight: u16::from_be_bytes([signed[2], signed[3]]), floor }.checked()?;
        let node = NodeId(u32::from_be_bytes([signed[4], signed[5], signed[6], signed[7]]));
        let (seq, incarnation, until) = (word(8), word(16), Instant::from_nanos(word(24)));
        let (claim, level, key) = (Claim(word(32)), word(40), signed[48]);
        let known = signed[49] == version(share);
        let state = State { node, share, status, claim, level, until, seq, incarnation };
        known.then_some(Self { state, key, tag: std::array::from_fn(|i| tag[i]) })
    }
}

/// The bytes that are signed. docs/reference/c2lp.md has the layout byte by byte.
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
    out[49] = version(state.share);
    out[50..].copy_from_slice(&state.share.floor.bits().to_be_bytes());
    out
}

fn version(share: Share) -> u8 {
    if share.floor == Floor::NONE { VERSION } else { WITH_FLOOR }
}
