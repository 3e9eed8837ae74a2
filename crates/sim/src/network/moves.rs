//! Routes of hosts that move: the routes from their new cells, and the routes on which packets are forwarded to them.

use super::{Builder, way_back};
use crate::actors::action::Mover;
use crate::actors::handovers::Move;
use crate::numbers::LinkDir;
use crate::scenario::{Handover, Procedure};
use penstock_core::units::Instant;
use std::collections::BTreeSet;

/// A cell: the link from a host into the network, and the router to which that link leads.
#[derive(Debug, Clone, Copy)]
struct Cell<'a> {
    up: LinkDir,
    base: &'a str,
}

impl Cell<'_> {
    fn links(self) -> [LinkDir; 2] {
        [self.up, self.up.reverse()]
    }
}

impl<'a> Builder<'a> {
    pub(super) fn add_moves(&mut self, handover: &'a Handover) {
        let first = self.moves.len();
        for flow in &handover.flows {
            let one = self.one_move(handover, *flow);
            self.moves.push(one);
        }
        // A node moves with the clients of its flows.
        let owner = |one: &Move| match one.who {
            Mover::Flow(flow) if !one.server => self.nodes.get(flow as usize).copied(),
            _ => None,
        };
        let nodes: BTreeSet<u32> = self.moves[first..].iter().filter_map(owner).collect();
        for node in nodes {
            let one = self.node_move(handover, node);
            let known = |one: &Move| {
                let is_it = |other: &Move| (other.who, other.leaves, other.new) == (one.who, one.leaves, one.new);
                self.moves.iter().any(is_it)
            };
            // Other flows of the node may move by another procedure, in a table of their own; the node moves by the
            // procedure of the first.
            let one = one.filter(|one| !known(one));
            self.moves.extend(one);
        }
        // A packet may be turned back between any two links, so no link relays.
        self.queues().for_each(|queue| queue.relays = false);
    }

    fn one_move(&mut self, handover: &'a Handover, flow: u32) -> Move {
        let before = self.ends[flow as usize];
        let after = before.map(|end| if end == handover.from { handover.to.as_str() } else { end });
        self.ends[flow as usize] = after;
        let server = before[1] == handover.from;
        let other = before[usize::from(!server)];
        let ways = [before, after].map(|[from, to]| self.path(from, to));
        // The link of the cell in the direction from the host: the first link of the path for a client, the reverse of
        // the last one for a server.
        let up = |way: &[LinkDir]| if server { way.last().map(|link| link.reverse()) } else { way.first().copied() };
        let cells =
            [0, 1].map(|at| up(&ways[at]).unwrap_or(LinkDir::at(0))).map(|up| Cell { up, base: self.far_end(up) });
        let between = self.between(handover, cells, other);
        let (routes, homes) = self.add_routes_of(flow, &ways[1]);
        let down = cells[1].up.reverse();
        let forward = self.add_links(&[&between, &[down, homes[usize::from(server)]]]);
        Move {
            who: Mover::Flow(flow),
            server,
            loses_air: handover.loses_air(),
            leaves: Instant::ZERO + handover.at,
            attaches: Instant::ZERO + handover.at + handover.interruption,
            switches: self.switches(handover, cells[1].base, other),
            old: cells[0].links(),
            new: cells[1].links(),
            routes,
            forward,
        }
    }

    /// Plans the move of a node's client; `None` without a gateway. A client at the gateway's own router has no link to
    /// the gateway but its access link, which is then its cell.
    fn node_move(&mut self, handover: &'a Handover, node: u32) -> Option<Move> {
        let (spec, cooperation) = (self.scenario.cooperation.as_ref()?, self.cooperation.as_ref()?);
        let gateway = self.scenario.links[spec.link].a.as_str();
        let access = self.first_link(cooperation.route_from(node));
        let home = access.reverse();
        let ways = [&handover.from, &handover.to].map(|at| self.path(at, gateway));
        let cells = ways.each_ref().map(|way| match way.first() {
            Some(up) => Cell { up: *up, base: self.far_end(*up) },
            None => Cell { up: access, base: gateway },
        });
        let between = self.between(handover, cells, gateway);
        let back = way_back(&ways[1]);
        let routes = [self.add_links(&[&[access], &ways[1]]), self.add_links(&[&back, &[home]])];
        let last = back.last().copied();
        let forward = self.add_links(&[&between, last.as_slice(), &[home]]);
        Some(Move {
            who: Mover::Node(node),
            server: false,
            loses_air: handover.loses_air(),
            leaves: Instant::ZERO + handover.at,
            attaches: Instant::ZERO + handover.at + handover.interruption,
            switches: self.switches(handover, cells[1].base, gateway),
            old: cells[0].links(),
            new: cells[1].links(),
            routes,
            forward,
        })
    }

    /// Returns the path on which packets are forwarded from the old base station to the new one. By S1 it passes the
    /// other end's router.
    fn between(&mut self, handover: &Handover, [old, new]: [Cell<'a>; 2], other: &'a str) -> Vec<LinkDir> {
        match handover.procedure {
            Procedure::S1 => [self.path(old.base, other), self.path(other, new.base)].concat(),
            _ => self.path(old.base, new.base),
        }
    }

    /// Returns when the other end has learnt of the new route: the message travels from the new base station as long as
    /// a packet does.
    fn switches(&mut self, handover: &Handover, base: &'a str, other: &'a str) -> Instant {
        let delay = |link: &LinkDir| link.of(self.scenario.links[link.duplex()].link.delays());
        let way = self.path(base, other);
        way.iter().map(delay).fold(Instant::ZERO + handover.at + handover.interruption, |at, delay| at + delay)
    }

    /// Adds the routes between a flow's hosts over the path `way`; returns them and the access links to the client and
    /// to the server. The first and the last link of each route are access links.
    fn add_routes_of(&mut self, flow: u32, way: &[LinkDir]) -> ([u32; 2], [LinkDir; 2]) {
        let firsts = self.flows[flow as usize].routes.map(|route| self.first_link(route));
        (self.add_routes(firsts, way), firsts.map(LinkDir::reverse))
    }

    /// Returns the router to which a link of the scenario leads.
    fn far_end(&self, link: LinkDir) -> &'a str {
        let spec = &self.scenario.links[link.duplex()];
        if link.is_forward() { &spec.b } else { &spec.a }
    }
}

#[cfg(test)]
mod tests {
    use crate::actors::action::Mover;
    use crate::network::build;
    use crate::scenario::Scenario;

    /// A call moves by one procedure and a file by another: two flows and one node move. A single flow is a node as
    /// well, but a server belongs to no node.
    #[test]
    fn a_node_moves_once_with_its_flows() {
        let moves = |node: &str, of: [&str; 2], cooperation: &str| {
            let text = format!(
                r#"
                duration = "1s"
                {cooperation}
                flows = [
                  {{ kind = "voip", {node} from = "a", to = "far" }},
                  {{ kind = "bulk", {node} from = "a", to = "far" }},
                  {{ kind = "voip", from = "far", to = "a" }},
                ]
                handovers = [
                  {{ at = "500ms", from = "a", to = "b", procedure = "x2-seamless", flows = {} }},
                  {{ at = "500ms", from = "a", to = "b", procedure = "x2-lossless", flows = {} }},
                ]
                [topology]
                kind = "graph"
                links = [
                  {{ name = "way", a = "gw", b = "far", rate = "1Mbit/s", delay = "1ms" }},
                  {{ name = "one", a = "a", b = "gw", rate = "1Mbit/s", delay = "1ms" }},
                  {{ name = "two", a = "b", b = "gw", rate = "1Mbit/s", delay = "1ms" }},
                ]
                "#,
                of[0], of[1]
            );
            let scenario = Scenario::parse(&text, "moves.toml").unwrap_or_else(|e| panic!("{e}"));
            build(&scenario).moves.iter().map(|one| (one.who, one.loses_air)).collect::<Vec<_>>()
        };
        let (flow, node, on) = (Mover::Flow, Mover::Node, "cooperation = { link = \"way\" }");
        let (first, second) = ([(flow(0), true), (flow(2), true)], [(flow(1), false)]);
        let named = "node = \"n\",";
        assert_eq!(moves(named, ["[0, 2]", "[1]"], on), [&first[..], &[(node(0), true)], &second].concat());
        assert_eq!(
            moves("", ["[0, 2]", "[1]"], on),
            [&first[..], &[(node(0), true)], &second, &[(node(1), false)]].concat()
        );
        assert_eq!(moves(named, ["[0, 2]", "[1]"], ""), [&first[..], &second].concat());
    }
}
