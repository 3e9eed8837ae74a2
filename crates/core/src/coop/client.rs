//! The client of C²LP: a node that asks for a budget and keeps to it (Figure 2.30; docs/c2lp.md).
//!
//! | stage | what it does |
//! |---|---|
//! | idle | nothing: no socket is open |
//! | joining | hello, until an invitation comes; hello with it, until it is in |
//! | in | tells what it can use when that changes, and that it is there before its lease ends |
//! | leaving | says goodbye a few times, since nobody answers that |
//!
//! A budget is believed as long as the lease of the last answer runs, counted from when the request was first sent, so
//! the gateway remembers the client for longer than the client believes. After that [`Client::budget`] is `None`: the
//! node falls back to plain congestion control, as the source demands, and asks again.
//!
//! Nothing here is random: retries are spread by the node's id, and the host hands in a number that no other life of the
//! client used.
//!
//! DIFFERENCE: a client says that it lacks when it cannot use 20 % of what it holds (the text of 2.3.2); Figure 2.30
//! compares without a threshold (`threshold_percent = 0`). Pinned by `a_client_lacks_from_the_threshold_on`.

use super::message::{Answer, Levels, Message, Request};
use super::state::{Claim, NodeId, Share, Signed, Status, budget};
use crate::config::ConfigError;
use crate::units::{Instant, Rate, Span};

/// How often goodbye is said.
const GOODBYES: u8 = 3;

/// What a client is told when it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Who it is.
    pub node: NodeId,
    /// What it is entitled to, if the operator gave it something.
    pub ticket: Option<Signed>,
    /// A number that no earlier life of this client used, and that others do not guess: from a source of secrets, or in
    /// a simulation from its seed.
    pub nonce: u64,
    /// A request is repeated after so long at first, then after twice as long, up to eight times as long.
    pub retry: Span,
    /// A change of what it can use is told from this many percent on.
    pub threshold_percent: u8,
}

impl Config {
    /// The defaults of docs/c2lp.md.
    pub fn new(node: NodeId, nonce: u64) -> Self {
        Self { node, ticket: None, nonce, retry: Span::from_millis(250), threshold_percent: 20 }
    }

    /// Refuses values that cannot work.
    ///
    /// # Errors
    /// The first parameter that is out of its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        if !(Span::from_millis(1)..=Span::from_secs(60)).contains(&self.retry) {
            return Err(ConfigError::new("retry", "must be 1ms to 60s; the default is 250ms"));
        }
        if self.threshold_percent > 99 {
            return Err(ConfigError::new("threshold_percent", "must be 0 to 99; the source has 20"));
        }
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Idle,
    Joining,
    In,
    Leaving(u8),
}

/// A request that waits for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pending {
    message: Message,
    ask: u64,
    first: Instant,
    sent: u32,
    /// What it says it can use.
    claim: Claim,
}

/// What the last answer gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    share: Share,
    claim: Claim,
    status: Status,
    /// What this was the answer to.
    said: Claim,
    /// Until when it is believed.
    until: Instant,
}

/// A client.
#[derive(Debug, Clone)]
pub struct Client {
    config: Config,
    stage: Stage,
    ask: u64,
    /// What is sent back to the gateway: what it told last, or the ticket.
    state: Option<Signed>,
    /// What it holds, while a lease runs.
    held: Option<Held>,
    levels: Option<Levels>,
    /// What it last told, and at which levels.
    told: Option<(Claim, u64)>,
    /// c_i: what it can use.
    usable: Claim,
    pending: Option<Pending>,
    timer: Option<Instant>,
}

impl Client {
    /// A client with no socket open.
    ///
    /// # Errors
    /// The first parameter that is out of its range.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            stage: Stage::Idle,
            ask: config.nonce,
            state: config.ticket,
            held: None,
            levels: None,
            told: None,
            usable: Claim::ALL,
            pending: None,
            timer: None,
            config,
        })
    }

    /// Who it is.
    pub fn node(&self) -> NodeId {
        self.config.node
    }

    /// What the node may use now; `None` if it is nobody's client, and its congestion control is on its own. A budget of
    /// nothing shows as 1 bit/s.
    pub fn budget(&self, now: Instant) -> Option<Rate> {
        self.budget_bps(now).map(Rate::from_bps)
    }

    /// The same in bits per second, with a zero for nothing.
    pub fn budget_bps(&self, now: Instant) -> Option<u64> {
        let held = self.held.filter(|held| now < held.until)?;
        // What was just said to be too much is not used any more; what was answered before is known not to matter.
        let said = self.pending.map(|p| p.claim).filter(|c| *c != held.said).unwrap_or(Claim::ALL);
        Some(budget(held.share, held.claim.min(said), self.level(held.share)?))
    }

    /// Good or bad, while it is in.
    pub fn status(&self) -> Option<Status> {
        self.held.map(|held| held.status)
    }

    /// True from the first socket to the last.
    pub fn is_active(&self) -> bool {
        matches!(self.stage, Stage::Joining | Stage::In)
    }

    /// The first socket was opened.
    pub fn open(&mut self, now: Instant, out: &mut Vec<Message>) {
        if !self.is_active() {
            self.join(now, Span::ZERO);
            self.poll(now, out);
        }
    }

    /// The last socket was closed.
    pub fn close(&mut self, now: Instant, out: &mut Vec<Message>) {
        if !self.is_active() {
            return;
        }
        let was_in = self.held.is_some();
        (self.pending, self.timer, self.held) = (None, None, None);
        self.stage = if was_in { Stage::Leaving(GOODBYES) } else { Stage::Idle };
        if was_in {
            self.timer = Some(now);
            self.poll(now, out);
        } else {
            self.state = self.config.ticket;
        }
    }

    /// The node can use so much (CSI, 2.3); `None` for whatever it is given.
    pub fn set_usable(&mut self, usable: Option<Rate>, now: Instant, out: &mut Vec<Message>) {
        self.usable = usable.into();
        self.review(now, out);
    }

    /// Takes a message of the gateway, and puts what is to be sent into `out`.
    pub fn handle(&mut self, message: &Message, now: Instant, out: &mut Vec<Message>) {
        match message {
            Message::AckHello(answer) | Message::AckUsed(answer) => self.answered(answer, now, out),
            Message::AvailBw(levels) => self.told(levels, now, out),
            _ => {}
        }
    }

    /// Does what is due by now.
    pub fn poll(&mut self, now: Instant, out: &mut Vec<Message>) {
        if self.held.is_some_and(|held| held.until <= now) {
            // Nothing was heard for a lease: back to plain congestion control, and from the start.
            self.held = None;
            self.join(now, Span::ZERO);
        }
        if self.timer.is_none_or(|at| now < at) {
            return;
        }
        match (self.stage, self.pending) {
            (Stage::Idle, _) => self.timer = None,
            (Stage::Leaving(left), _) => self.goodbye(left, now, out),
            (_, Some(pending)) => self.send(pending, now, out),
            (Stage::Joining, None) => self.hello(now, out),
            (Stage::In, None) => self.tell(self.usable, now, out),
        }
    }

    /// When [`Client::poll`] is to be called next. Changes with each call of a method.
    pub fn next_timeout(&self) -> Option<Instant> {
        let lease = self.held.map(|held| held.until);
        [self.timer, lease].into_iter().flatten().min()
    }

    fn level(&self, share: Share) -> Option<u64> {
        Some(self.levels?.levels[usize::from(share.class)])
    }

    /// Begins to join after `wait`; keeps what an earlier gateway told.
    fn join(&mut self, now: Instant, wait: Span) {
        (self.stage, self.pending, self.timer) = (Stage::Joining, None, Some(now + wait));
        if self.state.is_none_or(|signed| signed.state().status == Status::Invited) {
            self.state = self.config.ticket;
        }
    }

    fn hello(&mut self, now: Instant, out: &mut Vec<Message>) {
        self.ask += 1;
        let (node, ask, state) = (self.config.node, self.ask, self.state);
        let message = Message::ClientHello { node, ask, state };
        self.send(Pending { message, ask, first: now, sent: 0, claim: Claim::ALL }, now, out);
    }

    /// USED_BW.
    fn tell(&mut self, claim: Claim, now: Instant, out: &mut Vec<Message>) {
        let Some(state) = self.state else { return };
        self.ask += 1;
        self.told = self.levels.map(|levels| (claim, levels.seq));
        let (node, ask) = (self.config.node, self.ask);
        let message = Message::UsedBw(Request { node, ask, state }, claim);
        self.send(Pending { message, ask, first: now, sent: 0, claim }, now, out);
    }

    fn goodbye(&mut self, left: u8, now: Instant, out: &mut Vec<Message>) {
        if let Some(state) = self.state {
            self.ask += 1;
            out.push(Message::ClientBye(Request { node: self.config.node, ask: self.ask, state }));
        }
        let more = left > 1;
        self.stage = if more { Stage::Leaving(left - 1) } else { Stage::Idle };
        self.timer = more.then_some(now + self.config.retry);
        if !more {
            self.state = self.config.ticket;
        }
    }

    /// Sends a request, for the first time or again.
    fn send(&mut self, mut pending: Pending, now: Instant, out: &mut Vec<Message>) {
        out.push(pending.message);
        let wait = self.config.retry * (1 << pending.sent.min(3));
        self.timer = Some(now + wait + self.jitter(pending.sent, wait));
        pending.sent += 1;
        self.pending = Some(pending);
    }

    /// Up to half of `wait`, another for each node and time, so that those who lost their gateway together do not ask
    /// together.
    fn jitter(&self, turn: u32, wait: Span) -> Span {
        let mut x = u64::from(self.config.node.0) << 32 | u64::from(turn);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Span::from_nanos(((x >> 44) * (wait.as_nanos() / 2)) >> 20)
    }

    fn answered(&mut self, answer: &Answer, now: Instant, out: &mut Vec<Message>) {
        let Some(pending) = self.pending.filter(|p| p.ask == answer.ask && answer.node == self.config.node) else {
            return;
        };
        let state = *answer.state.state();
        self.pending = None;
        self.state = Some(answer.state);
        match state.status {
            Status::Good | Status::Bad => self.enter(answer, pending, now, out),
            // Asked to come in, or to come in again: what was believed stays believed until its lease ends.
            Status::Invited => {
                self.stage = Stage::Joining;
                self.hello(now, out);
            }
            Status::Ticket => self.join(now, self.config.retry),
        }
    }

    /// It is in, from when it asked until the lease is over.
    fn enter(&mut self, answer: &Answer, asked: Pending, now: Instant, out: &mut Vec<Message>) {
        let state = answer.state.state();
        let (share, claim, status) = (state.share, state.claim, state.status);
        self.held = Some(Held { share, claim, status, said: asked.claim, until: asked.first + answer.lease });
        let same = self.levels.filter(|known| known.incarnation == answer.levels.incarnation);
        if same.is_none_or(|known| known.seq < answer.levels.seq) {
            self.levels = Some(answer.levels);
        }
        if self.stage == Stage::Joining {
            self.told = None;
        }
        self.stage = Stage::In;
        self.timer = Some(now + answer.lease.div(3));
        self.review(now, out);
    }

    /// HANDLEMESSAGE of Figure 2.30.
    fn told(&mut self, levels: &Levels, now: Instant, out: &mut Vec<Message>) {
        let Some(known) = self.levels.filter(|_| self.is_active()) else { return };
        if levels.incarnation > known.incarnation {
            if self.stage == Stage::In {
                // Another gateway took over; what the last one told is believed until its lease ends.
                self.join(now, Span::ZERO);
                let wait = self.jitter(u32::MAX, self.config.retry);
                self.timer = Some(now + wait);
            }
        } else if levels.incarnation == known.incarnation && levels.seq > known.seq {
            self.levels = Some(*levels);
            self.review(now, out);
        }
    }

    /// Tells the gateway what the node can use, if that is worth telling and nothing is on its way.
    fn review(&mut self, now: Instant, out: &mut Vec<Message>) {
        if self.stage != Stage::In || self.pending.is_some() {
            return;
        }
        let (Some(held), Some(levels)) = (self.held, self.levels) else { return };
        let b = levels.levels[usize::from(held.share.class)].saturating_mul(held.share.weight.into());
        if self.told != Some((self.usable, levels.seq)) && self.is_worth_telling(&held, b) {
            self.tell(self.usable, now, out);
        }
    }

    /// `b` is what the client gets if it is good.
    fn is_worth_telling(&self, held: &Held, b: u64) -> bool {
        let (c, claim) = (self.usable.as_bps(), held.claim.as_bps());
        let part = |of: u64| (u128::from(of) * u128::from(self.config.threshold_percent) / 100) as u64;
        let uses = b.min(claim);
        let lacks = c < uses - part(uses);
        let grew = claim < b && c > claim && c - claim >= part(claim);
        let recovered = held.status == Status::Bad && c >= b;
        lacks || grew || recovered
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a client that holds 1000 bit/s of an equal share of so much tells that it can use `usable`.
    fn tells(threshold_percent: u8, usable: u64) -> bool {
        let mut client = Client::new(Config { threshold_percent, ..Config::new(NodeId(1), 7) }).unwrap();
        client.usable = Claim::bps(usable);
        let (share, claim, status) = (Share::default(), Claim::ALL, Status::Good);
        client.is_worth_telling(&Held { share, claim, status, said: claim, until: Instant::MAX }, 1000)
    }

    /// 2.3.2: a client lacks when it cannot use 20 % of what it holds. Figure 2.30 compares without a threshold.
    #[test]
    fn a_client_lacks_from_the_threshold_on() {
        assert_eq!([1000, 801, 800, 799].map(|usable| tells(20, usable)), [false, false, false, true]);
        assert_eq!([1001, 1000, 999].map(|usable| tells(0, usable)), [false, false, true]);
    }

    /// A client that gains tells it from the threshold on, while the claim it holds is below its part.
    #[test]
    fn a_client_that_gains_tells_it_from_the_threshold_on() {
        let tells = |claim: u64, usable: u64, part: u64| {
            let mut client = Client::new(Config::new(NodeId(1), 7)).unwrap();
            client.usable = Claim::bps(usable);
            let (share, claim, status) = (Share::default(), Claim::bps(claim), Status::Good);
            client.is_worth_telling(&Held { share, claim, status, said: claim, until: Instant::MAX }, part)
        };
        assert_eq!([499, 500, 599, 600].map(|usable| tells(500, usable, 1000)), [false, false, false, true]);
        assert!(!tells(1000, 5000, 1000), "it has its part");
    }

    /// A lease that ends at a time does not hold at that time.
    #[test]
    fn a_budget_is_believed_until_its_lease_ends() {
        let mut client = Client::new(Config::new(NodeId(1), 7)).unwrap();
        let (share, claim, status) = (Share::default(), Claim::ALL, Status::Good);
        let end = Instant::ZERO + Span::from_secs(10);
        client.held = Some(Held { share, claim, status, said: claim, until: end });
        client.levels = Some(Levels { incarnation: 1, seq: 1, levels: [1000; crate::coop::state::CLASSES] });
        let before = Instant::ZERO + Span::from_millis(9999);
        assert_eq!([before, end].map(|now| client.budget_bps(now)), [Some(1000), None]);
    }
}
