//! Runs the command of `rate_from = "command"` on a thread of its own, again and again, and reads the rates that it prints.

use crate::error::Error;
use penstock_core::units::{Rate, Span};
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::time::{Duration, Instant};

/// The longest output that is read.
const LONGEST: u64 = 4096;
/// How often is looked whether the command has ended.
const LOOK: Duration = Duration::from_millis(20);

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
        let said = run(words, every).and_then(|text| read(&text));
        // Who does not take results gets the next ones.
        let _ = send.try_send(said);
        match ended.recv_timeout(every.saturating_sub(begin.elapsed())) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return,
        }
    }
}

/// Returns what the command prints. It is killed after `longest`.
fn run(words: &[String], longest: Duration) -> Result<String, String> {
    let (program, rest) = words.split_first().ok_or("no command")?;
    let mut command = Command::new(program);
    command.args(rest).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|e| format!("{program}: {e}"))?;
    let begin = Instant::now();
    let status = loop {
        match child.try_wait().map_err(|e| format!("{program}: {e}"))? {
            Some(status) => break status,
            None if begin.elapsed() > longest => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("{program} did not end within {} s", longest.as_secs_f64()));
            }
            None => std::thread::sleep(LOOK),
        }
    };
    if !status.success() {
        return Err(format!("{program}: {status}"));
    }
    let mut text = String::new();
    let stdout = child.stdout.take().ok_or("no output")?;
    stdout.take(LONGEST).read_to_string(&mut text).map_err(|e| format!("{program}: {e}"))?;
    Ok(text)
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

    #[test]
    fn a_command_that_fails_or_hangs_is_told() {
        let sh = |line: &str| ["sh", "-c", line].map(str::to_owned);
        let short = Duration::from_millis(300);
        assert_eq!(run(&sh("echo 3Mbit/s"), Duration::from_secs(20)).unwrap(), "3Mbit/s\n");
        assert!(run(&sh("exit 3"), Duration::from_secs(20)).unwrap_err().contains('3'));
        assert!(run(&sh("exec sleep 20"), short).unwrap_err().contains("did not end within 0.3 s"));
        assert!(run(&["/nowhere/at/all".to_owned()], short).unwrap_err().contains("/nowhere/at/all"));
    }
}
