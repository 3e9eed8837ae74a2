//! The programs that take frames from a bridge of the kernel: `bpf/bridge.bpf.c`.

use crate::bpf::datapath::{Hook, clock};
use crate::bpf::error::Error;
use crate::bpf::object::{Object, again_if_interrupted};
use aya::TestRunOptions;
use aya::maps::{Array, MapData};
use aya::programs::SocketFilter;
use serde::Serialize;
use std::os::fd::AsFd;
use std::time::Duration;

static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/bridge.bpf.o"));

/// Number of words of `struct told`.
const TOLD: usize = 7;
/// Number of words of `struct passed`.
const PASSED: usize = 24;

/// The address of an interface of Ethernet.
pub type Mac = [u8; 6];

/// What the programs are told at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taking {
    /// Without a sign of life for so long, everything is left to the kernel.
    pub patience: Duration,
    /// True if the kernel has all frames as well.
    pub observe: bool,
    /// Index of the interface to the link.
    pub wan: u32,
    /// Addresses whose frames are for this machine.
    pub own: [Mac; 3],
}

/// Packets and bytes; what an interface had merged counts as one packet, bytes are those of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Count {
    /// Number of packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// What became of frames that arrived at both ports: pairs are from the WAN and from the LAN.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Passed {
    /// What the process got.
    pub taken: [Count; 2],
    /// What the kernel forwarded because there was no sign of life.
    pub hung: [Count; 2],
    /// What is not IP, such as ARP, LLDP and STP: left to the kernel.
    pub not_ip: [Count; 2],
    /// Broadcasts and multicasts: left to the kernel.
    pub group: [Count; 2],
    /// What is for this machine: left to the kernel.
    pub own: [Count; 2],
    /// Neighbour discovery, router advertisements and DHCP to one host: left to the kernel.
    pub spared: [Count; 2],
}

/// An address as the programs have it.
fn word([a, b, c, d, e, f]: Mac) -> u64 {
    u64::from_le_bytes([a, b, c, d, e, f, 0, 0])
}

impl Passed {
    fn read(words: &[u64; PASSED]) -> Self {
        let pair =
            |fate: usize| [0, 2].map(|way| Count { packets: words[4 * fate + way], bytes: words[4 * fate + way + 1] });
        let [taken, hung, not_ip, group, own, spared] = [0, 1, 2, 3, 4, 5].map(pair);
        Self { taken, hung, not_ip, group, own, spared }
    }
}

/// The programs in the kernel. When this is dropped, or the process dies, the kernel has all frames.
pub struct Bridge {
    object: Object,
    told: Array<MapData, [u64; TOLD]>,
    passed: Array<MapData, [u64; PASSED]>,
    words: [u64; TOLD],
}

impl Bridge {
    /// Loads the programs. They take nothing before [`Bridge::beat`]. Fails if this build has none, or the kernel refuses
    /// them.
    pub fn load(taking: &Taking) -> Result<Self, Error> {
        let mut object = Object::load(OBJECT, &[], &["hide"])?;
        let filter = object.program::<SocketFilter>("take")?;
        again_if_interrupted(|| filter.load()).map_err(Error::refused("a program"))?;
        let (told, passed) = (object.map("told")?, object.map("passed")?);
        let [a, b, c] = taking.own.map(word);
        let patience = taking.patience.as_nanos() as u64;
        let words = [0, patience, u64::from(taking.observe), u64::from(taking.wan), a, b, c];
        let mut bridge = Self { object, told, passed, words };
        bridge.tell(0)?;
        Ok(bridge)
    }

    /// Lets a socket of packets see only what the process takes.
    pub fn filter(&mut self, socket: impl AsFd) -> Result<(), Error> {
        let filter: &mut SocketFilter = self.object.program("take")?;
        filter.attach(socket.as_fd()).map(drop).map_err(Error::refused("a filter of a socket"))
    }

    /// Hides from the kernel what the process takes from an interface, and from no earlier one of its name. Fails where
    /// there is no TCX.
    pub fn hide(&mut self, interface: &str) -> Result<(), Error> {
        self.object.detach(|other| other == interface);
        self.object.attach("hide", interface, Hook::Ingress)
    }

    /// Tells which interface is that to the link from now on, and which addresses are those of this machine. Nothing is
    /// taken before the next sign of life.
    pub fn serve(&mut self, wan: u32, own: [Mac; 3]) -> Result<(), Error> {
        self.words[3] = u64::from(wan);
        self.words[4..].copy_from_slice(&own.map(word));
        self.rest()
    }

    /// Gives a sign of life: from now on frames are taken.
    pub fn beat(&mut self) -> Result<(), Error> {
        self.tell(clock())
    }

    /// Takes nothing from now on.
    pub fn rest(&mut self) -> Result<(), Error> {
        self.tell(0)
    }

    fn tell(&mut self, heartbeat: u64) -> Result<(), Error> {
        self.words[0] = heartbeat;
        self.told.set(0, self.words, 0).map_err(Error::refused("a value"))
    }

    /// Returns what became of frames.
    pub fn passed(&self) -> Result<Passed, Error> {
        self.passed.get(&0, 0).map(|words| Passed::read(&words)).map_err(Error::refused("a read"))
    }

    /// Shows a frame to the program of an interface; returns whether it is hidden from the kernel.
    pub fn test(&self, frame: &[u8]) -> Result<bool, Error> {
        let options = TestRunOptions { data_in: Some(frame), ..TestRunOptions::new() };
        Ok(self.object.test("hide", options)?.return_value == 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of each fate the packets and bytes from the WAN, then those from the LAN, in the order of `enum fate` of
    /// `bpf/bridge.bpf.c`.
    #[test]
    fn what_became_of_frames_is_read_in_the_order_of_the_program() {
        let passed = Passed::read(&std::array::from_fn(|n| n as u64));
        let pair = |n: u64| [Count { packets: n, bytes: n + 1 }, Count { packets: n + 2, bytes: n + 3 }];
        let Passed { taken, hung, not_ip, group, own, spared } = passed;
        assert_eq!([taken, hung, not_ip, group, own, spared], [0, 4, 8, 12, 16, 20].map(pair));
    }
}
