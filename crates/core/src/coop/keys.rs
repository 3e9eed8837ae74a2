//! Keys: HMAC-SHA256 (RFC 2104, FIPS 180-4) with tags cut to 128 bits (RFC 2104 §5), and their rotation.
//!
//! A [`Keyring`] signs with its newest key and also accepts the key before it, so that a key can be changed while
//! clients hold states which the old key signed. A key appears neither in `Debug` nor in any message; its bytes are
//! wiped when it is dropped.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroize;

/// Length of a tag in bytes.
pub const TAG: usize = 16;
/// The authentication tag of signed bytes.
pub type Tag = [u8; TAG];

/// A secret key of 256 bits.
#[derive(Clone, PartialEq, Eq)]
pub struct Key([u8; 32]);

impl Key {
    /// Creates a key from these bytes, which must come from a source of secrets.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(secret)")
    }
}

/// A key prepared for signing, and its id in messages.
#[derive(Clone)]
struct Named {
    id: u8,
    ready: Hmac<Sha256>,
}

impl Named {
    fn new(id: u8, key: &Key) -> Self {
        // The pads of HMAC are computed once here and not for every message.
        let ready = Hmac::new_from_slice(&key.0).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
        Self { id, ready }
    }
}

/// The key that signs and the key before it.
#[derive(Clone)]
pub struct Keyring {
    current: Named,
    previous: Option<Named>,
}

impl Keyring {
    /// Creates a ring with one key. Messages carry `id` to tell which key was used; the id reveals nothing about the
    /// key.
    pub fn new(id: u8, key: &Key) -> Self {
        Self { current: Named::new(id, key), previous: None }
    }

    /// Replaces the key that signs. Tags of the previous key stay valid until the next rotation; a still older key is
    /// removed, and so is a previous key with the same id.
    pub fn rotate(&mut self, id: u8, key: &Key) {
        let last = std::mem::replace(&mut self.current, Named::new(id, key));
        self.previous = (last.id != id).then_some(last);
    }

    /// The id of the key that signs.
    pub fn id(&self) -> u8 {
        self.current.id
    }

    /// The tag of `bytes` under the key that signs.
    pub fn sign(&self, bytes: &[u8]) -> Tag {
        let mut mac = self.current.ready.clone();
        mac.update(bytes);
        let full = mac.finalize().into_bytes();
        std::array::from_fn(|i| full[i])
    }

    /// True if `tag` is the tag of `bytes` under the key `id`. Takes equally long for wrong and right tags.
    pub fn verify(&self, id: u8, bytes: &[u8], tag: &Tag) -> bool {
        let Some(key) = [Some(&self.current), self.previous.as_ref()].into_iter().flatten().find(|k| k.id == id) else {
            return false;
        };
        let mut mac = key.ready.clone();
        mac.update(bytes);
        mac.verify_truncated_left(tag).is_ok()
    }
}

impl std::fmt::Debug for Keyring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let ids: Vec<u8> = [Some(&self.current), self.previous.as_ref()].into_iter().flatten().map(|k| k.id).collect();
        write!(f, "Keyring(ids {ids:?}, secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231 §4.3, test case 2: the key is shorter than 32 bytes, and HMAC pads it with zeros.
    #[test]
    fn tags_are_those_of_rfc_4231() {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(b"Jefe");
        let ring = Keyring::new(0, &Key::new(bytes));
        let tag = ring.sign(b"what do ya want for nothing?");
        let expected = [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24, 0x26, 0x08, 0x95, 0x75, 0xc7];
        assert_eq!(tag, expected);
        assert!(ring.verify(0, b"what do ya want for nothing?", &tag));
        assert!(!ring.verify(0, b"what do ya want for nothing!", &tag));
        assert!(!ring.verify(1, b"what do ya want for nothing?", &tag), "a key of another id");
    }

    #[test]
    fn a_rotated_key_is_valid_once_more() {
        let mut ring = Keyring::new(1, &Key::new([1; 32]));
        let tag = ring.sign(b"x");
        ring.rotate(2, &Key::new([2; 32]));
        assert!(ring.verify(1, b"x", &tag));
        assert_ne!(ring.sign(b"x"), tag);
        ring.rotate(3, &Key::new([3; 32]));
        assert!(!ring.verify(1, b"x", &tag), "two rotations ago");
    }

    #[test]
    fn keys_do_not_show_themselves() {
        let key = Key::new([0xab; 32]);
        let shown = format!("{key:?} {:?}", Keyring::new(7, &key));
        assert_eq!(shown, "Key(secret) Keyring(ids [7], secret)");
    }
}
