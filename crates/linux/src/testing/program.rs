//! Programs under test.

use super::{PATIENCE, wait_until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

/// A program that ends with the test. What it says on its standard error is read while it runs, its standard output is not.
#[derive(Debug)]
pub struct Program {
    child: Child,
    /// Its standard output, of which nothing was read.
    pub stdout: Option<ChildStdout>,
    said: Arc<Mutex<String>>,
    listener: JoinHandle<()>,
}

/// What a program has left.
#[derive(Debug)]
pub struct Ended {
    /// The code with which it ended; `None` if a signal has ended it.
    pub code: Option<i32>,
    /// All that nobody had read of its standard output.
    pub stdout: String,
    /// All that it said on its standard error.
    pub stderr: String,
}

impl Program {
    /// Starts a program.
    pub fn start(mut command: Command) -> Self {
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.unwrap_or_else(|why| panic!("{command:?}: {why}"));
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take().unwrap());
        let said = Arc::new(Mutex::new(String::new()));
        let heard = Arc::clone(&said);
        let listener = std::thread::spawn(move || {
            let (mut lines, mut line) = (BufReader::new(stderr), Vec::new());
            while lines.read_until(b'\n', &mut line).is_ok_and(|len| len > 0) {
                heard.lock().unwrap().push_str(&String::from_utf8_lossy(&line));
                line.clear();
            }
        });
        Self { child, stdout, said, listener }
    }

    /// Starts a program, and waits until it says one of these words.
    pub fn ready(command: Command, words: &[&str]) -> Self {
        let program = Self::start(command);
        program.until(words);
        program
    }

    /// Waits until it says a line with one of these words, or has said one; returns the line.
    pub fn until(&self, words: &[&str]) -> String {
        let mut found = None;
        wait_until(&format!("{words:?}"), || {
            let over = self.listener.is_finished();
            found = self.said().lines().find(|line| words.iter().any(|word| line.contains(word))).map(str::to_owned);
            assert!(found.is_some() || !over, "{words:?} was never said, but: {}", self.said());
            found.is_some()
        });
        found.unwrap()
    }

    /// All that it has said on its standard error.
    pub fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// The number of its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id() as i32), signal).unwrap();
    }

    /// Waits for the end, and reads its output meanwhile.
    pub fn ended(mut self) -> Ended {
        let reader = self.stdout.take().map(|pipe| std::thread::spawn(|| text(pipe)));
        let status = self.wait();
        let stdout = reader.map(|reader| reader.join().unwrap()).unwrap_or_default();
        Ended { code: status.code(), stdout, stderr: self.heard() }
    }

    /// Ends it as people do.
    pub fn end(self) -> Ended {
        self.signal(Signal::SIGTERM);
        self.ended()
    }

    fn wait(&mut self) -> ExitStatus {
        let begin = Instant::now();
        loop {
            match self.child.try_wait().unwrap() {
                Some(status) => return status,
                None => assert!(begin.elapsed() < PATIENCE, "it does not end: {}", self.said()),
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
    }

    /// What it has said, when all of that has come. Others that have its standard error may go on.
    fn heard(&self) -> String {
        let begin = Instant::now();
        while !self.listener.is_finished() && begin.elapsed().as_secs() < 2 {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        self.said()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn text(mut pipe: impl Read) -> String {
    let mut bytes = Vec::new();
    pipe.read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}
