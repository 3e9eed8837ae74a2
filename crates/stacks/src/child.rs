//! A stack that is a program of its own: it runs beside the simulation, in virtual time, and speaks the protocol of
//! [`frames`](crate::frames) on its standard input and output. One process has all connections of a run.

use crate::frames::{Frame, FrameError, Kind, NEVER, VERSION};
use penstock_core::packet::Ecn;
use penstock_core::stack::{Figures, MakeStack, Setup, Side, Stack};
use penstock_core::units::{Instant, Span};
use std::collections::VecDeque;
use std::io::{BufReader, BufWriter, Write};
use std::process::{Child as Os, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How long a program may take for an answer, in real time.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// The most frames that a program may answer to one request, and the most bytes in them.
const MOST_ANSWERS: usize = 1 << 17;
const MOST_BYTES: usize = 1 << 28;
/// The longest sentence of a program that is shown, in characters.
const LONGEST_SENTENCE: usize = 200;

/// Connections of a program.
#[derive(Debug)]
pub struct Child {
    /// The program and its arguments.
    command: Vec<String>,
    patience: Duration,
    /// The program once it was started, or why it could not be: it is tried once.
    process: Mutex<Option<Result<Arc<Mutex<Process>>, String>>>,
}

impl Child {
    /// Uses a program, which is started when the first connection is made. `command` has the program and its arguments.
    pub fn new(command: Vec<String>) -> Self {
        Self { command, patience: PATIENCE, process: Mutex::new(None) }
    }

    /// Waits for answers this long, in real time.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    fn process(&self) -> Result<Arc<Mutex<Process>>, String> {
        let mut process = self.process.lock().unwrap_or_else(PoisonError::into_inner);
        let start = || Process::start(&self.command, self.patience).map(|started| Arc::new(Mutex::new(started)));
        process.get_or_insert_with(start).clone()
    }
}

impl MakeStack for Child {
    fn make(&self, setup: &Setup) -> Result<[Box<dyn Stack>; 2], String> {
        let process = self.process()?;
        let end = |side| Box::new(End::new(&process, side, setup)) as Box<dyn Stack>;
        Ok([end(Side::Client), end(Side::Server)])
    }
    fn version(&self) -> String {
        self.process().map(|process| lock(&process).version.clone()).unwrap_or_default()
    }
}

fn lock(process: &Mutex<Process>) -> MutexGuard<'_, Process> {
    process.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A program that runs.
#[derive(Debug)]
struct Process {
    program: String,
    version: String,
    patience: Duration,
    os: Os,
    requests: Option<Sender<Frame>>,
    answers: Receiver<Result<Vec<Frame>, FrameError>>,
    /// Why it cannot be asked any more.
    broken: Option<String>,
}

impl Process {
    fn start(command: &[String], patience: Duration) -> Result<Self, String> {
        let (program, arguments) = command.split_first().ok_or("the command of a stack is empty")?;
        let mut os = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{program} cannot be started: {error}"))?;
        let (sender, answers) = sync_channel(1);
        let output = os.stdout.take().ok_or("its output cannot be read")?;
        std::thread::spawn(move || listen(output, &sender));
        let input = os.stdin.take().ok_or("its input cannot be written")?;
        let (requests, to_write) = channel();
        std::thread::spawn(move || speak(input, &to_write));
        let requests = Some(requests);
        let mut process =
            Self { program: program.clone(), version: String::new(), patience, os, requests, answers, broken: None };
        process.greet()?;
        Ok(process)
    }

    fn greet(&mut self) -> Result<(), String> {
        let answers = self.ask(&Frame::new(Kind::Hello, (0, 0), VERSION))?;
        let hello = answers.iter().find(|frame| frame.kind == Kind::Hello);
        let hello = hello.ok_or_else(|| format!("{} does not say Hello", self.program))?;
        if hello.value != VERSION {
            return Err(format!("{} speaks version {} of the protocol, not {VERSION}", self.program, hello.value));
        }
        self.version = sentence(&hello.body).unwrap_or_else(|| self.program.clone());
        Ok(())
    }

    /// Sends a request; returns the answers, the last of which is `Done`.
    fn ask(&mut self, request: &Frame) -> Result<Vec<Frame>, String> {
        if let Some(reason) = &self.broken {
            return Err(reason.clone());
        }
        let unasked = match self.answers.try_recv() {
            Ok(Ok(_)) => Err(format!("{} answers without a request", self.program)),
            Ok(Err(error)) => Err(self.fate(&error.to_string())),
            Err(_) => Ok(()),
        };
        let told = unasked.and_then(|()| self.tell(request));
        let answered = told.and_then(|()| match self.answers.recv_timeout(self.patience) {
            Ok(Ok(answers)) => Ok(answers),
            Ok(Err(error)) => Err(self.fate(&error.to_string())),
            Err(RecvTimeoutError::Timeout) => {
                let _ = self.os.kill();
                let seconds = self.patience.as_secs_f64();
                Err(format!("{} did not answer `{:?}` within {seconds} s and was ended", self.program, request.kind))
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.fate("it closed its output")),
        });
        self.broken = answered.as_ref().err().cloned();
        answered
    }

    fn tell(&mut self, request: &Frame) -> Result<(), String> {
        let told = self.requests.as_ref().is_some_and(|requests| requests.send(request.clone()).is_ok());
        if told { Ok(()) } else { Err(self.fate("it closed its input")) }
    }

    /// Says what became of the program of which `what` was noticed.
    fn fate(&mut self, what: &str) -> String {
        // A program that ends is given a moment to be gone, so that its status can be said.
        for _ in 0..20 {
            if let Ok(Some(status)) = self.os.try_wait() {
                return format!("{} has ended with {status}", self.program);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        format!("{}: {what}", self.program)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.requests = None; // a program that reads to the end of its input ends by itself
        let _ = self.os.kill();
        let _ = self.os.wait();
    }
}

/// Writes requests to a program. A program that does not read stops this thread and not the run.
fn speak(input: ChildStdin, requests: &Receiver<Frame>) {
    let mut input = BufWriter::new(input);
    while let Ok(request) = requests.recv() {
        if request.write(&mut input).and_then(|()| input.flush()).is_err() {
            return;
        }
    }
}

/// Returns a text of a program as a part of a sentence: one line of at most [`LONGEST_SENTENCE`] characters; `None` if it is
/// empty.
fn sentence(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let words = text.trim().chars().map(|one| if one.is_control() { ' ' } else { one }).take(LONGEST_SENTENCE);
    let words: String = words.collect();
    Some(words).filter(|words| !words.is_empty())
}

/// Reads the answers of a program, those to one request together.
fn listen(output: ChildStdout, to: &SyncSender<Result<Vec<Frame>, FrameError>>) {
    let mut output = BufReader::new(output);
    let (mut answers, mut bytes) = (Vec::new(), 0);
    loop {
        match Frame::read(&mut output) {
            Ok(frame) => {
                bytes += frame.body.len();
                answers.push(frame);
            }
            Err(error) => return drop(to.send(Err(error))),
        }
        if answers.last().is_some_and(|last| last.kind == Kind::Done) {
            bytes = 0;
            if to.send(Ok(std::mem::take(&mut answers))).is_err() {
                return;
            }
        } else if answers.len() > MOST_ANSWERS || bytes > MOST_BYTES {
            return drop(to.send(Err(FrameError::Endless(answers.len()))));
        }
    }
}

/// One end of a connection.
#[derive(Debug)]
struct End {
    process: Arc<Mutex<Process>>,
    who: (u32, u8),
    seed: Vec<u8>,
    open: bool,
    ready: VecDeque<(Vec<u8>, u8)>,
    read: u64,
    deadline: Option<Instant>,
    figures: Figures,
    ended: Option<String>,
    failure: Option<String>,
}

impl End {
    fn new(process: &Arc<Mutex<Process>>, side: Side, setup: &Setup) -> Self {
        Self {
            process: process.clone(),
            who: (setup.number, side as u8),
            seed: setup.seed.to_vec(),
            open: false,
            ready: VecDeque::new(),
            read: 0,
            deadline: None,
            figures: Figures::default(),
            ended: None,
            failure: None,
        }
    }

    fn ask(&mut self, kind: Kind, now: Instant, body: &[u8], ecn: u8) {
        if !self.open {
            self.open = true;
            let seed = std::mem::take(&mut self.seed);
            self.exchange(&Frame { body: seed, ..Frame::new(Kind::Open, self.who, now.as_nanos()) }, now);
        }
        if kind != Kind::Open {
            self.exchange(&Frame { body: body.to_vec(), ecn, ..Frame::new(kind, self.who, now.as_nanos()) }, now);
        }
    }

    fn exchange(&mut self, request: &Frame, now: Instant) {
        if self.failure.is_some() {
            return;
        }
        let answers = lock(&self.process).ask(request);
        match answers {
            Ok(answers) => answers.into_iter().for_each(|answer| self.take(answer, now)),
            Err(reason) => self.failure = Some(reason),
        }
    }

    fn take(&mut self, answer: Frame, now: Instant) {
        let text = || sentence(&answer.body).unwrap_or_else(|| "it gives no reason".into());
        if (answer.connection, answer.side) != self.who {
            let named = |(number, side): (u32, u8)| format!("end {side} of connection {number}");
            let (given, own) = (named((answer.connection, answer.side)), named(self.who));
            self.failure = Some(format!("it answered for {given} in place of {own}"));
            return;
        }
        match answer.kind {
            Kind::Send => self.ready.push_back((answer.body, answer.ecn)),
            Kind::Read => self.read = self.read.saturating_add(answer.value),
            Kind::Tell => match told(&answer) {
                Some(figures) if figures.round_trip.is_some_and(|rtt| rtt > now.since(Instant::ZERO)) => {
                    self.failure = Some("it tells of a round trip that is longer than the run".into());
                }
                Some(figures) => self.figures = figures,
                None => self.failure = Some(format!("the body of Tell has 17 bytes, not {}", answer.body.len())),
            },
            Kind::Ended => self.ended = Some(text()),
            Kind::Fail => self.failure = Some(text()),
            Kind::Done => self.deadline = (answer.value != NEVER).then(|| Instant::from_nanos(answer.value).max(now)),
            other => self.failure = Some(format!("it answered with {other:?}, which is a request")),
        }
    }
}

fn told(answer: &Frame) -> Option<Figures> {
    let body: &[u8; 17] = answer.body.as_slice().try_into().ok()?;
    let number = |at: usize| body[at..at + 8].iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    let round_trip = Some(Span::from_nanos(number(1))).filter(|span| *span > Span::ZERO);
    Some(Figures { connected: body[0] == 1, window: answer.value, round_trip, lost: number(9) })
}

impl Stack for End {
    fn receive(&mut self, datagram: &[u8], ecn: Ecn, now: Instant) {
        self.ask(Kind::Receive, now, datagram, ecn as u8);
    }

    fn transmit(&mut self, datagram: &mut Vec<u8>, now: Instant) -> Option<Ecn> {
        if !self.open {
            self.ask(Kind::Open, now, &[], 0);
        }
        let (bytes, ecn) = self.ready.pop_front()?;
        datagram.extend_from_slice(&bytes);
        Some(Ecn::from_bits(ecn))
    }

    fn deadline(&mut self) -> Option<Instant> {
        self.deadline
    }

    fn wake(&mut self, now: Instant) {
        self.ask(Kind::Wake, now, &[], 0);
    }

    fn write(&mut self, bytes: u64, now: Instant) -> u64 {
        if bytes > 0 {
            self.ask(Kind::Write, now, &bytes.to_le_bytes(), 0);
        }
        bytes
    }

    fn finish(&mut self, now: Instant) {
        self.ask(Kind::Finish, now, &[], 0);
    }

    fn read(&mut self, _: Instant) -> u64 {
        std::mem::take(&mut self.read)
    }

    fn close(&mut self, now: Instant) {
        self.ask(Kind::Close, now, &[], 0);
    }

    fn figures(&self) -> Figures {
        self.figures
    }

    fn ended(&self) -> Option<&str> {
        self.ended.as_deref()
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + self.ready.iter().map(|(bytes, _)| bytes.capacity()).sum::<usize>()
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if self.open && self.failure.is_none() {
            let mut process = lock(&self.process);
            // A program that is gone needs to forget nothing.
            let _ = process.tell(&Frame::new(Kind::Forget, self.who, 0));
        }
    }
}
