//! The budget of a host, applied to all TCP connections of a cgroup without a change of any program.
//!
//! [`Limit`] loads a program of type sock_ops into the kernel and attaches it to the cgroup (`program` says what it
//! does). The order that it reads ends by itself two seconds after the last sign of life, so that a process which hangs
//! limits nobody; if the process dies, the guard of `penstock_budgets` keeps the program attached until each connection is free.

mod announce;
mod assembler;
mod btf;
mod control;
mod kernel;
mod others;
mod program;

use crate::bpf::datapath::clock;
pub use control::Control;
use kernel::Hook;
pub use others::Others;
use penstock_core::units::{Rate, Span};
pub use program::Census;
use program::{CENSUS, Maps, ORDER, Order, SOCKET, WEIGHT};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Largest number of connections that are limited; the one that was silent for longest goes first.
const CONNECTIONS: u32 = 65_536;
/// How long an order holds after it was given.
pub const HOLDS: Span = Span::from_secs(2);

/// A program in the kernel which limits the connections of a cgroup.
#[derive(Debug)]
pub struct Limit {
    order: OwnedFd,
    census: OwnedFd,
    _sockets: OwnedFd,
    link: OwnedFd,
    /// The control that its connections have; `None` if they keep theirs.
    control: Option<control::Registered>,
    /// The account of what is not TCP, and the link of its program.
    others: Option<(OwnedFd, OwnedFd)>,
    /// The program that announces rates.
    rates: Option<Rates>,
}

impl Limit {
    /// Attaches a program to a cgroup (version 2). Connections that are established from here on are limited. `weights` are
    /// those of connections by the mark of their socket; without one a connection has the weight 1. With a `control`
    /// connections get that, which sets their windows by equations 2.1 and 2.2; without, their own one goes on below a
    /// limit of window and pace. Needs CAP_BPF and CAP_NET_ADMIN.
    pub fn attach(cgroup: &Path, weights: &BTreeMap<u32, u32>, control: Option<Control>) -> io::Result<Self> {
        let order = kernel::map(kernel::Kind::Array, "penstock_order", 4, ORDER as u32, 1)?;
        let census = kernel::map(kernel::Kind::Array, "penstock_census", 4, CENSUS as u32, 1)?;
        let sockets = kernel::map(kernel::Kind::LruHash, "penstock_socks", 8, SOCKET as u32, CONNECTIONS)?;
        let most = weights.len().max(1) as u32;
        let weighs = kernel::map(kernel::Kind::Hash, "penstock_weight", 4, WEIGHT as u32, most)?;
        for (mark, weight) in weights {
            kernel::write(weighs.as_fd(), *mark, &weight.to_ne_bytes())?;
        }
        let maps = Maps {
            order: order.as_raw_fd(),
            census: census.as_raw_fd(),
            sockets: sockets.as_raw_fd(),
            weights: weighs.as_raw_fd(),
        };
        let control = control.map(|control| control::register(control, maps)).transpose()?;
        let name = control.as_ref().map(|control| control.name);
        let program = kernel::load(Hook::Sockets, "penstock_c2ml", &program::program(maps, name))?;
        let link = kernel::attach(Hook::Sockets, program.as_fd(), File::open(cgroup)?.as_fd())?;
        Ok(Self { order, census, _sockets: sockets, link, control, others: None, rates: None })
    }

    /// Holds what is not TCP to the rest of the budget as well, for as long as this process lives. `own` is the socket of
    /// the agent's session, whose packets always pass.
    pub fn attach_others(&mut self, cgroup: &Path, own: BorrowedFd<'_>) -> io::Result<()> {
        let account = kernel::map(kernel::Kind::Array, "penstock_acct", 4, others::ACCOUNT as u32, 1)?;
        kernel::write(account.as_fd(), 0, &others::account(kernel::cookie(own)?))?;
        let maps = [&self.order, &self.census, &account].map(AsRawFd::as_raw_fd);
        let program = kernel::load(Hook::Packets, "penstock_others", &others::program(maps))?;
        let link = kernel::attach(Hook::Packets, program.as_fd(), File::open(cgroup)?.as_fd())?;
        self.others = Some((account, link));
        Ok(())
    }

    /// Lets connections with ECN announce their rates in their segments, for as long as this process lives.
    pub fn attach_rates(&mut self, cgroup: &Path) -> io::Result<()> {
        let mut rates = Rates::load()?;
        rates.attach(cgroup)?;
        self.rates = Some(rates);
        Ok(())
    }

    /// Returns what became of packets that are not TCP; `None` if nobody holds them to anything.
    pub fn others(&self) -> io::Result<Option<Others>> {
        let read = |(account, _): &(OwnedFd, OwnedFd)| kernel::read(account.as_raw_fd());
        Ok(self.others.as_ref().map(read).transpose()?.map(|bytes| Others::read(&bytes)))
    }

    /// Limits all connections together to a rate from now on for [`HOLDS`]; `None` takes the limit away.
    pub fn order(&self, rate: Option<Rate>) -> io::Result<()> {
        let bps = rate.map_or(0, Rate::as_bps);
        kernel::write(self.order.as_fd(), 0, &Order { bps, until: clock() + HOLDS.as_nanos() }.bytes())
    }

    /// Returns what the program has counted.
    pub fn census(&self) -> io::Result<Census> {
        census_of(self.census.as_raw_fd())
    }

    /// The name of the control that connections get; `None` if they keep theirs.
    pub fn control(&self) -> Option<String> {
        let name = |one: &control::Registered| String::from_utf8_lossy(&one.name).trim_end_matches('\0').to_owned();
        self.control.as_ref().map(name)
    }

    /// The descriptors that a guard needs: the link, and the map with the census.
    pub fn for_guard(&self) -> [BorrowedFd<'_>; 2] {
        [self.link.as_fd(), self.census.as_fd()]
    }
}

/// A program in the kernel by which connections with ECN announce their rates in their segments.
#[derive(Debug)]
pub struct Rates {
    program: OwnedFd,
    links: Vec<OwnedFd>,
}

impl Rates {
    /// Loads the program, which does nothing yet. Needs CAP_BPF and CAP_NET_ADMIN.
    pub fn load() -> io::Result<Self> {
        let due = kernel::map(kernel::Kind::LruHash, "penstock_due", 8, announce::ENTRY as u32, CONNECTIONS)?;
        let program = kernel::load(Hook::Sockets, "penstock_rates", &announce::program(due.as_raw_fd()))?;
        Ok(Self { program, links: Vec::new() })
    }

    /// Attaches it to a cgroup (version 2), for as long as this process lives. Connections that are established from here on
    /// announce.
    pub fn attach(&mut self, cgroup: &Path) -> io::Result<()> {
        self.links.push(kernel::attach(Hook::Sockets, self.program.as_fd(), File::open(cgroup)?.as_fd())?);
        Ok(())
    }
}

/// Returns where cgroups of version 2 are mounted: the cgroup of the whole host.
pub fn hierarchy() -> Option<PathBuf> {
    mounted(&std::fs::read_to_string("/proc/self/mounts").ok()?)
}

fn mounted(mounts: &str) -> Option<PathBuf> {
    let mut lines = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    lines.find_map(|words| (words.get(2) == Some(&"cgroup2")).then(|| words[1].into()))
}

/// Reads the census of a program by the number of the descriptor of its map, which a guard inherits.
pub fn census_of(map: i32) -> io::Result<Census> {
    kernel::read(map).map(|bytes| Census::read(&bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_is_found_wherever_it_is_mounted() {
        let mounts = "cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        assert_eq!(mounted(mounts), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(mounted("proc /proc proc rw 0 0\n"), None);
    }
}
