//! The client of C²LP: a node that asks for a budget and keeps to it (Figure 2.30; docs/reference/c2lp.md).
//!
//! | stage | what the client does |
//! |---|---|
//! | idle | nothing: no socket is open |
//! | joining | sends hello until an invitation comes, then hello with the invitation until it is admitted |
//! | in | reports what it can use when that changes, and renews its lease before it ends |
//! | leaving | sends goodbye a few times, since goodbye has no answer |
//!
//! A budget is valid for the lease of the last answer, counted from the time at which the request was first sent, so
//! that the gateway remembers the client for longer than the client uses its budget. After the lease [`Client::budget`]
//! is `None`: the node falls back to plain congestion control, as the source demands, and joins again. A client without
//! a lease brings its ticket alone, because the gateway may have given its budget to others.
//!
//! Another gateway does not know the leases of the one before. It is shown states, which are as old as the last answer,
//! while levels may have been broadcast since. Therefore a client that meets another gateway has no more than it had
//! until then, as long as such leases may last.
//!
//! The client uses no randomness: retries are spread by the node's id, and the host provides a number that no earlier
//! client of this node used.
//!
//! DIFFERENCE: a client lacks if it cannot use more than 20 % of what it holds (text of 2.3.2); Figure 2.30 compares
//! without a threshold (`threshold_percent = 0`). Pinned by `a_client_lacks_from_the_threshold_on`.

use super::message::{Answer, Levels, Message, Request};
use super::state::{Claim, NodeId, Share, Signed, Status, budget};
use crate::config::ConfigError;
use crate::units::{Instant, Rate, Span};

/// Number of goodbye messages that a leaving client sends.
const GOODBYES: u8 = 3;

/// Parameters of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The id of the node.
    pub node: NodeId,
    /// The node's share, signed by the operator; `None` if the operator gave it no ticket.
    pub ticket: Option<Signed>,
    /// A number that no earlier client of this node used and that others cannot guess: from a source of secrets, or in
    /// a simulation from its seed.
    pub nonce: u64,
    /// The interval after which a request is first repeated; it doubles with each repetition up to eight times this
    /// value.
    pub retry: Span,
    /// A change of the usable rate is reported from this many percent on.
    pub threshold_percent: u8,
}

impl Config {
    /// Creates a configuration with the defaults of docs/reference/c2lp.md.
    pub fn new(node: NodeId, nonce: u64) -> Self {
        Self { node, ticket: None, nonce, retry: Span::from_millis(250), threshold_percent: 20 }
    }

    /// Refuses parameters that do not work.
    ///
    /// # Errors
    /// Names the first parameter that is out of its range.
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
    /// The claim in this request.
    claim: Claim,
}

/// The grant of the last answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    share: Share,
    claim: Claim,
    status: Status,
    /// The claim which this grant answered.
    said: Claim,
    /// The time at which the lease ends.
    until: Instant,
}

/// The state machine of a client.
#[derive(Debug, Clone)]
pub struct Client {
    config: Config,
    stage: Stage,
    ask: u64,
    /// The state that the next request carries: the last one from the gateway, or the ticket.
    state: Option<Signed>,
    /// The current grant, while a lease runs.
    held: Option<Held>,
    /// What the client had when it met another gateway, in bits per second, and until when it has no more than that.
    most: Option<(u64, Instant)>,
    levels: Option<Levels>,
    /// The claim reported last, with the sequence number of the levels at that time.
    told: Option<(Claim, u64)>,
    /// c_i: the rate that the node can use.
    usable: Claim,
    pending: Option<Pending>,
    timer: Option<Instant>,
}

impl Client {
    /// Creates a client without open sockets.
    ///
    /// # Errors
    /// Names the first parameter that is out of its range.
    pub fn new(config: Config) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Self {
            stage: Stage::Idle,
            ask: config.nonce,
            state: config.ticket,
            held: None,
            most: None,
            levels: None,
            told: None,
            usable: Claim::ALL,
            pending: None,
            timer: None,
            config,
        })
    }

    /// The id of the node.
    pub fn node(&self) -> NodeId {
        self.config.node
    }

    /// The rate that the node may use now; `None` if no lease runs and the node's congestion control is on its own. A
    /// budget of zero is returned as 1 bit/s.
    pub fn budget(&self, now: Instant) -> Option<Rate> {
        self.budget_bps(now).map(Rate::from_bps)
    }

    /// The budget in bits per second as [`Client::budget`] returns it, except that a budget of zero is 0.
    pub fn budget_bps(&self, now: Instant) -> Option<u64> {
        let held = self.held.filter(|held| now < held.until)?;
        // A smaller claim that was just sent limits the budget at once. A claim which was answered before has no
        // effect.
        let said = self.pending.map(|p| p.claim).filter(|c| *c != held.said).unwrap_or(Claim::ALL);
        let most = self.most.filter(|(_, until)| now < *until).map_or(u64::MAX, |(most, _)| most);
        Some(given(held.share, held.claim.min(said), &self.levels?).min(most))
    }

    /// Good or bad; `None` if no lease runs.
    pub fn status(&self) -> Option<Status> {
        self.held.map(|held| held.status)
    }

    /// True from the opening of the first socket to the closing of the last.
    pub fn is_active(&self) -> bool {
        matches!(self.stage, Stage::Joining | Stage::In)
    }

    /// Reports that the first socket was opened.
    pub fn open(&mut self, now: Instant, out: &mut Vec<Message>) {
        if !self.is_active() {
            self.join(now, Span::ZERO);
            self.poll(now, out);
        }
    }

    /// Reports that the last socket was closed.
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

    /// Gives up what the client holds, because another one has it. Joins anew, without the state of before.
    pub fn lose(&mut self, now: Instant) {
        if self.is_active() {
            self.held = None;
            self.join(now, Span::ZERO);
        }
    }

    /// Sets the rate that the node can use (CSI, 2.3); `None` means that it can use any rate.
    pub fn set_usable(&mut self, usable: Option<Rate>, now: Instant, out: &mut Vec<Message>) {
        self.usable = usable.into();
        self.review(now, out);
    }

    /// Processes a message of the gateway and appends the messages to send to `out`.
    pub fn handle(&mut self, message: &Message, now: Instant, out: &mut Vec<Message>) {
        match message {
            Message::AckHello(answer) | Message::AckUsed(answer) => self.answered(answer, now, out),
            Message::AvailBw(levels) => self.told(levels, now, out),
            _ => {}
        }
    }

    /// Does what is due at `now`: ends leases and repeats or sends requests.
    pub fn poll(&mut self, now: Instant, out: &mut Vec<Message>) {
        if self.held.is_some_and(|held| held.until <= now) {
            // The lease ended without an answer: plain congestion control applies, and the client joins again.
            self.held = None;
            self.join(now, Span::ZERO);
        }
        self.most = self.most.filter(|(_, until)| now < *until);
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

    /// The time of the next call of [`Client::poll`]. Each call of a method may change it.
    pub fn next_timeout(&self) -> Option<Instant> {
        let (lease, most) = (self.held.map(|held| held.until), self.most.map(|(_, until)| until));
        [self.timer, lease, most].into_iter().flatten().min()
    }

    /// Starts to join after `wait`; keeps the state that an earlier gateway sent, while its lease runs.
    fn join(&mut self, now: Instant, wait: Span) {
        (self.stage, self.pending, self.timer) = (Stage::Joining, None, Some(now + wait));
        if self.held.is_none() || self.state.is_none_or(|signed| signed.state().status == Status::Invited) {
            (self.state, self.most) = (self.config.ticket, None);
        }
    }

    /// Notes what the client has if a message is not from the gateway that gave it its levels.
    fn meet(&mut self, incarnation: u64, now: Instant) {
        if self.levels.is_some_and(|known| known.incarnation != incarnation) {
            self.most = self.budget_bps(now).map(|most| (most, Instant::MAX));
        }
    }

    fn hello(&mut self, now: Instant, out: &mut Vec<Message>) {
        self.ask = self.ask.wrapping_add(1);
        let (node, ask, state) = (self.config.node, self.ask, self.state);
        let message = Message::ClientHello { node, ask, state };
        self.send(Pending { message, ask, first: now, sent: 0, claim: Claim::ALL }, now, out);
    }

    /// Sends USED_BW with `claim`.
    fn tell(&mut self, claim: Claim, now: Instant, out: &mut Vec<Message>) {
        let Some(state) = self.state else { return };
        self.ask = self.ask.wrapping_add(1);
        self.told = self.levels.map(|levels| (claim, levels.seq));
        let (node, ask) = (self.config.node, self.ask);
        let message = Message::UsedBw(Request { node, ask, state }, claim);
        self.send(Pending { message, ask, first: now, sent: 0, claim }, now, out);
    }

    fn goodbye(&mut self, left: u8, now: Instant, out: &mut Vec<Message>) {
        if let Some(state) = self.state {
            self.ask = self.ask.wrapping_add(1);
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

    /// A random-looking part of `wait`, up to half of it, which differs between nodes and turns, so that clients that
    /// lost their gateway at the same time do not all ask at the same time.
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
        self.meet(state.incarnation, now);
        self.pending = None;
        self.state = Some(answer.state);
        match state.status {
            Status::Good | Status::Bad => self.enter(answer, pending, now, out),
            // The gateway invites the client, perhaps again: the current budget stays valid until its lease ends.
            Status::Invited => {
                self.stage = Stage::Joining;
                self.hello(now, out);
            }
            Status::Ticket => self.join(now, self.config.retry),
        }
    }

    /// Enters the stage `in`: the grant is valid from the time of the request until its lease ends.
    fn enter(&mut self, answer: &Answer, asked: Pending, now: Instant, out: &mut Vec<Message>) {
        let state = answer.state.state();
        let (share, claim, status) = (state.share, state.claim, state.status);
        self.held = Some(Held { share, claim, status, said: asked.claim, until: asked.first + answer.lease });
        self.most = self.most.map(|(most, until)| (most, until.min(asked.first + answer.lease)));
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

    /// Processes new levels (HANDLEMESSAGE of Figure 2.30).
    fn told(&mut self, levels: &Levels, now: Instant, out: &mut Vec<Message>) {
        let Some(known) = self.levels.filter(|_| self.is_active()) else { return };
        if levels.incarnation > known.incarnation {
            if self.stage == Stage::In {
                // Another gateway took over; the grant of the last gateway stays valid until its lease ends.
                self.meet(levels.incarnation, now);
                self.join(now, Span::ZERO);
                let wait = self.jitter(u32::MAX, self.config.retry);
                self.timer = Some(now + wait);
            }
        } else if levels.incarnation == known.incarnation && levels.seq > known.seq {
            self.levels = Some(*levels);
            self.review(now, out);
        }
    }

    /// Reports what the node can use, if the change is large enough and no request is pending.
    fn review(&mut self, now: Instant, out: &mut Vec<Message>) {
        if self.stage != Stage::In || self.pending.is_some() {
            return;
        }
        let (Some(held), Some(levels)) = (self.held, self.levels) else { return };
        let b = given(held.share, Claim::ALL, &levels);
        if self.told != Some((self.usable, levels.seq)) && self.is_worth_telling(&held, b) {
            self.tell(self.usable, now, out);
        }
    }

    /// True if the usable rate differs enough from what the client holds. `b` is the budget of the client if it is
    /// good.
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

/// The budget of a client at these levels.
fn given(share: Share, claim: Claim, levels: &Levels) -> u64 {
    budget(share, claim, levels.levels[usize::from(share.class)], levels.kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::Kept;
    use crate::coop::state::CLASSES;

    /// True if a client which holds 1000 bit/s of an equal share reports that it can use `usable` bit/s.
    fn tells(threshold_percent: u8, usable: u64) -> bool {
        let mut client = Client::new(Config { threshold_percent, ..Config::new(NodeId(1), 7) }).unwrap();
        client.usable = Claim::bps(usable);
        let (share, claim, status) = (Share::default(), Claim::ALL, Status::Good);
        client.is_worth_telling(&Held { share, claim, status, said: claim, until: Instant::MAX }, 1000)
    }

    /// 2.3.2: a client lacks if it cannot use 20 % of what it holds. Figure 2.30 compares without a threshold.
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

    /// The waits of [`Config::retry`], each with up to half of it more.
    #[test]
    fn a_request_without_an_answer_is_repeated_ever_more_rarely() {
        let mut client = Client::new(Config::new(NodeId(1), 7)).unwrap();
        let (mut now, mut out) = (Instant::ZERO, Vec::new());
        client.open(now, &mut out);
        for (sent, ms) in (1..).zip([250, 500, 1000, 2000, 2000]) {
            assert_eq!(out.len(), sent);
            let next = client.next_timeout().unwrap();
            let wait = next.since(now);
            let expected = Span::from_millis(ms)..=Span::from_millis(ms + ms / 2);
            assert!(expected.contains(&wait), "after {sent}: {wait}");
            now = next;
            client.poll(now, &mut out);
        }
    }

    /// The first number is 64 random bits (docs/reference/c2lp.md), which may be the largest.
    #[test]
    fn numbers_of_requests_go_on_after_the_largest() {
        let mut client = Client::new(Config::new(NodeId(1), u64::MAX)).unwrap();
        let mut out = Vec::new();
        client.open(Instant::ZERO, &mut out);
        assert_eq!(out, [Message::ClientHello { node: NodeId(1), ask: 0, state: None }]);
    }

    /// It then asks with its ticket alone: its state was that of the other one.
    #[test]
    fn what_another_has_is_given_up_at_once() {
        let mut client = Client::new(Config::new(NodeId(1), 7)).unwrap();
        let (share, claim, status) = (Share::default(), Claim::ALL, Status::Good);
        client.lose(Instant::ZERO);
        assert!(!client.is_active(), "who has joined nowhere has nothing to lose");
        client.stage = Stage::In;
        client.held = Some(Held { share, claim, status, said: claim, until: Instant::MAX });
        client.levels = Some(Levels { incarnation: 1, seq: 1, levels: [1000; CLASSES], kept: Kept::ALL });
        client.lose(Instant::ZERO);
        assert_eq!(client.budget_bps(Instant::ZERO), None);
        let mut out = Vec::new();
        client.poll(Instant::ZERO, &mut out);
        assert_eq!(out, [Message::ClientHello { node: NodeId(1), ask: 8, state: None }]);
    }

    /// A lease that ends at a time does not hold at that time.
    #[test]
    fn a_budget_is_believed_until_its_lease_ends() {
        let mut client = Client::new(Config::new(NodeId(1), 7)).unwrap();
        let (share, claim, status) = (Share::default(), Claim::ALL, Status::Good);
        let end = Instant::ZERO + Span::from_secs(10);
        client.held = Some(Held { share, claim, status, said: claim, until: end });
        client.levels = Some(Levels { incarnation: 1, seq: 1, levels: [1000; CLASSES], kept: Kept::ALL });
        let before = Instant::ZERO + Span::from_millis(9999);
        assert_eq!([before, end].map(|now| client.budget_bps(now)), [Some(1000), None]);
    }
}
