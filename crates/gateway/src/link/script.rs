//! Runs the command of `rate_from = "command"` on a thread of its own, again and again, and reads the rates that it prints.

use crate::error::Error;
use penstock_appliance::command;
use penstock_core::units::{Rate, Span};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

/// The rates of both directions; `None` for the one that was not told.
pub type Told = [Option<Rate>; 2];

/// The thread that runs the command; it ends with this value.
#[derive(Debug)]
pub struct Script {
    told: Receiver<Result<Told, String>>,
    _alive: std::sync::mpsc::Sender<()>,
}

impl Script {
    pub fn start(words: Vec<String>, every: Span) -> Result<Self, Error> {
        let ((send, told), (alive, ended)) = (sync_channel(16), channel());
        let every = Duration::from_nanos(every.as_nanos());
        let work = move || repeat(&words, every, &send, &ended);
        let thread = std::thread::Builder::new().name("rate".into()).spawn(work);
        thread.map_err(Error::io("cannot start a thread"))?;
        Ok(Self { told, _alive: alive })
    }

    pub fn next(&self) -> Option<Result<Told, String>> {
        self.told.try_recv().ok()
    }
}

fn repeat(words: &[String], every: Duration, send: &SyncSender<Result<Told, String>>, ended: &Receiver<()>) {
    loop {
        let begin = Instant::now();
        let said = command::run(words, every).and_then(|text| read(&text));
        // Who does not take results gets the next ones.
        let _ = send.try_send(said);
        match ended.recv_timeout(every.saturating_sub(begin.elapsed())) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return,
        }
    }
}

/// Reads `18Mbit/s` or `18Mbit/s 2Mbit/s` from the first line.
fn read(text: &str) -> Result<Told, String> {
    let line = text.lines().next().unwrap_or_default();
    let words: Vec<&str> = line.split_whitespace().collect();
    let rate = |word: &str| word.parse::<Rate>().map(Some).map_err(|e| e.to_string());
    match words[..] {
        [down] => Ok([rate(down)?, None]),
        [down, up] => Ok([rate(down)?, rate(up)?]),
        _ => Err(format!("the command printed {line:?}; a line such as \"18Mbit/s 2Mbit/s\" is needed")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbps(n: u64) -> Option<Rate> {
        Some(Rate::from_bps(n * 1_000_000))
    }

    #[test]
    fn one_or_two_rates_are_read() {
        assert_eq!(read("18Mbit/s\n"), Ok([mbps(18), None]));
        assert_eq!(read("  18Mbit/s 2Mbit/s  \nmore\n"), Ok([mbps(18), mbps(2)]));
        for wrong in ["", "18", "fast", "1Mbit/s 2Mbit/s 3Mbit/s"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
