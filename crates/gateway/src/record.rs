//! `record`: the headers of what passes an interface, as a capture that `penstock what-if` reads. No payload is kept.
//!
//! The capture has the form of "Linux cooked" ones (LINUX_SLL), which tells of each packet whether it came or went.

use crate::ask::DEFAULT_NAME;
use crate::cli::Record;
use crate::error::Error;
use crate::surroundings::interface;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, LinkAddr, SockFlag, SockProtocol, SockType, recvfrom, socket};
use penstock_appliance::ask;
use penstock_appliance::socket::message::Request;
use penstock_core::wire::{Headers, Transport};
use serde_json::json;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant, SystemTime};

/// The largest packet that an interface gives, merged ones included.
const LARGEST: usize = 65_535 + 64;
/// Length of the head of the form LINUX_SLL.
const HEAD: usize = 16;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;

/// Records; returns what to say.
///
/// # Errors
/// Returns what is missing, or why nothing can be written.
pub fn run(record: &Record) -> Result<String, Error> {
    let name = match &record.interface {
        Some(name) => name.clone(),
        None => wan(record)?,
    };
    let index = interface("--interface", &name)?;
    let socket = open()?;
    let file = File::options().write(true).create_new(true).open(&record.out);
    let file = file.map_err(|source| Error::NoFile { path: record.out.clone(), source })?;
    let failed = Error::io("cannot write the capture");
    let mut out = BufWriter::new(file);
    out.write_all(&file_head()).map_err(&failed)?;
    let (end, mut packets) = (Instant::now() + Duration::from_nanos(record.duration.as_nanos()), 0_u64);
    let mut buffer = vec![0; LARGEST];
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        let wait = PollTimeout::try_from(left.min(Duration::from_millis(200))).unwrap_or(PollTimeout::ZERO);
        if poll(&mut fds, wait).unwrap_or(0) == 0 {
            continue;
        }
        let Ok((len, from)) = recvfrom::<LinkAddr>(socket.as_raw_fd(), &mut buffer) else { continue };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        if let Some(cut) =
            from.filter(|from| from.ifindex() == index as usize).and_then(|from| cut(&buffer[..len], from))
        {
            let head = packet_head(now, cut.len(), len);
            out.write_all(&[head, cut].concat()).map_err(&failed)?;
            packets += 1;
        }
    }
    out.flush().map_err(&failed)?;
    let path = record.out.display();
    if record.ask.json {
        return Ok(format!("{}\n", json!({"file": record.out, "interface": name, "packets": packets})));
    }
    Ok(format!("{packets} packets of {name} in {path}, headers only\nask it: penstock what-if {path}\n"))
}

/// Returns the interface of the gateway that runs.
fn wan(record: &Record) -> Result<String, Error> {
    let path = ask::socket(&record.ask, DEFAULT_NAME, "penstock-gateway")?;
    let status = penstock_appliance::socket::client::ask(&path, &Request::Status);
    let status = status.map_err(|e| penstock_appliance::error::Error::Control(e.to_string()))?;
    Ok(status["wan"].as_str().unwrap_or_default().to_owned())
}

/// Opens a socket that gets a copy of all that passes any interface: a socket of one interface needs an address of it, which
/// those of PPP and tunnels do not have.
fn open() -> Result<OwnedFd, Error> {
    let failed = Error::io::<nix::Error>("cannot listen to interfaces; run as root or with CAP_NET_RAW");
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    socket(AddressFamily::Packet, SockType::Datagram, flags, SockProtocol::EthAll).map_err(failed)
}

/// The head of a capture of LINUX_SLL (113), version 2.4, with microseconds and the byte order of networks.
fn file_head() -> Vec<u8> {
    let numbers = [0xa1b2_c3d4, 2 << 16 | 4, 0, 0, LARGEST as u32, 113];
    numbers.into_iter().flat_map(u32::to_be_bytes).collect()
}

/// The head of a packet: when, how much of it is kept, and how long it was.
fn packet_head(at: Duration, kept: usize, len: usize) -> Vec<u8> {
    let numbers = [at.as_secs() as u32, at.subsec_micros(), kept as u32, (HEAD + len) as u32];
    numbers.into_iter().flat_map(u32::to_be_bytes).collect()
}

/// Returns a packet with its head and without its payload; `None` for what is no IP packet.
fn cut(packet: &[u8], from: LinkAddr) -> Option<Vec<u8>> {
    headers_only(packet, u16::from_be(from.protocol()), from.pkttype())
}

fn headers_only(packet: &[u8], protocol: u16, way: u8) -> Option<Vec<u8>> {
    if ![IPV4, IPV6].contains(&protocol) {
        return None;
    }
    let parsed = Headers::parse(packet);
    let end = match parsed.transport {
        Transport::Tcp { payload, .. } => payload,
        // The head of UDP has 8 bytes; of others no more than addresses is kept.
        _ if protocol == IPV4 => usize::from(packet.first()? & 15) * 4 + 8,
        _ => 48,
    };
    let mut kept = vec![0; HEAD];
    kept[1] = way;
    kept[14..16].copy_from_slice(&protocol.to_be_bytes());
    kept.extend_from_slice(&packet[..end.min(packet.len())]);
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_kept_and_payload_is_not() {
        let mut tcp = vec![7; 100];
        (tcp[0], tcp[2], tcp[3], tcp[6], tcp[7], tcp[9], tcp[32]) = (0x45, 0, 100, 0, 0, 6, 0x80);
        let kept = headers_only(&tcp, IPV4, 4).unwrap();
        assert_eq!((kept.len(), kept[1], &kept[14..16]), (HEAD + 52, 4, &[8, 0][..]));
        tcp[9] = 17;
        assert_eq!(headers_only(&tcp, IPV4, 0).unwrap().len(), HEAD + 28);
        assert_eq!(headers_only(&tcp, 0x0806, 0), None, "ARP");
    }
}
