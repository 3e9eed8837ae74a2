//! The main of a program that hosts a stack in Rust: the other side of [`frames`](crate::frames).

use crate::frames::{Frame, FrameError, Kind, NEVER, VERSION};
use penstock_core::packet::Ecn;
use penstock_core::stack::{Figures, Setup, Side, Stack};
use penstock_core::units::Instant;
use std::collections::HashMap;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::process::ExitCode;

/// Makes one end of a connection.
pub type Served<'a> = &'a mut dyn FnMut(Side, &Setup) -> Box<dyn Stack>;

/// The main of a program that hosts a stack: it answers the simulator on standard input and output until that is over.
/// `version` is what the stack calls itself.
///
/// Returns 0, or 1 after an error of a pipe, which is printed.
pub fn serve(version: &str, make: Served<'_>) -> ExitCode {
    let (from, to) = (BufReader::new(io::stdin().lock()), BufWriter::new(io::stdout().lock()));
    match answer_all(version, make, from, to) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: the simulator cannot be answered: {error}");
            ExitCode::FAILURE
        }
    }
}

/// One end, and what its application has still to send.
struct Hosted {
    stack: Box<dyn Stack>,
    left: u64,
    finishes: bool,
    told: Option<Figures>,
    ended: bool,
}

fn answer_all(version: &str, make: Served<'_>, mut from: impl Read, mut to: impl Write) -> Result<(), FrameError> {
    let mut hosted: HashMap<(u32, u8), Hosted> = HashMap::new();
    loop {
        let request = match Frame::read(&mut from) {
            Err(FrameError::Over) => return Ok(()),
            other => other?,
        };
        let (who, now) = ((request.connection, request.side), Instant::from_nanos(request.value));
        match request.kind {
            Kind::Hello => {
                let hello = Frame::new(Kind::Hello, who, VERSION);
                Frame { body: version.as_bytes().to_vec(), ..hello }.write(&mut to)?;
                Frame::new(Kind::Done, who, NEVER).write(&mut to)?;
            }
            Kind::Forget => drop(hosted.remove(&who)),
            _ => {
                let end = hosted.entry(who).or_insert_with(|| {
                    let side = if request.side == 0 { Side::Client } else { Side::Server };
                    let seed = request.body.as_slice().try_into().unwrap_or_default();
                    let stack = make(side, &Setup { number: request.connection, seed });
                    Hosted { stack, left: 0, finishes: false, told: None, ended: false }
                });
                end.hear(&request, now);
                end.answer(who, now, &mut to)?;
            }
        }
        to.flush()?;
    }
}

impl Hosted {
    fn hear(&mut self, request: &Frame, now: Instant) {
        match request.kind {
            Kind::Receive => self.stack.receive(&request.body, Ecn::from_bits(request.ecn), now),
            Kind::Wake => self.stack.wake(now),
            Kind::Write => {
                let bytes = request.body.as_slice().try_into().map_or(0, u64::from_le_bytes);
                self.left = self.left.saturating_add(bytes);
            }
            Kind::Finish => self.finishes = true,
            Kind::Close => self.stack.close(now),
            _ => {}
        }
    }

    fn answer(&mut self, who: (u32, u8), now: Instant, to: &mut impl Write) -> io::Result<()> {
        if self.left > 0 {
            self.left -= self.stack.write(self.left, now).min(self.left);
        }
        if self.finishes && self.left == 0 {
            self.finishes = false;
            self.stack.finish(now);
        }
        let read = self.stack.read(now);
        if read > 0 {
            Frame::new(Kind::Read, who, read).write(to)?;
        }
        let mut datagram = Vec::new();
        while let Some(ecn) = self.stack.transmit(&mut datagram, now) {
            let send = Frame::new(Kind::Send, who, 0);
            Frame { ecn: ecn as u8, body: std::mem::take(&mut datagram), ..send }.write(to)?;
        }
        self.tell(who, to)?;
        let deadline = self.stack.deadline().map_or(NEVER, Instant::as_nanos);
        Frame::new(Kind::Done, who, deadline).write(to)
    }

    /// Tells what is new of the connection.
    fn tell(&mut self, who: (u32, u8), to: &mut impl Write) -> io::Result<()> {
        let figures = self.stack.figures();
        if self.told != Some(figures) {
            self.told = Some(figures);
            let round_trip = figures.round_trip.map_or(0, |span| span.as_nanos());
            let mut body = vec![u8::from(figures.connected)];
            body.extend_from_slice(&round_trip.to_le_bytes());
            body.extend_from_slice(&figures.lost.to_le_bytes());
            Frame { body, ..Frame::new(Kind::Tell, who, figures.window) }.write(to)?;
        }
        let sentence = |kind, text: &str| Frame { body: text.as_bytes().to_vec(), ..Frame::new(kind, who, 0) };
        if let Some(reason) = self.stack.ended().filter(|_| !self.ended) {
            self.ended = true;
            sentence(Kind::Ended, reason).write(to)?;
        }
        self.stack.failure().map_or(Ok(()), |reason| sentence(Kind::Fail, reason).write(to))
    }
}
