//! A TUN interface in a namespace. It has no offloads: every packet is one IP packet of at most the MTU.

use crate::error::Error;
use crate::netns::Namespace;
use std::io::{self, IoSliceMut};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::str::FromStr;
use tun_rs::{DeviceBuilder, Layer, SyncDevice};

/// The system has no TUN devices.
const NO_TUN: &str = "/dev/net/tun is missing; load the module with `modprobe tun`, or give the container this device";

/// A text that is not an address with a prefix.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an address with its prefix; write 10.77.0.1/24 or fd77::1/64")]
pub struct CidrError(String);

/// An IP address with the length of its network's prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(try_from = "String")]
pub struct Cidr {
    /// The IP address.
    pub address: IpAddr,
    /// Length of the prefix in bits.
    pub prefix: u8,
}

impl FromStr for Cidr {
    type Err = CidrError;

    fn from_str(text: &str) -> Result<Self, CidrError> {
        let parse = || {
            let (address, prefix) = text.split_once('/')?;
            let (address, prefix): (IpAddr, u8) = (address.parse().ok()?, prefix.parse().ok()?);
            let longest = if address.is_ipv4() { 32 } else { 128 };
            (prefix <= longest).then_some(Self { address, prefix })
        };
        parse().ok_or_else(|| CidrError(text.to_owned()))
    }
}

impl TryFrom<String> for Cidr {
    type Error = CidrError;

    fn try_from(text: String) -> Result<Self, CidrError> {
        text.parse()
    }
}

/// The settings of an interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Name of the interface.
    pub name: String,
    /// Address of the interface, with its prefix.
    pub address: Cidr,
    /// Largest IP packet in bytes (MTU).
    pub mtu: u16,
}

/// An interface, which is up for as long as this value exists.
pub struct Tun {
    device: SyncDevice,
    index: u32,
    mtu: u16,
}

impl Tun {
    /// Creates the interface in a namespace and sets it up.
    pub fn open(config: &Config, namespace: &Namespace) -> Result<Self, Error> {
        namespace.run(|| {
            Self::open_here(config).map_err(|source| match source.kind() {
                io::ErrorKind::NotFound => Error::Refused(NO_TUN.into()),
                _ => {
                    let what = format!("cannot make the interface {} in {}", config.name, namespace.label());
                    Error::refused(what, "")(source)
                }
            })
        })
    }

    fn open_here(config: &Config) -> io::Result<Self> {
        let builder = DeviceBuilder::new().name(&config.name).layer(Layer::L3).mtu(config.mtu);
        let Cidr { address, prefix } = config.address;
        let builder = match address {
            IpAddr::V4(address) => builder.ipv4(address, prefix, None),
            IpAddr::V6(address) => builder.ipv6(address, prefix),
        };
        let device = builder.build_sync()?;
        device.set_nonblocking(true)?;
        let index = device.if_index()?;
        Ok(Self { device, index, mtu: config.mtu })
    }

    /// Returns the index of the interface in its namespace.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Returns the largest IP packet in bytes, as it was at the start.
    pub fn mtu(&self) -> usize {
        usize::from(self.mtu)
    }

    /// Reads the next packet that the namespace sends into `buffer`, and what does not fit there into `rest`; returns its
    /// length, or `None` if there is none now. Fails if the interface was removed.
    pub fn read(&self, buffer: &mut [u8], rest: &mut [u8]) -> io::Result<Option<usize>> {
        match self.device.recv_vectored(&mut [IoSliceMut::new(buffer), IoSliceMut::new(rest)]) {
            Ok(len) => Ok(Some(len)),
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
            // The system is short of memory for a moment; the packet is still there, or the system counts its loss.
            Err(e) if matches!(e.raw_os_error(), Some(libc::ENOMEM | libc::ENOBUFS)) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Hands a packet to the namespace. With an error the packet is lost.
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        self.device.send(packet).map(drop)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.device.as_fd()
    }
}
