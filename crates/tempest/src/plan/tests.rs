use super::*;

fn request(flags: &[(&str, &str)]) -> Request {
    let mut request = Request { alg: Some("drr".into()), flows: Some("10".into()), ..Request::default() };
    for (flag, value) in flags {
        let given = Some((*value).to_owned()).filter(|value| !value.is_empty());
        match *flag {
            "n" => request.n = given,
            "qmin" => request.qmin = given,
            "qmax" => request.qmax = given,
            "len" => request.len = given,
            "burst" => request.burst = given,
            "qsing" => request.qsing = given,
            "psing" => request.psing = given,
            "mode" => request.mode = given,
            "alg" => request.alg = given,
            "qos" => request.qos = given,
            "mac" => request.mac = given,
            "qmac" => request.qmac = given,
            "qcount" => request.qcount = given,
            "wdistr" => request.wdistr = given,
            "flowsetsmac" => request.flowsetsmac = given,
            "flows" => request.flows = given,
            "flowsets" => request.flowsets = given,
            "flowsmac" => request.flowsmac = given,
            "ploss" => request.ploss = given,
            "intgr_th" => request.intgr_th = given,
            "rate" => request.rate = given,
            "repeat" => request.repeat = given,
            "measure" => request.measure = given,
            other => panic!("{other}"),
        }
    }
    request
}

fn plan(flags: &[(&str, &str)]) -> Plan {
    Plan::of(&request(flags)).unwrap()
}

fn mistake(flags: &[(&str, &str)]) -> String {
    Plan::of(&request(flags)).unwrap_err().to_string()
}

#[test]
fn defaults_are_those_of_the_document() {
    let plan = plan(&[]);
    assert_eq!((plan.size, plan.mode, plan.rate), (Bytes::new(1700), Mode::Single, Rate::from_bps(54_000_000)));
    assert_eq!((plan.pattern.burst, plan.pattern.single), (0, 0));
    assert_eq!((plan.pattern.qmin, plan.pattern.qmax), (0, 300));
    assert!(plan.losses.is_empty());
}

#[test]
fn thresholds_may_be_per_flow() {
    let plan = plan(&[("qmin", "4n"), ("qmax", "30n"), ("flowsets", "1::16,2::8,8::4"), ("flows", "")]);
    assert_eq!((plan.pattern.qmin, plan.pattern.qmax), (4 * 28, 30 * 28));
    assert_eq!(plan.weights.iter().map(|weight| weight.get()).sum::<u32>(), 16 + 16 + 32);
}

#[test]
fn schedulers_have_the_documents_names_too() {
    for (given, name) in [("DRR", "drr"), ("FIFO", "fifo")] {
        assert_eq!(plan(&[("alg", given)]).name, name);
    }
}

#[test]
fn a_mistake_names_flag_value_and_what_is_allowed() {
    for (flags, parts) in [
        (&[("n", "x")][..], ["-n x", "whole number"]),
        (&[("n", "1")], ["-n 1", "2 to"]),
        (&[("qmin", "300")], ["-qmin 300", "less than -qmax, which is 300"]),
        (&[("qmax", "0")], ["-qmax 0", "must be 1 to"]),
        (&[("qmax", "30m2")], ["-qmax 30m2", "followed by n"]),
        (&[("len", "0")], ["-len 0", "1 to"]),
        (&[("burst", "-1")], ["-burst -1", "whole number"]),
        (&[("mode", "triple")], ["-mode triple", "single, integrated or double"]),
        (&[("alg", "drrr")], ["-alg drrr", "fifo"]),
        (&[("alg", "DRRR")], ["-alg DRRR", "did you mean drr? must be one of"]),
        (&[("alg", "")], ["-alg:", "give one of"]),
        (&[("flows", "0")], ["-flows 0", "1 to"]),
        (&[("flows", "")], ["-flows:", "-flowsets"]),
        (&[("flowsets", "1::2")], ["-flows 10", "excludes -flowsets"]),
        (&[("flows", ""), ("flowsets", "0::5")], ["-flowsets 0::5", "weight is from 1 to"]),
        (&[("qmac", "100")], ["-qmac 100", "-mode double"]),
        (&[("intgr_th", "80")], ["-intgr_th 80", "-mode integrated"]),
        (&[("mode", "integrated"), ("intgr_th", "101%")], ["-intgr_th 101", "0% to 100%"]),
        (&[("mode", "integrated"), ("intgr_th", "-1")], ["-intgr_th -1", "a weight from 0"]),
        (&[("mode", "integrated"), ("intgr_th", "100%")], ["-intgr_th 100%", "no flow a good station"]),
        (&[("mode", "integrated"), ("intgr_th", "1000")], ["-intgr_th 1000", "no flow a good station"]),
        (&[("wdistr", "3")], ["-wdistr 3", "-mode double or integrated"]),
        (&[("qcount", "both")], ["-qcount both", "-mode double"]),
        (&[("alg", "hfs"), ("mode", "double"), ("qcount", "all")], ["-qcount all", "first or both"]),
        (&[("psing", "0.5")], ["-psing 0.5", "goes with -qsing"]),
        (&[("mode", "integrated"), ("ploss", "0.1:2")], ["-ploss 0.1:2", "from 0 to 1"]),
        (&[("flowsmac", "3"), ("ploss", "0.1:0")], ["-ploss 0.1:0", "-flowsmac 3"]),
        (&[("rate", "fast")], ["-rate fast", "Mbit/s"]),
        (&[("repeat", "0")], ["-repeat 0", "1 to"]),
        (&[("alg", "hfs")], ["-alg hfs", "-mode double"]),
        (&[("alg", "drr"), ("mode", "double")], ["-alg drr", "hfs"]),
        (&[("alg", "hsf"), ("mode", "double")], ["-alg hsf", "did you mean hfs? in the double mode"]),
        (&[("alg", "drr"), ("mode", "double"), ("mac", "drr")], ["-alg drr", "excludes -qos and -mac"]),
        (&[("alg", ""), ("mode", "double"), ("qos", "drr")], ["-mac:", "give one of"]),
        (&[("alg", "hfs*"), ("mode", "double"), ("wdistr", "4")], ["-wdistr 4", "0 to 3"]),
        (
            &[("alg", "hfs"), ("mode", "double"), ("intgr_th", "4")],
            ["-intgr_th 4", "-mode integrated, and this is double"],
        ),
        (
            &[("alg", "hfs"), ("mode", "double"), ("flowsmac", "2"), ("flowsetsmac", "1::2")],
            ["-flowsmac 2", "excludes -flowsetsmac"],
        ),
        (
            &[("alg", "hfs"), ("mode", "double"), ("ploss", "0:1:0"), ("flowsetsmac", "1::2")],
            ["-ploss 0:1:0", "-flowsetsmac 2 stations"],
        ),
        (&[("measure", "none")], ["-measure none", "all, time, fairness or harness"]),
    ] {
        let said = mistake(flags);
        assert!(parts.iter().all(|part| said.contains(part)), "{flags:?}: {said}");
    }
}

fn served(flags: &[(&str, &str)]) -> Vec<bool> {
    let plan = plan(&[&[("mode", "integrated"), ("ploss", "1:0.3:0.2:0.1")], flags].concat());
    assert_eq!((0..6).map(|flow| plan.station(flow)).collect::<Vec<_>>(), [0, 1, 2, 3, 0, 1].map(Some));
    (0..4).map(|flow| plan.is_served(flow)).collect()
}

/// Weights are 1 (of 0), 700, 800 and 900; those of places 1 to 4; and 2, 4, 8 and 16.
#[test]
fn the_threshold_is_a_weight() {
    assert_eq!(served(&[("intgr_th", "80")]), [false, true, true, true]);
    assert_eq!(served(&[("intgr_th", "700")]), [false, false, true, true]);
    assert_eq!(served(&[("intgr_th", "3"), ("wdistr", "1")]), [false, false, false, true]);
    assert_eq!(served(&[("intgr_th", "4"), ("wdistr", "2")]), [false, false, true, true]);
}

#[test]
fn the_threshold_may_be_a_chance_to_transmit() {
    assert_eq!(served(&[("intgr_th", "75%")]), [false, false, true, true]);
    assert_eq!(served(&[("intgr_th", "75%"), ("wdistr", "2")]), [false, false, true, true]);
    assert_eq!(served(&[]), served(&[("intgr_th", "80%")]));
}

/// "Ranging linearly from 10^0 to 10^-4": of the exponent, or of the probability.
#[test]
fn losses_go_from_all_to_one_in_ten_thousand() {
    let losses = |flags: &[(&str, &str)]| plan(&[&[("mode", "integrated"), ("flows", "20")], flags].concat()).losses;
    for (losses, second) in [
        (losses(&[]), 10_f64.powf(-4.0 / 19.0)),
        (losses(&[("ploss", "powers")]), 10_f64.powf(-4.0 / 19.0)),
        (losses(&[("ploss", "steps")]), 1.0 - 0.9999 / 19.0),
    ] {
        assert_eq!((losses.len(), losses[0]), (20, 1.0));
        assert!((losses[19] - 1e-4).abs() < 1e-12);
        assert!((losses[1] - second).abs() < 1e-12, "{losses:?}");
    }
    assert!((losses(&[("flowsmac", "3")])[1] - 1e-2).abs() < 1e-12);
}

#[test]
fn two_schedulers_have_a_name_together() {
    let layers = |flags: &[(&str, &str)]| match plan(flags) {
        Plan { alg: Algorithm::Two(layers), name, .. } => (name, layers),
        Plan { alg, .. } => panic!("{alg:?}"),
    };
    let (name, given) = layers(&[("mode", "double"), ("alg", ""), ("qos", "QFQ+"), ("mac", "DRR"), ("qmac", "50")]);
    assert_eq!((name.as_str(), given.buffer), ("hfs-drr", 50));
    let (name, given) = layers(&[("mode", "double"), ("alg", "HFS"), ("ploss", "0.5:0.25")]);
    assert_eq!((name.as_str(), given.qos.name(), given.mac.name(), given.buffer), ("hfs", "qfq-plus", "qfq-plus", 100));
    assert_eq!(given.weights.iter().map(|weight| weight.get()).collect::<Vec<_>>(), [500, 750]);
    let (name, given) =
        layers(&[("mode", "double"), ("alg", ""), ("qos", "drr"), ("mac", "fifo"), ("flowsetsmac", "3::2")]);
    assert_eq!((name.as_str(), given.weights.len()), ("drr/fifo", 2));
}

#[test]
fn thresholds_count_what_waits_before_the_first_of_two_schedulers() {
    let flags = [("mode", "double"), ("alg", "double-drr"), ("qmin", "5"), ("qmax", "300"), ("qmac", "40")];
    let pattern = plan(&flags).pattern;
    assert_eq!((pattern.qmin, pattern.qmax), (45, 340));
    let pattern = plan(&[&flags[..], &[("qcount", "both")]].concat()).pattern;
    assert_eq!((pattern.qmin, pattern.qmax), (5, 300));
}
