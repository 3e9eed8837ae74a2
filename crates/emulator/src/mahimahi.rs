//! The log of a link in the form of Mahimahi's `mm-link --uplink-log`, which its graphs and other programs read.
//!
//! A line is a time in milliseconds and an event: `# BYTES`, the link could have sent so much; `+ BYTES`, a packet arrived;
//! `- BYTES DELAY`, the last bit of a packet left, so many milliseconds after it arrived; `d PACKETS BYTES`, a packet was
//! dropped. Source: src/frontend/link_queue.cc of Mahimahi.
//!
//! DIFFERENCE: sizes are those of IP packets, without the 4 bytes which Mahimahi's TUN interface puts before them, and an
//! opportunity has 1500 bytes instead of 1504 (`an_opportunity_is_there_for_each_1500_bytes_of_the_rate`).

use crate::packets::Form;
use penstock_core::units::{Bytes, Instant, Rate, Serializer};
use penstock_shaper::log::{Event, LinkLog};
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

const OPPORTUNITY: Bytes = Bytes::new(1500);

#[derive(Debug)]
pub struct Mahimahi {
    link: &'static str,
    rate: Serializer,
    /// When the next opportunity is complete.
    next: Instant,
    /// The packet whose last bit has not left yet: size, arrival, end.
    leaving: Option<(Bytes, Instant, Instant)>,
}

impl Mahimahi {
    /// Creates the form of the log of a link, which is `uplink` or `downlink`, with this rate at the start.
    pub fn new(link: &'static str, rate: Rate) -> Self {
        let mut rate = Serializer::new(rate);
        let next = Instant::ZERO + rate.send(OPPORTUNITY);
        Self { link, rate, next, leaving: None }
    }

    /// Writes what comes before a time by itself: opportunities, and the end of the packet on the wire.
    fn catch_up(&mut self, until: Instant, text: &mut Vec<u8>) -> io::Result<()> {
        loop {
            let leaves = self.leaving.filter(|(_, _, end)| *end <= until);
            if let Some((size, since, end)) = leaves.filter(|(_, _, end)| *end < self.next) {
                writeln!(text, "{} - {} {}", ms(end), size.get(), ms(end) - ms(since))?;
                self.leaving = None;
            } else if self.next <= until {
                writeln!(text, "{} # {}", ms(self.next), OPPORTUNITY.get())?;
                self.next += self.rate.send(OPPORTUNITY);
            } else {
                return Ok(());
            }
        }
    }
}

fn ms(time: Instant) -> u64 {
    time.as_nanos() / 1_000_000
}

impl Form for Mahimahi {
    type Sheet = LinkLog;
    /// They hold a quarter of a million events in 15 MB.
    const SHEETS: usize = 64;

    fn option(&self) -> &'static str {
        if self.link == "uplink" { "--uplink-log" } else { "--downlink-log" }
    }

    fn head(&mut self, text: &mut Vec<u8>) -> io::Result<()> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        writeln!(text, "# penstock-emulate in the form of mm-link ({})", self.link)?;
        writeln!(text, "# init timestamp: {}", now.as_millis())?;
        writeln!(text, "# base timestamp: 0")
    }

    fn write(&mut self, log: &LinkLog, text: &mut Vec<u8>) -> io::Result<()> {
        for (at, event) in &log.events {
            self.catch_up(*at, text)?;
            match event {
                Event::Arrived(size) => writeln!(text, "{} + {}", ms(*at), size.get())?,
                Event::Dropped(size) => writeln!(text, "{} d 1 {}", ms(*at), size.get())?,
                // The wire sends one packet at a time, so the one before has left.
                Event::Sent(size, since, end) => self.leaving = Some((*size, *since, *end)),
                Event::Rate(rate, end) => {
                    self.leaving = self.leaving.map(|(size, since, _)| (size, since, *end));
                    self.rate = Serializer::new(*rate);
                    self.next = *at + self.rate.send(OPPORTUNITY);
                }
            }
        }
        self.catch_up(log.until, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::FateFile;
    use penstock_core::units::Span;
    use std::fs::File;
    use std::os::unix::fs::OpenOptionsExt as _;
    use std::time::Duration;

    /// Nobody reads the pipe any more when the opportunities of a second without packets are to be written.
    #[test]
    fn a_log_without_packets_that_cannot_be_written_is_told() {
        let path = std::env::temp_dir().join(format!("penstock-mahimahi-{}", std::process::id()));
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let reader = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(&path).unwrap();
        let mut file = FateFile::start(&path, Mahimahi::new("uplink", Rate::from_bps(12_000_000))).unwrap();
        drop(reader);
        file.exchange(LinkLog { until: at(1_000_000), ..LinkLog::default() });
        let complaint = file.close(Duration::from_secs(10)).complaint().unwrap();
        assert!(complaint.starts_with("--uplink-log") && complaint.contains("pipe"), "{complaint}");
        std::fs::remove_file(path).unwrap();
    }

    fn at(us: u64) -> Instant {
        Instant::ZERO + Span::from_micros(us)
    }

    /// 12 Mbit/s are a packet of 1500 bytes in each millisecond, as the README of Mahimahi's traces says of the file "1".
    #[test]
    fn an_opportunity_is_there_for_each_1500_bytes_of_the_rate() {
        let mut form = Mahimahi::new("uplink", Rate::from_bps(12_000_000));
        let mut text = Vec::new();
        let mut log = LinkLog::default();
        log.events.extend([
            (at(2500), Event::Arrived(Bytes::new(1500))),
            (at(2500), Event::Sent(Bytes::new(1500), at(2500), at(3500))),
            (at(3200), Event::Arrived(Bytes::new(500))),
            (at(3200), Event::Dropped(Bytes::new(500))),
        ]);
        let first = log.exchange(LinkLog::default(), None);
        form.write(&first, &mut text).unwrap();
        assert_eq!(
            String::from_utf8(std::mem::take(&mut text)).unwrap(),
            "1 # 1500\n2 # 1500\n2 + 1500\n3 # 1500\n3 + 500\n3 d 1 500\n"
        );
        log.events.extend([
            (at(3500), Event::Sent(Bytes::new(1500), at(3200), at(4500))),
            (at(4000), Event::Rate(Rate::from_bps(6_000_000), at(5000))),
            (at(5000), Event::Sent(Bytes::new(2250), at(4200), at(8000))),
        ]);
        let second = log.exchange(LinkLog::default(), Some(at(8000)));
        form.write(&second, &mut text).unwrap();
        let lines = "3 - 1500 1\n4 # 1500\n5 - 1500 2\n6 # 1500\n8 # 1500\n8 - 2250 4\n";
        assert_eq!(String::from_utf8(text).unwrap(), lines, "half a packet was left, which took twice as long");
        assert_eq!(
            [form.option(), Mahimahi::new("downlink", Rate::from_bps(1)).option()],
            ["--uplink-log", "--downlink-log"]
        );
    }
}
