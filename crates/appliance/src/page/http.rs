//! HTTP/1.1 for a few clients: a request is a head of 8 KiB and a body of 4 KiB at most. `httparse` reads the head.

use std::io::{self, Read, Write};

const MOST_HEAD: usize = 8192;
const MOST_BODY: usize = 4096;
const MOST_HEADERS: usize = 40;
/// What a browser may do with a page of ours: nothing from outside, no frame, no script in the text.
const SAFE: &str = "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                    img-src data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'\r\n\
                    X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub query: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// True if the client closes the connection, or speaks HTTP/1.0.
    pub last: bool,
}

impl Request {
    /// Returns a header; empty if it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
    }

    /// Returns a value of the query or of a form, decoded.
    pub fn field(text: &str, name: &str) -> Option<String> {
        text.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name).map(|(_, v)| decoded(v))
    }
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => match (digit(), digit()) {
                (Some(high), Some(low)) => (high * 16 + low) as u8,
                _ => b'?',
            },
            other => other,
        });
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Why no request came: it is none, or too long, as this status says; `None` if the client is gone, or was silent for too long.
pub type Refused = Option<u16>;

/// Reads the next request. `left` keeps what was read beyond it.
pub fn read(stream: &mut impl Read, left: &mut Vec<u8>) -> Result<Request, Refused> {
    loop {
        if let Some((mut request, head, body)) = parse(left)? {
            while left.len() < head + body {
                more(stream, left)?;
            }
            request.body = left[head..head + body].to_vec();
            left.drain(..head + body);
            return Ok(request);
        }
        if left.len() > MOST_HEAD {
            return Err(Some(431));
        }
        more(stream, left)?;
    }
}

fn more(stream: &mut impl Read, left: &mut Vec<u8>) -> Result<(), Refused> {
    let mut buffer = [0; 4096];
    match stream.read(&mut buffer) {
        Ok(0) | Err(_) => Err(None),
        Ok(len) => {
            left.extend_from_slice(&buffer[..len]);
            Ok(())
        }
    }
}

/// Returns the request without its body, and the lengths of its head and its body; `None` if the head is not complete.
fn parse(bytes: &[u8]) -> Result<Option<(Request, usize, usize)>, Refused> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    let head = match parsed.parse(bytes) {
        Ok(httparse::Status::Complete(head)) => head,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(Some(400)),
    };
    let target = parsed.path.unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut request = Request {
        method: parsed.method.unwrap_or_default().into(),
        path: path.into(),
        query: query.into(),
        headers: parsed.headers.iter().map(|header| (header.name.into(), text(header.value))).collect(),
        ..Request::default()
    };
    request.last = parsed.version == Some(0) || request.header("connection").eq_ignore_ascii_case("close");
    if !request.header("transfer-encoding").is_empty() {
        return Err(Some(501));
    }
    let length = request.header("content-length");
    match if length.is_empty() { Ok(0) } else { length.parse() } {
        Ok(length) if length <= MOST_BODY => Ok(Some((request, head, length))),
        Ok(_) => Err(Some(413)),
        Err(_) => Err(Some(400)),
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub code: u16,
    pub kind: &'static str,
    /// Further lines of the head, each with its end.
    pub lines: String,
    pub body: Vec<u8>,
}

impl Response {
    pub fn new(kind: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self { code: 200, kind, lines: String::new(), body: body.into() }
    }

    pub fn error(code: u16, what: &str) -> Self {
        Self { code, ..Self::new("text/plain; charset=utf-8", format!("{what}\n")) }
    }

    pub fn see(place: &str) -> Self {
        Self { code: 303, lines: format!("Location: {place}\r\n"), ..Self::new("text/plain", "") }
    }

    #[must_use]
    pub fn with(mut self, line: &str) -> Self {
        self.lines += line;
        self.lines += "\r\n";
        self
    }

    /// Writes the answer; without its body for HEAD.
    pub fn write(&self, stream: &mut impl Write, request: &Request) -> io::Result<()> {
        let Self { code, kind, lines, body } = self;
        let cache = if lines.contains("Cache-Control") { "" } else { "Cache-Control: no-store\r\n" };
        let close = if request.last { "Connection: close\r\n" } else { "" };
        let (reason, length) = (reason(*code), body.len());
        let types = format!("Content-Type: {kind}\r\nContent-Length: {length}\r\n");
        let head = format!("HTTP/1.1 {code} {reason}\r\n{types}{cache}{close}{SAFE}{lines}\r\n");
        stream.write_all(head.as_bytes())?;
        if request.method != "HEAD" {
            stream.write_all(body)?;
        }
        stream.flush()
    }
}

/// The names of RFC 9110, section 15, and RFC 6585.
const REASONS: [(u16, &str); 12] = [
    (200, "OK"),
    (303, "See Other"),
    (400, "Bad Request"),
    (401, "Unauthorized"),
    (403, "Forbidden"),
    (404, "Not Found"),
    (405, "Method Not Allowed"),
    (413, "Content Too Large"),
    (421, "Misdirected Request"),
    (431, "Request Header Fields Too Large"),
    (501, "Not Implemented"),
    (503, "Service Unavailable"),
];

fn reason(code: u16) -> &'static str {
    REASONS.iter().find(|(known, _)| *known == code).map_or("Unknown", |(_, reason)| reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives one byte at a time.
    struct Slow<'a>(&'a [u8]);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let len = self.0.len().min(1);
            buffer[..len].copy_from_slice(&self.0[..len]);
            self.0 = &self.0[len..];
            Ok(len)
        }
    }

    #[test]
    fn requests_come_one_after_another_however_they_are_cut() {
        let text = b"GET /a?x=1&y=a%2Fb+c HTTP/1.1\r\nHost: h\r\n\r\nPOST /b HTTP/1.1\r\ncontent-length: 4\r\nConnection: close\r\n\r\nbody";
        let (mut stream, mut left) = (Slow(text), Vec::new());
        let first = read(&mut stream, &mut left).unwrap();
        assert_eq!((first.path.as_str(), first.header("HOST"), first.last), ("/a", "h", false));
        assert_eq!(Request::field(&first.query, "y").as_deref(), Some("a/b c"));
        let second = read(&mut stream, &mut left).unwrap();
        assert_eq!((second.method.as_str(), second.body.as_slice(), second.last), ("POST", &b"body"[..], true));
        assert!(matches!(read(&mut stream, &mut left), Err(None)));
    }

    #[test]
    fn what_is_none_or_too_long_is_refused() {
        let code = |text: &str| match read(&mut text.as_bytes(), &mut Vec::new()) {
            Err(Some(code)) => code,
            other => panic!("{text:.60}: {other:?}"),
        };
        assert_eq!(code("nonsense\r\n\r\n"), 400);
        assert_eq!(code("POST / HTTP/1.1\r\nContent-Length: 5000\r\n\r\n"), 413);
        assert_eq!(code("POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n"), 400);
        assert_eq!(code("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"), 501);
        assert_eq!(code(&format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(20_000))), 431);
        assert_eq!(code(&format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(60))), 400);
    }

    #[test]
    fn an_answer_lets_nothing_in_from_outside() {
        let mut out = Vec::new();
        Response::new("text/html", "x").with("A: b").write(&mut out, &Request::default()).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("default-src 'none'") && text.contains("no-store") && text.ends_with("A: b\r\n\r\nx"));
    }

    #[test]
    fn an_answer_says_in_words_what_its_number_means() {
        for (code, words) in [(404, "404 Not Found"), (503, "503 Service Unavailable"), (599, "599 Unknown")] {
            let (mut out, last) = (Vec::new(), code == 503);
            Response::error(code, "x").write(&mut out, &Request { last, ..Request::default() }).unwrap();
            let text = String::from_utf8(out).unwrap();
            assert!(text.starts_with(&format!("HTTP/1.1 {words}\r\n")), "{code}");
            assert_eq!(text.contains("\r\nConnection: close\r\n"), last, "{code}");
        }
    }
}
