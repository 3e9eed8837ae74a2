//! Every parameter of the registry takes each bound of its documented range and refuses what lies just beyond it.

use penstock_core::cc::{self, AnyControlConfig};
use penstock_core::coop::client;
use penstock_core::coop::gateway;
use penstock_core::coop::policy::{Policy, Sharing};
use penstock_core::coop::state::NodeId;
use penstock_core::registry::{AnyConfig, all_entries, entries};
use penstock_core::units::{Rate, Span};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// One parameter per line: the algorithms that have it ("classes" stands for all schedulers with classes, "queues" for
/// all disciplines with flow queues), its key, other parameters that the bound depends on, the values at its bounds, and
/// the values just beyond them. Where the last column is empty, every value of the type works.
const BOUNDS: &str = r#"
red,red-ern,feng-red,nonlinear-red,choke | mean_packet | | 1B | 0B
red,red-ern,feng-red,nonlinear-red,choke | max_threshold | {"min_threshold": "5p"} | 6p | 5p 4p
red,red-ern,feng-red,nonlinear-red,choke | min_threshold | {"max_threshold": "5p"} | 1p 4p |
red,red-ern,choke | max_probability | | 1e-9 1 | 0 -0.1 1.0001
red,red-ern,feng-red,nonlinear-red,choke,lindrop | weight | | 1e-9 1 | 0 -0.1 1.0001
red | max_threshold | {"compat": "linux", "weight": 0.001953125} | 4194303B | 4194304B
red | byte_drop | {"compat": "linux"} | false | true
red | wait | {"compat": "linux"} | false | true
red,ared | least_waiting | | 0 1000000 |
red | least_waiting | {"compat": "linux"} | 0 | 1
red | over_max | {"compat": "linux"} | "drop" | "mark" "linear"
red | bandwidth | {"compat": "linux"} | null 1bit/s |
red | scell_log | {"compat": "linux"} | null 0 31 | 32
red | stab | {"compat": "linux"} | null [0] [31,0] | [32] []
red | bandwidth | | null | 10Mbit/s
red | scell_log | | null | 0
red | stab | | null | [0]
red-ern | rate_weight | | 1e-9 1 | 0 -0.1 1.0001
red-ern | last_period | | 320ms | 319999999ns
feng-red | max_probability | | 1e-6 1 | 9.9e-7 1.0001
feng-red | alpha | | 1 1e9 | 0.9999
feng-red | beta | | 1 1e9 | 0.9999
nonlinear-red | max_probability | | 1e-9 0.6666666 | 0 -0.1 0.6667
ared | target | | 1ns | 0s
ared | interval | | 1ns | 0s
ared | max_probability | | 0.01 0.5 | 0.0099 0.5001
ared | mean_packet | | 1B | 0B
an-aqm | target_ratio | | 1e-9 1 | 0 -0.1 1.0001
an-aqm | interval | | 1ns | 0s
an-aqm | a | {"b": 0} | 1e-9 1 | 0 -0.1 1.0001
an-aqm | b | {"a": 0.5} | 0 0.4999 | -0.0001 0.5 0.6
an-aqm | learning | | 0 1000 | -0.0001 1000.1
an-aqm | mean_packet | | 1B | 0B
lindrop | avg_min | {"avg_max": 50} | 0 49.9 | -0.0001
lindrop | avg_max | {"avg_min": 5} | 5.0001 1e9 | 5 4.9
lindrop | n_pu | | 1e-9 0.9999 | 0 1 1.1
lindrop | n_pd | | 1.0001 1e9 | 1 0.9
lindrop | dr_min | {"dr_init": 10} | 1 10 | 0.9999
lindrop | dr_max | {"dr_init": 5, "dr_min": 5} | 5 1e9 | 4.9999
lindrop | dr_init | {"dr_min": 5, "dr_max": 7} | 5 7 | 4.9999 7.0001
lindrop | mean_packet | | 1B | 0B
codel,modified-codel,cobalt,fq-codel,fq-cobalt | target | | 1ns | 0s
codel,modified-codel,cobalt,fq-codel,fq-cobalt | interval | {"target": "5ms"} | 5000001ns | 5ms 4ms
codel,modified-codel,cobalt,fq-codel,fq-cobalt | mtu | | 0B 1B |
codel,fq-codel | ce_threshold | | null 0s 10s |
codel,fq-codel | ce_threshold_mask | | 0 3 | 4
codel,fq-codel | ce_threshold_selector | {"ce_threshold_mask": 3} | 0 3 | 4
codel,fq-codel | ce_threshold_selector | | 0 | 1
cobalt,fq-cobalt | freeze | | null 1ns | 0s
cobalt,fq-cobalt,blue,sfb | increment | | 1e-9 1 | 0 -0.1 1.0001
cobalt,fq-cobalt,blue,sfb | decrement | | 1e-9 1 | 0 -0.1 1.0001
pie,minstrel-pie,fq-pie,fq-minstrel-pie | target | | 15ms 1s | 0s
pie,pi2,fq-pie | target | | 1ns | 0s
pie,minstrel-pie,pi2,fq-pie,fq-minstrel-pie | tupdate | | 100us | 99999ns 0s
pie,minstrel-pie,pi2,fq-pie,fq-minstrel-pie | alpha | | 1e-9 1000 | 0 -0.1 1000.1
pie,minstrel-pie,pi2,fq-pie,fq-minstrel-pie | beta | | 1e-9 1000 | 0 -0.1 1000.1
pie,fq-pie | alpha | {"compat": "linux"} | 0.0625 2 | 2.0625 0.1
pie,fq-pie | beta | {"compat": "linux"} | 0.0625 2 | 2.0625 0.1
pie,minstrel-pie,pi2,fq-pie,fq-minstrel-pie | mean_packet | | 1B | 0B
pie,minstrel-pie,pi2,fq-pie,fq-minstrel-pie | dq_threshold | | 1B 65536B | 0B 65537B
pie,minstrel-pie,fq-pie,fq-minstrel-pie | ecn_threshold | | 0 1 | -0.0001 1.0001
pie,minstrel-pie,fq-pie,fq-minstrel-pie | high_delay | | 0s 10s |
pie,minstrel-pie,fq-pie,fq-minstrel-pie | max_burst | | 0s 10s |
minstrel-pie,fq-minstrel-pie | min_target | {"target": "15ms"} | 1ns 15ms | 0s 15000001ns
pi2,dualpi2 | coupling | | 1 255 | 0.9999 255.1
green | c | | 1e-9 10 | 0 -0.1 10.01
green | window | | 1ns | 0s
green | rtt | | 1ns | 0s
pi | a | {"b": 0} | 1e-9 1 | 0 -0.1 1.0001
pi | b | {"a": 0.5} | 0 0.4999 | -0.0001 0.5 0.6
pi | interval | | 1ns | 0s
pi | mean_packet | | 1B | 0B
pi | reference | | 1p 1B |
rem | gamma | | 1e-9 1 | 0 -0.1 1.0001
rem | phi | | 1.0001 10 | 1 0.9 10.01
rem | alpha | | 0 10 | -0.0001 10.01
rem | weight | | 1e-9 1 | 0 -0.1 1.0001
rem | interval | | 1ns | 0s
rem | mean_packet | | 1B | 0B
rem | target | | 1p 1B |
avq | alpha | | 1e-9 1000 | 0 -0.1 1000.1
avq | gamma | | 1e-9 1 | 0 -0.1 1.0001
avq | initial | | 0 1 | -0.0001 1.0001
avq | mean_packet | | 1B | 0B
blue | freeze_time | | 1ns | 0s
sfb | bins | {"levels": 1} | 2 65536 | 0 1 3 131072
sfb | levels | {"bins": 16} | 1 16 | 0 17
sfb | levels | {"bins": 2} | 1 64 | 0 65
sfb | bin_size | {"bin_limit": 25} | 1 24 | 0
sfb | bin_limit | {"bin_size": 20} | 21 | 20 19
sfb | warmup | {"rehash": "60s"} | 0s 60s | 60000000001ns
sfb | rehash | {"warmup": "60s"} | 60s |
sfb | penalty_rate | | 0 1e9 | -0.0001 1.0001e9
sfb | penalty_burst | | 0 1 |
dualpi2 | rtt_max | | 1ms | 999999ns 0s
dualpi2 | target | {"tupdate": "1ms"} | 1ns | 0s
dualpi2 | tupdate | | null 100us | 99999ns
dualpi2 | alpha | | null 1e-9 1000 | 0 -0.1 1000.1
dualpi2 | beta | | null 1e-9 1000 | 0 -0.1 1000.1
dualpi2 | classic_weight | | 1 99 | 0 100
dualpi2 | mtu | | 1B 1048576B | 0B 1048577B
dualpi2 | min_th | | 0s 10s |
dualpi2 | range | | 0s 10s |
dualpi2 | th_len | | 0 1 |
dualpi2 | alpha | {"compat": "linux"} | null 0.00390625 1000 | 0 0.001 1000.1
dualpi2 | beta | {"compat": "linux"} | null 0.00390625 1000 | 0 0.001 1000.1
dualpi2 | coupling | {"compat": "linux"} | 1 255 | 1.5 256
dualpi2 | step_thresh | {"compat": "linux"} | 0s 10s |
dualpi2 | step_packets | {"compat": "linux"} | null 0 1 |
dualpi2 | min_qlen_step | {"compat": "linux"} | 0 1 |
dualpi2 | memory_limit | {"compat": "linux"} | null 1B | 0B
dualpi2 | step_thresh | | 1ms | 2ms
dualpi2 | step_packets | | null | 1
dualpi2 | min_qlen_step | | 0 | 1
dualpi2 | memory_limit | | null | 9000B
qrm | tolerance | | 0 10 | -0.0001 10.0001
qrm | slack | | 0B 1000000B | 1000001B
qrm | rtt | | 1ms 3600s | 999999ns 3600000000001ns
qrm | max_lan | | 1ms 3600s | 999999ns 3600000000001ns
qrm | idle | | 1ms 3600s | 999999ns 3600000000001ns
qrm | syn_rate | | 1 1000000 | 0 1000001
pink | c | | 1e-9 1 | 0 -0.1 1.0001
pink | reserve | {"rate": "10Mbit/s"} | null 1bit/s 9999999bit/s | 10Mbit/s 11Mbit/s
pink | idle_timeout | | 1s | 999999999ns
pink | silent_timeout | | 1s | 999999999ns
pink | max_flows | | 1 16777216 | 0 16777217
queues | flows | {"ways": 1} | 1 65536 | 0 65537
queues | ways | {"flows": 1024} | 1 8 1024 | 0 3 2048
queues | quantum | | 256B 2147483648B | 255B 2147483649B
queues | memory_limit | | 1B 2147483648B | 0B 2147483649B
queues | drop_batch | | 1 | 0
cake | bandwidth | | null 1kbit/s | 999bit/s 1bit/s
cake | rtt | | 1us 3600s | 999ns 0s 3600000000001ns
cake | target | | null 1us 3600s | 999ns 0s 3600000000001ns
cake | overhead | | -64 0 256 | -65 257
cake | mpu | | 0 256 | 257
cake | memory_limit | | null 1B 4294967295B | 0B 4294967296B
cake | mtu | | 1B 1048576B | 0B 1048577B
cake | perturbation | | null 0 18446744073709551615 |
classes | flows | | 1 65536 | 0 65537
classes | stations | | 1 65536 | 0 65537
classes | good_loss | | 0 1 | -0.0001 1.0001
classes | weights | {"flows": 2} | 1::1 1::2 | 1::3
classes | class_limit | | null 1p 1B |
classes | max_packet | {"flows": 1} | 1B 1048576B | 0B 1048577B
drr,sfq | quantum | {"flows": 1} | null 1B | 0B
drr | quantum | {"flows": 1} | 2147483648B | 2147483649B
drr | quantum | {"flows": 2, "weights": "1::1,2::1"} | 1073741824B | 1073741825B
sfq | quantum | | 1073741824B | 1073741825B
sfq | buckets | | 1 1048576 | 0 1048577
sfq | key | | 0 18446744073709551615 |
sfq | perturb | | 0 |
qfq-plus | aggregate | | 1 1024 | 0 1025
w2f2q | lag | {"max_packet": "1700B"} | null 1700B 33554432B | 1699B 33554433B
w2f2q | lead | {"max_packet": "1700B"} | null 1700B 33554432B | 1699B 33554433B
hfs,hfs-drr,double-drr,double-wf2q-plus,modular | buffer | | 1p 2147483648p 2147483648B | 2147483649p 2147483649B
lte-bearers | bucket | | 1ms 60s | 999999ns 60000000001ns
lte-bearers | quantum | | 1B 1048576B | 0B 1048577B
newreno,cubic,bic,compound | beta | | 1e-9 0.9999 | 0 -0.1 1
newreno | abc_limit | | 1 1000 | 0 1001
newreno,cubic,cubic-linux | resume_cwnd | {"resume_rtt": "600ms"} | 1B 1000GB | 0B 1001GB
newreno,cubic,cubic-linux | resume_rtt | {"resume_cwnd": "1MB"} | 1ns 86400s | 0s 86400000000001ns
newreno,cubic,cubic-linux | resume_cwnd | | null | 1MB
newreno,cubic,cubic-linux | resume_rtt | | null | 600ms
cubic | c | | 1e-9 1e9 | 0 -0.1 1.0001e9
cubic-linux | beta | | 1 1023 | 0 1024
cubic-linux | c | | 1 1000000 | 0 1000001
bic | s_max | | 1 1e6 | 0.9999 1.0001e6
bic | low_window | | 0 1e6 | -0.0001 1.0001e6
bic | b | | 1.5 1000 | 1.4999 1000.1
bic | smooth | | 1 1e6 | 0.9999 1.0001e6
highspeed | low_window | {"high_window": 1e9} | 1 1e6 | 0.9999 1.0001e6
highspeed | high_window | {"low_window": 38} | 39 1e9 | 38.9 1.0001e9
highspeed | low_p | {"high_p": 1e-12} | 1e-9 1 | 9.9e-10 1.0001
highspeed | high_p | {"low_p": 0.001} | 1e-12 0.000998 | 9.9e-13 0.001
highspeed | high_decrease | | 0.001 0.5 | 0.00099 0.5001
hybla | rtt0 | | 1ns 86400s | 0s 86400000000001ns
hybla | rtt0 | {"compat": "linux"} | 1ms 86400s | 0s 1500us 86400001ms
newreno | beta | {"compat": "linux"} | 0.5 | 0.6
newreno | abc_limit | {"compat": "linux"} | 2 | 1
newreno | growth | {"compat": "linux"} | "bytes" | "acks"
bic | beta | {"compat": "linux"} | 0.5 | 0.3
bic | s_max | {"compat": "linux"} | 1 16 | 16.5
bic | low_window | {"compat": "linux"} | 0 14 | 14.5
bic | b | {"compat": "linux"} | 4 | 2
bic | smooth | {"compat": "linux"} | 1 20 | 20.5
highspeed | low_window | {"compat": "linux"} | 38 | 37
highspeed | high_window | {"compat": "linux"} | 83000 | 83001
highspeed | low_p | {"compat": "linux"} | 0.001 | 0.002
highspeed | high_p | {"compat": "linux"} | 1e-7 | 2e-7
highspeed | high_decrease | {"compat": "linux"} | 0.1 | 0.2
westwood | gain | {"compat": "linux"} | 0.125 | 0.25
westwood | min_interval | {"compat": "linux"} | 50ms | 49ms
scalable | a | {"compat": "linux"} | 0.01 | 0.02
scalable | b | {"compat": "linux"} | 0.125 | 0.25
westwood | gain | | 1e-9 0.9999 | 0 1
westwood | min_interval | | 1ns 86400s | 0s 86400000000001ns
scalable | a | | 1e-9 1e9 | 0 1.0001e9
scalable | b | | 1e-9 0.9999 | 0 1
vegas | alpha | {"beta": 1e6} | 0 1e6 | -0.0001 1.0001e6
vegas | beta | {"alpha": 2} | 2 1e6 | 1.9999 1.0001e6
vegas | gamma | | 0 1e6 | -0.0001 1.0001e6
ledbat-pp | target | | 1ns 86400s | 0s 86400000000001ns
ledbat-pp | constant | | 0 1e6 | -0.0001 1.0001e6
ledbat-pp | slowdown_factor | | 1 1e6 | 0.9999 1.0001e6
compound | alpha | | 1e-9 1e9 | 0 1.0001e9
compound | k | | 0 1 | -0.0001 1.0001
compound | gamma | | 0 1e6 | -0.0001 1.0001e6
compound | zeta | | 0 1e6 | -0.0001 1.0001e6
noordwijk | timer | | 1ns 86400s | 0s 86400000000001ns
noordwijk | limited_timer | | 1ns 86400s | 0s 86400000000001ns
noordwijk | threshold | | 1ns 86400s | 0s 86400000000001ns
noordwijk | min_burst | | 1 10000 | 0 10001
noordwijk | stability | | 1 1000 | 0 1001
bbr | high_gain | | 1 100 | 0.9999 100.1
bbr,bbr3 | cwnd_gain | | 1 100 | 0.9999 100.1
bbr | probe_gain | | 1 100 | 0.9999 100.1
bbr | drain_gain | | 0.01 1 | 0.0099 1.0001
bbr | bw_rounds | | 1 1000000 | 0 1000001
bbr,bbr3 | min_rtt_window | | 1ns 86400s | 0s 86400000000001ns
bbr,bbr3 | probe_rtt_time | | 1ns 86400s | 0s 86400000000001ns
bbr,bbr3 | min_segments | | 1 10000 | 0 10001
bbr,bbr3 | full_bw_growth | | 1 100 | 0.9999 100.1
bbr | full_bw_rounds | | 1 1000 | 0 1001
bbr,bbr3 | pacing_margin | | 0.01 1 | 0.0099 1.0001
bbr3 | startup_pacing_gain | | 1 100 | 0.9999 100.1
bbr3 | drain_pacing_gain | | 0.01 1 | 0.0099 1.0001
bbr3 | down_pacing_gain | | 0.01 1 | 0.0099 1.0001
bbr3 | up_pacing_gain | | 1 100 | 0.9999 100.1
bbr3 | up_cwnd_gain | | 1 100 | 0.9999 100.1
bbr3 | probe_rtt_cwnd_gain | | 0.01 1 | 0.0099 1.0001
bbr3 | loss_threshold | | 1e-9 0.9999 | 0 1
bbr3 | beta | | 1e-9 0.9999 | 0 1
bbr3 | headroom | | 1e-9 0.9999 | 0 1
bbr3 | probe_rtt_interval | | 1ns 86400s | 0s 86400000000001ns
bbr3 | full_bw_rounds | | 1 1000000 | 0 1000001
bbr3 | full_loss_ranges | | 1 1000000 | 0 1000001
bbr3 | extra_acked_rounds | | 1 1000000 | 0 1000001
dctcp,prague | g | | 1e-9 0.9999 | 0 1
dctcp,prague | alpha | | 0 1 | -0.0001 1.0001
prague | reference_rtt | | 1ns 86400s | 0s 86400000000001ns
"#;

/// A line of [`BOUNDS`].
struct Bound {
    names: Vec<&'static str>,
    key: &'static str,
    with: Map<String, Value>,
    accepted: Vec<Value>,
    refused: Vec<Value>,
}

fn bounds() -> Vec<Bound> {
    let values = |text: &str| text.split_whitespace().map(value).collect();
    let bound = |line: &'static str| {
        let columns: Vec<&str> = line.split('|').map(str::trim).collect();
        let [names, key, with, accepted, refused] = columns[..] else { panic!("{line:?} has not five columns") };
        let with = if with.is_empty() { Map::new() } else { serde_json::from_str(with).unwrap() };
        Bound { names: members(names), key, with, accepted: values(accepted), refused: values(refused) }
    };
    BOUNDS.trim().lines().map(bound).collect()
}

/// A number or null, else a text with a unit.
fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

/// The algorithms that the first column of a line means.
fn members(names: &'static str) -> Vec<&'static str> {
    let all = entries();
    let having = |key: &str| {
        let has = |keys: &[_]| keys.iter().any(|parameter: &penstock_core::listing::Parameter| parameter.name == key);
        all.iter().filter(|entry| has(&entry.parameters)).map(|entry| entry.name).collect()
    };
    match names {
        "queues" => having("drop_batch"),
        "classes" => having("class_limit"),
        _ => names.split(',').collect(),
    }
}

/// The parameter that an algorithm refuses, if it refuses any of these.
fn refused(name: &str, parameters: Map<String, Value>) -> Option<String> {
    let parameters = Value::Object(parameters);
    let error = match AnyConfig::deserialize(name, parameters.clone()) {
        Some(config) => config.unwrap_or_else(|error| panic!("{name} {parameters}: {error}")).validate(),
        None => AnyControlConfig::deserialize(name, parameters.clone())
            .unwrap_or_else(|| panic!("{name} is no algorithm"))
            .unwrap_or_else(|error| panic!("{name} {parameters}: {error}"))
            .validate(),
    };
    error.err().map(|error| error.key.to_owned())
}

#[test]
fn a_parameter_takes_its_bounds_and_refuses_what_lies_beyond_them() {
    let mut wrong = Vec::new();
    for Bound { names, key, with, accepted, refused: beyond } in bounds() {
        let expected = accepted.iter().map(|value| (value, None)).chain(beyond.iter().map(|value| (value, Some(key))));
        for ((value, expected), name) in expected.flat_map(|pair| names.iter().map(move |name| (pair, name))) {
            let mut parameters = with.clone();
            parameters.insert(key.to_owned(), value.clone());
            let seen = refused(name, parameters);
            if seen.as_deref() != expected {
                wrong.push(format!("{name}: {key} = {value} with {with:?}: refused {seen:?}, not {expected:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A new parameter which is a number or has a unit needs a line in [`BOUNDS`].
#[test]
fn every_number_of_every_algorithm_has_its_bounds_in_the_table() {
    let listed: BTreeSet<(&str, &str)> =
        bounds().into_iter().flat_map(|bound| bound.names.into_iter().map(move |name| (name, bound.key))).collect();
    for entry in all_entries() {
        for parameter in entry.parameters {
            let amount = match &parameter.default {
                Value::Number(_) => true,
                Value::String(text) => text.starts_with(|c: char| c.is_ascii_digit()),
                _ => false,
            };
            let set = parameter.name == "bearers";
            let known = listed.contains(&(entry.name, parameter.name.as_str()));
            assert!(!amount || set || known, "{}.{} = {}", entry.name, parameter.name, parameter.default);
        }
    }
}

/// docs/reference/c2lp.md: what a gateway and a client of C2LP may be told.
#[test]
fn gateways_and_clients_take_their_bounds_and_refuse_what_lies_beyond_them() {
    let (ms, ns) = (Span::from_millis, Span::from_nanos);
    let policy = Policy::default();
    let gateway = gateway::Config::new(Rate::from_bps(1_000_000), policy);
    let with = |key: &'static str, change: &dyn Fn(&mut gateway::Config)| {
        let mut config = gateway.clone();
        change(&mut config);
        config.validate().map_err(|error| assert_eq!(error.key, key)).is_ok()
    };
    for (clients, works) in [(0, false), (1, true), (1 << 20, true), ((1 << 20) + 1, false)] {
        assert_eq!(with("max_clients", &|config| config.max_clients = clients), works, "{clients} clients");
    }
    let hour = Span::from_secs(3600);
    let leases = [(ns(99_999_999), false), (ms(100), true), (hour, true), (hour + ns(1), false)];
    for (lease, works) in leases {
        let change = |config: &mut gateway::Config| (config.lease, config.advertise) = (lease, ms(100));
        assert_eq!(with("lease", &change), works, "a lease of {lease}");
    }
    let lease = gateway.lease;
    for (advertise, works) in [(ns(9_999_999), false), (ms(10), true), (lease, true), (lease + ns(1), false)] {
        assert_eq!(with("advertise", &|config| config.advertise = advertise), works, "levels every {advertise}");
    }
    for (gap, works) in [(Span::ZERO, true), (gateway.advertise, true), (gateway.advertise + ns(1), false)] {
        assert_eq!(with("gap", &|config| config.gap = gap), works, "a gap of {gap}");
    }
    for (percent, works) in [(0, true), (99, true), (100, false)] {
        assert_eq!(with("threshold_percent", &|config| config.policy.threshold_percent = percent), works);
        let client = client::Config { threshold_percent: percent, ..client::Config::new(NodeId(1), 1) };
        assert_eq!(client.validate().is_ok(), works, "a threshold of {percent} %");
    }
    for (percent, works) in [(0, false), (1, true), (50, true), (51, false)] {
        assert_eq!(with("reserve_percent", &|config| config.policy.reserve_percent = percent), works);
    }
    for sharing in [Sharing::Dybra, Sharing::MaxMin] {
        let literal = |config: &mut gateway::Config| (config.policy.literal, config.policy.sharing) = (true, sharing);
        assert_eq!(with("literal", &literal), sharing == Sharing::Dybra, "{sharing:?}");
    }
    let minute = Span::from_secs(60);
    for (retry, works) in [(ns(999_999), false), (ms(1), true), (minute, true), (minute + ns(1), false)] {
        let client = client::Config { retry, ..client::Config::new(NodeId(1), 1) };
        assert_eq!(client.validate().is_ok(), works, "a retry after {retry}");
    }
}

/// What listings show: every discipline and every control once, and the one scheduler that is no discipline.
#[test]
fn all_entries_are_disciplines_schedulers_and_controls() {
    let names: Vec<&str> = all_entries().iter().map(|entry| entry.name).collect();
    for entry in entries().into_iter().chain(cc::entries()) {
        assert_eq!(names.iter().filter(|name| **name == entry.name).count(), 1, "{}", entry.name);
    }
    assert!(names.contains(&"fifo"), "a scheduler inside others");
}
