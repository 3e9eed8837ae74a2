//! Takes frames apart that offloads have merged (GSO, GRO), so that each packet has its turn: TCP and UDP over IPv4 and IPv6.
//! Checksums of the transport are left to the kernel, which makes them when a packet leaves; each packet has the sum of its
//! pseudo-header where that expects it. The rules are those of tcp_gso_segment and __udp_gso_segment of Linux 6.18.

use crate::lead::Lead;
use crate::port::Virtio;
use penstock_core::wire::{Headers, IpVersion, Transport};

/// Kinds of merged frames (VIRTIO_NET_HDR_GSO_TCPV4, ...).
const TCP_V4: u8 = 1;
const TCP_V6: u8 = 4;
const UDP: u8 = 5;
/// Only the first packet has the flag CWR (VIRTIO_NET_HDR_GSO_ECN).
const FIRST_CWR: u8 = 0x80;
/// Flags of TCP that only the last packet has, and one of the first.
const FIN_PSH: u8 = 0x09;
const CWR: u8 = 0x80;

/// Where the checksum stands in the header of a transport.
const SUM_OF_TCP: usize = 16;
const SUM_OF_UDP: usize = 6;

/// A frame that is being taken apart.
#[derive(Debug, Default)]
pub struct Segments {
    /// The merged packet, beginning with its IP header.
    merged: Vec<u8>,
    /// The packet that was taken last.
    packet: Vec<u8>,
    plan: Option<Plan>,
}

#[derive(Debug, Clone, Copy)]
struct Plan {
    lead: Lead,
    is_v4: bool,
    is_tcp: bool,
    first_cwr: bool,
    /// Where the header of the transport begins and ends, and where the packet ends.
    transport: usize,
    payload: usize,
    end: usize,
    size: usize,
    /// Where the next packet's payload begins, and how many there were before.
    at: usize,
    number: u16,
}

impl Segments {
    /// Begins to take a merged packet apart; false if that is not possible.
    pub fn begin(&mut self, lead: Lead, ip: &[u8], virtio: &Virtio) -> bool {
        let plan = plan(lead, ip, virtio);
        if let Some(plan) = plan {
            self.merged.clear();
            self.merged.extend_from_slice(&ip[..plan.end]);
        }
        self.plan = plan;
        plan.is_some()
    }

    /// Goes to the next packet, which [`Segments::packet`] returns; returns how it leaves, or `None` if there is none.
    pub fn advance(&mut self) -> Option<Lead> {
        let plan = self.plan.as_mut().filter(|plan| plan.at < plan.end)?;
        let until = (plan.at + plan.size).min(plan.end);
        self.packet.clear();
        self.packet.extend_from_slice(&self.merged[..plan.payload]);
        self.packet.extend_from_slice(&self.merged[plan.at..until]);
        plan.finish(&mut self.packet, until == plan.end);
        plan.at = until;
        plan.number = plan.number.wrapping_add(1);
        let offset = if plan.is_tcp { SUM_OF_TCP } else { SUM_OF_UDP };
        Some(plan.lead.with_pending(plan.transport as u16, offset as u16))
    }

    /// Returns the packet to which [`Segments::advance`] went.
    pub fn packet(&self) -> &[u8] {
        &self.packet
    }

    /// Forgets what is left.
    pub fn clear(&mut self) {
        self.plan = None;
    }
}

fn plan(lead: Lead, ip: &[u8], virtio: &Virtio) -> Option<Plan> {
    // The length field of a merged packet may be too small for its length: jumbograms are not taken apart.
    let headers = Headers::parse(ip);
    let is_v4 = headers.version == IpVersion::V4;
    let kind = virtio.merged & !FIRST_CWR;
    let (is_tcp, transport, payload) = match headers.transport {
        Transport::Tcp { offset, payload } if kind == if is_v4 { TCP_V4 } else { TCP_V6 } => (true, offset, payload),
        Transport::Udp { offset } if kind == UDP => (false, offset, offset + 8),
        _ => return None,
    };
    // Extension headers can have another destination, of which the pseudo-header is.
    let plain = is_v4 || transport == 40;
    let size = usize::from(virtio.size);
    (plain && size > 0 && payload < headers.end).then_some(Plan {
        lead,
        is_v4,
        is_tcp,
        first_cwr: virtio.merged & FIRST_CWR != 0,
        transport,
        payload,
        end: headers.end,
        size,
        at: payload,
        number: 0,
    })
}

impl Plan {
    /// Makes the headers of a packet its own.
    fn finish(&self, packet: &mut [u8], last: bool) {
        let len = (packet.len() - self.transport) as u16;
        if self.is_v4 {
            let id = get(packet, 4).wrapping_add(self.number);
            put(packet, 2, packet.len() as u16);
            put(packet, 4, id);
            put(packet, 10, 0);
            let sum = !folded(add(0, &packet[..self.transport]));
            put(packet, 10, sum);
        } else {
            put(packet, 4, (packet.len() - 40) as u16);
        }
        let header = self.transport;
        if self.is_tcp {
            let seq = u32::from(get(packet, header + 4)) << 16 | u32::from(get(packet, header + 6));
            let seq = seq.wrapping_add((self.at - self.payload) as u32);
            put(packet, header + 4, (seq >> 16) as u16);
            put(packet, header + 6, seq as u16);
            let flags = &mut packet[header + 13];
            *flags &= if last { 0xff } else { !FIN_PSH };
            *flags &= if self.first_cwr && self.number > 0 { !CWR } else { 0xff };
        } else {
            put(packet, header + 4, len);
        }
        let (addresses, protocol) = if self.is_v4 { (12..20, packet[9]) } else { (8..40, packet[6]) };
        let pseudo = add(u32::from(len) + u32::from(protocol), &packet[addresses]);
        let at = if self.is_tcp { SUM_OF_TCP } else { SUM_OF_UDP };
        put(packet, header + at, folded(pseudo));
    }
}

fn get(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Adds words of 16 bits. The bytes are those of headers, whose number is even and small.
fn add(sum: u32, bytes: &[u8]) -> u32 {
    bytes.chunks_exact(2).fold(sum, |sum, word| sum + u32::from(get(word, 0)))
}

fn folded(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}
