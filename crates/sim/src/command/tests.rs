use super::*;
use penstock_core::aqm::codel;
use penstock_core::cc::newreno;
use penstock_core::sched::drr;

fn own() -> Own {
    Own::new()
        .with_aqm::<codel::Config>("my-codel")
        .with_control::<newreno::Config>("my-reno")
        .with_scheduler::<drr::Config>("my-drr")
}

fn call(arguments: &[&str]) -> Result<String, CommandError> {
    run(&own(), &arguments.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>())
}

/// A file of a test, which is removed again.
struct Written(std::path::PathBuf);

impl Written {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("penstock-command-{}-{name}", std::process::id()));
        std::fs::write(&path, text).unwrap();
        Self(path)
    }
    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

const SCENARIO: &str = "duration = \"2s\"\n[topology]\nkind = \"dumbbell\"\nrate = \"5Mbit/s\"\ndelay = \"10ms\"\n\
                        limit = \"50p\"\n[aqm]\nname = \"codel\"\n[tcp]\ncc = \"newreno\"\n[[flows]]\nkind = \"bulk\"\ncount = 2\n";

/// The same algorithms under names of a program give the same bytes.
#[test]
fn a_scenario_runs_with_the_algorithms_of_the_program() {
    let named = |aqm: &str, cc: &str| {
        let text = SCENARIO.replace("\"codel\"", aqm).replace("\"newreno\"", cc);
        let file = Written::new("run.toml", &format!("name = \"run\"\n{text}"));
        call(&[file.path(), "--seed", "3"]).unwrap().replace("my-codel", "codel").replace("my-reno", "newreno")
    };
    let mine = named("\"my-codel\"", "\"my-reno\"");
    assert_eq!(mine, named("\"codel\"", "\"newreno\""));
    assert!(mine.contains("\"seed\":3"), "{mine}");
}

#[test]
fn packets_events_and_windows_are_replayed() {
    let trace: String = (0..400).map(|i| format!("{},{},1000,0\n", i * 500_000, i % 3)).collect();
    let trace = Written::new("trace.csv", &format!("t_ns,flow,size,ecn\n{trace}"));
    let link = ["--rate", "8Mbit/s", "--limit", "100p", "--set", "target=2ms"];
    let fates = |aqm: &str| call(&[&["replay", trace.path(), "--aqm", aqm], &link[..]].concat()).unwrap();
    assert_eq!(fates("my-codel"), fates("codel"));
    assert!(fates("my-codel").contains("drop_dequeue"));
    let state = call(&[&["replay", trace.path(), "--state-at", "200:100000000"], &link[..]].concat()).unwrap();
    assert!(state.contains("Codel"), "{state}");
    let events = Written::new("events.csv", "arrive,1,1000\narrive,0,1000\ndepart,0,0\ndepart,0,0\ndepart,0,0\n");
    let order = |alg: &str| call(&["schedule", events.path(), "--weights", "1,3", "--alg", alg]).unwrap();
    assert_eq!(order("my-drr"), order("drr"));
    assert!(order("my-drr").starts_with("0\n1\n-1\n"), "{}", order("my-drr"));
    let script =
        Written::new("script.csv", "t_us,event,segments,rtt_us\n0,ack,1,100000\n10,loss,10,0\n30,recovered,0,0\n");
    let windows = |cc: &str| call(&["control", script.path(), "--cc", cc]).unwrap();
    assert_eq!(windows("my-reno"), windows("newreno"));
    assert!(windows("my-reno").lines().nth(2).unwrap().starts_with("10,loss,11.000,5.000"), "{}", windows("my-reno"));
}

#[test]
fn what_is_missing_or_wrong_is_told() {
    assert_eq!(call(&["names"]).unwrap(), "aqm my-codel\ncc my-reno\nscheduler my-drr\n");
    assert!(call(&["--help"]).unwrap().contains("my-drr"));
    let told = |arguments: &[&str]| call(arguments).unwrap_err().to_string();
    assert!(told(&[]).starts_with("usage"));
    assert!(told(&["nowhere.toml"]).starts_with("nowhere.toml: cannot be read"));
    assert!(told(&["replay", "a.csv", "--rate"]).contains("--rate: give it a value"));
    assert!(told(&["replay", "a.csv", "--wrong", "1"]).contains("--wrong: there is no such option"));
    assert!(told(&["replay", "a.csv"]).contains("--rate is missing"));
    assert!(told(&["replay", "a.csv", "--rate", "8"]).contains("--rate 8: "));
    assert!(told(&["replay"]).contains("give one file; given are 0"));
    assert!(told(&["replay", "a.csv", "--aqm", "my-cdel", "--rate", "8Mbit/s"]).contains("my-cdel"));
    assert!(told(&["schedule", "a.csv", "--weights", "1,x"]).contains("--weights"));
}
