//! Whether the gateway before this one is there: a standby serves only while it is not.
//!
//! ```text
//! every 250 ms   a long header of QUIC with a version that nobody has, and connection ids by chance
//! answer         a Version Negotiation packet with the same ids (RFC 9000, section 6), which needs no session
//! silent 1 s     the other one is gone: this one serves
//! answers 1 s    it is back: this one sends its nodes there
//! ```
//!
//! Only who sees the question can answer it.

use penstock_core::units::{Instant, Span};
use penstock_linux::udp::Socket;
use std::io;
use std::net::SocketAddr;

/// How often the other gateway is asked.
const EVERY: Span = Span::from_millis(250);
/// For how long it must be silent, or answer, before that counts.
const SURE: Span = Span::from_secs(1);
/// A version of the form that is reserved to provoke an answer (RFC 9000, section 15).
const VERSION: [u8; 4] = [0x1a, 0x2a, 0x3a, 0x4a];
/// A server answers to no shorter datagram (RFC 9000, section 14.1).
const LENGTH: usize = 1200;
/// Bytes of each connection id.
const IDS: usize = 8;
/// Where the ids begin in question and answer: after the first byte, the version and a length.
const FIRST: usize = 6;

/// What is known of the other gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Watch {
    ids: [u8; 2 * IDS],
    /// When it answered last; the beginning, before that.
    heard: Instant,
    /// When it was silent last for as long as three questions.
    gap: Instant,
    next: Instant,
    there: bool,
}

impl Watch {
    /// Begins to watch. The other gateway counts as there until it is silent.
    pub fn new(ids: [u8; 2 * IDS], now: Instant) -> Self {
        Self { ids, heard: now, gap: now, next: now, there: true }
    }

    /// The next question, if it is due.
    pub fn ask(&mut self, now: Instant) -> Option<Vec<u8>> {
        if now < self.next {
            return None;
        }
        self.next = now + EVERY;
        let mut question = vec![0; LENGTH];
        question[0] = 0xc0;
        question[1..5].copy_from_slice(&VERSION);
        for (at, id) in self.ids.chunks_exact(IDS).enumerate() {
            let from = FIRST + at * (IDS + 1);
            question[from - 1] = IDS as u8;
            question[from..from + IDS].copy_from_slice(id);
        }
        Some(question)
    }

    /// Takes what has come from the address of the other gateway.
    pub fn receive(&mut self, answer: &[u8], now: Instant) {
        let (ours, theirs) = self.ids.split_at(IDS);
        let id = |at: usize| answer.get(FIRST + at * (IDS + 1)..FIRST + at * (IDS + 1) + IDS);
        let negotiates = answer.first().is_some_and(|byte| byte & 0x80 != 0) && answer.get(1..5) == Some(&[0; 4]);
        // The answer has the ids the other way round.
        if negotiates && id(0) == Some(theirs) && id(1) == Some(ours) {
            if now > self.heard + EVERY * 3 {
                self.gap = now;
            }
            self.heard = now;
        }
    }

    /// True if the other gateway is there.
    pub fn is_there(&mut self, now: Instant) -> bool {
        if self.there {
            self.there = now < self.heard + SURE;
        } else {
            self.there = now < self.heard + EVERY * 3 && now >= self.gap + SURE;
        }
        self.there
    }

    /// When the next question is due.
    pub fn next_timeout(&self) -> Instant {
        self.next
    }
}

/// A watch with its socket.
#[derive(Debug)]
pub struct Watcher {
    watch: Watch,
    socket: Socket,
}

impl Watcher {
    /// Begins to watch the gateway at an address.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn open(of: SocketAddr, now: Instant) -> io::Result<Self> {
        let socket = Socket::connect(of)?;
        let mut ids = [0; 2 * IDS];
        getrandom::fill(&mut ids).map_err(io::Error::other)?;
        Ok(Self { watch: Watch::new(ids, now), socket })
    }

    /// Asks and listens; returns true if the other gateway is there.
    pub fn turn(&mut self, now: Instant) -> bool {
        // Nobody at that port is silence as well.
        while let Some(datagram) = self.socket.receive() {
            self.watch.receive(datagram, now);
        }
        self.watch.ask(now).iter().for_each(|question| self.socket.send(question));
        self.watch.is_there(now)
    }

    /// When [`Watcher::turn`] is to be called next, if nothing arrives.
    pub fn next_timeout(&self) -> Instant {
        self.watch.next_timeout()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS_OF_TEST: [u8; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::from_millis(ms)
    }

    /// RFC 9000, section 17.2.1, by hand: the ids of the question the other way round, and a version.
    fn answer() -> Vec<u8> {
        let mut answer = vec![0x80, 0, 0, 0, 0, 8];
        answer.extend_from_slice(&IDS_OF_TEST[8..]);
        answer.push(8);
        answer.extend_from_slice(&IDS_OF_TEST[..8]);
        answer.extend_from_slice(&[0, 0, 0, 1]);
        answer
    }

    #[test]
    fn a_gateway_is_gone_after_a_second_of_silence_and_back_after_a_second_of_answers() {
        let mut watch = Watch::new(IDS_OF_TEST, at(0));
        let mut seen = Vec::new();
        for ms in (0..10_000).step_by(250) {
            assert_eq!(watch.ask(at(ms)).unwrap()[..6], [0xc0, 0x1a, 0x2a, 0x3a, 0x4a, 8]);
            assert_eq!(watch.ask(at(ms + 249)), None);
            if !(3_000..6_000).contains(&ms) {
                watch.receive(&answer(), at(ms + 10));
            }
            let there = watch.is_there(at(ms + 20));
            if seen.last().is_none_or(|(_, last)| *last != there) {
                seen.push((ms, there));
            }
        }
        // The last answer before the pause is that of 2750 ms, the first one after it that of 6000.
        assert_eq!(seen, [(0, true), (3_750, false), (7_000, true)]);
    }

    #[test]
    fn nobody_answers_who_has_not_seen_the_question() {
        let mut watch = Watch::new(IDS_OF_TEST, at(0));
        for wrong in 0..answer().len() - 4 {
            let mut changed = answer();
            // The length of an id is not looked at: an answer with another one has other bytes after it.
            changed[wrong] ^= if wrong == 5 || wrong == 14 { 0 } else { 0x80 };
            if changed != answer() {
                watch.receive(&changed, at(900));
            }
            watch.receive(&answer()[..wrong], at(900));
        }
        assert!(!watch.is_there(at(1_000)));
    }

    /// A real gateway's endpoint answers.
    #[test]
    fn an_endpoint_of_quic_answers_the_question() {
        let name = format!("penstock-standby-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let roster = crate::roster::Roster::open(&path).unwrap();
        let settings = crate::gateway::Settings::new(penstock_core::units::Rate::from_bps(1_000_000));
        let mut role = crate::gateway::Role::new(&settings, roster, at(0)).unwrap();
        let mut watch = Watch::new(IDS_OF_TEST, at(0));
        role.receive("127.0.0.1:9".parse().unwrap(), &watch.ask(at(900)).unwrap(), at(900));
        let (_, answer) = role.transmit().unwrap();
        watch.receive(&answer, at(900));
        assert!(watch.is_there(at(1_500)) && !watch.clone().is_there(at(1_900)));
        std::fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn a_gateway_is_gone_when_just_a_second_has_passed_since_its_answer() {
        let mut watch = Watch::new(IDS_OF_TEST, at(0));
        watch.receive(&answer(), at(700));
        assert!(watch.is_there(at(1_699)) && !watch.clone().is_there(at(1_700)));
        assert_eq!(watch.next_timeout(), at(0));
        watch.ask(at(1_699)).unwrap();
        assert_eq!(watch.next_timeout(), at(1_699 + 250));
    }

    /// A pause of three questions is none yet; a longer one begins the second of answers anew.
    #[test]
    fn a_gateway_that_answers_with_pauses_is_not_back() {
        let mut watch = Watch::new(IDS_OF_TEST, at(0));
        assert!(!watch.is_there(at(1_000)));
        watch.receive(&answer(), at(2_000));
        watch.receive(&answer(), at(2_750));
        assert!(!watch.clone().is_there(at(2_999)) && watch.clone().is_there(at(3_000)));
        assert!(!watch.clone().is_there(at(3_500)), "silent for three questions");
        watch.receive(&answer(), at(3_501));
        assert!(!watch.is_there(at(4_200)));
        watch.receive(&answer(), at(4_201));
        assert!(!watch.clone().is_there(at(4_500)) && watch.is_there(at(4_501)));
    }
}
