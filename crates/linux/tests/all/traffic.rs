//! Random connections as frames of Ethernet: mostly as TCP speaks, with retransmissions, forged, broken and foreign packets
//! between.

use penstock_core::rng::{Rng, Streams};

const CONNECTIONS: usize = 48;
const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 16;

/// A frame, and where it goes.
pub struct Frame {
    pub bytes: Vec<u8>,
    /// Bytes before the IP header.
    pub link: usize,
    pub outward: bool,
    pub wrong_sum: bool,
}

/// One end of a connection.
#[derive(Clone, Copy, Default)]
struct End {
    /// Next number to send, and the highest that the other end has acknowledged.
    next: u32,
    acked: u32,
    scale: Option<u8>,
    mss: u16,
    stamps: bool,
    clock: u32,
    fin: bool,
}

#[derive(Clone, Default)]
struct Connection {
    v6: bool,
    extensions: usize,
    vlan: usize,
    /// Kind and length of the signature of each segment.
    signature: Option<(u8, u8)>,
    number: u16,
    /// 0: not begun, 1: SYN sent, 2: answered, 3: open.
    stage: u8,
    opener: usize,
    /// The near end, toward which `outward` is false, and the far end.
    ends: [End; 2],
}

pub struct Traffic {
    rng: Rng,
    connections: Vec<Connection>,
    ports: u16,
}

impl Traffic {
    pub fn new(seed: u64) -> Self {
        let rng = Streams::new(seed).get("traffic");
        let mut traffic = Self { rng, connections: Vec::new(), ports: 1024 };
        for _ in 0..CONNECTIONS {
            let connection = traffic.fresh();
            traffic.connections.push(connection);
        }
        traffic
    }

    fn below(&mut self, n: u64) -> u64 {
        self.rng.below(n)
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.rng.below(one_in) == 0
    }

    fn fresh(&mut self) -> Connection {
        self.ports += 1;
        let stamps = self.chance(2);
        let mut end = |stamps: bool| End {
            next: self.rng.bits() as u32,
            scale: (self.rng.below(4) > 0).then(|| [0, 1, 3, 7, 8, 10, 14, 77][self.rng.below(8) as usize]),
            mss: [0, 20, 536, 1000, 1380, 1460, 8960, 65_535][self.rng.below(8) as usize],
            stamps,
            clock: self.rng.bits() as u32,
            ..End::default()
        };
        let ends = [end(stamps), end(stamps)];
        Connection {
            v6: self.chance(2),
            extensions: self.below(4).saturating_sub(1) as usize,
            vlan: self.below(6).saturating_sub(3) as usize,
            signature: [Some((19, 18)), Some((29, 16))].get(self.below(24) as usize).copied().flatten(),
            number: self.ports,
            opener: self.below(2) as usize,
            ends,
            ..Connection::default()
        }
    }

    /// Time until the next packet in nanoseconds.
    pub fn pause(&mut self) -> u64 {
        match self.below(400) {
            0 => self.below(70_000_000_000),
            1..=4 => self.below(1_500_000_000),
            5..=40 => self.below(60_000_000),
            _ => self.below(3_000_000),
        }
    }

    pub fn next(&mut self, now: u64) -> Frame {
        let which = self.below(CONNECTIONS as u64) as usize;
        let mut connection = std::mem::take(&mut self.connections[which]);
        let frame = self.step(&mut connection, now);
        self.connections[which] = connection;
        if self.chance(700) {
            self.connections[which] = self.fresh();
        }
        frame
    }

    /// The next segment of a connection.
    fn step(&mut self, c: &mut Connection, now: u64) -> Frame {
        let (opener, other) = (c.opener, 1 - c.opener);
        c.ends.iter_mut().for_each(|end| end.clock = (now >> 20) as u32);
        match c.stage {
            0 => {
                c.stage = 1;
                self.segment(c, opener, SYN, 0, 0)
            }
            1 if self.chance(8) => self.segment(c, opener, SYN, 0, 0),
            1 => {
                c.stage = 2;
                c.ends[opener].next = c.ends[opener].next.wrapping_add(1);
                c.ends[opener].acked = c.ends[opener].next;
                self.segment(c, other, SYN | ACK, 0, 0)
            }
            2 if self.chance(8) => self.segment(c, other, SYN | ACK, 0, 0),
            2 => {
                c.stage = 3;
                c.ends[other].next = c.ends[other].next.wrapping_add(1);
                c.ends[other].acked = c.ends[other].next;
                self.segment(c, opener, ACK, 0, 0)
            }
            _ => self.talk(c),
        }
    }

    fn talk(&mut self, c: &mut Connection) -> Frame {
        // Most connections send in one direction.
        let sender = if self.chance(10) { c.opener } else { 1 - c.opener };
        let jump = self.jump();
        match self.below(100) {
            0 => {
                // Another connection with the same addresses.
                c.stage = 1;
                c.ends.iter_mut().for_each(|end| end.next = end.next.wrapping_add(77_777_777));
                self.segment(c, c.opener, SYN, 0, 0)
            }
            1 => self.segment(c, sender, RST | ACK, 0, jump),
            2 => self.segment(c, sender, SYN, 0, jump),
            3 => {
                let frame = self.segment(c, sender, FIN | ACK, 0, 0);
                c.ends[sender].next = c.ends[sender].next.wrapping_add(1);
                c.ends[sender].fin = true;
                frame
            }
            4 => self.segment(c, sender, ACK, 700, jump),
            5..=7 => {
                let back = self.below(5000) as u32;
                self.segment(c, sender, ACK, 500, back.wrapping_neg())
            }
            8 => {
                // An acknowledgment of what was never sent.
                let acked = c.ends[sender].acked;
                c.ends[sender].acked = c.ends[sender].next.wrapping_add(self.below(9000) as u32 + 1);
                let frame = self.segment(c, 1 - sender, ACK, 0, 0);
                c.ends[sender].acked = acked;
                frame
            }
            9..=50 => {
                let mss = u32::from(c.ends[sender].mss.clamp(48, 1460));
                let size = match self.below(8) {
                    0 => self.below(u64::from(mss)) as u32 + 1,
                    1 => mss * (self.below(20) as u32 + 1),
                    2 => mss.saturating_sub(12).max(1),
                    _ => mss,
                };
                let size = size.min(3000); // a test run takes no more than a page
                let frame = self.segment(c, sender, ACK, size, 0);
                c.ends[sender].next = c.ends[sender].next.wrapping_add(size);
                frame
            }
            _ => {
                let end = &c.ends[sender];
                let flying = end.next.wrapping_sub(end.acked).min(1 << 20);
                let newly = match self.below(4) {
                    0 => flying,
                    1 => 0,
                    _ => flying.min(self.below(u64::from(flying) + 1) as u32),
                };
                c.ends[sender].acked = c.ends[sender].acked.wrapping_add(newly);
                let size = if self.chance(10) { self.below(400) as u32 } else { 0 };
                let frame = self.segment(c, 1 - sender, ACK, size, 0);
                c.ends[1 - sender].next = c.ends[1 - sender].next.wrapping_add(size);
                frame
            }
        }
    }

    fn jump(&mut self) -> u32 {
        if self.chance(2) { 0 } else { self.rng.bits() as u32 }
    }

    /// Writes a segment that begins `shift` after what its sender would send next.
    fn segment(&mut self, c: &Connection, sender: usize, flags: u8, payload: u32, shift: u32) -> Frame {
        let (end, peer) = (&c.ends[sender], &c.ends[1 - sender]);
        let mut options = Vec::new();
        if flags & SYN != 0 {
            if end.mss > 0 {
                options.extend([2, 4, (end.mss >> 8) as u8, end.mss as u8]);
            }
            options.extend([1; 1]);
            if let Some(scale) = end.scale {
                options.extend([3, 3, scale]);
            }
        }
        if end.stamps && !self.chance(60) {
            options.extend([1, 1, 8, 10]);
            options.extend(end.clock.to_be_bytes());
            options.extend(peer.clock.wrapping_sub(self.below(40) as u32).to_be_bytes());
        }
        if flags == ACK && payload == 0 && self.chance(6) {
            options.extend([1, 1, 5, 10, 1, 2, 3, 4, 5, 6, 7, 8]); // SACK
        }
        if let Some((kind, length)) = c.signature {
            options.extend([kind, length]);
            options.resize(options.len() + usize::from(length) - 2, 7);
        }
        if self.chance(80) {
            let junk: Vec<u8> = (0..self.below(12)).map(|_| self.rng.bits() as u8).collect();
            options.extend(junk);
        }
        options.truncate(40);
        while options.len() % 4 != 0 {
            options.push(if self.chance(2) { 0 } else { 1 });
        }
        let window = match self.below(12) {
            0 => 0,
            1 => self.below(20) as u16,
            2..=4 => self.rng.bits() as u16,
            _ => 65_535 - self.below(3000) as u16,
        };
        let mut tcp = Vec::new();
        let ports = [c.number, 443];
        let (from, to) = if sender == 0 { (ports[0], ports[1]) } else { (ports[1], ports[0]) };
        tcp.extend(from.to_be_bytes());
        tcp.extend(to.to_be_bytes());
        tcp.extend(end.next.wrapping_add(shift).to_be_bytes());
        let ack = if flags & ACK != 0 { peer.acked } else { 0 };
        tcp.extend(ack.to_be_bytes());
        tcp.extend([((5 + options.len() / 4) << 4) as u8, flags]);
        tcp.extend(window.to_be_bytes());
        tcp.extend([0, 0, 0, 0]);
        tcp.extend(&options);
        tcp.extend((0..payload).map(|i| i as u8));
        self.packet(c, sender, tcp)
    }

    fn packet(&mut self, c: &Connection, sender: usize, tcp: Vec<u8>) -> Frame {
        let mut ip = Vec::new();
        let (near, far) = (10u8, 77u8);
        let (from, to) = if sender == 0 { (near, far) } else { (far, near) };
        if c.v6 {
            let mut extensions = Vec::new();
            let kinds = [0, 60];
            for at in 0..c.extensions {
                let next = if at + 1 < c.extensions { kinds[at + 1] } else { 6 };
                let more = self.below(3) as u8;
                extensions.extend([next, more]);
                extensions.resize(extensions.len() + 6 + 8 * usize::from(more), 0);
            }
            let first = if c.extensions > 0 { kinds[0] } else { 6 };
            ip.extend([0x60, 0, 0, 0]);
            ip.extend(((extensions.len() + tcp.len()) as u16).to_be_bytes());
            ip.extend([first, 64]);
            for side in [from, to] {
                ip.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, side, 0, 0, 0, 0, 0, 0, 0, c.number as u8 & 3]);
            }
            ip.extend(&extensions);
        } else {
            let words = if self.chance(10) { 7 } else { 5 };
            ip.extend([0x40 | words as u8, 0]);
            ip.extend(((words * 4 + tcp.len()) as u16).to_be_bytes());
            ip.extend([0, 1, 0x40, 0, 64, 6, 0, 0, 10, from, 0, 2, 10, to, 0, c.number as u8 & 3]);
            ip.resize(words * 4, 1);
        }
        let at = ip.len();
        ip.extend(&tcp);
        let sum = !tcp_sum(&ip, at);
        ip[at + 16..at + 18].copy_from_slice(&sum.to_be_bytes());
        let (mut wrong_sum, mut kind) = (false, if c.v6 { 0x86ddu16 } else { 0x0800 });
        match self.below(150) {
            // The kernel makes no test run with less than an IP header.
            0 => ip.truncate(if c.v6 { 40 } else { 20 } + self.below(60) as usize),
            1 => {
                // Any byte of the headers is another one.
                let byte = self.below(at.min(ip.len()) as u64 + 20) as usize;
                ip[byte] ^= 1 << self.below(8);
                wrong_sum = true;
            }
            2 if !c.v6 => ip[6] = 0x20,
            3 => kind = self.rng.bits() as u16,
            4 => (wrong_sum, ip[at + 17]) = (true, ip[at + 17].wrapping_add(1)),
            5 => ip.extend([0; 30]), // padding
            _ => {}
        }
        let mut bytes = vec![2; 12];
        for _ in 0..c.vlan {
            bytes.extend([0x81, 0, 0, 5]);
        }
        bytes.extend(kind.to_be_bytes());
        let link = bytes.len();
        // What is no IP for the program is none for the core: its first byte is the version.
        if kind != if c.v6 { 0x86dd } else { 0x0800 } && !ip.is_empty() {
            ip[0] = 0;
        }
        bytes.extend(ip);
        Frame { bytes, link, outward: sender == 0, wrong_sum }
    }
}

/// The sum over pseudo header and segment, which is 0xffff if the checksum is right.
pub fn tcp_sum(ip: &[u8], at: usize) -> u16 {
    let v6 = ip[0] >> 4 == 6;
    let end = if v6 { 40 + usize::from(word(ip, 4)) } else { usize::from(word(ip, 2)) };
    let addresses = if v6 { &ip[8..40] } else { &ip[12..20] };
    let add =
        |bytes: &[u8]| bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(*w.get(1).unwrap_or(&0))).sum::<u32>();
    let mut sum = add(addresses) + 6 + (end - at) as u32 + add(&ip[at..end]);
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
