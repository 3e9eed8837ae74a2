//! A client that asks one question.

use crate::socket::message::{LONGEST_ANSWER, Refusal, Request, parse_answer};
use penstock_linux::local::{self, Stream};
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a client waits for an answer.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody listens at this path.
    #[error("nothing answers at {}: {}; does it run, and may this user ask it?", .0.display(), .1)]
    NoAppliance(PathBuf, io::Error),
    /// The connection to this path ended before the answer did.
    #[error("no answer from {}: {}", .0.display(), .1)]
    NoAnswer(PathBuf, io::Error),
    /// The appliance refused.
    #[error("{0}")]
    Refused(Refusal),
}

/// Asks the appliance at `path` and waits for its answer.
pub fn ask(path: &Path, request: &Request) -> Result<Value, Error> {
    Connection::open(path)?.ask(request)
}

/// A connection over which one question is asked after another.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    path: PathBuf,
}

impl Connection {
    /// Connects to the appliance at `path`.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let stream = local::connect(path, PATIENCE).map_err(|error| Error::NoAppliance(path.to_owned(), error))?;
        Ok(Self { stream, path: path.to_owned() })
    }

    /// Asks and waits for the answer. After [`Error::NoAnswer`] there is none any more: one that came late would be taken for that
    /// to the next question.
    pub fn ask(&mut self, request: &Request) -> Result<Value, Error> {
        let line = exchange(&self.stream, request).map_err(|error| {
            let _ = self.stream.shutdown(Shutdown::Both);
            let hangs = || io::Error::other(format!("none within {PATIENCE:?}; what was asked may still be done"));
            let error = if error.kind() == io::ErrorKind::WouldBlock { hangs() } else { error };
            Error::NoAnswer(self.path.clone(), error)
        });
        parse_answer(&line?).map_err(Error::Refused)
    }
}

fn exchange(mut stream: &Stream, request: &Request) -> io::Result<Vec<u8>> {
    stream.write_all(request.line().as_bytes())?;
    let mut line = Vec::new();
    BufReader::new(stream.take(LONGEST_ANSWER as u64)).read_until(b'\n', &mut line)?;
    match line.last() {
        Some(b'\n') => Ok(line),
        _ if line.len() >= LONGEST_ANSWER => Err(io::Error::other("the answer is too long")),
        _ => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection ended")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_answer_is_not_that_to_the_next_question() {
        let (stream, mut appliance) = Stream::pair().unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let mut connection = Connection { stream, path: PathBuf::new() };
        let silence = connection.ask(&Request::Status).unwrap_err().to_string();
        assert!(silence.ends_with("none within 5s; what was asked may still be done"), "{silence}");
        let _ = appliance.write_all(b"{\"v\":1,\"ok\":{\"set\":{}}}\n");
        assert!(matches!(connection.ask(&Request::Status), Err(Error::NoAnswer(..))));
    }
}
