//! Configurations of TLS 1.3: who may come in, and who a node believes.
//!
//! A gateway lets in the nodes of its roster, and those who hold a token. Everybody else is refused within the handshake,
//! so nothing that they send is read. There is no resumption: each session is checked anew.

use crate::identity::{Credentials, GATEWAY, Public, fingerprint, node_of, public_of};
use crate::roster::{Member, Roster};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme, version::TLS13,
};
use std::sync::Arc;
use std::time::Duration;

/// The name of the protocol within TLS, so that nobody speaks another version by mistake.
pub const PROTOCOL: &[u8] = b"c2lp/2";

/// Who is at the other end of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// A node.
    Node(Member),
    /// Somebody with a token, whose public key this is.
    Token(Public),
}

/// The time at which certificates are checked. They have no dates, and machines may have no clock.
fn any_time() -> UnixTime {
    UnixTime::since_unix_epoch(Duration::from_secs(1_000_000_000))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn roots(authority: &CertificateDer<'static>) -> Result<Arc<RootCertStore>, Error> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone())?;
    Ok(Arc::new(roots))
}

/// The part that both verifiers share: signatures of TLS 1.3 with Ed25519 keys, and nothing older.
macro_rules! only_ed25519 {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(Error::General("TLS 1.3 only".into()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            certificate: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            verify_tls13_signature(message, certificate, signature, &provider().signature_verification_algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }
    };
}

/// Decides who may come in.
#[derive(Debug)]
pub struct Door {
    roster: Roster,
    signed: Arc<dyn ClientCertVerifier>,
}

impl Door {
    /// Creates the door of a gateway.
    pub fn new(roster: Roster) -> Result<Self, Error> {
        let builder = WebPkiClientVerifier::builder_with_provider(roots(roster.authority())?, provider());
        let signed = builder.build().map_err(|e| Error::General(e.to_string()))?;
        Ok(Self { roster, signed })
    }

    /// Who holds the key of this certificate; `None` if that is nobody who may come in.
    pub fn who(&self, certificate: &CertificateDer<'_>) -> Option<Peer> {
        let key = public_of(certificate)?;
        if self.signed.verify_client_cert(certificate, &[], any_time()).is_ok() {
            return self.roster.member(node_of(certificate)?, &key).map(Peer::Node);
        }
        self.roster.offer(&key).map(|_| Peer::Token(key))
    }
}

impl ClientCertVerifier for Door {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let refused = Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure);
        self.who(certificate).map(|_| ClientCertVerified::assertion()).ok_or(refused)
    }

    only_ed25519!();
}

/// The authority that a node believes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trust {
    /// This certificate, which the node got when it enrolled.
    Certificate(CertificateDer<'static>),
    /// The one with this fingerprint, which the gateway shows; a token names it.
    Fingerprint(String),
}

/// Decides whether a gateway is the right one.
#[derive(Debug)]
struct Right(Trust);

impl ServerCertVerifier for Right {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let authority = match &self.0 {
            Trust::Certificate(authority) => Some(authority.clone()),
            Trust::Fingerprint(wanted) => {
                others.iter().find(|one| fingerprint(one) == *wanted).map(|one| one.clone().into_owned())
            }
        };
        let authority = authority.ok_or(Error::InvalidCertificate(CertificateError::UnknownIssuer))?;
        let verifier = WebPkiServerVerifier::builder_with_provider(roots(&authority)?, provider()).build();
        let verifier = verifier.map_err(|e| Error::General(e.to_string()))?;
        let name = ServerName::try_from(GATEWAY).map_err(|e| Error::General(e.to_string()))?;
        verifier.verify_server_cert(certificate, &[], &name, &[], any_time())
    }

    only_ed25519!();
}

/// The configuration of a gateway.
pub fn server(roster: &Roster, door: Arc<Door>) -> Result<Arc<QuicServerConfig>, Error> {
    let gateway = roster.gateway();
    let chain = vec![gateway.certificate.clone(), roster.authority().clone()];
    let mut config = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(door)
        .with_single_cert(chain, gateway.secret.private())?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    QuicServerConfig::try_from(config).map(Arc::new).map_err(|e| Error::General(e.to_string()))
}

/// The configuration of a node that has these credentials.
pub fn client(own: &Credentials, trust: Trust) -> Result<Arc<QuicClientConfig>, Error> {
    let mut config = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Right(trust)))
        .with_client_auth_cert(vec![own.certificate.clone()], own.secret.private())?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    QuicClientConfig::try_from(config).map(Arc::new).map_err(|e| Error::General(e.to_string()))
}
