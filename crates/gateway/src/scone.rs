//! `scone = true`: flows of QUIC that ask for it by SCONE are told the rate that they would have as one of the flows among
//! which the discipline divides its rate. Who gets which advice, and how often, is in [`penstock_core::advice`].

use crate::held::Held;
use crate::tap::{Around, Entries, Known, Tap};
use penstock_core::advice::Advisor;
use penstock_core::fact::Fact;
use penstock_core::packet::Packet;
use penstock_core::wire::Transport;
use penstock_shaper::classify::PacketFacts;
use penstock_shaper::direction::Direction;
use serde_json::json;

#[derive(Debug, Default)]
pub struct Advice([Advisor; 2]);

impl Tap for Advice {
    fn arrives(&mut self, direction: Direction, held: &mut Held, _: &PacketFacts, around: &mut Around<'_>) {
        if !matches!(held.packet().headers().transport, Transport::Udp { .. }) {
            return;
        }
        let (advisor, flow) = (&mut self.0[direction.index()], Packet::flow(held));
        if let Some(is) = held.rate_signal() {
            let (way, who) = (around.path.direction(direction), (flow, around.classifier.node_of(flow)));
            let signal = advisor.advise(who, is, way.rate(), way.elements(), around.now);
            signal.into_iter().for_each(|signal| held.lower_rate_signal(signal));
        }
        advisor.count(flow, held.size());
    }

    /// Ends a second: finds out what flows use, and tells the disciplines.
    fn tick(&mut self, around: &mut Around<'_>) {
        for direction in Direction::BOTH {
            let way = around.path.direction(direction);
            if let Some(members) = self.0[direction.index()].tick(way.rate(), way.elements(), around.now) {
                around.path.direction_mut(direction).on_fact(&Fact::Advised(members), around.now);
            }
        }
    }

    fn status(&self, _: &Known<'_>, told: &mut Entries) {
        told.insert("scone".into(), json!(self.0.each_ref().map(Advisor::stats)));
    }
}
