//! The gateway's role in a thread of its own, beside the program that owns it.

use crate::gateway::{Contested, GAP, Grant, Role, Status, defaults, validate};
use crate::roster::Roster;
use crate::standby::Watcher;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use penstock_core::config::ConfigError;
use penstock_core::coop::gateway::Config;
use penstock_core::coop::policy::{Policy, Sharing};
use penstock_core::coop::state::CLASSES;
use penstock_core::coop::{Floors, Share};
use penstock_core::units::{Instant, Rate, Span};
use penstock_linux::udp::{Side as _, Socket};
use serde::Deserialize;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often the status is made anew.
const FRESH: Span = Span::from_millis(200);
/// Longest sleep.
const LONGEST: Span = Span::from_millis(200);
/// The least time between two looks at all budgets, for each node that has one.
const EACH: Span = Span::from_micros(10);

/// The table `[c2ml]` of a gateway's file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Keys {
    /// The address at which nodes are served.
    pub listen: SocketAddr,
    /// The directory with the keys of the gateway and what it knows of its nodes.
    pub directory: PathBuf,
    /// The rule by which the upload is shared.
    pub sharing: Sharing,
    /// DyBRA: the smallest change of a claim that counts, in percent.
    pub threshold_percent: u8,
    /// Priority: the least part for the classes below, in percent.
    pub reserve_percent: u8,
    /// The rates that nodes without an own floor have before weights divide the rest, by class.
    pub floors: Floors,
    /// The part of the rate of the upload that is shared, in percent.
    pub percent: u8,
    /// For how long a budget is valid.
    pub lease: Span,
    /// How often unchanged levels are sent again.
    pub advertise: Span,
    /// Largest number of nodes at a time.
    pub most: u32,
    /// True if the gateway holds hosts to their budgets.
    pub enforce: bool,
    /// The gateway in whose place this one serves while it does not answer.
    pub standby: Option<SocketAddr>,
}

impl Default for Keys {
    fn default() -> Self {
        let Config { policy, lease, advertise, max_clients, .. } = defaults(Rate::from_bps(0));
        let Policy { sharing, threshold_percent, reserve_percent, floors, .. } = policy;
        Self {
            listen: SocketAddr::from(([0, 0, 0, 0], 7443)),
            directory: "/var/lib/penstock/c2ml".into(),
            sharing,
            threshold_percent,
            reserve_percent,
            floors,
            percent: 100,
            lease,
            advertise,
            most: max_clients,
            enforce: false,
            standby: None,
        }
    }
}

impl Keys {
    /// The settings of the role for a link whose upload has this rate.
    pub fn settings(&self, upload: Rate) -> Config {
        let Self { sharing, threshold_percent, reserve_percent, floors, lease, advertise, most, .. } = *self;
        let policy = Policy { sharing, threshold_percent, reserve_percent, literal: false, floors };
        let gap = GAP.min(advertise);
        Config { policy, lease, advertise, gap, max_clients: most, ..defaults(self.shared(upload)) }
    }

    /// Refuses floors of which not even one fits into what is shared of this upload.
    pub fn check_floors(&self, upload: Rate) -> Result<(), ConfigError> {
        let (shared, policy) = (self.shared(upload), self.settings(upload).policy);
        for class in 0..CLASSES as u8 {
            let share = Share { class, ..Share::default() };
            let floor = self.floors.of(class);
            let why = || format!("class {class} has a floor of {floor}, but {shared} is all that is shared");
            policy.check_floors(shared, [share]).map_err(|e| ConfigError::new(e.key, why()))?;
        }
        Ok(())
    }

    /// The part of an upload that is shared.
    pub fn shared(&self, upload: Rate) -> Rate {
        Rate::from_bps((u128::from(upload.as_bps()) * u128::from(self.percent) / 100) as u64)
    }

    /// Refuses values that do not work. The error names the first key that is out of its range.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let wrong = |key, message: &str| Err(ConfigError::new(key, message));
        if !(1..=100).contains(&self.percent) {
            return wrong("percent", "must be 1 to 100");
        }
        if self.enforce && self.percent == 100 {
            return wrong(
                "percent",
                "leaves nothing for hosts without an agent; with enforce = true it must be 1 to 99",
            );
        }
        if self.standby.is_some_and(|of| of.port() == 0 || of.ip().is_unspecified()) {
            let of = "must be address and port of the gateway in whose place this one serves, such as 192.0.2.1:7443";
            return wrong("standby", of);
        }
        validate(&self.settings(Rate::from_bps(1_000_000))).map_err(|e| match e.key {
            // The state machine has its own word for it.
            "max_clients" => ConfigError::new("most", "must be 1 to 1048576"),
            _ => e,
        })
    }
}

#[derive(Debug, Default)]
struct Shared {
    rate: AtomicU64,
    end: AtomicBool,
    status: Mutex<Option<Status>>,
    events: Mutex<Vec<String>>,
    /// The budgets of all nodes, if they have changed since somebody asked.
    grants: Mutex<Option<Vec<Grant>>>,
    /// True if `grants` may hold something.
    granted: AtomicBool,
}

/// A role that serves.
#[derive(Debug)]
pub struct Served {
    keys: Keys,
    shared: Arc<Shared>,
    /// Rung when the thread has to look at what is shared.
    bell: Arc<EventFd>,
    thread: Option<JoinHandle<()>>,
    address: SocketAddr,
}

impl Served {
    /// Begins to serve. With `tells`, [`Served::grants`] has the budgets for whoever counts or enforces them. The error is a
    /// sentence.
    pub fn start(keys: &Keys, upload: Rate, tells: bool) -> Result<Self, String> {
        let directory = keys.directory.display();
        let roster = Roster::open(&keys.directory).map_err(|e| format!("the directory {directory}: {e}"))?;
        let socket = Socket::bind(keys.listen).map_err(|e| format!("cannot listen at {}: {e}", keys.listen))?;
        socket.make_room(keys.most);
        let address = socket.udp().local_addr().map_err(|e| e.to_string())?;
        let mut role = Role::new(keys.settings(upload), roster, Instant::ZERO).map_err(|e| e.to_string())?;
        let watcher = keys.standby.map(|of| {
            role.serve(false, Instant::ZERO).map_err(|e| e.to_string())?;
            Watcher::open(of, Instant::ZERO).map_err(|e| format!("cannot watch {of}: {e}"))
        });
        let watcher = watcher.transpose()?;
        let bell = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC);
        let bell = Arc::new(bell.map_err(|e| e.to_string())?);
        let rate = AtomicU64::new(keys.shared(upload).as_bps());
        let shared = Arc::new(Shared { rate, ..Shared::default() });
        let (own, heard) = (shared.clone(), bell.clone());
        let teller = tells.then(Teller::default);
        let serve = move || serve(role, socket, &own, &heard, teller, watcher);
        let thread = std::thread::Builder::new().name("c2ml".into()).spawn(serve);
        let thread = Some(thread.map_err(|e| e.to_string())?);
        Ok(Self { keys: keys.clone(), shared, bell, thread, address })
    }

    /// The address at which it serves.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Shares what is to be shared of another upload from now on.
    pub fn set_upload(&mut self, upload: Rate) {
        let rate = self.keys.shared(upload);
        if self.shared.rate.swap(rate.as_bps(), Ordering::Relaxed) != rate.as_bps() {
            let _ = self.bell.write(1);
        }
    }

    /// The status, at most 0.2 s old; `None` at the very beginning, or if the thread has failed.
    pub fn status(&self) -> Option<Status> {
        self.shared.status.lock().unwrap_or_else(PoisonError::into_inner).clone().filter(|_| !self.has_failed())
    }

    /// What is wrong now, as sentences.
    pub fn marks(&self) -> Vec<String> {
        if self.has_failed() {
            return vec!["budgets for hosts have stopped by a fault of this program; hosts go on without".into()];
        }
        let status = self.shared.status.lock().unwrap_or_else(PoisonError::into_inner);
        let told = |one: &Contested| {
            let Contested { node, name, holder, refused } = one;
            let holder = holder.map_or_else(|| "one".to_owned(), |holder| holder.to_string());
            format!(
                "node {node} ({name:?}) is used by two hosts: {holder} has its budget, {refused} was refused; remove \
                 nodes/{node}.json, start anew, and enrol the right one"
            )
        };
        status.iter().flat_map(|status| &status.contested).map(told).collect()
    }

    /// True if the thread has ended by itself.
    pub fn has_failed(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Returns the budgets of all nodes if they have changed since the last call. A call without a change costs one load.
    /// If the thread has failed, nobody has a budget any more.
    pub fn grants(&self) -> Option<Vec<Grant>> {
        if !self.shared.granted.load(Ordering::Relaxed) || !self.shared.granted.swap(false, Ordering::Acquire) {
            return None;
        }
        self.shared.grants.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns what has happened since the last call.
    pub fn events(&self) -> Vec<String> {
        std::mem::take(&mut *self.shared.events.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.shared.end.store(true, Ordering::Relaxed);
        let _ = self.bell.write(1);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Tells budgets to whoever enforces them, at most as often as their number allows.
#[derive(Debug, Default)]
struct Teller {
    told: Vec<Grant>,
    next: Instant,
}

impl Teller {
    /// Looks at all budgets if that is due; returns when it is due otherwise.
    fn turn(&mut self, role: &mut Role, shared: &Shared, now: Instant) -> Option<Instant> {
        if now < self.next {
            return Some(self.next);
        }
        let grants = role.grants();
        self.next = now + EACH * grants.len() as u64;
        if grants != self.told {
            shared.tell(grants.clone());
            self.told = grants;
        }
        None
    }
}

impl Shared {
    fn tell(&self, grants: Vec<Grant>) {
        *self.grants.lock().unwrap_or_else(PoisonError::into_inner) = Some(grants);
        self.granted.store(true, Ordering::Release);
    }
}

/// Takes all budgets back when the thread ends, however that happens.
struct End<'a>(&'a Shared);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.tell(Vec::new());
    }
}

fn serve(
    mut role: Role,
    mut socket: Socket,
    shared: &Shared,
    bell: &EventFd,
    mut teller: Option<Teller>,
    mut watcher: Option<Watcher>,
) {
    let _end = End(shared);
    let epoch = std::time::Instant::now();
    let mut now = || Instant::from_nanos(epoch.elapsed().as_nanos() as u64);
    let mut next_status = Instant::ZERO;
    while !shared.end.load(Ordering::Relaxed) {
        role.set_rate(Rate::from_bps(shared.rate.load(Ordering::Relaxed)), now());
        if let Some(watcher) = &mut watcher
            && role.serve(!watcher.turn(now()), now()).is_err()
        {
            return;
        }
        socket.turn(&mut role, &mut now);
        if now() >= next_status {
            next_status = now() + FRESH;
            let status = role.status(now());
            *shared.status.lock().unwrap_or_else(PoisonError::into_inner) = Some(status);
            let events = std::iter::from_fn(|| role.event());
            shared.events.lock().unwrap_or_else(PoisonError::into_inner).extend(events);
        }
        let tells = teller.as_mut().and_then(|teller| teller.turn(&mut role, shared, now()));
        let asks = watcher.as_ref().map(Watcher::next_timeout);
        let next = [role.next_timeout(), tells, asks].into_iter().flatten().min();
        let wait = next.map_or(LONGEST, |at| at.since(now())).min(LONGEST);
        if sleep(&socket, bell, wait).is_err() {
            return;
        }
        let _ = bell.read();
    }
}

fn sleep(socket: &Socket, bell: &EventFd, wait: Span) -> io::Result<()> {
    let mut ready =
        [PollFd::new(socket.udp().as_fd(), PollFlags::POLLIN), PollFd::new(bell.as_fd(), PollFlags::POLLIN)];
    match ppoll(&mut ready, Some(Duration::from_nanos(wait.as_nanos()).into()), None) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
        Err(e) => Err(e.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_are_looked_at_when_that_is_due_and_not_before() {
        let (mut role, path) = crate::gateway::tests::role("teller");
        let (shared, next) = (Shared::default(), Instant::from_nanos(10_000));
        let gone = Grant { node: 7, address: [10, 0, 0, 7].into(), budget: Rate::from_bps(1_000_000) };
        let mut teller = Teller { told: vec![gone], next };
        assert_eq!(teller.turn(&mut role, &shared, Instant::from_nanos(9_999)), Some(next));
        assert_eq!(*shared.grants.lock().unwrap(), None);
        assert_eq!(teller.turn(&mut role, &shared, next), None);
        assert_eq!(*shared.grants.lock().unwrap(), Some(Vec::new()));
        std::fs::remove_dir_all(path).unwrap();
    }
}
