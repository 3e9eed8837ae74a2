use super::*;
use crate::sched::{Limits, Scheduled};
use std::sync::Mutex;

const LARGEST: Bytes = Bytes::new(1500);

/// Answers from a list; where the list ends, no class. Counts what else it is told.
#[derive(Debug, Clone)]
struct Reads {
    answers: VecDeque<Option<u32>>,
    calls: u32,
    told: Arc<Mutex<Vec<String>>>,
}

impl Scheduler for Reads {
    fn classes(&self) -> usize {
        3
    }
    fn max_packet(&self) -> Bytes {
        LARGEST
    }
    fn enqueue(&mut self, _: u32, _: Bytes, _: bool) {
        self.calls += 1;
    }
    fn dequeue(&mut self) -> Option<u32> {
        self.answers.pop_front().flatten()
    }
    fn served(&mut self, _: u32, _: Bytes, _: Option<Bytes>) {
        self.calls += 1;
    }
    fn set_weight(&mut self, _: u32, _: Weight) -> Result<(), ConfigError> {
        self.calls += 1;
        Ok(())
    }
    fn set_channel(&mut self, _: u32, _: bool) {
        self.calls += 1;
    }
}

impl ForeignScheduler for Reads {
    fn copy(&self) -> Box<dyn ForeignScheduler> {
        Box::new(self.clone())
    }
    fn broke(&mut self, fault: &Fault) {
        self.told.lock().unwrap().push(fault.to_string());
    }
}

impl MakeScheduler for Reads {
    fn make(&self, _: &Setup<'_>) -> Box<dyn ForeignScheduler> {
        Box::new(self.clone())
    }
}

/// Queues with packets 0 to 3 in the classes 1, 0, 1, 0, whose scheduler gives these answers.
fn queues(answers: &[Option<u32>]) -> (Scheduled<u64, AnyForeignScheduler>, Arc<Mutex<Vec<String>>>) {
    let told = Arc::<Mutex<Vec<String>>>::default();
    let reads = Reads { answers: answers.iter().copied().collect(), calls: 0, told: told.clone() };
    let config = Config::new("mine", Map::new(), Arc::new(reads));
    let setup = Setup { weights: &[Weight::ONE; 3], max_packet: LARGEST };
    config.validate(&setup).unwrap();
    let mut queues = Scheduled::new(config.scheduler(&setup), Limits::default());
    for (packet, class) in [1, 0, 1, 0].into_iter().enumerate() {
        queues.enqueue(class, Bytes::new(100), packet as u64).unwrap();
    }
    (queues, told)
}

fn leave(queues: &mut Scheduled<u64, AnyForeignScheduler>) -> Vec<u64> {
    std::iter::from_fn(|| queues.dequeue()).map(|served| served.packet).collect()
}

/// After the fault packets leave class by class, and the scheduler is not asked again.
fn fault(answers: &[Option<u32>], order: [u64; 4]) -> String {
    let (mut queues, told) = queues(answers);
    assert_eq!(leave(&mut queues), order);
    queues.check().unwrap();
    let told = told.lock().unwrap().clone();
    assert_eq!(told.len(), 1, "only the first is told: {told:?}");
    told[0].clone()
}

#[test]
fn a_scheduler_that_serves_each_packet_once_is_left_alone() {
    let (mut queues, told) = queues(&[Some(0), Some(1), Some(1), Some(0), None]);
    assert_eq!(leave(&mut queues), [1, 0, 2, 3]);
    assert!(told.lock().unwrap().is_empty());
}

#[test]
fn an_idle_link_is_told_with_the_oldest_packet() {
    let told = fault(&[Some(1), None], [0, 1, 3, 2]);
    assert!(
        told.starts_with("dequeue of mine, asked for departure 1, answered no class although 3 packets wait"),
        "{told}"
    );
    assert!(told.contains("the oldest of them packet 1 in class 0"), "{told}");
}

#[test]
fn a_class_without_packets_is_told_with_its_last_packet() {
    let told = fault(&[Some(1), Some(1), Some(1)], [0, 2, 1, 3]);
    assert!(told.contains("class 1, which has no packet: its last, packet 2, has been served already"), "{told}");
    assert!(fault(&[Some(2)], [1, 3, 0, 2]).contains("class 2, to which no packet has come"));
}

#[test]
fn a_class_that_does_not_exist_is_told() {
    let told = fault(&[Some(3)], [1, 3, 0, 2]);
    assert!(told.ends_with("class 3, which does not exist: there are 3, from 0 to 2"), "{told}");
}

/// The answers that are left, the calls and what was told are the same after whatever comes after the fault.
#[test]
fn a_scheduler_that_broke_a_rule_is_not_called_again() {
    let (mut queues, _) = queues(&[Some(3), Some(0)]);
    queues.dequeue().unwrap();
    let state = queues.scheduler().state();
    assert!(state.contains("calls: 4") && state.contains("class 3"), "{state}");
    queues.enqueue(2, Bytes::new(100), 9).unwrap();
    queues.scheduler_mut().set_weight(0, Weight::ONE).unwrap();
    queues.scheduler_mut().set_channel(0, false);
    assert_eq!(leave(&mut queues).len(), 4);
    assert_eq!(queues.scheduler().state(), state);
}

#[test]
fn packets_wait_for_a_bad_channel_and_for_nothing_else() {
    let (mut queues, told) = queues(&[Some(0), Some(0), None, None, Some(1)]);
    queues.scheduler_mut().set_channel(1, false);
    assert_eq!(leave(&mut queues), [1, 3]);
    assert!(queues.dequeue().is_none() && told.lock().unwrap().is_empty());
    queues.scheduler_mut().set_channel(1, true);
    assert_eq!(leave(&mut queues), [0, 2], "the last answer is `None`, which is the fault");
    assert_eq!(told.lock().unwrap().len(), 1);
}

#[test]
#[should_panic(
    expected = "dequeue of silent, asked for departure 0, answered no class although 1 packet waits, packet 0 in class 2"
)]
fn a_compiled_scheduler_that_breaks_a_rule_panics_with_the_sentence() {
    #[derive(Debug, Clone)]
    struct Silent;
    impl Scheduler for Silent {
        fn classes(&self) -> usize {
            3
        }
        fn max_packet(&self) -> Bytes {
            LARGEST
        }
        fn enqueue(&mut self, _: u32, _: Bytes, _: bool) {}
        fn dequeue(&mut self) -> Option<u32> {
            None
        }
        fn served(&mut self, _: u32, _: Bytes, _: Option<Bytes>) {}
        fn set_weight(&mut self, _: u32, _: Weight) -> Result<(), ConfigError> {
            Ok(())
        }
    }
    impl ForeignScheduler for Silent {
        fn copy(&self) -> Box<dyn ForeignScheduler> {
            Box::new(self.clone())
        }
    }
    let mut scheduler =
        AnyForeignScheduler { name: "silent".into(), guard: Guard::new(3), scheduler: Box::new(Silent) };
    scheduler.enqueue(2, Bytes::new(1), true);
    scheduler.dequeue();
}
