//! Serves the page: a thread for each client, of which there are few.

use crate::error::Error;
use crate::page::access::{Access, Role, SESSION};
use crate::page::http::{self, Request, Response};
use crate::page::metrics;
use crate::page::places::Places;
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
use std::time::Duration;

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

/// What threads of clients share.
#[derive(Debug)]
pub struct Shared {
    pub sampler: Sampler,
    pub access: Access,
    pub tls: Option<Arc<ServerConfig>>,
    pub places: Places,
}

/// Serves at a listener for as long as the process lives.
pub fn run(listener: &Listener, shared: &Arc<Shared>) {
    loop {
        let Ok(stream) = tcp::accept(listener, PATIENCE) else {
            // No descriptor, or a client that went at once.
            std::thread::sleep(Duration::from_millis(100));
            continue;
        };
        let shared = Arc::clone(shared);
        std::thread::spawn(move || shared.client(stream));
    }
}

impl Shared {
    fn client(&self, stream: Stream) -> io::Result<()> {
        let Some(place) = self.places.take(&stream)? else { return Ok(()) };
        let trust = || place.trust();
        match &self.tls {
            None => self.converse(stream, trust),
            Some(config) => {
                let connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
                self.converse(StreamOwned::new(connection, stream), trust)
            }
        }
    }

    /// Answers requests until the client has no more. `trust` is called when one shows that it may look.
    fn converse(&self, mut stream: impl Read + Write, trust: impl Fn()) -> io::Result<()> {
        let mut left = Vec::new();
        loop {
            let request = match http::read(&mut stream, &mut left) {
                Ok(request) => request,
                Err(None) => return Ok(()),
                Err(Some(code)) => {
                    let last = Request { last: true, ..Request::default() };
                    return Response::error(code, "this request is not understood").write(&mut stream, &last);
                }
            };
            self.answer(&request, &trust).write(&mut stream, &request)?;
            if request.last {
                return Ok(());
            }
        }
    }

    fn answer(&self, request: &Request, trust: &impl Fn()) -> Response {
        let content = self.sampler.content;
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
        trust();
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
            let name = self.sampler.content.name;
            let said = if request.query == "wrong" { &format!("This is no token of this {name}.") } else { "" };
            return Response::new(HTML, LOGIN.replace("{{SAID}}", said).replace("{{NAME}}", name));
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
                let cookie = format!("penstock={id}; Max-Age={age}; Path=/; HttpOnly; SameSite=Strict{secure}");
                Response::see("/").with(&format!("Set-Cookie: {cookie}"))
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
        let given = ["values", "for", "confirm"].into_iter().filter(|key| !asked[key].is_null());
        given.for_each(|key| line[key] = asked[key].clone());
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

#[cfg(test)]
mod tests {
    use super::*;

    use crate::page::Content;
    use crate::page::access::access;
    use crate::page::history::History;
    use crate::socket::client::Connection;
    use crate::socket::message::answer_line;
    use std::io::{BufRead, BufReader};
    use std::os::unix::net::{UnixListener, UnixStream};

    static CONTENT: Content = Content {
        name: "cellar",
        html: "the page",
        script: "the script",
        columns: &[],
        row: |_, _| Vec::new(),
        magic: b"0123456789abcdef",
        metrics: |status| format!("the metrics of {status}"),
    };

    /// A page whose appliance answers each order with the order itself.
    fn shared(name: &str, readers: &[&str], operators: &[&str]) -> Shared {
        let path = std::env::temp_dir().join(format!("penstock-serve-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).unwrap();
        let connection = Connection::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for line in BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok) {
                stream.write_all(answer_line(&Ok(line)).as_bytes()).unwrap();
            }
        });
        let sampler = Sampler::new(&CONTENT, connection, History::with(&CONTENT, None, 0));
        Shared { sampler, access: access(readers, operators), tls: None, places: Places::default() }
    }

    fn answer(page: &Shared, request: &Request) -> Response {
        page.answer(request, &|| ())
    }

    /// A request with a line of its head and a body.
    fn request(what: &str, line: &str, body: &str) -> Request {
        let text = format!("{what} HTTP/1.1\r\n{line}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        http::read(&mut text.as_bytes(), &mut Vec::new()).unwrap()
    }

    const HERE: &str = "Host: localhost";

    #[test]
    fn each_address_has_its_content_and_its_method() {
        let page = shared("addresses", &[], &[]);
        let answer = |what: &str| answer(&page, &request(what, HERE, ""));
        for (what, code, kind) in [
            ("GET /", 200, HTML),
            ("HEAD /", 200, HTML),
            ("GET /live.js", 200, SCRIPT),
            ("HEAD /kit.css", 200, STYLE),
            ("GET /api/now", 200, JSON),
            ("GET /api/history", 200, JSON),
            ("GET /metrics", 200, metrics::KIND),
            ("POST /logout", 303, "text/plain"),
        ] {
            let Response { code: told, kind: shown, .. } = answer(what);
            assert_eq!((told, shown), (code, kind), "{what}");
        }
        for what in ["POST /", "HEAD /api/now", "POST /api/history", "PUT /metrics", "GET /api/set", "GET /logout"] {
            assert_eq!(answer(what).code, 405, "{what}");
        }
        for what in ["GET /nothing", "POST /live.js", "GET /api", "GET //"] {
            assert_eq!(answer(what).code, 404, "{what}");
        }
        let bodies = ["GET /", "GET /live.js", "GET /metrics"].map(|what| answer(what).body);
        assert_eq!(bodies, [&b"the page"[..], b"the script", b"the metrics of null"]);
        assert!(answer("GET /live.js").lines.contains("max-age=3600"));
        let now: Value = serde_json::from_slice(&answer("GET /api/now").body).unwrap();
        assert_eq!((&now["role"], &now["login"]), (&json!("reader"), &json!(false)));
    }

    /// A day of ten-second rows is kept.
    #[test]
    fn history_is_of_a_second_to_a_day() {
        let page = shared("history", &[], &[]);
        let code = |query: &&str| answer(&page, &request(&format!("GET /api/history{query}"), HERE, "")).code;
        assert_eq!(["", "?span=1", "?span=86400", "?span=x"].each_ref().map(code), [200; 4]);
        assert_eq!(["?span=0", "?span=86401", "?span=-1"].each_ref().map(code), [400; 3]);
    }

    #[test]
    fn a_stranger_sees_the_form_and_nothing_else() {
        let page = shared("stranger", &["look"], &[]);
        let form = answer(&page, &request("GET /", HERE, ""));
        let text = |response: &Response| String::from_utf8(response.body.clone()).unwrap();
        assert!(form.code == 200 && !text(&form).contains("{{") && !text(&form).contains("no token"));
        assert!(text(&form).contains("cellar"));
        assert!(text(&answer(&page, &request("GET /?wrong", HERE, ""))).contains("This is no token of this cellar."));
        for what in ["POST /", "GET /api/now", "GET /metrics", "POST /api/set"] {
            let told = answer(&page, &request(what, HERE, ""));
            assert!(told.code == 401 && told.lines.contains("WWW-Authenticate: Bearer"), "{what}");
        }
        assert_eq!(answer(&page, &request("GET /kit.js", HERE, "")).code, 200);
        let open = shared("rebound", &[], &[]);
        assert_eq!(answer(&open, &request("GET /", "Host: rebound.example", "")).code, 421);
    }

    #[test]
    fn who_logs_in_gets_a_cookie_that_only_this_page_sees() {
        let page = shared("login", &["look"], &[]);
        let told = answer(&page, &request("POST /login", HERE, "other=1&token=+look+"));
        assert!(told.code == 303 && told.lines.starts_with("Location: /\r\n"), "{told:?}");
        let cookie = told.lines.lines().find_map(|line| line.strip_prefix("Set-Cookie: ")).unwrap();
        let words: Vec<&str> = cookie.split("; ").collect();
        assert_eq!(words[1..], ["Max-Age=43200", "Path=/", "HttpOnly", "SameSite=Strict"]);
        let line = format!("Cookie: {}", words[0]);
        assert_eq!(answer(&page, &request("GET /metrics", &line, "")).code, 200);
        let out = answer(&page, &request("POST /logout", &line, ""));
        assert!(out.lines.contains("Set-Cookie: penstock=; Max-Age=0;"), "{out:?}");
        assert_eq!(answer(&page, &request("GET /metrics", &line, "")).code, 401);
        let wrong = answer(&page, &request("POST /login", HERE, "token=x"));
        assert!(wrong.code == 303 && wrong.lines.starts_with("Location: /?wrong\r\n"), "{wrong:?}");
        assert_eq!(answer(&page, &request("GET /login", HERE, "")).code, 401, "only a form logs in");
        // A browser then never sends it over a connection that others can read.
        let tls = ServerConfig::builder_with_provider(rustls::crypto::ring::default_provider().into());
        let tls = tls.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let tls = tls.with_cert_resolver(Arc::new(rustls::server::ResolvesServerCertUsingSni::new()));
        let page = Shared { tls: Some(Arc::new(tls)), ..page };
        let told = answer(&page, &request("POST /login", HERE, "token=look"));
        assert!(told.lines.contains("; HttpOnly; SameSite=Strict; Secure\r\n"), "{told:?}");
    }

    #[test]
    fn only_operators_change_something_and_only_with_json() {
        let page = shared("set", &["look"], &["change"]);
        let set = |token: &str, kind: &str, body: &str| {
            let lines = format!("Authorization: Bearer {token}\r\nContent-Type: {kind}");
            let told = answer(&page, &request("POST /api/set", &lines, body));
            (told.code, String::from_utf8(told.body).unwrap())
        };
        let asked = r#"{"values": {"rate": "5Mbit/s"}, "for": "5s", "confirm": null}"#;
        assert_eq!(set("look", JSON, asked), (403, "only an operator may change something\n".into()));
        assert_eq!(set("change", "text/plain", asked), (400, "a body of JSON is needed\n".into()));
        assert_eq!(set("change", JSON, "nonsense").0, 400);
        let (code, told) = set("change", JSON, asked);
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!((code, &told["do"], &told["values"]["rate"]), (200, &json!("set"), &json!("5Mbit/s")));
        assert_eq!((&told["for"], told.get("confirm")), (&json!("5s"), None));
    }

    #[test]
    fn a_connection_ends_with_the_request_that_says_so_or_is_none() {
        let page = shared("converse", &[], &[]);
        let codes = |text: &str| {
            let (mut client, server) = UnixStream::pair().unwrap();
            client.write_all(text.as_bytes()).unwrap();
            client.shutdown(std::net::Shutdown::Write).unwrap();
            page.converse(server, || ()).unwrap();
            let mut told = String::new();
            client.read_to_string(&mut told).unwrap();
            told.split("HTTP/1.1 ").skip(1).map(|one| one[..3].to_owned()).collect::<Vec<_>>()
        };
        let one = |path: &str, more: &str| format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n");
        assert_eq!(codes(&[one("/x", ""), one("/metrics", "")].concat()), ["404", "200"]);
        assert_eq!(codes(&[one("/x", "Connection: close\r\n"), one("/metrics", "")].concat()), ["404"]);
        assert_eq!(codes(&[one("/metrics", ""), "nonsense\r\n\r\n".into(), one("/x", "")].concat()), ["200", "400"]);
    }
}
