//! Paths between the routers of a scenario.

use super::LinkSpec;
use crate::numbers::LinkDir;
use penstock_core::units::{Rate, Span};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// One direction of a link, as an edge from the router at which it begins.
#[derive(Debug, Clone, Copy)]
struct Edge<'a> {
    to: &'a str,
    delay: Span,
    link: LinkDir,
}

/// The routers of a scenario and the links between them.
#[derive(Debug)]
pub struct Graph<'a> {
    edges: BTreeMap<&'a str, Vec<Edge<'a>>>,
}

impl<'a> Graph<'a> {
    /// Creates the graph of these links; the number of a link is its place in the list.
    pub fn new(links: &'a [LinkSpec]) -> Self {
        let mut edges: BTreeMap<&str, Vec<Edge<'_>>> = BTreeMap::new();
        for (index, spec) in links.iter().enumerate() {
            let forward = LinkDir::forward(index);
            for (from, to, link) in [(&spec.a, &spec.b, forward), (&spec.b, &spec.a, forward.reverse())] {
                edges.entry(from).or_default().push(Edge { to, delay: link.of(spec.link.delays()), link });
            }
        }
        Self { edges }
    }

    /// Returns the path of least delay in the direction of the path; `None` if there is no path. Among equal delays the path
    /// with the fewest links wins, then the one whose links come first in the scenario. (Dijkstra's algorithm over delay,
    /// number of links, links.)
    pub fn shortest(&self, from: &str, to: &str) -> Option<Vec<LinkDir>> {
        let mut done = BTreeSet::new();
        let mut open = BinaryHeap::from([Reverse((Span::ZERO, 0, Vec::<LinkDir>::new(), from))]);
        while let Some(Reverse((delay, hops, path, router))) = open.pop() {
            if router == to {
                return Some(path);
            }
            if !done.insert(router) {
                continue;
            }
            for edge in self.edges.get(router).into_iter().flatten() {
                let longer: Vec<LinkDir> = path.iter().copied().chain([edge.link]).collect();
                open.push(Reverse((delay + edge.delay, hops + 1, longer, edge.to)));
            }
        }
        None
    }
}

/// Returns the index of the first link on the path from one router to another; `None` if there is no path.
pub fn first_link(links: &[LinkSpec], from: &str, to: &str) -> Option<usize> {
    Graph::new(links).shortest(from, to)?.first().map(|link| link.duplex())
}

/// Returns the rate of the slowest link on the path from one router to another; `None` if there is no path.
pub fn slowest(links: &[LinkSpec], from: &str, to: &str) -> Option<Rate> {
    let path = Graph::new(links).shortest(from, to)?;
    path.iter().map(|link| link.of(links[link.duplex()].link.rates())).min()
}
