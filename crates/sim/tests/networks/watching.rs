//! Whatever is recorded of a run, the run stays the same: in its summary, the number of events included, and in its
//! tables. The test [`every_observer_and_any_scenario`] and [`all_observers_and_the_examples`] have every observer that
//! a run can have; a new one goes into [`Observers`].

use super::*;
use penstock_sim::TcpTrace;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// What watches a run.
#[derive(Debug, Clone, Default)]
struct Observers {
    /// Tables by seconds are kept.
    series: bool,
    /// The packets of queues are captured.
    capture: Option<Form>,
    /// Connections and queues are sampled at this interval.
    samples: Option<Span>,
    /// The run is advanced in steps of this length, and between them its results so far are read.
    step: Option<Span>,
    /// The invariant `max_queue` is checked, with a bound that no queue reaches.
    bound: bool,
}

#[derive(Debug, Clone, Copy)]
enum Form {
    Pcapng,
    Csv,
    /// Only the queue of the first link.
    FirstQueue,
}

/// A file in memory.
#[derive(Debug, Clone, Default)]
struct File(Arc<Mutex<Vec<u8>>>);

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a run leaves behind: its summary, its tables as text (a mean of nothing is NaN, which is not equal to itself)
/// and its capture.
struct Left {
    summary: Summary,
    tables: String,
    capture: Vec<u8>,
}

fn watched(text: &str, observers: &Observers) -> Left {
    let mut scenario = Scenario::parse(text, "watched.toml").unwrap_or_else(|e| panic!("{e}\n{text}"));
    scenario.output.series = observers.series;
    scenario.invariants.max_queue = observers.bound.then_some(Bytes::new(1 << 40));
    let mut simulation = Simulation::new(&scenario);
    let file = File::default();
    let out = Box::new(file.clone());
    match observers.capture {
        Some(Form::Pcapng) => simulation.capture_to(out, &scenario).unwrap(),
        Some(Form::Csv) => simulation.capture_csv_to(out, &scenario).unwrap(),
        Some(Form::FirstQueue) => {
            scenario.output.pcapng = vec![scenario.links[0].name.clone()];
            simulation.capture_to(out, &scenario).unwrap();
        }
        None => {}
    }
    // A run without a connection that lasts cannot be sampled.
    let mut trace = observers.samples.and_then(|interval| TcpTrace::new(&simulation, &[], interval).ok());
    let step = observers.step.unwrap_or(Span::MAX);
    loop {
        let over = match &mut trace {
            Some(trace) => trace.advance(&mut simulation, step),
            None => simulation.advance(step),
        };
        if over.unwrap() {
            break;
        }
        let _ =
            (simulation.summary(), simulation.tables(), simulation.bytes_per_flow(), simulation.connection_numbers());
    }
    simulation.finish_capture().unwrap();
    let capture = file.0.lock().unwrap().clone();
    Left { summary: simulation.summary(), tables: format!("{:?}", simulation.tables()), capture }
}

/// Each observer alone, then all together.
fn all(step: Span, samples: Span) -> Vec<Observers> {
    let forms = [Form::Pcapng, Form::Csv, Form::FirstQueue];
    let none = Observers::default;
    let mut each: Vec<_> = forms.map(|form| Observers { capture: Some(form), ..none() }).into();
    each.push(Observers { series: true, ..none() });
    each.push(Observers { samples: Some(samples), ..none() });
    each.push(Observers { step: Some(step), ..none() });
    each.push(Observers { bound: true, ..none() });
    each.push(together(step, samples));
    each
}

fn together(step: Span, samples: Span) -> Observers {
    let (samples, step) = (Some(samples), Some(step));
    Observers { series: true, capture: Some(Form::Csv), samples, step, bound: true }
}

/// A capture as CSV has every packet that was sent or dropped, in the order of time.
fn check_rows(csv: &[u8], summary: &Summary) {
    let text = std::str::from_utf8(csv).unwrap();
    let times: Vec<u64> = text.lines().skip(1).map(|row| row.split(',').nth(1).unwrap().parse().unwrap()).collect();
    assert!(times.is_sorted());
    let packets = summary.bottlenecks.iter().map(|b| b.packets_all + b.drops_overflow + b.drops_aqm);
    assert_eq!(times.len() as u64, packets.sum::<u64>());
}

/// Steps, an outage that ends, losses: links change in a way that a watcher could disturb.
fn changes() -> impl Strategy<Value = String> {
    let step = (0u64..900, 1u64..40, 1u64..50, prop_oneof![Just(0.0), 0.0..0.2]).prop_map(|(at, rate, delay, loss)| {
        format!(
            "[[changes]]\nlink = \"l0\"\nat = \"{at}ms\"\nrate = \"{rate}00kbit/s\"\ndelay = \"{delay}ms\"\nloss = {loss}\n"
        )
    });
    let states = (1u64..90, 1u64..90).prop_map(|(good, bad)| {
        format!(
            "[[changes]]\nlink = \"l0\"\nstates = [{{ rate = \"4Mbit/s\", lasts = \"{good}ms\" }}, {{ rate = \"300kbit/s\", lasts = \"{bad}ms\" }}]\n"
        )
    });
    prop_oneof![2 => Just(String::new()), 2 => proptest::collection::vec(step, 1..4).prop_map(|s| s.concat()), 1 => states]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn every_observer_and_any_scenario(
        text in (scenario(), changes()).prop_map(|(text, changes)| text + &changes),
        step in 100_000u64..200_000_000,
        samples in 1_000_000u64..50_000_000,
    ) {
        let alone = watched(&text, &Observers::default());
        let rows = watched(&text, &Observers { series: true, ..Observers::default() }).tables;
        let mut csv = None;
        for observers in all(Span::from_nanos(step), Span::from_nanos(samples)) {
            let left = watched(&text, &observers);
            prop_assert!(left.summary == alone.summary, "{observers:?} changes {:#?} to {:#?}", alone.summary, left.summary);
            prop_assert_eq!(&left.tables, if observers.series { &rows } else { &alone.tables });
            if matches!(observers.capture, Some(Form::Csv)) {
                check_rows(&left.capture, &left.summary);
                prop_assert!(csv.get_or_insert(left.capture.clone()) == &left.capture, "{observers:?} changes the capture");
            }
        }
    }
}

/// The examples have what the random scenarios lack: handovers, cooperation, stations, orbits, bearers. An example that
/// reads a file beside it is left out.
#[test]
fn all_observers_and_the_examples() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    files.sort();
    let mut watched_runs = 0;
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let words = ["[[handovers]]", "[cooperation]", "stations", "orbit", "lte-bearers"];
        if ["trace =", "table ="].iter().any(|key| text.contains(key)) || !words.iter().any(|word| text.contains(word))
        {
            continue;
        }
        let alone = watched(&text, &Observers::default());
        let left = watched(&text, &together(Span::from_millis(370), Span::from_millis(50)));
        assert_eq!(left.summary, alone.summary, "{}", path.display());
        check_rows(&left.capture, &left.summary);
        watched_runs += 1;
    }
    assert!(watched_runs >= 5, "{watched_runs} examples were watched");
}
