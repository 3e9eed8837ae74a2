//! TLS 1.3 of rustls with the random numbers of a connection's seed, so that a run has the same bytes each time.
//!
//! Messages, signatures, ciphers and sizes are those of the released library. DIFFERENCE: the two ends agree on a secret
//! that anybody who sees the handshake could compute ([`OpenGroup`]), and the key of the certificate is published below:
//! the network is simulated and has nobody to hide from. The random source of the usual key exchange cannot be seeded.

use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    ActiveKeyExchange, CryptoProvider, GetRandomFailed, SecureRandom, SharedSecret, SupportedKxGroup, ring as released,
    verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::time_provider::TimeProvider;
use rustls::{DigitallySignedStruct, Error, NamedGroup, SignatureScheme};
use std::cell::Cell;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The name in the certificate.
pub(super) const NAME: &str = "penstock.invalid";
const CERTIFICATE: &[u8] = include_bytes!("certificate.der");
/// PKCS #8 of an Ed25519 key whose 32 bytes are zero (RFC 8410 section 7).
const KEY: &[u8] = &[
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
];
/// Length of a public value, and of what both ends agree on: those of X25519.
const SHARE: usize = 32;

/// What both ends need for a handshake.
pub(super) struct Tls {
    pub client: Arc<QuicClientConfig>,
    pub server: Arc<QuicServerConfig>,
}

/// Returns the configurations of both ends, which all connections share.
///
/// # Errors
/// Returns why the library does not take them.
pub(super) fn shared() -> Result<&'static Tls, String> {
    static TLS: OnceLock<Result<Tls, String>> = OnceLock::new();
    TLS.get_or_init(|| configure().map_err(|error| format!("TLS cannot be configured: {error}")))
        .as_ref()
        .map_err(Clone::clone)
}

fn configure() -> Result<Tls, Error> {
    let provider = Arc::new(CryptoProvider {
        kx_groups: vec![&OpenGroup],
        secure_random: &Seeded,
        ..released::default_provider()
    });
    let verifier = Arc::new(Anybody(provider.clone()));
    let mut client = rustls::ClientConfig::builder_with_details(provider.clone(), Arc::new(NoDate))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    client.resumption = Resumption::disabled(); // each connection is the first one
    client.alpn_protocols = vec![b"penstock".to_vec()];
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(KEY));
    let mut server = rustls::ServerConfig::builder_with_details(provider, Arc::new(NoDate))
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(CERTIFICATE)], key)?;
    server.alpn_protocols = vec![b"penstock".to_vec()];
    server.max_early_data_size = u32::MAX;
    let unusable = |error: quinn_proto::crypto::rustls::NoInitialCipherSuite| Error::General(error.to_string());
    Ok(Tls {
        client: Arc::new(QuicClientConfig::try_from(client).map_err(unusable)?),
        server: Arc::new(QuicServerConfig::try_from(server).map_err(unusable)?),
    })
}

thread_local! {
    /// The state of the random numbers of the end that is at work on this thread.
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// Runs `act` with the random numbers of one end, whose state it moves on.
pub(super) fn drawing_from<T>(state: &mut u64, act: impl FnOnce() -> T) -> T {
    let before = STATE.replace(*state);
    let done = act();
    *state = STATE.replace(before);
    done
}

/// Fills bytes with the random numbers of the end at work (SplitMix64).
pub(super) fn fill(bytes: &mut [u8]) {
    for part in bytes.chunks_mut(8) {
        let state = STATE.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        STATE.set(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        part.copy_from_slice(&(mixed ^ (mixed >> 31)).to_le_bytes()[..part.len()]);
    }
}

#[derive(Debug)]
struct Seeded;

impl SecureRandom for Seeded {
    fn fill(&self, bytes: &mut [u8]) -> Result<(), GetRandomFailed> {
        fill(bytes);
        Ok(())
    }
}

/// A key exchange with the messages of X25519 and without its secrecy: what both ends agree on is the exclusive or of their
/// public values.
#[derive(Debug)]
struct OpenGroup;

impl SupportedKxGroup for OpenGroup {
    fn start(&self) -> Result<Box<dyn ActiveKeyExchange>, Error> {
        let mut own = [0; SHARE];
        fill(&mut own);
        Ok(Box::new(Share(own)))
    }
    fn name(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

struct Share([u8; SHARE]);

impl ActiveKeyExchange for Share {
    fn complete(self: Box<Self>, peer: &[u8]) -> Result<SharedSecret, Error> {
        let peer: [u8; SHARE] = peer.try_into().map_err(|_| Error::General("a share has 32 bytes".into()))?;
        let both: Vec<u8> = self.0.iter().zip(peer).map(|(own, peer)| own ^ peer).collect();
        Ok(SharedSecret::from(both))
    }
    fn pub_key(&self) -> &[u8] {
        &self.0
    }
    fn group(&self) -> NamedGroup {
        NamedGroup::X25519
    }
}

/// Takes every certificate, and checks the signature as the released library does.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// The date of session tickets, which is always the same.
#[derive(Debug)]
struct NoDate;

impl TimeProvider for NoDate {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(Duration::from_secs(1_800_000_000)))
    }
}
