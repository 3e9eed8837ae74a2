use super::*;
use crate::config::{Discipline, LinkFacts};
use crate::packet::FlowId;
use crate::rng::Streams;
use crate::sched::{drr, w2f2q};
use crate::testing::Numbered;
use crate::units::Rate;

type Plain = Config<Single<drr::Config>>;
type Double = Config<Layers<drr::Config, drr::Config>>;

/// A discipline whose packets and times the test sets by hand.
struct Bench<Q> {
    queue: Q,
    rng: Rng,
    arrived: u64,
}

impl<Q: Qdisc<Numbered>> Bench<Q> {
    fn arrive(&mut self, flow: u32, size: u64) -> Enqueued {
        self.arrived += 1;
        let packet = Numbered::new(self.arrived, FlowId(flow), Bytes::new(size));
        let answer = self.queue.enqueue(packet, Instant::ZERO, &mut self.rng, &mut ());
        self.queue.stats().check(self.queue.backlog()).unwrap();
        answer
    }

    fn depart(&mut self) -> Option<(u32, u64)> {
        let packet = self.queue.dequeue(Instant::ZERO, &mut self.rng, &mut ())?;
        self.queue.stats().check(self.queue.backlog()).unwrap();
        Some((packet.flow.0, packet.number))
    }

    fn flows(&mut self, packets: usize) -> Vec<u32> {
        (0..packets).map_while(|_| self.depart()).map(|(flow, _)| flow).collect()
    }
}

fn bench<D: Discipline>(config: &D, limit: Limit) -> Bench<D::Queue<Numbered>> {
    config.validate().unwrap();
    let link = LinkFacts { rate: Rate::from_bps(54_000_000), limit };
    Bench { queue: config.build(&link), rng: Streams::new(1).get("classful"), arrived: 0 }
}

fn read<D: Discipline>(text: &str) -> Result<D, String> {
    toml::from_str::<D>(text).map_err(|e| e.to_string())
}

const ROOM: Limit = Limit::Packets(1000);

#[test]
fn classes_have_the_weights_of_their_place() {
    let config: Plain = read("weights = \"3::1,1::1\"\nflows = 4\nmax_packet = \"1000B\"").unwrap();
    let mut bench = bench(&config, ROOM);
    for _ in 0..6 {
        for flow in [0, 1, 2] {
            bench.arrive(flow, 1000);
        }
    }
    // The sets of weights repeat from flow 2 on, which has weight 3.
    assert_eq!(bench.flows(7), [0, 0, 0, 1, 2, 2, 2]);
    // Flow 4 shares the class of flow 0, whose turn comes after that of flow 1.
    bench.arrive(4, 1000);
    assert_eq!(bench.flows(12), [0, 0, 0, 1, 2, 2, 2, 4, 1, 1, 1, 1]);
}

/// A queue of 40 packets: each class may have an eighth.
#[test]
fn a_class_may_not_fill_the_queue() {
    let mut bench = bench(&Plain::default(), Limit::Packets(40));
    for _ in 0..5 {
        assert_eq!(bench.arrive(0, 1000), Enqueued::Queued);
    }
    assert_eq!(bench.arrive(0, 1000), Enqueued::Dropped(DropReason::Overflow));
    assert_eq!(bench.arrive(1, 1000), Enqueued::Queued);
    assert_eq!(bench.queue.stats().dropped_overflow.packets, 1);
}

#[test]
fn the_whole_queue_has_a_limit() {
    let config: Plain = read("class_limit = \"9p\"").unwrap();
    let mut bench = bench(&config, Limit::Bytes(Bytes::new(2500)));
    assert_eq!(bench.arrive(0, 1000), Enqueued::Queued);
    assert_eq!(bench.arrive(1, 1000), Enqueued::Queued);
    assert_eq!(bench.arrive(2, 501), Enqueued::Dropped(DropReason::Overflow));
    assert_eq!(bench.arrive(2, 500), Enqueued::Queued);
}

#[test]
fn a_packet_that_is_too_large_is_sent() {
    let mut bench = bench(&Plain::default(), ROOM);
    assert_eq!(bench.arrive(0, 9000), Enqueued::Queued);
    assert_eq!(bench.queue.backlog(), Backlog { packets: 1, bytes: 9000 });
    assert_eq!(bench.depart(), Some((0, 1)));
    assert_eq!(bench.queue.stats().sent.bytes, 9000);
}

/// Two stations with one flow each; turns of one packet in the QoS layer, of 1 and 1000 packets in the MAC-SAL.
#[test]
fn what_is_told_of_stations_reaches_the_mac_sal() {
    let config: Double = read("stations = 2\nbuffer = \"8p\"\nmax_packet = \"1000B\"").unwrap();
    let mut bench = bench(&config, ROOM);
    bench.queue.on_fact(&Fact::Channel { station: 0, loss: 1.0 }, Instant::ZERO);
    bench.queue.on_fact(&Fact::Channel { station: 9, loss: 0.5 }, Instant::ZERO);
    for _ in 0..4 {
        bench.arrive(0, 1000);
        bench.arrive(1, 1000);
    }
    assert_eq!(bench.flows(8), [0, 1, 1, 1, 1, 0, 0, 0]);
}

/// Two schedulers give equal results under the name of their composition and when both are named.
#[test]
fn a_composition_is_its_two_schedulers() {
    let named: Double = read("stations = 2\nbuffer = \"3p\"").unwrap();
    let text = "qos = \"drr\"\nmac = \"drr\"\nstations = 2\nbuffer = \"3p\"";
    let by_name: Config<ByName> = read(text).unwrap();
    let mut one = bench(&named, ROOM);
    let mut other = bench(&by_name, ROOM);
    let mut random = Streams::new(3).get("packets");
    for _ in 0..400 {
        let (flow, size) = (random.below(6) as u32, 40 + random.below(1400));
        assert_eq!(one.arrive(flow, size), other.arrive(flow, size));
        if random.below(3) == 0 {
            let loss = random.uniform();
            one.queue.on_fact(&Fact::Channel { station: flow % 2, loss }, Instant::ZERO);
            other.queue.on_fact(&Fact::Channel { station: flow % 2, loss }, Instant::ZERO);
        }
        if random.below(2) == 0 {
            assert_eq!(one.depart(), other.depart());
        }
    }
}

/// Two stations; a channel with a loss of up to 20 % is good. If only the bad station has packets, nothing is sent
/// until its channel is good again.
#[test]
fn w2f2q_waits_for_a_good_channel() {
    let config: Config<Single<w2f2q::Config>> = read("stations = 2").unwrap();
    let mut bench = bench(&config, ROOM);
    bench.queue.on_fact(&Fact::Channel { station: 0, loss: 0.21 }, Instant::ZERO);
    bench.queue.on_fact(&Fact::Channel { station: 1, loss: 0.2 }, Instant::ZERO);
    for flow in [0, 2, 1, 3] {
        bench.arrive(flow, 1000);
    }
    let mut good = bench.flows(4);
    good.sort_unstable();
    assert_eq!((good, bench.queue.backlog().packets), (vec![1, 3], 2));
    bench.queue.on_fact(&Fact::Channel { station: 0, loss: 0.2 }, Instant::ZERO);
    assert_eq!(bench.flows(4).len(), 2);
}

/// By hash, flows 0 and 4 need not share one of four classes; by index they do. By index, flow 0 would be in the class
/// of weight 1 and flow 1 in that of weight 3; flows whose class is not set keep the class of their index.
#[test]
fn a_class_may_be_told() {
    let config: Plain = read("weights = \"1::1,3::1\"\nflows = 2\nmax_packet = \"1000B\"").unwrap();
    let mut bench = bench(&config, ROOM);
    bench.queue.on_fact(&Fact::Class { flow: FlowId(1), class: 4 }, Instant::ZERO);
    bench.queue.on_fact(&Fact::Class { flow: FlowId(0), class: 1 }, Instant::ZERO);
    for _ in 0..4 {
        for flow in [1, 0] {
            bench.arrive(flow, 1000);
        }
    }
    assert_eq!(bench.flows(5), [1, 0, 0, 0, 1]);
    let mut others = self::bench(&config, ROOM);
    others.queue.on_fact(&Fact::Class { flow: FlowId(5), class: 0 }, Instant::ZERO);
    (0..4).for_each(|_| {
        [2, 3].into_iter().for_each(|flow| {
            others.arrive(flow, 1000);
        })
    });
    assert_eq!(others.flows(4), [2, 3, 3, 3]);
}

#[test]
fn flows_may_be_hashed() {
    let class_of_all = |text: &str| {
        let config: Plain = read(text).unwrap();
        let mut bench = bench(&config, ROOM);
        for _ in 0..2 {
            bench.arrive(0, 1000);
            bench.arrive(4, 1000);
        }
        bench.flows(4)
    };
    assert_eq!(class_of_all("flows = 4\nmax_packet = \"1000B\""), [0, 4, 0, 4], "one class, in order of arrival");
    let hashed = (0..32u64).filter(|key| {
        let text = format!("flows = 4\nclassify = \"hash\"\nmax_packet = \"2000B\"\nperturbation = {key}");
        class_of_all(&text) == [0, 0, 4, 4]
    });
    // Turns of two packets: apart in three of four keys. Binomial: 24 with a standard deviation of 2.4.
    let apart = hashed.count();
    assert!((14..=31).contains(&apart), "{apart} of 32");
}

#[test]
fn parameters_are_read_and_written_in_one_table() {
    let config: Double = read("buffer = \"40kB\"\nweighting = \"exponential\"\nflows = 100").unwrap();
    assert_eq!(config.arrangement.buffer, Buffer(Limit::Bytes(Bytes::new(40_000))));
    let none: Double = read("buffer = \"0p\"").unwrap();
    assert_eq!((none.arrangement.buffer, none.arrangement.buffer.to_string().as_str()), (Buffer::NONE, "0p"));
    assert!(read::<Double>("buffer = \"5\"").unwrap_err().contains("5"));
    assert_eq!((config.arrangement.weighting, config.classes.flows), (Weighting::Exponential, 100));
    let again: Double = read(&toml::to_string(&config).unwrap()).unwrap();
    assert_eq!(again, config);
    let unknown = read::<Double>("bufer = \"1p\"").unwrap_err();
    assert!(unknown.contains("unknown field `bufer`") && unknown.contains("buffer"), "{unknown}");
    let quantum: Plain = read("quantum = \"300B\"").unwrap();
    assert_eq!(quantum.arrangement.0.quantum, Some(Bytes::new(300)));
}

#[test]
fn values_that_cannot_work_are_refused_by_name() {
    let plain = |text: &str| read::<Plain>(text).unwrap().validate().unwrap_err().key;
    assert_eq!(plain("flows = 0"), "flows");
    assert_eq!(plain("stations = 0"), "stations");
    assert_eq!(plain("flows = 3\nweights = \"1::4\""), "weights");
    let classes = Classes { class_limit: Some(Limit::Packets(0)), ..Classes::default() };
    assert_eq!(Plain { classes, ..Plain::default() }.validate().unwrap_err().key, "class_limit");
    assert_eq!(plain("max_packet = \"0B\""), "max_packet");
    assert_eq!(plain("weights = \"1048576::1\"\nflows = 60000"), "weights");
    assert!(read::<Plain>("weights = \"2:3\"").unwrap_err().contains("weight::number"));
    let double = |text: &str| read::<Double>(text).unwrap().validate().unwrap_err().key;
    assert_eq!(double("buffer = \"3GB\""), "buffer");
    let by_name = |text: &str| read::<Config<ByName>>(text).unwrap().validate().unwrap_err();
    assert_eq!(by_name("qos = \"qfqq\"").key, "qos");
    assert!(by_name("mac = \"none\"").message.contains("drr"));
    // A turn of 2^20 packets of 9 kB is too long for DRR.
    assert_eq!(double("weighting = \"exponential\"\nmax_packet = \"9000B\""), "weighting");
}
