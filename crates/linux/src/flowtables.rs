//! Flowtables of nftables: connections that their rules hand over are forwarded from where packets arrive, past the
//! firewall and so past a queue of it, or by the hardware itself.
//!
//! Source: include/uapi/linux/netfilter/nf_tables.h of Linux 6.18.

use crate::netlink::{self, Attributes};
use netlink_packet_core::{NLM_F_DUMP, NLM_F_REQUEST};
use netlink_sys::protocols::NETLINK_NETFILTER;
use std::io;

/// NFNL_SUBSYS_NFTABLES with NFT_MSG_GETFLOWTABLE, and with NFT_MSG_NEWFLOWTABLE, which answers it.
const ASK: u16 = 10 << 8 | 23;
const TOLD: u16 = 10 << 8 | 22;
/// The headers of a message: of netlink, and of netfilter.
const HEADER: usize = 16;
const GENERAL: usize = 4;
/// NFTA_FLOWTABLE_TABLE, _NAME, _HOOK and _FLAGS; NFTA_FLOWTABLE_HOOK_DEVS; NFTA_DEVICE_NAME.
const TABLE: i32 = 1;
const NAME: i32 = 2;
const HOOK: i32 = 3;
const FLAGS: i32 = 7;
const DEVICES: i32 = 3;
const DEVICE: i32 = 1;
/// NFT_FLOWTABLE_HW_OFFLOAD
const HARDWARE: u32 = 1;

/// A flowtable.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flowtable {
    /// The table in which it is.
    pub table: String,
    /// Its name.
    pub name: String,
    /// The interfaces whose packets it takes.
    pub devices: Vec<String>,
    /// True if the hardware forwards.
    pub hardware: bool,
}

/// Lists the flowtables of the namespace of this thread. Fails where the kernel has none, or without the right to ask.
pub fn listed() -> io::Result<Vec<Flowtable>> {
    let socket = netlink::open(NETLINK_NETFILTER)?;
    let mut question = Vec::with_capacity(HEADER + GENERAL);
    question.extend(((HEADER + GENERAL) as u32).to_ne_bytes());
    question.extend([ASK, NLM_F_REQUEST | NLM_F_DUMP].map(u16::to_ne_bytes).as_flattened());
    question.resize(HEADER + GENERAL, 0);
    socket.send(&question, 0)?;
    let (mut all, mut bytes) = (Vec::new(), Vec::with_capacity(64 * 1024));
    loop {
        bytes.clear();
        socket.recv(&mut bytes, 0)?;
        if !read(&bytes, &mut all) {
            return Ok(all);
        }
    }
}

/// Reads the messages of a datagram; returns whether more will come.
fn read(mut bytes: &[u8], all: &mut Vec<Flowtable>) -> bool {
    while let Some(len) = bytes.first_chunk().map(|len| u32::from_ne_bytes(*len) as usize) {
        let Some(body) = bytes.get(HEADER + GENERAL..len) else { return false };
        if bytes[4..6] != TOLD.to_ne_bytes() {
            return false;
        }
        all.push(flowtable(body));
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or_default();
        if bytes.is_empty() {
            return true;
        }
    }
    false
}

fn flowtable(body: &[u8]) -> Flowtable {
    let mut told = Flowtable::default();
    for (kind, value) in Attributes(body) {
        match kind {
            TABLE => told.table = text(value),
            NAME => told.name = text(value),
            FLAGS => {
                told.hardware = value.first_chunk().is_some_and(|flags| u32::from_be_bytes(*flags) & HARDWARE != 0)
            }
            HOOK => {
                let devices = Attributes(value).filter(|(kind, _)| *kind == DEVICES);
                let names = devices.flat_map(|(_, value)| Attributes(value)).filter(|(kind, _)| *kind == DEVICE);
                told.devices.extend(names.map(|(_, name)| text(name)));
            }
            _ => {}
        }
    }
    told
}

/// A text of the kernel, which ends with a zero.
fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attribute(kind: i32, value: &[u8]) -> Vec<u8> {
        let mut bytes = [(4 + value.len()) as u16, kind as u16].map(u16::to_ne_bytes).concat();
        bytes.extend(value);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn message(kind: u16, attributes: &[u8]) -> Vec<u8> {
        let len = (HEADER + GENERAL + attributes.len()) as u32;
        [&len.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 14], attributes].concat()
    }

    #[test]
    fn what_the_kernel_tells_of_flowtables_is_read() {
        let devices = [attribute(DEVICE, b"eth0\0"), attribute(DEVICE, b"ppp0\0")].concat();
        // A number and a priority, which nobody needs, and the bit of nested attributes.
        let hook = [attribute(1, &[0; 4]), attribute(2, &[0; 4]), attribute(DEVICES | 0x8000, &devices)].concat();
        let one = |flags: u32| {
            let own = [attribute(TABLE, b"fw\0"), attribute(NAME, b"ft\0"), attribute(HOOK | 0x8000, &hook)];
            message(TOLD, &[own.concat(), attribute(FLAGS, &flags.to_be_bytes())].concat())
        };
        let mut all = Vec::new();
        assert!(read(&[one(0), one(HARDWARE)].concat(), &mut all));
        let told = Flowtable { table: "fw".into(), name: "ft".into(), ..Flowtable::default() };
        let devices = vec!["eth0".to_owned(), "ppp0".to_owned()];
        let told = |hardware| Flowtable { hardware, devices: devices.clone(), ..told.clone() };
        assert_eq!(all, [told(false), told(true)]);
        // NLMSG_DONE, and messages that are not whole.
        assert!(!read(&message(3, &[0; 4]), &mut all) && all.len() == 2);
        let whole = one(0);
        (0..whole.len()).for_each(|len| assert!(len == 0 || !read(&whole[..len], &mut all)));
    }

    /// A kernel without them says so, and never lets anybody wait.
    #[test]
    fn the_kernel_is_asked() {
        assert!(listed().is_ok_and(|all| all.is_empty()) || listed().is_err());
    }
}
