//! What every congestion control costs per ACK, as JSON: nanoseconds for all that an endpoint asks of it while one segment
//! is sent and acknowledged. Build with `--release`.
//! The path has 50 ms and 10 Mbit/s, one ACK per segment, a loss after every 2000 segments, a mark on every 50th
//! segment for controls that use ECN, and a rate sample with each ACK for controls that want one. Of 80 short runs the
//! fastest counts, because other load on the machine only adds time.

use penstock_core::cc::{Ack, AnyCc, CongestionControl, Loss, NAMES, RateSample, Setup};
use penstock_core::units::{Bytes, Instant, Span};
use std::hint::black_box;
use std::time;

const MSS: Bytes = Bytes::new(1448);
const ACKS: u64 = 1 << 14;
const RUNS: usize = 80;
const RTT: Span = Span::from_millis(50);
const GAP: Span = Span::from_nanos(1_200_000); // 1500 B at 10 Mbit/s
const PER_LOSS: u64 = 2000;
const PER_MARK: u64 = 50;

/// A control with the state of the connection that it observes.
struct Load {
    cc: AnyCc,
    now: Instant,
    delivered: Bytes,
    acks: u64,
}

impl Load {
    fn new(name: &str) -> Self {
        let setup = Setup { mss: MSS, initial_window: 10 * MSS, initial_ssthresh: Bytes::MAX, paced: false, seed: 1 };
        let cc = AnyCc::new(name, &setup).expect("it is in the registry");
        Self { cc, now: Instant::ZERO + RTT, delivered: 100 * MSS, acks: 0 }
    }

    /// Sends and acknowledges one segment: the questions of the sender, then the ACK, then a loss if one is due.
    #[inline]
    fn acknowledge(&mut self) {
        let requirements = self.cc.requirements();
        let (cwnd, ssthresh) = (self.cc.cwnd(), self.cc.ssthresh());
        black_box((ssthresh, self.cc.pacing_rate()));
        if self.cc.next_burst() <= self.now {
            self.cc.on_burst(self.now, cwnd);
        }
        self.now += GAP;
        self.delivered += MSS;
        self.acks += 1;
        let rate = requirements.rate.then(|| RateSample {
            prior_delivered: self.delivered - 41 * MSS,
            interval: RTT,
            app_limited: false,
            in_flight: cwnd,
            lost: Bytes::ZERO,
        });
        let marked = if requirements.accurate_ecn && self.acks.is_multiple_of(PER_MARK) { MSS } else { Bytes::ZERO };
        let (now, delivered) = (self.now, self.delivered);
        self.cc.on_ack(&black_box(Ack {
            now,
            acked: MSS,
            rtt: Some(RTT),
            srtt: RTT,
            min_rtt: RTT,
            in_flight: cwnd,
            cwnd_limited: true,
            delivered,
            marked,
            rate,
        }));
        if self.acks.is_multiple_of(PER_LOSS) {
            self.cc.on_loss(&Loss { now, in_flight: self.cc.cwnd(), ecn: false });
            self.cc.on_recovered(now);
        }
    }

    /// Runs the load and returns nanoseconds per ACK.
    fn run(&mut self) -> f64 {
        let start = time::Instant::now();
        for _ in 0..ACKS {
            self.acknowledge();
        }
        start.elapsed().as_nanos() as f64 / ACKS as f64
    }
}

fn main() {
    let rows: Vec<serde_json::Value> = NAMES
        .iter()
        .map(|name| {
            let mut load = Load::new(name);
            let fastest = (0..RUNS).map(|_| load.run()).fold(f64::INFINITY, f64::min);
            serde_json::json!({ "name": name, "ns_per_ack": (fastest * 10.0).round() / 10.0 })
        })
        .collect();
    println!("{}", serde_json::to_string_pretty(&rows).expect("rows are plain data"));
}
