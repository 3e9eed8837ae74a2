//! Threads that take one item of work after another beside the thread which asks for it.
//!
//! That thread works as well, and at the end waits only for items which another thread has begun: a thread which the machine
//! has not woken yet, or which a fork has left behind, delays nobody.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// What threads do with an item.
pub trait Work: Send + 'static {
    /// Does what is to be done.
    fn work(&mut self);
    /// Notes that `work` has panicked.
    fn broken(&mut self);
}

/// The items, and how far the threads are.
#[derive(Debug)]
struct Shared<T> {
    items: Vec<Mutex<T>>,
    /// The next item that nobody has begun, and the number of those that are done.
    next: AtomicUsize,
    done: AtomicUsize,
    /// The number of the round; 0 means that the threads are to end.
    round: Mutex<u64>,
    begins: Condvar,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Work> Shared<T> {
    fn work(&self) {
        while let Some(item) = self.items.get(self.next.fetch_add(1, Ordering::AcqRel)) {
            let mut item = locked(item);
            if catch_unwind(AssertUnwindSafe(|| item.work())).is_err() {
                item.broken();
            }
            drop(item);
            self.done.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn work_in_rounds(&self) {
        let mut last = 1;
        loop {
            let idle = |round: &mut u64| *round == last;
            last = *self.begins.wait_while(locked(&self.round), idle).unwrap_or_else(PoisonError::into_inner);
            if last == 0 {
                return;
            }
            self.work();
        }
    }
}

/// Items of work and the threads for them.
#[derive(Debug)]
pub struct Pool<T: Work> {
    shared: Arc<Shared<T>>,
    threads: Vec<JoinHandle<()>>,
    /// The process in which the threads are.
    process: u32,
}

impl<T: Work> Pool<T> {
    /// Creates a pool in which `threads` threads work, the caller's among them.
    pub fn new(items: Vec<T>, threads: usize) -> Self {
        let count = items.len();
        let shared = Arc::new(Shared {
            items: items.into_iter().map(Mutex::new).collect(),
            next: AtomicUsize::new(count),
            done: AtomicUsize::new(count),
            round: Mutex::new(1),
            begins: Condvar::new(),
        });
        let work = |_| {
            let shared = shared.clone();
            std::thread::spawn(move || shared.work_in_rounds())
        };
        let threads = (1..threads.min(count)).map(work).collect();
        Self { shared, threads, process: std::process::id() }
    }

    /// True if threads wait for rounds: not in a process that was forked off theirs.
    fn has_threads(&self) -> bool {
        !self.threads.is_empty() && self.process == std::process::id()
    }

    /// Calls `look` with each item in order, between rounds.
    pub fn each(&self, mut look: impl FnMut(usize, &mut T)) {
        self.shared.items.iter().enumerate().for_each(|(index, item)| look(index, &mut locked(item)));
    }

    /// Calls `look` with one item, between rounds; `None` if it does not exist.
    pub fn one<R>(&self, index: usize, look: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.shared.items.get(index).map(|item| look(&mut locked(item)))
    }

    /// Lets the work of every item be done.
    pub fn round(&mut self) {
        let (shared, has_threads) = (&self.shared, self.has_threads());
        shared.done.store(0, Ordering::Release);
        shared.next.store(0, Ordering::Release);
        if has_threads {
            *locked(&shared.round) += 1;
            shared.begins.notify_all();
        }
        shared.work();
        while shared.done.load(Ordering::Acquire) < shared.items.len() {
            std::thread::yield_now();
        }
    }
}

impl<T: Work> Drop for Pool<T> {
    fn drop(&mut self) {
        if self.has_threads() {
            *locked(&self.shared.round) = 0;
            self.shared.begins.notify_all();
            for thread in self.threads.drain(..) {
                let _ = thread.join(); // its panics were caught
            }
        }
    }
}
