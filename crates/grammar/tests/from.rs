//! Files of other tools as files of ours: each value of the tables is counted by hand from the manual that the comment names.

use penstock_grammar::Diagnosis;
use penstock_grammar::from::{Description, Given, Note, read};
use proptest::prelude::*;

fn of(text: &str) -> Result<Description, Diagnosis> {
    read(&[Given { name: "f", bytes: text.as_bytes() }])
}

/// The value at a path of a file that was made, as TOML writes it; "-" if it is not there.
fn value(text: &str, path: &str) -> String {
    let table: toml::Table = text.parse().unwrap_or_else(|e| panic!("{e}\n{text}"));
    let mut here = &toml::Value::Table(table);
    for key in path.split('.') {
        let Some(next) = here.get(key) else { return "-".into() };
        here = next;
    }
    here.to_string().trim_matches('"').to_owned()
}

/// The words that are listed for a gateway, without what every single line of tc has.
fn listed(of: &Description) -> Vec<String> {
    let notes = of.gateway_notes();
    let words = notes.into_iter().map(|note: Note| note.word);
    words.filter(|word| !["download", "upload", "overhead", "dev"].contains(&word.as_str())).collect()
}

/// What the discipline and the link of uploads must have for a line `tc qdisc add dev eth0 root LINE`.
fn check(line: &str, expected: &[(&str, &str)]) {
    let described = of(&format!("tc qdisc add dev eth0 root {line}")).unwrap_or_else(|e| panic!("{line}: {e}"));
    let text = described.gateway();
    for (key, told) in expected {
        let path = if let Some(key) = key.strip_prefix("link.") {
            format!("link.reverse_{key}")
        } else {
            format!("reverse_discipline.{key}")
        };
        assert_eq!(value(&text, &path), *told, "{line}: {key}\n{text}");
    }
}

/// tc-cake(8): names of options are keys; `bandwidth` is a rate of tc(8), `memlimit` a size, `rtt` a time. Presets of a round
/// trip have the times of the section on them, but `interplanetary` is the 10^9 us that tc sends.
#[test]
fn lines_of_cake() {
    check(
        "cake bandwidth 20Mbit",
        &[("name", "cake"), ("bandwidth", "20Mbit/s"), ("link.rate", "20Mbit/s"), ("compat", "linux")],
    );
    check("cake bandwidth 2500kbps", &[("bandwidth", "20Mbit/s")]); // bytes: 2500 * 8 = 20000 kbit/s
    check("cake bandwidth 1mibit", &[("bandwidth", "1048.576kbit/s")]); // 2^20 bits
    check("cake bandwidth 1gbit unlimited", &[("bandwidth", "-"), ("link.rate", "10Gbit/s")]);
    check("cake bandwidth 20mbit memlimit 4Mb", &[("memory_limit", "4194.304kB"), ("link.limit", "4194.304kB")]); // 4 * 2^20
    check("cake bandwidth 20mbit", &[("memory_limit", "-"), ("link.limit", "15503.36kB")]); // 10240 * 1514
    for (word, tins) in ["besteffort", "diffserv3", "diffserv4", "diffserv8", "precedence"].map(|word| (word, word)) {
        check(&format!("cake {word}"), &[("tins", tins)]);
    }
    for word in ["flowblind", "srchost", "dsthost", "hosts", "flows", "dual-srchost", "dual-dsthost", "triple-isolate"]
    {
        check(&format!("cake {word}"), &[("isolation", word)]);
    }
    for (word, rtt) in [
        ("rtt 50", "50us"), // a bare number is of microseconds
        ("rtt 80ms", "80ms"),
        ("datacentre", "100us"),
        ("lan", "1ms"),
        ("metro", "10ms"),
        ("regional", "30ms"),
        ("internet", "100ms"),
        ("oceanic", "300ms"),
        ("satellite", "1000ms"),
        ("interplanetary", "1000s"),
    ] {
        check(&format!("cake {word}"), &[("rtt", rtt)]);
    }
    check("cake wash ack-filter", &[("wash", "true"), ("ack_filter", "yes")]);
    check("cake wash nowash ack-filter-aggressive", &[("wash", "false"), ("ack_filter", "aggressive")]);
    check("cake egress no-ack-filter", &[("ingress", "false"), ("ack_filter", "no")]);
}

/// tc-cake(8), overhead: keywords add to what is there and `overhead`, `conservative` and `raw` set it, as strace shows that tc
/// does: `overhead 3 ethernet ether-vlan` sends 45, `conservative overhead 4` sends 4 with ATM, `pppoe-ptm pppoe-ptm` 60.
#[test]
fn overheads_of_cake() {
    for (words, overhead, mpu, framing) in [
        ("overhead 44 mpu 84", "44", "84", "none"),
        ("overhead 3 ethernet ether-vlan", "45", "84", "none"), // 3 + 38 + 4
        ("conservative overhead 4", "4", "0", "atm"),
        ("overhead 4 conservative", "48", "0", "atm"),
        ("pppoe-ptm pppoe-ptm", "60", "0", "ptm"), // 30 + 30
        ("pppoe-ptm raw overhead -4", "-4", "0", "none"),
        ("atm docsis", "18", "64", "none"),
        ("atm ethernet", "38", "84", "atm"),
        ("ethernet noatm mpu 70", "38", "70", "none"),
        ("pppoa-vcmux", "10", "0", "atm"),
        ("pppoa-llc", "14", "0", "atm"),
        ("pppoe-vcmux", "32", "0", "atm"),
        ("pppoe-llcsnap", "40", "0", "atm"),
        ("bridged-vcmux", "24", "0", "atm"),
        ("bridged-llcsnap", "32", "0", "atm"),
        ("ipoa-vcmux", "8", "0", "atm"),
        ("ipoa-llcsnap", "16", "0", "atm"),
        ("bridged-ptm ether-vlan", "26", "0", "ptm"), // 22 + 4
    ] {
        let framed = if framing == "none" { "ethernet" } else { framing };
        check(
            &format!("cake bandwidth 20mbit {words}"),
            &[
                ("overhead", overhead),
                ("mpu", mpu),
                ("framing", framing),
                ("link.overhead", overhead),
                ("link.mpu", mpu),
                ("link.framing", framed),
            ],
        );
    }
    let says = |words: &str| {
        let described = of(&format!("tc qdisc add dev eth0 root cake bandwidth 20mbit {words}")).unwrap();
        described.gateway_notes().iter().any(|note| note.word == "overhead")
    };
    assert!(says("") && says("raw") && says("raw overhead 4") && says("atm") && says("mpu 64"));
    assert!(!says("overhead 4") && !says("pppoe-ptm") && !says("ethernet noatm"));
}

/// tc-fq_codel(8), tc-codel(8), tc-pie(8), tc-fq_pie(8): times, sizes and numbers; `alpha` and `beta` are in sixteenths.
#[test]
fn lines_of_the_codels_and_pies() {
    check("fq_codel", &[("name", "fq-codel"), ("link.limit", "10240p"), ("ecn", "-")]);
    check(
        "fq_codel limit 2000 flows 512 target 3ms interval 40ms quantum 300 noecn ce_threshold 1000 memory_limit 16m drop_batch 8",
        &[
            ("link.limit", "2000p"),
            ("flows", "512"),
            ("target", "3ms"),
            ("interval", "40ms"),
            ("quantum", "300B"),
            ("ecn", "false"),
            ("ce_threshold", "1ms"),
            ("memory_limit", "16777.216kB"),
            ("drop_batch", "8"),
        ],
    );
    check(
        "fq_codel ce_threshold 1ms ce_threshold_selector 0x1/0x3",
        &[("ce_threshold_selector", "1"), ("ce_threshold_mask", "3")],
    );
    check(
        "codel limit 100 target 10ms interval 200ms ecn",
        &[("name", "codel"), ("link.limit", "100p"), ("target", "10ms"), ("ecn", "true")],
    );
    check(
        "pie limit 200 target 20000 tupdate 30ms alpha 3 beta 8 ecn bytemode dq_rate_estimator",
        &[
            ("link.limit", "200p"),
            ("target", "20ms"),
            ("tupdate", "30ms"),
            ("alpha", "0.1875"),
            ("beta", "0.5"),
            ("ecn", "true"),
            ("bytemode", "true"),
            ("estimator", "departure-rate"),
        ],
    );
    check(
        "pie noecn nobytemode no_dq_rate_estimator",
        &[("ecn", "false"), ("bytemode", "false"), ("estimator", "timestamps")],
    );
    check(
        "fq_pie ecn_prob 10 flows 64",
        &[("name", "fq-pie"), ("ecn_threshold", "-"), ("flows", "64"), ("link.limit", "10240p")],
    );
    assert_eq!(listed(&of("tc qdisc add dev eth0 root fq_pie ecn_prob 20").unwrap()), ["fq_pie ecn_prob 20"]);
}

/// tc-red(8): max is a quarter of limit and min a third of max. `limit 60000 avpkt 1000` sends 5000 and 15000 and a Wlog of 3,
/// and the second line a Wlog of 5: weights of 1/8 and 1/32.
#[test]
fn lines_of_red() {
    check(
        "red limit 60000 avpkt 1000",
        &[
            ("min_threshold", "5kB"),
            ("max_threshold", "15kB"),
            ("weight", "0.125"),
            ("mean_packet", "1kB"),
            ("bandwidth", "10Mbit/s"),
            ("max_probability", "0.02"),
            ("link.limit", "60kB"),
            ("ecn", "false"),
            ("compat", "linux"),
        ],
    );
    check(
        "red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 ecn bandwidth 20mbit probability 0.1",
        &[("weight", "0.03125"), ("ecn", "true"), ("bandwidth", "20Mbit/s"), ("max_probability", "0.1")],
    );
    let described = of("tc qdisc add dev eth0 root red limit 60000 avpkt 1000 adaptive harddrop").unwrap();
    assert_eq!(listed(&described), ["red adaptive", "red harddrop"]);
}

/// tc-tbf(8): what is queued is what passes in the latency, and the burst. 10 Mbit/s in 50 ms are 62500 B, and 32 kbit are
/// 4096 B (units of 1024). sfq(8): 127 packets, and as many of a flow.
#[test]
fn lines_of_queues_without_an_aqm() {
    check(
        "tbf rate 10mbit burst 32kbit latency 50ms",
        &[("name", "droptail"), ("link.rate", "10Mbit/s"), ("link.limit", "66.596kB")],
    );
    check("tbf rate 1mbit buffer 1600 limit 3k", &[("link.limit", "3.072kB")]);
    check(
        "tbf rate 1mbit burst 2k limit 3k overhead 4 linklayer atm mpu 64",
        &[("link.overhead", "4"), ("link.framing", "atm"), ("link.mpu", "64")],
    );
    check(
        "sfq perturb 10 quantum 3000 divisor 512 limit 100 depth 50",
        &[
            ("name", "sfq"),
            ("quantum", "3kB"),
            ("buckets", "512"),
            ("class_limit", "50p"),
            ("link.limit", "100p"),
            ("classify", "hash"),
        ],
    );
    check("pfifo limit 40", &[("name", "droptail"), ("link.limit", "40p")]);
    check("bfifo limit 40k", &[("link.limit", "40.96kB")]); // 40 * 1024
    check("pfifo_fast", &[("link.limit", "1000p")]);
}

/// Every word of the synopsis of tc-cake(8) and tc-fq_codel(8) is a key or listed; none is refused or lost.
#[test]
fn every_word_of_cake_and_fq_codel_is_mapped_or_listed() {
    let cake = "bandwidth 1mbit|unlimited|autorate-ingress|rtt 9ms|datacentre|lan|metro|regional|internet|oceanic|satellite|\
        interplanetary|besteffort|diffserv8|diffserv4|diffserv3|flowblind|srchost|dsthost|hosts|flows|dual-srchost|dual-dsthost|\
        triple-isolate|nat|nonat|wash|nowash|split-gso|no-split-gso|ack-filter|ack-filter-aggressive|no-ack-filter|memlimit 9k|\
        fwmark 0xf|ptm|atm|noatm|overhead 9|conservative|raw|mpu 9|ingress|egress|precedence|pppoa-vcmux|docsis|ethernet|ether-vlan";
    let fq_codel = "limit 9|flows 9|target 9ms|interval 99ms|quantum 999|ecn|noecn|ce_threshold 9ms|ce_threshold_selector 1/3|\
        memory_limit 9k|drop_batch 9";
    // What tc does anyway; and what only the link has, whose rate must be there.
    let same = ["nonat", "split-gso", "unlimited", "raw", "noatm"];
    for (kind, words) in [("cake bandwidth 9mbit", cake), ("fq_codel", fq_codel)] {
        let made = |words: &str| of(&format!("tc qdisc add dev eth0 root {words}")).unwrap_or_else(|e| panic!("{e}"));
        let without = made(kind);
        for word in words.split('|').filter(|word| !same.contains(word)) {
            let with = made(&format!("{kind} {word}"));
            let is_key = with.gateway() != without.gateway();
            let is_listed = listed(&with).iter().any(|told| told.contains(word));
            assert!(is_key != is_listed, "{kind}: {word}: key {is_key}, listed {is_listed}");
        }
    }
    let mistake = of("tc qdisc add dev eth0 root cake bandwith 20mbit").unwrap_err();
    assert!(mistake.what.contains("did you mean \"bandwidth\"?"), "{mistake}");
}

/// tc-netem(8), and docs/reference/scenarios.md for our keys.
#[test]
fn netem_is_the_wire_of_a_scenario() {
    let link = |line: &str| of(&format!("tc qdisc add dev eth0 root netem {line}")).unwrap().link();
    for (line, key, told) in [
        ("delay 50ms", "delay", "50ms"),
        ("delay 1000", "delay", "1ms"), // a bare number is of microseconds
        ("delay 50ms", "reverse_delay", "0s"),
        ("delay 50ms 5ms", "jitter.by", "5ms"),
        ("delay 50ms 5ms", "jitter.distribution", "uniform"),
        ("delay 50ms 5ms 25% distribution normal", "jitter.correlation", "0.25"),
        ("delay 50ms 5ms 25% distribution normal", "jitter.distribution", "normal"),
        ("delay 50ms 5ms distribution pareto", "jitter.distribution", "pareto"),
        ("loss 0.3%", "loss", "0.003"),
        ("loss random 1%", "loss", "0.01"),
        ("loss gemodel 1% 30% 70% 0.1%", "gilbert.to_good", "0.3"),
        ("loss gemodel 1% 30% 70% 0.1%", "gilbert.bad", "0.7"),
        ("loss gemodel 1% 30% 70% 0.1%", "gilbert.good", "0.001"),
        ("loss gemodel 1%", "gilbert.to_good", "0.99"), // r is 1 - p
        ("loss gemodel p 1% r 30% 1-h 100% 1-k 0%", "gilbert.bad", "1.0"),
        ("loss state 1% 20%", "gilbert.to_good", "0.2"),
        ("duplicate 0.5%", "duplicate", "0.005"),
        ("delay 10ms reorder 25%", "reorder.share", "0.75"), // a quarter goes at once, and the others are late
        ("delay 10ms reorder 25%", "reorder.by", "10ms"),
        ("delay 10ms reorder 25%", "delay", "0s"),
        ("rate 5mbit", "rate", "5Mbit/s"),
        ("rate 5mbit 44 48 5", "framing", "atm"),
        ("limit 50", "limit", "50p"),
    ] {
        let text = link(line);
        let is_same = value(&text, &format!("topology.{key}")).parse::<f64>().ok() == told.parse().ok();
        let found = value(&text, &format!("topology.{key}"));
        assert!(found == told || (is_same && told.parse::<f64>().is_ok()), "{line}: {key} is {found}\n{text}");
    }
    let described =
        of("tc qdisc add dev eth0 root netem delay 9ms corrupt 1% loss 1% 25% slot 1ms 2ms ecn rate 9mbit").unwrap();
    let words = described.scenario_notes().into_iter().map(|note| note.word);
    let words: Vec<String> = words.filter(|word| word.starts_with("netem")).collect();
    assert_eq!(words, ["netem corrupt", "netem loss 25%", "netem slot", "netem ecn"]);
    assert!(listed(&described).contains(&"netem delay, loss".to_owned()), "a gateway has no wire");
}

/// What comes from a file of ours stands in a file beside it, byte by byte. The values are counted in the tests above; of
/// classes.sh: quanta are bytes per second by 100, of 3 and 5 Mbit/s 3750 and 6250, so weights of 3 and 5; of 8 and 8 Mbit/s
/// (1 mbps) 10000 each, so weights of 1.
#[test]
fn whole_files_become_whole_files() {
    macro_rules! data {
        ($($name:literal),*) => {
            [$(Given { name: $name, bytes: include_bytes!(concat!("data/from/", $name)) }),*]
        };
    }
    let all: [(&str, Vec<Given<'_>>, &str); 5] = [
        ("home", data!("home.sh").into(), include_str!("data/from/home.toml")),
        ("shown", data!("shown.txt").into(), include_str!("data/from/shown.toml")),
        ("classes", data!("classes.sh").into(), include_str!("data/from/classes.toml")),
        ("wire", data!("wire.sh").into(), include_str!("data/from/wire.toml")),
        ("libreqos", data!("ShapedDevices.csv", "network.json").into(), include_str!("data/from/libreqos.toml")),
    ];
    for (name, files, expected) in all {
        let described = read(&files).unwrap_or_else(|e| panic!("{name}: {e}"));
        let notes = |of: Vec<Note>| of.iter().map(|note| format!("# {note}\n")).collect::<String>();
        let made = format!(
            "{}\n# Not the same:\n{}\n# As the link of a scenario:\n\n{}\n# Not the same:\n{}",
            described.gateway(),
            notes(described.gateway_notes()),
            commented(&described.link()),
            notes(described.scenario_notes())
        );
        if std::env::var_os("PENSTOCK_WRITE").is_some() {
            let place = format!("{}/tests/data/from/{name}.toml", env!("CARGO_MANIFEST_DIR"));
            std::fs::write(place, &made).unwrap();
            continue;
        }
        assert_eq!(made, expected, "{name}");
        let crlf: Vec<Vec<u8>> = files
            .iter()
            .map(|file| {
                let text = String::from_utf8(file.bytes.to_vec()).unwrap();
                format!("\u{feff}{}", text.replace('\n', "\r\n")).into_bytes()
            })
            .collect();
        let again: Vec<Given<'_>> =
            files.iter().zip(&crlf).map(|(file, bytes)| Given { name: file.name, bytes }).collect();
        assert_eq!(read(&again).unwrap().gateway(), described.gateway(), "{name} as Windows writes it");
    }
}

fn commented(text: &str) -> String {
    text.lines().map(|line| if line.is_empty() { "#\n".to_owned() } else { format!("#   {line}\n") }).collect()
}

#[test]
fn directions_are_told_or_asked_for() {
    let wan = |text: &str| value(&of(text).unwrap().gateway(), "interfaces.wan");
    let rate = |text: &str, key: &str| value(&of(text).unwrap().gateway(), &format!("link.{key}"));
    let down = "tc qdisc add dev ifb4ppp0 root cake bandwidth 9mbit";
    assert_eq!((wan(down).as_str(), rate(down, "rate").as_str()), ("ppp0", "9Mbit/s"));
    let lan = "tc qdisc add dev br0 root cake bandwidth 9mbit ingress";
    assert_eq!(rate(lan, "rate"), "9Mbit/s");
    let redirected = "tc filter add dev wan9 parent ffff: matchall action mirred egress redirect dev veth1\n\
                      tc qdisc add dev veth1 root tbf rate 9mbit burst 9k latency 9ms";
    assert_eq!((wan(redirected).as_str(), rate(redirected, "rate").as_str()), ("wan9", "9Mbit/s"));
    let both = "tc qdisc add dev eth0 root cake bandwidth 1mbit\ntc qdisc add dev eth1 root cake bandwidth 9mbit";
    let mistake = of(both).unwrap_err();
    assert!(mistake.line == 2 && mistake.what.contains("eth0 (line 1) and eth1 (line 2) both send"), "{mistake}");
    let again = "tc qdisc add dev a root netem delay 9ms 2ms\ntc qdisc change dev a root netem delay 8ms";
    assert_eq!(value(&of(again).unwrap().link(), "topology.jitter"), "-", "netem begins anew");
    let kept = "tc qdisc add dev a root cake bandwidth 5mbit wash\ntc qdisc change dev a root cake bandwidth 6mbit";
    assert_eq!(value(&of(kept).unwrap().gateway(), "reverse_discipline.wash"), "true", "cake keeps the rest");
    let changed = "tc qdisc add dev a root cake bandwidth 5mbit wash\ntc qdisc change dev a root cake bandwidth 6mbit\n\
                   tc qdisc del dev b root\ntc qdisc replace dev a root cake bandwidth 7mbit";
    assert_eq!(rate(changed, "reverse_rate"), "7Mbit/s");
}

#[test]
fn what_cannot_be_read_has_its_line() {
    for (text, line, what) in [
        ("", 1, "neither lines of tc"),
        ("hello\nworld\n", 1, "neither lines of tc"),
        ("[{\"kind\":\"cake\"}]", 1, "neither lines of tc"),
        ("\ntc qdisc add dev eth0 root cake bandwidth", 2, "bandwidth has no value"),
        ("\ntc qdisc add dev eth0 root cake bandwidth 5%", 2, "a part of the rate of an interface"),
        ("\ntc qdisc add dev eth0 root cake bandwidth 5parsec", 2, "no rate of tc"),
        ("tc qdisc add dev eth0 root cake bandwidth 8kbit", 1, "less than a link here can have"),
        ("tc qdisc add dev eth0 root cake overhead 300", 1, "-64 and 256"),
        ("tc qdisc add dev eth0 root fq_codel target 0", 1, "target"),
        ("tc qdisc add dev eth0 root fq_codel flows 70000", 1, "within 1 and 65536"),
        ("tc qdisc add root cake", 1, "no `dev`"),
        ("tc qdisc add dev eth0 cake", 1, "neither `root` nor `parent`"),
        ("tc qdisc add dev eth0 root", 1, "no discipline"),
        ("tc qdisc add dev eth0 root cake\ntc qdisc add dev eth0 root pie", 2, "since line 1"),
        ("tc qdisc add dev eth0 root handle 1: htb", 1, "it has no class"),
        (
            "tc qdisc add dev eth0 root handle 1: htb\ntc class add dev eth0 parent 1:9 classid 1:1 htb rate 1mbit",
            2,
            "no class",
        ),
        (
            "tc qdisc add dev eth0 root handle 1: htb\ntc class add dev eth0 parent 1:1 classid 1:1 htb rate 1mbit",
            2,
            "circle",
        ),
        ("{\"a\": {\"downloadBandwidthMbps\": 1}}", 1, "without ShapedDevices.csv"),
        ("{\n\"a\": [}", 2, "network.json"),
        ("Circuit ID,IPv4\n1,192.0.2.1\n", 1, "no column \"Download Max Mbps\""),
        ("Circuit ID,IPv4,Download Max Mbps,Upload Max Mbps\n\n1,192.0.2.300,1,1\n", 3, "no address"),
        ("Circuit ID,IPv4,Download Max Mbps,Upload Max Mbps\n1,192.0.2.1,-1,1\n", 2, "no rate in Mbit/s"),
        ("Circuit ID,IPv4,Download Max Mbps,Upload Max Mbps\n1,192.0.2.1,NaN,1\n", 2, "no rate in Mbit/s"),
        ("Circuit ID,IPv4,Download Max Mbps,Upload Max Mbps\n", 1, "no circuit"),
        ("Circuit ID,IPv4,Download Max Mbps,Upload Max Mbps\n1,,9,9\n", 1, "no circuit has an address"),
        ("tc qdisc add dev a root hfsc\ntc qdisc add dev b root prio", 1, "hfsc: this discipline is not here"),
    ] {
        let mistake = of(text).expect_err(text);
        assert!(mistake.line == line && mistake.what.contains(what), "{text}\n{mistake}");
    }
    let bytes = read(&[Given { name: "f", bytes: b"tc qdisc\n\xff" }]).unwrap_err();
    assert!(bytes.line == 2 && bytes.what.contains("UTF-8"), "{bytes}");
    let large = vec![b' '; (64 << 20) + 1];
    assert!(read(&[Given { name: "f", bytes: &large }]).unwrap_err().what.contains("64 MiB"));
}

#[test]
fn deep_and_odd_files_are_read_or_refused() {
    let deep = format!("{}1{}", "{\"a\":{\"children\":".repeat(5000), "}}".repeat(5000));
    assert!(of(&deep).unwrap_err().what.contains("recursion"));
    let chain: String =
        (1..200).map(|n| format!("tc class add dev a parent 1:{:x} classid 1:{n:x} htb rate 1mbit\n", n - 1)).collect();
    assert!(of(&format!("tc qdisc add dev a root handle 1: htb\n{chain}")).unwrap_err().what.contains("nested"));
    let header = "Circuit ID,Circuit Name,IPv4,Download Max Mbps,Upload Max Mbps\n";
    let quoted = of(&format!("{header}1,\"a\nb\"\"c\\\t\u{7f}\",192.0.2.1,1,1\n")).unwrap().gateway();
    assert!(quoted.contains("[subscribers.\"a\\u000Ab\\\"c\\\\\\u0009\\u007F\"]"), "{quoted}");
    let open = of(&format!("{header}1,a,192.0.2.1,1,1\n2,\"open,192.0.2.2,1,1\n3,b,192.0.2.3,1,1\n")).unwrap_err();
    assert!(open.line == 3 && open.what.contains("is a quote open?"), "{open}");
    let semicolons = of("Circuit ID;IPv4;Download Max Mbps;Upload Max Mbps\n1;192.0.2.1;2;1\n").unwrap().gateway();
    assert_eq!(value(&semicolons, "subscribers.1.ceiling"), "2Mbit/s");
}

proptest! {
    #[test]
    fn any_text_is_read_or_has_a_line(text in "\\PC{0,200}") {
        is_sound(&text)?;
    }

    #[test]
    fn any_words_of_tc_are_read_or_have_a_line(words in prop::collection::vec(prop::sample::select(WORDS.to_vec()), 0..40)) {
        is_sound(&words.join(" "))?;
    }

    #[test]
    fn any_table_is_read_or_has_a_line(rows in prop::collection::vec("([a-c1-3\"./: ;-]{0,6},){6,8}[0-9.\"-]{0,4}", 0..8)) {
        is_sound(&format!("Circuit ID,Circuit Name,Parent Node,IPv4,IPv6,Download Min Mbps,Upload Min Mbps,Download Max Mbps,Upload Max Mbps\n{}", rows.join("\n")))?;
    }

    #[test]
    fn guarantees_of_any_table_fit(rows in prop::collection::vec((0u8..6, 0u32..300, 0u32..300, 0u8..4), 1..30)) {
        let header = "Circuit ID,Parent Node,IPv4,Download Min Mbps,Upload Min Mbps,Download Max Mbps,Upload Max Mbps\n";
        let row = |(n, (id, min, max, parent)): (usize, &(u8, u32, u32, u8))| {
            format!("{id},{},10.0.{}.{n},{min},{max},{max},{min}\n", ["", "a", "b", "c"][usize::from(*parent)], n % 3)
        };
        let csv = header.to_owned() + &rows.iter().enumerate().map(row).collect::<String>();
        let json = "{\"a\":{\"downloadBandwidthMbps\":90,\"uploadBandwidthMbps\":9,\"children\":{\"b\":{\"downloadBandwidthMbps\":7}}},\"c\":{}}";
        let files = [Given { name: "c", bytes: csv.as_bytes() }, Given { name: "j", bytes: json.as_bytes() }];
        if let Ok(described) = read(&files) {
            let text = described.gateway();
            prop_assert!(text.parse::<toml::Table>().is_ok(), "{text}");
        }
    }
}

const WORDS: [&str; 60] = [
    "\n",
    "tc",
    "qdisc",
    "class",
    "filter",
    "add",
    "replace",
    "change",
    "del",
    "show",
    "dev",
    "eth0",
    "ifb0",
    "root",
    "parent",
    "1:",
    "1:1",
    "1:2",
    "handle",
    "classid",
    "flowid",
    "cake",
    "fq_codel",
    "htb",
    "tbf",
    "netem",
    "red",
    "sfq",
    "pie",
    "mq",
    "rate",
    "ceil",
    "10mbit",
    "5%",
    "limit",
    "100",
    "bandwidth",
    "overhead",
    "-5",
    "raw",
    "atm",
    "delay",
    "10ms",
    "loss",
    "gemodel",
    "1%",
    "reorder",
    "u32",
    "match",
    "ip",
    "src",
    "dst",
    "10.0.0.1",
    "burst",
    "latency",
    "ingress",
    "\\",
    "#",
    "stab",
    "\n tc",
];

/// A text is read and gives TOML, or its mistake has a line of the text.
fn is_sound(text: &str) -> Result<(), TestCaseError> {
    match of(text) {
        Ok(described) => {
            prop_assert!(described.gateway().parse::<toml::Table>().is_ok(), "{}", described.gateway());
            prop_assert!(described.link().parse::<toml::Table>().is_ok(), "{}", described.link());
        }
        Err(mistake) => {
            prop_assert!(mistake.line >= 1 && mistake.line <= text.lines().count().max(1), "{mistake}");
            prop_assert!(!mistake.what.is_empty());
        }
    }
    Ok(())
}
