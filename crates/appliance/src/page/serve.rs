//! Serves the page: a thread for each client, of which there are few.

use crate::error::Error;
use crate::page::access::{Access, Role, SESSION};
use crate::page::http::{self, Refused, Request, Response};
use crate::page::keys::Settings;
use crate::page::metrics;
use crate::page::sampler::Sampler;
use crate::socket::message::Request as Order;
use penstock_linux::tcp::{self, Listener, Stream};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Number of clients at a time; further ones are sent away.
const MOST: usize = 32;
/// A client that neither asks nor reads is disconnected.
const PATIENCE: Duration = Duration::from_secs(15);

const HTML: &str = "text/html; charset=utf-8";
const JSON: &str = "application/json";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// The page kit of the reports has style, script and charts; here are only what is live.
const FILES: [(&str, &str, &str); 5] = [
    ("/uplot.css", STYLE, include_str!("../../../../python/penstock/report/kit/assets/uplot.min.css")),
    ("/kit.css", STYLE, include_str!("../../../../python/penstock/report/kit/assets/kit.css")),
    ("/uplot.js", SCRIPT, include_str!("../../../../python/penstock/report/kit/assets/uplot.min.js")),
    ("/kit.js", SCRIPT, include_str!("../../../../python/penstock/report/kit/assets/kit.js")),
    ("/live.css", STYLE, include_str!("assets/live.css")),
];
const LOGIN: &str = include_str!("assets/login.html");

/// Reads the certificate and its key.
///
/// # Errors
/// Returns what is wrong with them.
pub fn tls((certificate, key): &(PathBuf, PathBuf)) -> Result<Arc<ServerConfig>, Error> {
    let wrong = |what: &dyn std::fmt::Display| {
        Error::io("cannot use the `certificate` and the `key` of [page]")(io::Error::other(what.to_string()))
    };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect);
    let chain = chain.map_err(|e| wrong(&format!("{}: {e}", certificate.display())))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|e| wrong(&format!("{}: {e}", key.display())))?;
    let config = ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into());
    let config = config.with_safe_default_protocol_versions().map_err(|e| wrong(&e))?;
    let config = config.with_no_client_auth().with_single_cert(chain, private).map_err(|e| wrong(&e))?;
    Ok(Arc::new(config))
}

/// What listens.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    tls: Option<Arc<ServerConfig>>,
    access: Access,
}

/// What threads of clients share.
struct Shared {
    sampler: Arc<Sampler>,
    access: Access,
    tls: Option<Arc<ServerConfig>>,
    clients: AtomicUsize,
}

impl Server {
    /// Serves at this listener.
    pub fn new(listener: Listener, tls: Option<Arc<ServerConfig>>, settings: &Settings) -> Self {
        Self { listener, tls, access: Access::new(settings) }
    }

    /// Serves for as long as the process lives.
    pub fn run(self, sampler: &Arc<Sampler>) {
        let Self { listener, tls, access } = self;
        let shared = Arc::new(Shared { sampler: Arc::clone(sampler), access, tls, clients: AtomicUsize::new(0) });
        loop {
            let Ok(stream) = tcp::accept(&listener, PATIENCE) else {
                // No descriptor, or a client that went at once.
                std::thread::sleep(Duration::from_millis(100));
                continue;
            };
            let shared = Arc::clone(&shared);
            if shared.clients.fetch_add(1, Ordering::Relaxed) >= MOST {
                shared.clients.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            std::thread::spawn(move || {
                let _ = shared.client(stream);
                shared.clients.fetch_sub(1, Ordering::Relaxed);
            });
        }
    }
}

impl Shared {
    fn client(&self, stream: Stream) -> io::Result<()> {
        match &self.tls {
            None => self.converse(stream),
            Some(config) => {
                let connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
                self.converse(StreamOwned::new(connection, stream))
            }
        }
    }

    fn converse(&self, mut stream: impl Read + Write) -> io::Result<()> {
        let mut left = Vec::new();
        loop {
            let request = match http::read(&mut stream, &mut left) {
                Ok(request) => request,
                Err(Refused::Gone) => return Ok(()),
                Err(Refused::Wrong(code)) => {
                    return Response::error(code, "this request is not understood")
                        .write(&mut stream, &Request::last_one());
                }
            };
            self.answer(&request).write(&mut stream, &request)?;
            if request.last {
                return Ok(());
            }
        }
    }

    fn answer(&self, request: &Request) -> Response {
        let content = self.sampler.content();
        let reads = matches!(request.method.as_str(), "GET" | "HEAD");
        if let Some((_, kind, text)) = FILES
            .iter()
            .chain(&[("/live.js", SCRIPT, content.script)])
            .find(|file| file.0 == request.path)
            .filter(|_| reads)
        {
            return Response::new(kind, *text).with("Cache-Control: max-age=3600");
        }
        if request.path == "/login" && request.method == "POST" {
            return self.log_in(request);
        }
        let Some(role) = self.access.role(request) else { return self.stranger(request) };
        match (request.method.as_str(), request.path.as_str()) {
            ("GET" | "HEAD", "/") => Response::new(HTML, content.html),
            ("GET", "/api/now") => {
                Response::new(JSON, self.sampler.shown(role.name(), !self.access.is_open()).to_string())
            }
            ("GET", "/api/history") => self.history(request),
            ("GET", "/metrics") => Response::new(metrics::KIND, (content.metrics)(&self.sampler.now().status)),
            ("POST", "/api/set") => self.set(request, role),
            ("POST", "/logout") => {
                self.access.log_out(request);
                Response::see("/").with("Set-Cookie: penstock=; Max-Age=0; Path=/; HttpOnly; SameSite=Strict")
            }
            (_, "/" | "/api/now" | "/api/history" | "/metrics" | "/api/set" | "/logout") => {
                Response::error(405, "this is not done with this method")
            }
            _ => Response::error(404, "there is nothing here"),
        }
    }

    /// Who has not logged in sees the form, and nothing else.
    fn stranger(&self, request: &Request) -> Response {
        if self.access.is_open() {
            return Response::error(421, "this page is at localhost or 127.0.0.1 only");
        }
        if request.path == "/" && request.method == "GET" {
            let name = self.sampler.content().name;
            let said =
                if request.query == "wrong" { format!("This is no token of this {name}.") } else { String::new() };
            return Response::new(HTML, LOGIN.replace("{{SAID}}", &said).replace("{{NAME}}", name));
        }
        Response::error(401, "log in first, or send a token: Authorization: Bearer TOKEN")
            .with("WWW-Authenticate: Bearer")
    }

    fn log_in(&self, request: &Request) -> Response {
        let form = String::from_utf8_lossy(&request.body);
        let token = Request::field(&form, "token").unwrap_or_default();
        match self.access.log_in(token.trim()) {
            Ok(Some(id)) => {
                let secure = if self.tls.is_some() { "; Secure" } else { "" };
                let age = SESSION.as_secs();
                Response::see("/").with(&format!(
                    "Set-Cookie: penstock={id}; Max-Age={age}; Path=/; HttpOnly; SameSite=Strict{secure}"
                ))
            }
            Ok(None) => Response::see("/?wrong"),
            Err(error) => Response::error(503, &error.to_string()),
        }
    }

    fn history(&self, request: &Request) -> Response {
        let span = Request::field(&request.query, "span").and_then(|span| span.parse().ok()).unwrap_or(600);
        match span {
            1..=86_400 => Response::new(JSON, self.sampler.last(span).to_string()),
            _ => Response::error(400, "allowed is a span of 1 to 86400 seconds"),
        }
    }

    /// Sets what an operator asks. A form of another page cannot ask: its requests have no body of this type.
    fn set(&self, request: &Request, role: Role) -> Response {
        if role != Role::Operator {
            return Response::error(403, "only an operator may change something");
        }
        if request.header("content-type") != JSON {
            return Response::error(400, "a body of JSON is needed");
        }
        let asked: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let mut line = json!({"v": 1, "do": "set"});
        ["values", "for", "confirm"]
            .into_iter()
            .filter(|key| !asked[key].is_null())
            .for_each(|key| line[key] = asked[key].clone());
        let set = match Order::parse(line.to_string().as_bytes()) {
            Ok(Order::Set(set)) => set,
            Ok(_) => return Response::error(400, "this sets nothing"),
            Err(refusal) => return Response::error(400, &refusal.to_string()),
        };
        match self.sampler.set(set) {
            Ok(answer) => Response::new(JSON, answer.to_string()),
            Err(error) => Response::error(400, &error.to_string()),
        }
    }
}
