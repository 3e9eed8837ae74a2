use super::*;
use crate::aqm::{codel, droptail, pie};
use crate::config::{AqmConfig, CompatVersion, Discipline, LinkFacts};
use crate::packet::FlowId;
use crate::registry::PerFlow;
use crate::rng::{Rng, Streams};
use crate::testing::Numbered;
use crate::units::{Bytes, Rate, Span};
use proptest::prelude::*;

/// A discipline with its clock and the packets that it dropped.
struct Bench<A> {
    queue: FlowQueue<Numbered, A>,
    rng: Rng,
    now: Instant,
    number: u64,
    dropped: Dropped,
}

#[derive(Default)]
struct Dropped(Vec<(u64, u32, DropReason)>);

impl PacketObserver<Numbered> for Dropped {
    fn dropped(&mut self, packet: Numbered, reason: DropReason, _: Instant) {
        self.0.push((packet.number, packet.flow.0, reason));
    }
    fn marked(&mut self, _: &Numbered, _: Instant) {}
}

impl<A: Aqm + Clone> Bench<A> {
    fn new<C: AqmConfig<Aqm = A>>(config: &Config<C>, limit: Limit) -> Self {
        Discipline::validate(config).unwrap();
        let link = LinkFacts { rate: Rate::from_bps(10_000_000), limit };
        let (rng, dropped) = (Streams::new(1).get("fq"), Dropped::default());
        Self { queue: config.build(&link), rng, now: Instant::ZERO, number: 0, dropped }
    }

    fn arrive(&mut self, flow: u32, size: u64) -> Enqueued {
        let packet = Numbered::new(self.number, FlowId(flow), Bytes::new(size));
        self.number += 1;
        self.queue.enqueue(packet, self.now, &mut self.rng, &mut self.dropped)
    }

    fn arrive_often(&mut self, flow: u32, packets: u32, size: u64) {
        for _ in 0..packets {
            self.arrive(flow, size);
        }
    }

    fn depart(&mut self) -> Option<Numbered> {
        self.queue.dequeue(self.now, &mut self.rng, &mut self.dropped)
    }

    /// The flows of the next `n` packets.
    fn flows(&mut self, n: usize) -> Vec<u32> {
        (0..n).map_while(|_| self.depart()).map(|p| p.flow.0).collect()
    }

    fn check(&self) {
        self.queue.stats.check(self.queue.backlog).unwrap();
        let of_queues = |of: fn(&Queue<A>) -> u64| self.queue.queues.iter().map(of).sum::<u64>();
        assert_eq!(of_queues(|q| u64::from(q.packets)), self.queue.backlog.packets);
        assert_eq!(self.queue.bytes.iter().sum::<u64>(), self.queue.backlog.bytes);
        for (at, queue) in self.queue.queues.iter().enumerate() {
            assert!(queue.packets == 0 || self.queue.turns.is_active(at), "queue {at} waits in no list");
        }
    }
}

/// Fair queueing without an AQM, with eight ways so that a few flows never share a queue.
fn plain(parameters: Parameters) -> Config<droptail::Config> {
    Config { queues: Parameters { ways: 8, ..parameters }, aqm: droptail::Config::default() }
}

const ROOM: Limit = Limit::Packets(10_240);

/// RFC 8290 §4: flows 1 and 2 are active when flow 3 begins. Flow 3 is new and goes next for one quantum of 1514 B,
/// which two packets of 1000 B use up (the second one takes the deficit to -486 B). It gets a quantum and joins the end
/// of the old list. Flow 1, the first of the old list, has used up its turn and goes behind flow 3 with another
/// quantum. So flow 2 is next, then flow 3 with 1028 B for two packets, then flow 1.
#[test]
fn a_flow_that_begins_goes_next_for_one_quantum() {
    let mut bench = Bench::new(&plain(Parameters::default()), ROOM);
    for flow in [1, 2] {
        bench.arrive_often(flow, 6, 1514);
    }
    assert_eq!(bench.flows(3), [1, 2, 1]);
    bench.arrive_often(3, 4, 1000);
    assert_eq!(bench.flows(7), [3, 3, 2, 3, 3, 1, 2]);
    bench.check();
}

/// §4.2: a flow that sends a packet each time its queue was found empty is new only once per round.
#[test]
fn a_sparse_flow_cannot_starve_others_by_coming_and_going() {
    let mut bench = Bench::new(&plain(Parameters::default()), ROOM);
    bench.arrive_often(1, 20, 1514);
    assert_eq!(bench.flows(1), [1]);
    let mut served = Vec::new();
    for _ in 0..8 {
        bench.arrive(2, 1514);
        served.extend(bench.flows(1));
    }
    assert_eq!(served, [2, 1, 2, 1, 2, 1, 2, 1]);
}

/// A flow that sends one small packet per round after its turn never waits behind old flows.
#[test]
fn a_sparse_flow_does_not_wait() {
    let mut bench = Bench::new(&plain(Parameters::default()), ROOM);
    for flow in [1, 2, 3] {
        bench.arrive_often(flow, 20, 1514);
    }
    assert_eq!(bench.flows(3), [1, 2, 3]);
    for _ in 0..4 {
        bench.arrive(9, 100);
        assert_eq!(bench.flows(1), [9]);
        // A round of the other flows: flow 9 is found empty, waits at the end of the old list and leaves.
        bench.flows(7);
    }
}

/// §4.1. Three flows of 5, 3 and 2 packets fill a limit of 10. The eleventh packet belongs to the smallest flow; half
/// of the fattest flow, 2500 of 5000 B, is dropped from its head: 3 packets.
#[test]
fn the_fattest_flow_pays_with_half_of_its_bytes_from_the_head() {
    let mut bench = Bench::new(&plain(Parameters::default()), Limit::Packets(10));
    for (flow, packets) in [(1, 3), (2, 5), (3, 2)] {
        bench.arrive_often(flow, packets, 1000);
    }
    assert_eq!(bench.arrive(3, 1000), Enqueued::Queued);
    let reason = DropReason::Overflow;
    assert_eq!(bench.dropped.0, [(3, 2, reason), (4, 2, reason), (5, 2, reason)]);
    bench.check();
}

/// Packets of no bytes make no queue fat, and room is made all the same.
#[test]
fn packets_without_bytes_are_dropped_from_the_first_queue_that_has_some() {
    let mut bench = Bench::new(&plain(Parameters::default()), Limit::Packets(10));
    bench.arrive_often(3, 12, 0);
    assert_eq!(bench.dropped.0, [(0, 3, DropReason::Overflow), (1, 3, DropReason::Overflow)]);
    bench.check();
}

#[test]
fn a_batch_has_at_most_drop_batch_packets() {
    let few = Parameters { drop_batch: 2, ..Parameters::default() };
    let mut bench = Bench::new(&plain(few), Limit::Packets(100));
    bench.arrive_often(1, 101, 1000);
    assert_eq!(bench.dropped.0.len(), 2);
    let mut bench = Bench::new(&plain(Parameters::default()), Limit::Packets(200));
    bench.arrive_often(1, 201, 1000);
    assert_eq!(bench.dropped.0.len(), 64);
}

/// The arriving packet belongs to the fattest flow itself and is reported as dropped.
#[test]
fn a_packet_larger_than_the_limit_is_dropped_on_arrival() {
    let mut bench = Bench::new(&plain(Parameters::default()), Limit::Bytes(Bytes::new(3000)));
    bench.arrive(1, 1000);
    assert_eq!(bench.arrive(2, 5000), Enqueued::Dropped(DropReason::Overflow));
    assert_eq!(bench.dropped.0, [(1, 2, DropReason::Overflow)]);
    assert_eq!(bench.queue.backlog, Backlog { packets: 1, bytes: 1000 });
    bench.check();
}

#[test]
fn memory_is_limited_in_bytes() {
    let parameters = Parameters { memory_limit: Bytes::new(10_000), ..Parameters::default() };
    let mut bench = Bench::new(&plain(parameters), ROOM);
    bench.arrive_often(1, 11, 1000);
    // 11,000 B: half are 5500 B, that is 6 packets.
    assert_eq!((bench.dropped.0.len(), bench.queue.backlog.bytes), (6, 5000));
}

#[test]
fn memory_overruns_are_only_counted_as_in_linux() {
    let parameters =
        Parameters { memory_limit: Bytes::new(2000), overflow: Overflow::Arrival, ..Parameters::default() };
    let mut bench = Bench::new(&plain(parameters.clone()), Limit::Packets(4));
    bench.arrive_often(1, 6, 1000);
    assert_eq!((bench.queue.backlog.packets, bench.queue.memory_overruns()), (2, 0));
    let mut bench = Bench::new(&plain(Parameters { compat: CompatVersion::Linux, ..parameters }), Limit::Packets(4));
    bench.arrive_often(1, 6, 1000);
    assert_eq!((bench.queue.backlog.packets, bench.queue.memory_overruns()), (4, 2));
    assert_eq!(bench.dropped.0, [(4, 1, DropReason::Overflow), (5, 1, DropReason::Overflow)]);
}

/// As in Linux, CoDel sees the backlog of all queues: it drops although less than an MTU waits in the flow's own queue.
#[test]
fn in_linux_codel_is_shown_the_bytes_of_all_flows() {
    let drops_of_lone_packets = |compat| {
        let mut config = Config::<codel::Config>::default();
        (config.queues.ways, config.queues.compat, config.aqm.compat) = (8, compat, compat);
        let mut bench = Bench::new(&config, ROOM);
        bench.arrive_often(1, 20, 1500);
        for ms in [0, 10, 200, 210, 400] {
            bench.now = Instant::ZERO + Span::from_millis(ms);
            bench.arrive(2, 1500);
            bench.now += Span::from_millis(9);
            while bench.depart().is_some_and(|p| p.flow.0 != 2) {}
        }
        bench.dropped.0.iter().filter(|d| d.1 == 2).count()
    };
    assert_eq!(drops_of_lone_packets(CompatVersion::Source), 0);
    assert!(drops_of_lone_packets(CompatVersion::Linux) > 0);
}

/// An AQM that counts how often it was woken, every 10 ms.
#[derive(Debug, Clone, PartialEq)]
struct Ticking(u64);

impl AckPath for Ticking {}
impl Aqm for Ticking {
    const WAKES: bool = true;

    fn next_wakeup(&self) -> Option<Instant> {
        Some(Instant::ZERO + Span::from_millis(10 * (self.0 + 1)))
    }
    fn on_wakeup(&mut self, _: Backlog, _: Instant) {
        self.0 += 1;
    }
    fn on_fact(&mut self, _: &Fact, _: Instant) {}
}

#[test]
fn one_timer_wakes_queues_in_use_and_idle_ones_alike() {
    let mut queue = FlowQueue::<Numbered, Ticking>::new(ROOM, &Parameters::default(), Ticking(0));
    let mut rng = Streams::new(1).get("fq");
    let packet = |flow| Numbered::new(0, FlowId(flow), Bytes::new(1000));
    let mut wakeups = 0;
    for ms in 0..100 {
        let now = Instant::ZERO + Span::from_millis(ms);
        while queue.next_wakeup().is_some_and(|due| due <= now) {
            queue.on_wakeup(now);
            wakeups += 1;
        }
        if ms == 5 || ms == 55 {
            queue.enqueue(packet(ms as u32), now, &mut rng, &mut ());
            queue.dequeue(now, &mut rng, &mut ());
        }
    }
    assert_eq!(wakeups, 9, "once per 10 ms, whatever the number of queues");
    assert_eq!(queue.used.len(), 2);
    for at in &queue.used {
        assert_eq!(queue.aqm(*at as usize), Some(&Ticking(9)), "one that came late has aged like the others");
    }
}

#[test]
fn parameters_of_the_queues_and_of_the_aqm_are_in_one_table() {
    let read = |text: &str| toml::from_str::<Config<codel::Config>>(text);
    let config = read("flows = 64\ntarget = \"7ms\"\ncompat = \"linux\"").unwrap();
    assert_eq!((config.queues.flows, config.aqm.target), (64, Span::from_millis(7)));
    assert_eq!((config.queues.compat, config.aqm.compat), (CompatVersion::Linux, CompatVersion::Linux));
    assert!(config.aqm.ecn, "FQ-CoDel marks unless told otherwise");
    for (told, compat) in [("linux-6.18", CompatVersion::Linux), ("linux-7.0", CompatVersion::Linux70)] {
        let config = read(&format!("compat = \"{told}\"")).unwrap();
        assert_eq!((config.queues.compat, config.aqm.compat), (compat, compat));
    }
    let pie = toml::from_str::<Config<pie::Config>>("compat = \"linux-7.0\"").unwrap_err().to_string();
    assert!(pie.contains("linux-7.0") && pie.contains("expected one of"), "{pie}");
    let again = read(&toml::to_string(&config).unwrap()).unwrap();
    assert_eq!(again, config);
    let unknown = read("traget = \"7ms\"").unwrap_err().to_string();
    assert!(unknown.contains("unknown field `traget`") && unknown.contains("target"), "{unknown}");
}

#[test]
fn the_pie_family_refuses_the_packet_that_comes_in_linux() {
    let config = toml::from_str::<Config<pie::Config>>("compat = \"linux\"").unwrap();
    assert_eq!((config.queues.overflow, config.queues.compat), (Overflow::Arrival, CompatVersion::Linux));
    assert_eq!(config.aqm.compat, crate::aqm::Compat::Linux);
    assert!(!config.aqm.ecn, "sch_fq_pie does not mark unless told to");
    for plain in ["compat = \"rfc\"", "compat = \"source\"", ""] {
        assert_eq!(toml::from_str::<Config<pie::Config>>(plain).unwrap(), Config::default());
    }
    let mut bench = Bench::new(&config, Limit::Packets(3));
    bench.arrive_often(1, 3, 1000);
    assert_eq!(bench.arrive(2, 40), Enqueued::Dropped(DropReason::Overflow));
    let said = "overflow = \"fattest\"\ncompat = \"linux\"";
    assert_eq!(toml::from_str::<Config<pie::Config>>(said).unwrap().queues.overflow, Overflow::Fattest);
}

/// cake_enqueue() drops one packet at a time, fq_codel_drop() up to 64.
#[test]
fn in_linux_cobalt_drops_one_packet_at_a_time() {
    let batch = |text: &str| toml::from_str::<Config<crate::aqm::cobalt::Config>>(text).unwrap().queues.drop_batch;
    assert_eq!([batch(""), batch("compat = \"linux\""), batch("compat = \"linux\"\ndrop_batch = 5")], [64, 1, 5]);
    let codel = toml::from_str::<Config<codel::Config>>("compat = \"linux\"").unwrap();
    assert_eq!((codel.queues.drop_batch, codel.queues.overflow), (64, Overflow::Fattest));
}

/// A flood of flow 1 keeps the queues full. Of a flow that sends a packet now and then all come through; were the arrival
/// refused, most would find no room.
#[test]
fn a_flood_takes_no_room_from_others_in_fq_pie() {
    let lost = |overflow| {
        let mut config = Config::<pie::Config> {
            queues: Parameters { overflow, ways: 8, ..Parameters::default() },
            ..Config::default()
        };
        config.aqm.target = Span::from_secs(1000);
        let mut bench = Bench::new(&config, Limit::Packets(100));
        for _ in 0..200 {
            bench.arrive_often(1, 20, 1000);
            bench.arrive(2, 1000);
            bench.flows(2);
            bench.now += Span::from_millis(1);
        }
        bench.check();
        bench.dropped.0.iter().filter(|drop| drop.1 == 2).count()
    };
    assert_eq!(Config::<pie::Config>::default().queues.overflow, Overflow::Fattest);
    assert_eq!(lost(Overflow::Fattest), 0);
    assert!(lost(Overflow::Arrival) > 100, "{}", lost(Overflow::Arrival));
}

#[test]
fn values_that_cannot_work_are_refused_by_name() {
    let refused = |change: fn(&mut Config<codel::Config>)| {
        let mut config = Config::default();
        change(&mut config);
        Discipline::validate(&config).unwrap_err().key
    };
    assert_eq!(refused(|c| c.queues.flows = 0), "flows");
    assert_eq!(refused(|c| c.queues.ways = 3), "ways");
    assert_eq!(refused(|c| c.queues.quantum = Bytes::new(255)), "quantum");
    assert_eq!(refused(|c| c.queues.memory_limit = Bytes::ZERO), "memory_limit");
    assert_eq!(refused(|c| c.queues.drop_batch = 0), "drop_batch");
    assert_eq!(refused(|c| c.aqm.target = Span::ZERO), "target");
}

#[test]
fn the_aqm_of_each_flow_may_be_chosen_by_name() {
    let read = |text: &str| toml::from_str::<Config<PerFlow>>(text);
    let by_text = read("per_flow = \"red min_threshold=3p max_threshold=9p\"").unwrap();
    let by_table = read("per_flow = { name = \"red\", min_threshold = \"3p\", max_threshold = \"9p\" }").unwrap();
    assert_eq!(by_text, by_table);
    assert_eq!(by_text.aqm.per_flow.name(), "red");
    assert!(Discipline::validate(&by_text).is_ok());
    assert_eq!(read(&toml::to_string(&by_text).unwrap()).unwrap(), by_text);
    for (text, says) in [
        ("per_flow = \"codle\"", "there is no AQM \"codle\"; it may be droptail"),
        ("per_flow = \"codel traget=1ms\"", "codel has no parameter \"traget\""),
        ("per_flow = 3", "3 is not the name of an AQM"),
        ("per_flow = \"red min_threshold=3ms\"", "red: "),
    ] {
        // A name that is not in the registry may be one of a library, so it is refused only when it was looked up.
        let message = match read(text) {
            Err(error) => error.to_string(),
            Ok(config) => Discipline::validate(&config).unwrap_err().to_string(),
        };
        assert!(message.contains(says), "{message}");
    }
}

#[test]
fn an_element_that_edits_acks_cannot_be_per_flow() {
    let config = toml::from_str::<Config<PerFlow>>("per_flow = \"green\"").unwrap();
    let error = Discipline::validate(&config).unwrap_err();
    assert_eq!(error.key, "per_flow");
    assert!(error.message.contains("ACKs of all flows") && error.message.contains("codel"), "{error}");
    let pink = toml::from_str::<Config<PerFlow>>("per_flow = \"pink\"").unwrap();
    assert!(Discipline::validate(&pink).is_err(), "it stands before all queues");
}

/// Packet sizes for three flows.
fn sizes() -> impl Strategy<Value = Vec<Vec<u64>>> {
    prop::collection::vec(prop::collection::vec(40..=1514u64, 200..=200), 3..=3)
}

proptest! {
    /// The bound of Shreedhar and Varghese: over any interval, two backlogged flows are served bytes that differ by
    /// less than a quantum and two largest packets.
    #[test]
    fn backlogged_flows_get_equal_bytes(sizes in sizes(), quantum in 256..4000u64) {
        let parameters = Parameters { quantum: Bytes::new(quantum), ..Parameters::default() };
        let mut bench = Bench::new(&plain(parameters), ROOM);
        for (flow, sizes) in sizes.iter().enumerate() {
            sizes.iter().for_each(|size| bench.arrive_often(flow as u32, 1, *size));
        }
        let mut sent = vec![[0i64; 3]];
        // Until a flow runs empty: it has 200 packets of at least 40 B.
        while bench.queue.queues.iter().filter(|q| q.packets > 0).count() == 3 {
            let packet = bench.depart().unwrap();
            let mut next = *sent.last().unwrap();
            next[packet.flow.0 as usize] += packet.size.get() as i64;
            sent.push(next);
        }
        let bound = quantum as i64 + 2 * 1514;
        for (i, j) in [(0, 1), (0, 2), (1, 2)] {
            let ahead: Vec<i64> = sent.iter().map(|s| s[i] - s[j]).collect();
            let widest = ahead.iter().max().unwrap() - ahead.iter().min().unwrap();
            prop_assert!(widest < bound, "flows {i} and {j}: {widest} B apart, bound {bound}");
        }
    }

    /// For any arrivals and any number of queues, all packets are accounted for, the limits hold after each step, and
    /// no flow is reordered.
    #[test]
    fn random_lives_keep_limits_and_order(
        steps in prop::collection::vec((0..3u8, 0..40u32, 1..2000u64), 1..400),
        ways in prop::sample::select(vec![1u32, 2, 8, 16]),
        limit in 1..60u64,
        memory in 500..60_000u64,
        overflow in prop::sample::select(vec![Overflow::Fattest, Overflow::Arrival]),
    ) {
        let memory_limit = Bytes::new(memory);
        let queues = Parameters { flows: 16, ways, memory_limit, overflow, ..Parameters::default() };
        let mut bench = Bench::new(&Config { queues, aqm: codel::Config::default() }, Limit::Packets(limit));
        let mut last = [None; 40];
        for (kind, flow, size) in steps {
            bench.now += Span::from_millis(u64::from(flow));
            if kind > 0 {
                bench.arrive(flow, size);
            } else if let Some(packet) = bench.depart() {
                let before = last[packet.flow.0 as usize].replace(packet.number);
                prop_assert!(before < Some(packet.number), "flow {} was reordered", packet.flow.0);
            }
            prop_assert!(bench.queue.backlog.packets <= limit && bench.queue.backlog.bytes <= memory);
            bench.check();
        }
    }
}

/// Titles of schemas and references to them.
#[test]
fn a_schema_is_named_after_flow_queueing_and_its_aqm() {
    use schemars::JsonSchema;
    let (name, aqm) = (<Config<codel::Config>>::schema_name(), codel::Config::schema_name());
    assert!(name.starts_with("FlowQueueing") && name.ends_with(&*aqm), "{name}");
}

/// Of queues with equally many bytes the first is the fattest, as in `fq_codel_drop()` of Linux.
#[test]
fn of_equals_the_first_is_the_fattest() {
    assert_eq!([&[7, 9, 9, 8][..], &[0, 0], &[1, 2]].map(fattest), [1, 0, 1]);
}

/// A bench whose queues have a crowd.
fn crowded(limit: Limit) -> Bench<droptail::DropTail> {
    let mut bench = Bench::new(&plain(Parameters::default()), limit);
    bench.queue = bench.queue.with_crowd();
    bench
}

impl Bench<droptail::DropTail> {
    /// A packet for the crowd, which has the turns of `flows` flows, and at most `most` bytes of this one.
    fn join(&mut self, flow: u32, size: u64, flows: u64, most: u64) -> Enqueued {
        let packet = Numbered::new(self.number, FlowId(flow), Bytes::new(size));
        self.number += 1;
        let most = Bytes::new(most);
        self.queue.enqueue_in_crowd(packet, flows, most, self.now, &mut self.rng, &mut self.dropped)
    }
}

#[test]
fn a_crowd_waits_in_the_order_of_arrival_and_sparse_flows_go_before_it() {
    let mut bench = crowded(ROOM);
    for flow in [1, 1, 1, 2, 3, 1, 2] {
        bench.join(flow, 1000, 3, 10_000);
    }
    assert_eq!(bench.flows(1), [1]);
    bench.arrive(9, 100);
    assert_eq!(bench.flows(8), [9, 1, 1, 2, 3, 1, 2]);
}

/// Two flows that are always backlogged beside a crowd of four: in three rounds each has 3 quanta and the crowd 12.
#[test]
fn a_crowd_has_the_turns_of_its_flows() {
    let mut bench = crowded(ROOM);
    bench.arrive_often(8, 100, 1514);
    bench.arrive_often(9, 100, 1514);
    assert_eq!(bench.flows(2), [8, 9]); // they are not new any more
    (0..100).for_each(|i| _ = bench.join(i % 4, 1514, 4, 100_000));
    let order = bench.flows(18);
    let of = |wanted: fn(u32) -> bool| order.iter().filter(|flow| wanted(**flow)).count();
    assert_eq!((of(|flow| flow < 4), of(|flow| flow == 8), of(|flow| flow == 9)), (12, 3, 3), "{order:?}");
}

/// The third packet of flow 1 would be too much, and waits in its own queue. The fourth would fit when one has left, but
/// would pass the third. When that has left, the crowd takes it again.
#[test]
fn what_a_flow_has_too_much_waits_in_its_own_queue_and_is_not_passed() {
    let mut bench = crowded(ROOM);
    (0..3).for_each(|_| _ = bench.join(1, 1000, 1, 2000));
    let own = |bench: &Bench<_>| bench.queue.queues[..1024].iter().map(|queue| queue.packets).sum::<u32>();
    assert_eq!(own(&bench), 1);
    bench.join(1, 1000, 1, 3000);
    assert_eq!(own(&bench), 2);
    assert_eq!(bench.flows(4), [1; 4]);
    bench.join(1, 1000, 1, 2000);
    assert_eq!((own(&bench), bench.queue.backlog.packets), (0, 1));
}

/// Room for ten packets, eight of which a crowd of eight has: the flood of flow 9 gives way, though it has less.
#[test]
fn a_crowd_gives_way_only_if_one_of_its_flows_has_most() {
    let mut bench = crowded(Limit::Packets(10));
    (0..8).for_each(|flow| _ = bench.join(flow, 1000, 8, 5000));
    bench.arrive_often(9, 10, 1000);
    assert!(bench.dropped.0.iter().all(|(_, flow, _)| *flow == 9), "{:?}", bench.dropped.0);
    // Two flows with eight packets have four each, which is more than two.
    let mut bench = crowded(Limit::Packets(10));
    (0..8).for_each(|i| _ = bench.join(i % 2, 1000, 2, 5000));
    bench.arrive_often(9, 3, 1000);
    assert!(bench.dropped.0.iter().all(|(_, flow, _)| *flow < 2) && !bench.dropped.0.is_empty());
    bench.check();
}

proptest! {
    /// Whatever comes: packets of a flow in the crowd keep their order, all add up, and what the crowd knows of its flows is
    /// nothing once it is empty.
    #[test]
    fn a_crowd_loses_and_reorders_nothing(
        steps in prop::collection::vec((0u32..6, 40u64..1600, 0u64..5, any::<bool>(), 0usize..3), 1..200),
        limit in 3u64..40,
    ) {
        let mut bench = crowded(Limit::Packets(limit));
        let mut left = std::collections::HashMap::new();
        for (flow, size, most, joins, departures) in steps {
            let _ = if joins { bench.join(flow, size, most, most * 1600) } else { bench.arrive(flow + 6, size) };
            for _ in 0..departures {
                let Some(packet) = bench.depart() else { break };
                if packet.flow.0 >= 6 {
                    prop_assert!(left.insert(packet.flow, packet.number) < Some(packet.number));
                }
            }
            bench.check();
        }
        bench.flows(usize::MAX);
        prop_assert!(bench.queue.crowd.as_ref().unwrap().is_empty());
    }
}
