//! How the loop waits: how long before a packet is due it wakes up, for how long it lets packets gather, and when it has
//! polled for long enough.

use penstock_core::units::{Instant, Span};

/// A sleep takes more time of the processor than this: two switches of tasks, and a timer.
const SHORTEST: Span = Span::from_micros(10);
/// A wake-up so soon after its time is on time, as all are in virtual time, where reading a clock takes a little.
const PROMPT: Span = Span::from_micros(5);
/// A machine that wakes the thread later than this is busy, and polling would take its time from others.
const LONGEST: Span = Span::from_micros(200);
/// A wake-up that is later than the margin makes it longer by this, ...
const UP: Span = Span::from_micros(9);
/// ... and one that is not makes it shorter by this: in balance one of ten is later.
const DOWN: Span = Span::from_micros(1);
/// Packets that come faster than a wake-up for each of them is worth gather for so long.
const GATHER: Span = Span::from_micros(50);
/// After so long without a sleep the loop rests instead of polling. A thread of real-time priority that never sleeps is
/// stopped by the kernel for 50 ms in each second (/proc/sys/kernel/sched_rt_runtime_us).
const POLLS: Span = Span::from_millis(1);

/// A loop with so many processors of its own polls for up to [`LONGEST`].
const PROCESSORS: usize = 2;

/// How long before a packet is due the loop stops sleeping, and polls until then. It is the time that this machine takes to
/// wake the thread up, of which nine of ten wake-ups take less: a processor that sleeps deeper takes longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Margin {
    span: Span,
    most: Span,
    /// The packet that was noted last: each counts once.
    due: Instant,
}

impl Default for Margin {
    fn default() -> Self {
        Self { span: SHORTEST, most: LONGEST, due: Instant::ZERO }
    }
}

impl Margin {
    fn before(self, due: Instant) -> Instant {
        due - self.span
    }

    /// Notes that the loop looked at `now`, and once more at `woken` after a sleep or none, while this packet was the next.
    fn note(&mut self, due: Instant, now: Instant, woken: Instant) {
        let early = self.before(due);
        if due == self.due || woken < early {
            return;
        }
        self.due = due;
        let (slept, late) = (now < early, woken.since(early));
        self.span = if !slept {
            // Without a sleep nothing is known of wake-ups; a shorter margin lets one happen.
            (self.span - DOWN).max(self.span.min(SHORTEST))
        } else if late > self.span + PROMPT {
            (self.span + UP).min(self.most)
        } else {
            self.span - DOWN
        };
    }

    /// True if wake-ups take time. In virtual time they do not, and nothing is gained by fewer of them.
    fn is_needed(self) -> bool {
        self.span > Span::ZERO
    }
}

/// Lets packets gather in the kernel while they come fast, instead of being woken up by each of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Gather {
    /// When packets last ended a sleep, or had gathered.
    woken: Instant,
    fast: bool,
    held: bool,
}

impl Gather {
    /// Notes that packets were there at `now`; `slept` tells whether they ended a sleep.
    fn note(&mut self, now: Instant, slept: bool) {
        if slept || self.held {
            self.fast = now.since(self.woken) < GATHER * 2;
            (self.woken, self.held) = (now, false);
        }
    }

    /// Returns until when the loop sleeps although packets come; `None` if it wakes up for the next one.
    fn holds(&mut self, now: Instant) -> Option<Instant> {
        let until = self.woken + GATHER;
        let holds = self.fast && until > now;
        self.held |= holds;
        holds.then_some(until)
    }
}

/// Ends long polling, as when packets are due faster than a sleep is worth: packets then leave a few at a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Rest {
    /// When the loop last slept because nothing was due.
    slept: Instant,
    idle: bool,
}

impl Rest {
    /// Notes that the loop looked at `now`, after a sleep or none, and whether there was something to do.
    fn note(&mut self, now: Instant, slept: bool, found: bool) {
        self.slept = if slept { now } else { self.slept };
        self.idle = !slept && !found;
    }

    /// Returns until when the loop, which would poll, sleeps; `None` if it may poll. After a rest it looks first.
    fn until(&mut self, now: Instant) -> Option<Instant> {
        let rests = std::mem::take(&mut self.idle) && now.since(self.slept) > POLLS;
        rests.then_some(now + GATHER)
    }
}

/// How the loop waits once: it polls and looks for packets, unless something else is said.
#[derive(Debug, Clone, Copy)]
pub struct Pause {
    /// How long it sleeps; zero if it polls.
    pub timeout: Span,
    /// Whether packets that come end the sleep.
    pub looks: bool,
    rests: bool,
    since: Instant,
    due: Option<Instant>,
}

impl Default for Pause {
    fn default() -> Self {
        Self { timeout: Span::ZERO, looks: true, rests: false, since: Instant::ZERO, due: None }
    }
}

/// What is known of earlier waits.
#[derive(Debug, Clone, Copy, Default)]
pub struct Waits {
    margin: Margin,
    gather: Gather,
    rest: Rest,
}

impl Waits {
    /// Returns what a loop knows at first that is one of `loops` in this process, on a machine with so many `processors`.
    /// Loops which poll take them from each other and from hosts, so that packets are later than without.
    pub fn among(loops: usize, processors: usize) -> Self {
        let most = if loops * PROCESSORS <= processors { LONGEST } else { SHORTEST };
        Self { margin: Margin { most, ..Margin::default() }, ..Self::default() }
    }

    /// Decides how to wait from `now` on, for the packet that is `due` next and for `other` events.
    pub fn pause(&mut self, now: Instant, due: Option<Instant>, other: Instant) -> Pause {
        let spares = self.margin.is_needed();
        let gathers = if spares { self.gather.holds(now) } else { None };
        let early = due.map(|due| self.margin.before(due));
        let next = [early, gathers].into_iter().flatten().fold(other, Instant::min);
        let natural = next.since(now);
        let polls = natural <= SHORTEST;
        let rests = if spares && polls { self.rest.until(now) } else { None };
        let timeout = rests.map_or(if polls { Span::ZERO } else { natural }, |until| until.since(now));
        Pause { timeout, looks: gathers.is_none() && rests.is_none(), rests: rests.is_some(), since: now, due }
    }

    /// Notes how a wait ended at `woken`: whether the loop `slept`, and whether packets `came`.
    pub fn note(&mut self, pause: &Pause, woken: Instant, slept: bool, came: bool) {
        if came {
            self.gather.note(woken, slept);
        }
        if !pause.rests {
            self.rest.note(woken, pause.timeout > Span::ZERO, came);
        }
        if let Some(due) = pause.due {
            self.margin.note(due, pause.since, woken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(us: u64) -> Span {
        Span::from_micros(us)
    }

    /// The loop sleeps until the margin before each packet, which comes `period` after the one before, and wakes up late.
    fn margin_after(turns: u64, period: u64, late: impl Fn(u64) -> u64, mut each: impl FnMut(Span, Span)) -> Margin {
        let mut margin = Margin::default();
        for turn in 1..=turns {
            let (due, late) = (Instant::ZERO + us(turn * period), us(late(turn)));
            each(margin.span, late);
            margin.note(due, due - us(period), margin.before(due) + late);
            margin.note(due, due - us(1), due);
        }
        margin
    }

    /// A machine whose wake-ups take 1 to 100 us, each as often: nine of ten are at most 5 us later than a margin of 85 us.
    #[test]
    fn nine_of_ten_wake_ups_keep_the_margin() {
        let (mut turn, mut sum, mut late) = (0, Span::ZERO, 0);
        margin_after(
            20_000,
            1000,
            |turn| turn * 37 % 100 + 1,
            |margin, took| {
                turn += 1;
                if turn > 10_000 {
                    sum = sum + margin;
                    late += u32::from(took > margin + PROMPT);
                }
            },
        );
        assert!((us(80)..us(90)).contains(&sum.div(10_000)), "{sum:?}");
        assert!((900..1100).contains(&late), "{late}");
    }

    #[test]
    fn the_margin_has_bounds_and_shrinks_when_nobody_sleeps() {
        let margin = |turns, period, late: u64| margin_after(turns, period, |_| late, |_, _| ()).span;
        assert_eq!(margin(100, 10_000, 5000), LONGEST, "a busy machine");
        assert_eq!(margin(1000, 1000, 5), Span::ZERO, "one that wakes threads at once");
        let mut never = Margin { span: us(100), ..Margin::default() };
        for turn in 1..=50 {
            let due = Instant::ZERO + us(turn * 80);
            (0..80).for_each(|left| never.note(due, due - us(80 - left), due - us(79 - left)));
        }
        assert!(
            never.is_needed() && never.span < us(80),
            "a packet each 80 us: there must be a sleep between two again, not {never:?}"
        );
    }

    #[test]
    fn loops_that_share_processors_hardly_poll() {
        let late = |waits: Waits| {
            let mut margin = waits.margin;
            for turn in 1..1000 {
                let due = Instant::ZERO + us(turn * 1000);
                margin.note(due, due - us(1000), margin.before(due) + us(150));
            }
            margin.span
        };
        assert_eq!(late(Waits::among(7, 2)), SHORTEST);
        assert_eq!(late(Waits::among(2, 2)), SHORTEST);
        assert!(late(Waits::among(1, 2)) > us(140));
        assert!(late(Waits::among(2, 4)) > us(140));
    }

    #[test]
    fn a_sleep_that_a_packet_or_another_event_ended_says_nothing() {
        let mut margin = Margin { span: us(50), ..Margin::default() };
        let due = Instant::ZERO + us(1000);
        margin.note(due, due - us(900), due - us(400));
        assert_eq!(margin, Margin { span: us(50), ..Margin::default() });
    }

    #[test]
    fn who_polls_in_vain_for_long_rests_and_then_looks() {
        let at = |time: u64| Instant::ZERO + us(time);
        let mut rest = Rest::default();
        rest.note(at(5000), true, false);
        for time in 5001..6000 {
            assert_eq!(rest.until(at(time)), None, "{time}");
            rest.note(at(time), false, false);
        }
        assert_eq!(rest.until(at(6001)), Some(at(6051)));
        assert_eq!(rest.until(at(6052)), None, "there may be packets");
        for (time, slept, found, until, why) in [
            (6053, false, true, None, "there were packets, and there may be more"),
            (6091, false, false, Some(6142), "there were none"),
            (7000, true, false, None, "it has slept"),
            (7001, false, false, None, "it has slept a short time ago"),
        ] {
            rest.note(at(time), slept, found);
            assert_eq!(rest.until(at(time + 1)), until.map(at), "{why}");
        }
    }

    /// Packets are fast if they end sleeps within twice the time for which they may gather. They then gather from the last of
    /// them on, and what was held is noted even if no sleep ended. Times are in nanoseconds; each row has when packets were
    /// there, whether they ended a sleep, when the loop looks next, and until when it then sleeps.
    #[test]
    fn packets_gather_while_they_end_sleeps_soon_after_each_other() {
        let at = |time: u64| Instant::ZERO + Span::from_nanos(time);
        let mut gather = Gather { woken: at(900_000), ..Gather::default() };
        for (time, slept, looks, until) in [
            (1_000_000, true, 1_000_000, None),
            (1_099_999, true, 1_149_998, Some(1_149_999)),
            (1_149_999, false, 1_199_998, Some(1_199_999)),
            (1_300_000, true, 1_301_000, None),
            (1_310_000, false, 1_311_000, None),
            (1_310_001, true, 1_360_001, None),
        ] {
            gather.note(at(time), slept);
            assert_eq!(gather.clone().holds(at(looks)), until.map(at), "{time}");
            // Another event may end the sleep, and the next one goes on with it.
            let holds = [(); 2].map(|()| gather.holds(at(looks)).is_some());
            assert_eq!(holds, [gather.held; 2], "{time}");
            assert_eq!(gather.clone().holds(at(time + 50_000)), None, "{time}");
        }
    }
}
