//! What a run takes charge of before the first packet: queues, rules, the guard, and descriptors to wait for.

use crate::error::Error;
use crate::file::{File, Keys};
use crate::guard::Guard;
use crate::rules::{Chains, Rules};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use penstock_control::server::Server;
use penstock_core::units::Limit;
use penstock_net::direction::Direction;
use penstock_net::links::LinkWatch;
use penstock_net::nfqueue::NfQueue;
use penstock_net::scheduling;
use penstock_net::signals::Signals;

/// Packets that the kernel may hold beyond those that the discipline may: those that are not read yet.
const UNREAD: u64 = 1024;
/// The kernel's queue is never longer.
const LONGEST: u64 = 60_000;

/// Returns how many packets of a direction the kernel may hold.
pub fn kernel_queue(limit: Limit) -> u32 {
    let packets = match limit {
        Limit::Packets(packets) => packets,
        Limit::Bytes(bytes) => bytes.get() / 64,
    };
    packets.saturating_add(UNREAD).min(LONGEST) as u32
}

/// Takes charge of the queues of both directions.
pub(crate) fn queues(file: &File, chains: &Chains) -> Result<NfQueue, Error> {
    let mut queue = NfQueue::open()?;
    for direction in Direction::BOTH {
        let most = kernel_queue(file.bottlenecks[direction.index()].limit);
        queue.bind(chains.queue_of(direction), most)?;
    }
    Ok(queue)
}

/// Starts the guard, gives this thread its priority, which the guard does not inherit, and writes the rules. Nothing
/// remains if that fails.
pub(crate) fn guarded(rules: &Rules, keys: &Keys) -> Result<Guard, Error> {
    let guard = Guard::start(&rules.chains, keys.patience)?;
    let ready = || -> Result<(), Error> {
        if keys.realtime {
            scheduling::realtime()?;
        }
        scheduling::exact_timers()?;
        rules.install()
    };
    match ready() {
        Ok(()) => Ok(guard),
        Err(error) => {
            let _ = rules.chains.remove();
            guard.retire();
            Err(error)
        }
    }
}

pub(crate) fn slow_events(signals: &Signals, wan: &LinkWatch, server: Option<&Server>) -> Result<Epoll, Errno> {
    let slow = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
    let readable = EpollEvent::new(EpollFlags::EPOLLIN, 0);
    slow.add(signals, readable)?;
    slow.add(wan, readable)?;
    server.map_or(Ok(()), |server| slow.add(server, readable))?;
    Ok(slow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_may_hold_what_the_discipline_may_and_more() {
        assert_eq!(kernel_queue(Limit::Packets(1000)), 2024);
        assert_eq!(kernel_queue("125kB".parse().unwrap()), 125_000 / 64 + 1024);
        assert_eq!(kernel_queue(Limit::Packets(u64::MAX)), 60_000);
    }
}
