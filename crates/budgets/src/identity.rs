//! Keys and certificates: the authority of a gateway, its own certificate, those of nodes, and one-time tokens.
//!
//! Every key is an Ed25519 key made from 32 secret bytes. A *token* is such secret bytes too: who has it can prove so in the
//! handshake of TLS, and never sends it. The gateway keeps a hash of the token's public key.
//!
//! Certificates say who somebody is, not until when: a machine without a clock must not be locked out, and what a gateway
//! forgets has no access whatever its certificate says ([`crate::roster`]).

use penstock_core::coop::NodeId;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ED25519, PublicKeyData, SignatureAlgorithm, date_time_ymd,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::fmt;
use zeroize::Zeroizing;

/// The name of every gateway in its certificate.
pub const GATEWAY: &str = "gateway.c2ml.penstock";
const AUTHORITY: &str = "authority of c2ml";
const NODE: (&str, &str) = ("node-", ".c2ml.penstock");
const TOKEN: &str = "penstock1";
/// What stands before the 32 bytes of a public key (RFC 8410).
const PUBLIC: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// What stands before the 32 bytes of a secret key in PKCS #8 (RFC 8410).
const PRIVATE: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// A public key.
pub type Public = [u8; 32];

/// Why a key or a certificate is none.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system gives no random numbers.
    #[error("cannot draw random numbers: {0}")]
    Random(#[from] std::io::Error),
    /// A certificate cannot be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// A text is not a token.
    #[error("this is not a token; `penstock-gateway invite` prints one, which begins with {TOKEN}-")]
    Token,
}

/// The secret bytes of a key. They are wiped when dropped, and `Debug` does not show them.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Zeroizing<[u8; 32]>);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// Draws a secret from the system's source.
    pub fn draw() -> Result<Self, Error> {
        let mut bytes = Zeroizing::new([0; 32]);
        getrandom::fill(bytes.as_mut_slice()).map_err(std::io::Error::from)?;
        Ok(Self(bytes))
    }

    /// Returns the secret with these bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// Reads a secret as [`Secret::hex`] writes it.
    pub fn from_hex(text: &str) -> Option<Self> {
        bytes(text).and_then(|bytes| bytes.try_into().ok()).map(Self::new)
    }

    /// The secret as a text, for a file that only its owner reads.
    pub fn hex(&self) -> Zeroizing<String> {
        Zeroizing::new(hex(&*self.0))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn pkcs8(&self) -> PrivatePkcs8KeyDer<'static> {
        [&PRIVATE[..], &*self.0].concat().into()
    }

    /// The key as TLS wants it.
    pub fn private(&self) -> PrivateKeyDer<'static> {
        self.pkcs8().into()
    }

    fn pair(&self) -> Result<KeyPair, Error> {
        Ok(KeyPair::from_pkcs8_der_and_sign_algo(&self.pkcs8(), &PKCS_ED25519)?)
    }

    /// The public key.
    pub fn public(&self) -> Result<Public, Error> {
        let pair = self.pair()?;
        pair.der_bytes().try_into().map_err(|_| Error::Certificate(rcgen::Error::CouldNotParseKeyPair))
    }
}

/// Returns bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads what [`hex`] has written.
pub fn bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let plain = digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit);
    plain.then(|| digits.chunks(2).map(pair).collect())?
}

/// The hash by which something public is found again: a key, or a certificate.
pub fn fingerprint(of: &[u8]) -> String {
    hex(&blake3::hash(of).as_bytes()[..16])
}

/// A certificate with its secret key.
#[derive(Debug, Clone)]
pub struct Credentials {
    /// The key.
    pub secret: Secret,
    /// The certificate.
    pub certificate: CertificateDer<'static>,
}

/// Who signs the certificates of a gateway and of its nodes.
#[derive(Debug, Clone)]
pub struct Authority(pub Credentials);

impl Authority {
    /// Makes an authority with a new key.
    pub fn new() -> Result<Self, Error> {
        let secret = Secret::draw()?;
        let certificate = authority().self_signed(&secret.pair()?)?.der().clone();
        Ok(Self(Credentials { secret, certificate }))
    }

    fn sign(&self, key: &Public, name: &str, usage: ExtendedKeyUsagePurpose) -> Result<CertificateDer<'static>, Error> {
        let issuer = Issuer::new(authority(), self.0.secret.pair()?);
        let mut params = without_dates(CertificateParams::new([name.to_owned()])?);
        params.distinguished_name = named(name);
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        Ok(params.signed_by(&Key(key), &issuer)?.der().clone())
    }

    /// Signs the certificate of a node.
    pub fn node(&self, key: &Public, node: NodeId) -> Result<CertificateDer<'static>, Error> {
        self.sign(key, &name_of(node), ExtendedKeyUsagePurpose::ClientAuth)
    }

    /// Makes a key for a gateway, and signs its certificate.
    pub fn gateway(&self) -> Result<Credentials, Error> {
        let secret = Secret::draw()?;
        let certificate = self.sign(&secret.public()?, GATEWAY, ExtendedKeyUsagePurpose::ServerAuth)?;
        Ok(Credentials { secret, certificate })
    }
}

/// A public key as the library wants it.
struct Key<'a>(&'a Public);

impl PublicKeyData for Key<'_> {
    fn der_bytes(&self) -> &[u8] {
        self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ED25519
    }
}

fn named(name: &str) -> DistinguishedName {
    let mut distinguished = DistinguishedName::new();
    distinguished.push(DnType::CommonName, name);
    distinguished
}

fn without_dates(mut params: CertificateParams) -> CertificateParams {
    (params.not_before, params.not_after) = (date_time_ymd(1970, 1, 1), date_time_ymd(4096, 1, 1));
    params
}

fn authority() -> CertificateParams {
    let mut params = without_dates(CertificateParams::default());
    params.distinguished_name = named(AUTHORITY);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params
}

/// The name of a node in its certificate.
pub fn name_of(node: NodeId) -> String {
    format!("{}{}{}", NODE.0, node.0, NODE.1)
}

/// The node that a certificate names; its signature has to be checked elsewhere.
pub fn node_of(certificate: &CertificateDer<'_>) -> Option<NodeId> {
    let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
    let mut names = certificate.valid_dns_names();
    let node = names.next()?.strip_prefix(NODE.0)?.strip_suffix(NODE.1)?.parse().ok().map(NodeId);
    node.filter(|_| names.next().is_none())
}

/// The public key of a certificate; its signature has to be checked elsewhere.
pub fn public_of(certificate: &CertificateDer<'_>) -> Option<Public> {
    let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
    certificate.subject_public_key_info().strip_prefix(&PUBLIC)?.try_into().ok()
}

/// A right to enrol: a secret, and the fingerprint of the authority that it is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The secret.
    pub secret: Secret,
    /// The fingerprint of the certificate of the authority.
    pub authority: String,
}

impl Token {
    /// The token as a text for people to hand on.
    pub fn text(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("{TOKEN}-{}-{}", *self.secret.hex(), self.authority))
    }

    /// Reads a token as [`Token::text`] writes it. The error does not repeat the text.
    pub fn read(text: &str) -> Result<Self, Error> {
        let mut parts = text.trim().split('-');
        let (first, secret, authority) = (parts.next(), parts.next(), parts.next());
        let right = first == Some(TOKEN) && parts.next().is_none();
        let secret = secret.and_then(Secret::from_hex).filter(|_| right).ok_or(Error::Token)?;
        let authority = authority.filter(|text| bytes(text).is_some_and(|bytes| bytes.len() == 16));
        Ok(Self { secret, authority: authority.ok_or(Error::Token)?.to_owned() })
    }

    /// The certificate with which the holder of the token comes to the gateway: it is its own authority.
    pub fn credentials(&self) -> Result<Credentials, Error> {
        let params = without_dates(CertificateParams::new(["token.c2ml.penstock".to_owned()])?);
        let certificate = params.self_signed(&self.secret.pair()?)?.der().clone();
        Ok(Credentials { secret: self.secret.clone(), certificate })
    }
}
