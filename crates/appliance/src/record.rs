//! `record`: the headers of what passes an interface, as a capture that `penstock what-if` reads. No payload is kept.
//!
//! The capture has the form of "Linux cooked" ones (LINUX_SLL), which tells of each packet whether it came or went.

use crate::ask;
use crate::cli::Record;
use crate::error::Error;
use crate::socket::client;
use crate::socket::message::Request;
use penstock_core::wire::{Headers, Transport};
use penstock_linux::capture::{Capture, LARGEST, Packet};
use penstock_linux::netns::Namespace;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::time::{Duration, Instant, SystemTime};

/// Length of the head of the form LINUX_SLL.
const HEAD: usize = 16;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// The longest wait for a packet.
const WAIT: Duration = Duration::from_millis(200);

/// An interface whose packets are recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its name.
    pub interface: String,
    /// Its namespace; `None` for the current one.
    pub netns: Option<String>,
}

/// Records; returns what to say. Without `--interface` the run of `program` is asked, whose names begin with `default`: `place`
/// finds the interface in its status.
pub fn run(
    record: &Record,
    default: &str,
    program: &str,
    place: impl Fn(&Value) -> Option<Place>,
) -> Result<String, Error> {
    let Place { interface, netns } = match &record.interface {
        Some(name) => Place { interface: name.clone(), netns: record.netns.clone() },
        None => {
            let path = ask::socket(&record.ask, default, program)?;
            let status = client::ask(&path, &Request::Status).map_err(|e| Error::User(e.to_string()))?;
            let unknown = || Error::User("this run tells no interface; give --interface".into());
            place(&status).ok_or_else(unknown)?
        }
    };
    let mut capture = Namespace::open(netns.as_deref())?.run(|| Capture::open(&interface))?;
    let path = record.out.display();
    let file = File::options().write(true).create_new(true).open(&record.out);
    let file = file.map_err(|e| Error::User(format!("cannot write {path}: {e}")))?;
    let packets = write(&mut capture, file, Duration::from_nanos(record.duration.as_nanos()));
    let packets = packets.map_err(Error::io("cannot write the capture"))?;
    if record.ask.json {
        return Ok(format!("{}\n", json!({"file": record.out, "interface": interface, "packets": packets})));
    }
    Ok(format!("{packets} packets of {interface} in {path}, headers only\nask it: penstock what-if {path}\n"))
}

/// Writes what passes within a time; returns the number of packets.
fn write(capture: &mut Capture, file: File, duration: Duration) -> std::io::Result<u64> {
    let mut out = BufWriter::new(file);
    out.write_all(&file_head())?;
    let (end, mut packets) = (Instant::now() + duration, 0_u64);
    while let Some(left) = end.checked_duration_since(Instant::now()) {
        let Some(packet) = capture.next(left.min(WAIT)) else { continue };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        if let Some(cut) = headers_only(packet) {
            let head = packet_head(now, cut.len(), packet.bytes.len());
            out.write_all(&[head, cut].concat())?;
            packets += 1;
        }
    }
    out.flush()?;
    Ok(packets)
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
fn headers_only(Packet { bytes, protocol, way }: Packet<'_>) -> Option<Vec<u8>> {
    if ![IPV4, IPV6].contains(&protocol) {
        return None;
    }
    let parsed = Headers::parse(bytes);
    let end = match parsed.transport {
        Transport::Tcp { payload, .. } => payload,
        // The head of UDP has 8 bytes; of others no more than addresses is kept.
        _ if protocol == IPV4 => usize::from(bytes.first()? & 15) * 4 + 8,
        _ => 48,
    };
    let mut kept = vec![0; HEAD];
    kept[1] = way;
    kept[14..16].copy_from_slice(&protocol.to_be_bytes());
    kept.extend_from_slice(&bytes[..end.min(bytes.len())]);
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_kept_and_payload_is_not() {
        let mut tcp = vec![7; 100];
        (tcp[0], tcp[2], tcp[3], tcp[6], tcp[7], tcp[9], tcp[32]) = (0x45, 0, 100, 0, 0, 6, 0x80);
        let kept = |bytes: &[u8], protocol, way| headers_only(Packet { bytes, protocol, way });
        let head = kept(&tcp, IPV4, 4).unwrap();
        assert_eq!((head.len(), head[1], &head[14..16]), (HEAD + 52, 4, &[8, 0][..]));
        tcp[9] = 17;
        assert_eq!(kept(&tcp, IPV4, 0).unwrap().len(), HEAD + 28);
        assert_eq!(kept(&tcp, 0x0806, 0), None, "ARP");
    }
}
