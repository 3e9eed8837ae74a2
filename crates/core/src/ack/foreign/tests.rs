use super::*;
use crate::units::{Limit, Rate};

/// Sets every inbound window to a value, and notes what it sees.
#[derive(Debug, Clone, Default)]
struct Sets {
    to: u16,
    shifts: Vec<Option<u8>>,
    waiting: u64,
    faults: Vec<String>,
}

impl ForeignElement for Sets {
    fn outbound(&mut self, _: &mut Segment, _: Instant) {}
    fn inbound(&mut self, segment: &mut Segment, _: Instant) {
        self.shifts.push(segment.shift());
        self.waiting = segment.backlog().packets;
        segment.set_window(self.to);
    }
    fn copy(&self) -> Box<dyn ForeignElement> {
        Box::new(self.clone())
    }
    fn broke(&mut self, fault: &Fault) {
        self.faults.push(fault.to_string());
    }
}

impl MakeElement for Sets {
    fn make(&self, _: &LinkFacts) -> Box<dyn ForeignElement> {
        self.copy()
    }
}

fn element(to: u16) -> AnyForeignElement {
    let config = Config::new("mine", Map::new(), Arc::new(Sets { to, ..Sets::default() }));
    config.element(&LinkFacts { rate: Rate::from_bps(1_000_000), limit: Limit::Packets(10) })
}

fn ack(window: u16) -> PlainSegment {
    PlainSegment { seq: 1, ack: 77, window, ..PlainSegment::new(FlowId(1), TcpFlags::ACK) }
}

/// The window with which a segment goes on.
fn after(to: u16, window: u16) -> (u16, String) {
    let (mut element, mut segment) = (element(to), ack(window));
    element.inbound(&mut segment, Instant::ZERO);
    (segment.window, element.state())
}

#[test]
fn a_window_is_lowered_never_raised_and_never_zeroed() {
    assert_eq!(after(10, 50).0, 10);
    assert!(after(10, 50).1.contains("faults: []"));
    let (window, state) = after(51, 50);
    assert_eq!(window, 50);
    assert!(state.contains("inbound of mine set the window of flow 1 at ACK 77 to 51, and it came with 50"), "{state}");
    assert!(state.contains("never raised"));
    let (window, state) = after(0, 50);
    assert!(window == 50 && state.contains("never zeroed"), "{state}");
    assert_eq!(after(0, 0).0, 0, "a window that came with zero");
    assert!(after(0, 0).1.contains("faults: []"));
}

#[test]
fn the_shift_is_known_once_both_syns_were_seen_and_both_had_the_option() {
    let syn = |flow, window_scale| PlainSegment { window_scale, ..PlainSegment::new(FlowId(flow), TcpFlags::SYN) };
    let mut element = element(5);
    // Flow 1: both SYNs with the option; 2: one without; 3: one was not seen.
    element.outbound(&mut syn(1, Some(3)), Instant::ZERO);
    element.inbound(&mut syn(1, Some(7)), Instant::ZERO);
    element.outbound(&mut syn(2, None), Instant::ZERO);
    element.inbound(&mut syn(2, Some(7)), Instant::ZERO);
    element.inbound(&mut syn(3, Some(7)), Instant::ZERO);
    for flow in 1..5 {
        element.inbound(&mut PlainSegment { flow: FlowId(flow), ..ack(100) }, Instant::ZERO);
    }
    let state = element.state();
    assert!(state.contains("shifts: [Some(0), Some(0), Some(0), Some(7), Some(0), None, None]"), "{state}");
}

#[test]
fn the_element_sees_the_backlog_that_was_noted() {
    let mut element = element(5);
    element.note_backlog(Backlog { packets: 4, bytes: 4000 });
    let mut copy = element.clone();
    copy.inbound(&mut ack(9), Instant::ZERO);
    assert!(copy.state().contains("waiting: 4") && element.state().contains("waiting: 0"));
}
