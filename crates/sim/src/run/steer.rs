//! Changes that come from outside while a run goes on: of links, of what an application has to send, and of what a control or
//! a discipline is told.

use super::Simulation;
use crate::actors::changes::{Before, Change, Course, Way};
use crate::link::Link;
use crate::numbers::LinkDir;
use crate::tcp::Role;
use penstock_core::cc::Advice;
use penstock_core::config::ConfigError;
use penstock_core::fact::Fact;
use penstock_core::impair::Impairments;
use penstock_core::rng::Streams;
use penstock_core::units::{Instant, Span};
use penstock_grammar::impair::validate;
use penstock_trace::series::Values;

impl Simulation {
    /// Changes rate, delay or loss of a link in the directions of `way`, at `at`, which must be later than now; an earlier
    /// time becomes the next nanosecond. `link` is the index of the link among those of the scenario.
    ///
    /// The rest of the run is that of a scenario with the same step in `[[changes]]`: a run that somebody has steered
    /// can be written down and repeated.
    pub fn steer(&mut self, link: usize, way: Way, at: Instant, values: Values) {
        let at = at.max(self.now() + Span::from_nanos(1)).since(Instant::ZERO);
        let course = Course::Step { values, stations: None, every: None };
        let change = Change { link, at, way, course, tell_after: Span::ZERO, told: true };
        let (links, streams) = (self.links_now(), Streams::new(self.plan.seed));
        self.actors.changes.join(&change, &links, self.measured.seconds.keeps_series(), &streams);
        self.await_change();
    }

    /// Changes what a link does to packets before and behind its queue, from now on; `reverse` means the direction from its
    /// second end to its first. `link` is the index of the link among those of the scenario.
    ///
    /// # Errors
    /// Returns the first key whose value is not allowed; then nothing changes.
    pub fn impair(&mut self, link: usize, reverse: bool, impairments: &Impairments) -> Result<(), ConfigError> {
        validate(impairments)?;
        let place = if reverse { LinkDir::forward(link).reverse() } else { LinkDir::forward(link) };
        let Some(of) = self.world.links.get_mut(place.index()) else { return Ok(()) };
        let rng =
            Streams::new(self.plan.seed).get(&format!("impaired/{}/{}", place.place(), self.world.now.as_nanos()));
        of.impair(impairments, rng, self.world.now, &mut self.world.outlet);
        self.world.review(place);
        Ok(())
    }

    /// Lets the application of a flow have `bytes` to send from now on, in place of all that was not sent yet. Returns false
    /// for a flow without a connection that lasts, or that would begin after the end of the run.
    pub fn supply(&mut self, flow: usize, bytes: u64) -> bool {
        if !self.world.layout.sends(flow as u32) {
            return false;
        }
        let Some(tcp) = self.actors.flows.get_mut(flow).and_then(|flow| flow.tcp_mut()) else { return false };
        tcp.client.offer(bytes);
        self.pump(flow, Role::Client);
        true
    }

    /// Gives the control of a flow advice from outside, and lets the flow send what it may send now. Returns false for a flow
    /// without a connection that lasts.
    pub fn advise(&mut self, flow: usize, advice: Advice) -> bool {
        let Some(tcp) = self.actors.flows.get_mut(flow).and_then(|flow| flow.tcp_mut()) else { return false };
        tcp.client.advise(advice);
        self.pump(flow, Role::Client);
        true
    }

    /// Tells the discipline of a measured queue a fact now; `queue` counts as [`Simulation::queues`] does.
    pub fn tell(&mut self, queue: usize, fact: &Fact) {
        let Some(link) = self.measured.bottlenecks.get(queue).map(|bottleneck| bottleneck.link) else { return };
        self.world.links[link.index()].tell(fact, self.world.now, &mut self.world.outlet);
        self.world.review(link);
    }

    /// Returns the properties of the scenario's links now: all links with queues, before those of hosts.
    fn links_now(&self) -> Vec<Before> {
        let before = |both: &[Link; 2]| Before {
            name: String::new(), // only random states have names
            rates: both.each_ref().map(Link::rate),
            delays: both.each_ref().map(Link::delay),
            losses: both.each_ref().map(|link| link.queue.loss.probability()),
        };
        self.world.links.as_chunks().0.iter().map(before).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::table::Column;

    /// A stream without end becomes one of 5000 bytes; datagrams take no orders.
    #[test]
    fn a_connection_sends_what_it_is_given_and_no_more() {
        let text = "duration = \"5s\"\n[topology]\nkind = \"dumbbell\"\nrate = \"10Mbit/s\"\ndelay = \"5ms\"\nlimit = \"99p\"\n\
                    [[flows]]\nkind = \"bulk\"\n[[flows]]\nkind = \"cbr\"\nrate = \"1Mbit/s\"\n";
        let mut simulation = Simulation::new(&Scenario::parse(text, "test.toml").unwrap_or_else(|e| panic!("{e}")));
        simulation.advance(Span::from_millis(1)).unwrap();
        assert_eq!([0, 1, 2].map(|flow| simulation.supply(flow, 5000)), [true, false, false]);
        while !simulation.advance(Span::MAX).unwrap() {}
        assert_eq!(simulation.summary().flows[0].delivered_bytes, 5000);
    }

    /// A wire that loses every fifth packet goes on to do so after its delay was steered.
    #[test]
    fn what_is_not_steered_stays() {
        let text = "duration = \"20s\"\n[topology]\nkind = \"dumbbell\"\nrate = \"10Mbit/s\"\ndelay = \"5ms\"\nlimit = \"99p\"\n\
                    loss = 0.2\n[[flows]]\nkind = \"cbr\"\nrate = \"4Mbit/s\"\n";
        let mut simulation = Simulation::new(&Scenario::parse(text, "test.toml").unwrap_or_else(|e| panic!("{e}")));
        let delay = Values { rate: None, delay: Some(Span::from_millis(7)), loss: None };
        simulation.steer(0, Way::Both, Instant::ZERO, delay);
        while !simulation.advance(Span::MAX).unwrap() {}
        let link = &simulation.summary().bottlenecks[0];
        let share = link.lost as f64 / link.packets_all as f64;
        assert!((share - 0.2).abs() < 0.03, "{} of {} are lost", link.lost, link.packets_all);
        let tables = simulation.tables();
        let changes = tables.iter().find(|table| table.name == "link_changes").expect("a run with series");
        let (_, loss) = changes.columns.iter().find(|(name, _)| *name == "loss").expect("a table of losses");
        // Before and after, one direction after the other.
        assert!(matches!(loss, Column::F64(losses) if losses[..2] == [0.2, 0.2]), "{loss:?}");
    }
}
