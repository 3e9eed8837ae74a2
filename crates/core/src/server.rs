//! A discipline, the transmitter that it stands before, and the decision when it is asked for the next packet. Replay and the
//! bottlenecks of real packets have it in common.
//!
//! The caller passes the time. It calls [`Server::step`] until nothing is left to do, and then passes the packet that arrives.
//! So events of the same time have this order: timers, which see the queue as it was before that time, and changes of
//! channels; the end of a transmission, which makes room in the queue; arrivals.
//!
//! A transmission begins when the previous one has ended, not when the caller finds time to call. A packet that the link loses
//! takes its time. A discipline is woken once for each time, also if it does not note that it was. One that is replaced keeps
//! its packets, and they leave first.
//!
//! Cost: O(1) for each event beside that of the discipline, without allocation.

use crate::csi::{Channel, Loss, Stations};
use crate::fact::Fact;
use crate::link_layer::LinkLayer;
use crate::packet::Packet;
use crate::qdisc::{Backlog, PacketObserver, Qdisc, Stats};
use crate::rng::Rng;
use crate::succession::Succession;
use crate::units::{Instant, Rate, Serializer, Span};

/// Is told what becomes of each packet.
pub trait Observer<P>: PacketObserver<P> {
    /// Called when the transmission of `packet` begins, which ends at `end`. Behind the link it arrives unless it is `lost`.
    fn sent(&mut self, packet: P, lost: bool, end: Instant, now: Instant);
}

/// A discipline is told an estimated rate that differs by more than this part from the last that it was told.
const TOLD: f64 = 0.05;

/// A discipline and a transmitter.
#[derive(Debug)]
pub struct Server<P, Q> {
    queues: Succession<P, Q>,
    rng: Rng,
    wire: Serializer,
    /// The rate of which the discipline was told.
    told: Rate,
    layer: LinkLayer,
    /// What the link loses, and the stations behind it; `None` if it loses nothing.
    pub loss: Option<Loss>,
    /// True while a packet is transmitted, which is until `busy_until`.
    transmitting: bool,
    busy_until: Instant,
    busy: Span,
}

impl<P: Packet, Q: Qdisc<P>> Server<P, Q> {
    /// Creates an idle server. `rng` has the random numbers of the discipline.
    pub fn new(qdisc: Q, rate: Rate, rng: Rng) -> Self {
        Self {
            queues: Succession::new(qdisc),
            rng,
            wire: Serializer::new(rate),
            told: rate,
            layer: LinkLayer::default(),
            loss: None,
            transmitting: false,
            busy_until: Instant::ZERO,
            busy: Span::ZERO,
        }
    }

    /// Gives the link a layer that adds bytes to each packet. The discipline must have been built for the rate of packets
    /// ([`LinkLayer::of_packets`]).
    #[must_use]
    pub fn over(self, layer: LinkLayer) -> Self {
        Self { layer, ..self }
    }

    /// Returns the discipline that packets enter.
    pub fn qdisc(&self) -> &Q {
        self.queues.present()
    }

    /// Returns the discipline that packets enter, to show it segments or to change its settings ([`Server::go_on`]).
    pub fn qdisc_mut(&mut self) -> &mut Q {
        self.queues.present_mut()
    }

    /// Returns the random numbers of the discipline.
    pub fn rng(&self) -> &Rng {
        &self.rng
    }

    /// Returns the rate of the transmitter.
    pub fn rate(&self) -> Rate {
        self.wire.rate()
    }

    /// Returns what the link adds to each packet.
    pub fn layer(&self) -> LinkLayer {
        self.layer
    }

    /// Returns since when the transmitter has been idle; `None` while it transmits.
    pub fn idle_since(&self) -> Option<Instant> {
        (!self.transmitting).then_some(self.busy_until)
    }

    /// Returns the time of all transmissions, up to the end of the present one.
    pub fn busy(&self) -> Span {
        self.busy
    }

    /// Returns the time of all transmissions up to `now`.
    pub fn busy_by(&self, now: Instant) -> Span {
        self.busy - self.busy_until.since(now)
    }

    /// Returns what waits.
    #[inline]
    pub fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }

    /// Returns the counters of the discipline, with those of disciplines that it replaced.
    pub fn stats(&self) -> Stats {
        self.queues.stats()
    }

    /// Returns how many replaced disciplines hold packets.
    pub fn replaced(&self) -> usize {
        self.queues.former()
    }

    /// Changes the rate, and tells the discipline. What is left of a packet that is being transmitted is sent at the new rate:
    /// one that kept the rate of an outage would block the link for long after it. Nothing must be due at `now`. Returns when
    /// the last transmission ends, or has ended.
    pub fn set_rate(&mut self, rate: Rate, now: Instant) -> Instant {
        let end = self.transmit_at(rate, now);
        self.tell_rate(now);
        end
    }

    /// Does what [`Server::set_rate`] does with the next one of many rates that differ little, such as those of an estimator:
    /// the discipline is told one that differs by more than 5 % from the last that it was told.
    pub fn follow_rate(&mut self, rate: Rate, now: Instant) -> Instant {
        let end = self.transmit_at(rate, now);
        if (rate.as_bps() as f64 - self.told.as_bps() as f64).abs() > TOLD * self.told.as_bps() as f64 {
            self.tell_rate(now);
        }
        end
    }

    fn transmit_at(&mut self, rate: Rate, now: Instant) -> Instant {
        let before = std::mem::replace(&mut self.wire, Serializer::new(rate)).rate();
        if self.transmitting {
            let rest = self.busy_until.since(now);
            let left = rest.at_rate(before, rate).max(Span::from_nanos(1)); // nothing is due at `now`
            (self.busy_until, self.busy) = (now + left, self.busy - rest + left);
        }
        self.busy_until
    }

    /// Tells the discipline the rate at which packets pass.
    fn tell_rate(&mut self, now: Instant) {
        self.told = self.rate();
        self.on_fact(&Fact::Rate(self.layer.of_packets(self.told)), now);
    }

    /// Lets the link add other bytes to the packets whose transmission begins later, and tells the discipline the rate at which
    /// packets pass then.
    pub fn set_layer(&mut self, layer: LinkLayer, now: Instant) {
        self.layer = layer;
        self.tell_rate(now);
    }

    /// Puts a discipline in the place of the present one, which keeps its packets. It must have been built for the present rate.
    pub fn replace(&mut self, qdisc: Q, now: Instant) {
        self.queues.replace(qdisc);
        self.told = self.rate();
        self.tell_channels(now);
    }

    /// Goes on after a change of the discipline's settings: it may be woken once more at this time, and is asked for a packet
    /// that it held.
    pub fn go_on(&mut self, now: Instant, observer: &mut impl Observer<P>) {
        self.queues.wake_again();
        self.ask(now, observer);
    }

    /// Tells the disciplines a fact.
    pub fn on_fact(&mut self, fact: &Fact, now: Instant) {
        let stations = self.loss.as_mut().and_then(|loss| loss.stations.as_mut());
        if let (Fact::Class { flow, class }, Some(stations)) = (fact, stations) {
            stations.set_class(flow.0, *class);
        }
        self.queues.each().for_each(|qdisc| qdisc.on_fact(fact, now));
    }

    /// Gives the stations other channels, one for each, whose time 0 is now.
    pub fn set_channels(&mut self, channels: Vec<Channel>, now: Instant, observer: &mut impl Observer<P>) {
        self.channels(now, |stations, tell| {
            stations.begin(channels, now);
            stations.tell(tell);
        });
        self.offer(now, observer); // a discipline may have waited for a better channel
    }

    /// Tells the disciplines the channels of all stations.
    pub fn tell_channels(&mut self, now: Instant) {
        self.channels(now, |stations, tell| stations.tell(tell));
    }

    /// Lets the channels of stations change up to `now`, and tells the disciplines those that have.
    pub fn look_at_channels(&mut self, now: Instant) {
        self.channels(now, |stations, tell| stations.advance(now, tell));
    }

    fn channels(&mut self, now: Instant, act: impl FnOnce(&mut Stations, &mut dyn FnMut(u32, f64))) {
        let Some(stations) = self.loss.as_mut().and_then(|loss| loss.stations.as_mut()) else { return };
        act(stations, &mut |station, loss| {
            self.queues.each().for_each(|qdisc| qdisc.on_fact(&Fact::Channel { station, loss }, now));
        });
    }

    /// Puts a packet into the queue. [`Server::ask`] or [`Server::offer`] is to be called next.
    #[inline]
    pub fn enqueue(&mut self, packet: P, now: Instant, observer: &mut impl Observer<P>) {
        // The verdict is counted in the statistics, and the observer is told.
        let _ = self.queues.present_mut().enqueue(packet, now, &mut self.rng, observer);
    }

    /// Asks for a packet if the transmitter is idle, as a driver of the kernel does after each arrival.
    #[inline]
    pub fn ask(&mut self, now: Instant, observer: &mut impl Observer<P>) {
        if !self.transmitting {
            self.start_next(now, observer);
        }
    }

    /// Asks for a packet if the transmitter is idle and a packet waits. An empty queue is not asked again: it said so when the
    /// transmitter became idle.
    #[inline]
    pub fn offer(&mut self, now: Instant, observer: &mut impl Observer<P>) {
        if !self.transmitting && self.queues.waits() {
            self.start_next(now, observer);
        }
    }

    /// Returns when [`Server::step`] next has something to do; the answer changes only when packets come, in `step`, and with
    /// changes of settings.
    #[inline]
    pub fn next_event(&self) -> Option<Instant> {
        let (timer, end) = self.pending();
        Some(timer.min(end)).filter(|at| *at < Instant::MAX)
    }

    /// Returns when a discipline is to be woken or asked again because of a channel, and when the transmission ends;
    /// [`Instant::MAX`] for never.
    #[inline]
    fn pending(&self) -> (Instant, Instant) {
        let timer = self.queues.next_wakeup();
        if self.transmitting {
            return (timer, self.busy_until);
        }
        // A discipline that holds packets from an idle link is asked again when a channel changes.
        let stations = self.loss.as_ref().and_then(|loss| loss.stations.as_ref()).filter(|_| self.queues.waits());
        (stations.and_then(|stations| stations.next_change()).map_or(timer, |change| timer.min(change)), Instant::MAX)
    }

    /// Handles the next event before `end`: a timer or a change of channels, or the end of a transmission. Returns its time,
    /// which is not before `from`; `None` if there is no event.
    #[inline]
    pub fn step(&mut self, from: Instant, end: Instant, observer: &mut impl Observer<P>) -> Option<Instant> {
        let (timer, sent) = self.pending();
        let timer = timer.max(from);
        let at = timer.min(sent);
        if at >= end {
            return None;
        }
        if timer <= sent {
            self.queues.wake(at);
            self.offer(at, observer);
        } else {
            self.start_next(at, observer);
        }
        Some(at)
    }

    /// Asks for a packet and begins to transmit it.
    fn start_next(&mut self, now: Instant, observer: &mut impl Observer<P>) {
        if self.loss.as_ref().is_some_and(|loss| loss.stations.is_some()) {
            self.look_at_channels(now);
        }
        let next = self.queues.dequeue(now, &mut self.rng, observer);
        self.transmitting = next.is_some();
        if let Some(packet) = next {
            let lost = self.loss.as_mut().is_some_and(|loss| loss.strikes(packet.flow().0));
            let transmission = self.wire.send(self.layer.on_wire(packet.size()));
            (self.busy_until, self.busy) = (now + transmission, self.busy + transmission);
            observer.sent(packet, lost, self.busy_until, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack::AckPath;
    use crate::judge::Aqm;
    use crate::link_layer::Framing;
    use crate::packet::FlowId;
    use crate::qdisc::DropReason;
    use crate::queue::Fifo;
    use crate::rng::Streams;
    use crate::testing::Numbered;
    use crate::units::{Bytes, Limit};

    /// Asks for ever to be woken at 6 ms, and keeps what it is told, with the number of packets that wait.
    #[derive(Debug, Clone, Default)]
    struct Sleeper(Vec<(&'static str, u64)>);

    impl AckPath for Sleeper {}

    impl Aqm for Sleeper {
        fn on_empty(&mut self, _: Instant) {
            self.0.push(("empty", 0));
        }
        fn next_wakeup(&self) -> Option<Instant> {
            Some(us(6000))
        }
        fn on_wakeup(&mut self, backlog: Backlog, _: Instant) {
            self.0.push(("woken", backlog.packets));
        }
        fn on_fact(&mut self, _: &Fact, _: Instant) {
            self.0.push(("told", 0));
        }
    }

    /// The number of each packet that was sent, whether it was lost, and begin and end of its transmission in microseconds.
    #[derive(Default)]
    struct Sent(Vec<(u64, bool, u64, u64)>);

    impl PacketObserver<Numbered> for Sent {
        fn dropped(&mut self, _: Numbered, _: DropReason, _: Instant) {}
        fn marked(&mut self, _: &Numbered, _: Instant) {}
    }

    impl Observer<Numbered> for Sent {
        fn sent(&mut self, packet: Numbered, lost: bool, end: Instant, now: Instant) {
            self.0.push((packet.number, lost, now.as_nanos() / 1000, end.as_nanos() / 1000));
        }
    }

    fn us(us: u64) -> Instant {
        Instant::ZERO + Span::from_micros(us)
    }

    fn queue(limit: u64) -> Fifo<Numbered, Sleeper> {
        Fifo::new(Limit::Packets(limit), Sleeper::default())
    }

    /// A packet takes a millisecond. Those with these numbers arrive at 5 ms.
    fn server(numbers: &[u64]) -> (Server<Numbered, Fifo<Numbered, Sleeper>>, Sent) {
        let server = Server::new(queue(10), Rate::from_bps(8_000_000), Streams::new(1).get("test"));
        let mut both = (server, Sent::default());
        numbers.iter().for_each(|number| arrive(&mut both, *number, us(5000)));
        both
    }

    fn arrive((server, sent): &mut (Server<Numbered, Fifo<Numbered, Sleeper>>, Sent), number: u64, now: Instant) {
        server.enqueue(Numbered::new(number, FlowId(0), Bytes::new(1000)), now, sent);
        server.offer(now, sent);
    }

    fn live((server, sent): &mut (Server<Numbered, Fifo<Numbered, Sleeper>>, Sent)) {
        while server.step(Instant::ZERO, us(99_000), sent).is_some() {}
    }

    #[test]
    fn a_lone_packet_takes_its_transmission_and_others_follow_however_late_the_caller_is() {
        let mut both = server(&[1]);
        assert_eq!((both.0.idle_since(), both.0.next_event()), (None, Some(us(6000))));
        arrive(&mut both, 2, us(5000));
        live(&mut both);
        assert_eq!(both.1.0, [(1, false, 5000, 6000), (2, false, 6000, 7000)]);
        assert_eq!((both.0.idle_since(), both.0.busy()), (Some(us(7000)), Span::from_millis(2)));
    }

    #[test]
    fn a_discipline_is_woken_once_for_each_time_and_before_a_packet_leaves_at_that_time() {
        let mut both = server(&[1, 2]);
        live(&mut both);
        assert_eq!(both.0.next_event(), None);
        both.0.offer(us(8000), &mut both.1);
        assert_eq!(both.0.qdisc().aqm().0, [("woken", 1), ("empty", 0)], "an empty queue is not asked again");
        both.0.ask(us(8000), &mut both.1);
        assert_eq!(both.0.qdisc().aqm().0[2..], [("empty", 0)]);
        both.0.go_on(us(8000), &mut both.1);
        assert_eq!(both.0.next_event(), Some(us(6000)), "after a change it may be woken again");
    }

    #[test]
    fn a_new_rate_holds_at_once_for_what_is_left_of_a_packet() {
        let mut both = server(&[1, 2]);
        // Half of the packet is left after 500 us; at a quarter of the rate it takes 2 ms.
        assert_eq!(both.0.set_rate(Rate::from_bps(2_000_000), us(5500)), us(7500));
        live(&mut both);
        assert_eq!(both.1.0[1], (2, false, 7500, 11_500));
        assert_eq!((both.0.busy(), both.0.qdisc().aqm().0[0]), (Span::from_micros(6500), ("told", 0)));
    }

    /// Rates of 8, 8.3, 8.5 and 8.1 Mbit/s: only the third differs by more than 5 % from what was told, 8, and the last does not
    /// from 8.5.
    #[test]
    fn a_rate_that_is_followed_holds_at_once_and_is_told_if_it_differs_by_much() {
        let mut both = server(&[1]);
        let mut told = |rate: u64| {
            let end = both.0.follow_rate(Rate::from_bps(rate), us(5000));
            (end.since(us(5000)).as_nanos() / 1000 == 8_000_000_000 / rate, both.0.qdisc().aqm().0.len())
        };
        assert_eq!([8_300_000, 8_500_000, 8_100_000].map(&mut told), [(true, 0), (true, 1), (true, 1)]);
        both.0.set_rate(Rate::from_bps(8_100_000), us(5000));
        assert_eq!(both.0.qdisc().aqm().0.len(), 2, "what somebody sets is always told");
        assert_eq!((both.0.busy_by(us(5000)), both.0.busy_by(us(5300))), (Span::ZERO, Span::from_micros(300)));
    }

    /// 1000 B and 44 B more are 22 cells of 53 B.
    #[test]
    fn another_layer_holds_from_the_next_packet_on_and_is_told() {
        let mut both = server(&[1, 2]);
        both.0.set_layer(LinkLayer { overhead: 44, mpu: 0, framing: Framing::Atm }, us(5500));
        assert_eq!(both.0.qdisc().aqm().0, [("told", 0)]);
        live(&mut both);
        assert_eq!(both.1.0, [(1, false, 5000, 6000), (2, false, 6000, 7166)]);
    }

    #[test]
    fn a_lost_packet_takes_its_time() {
        let mut both = server(&[]);
        both.0.loss = Some(Loss::new(1.0, Streams::new(1).get("loss")));
        [1, 2].into_iter().for_each(|number| arrive(&mut both, number, us(5000)));
        live(&mut both);
        assert_eq!(both.1.0, [(1, true, 5000, 6000), (2, true, 6000, 7000)]);
        assert_eq!(both.0.loss.map(|loss| loss.lost), Some(2));
    }

    #[test]
    fn packets_of_a_replaced_discipline_leave_first_and_stay_counted() {
        let mut both = server(&[1, 2, 3]);
        both.0.replace(queue(1), us(5000));
        [4, 5].into_iter().for_each(|number| arrive(&mut both, number, us(5000)));
        assert_eq!((both.0.replaced(), both.0.backlog().packets), (1, 3));
        live(&mut both);
        assert_eq!(both.1.0.iter().map(|sent| sent.0).collect::<Vec<_>>(), [1, 2, 3, 4], "the new queue has one place");
        let stats = both.0.stats();
        assert_eq!((both.0.replaced(), stats.sent.packets, stats.dropped_overflow.packets), (0, 4, 1));
        assert_eq!(stats.check(both.0.backlog()), Ok(()));
    }
}
