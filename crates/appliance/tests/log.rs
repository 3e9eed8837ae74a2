//! The log of changes.

use penstock_appliance::log::Log;
use penstock_appliance::socket::server::Peer;
use serde_json::{Value, json};

#[test]
fn lines_are_added_and_an_error_is_told() {
    let directory = std::env::temp_dir().join(format!("penstock-log-{}", std::process::id()));
    let mut log = Log::new(directory.join("deep/log.jsonl"));
    let peer = Peer { uid: Some(0), pid: Some(std::process::id() as i32) };
    log.add(Some(peer), "set", &json!({"rate": "1Mbit/s"}));
    log.add(None, "lapse", &Value::Null);
    let text = std::fs::read_to_string(directory.join("deep/log.jsonl")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((lines[0]["do"].as_str(), lines[0]["details"]["rate"].as_str()), (Some("set"), Some("1Mbit/s")));
    assert!(lines[0]["by"]["command"].is_string() && lines[1]["by"].is_null() && log.error().is_none());
    let mut full = Log::new("/dev/full".into());
    full.add(None, "x", &Value::Null);
    assert!(full.error().unwrap().starts_with("/dev/full: "));
    std::fs::remove_dir_all(directory).unwrap();
}
