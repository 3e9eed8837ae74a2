//! Stacks in the same program that break the rules: each run ends with a sentence, soon.

use crate::quinn::{LINK, flows, scenario_with};
use penstock_core::foreign::Own;
use penstock_core::packet::Ecn;
use penstock_core::stack::{Figures, MakeStack, Setup, Side, Stack};
use penstock_core::units::{Instant, Span};
use penstock_sim::Simulation;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Way {
    /// It wants to be woken at a time that has passed.
    Past,
    /// It wants to be woken a nanosecond later, always.
    Soon,
    /// It has always one more datagram.
    Endless,
    /// A datagram has this many bytes.
    Datagram(usize),
    /// Its server reads what nobody wrote.
    Reads,
    /// It cannot be made.
    Unmade,
}

#[derive(Debug)]
struct Bad(Way, Side, Instant);

impl Stack for Bad {
    fn receive(&mut self, _: &[u8], _: Ecn, now: Instant) {
        self.2 = now;
    }
    fn transmit(&mut self, datagram: &mut Vec<u8>, now: Instant) -> Option<Ecn> {
        let begins = self.1 == Side::Client && now == Instant::ZERO && self.2 == Instant::ZERO;
        let (sends, size) = match self.0 {
            Way::Endless => (true, 100),
            Way::Datagram(size) => (true, size),
            _ => (begins, 100),
        };
        self.2 = self.2.max(Instant::from_nanos(1));
        datagram.resize(if sends { size } else { 0 }, 7);
        sends.then_some(Ecn::NotEct)
    }
    fn deadline(&mut self) -> Option<Instant> {
        match self.0 {
            Way::Past => Some(Instant::ZERO),
            Way::Soon => Some(self.2 + Span::from_nanos(1)),
            _ => None,
        }
    }
    fn wake(&mut self, now: Instant) {
        self.2 = now;
    }
    fn write(&mut self, bytes: u64, _: Instant) -> u64 {
        bytes.min(10)
    }
    fn finish(&mut self, _: Instant) {}
    fn read(&mut self, _: Instant) -> u64 {
        if self.0 == Way::Reads { u64::MAX } else { 0 }
    }
    fn close(&mut self, _: Instant) {}
    fn figures(&self) -> Figures {
        Figures::default()
    }
}

#[derive(Debug)]
struct Make(Way);

impl MakeStack for Make {
    fn make(&self, _: &Setup) -> Result<[Box<dyn Stack>; 2], String> {
        let end = |side| Box::new(Bad(self.0, side, Instant::ZERO)) as Box<dyn Stack>;
        if self.0 == Way::Unmade { Err("no keys".into()) } else { Ok([end(Side::Client), end(Side::Server)]) }
    }
    fn version(&self) -> String {
        "bad".into()
    }
}

#[test]
fn a_stack_that_breaks_the_rules_ends_its_run() {
    for (way, told) in [
        (Way::Past, "10000 times to be woken within a millisecond"),
        (Way::Soon, "10000 times to be woken within a millisecond"),
        (Way::Endless, "sent 100000 datagrams at one time"),
        (Way::Datagram(0), "a datagram of 0 bytes"),
        (Way::Datagram(65_001), "a datagram of 65001 bytes"),
        (Way::Reads, "its server read 18446744073709551615 bytes, and its client wrote 10"),
        (Way::Unmade, "no keys"),
    ] {
        for start in ["0s", "1s"] {
            let flow = flows(&["bad"]) + &format!("start = \"{start}\"\n");
            let library = Own::new().with_stack("bad", Make(way));
            let mut run = Simulation::new(&scenario_with(&library, "duration = \"3s\"", LINK, &flow));
            let error = run.advance(Span::MAX).unwrap_err().to_string();
            assert!(error.starts_with("flow 0: bad: ") && error.contains(told), "{way:?} at {start}: {error}");
        }
    }
}
