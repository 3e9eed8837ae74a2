//! WEIR on a router: addresses on the LAN are hosts, and have the same with one connection or four.

use crate::lab::Lab;
use penstock_linux::testing::Sender;
use serde_json::Value;

const ROUTER: &str = "[interfaces]\nwan = \"eth0\"\n[link]\nrate = \"10Mbit/s\"\n[discipline]\nname = \"weir\"\n";

#[test]
fn weir_shares_a_link_by_address_and_drops_no_tcp() {
    let Some(mut lab) = Lab::new("--rate 100Mbit/s --delay 10ms") else { return };
    lab.sh("c", "ip address add 10.88.0.3/24 dev eth0; ip address add 10.88.0.4/24 dev eth0");
    let gateway = lab.govern(ROUTER);
    let words = ["-t 7 -B 10.88.0.2", "-t 7 -P 4 -B 10.88.0.3", "-u -b 100k -l 160 -t 7 -B 10.88.0.4"];
    let transfers = lab.begin(&words.map(|words| Sender::new("c", words)), ["s", "10.77.0.2"]);
    let results: Vec<Value> = transfers.into_iter().map(|transfer| transfer.result()).collect();
    // The mean rate of all connections after the two seconds in which they begin. iperf3 counts blocks of 128 kB.
    let rate = |result: &Value| {
        let seconds = &result["intervals"].as_array().unwrap()[2..7];
        seconds.iter().map(|second| second["sum"]["bits_per_second"].as_f64().unwrap()).sum::<f64>() / 5.0
    };
    let (one, four) = (rate(&results[0]), rate(&results[1]));
    let status = gateway.end();
    let lost = results[2]["end"]["sum"]["lost_packets"].as_u64().unwrap();
    let dropped = &status["reverse"]["dropped"];
    let drops: u64 = dropped.as_object().unwrap().values().filter_map(Value::as_u64).sum();
    eprintln!("{one:.0} and {four:.0} bit/s, a call loses {lost}; {dropped}");
    let link = lab.end_link();
    if link.disturbed {
        return eprintln!("disturbed: {:?}", link.disturbed_by);
    }
    if status["stalled"]["times"] != 0 {
        return eprintln!("the machine was late: {}", status["stalled"]);
    }
    assert!(one + four > 0.85 * 10e6, "{one} {four}");
    assert!((0.8..1.25).contains(&(one / four)), "{one} {four}");
    assert_eq!((lost, drops), (0, 0), "{status}");
}
