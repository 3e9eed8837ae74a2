//! What the file of a gateway says, how its mistakes are told, and what is told of another one.

use jiff::civil::time;
use penstock_appliance::settings::Settings as _;
use penstock_core::packet::NodeId;
use penstock_core::registry::AnyConfig;
use penstock_core::units::{Limit, Rate, Span};
use penstock_gateway::file::{File, Kind, Mode};
use penstock_gateway::settings::Settings;
use penstock_grammar::impair::ImpairmentKeys;
use penstock_grammar::link::{LayerKeys, Link};
use penstock_grammar::{Diagnosis, fields};
use penstock_shaper::direction::Direction;
use serde_json::{Value, json};

const GOOD: &str = r#"queue = 7100
patience = '100ms'

[interfaces]
wan = 'eth0'
lan = 'eth1'

[link]
rate = '20Mbit/s'
reverse_rate = '2Mbit/s'
limit = '125kB'

[reverse_discipline]
name = 'codel'
target = '10ms'

[subscribers]
house = ['10.1.0.0/28']
"#;

/// A tree of subscribers.
const TREE: &str = r#"[interfaces]
wan = 'eth0'
[link]
rate = '20Mbit/s'
reverse_rate = '2Mbit/s'
[subscribers]
house = ['10.1.0.0/28']
[subscribers.street]
ceiling = '15Mbit/s'
reverse_guaranteed = '1Mbit/s'
[subscribers.shop]
prefixes = ['10.2.0.0/16']
parent = 'street'
weight = 2
guaranteed = '5Mbit/s'
discipline = { name = 'codel', target = '10ms' }
"#;

/// A gateway with the kernel data path.
const KERNEL: &str = "datapath = 'kernel'\n[interfaces]\nwan = 'w0'\n[link]\nrate = '10Mbit/s'\n\
                      reverse_rate = '2Mbit/s'\nlimit = '125kB'\n";

fn mistake(piece: &str, by: &str) -> Diagnosis {
    assert_eq!(GOOD.matches(piece).count(), 1, "{piece:?} is there once");
    File::parse(&GOOD.replacen(piece, by, 1), "some/gateway.toml").unwrap_err()
}

#[test]
fn what_a_file_says_is_read() {
    let file = File::parse(GOOD, "f").unwrap();
    let [down, up] = &file.settings.ways;
    assert_eq!((down.aqm.name(), up.aqm.name()), ("pink", "codel"));
    assert_eq!((down.rate, up.rate), (Rate::from_bps(20_000_000), Rate::from_bps(2_000_000)));
    assert_eq!((down.limit, up.limit), ("125kB".parse().unwrap(), "125kB".parse().unwrap()));
    assert_eq!((file.keys.queue, file.keys.patience), (7100, Span::from_millis(100)));
    assert_eq!((file.keys.observe, file.keys.name.as_str()), (false, "gateway"));
    assert_eq!(file.settings.subscribers.named()[0].name, "house");
}

/// Each key that all links have changes what packets meet, or is refused at its line.
#[test]
fn no_key_of_links_is_ignored() {
    const PLAIN: &str = "[interfaces]\nwan = 'eth0'\n[link]\n";
    let text = |keys: &str| File::parse(&format!("{PLAIN}{keys}\n"), "f");
    let plain = "rate = '2Mbit/s'";
    let values = |key: &str| match key {
        "rate" => "rate = '3Mbit/s'".to_owned(),
        "reverse_rate" => format!("{plain}\n{key} = '1Mbit/s'"),
        "limit" | "reverse_limit" => format!("{plain}\n{key} = '9p'"),
        "link_layer" | "reverse_link_layer" => format!("{plain}\n{key} = 'docsis'"),
        "framing" | "reverse_framing" => format!("{plain}\n{key} = 'atm'"),
        "overhead" | "mpu" | "reverse_overhead" | "reverse_mpu" => format!("{plain}\n{key} = 9"),
        other => format!("{plain}\n{other} = 0.01"),
    };
    let mut refused = Vec::new();
    let keys = [fields::of::<Link>(), fields::of::<LayerKeys>(), fields::of::<ImpairmentKeys>()];
    for key in &keys.concat() {
        match text(&values(key)) {
            Ok(read) => assert_ne!(read.settings.ways, text(plain).unwrap().settings.ways, "{key}"),
            Err(wrong) => {
                assert!(wrong.line == 5 && wrong.what.contains(&format!("unknown field `{key}`")), "{wrong}");
                refused.push(*key);
            }
        }
    }
    // A gateway has no wire that could do what the last ones say.
    assert_eq!(refused, [&["delay", "reverse_delay", "loss"], fields::of::<ImpairmentKeys>()].concat());
}

/// What a link adds is told while it adds something, and its end as well.
#[test]
fn another_link_layer_is_told() {
    let with = |layer: &str| File::parse(&GOOD.replace("limit =", &format!("{layer}\nlimit =")), "f").unwrap().settings;
    let (plain, cable) = (with(""), with("link_layer = 'docsis'"));
    let told = "overhead 18 B, mpu 64 B, ethernet";
    assert_eq!(Value::from(plain.difference(&cable)), json!({"link_layer": told, "reverse_link_layer": told}));
    assert_eq!(Value::from(cable.difference(&plain)), json!({"link_layer": "none", "reverse_link_layer": "none"}));
}

/// A packet of 1500 bytes takes a second at 12 kbit/s.
#[test]
fn a_rate_below_a_packet_in_a_second_is_refused() {
    let file = |link: &str| {
        let text = format!("[interfaces]\nwan = 'w'\n[link]\nreverse_limit = '9p'\n{link}\n");
        File::parse(&text, "f").map_err(|wrong| (wrong.line, wrong.what))
    };
    let told = "allowed is 12kbit/s or more, a packet in a second";
    for (link, key) in [
        ("rate = '11999bit/s'", "rate is 11.999kbit/s"),
        ("rate = '9Mbit/s'\nreverse_rate = '1bit/s'", "reverse_rate is 1bit/s"),
        ("rate = '9Mbit/s'\nlowest = '1kbit/s'", "lowest is 1kbit/s"),
        ("rate = '9Mbit/s'\ntimetable = { '06:00' = '1kbit/s' }", "timetable is 1kbit/s"),
    ] {
        let (line, what) = file(link).unwrap_err();
        assert!(line == link.lines().count() + 4 && what.contains(key) && what.contains(told), "{line}: {what}");
    }
    let least = file("rate = '12kbit/s'").unwrap().settings;
    assert_eq!(least.source.bounds[0].start().as_bps(), 12_000);
    let budgets = Kind::parse("[link]\nrate = '1kbit/s'\n[c2ml]\n", "f").unwrap_err();
    assert!(budgets.line == 2 && budgets.what.contains(told), "{budgets}");
}

/// A queue would be behind the gateway. Without a table of its own the upload has the shaper of the download.
#[test]
fn a_shaper_above_the_rate_of_its_link_is_refused() {
    let text = |discipline: &str| {
        let file =
            format!("[interfaces]\nwan = 'w'\n[link]\nrate = '20Mbit/s'\nreverse_rate = '5Mbit/s'\n{discipline}");
        File::parse(&file, "f").map_err(|wrong| (wrong.line, wrong.what))
    };
    let cake = |table: &str, rate: &str| format!("[{table}]\nname = 'cake'\nbandwidth = '{rate}'\n");
    let (line, what) = text(&cake("discipline", "19Mbit/s")).unwrap_err();
    assert!(line == 8 && what.contains("the shaper of the upload has 19Mbit/s") && what.contains("5Mbit/s"), "{what}");
    let both = cake("discipline", "19Mbit/s") + &cake("reverse_discipline", "6Mbit/s");
    assert_eq!(text(&both).unwrap_err().0, 11);
    assert!(text(&both.replace("6Mbit", "5Mbit")).is_ok() && text(&cake("discipline", "5Mbit/s")).is_ok());
    assert_eq!(text(&cake("discipline", "21Mbit/s")).unwrap_err().0, 8);
}

#[test]
fn hardware_addresses_are_refused_where_they_cannot_be_known() {
    let with = GOOD.replace("['10.1.0.0/28']", "['10.1.0.0/28', '02:00:5e:00:53:01']");
    assert_eq!(File::parse(&with, "f").unwrap().settings.subscribers.named()[0].prefixes.len(), 2);
    let kernel = with.replace("lan = 'eth1'", "").replace("patience = '100ms'", "datapath = 'kernel'");
    for (file, line, column, said) in [
        (with.replace("lan = 'eth1'", ""), 18, 25, "write `lan` beside `wan`"),
        (format!("{with}[c2ml]\n"), 18, 25, "budgets of [c2ml]"),
        (kernel, 17, 1, "the kernel data path does not have this yet"),
    ] {
        let wrong = File::parse(&file, "f").unwrap_err();
        assert!(wrong.line == line && wrong.column == column && wrong.what.contains(said), "{wrong}");
    }
}

#[test]
fn the_file_of_what_if_needs_its_interfaces_only() {
    let written = "[link]\nrate = '3.8Mbit/s'\nlimit = '60kB'\n\n[discipline]\nname = 'fq-codel'\ntarget = '5ms'\n";
    let missing = File::parse(written, "f").unwrap_err();
    assert!(missing.what.contains("[interfaces]\nwan"), "{missing}");
    let file = File::parse(&format!("{written}\n[interfaces]\nwan = 'ppp0'\n"), "f").unwrap();
    assert_eq!(file.settings.ways[0], file.settings.ways[1], "the other direction is the same");
    assert_eq!(file.settings.ways[1].aqm.name(), "fq-codel");
}

#[test]
fn the_example_is_a_right_one() {
    let file = File::parse(include_str!("../../../../examples/gateway/dsl.toml"), "dsl.toml").unwrap();
    let names: Vec<&str> = file.settings.ways.iter().map(|config| config.aqm.name()).collect();
    assert_eq!((names.as_slice(), file.settings.subscribers.list.len()), (&["pink", "fq-codel"][..], 2));
}

#[test]
fn mistakes_and_what_is_not_there_yet_are_told_with_line_and_suggestion() {
    for (piece, by, line, said) in [
        ("patience =", "patence =", 2, "did you mean `patience`?"),
        ("'codel'", "'codle'", 14, "did you mean \"codel\"?"),
        ("'20Mbit/s'", "20", 9, "quotes with its unit"),
        ("wan =", "wann =", 5, "did you mean `wan`?"),
        ("limit =", "delay =", 11, "`reverse_rate`"),
        ("'100ms'", "'1ms'", 2, "20ms"),
        ("queue = 7100", "queue = 0", 1, "1 to 65534"),
        ("queue = 7100", "queue = 65535", 1, "1 to 65534"),
        ("queue = 7100", "name = 'a/b'", 1, "up to 64 letters"),
        ("queue = 7100", "mode = 'bridge'\nqueue = 7100", 2, "hands nothing to the firewall"),
        ("queue = 7100", "mode = 'bridge'\ndatapath = 'kernel'", 2, "shaped by this process"),
        ("queue = 7100", "datapath = 'kernel'", 6, "leave `lan` out"),
        ("queue = 7100", "mode = 'ruoter'", 1, "did you mean `router`?"),
    ] {
        let mistake = mistake(piece, by);
        assert!(mistake.line == line && mistake.what.contains(said), "{by}: {mistake}");
    }
    assert_eq!(mistake("patience =", "patence =").column, 1);
    let bridge = GOOD.replace("queue = 7100", "mode = 'bridge'");
    assert_eq!(File::parse(&bridge, "f").unwrap().keys.mode, Mode::Bridge);
    let alone = File::parse(&bridge.replace("lan = 'eth1'\n", ""), "f").unwrap_err();
    assert!(alone.line == 4 && alone.what.contains("two ports"), "{alone}");
    let (kernel, _) = GOOD.split_once("[reverse").unwrap();
    let kernel = kernel.replace("lan = 'eth1'\n", "").replace("queue = 7100", "datapath = 'kernel'\nscone = true");
    let scone = File::parse(&kernel, "f").unwrap_err();
    assert!(scone.line == 2 && scone.what.contains("does not have this yet"), "{scone}");
    assert!(!File::parse(&kernel.replace("= true", "= false"), "f").unwrap().keys.scone);
}

#[test]
fn where_rates_come_from_is_read() {
    let with = |lines: &str| GOOD.replace("limit = '125kB'", lines);
    let source = |lines: &str| File::parse(&with(lines), "f").unwrap().settings.source;
    assert_eq!(json!(source("").from), "file");
    let table = source("timetable = { '06:00' = '8Mbit/s', '22:00' = '50Mbit/s' }");
    let noon = table.keys.timetable.at(time(12, 0, 0, 0));
    assert_eq!((json!(table.from), noon), (json!("timetable"), Some(Rate::from_bps(8_000_000))));
    let command = source("command = ['modem', '-r']\nlowest = '1Mbit/s'\nplain_after = '1h'");
    assert_eq!((json!(command.from), command.keys.command.len()), (json!("command"), 2));
    let lowest = command.bounds.map(|bounds| bounds.start().as_bps());
    assert_eq!(lowest, [1_000_000, 100_000], "a twentieth of `reverse_rate`");
    assert_eq!(json!(source("rate_from = 'estimate'").from), "estimate");
    for (lines, said) in [
        ("rate_from = 'comand'", "did you mean `command`?"),
        ("rate_from = 'command'", "the key `command` is missing"),
        ("rate_from = 'timetable'", "the key `timetable` is missing"),
        ("rate_from = 'file'\ncommand = ['x']", "another source"),
        ("timetable = { '24:00' = '8Mbit/s' }", "is no time of day"),
        ("timetable = { '06:00' = '0bit/s' }", "is not a rate above zero"),
        ("timetable = {}", "a rate for a time at least"),
        ("timetable = { '06:00' = '8Mbit/s', '09:00' = '500Mbit/s' }", "timetable has 500Mbit/s; allowed are `lowest`"),
        ("reverse_timetable = { '06:00' = '1Mbit/s' }\nreverse_lowest = '2Mbit/s'", "reverse_timetable has 1Mbit/s"),
        ("lowest = '30Mbit/s'", "allowed are `lowest` to `highest`"),
        ("every = '2min'", "stale_after is 60s; allowed are 120s"),
        ("stale_afer = '2min'", "did you mean `stale_after`?"),
    ] {
        let mistake = File::parse(&with(lines), "f").unwrap_err();
        assert!(mistake.line >= 8 && mistake.what.contains(said), "{lines}: {mistake}");
    }
}

#[test]
fn budgets_for_hosts_are_a_table_of_a_router_or_a_file_of_their_own() {
    let with = format!("{GOOD}\n[c2ml]\nsharing = 'priority'\nlease = '2s'\n");
    let Kind::Link(file) = Kind::parse(&with, "f").unwrap() else { panic!("a link") };
    assert_eq!(file.c2ml.unwrap().settings(Rate::from_bps(1_000_000)).lease, Span::from_secs(2));
    let alone = "[link]\nrate = '20Mbit/s'\nreverse_rate = '2Mbit/s'\n[c2ml]\npercent = 95\n";
    let Kind::Alone(alone) = Kind::parse(alone, "f").unwrap() else { panic!("budgets only") };
    assert_eq!((alone.upload, alone.c2ml.shared(alone.upload).as_bps()), (Rate::from_bps(2_000_000), 1_900_000));
    for (text, expected) in [
        ("sharring = 'dybra'", "did you mean `sharing`?"),
        ("sharing = 'dibra'", "dybra"),
        ("percent = 0", "1 to 100"),
        ("lease = '2h'", "1min"),
        ("most = 0", "1 to 1048576"),
        ("percent = 50\nfloors = ['none', '1.1Mbit/s']", "class 1 has a floor of 1.1Mbit/s, but 1Mbit/s"),
        ("floors = ['5']", "three digits"),
        ("floors = '5Mbit/s'", "a list"),
        ("listen = 'here'", "socket address"),
        ("percent = 90\nenforce = true", "without [interfaces]"),
        ("enforce = true", "1 to 99"),
    ] {
        let text = format!("[link]\nrate = '2Mbit/s'\n[c2ml]\n{text}\n");
        let mistake = Kind::parse(&text, "f").unwrap_err();
        assert!((3..=5).contains(&mistake.line) && mistake.to_string().contains(expected), "{mistake}");
    }
}

#[test]
fn budgets_are_enforced_by_a_discipline_that_takes_them() {
    let with = |discipline: &str| {
        let text = GOOD.replace("name = 'codel'\ntarget = '10ms'", discipline);
        Kind::parse(&format!("{text}\n[c2ml]\nenforce = true\npercent = 90\n"), "f")
    };
    for right in ["name = 'qrm'", "name = 'pink'\nqueue = 'qrm'"] {
        assert!(matches!(with(right), Ok(Kind::Link(file)) if file.enforces()), "{right}");
    }
    for wrong in ["name = 'codel'", "name = 'pink'"] {
        let mistake = with(wrong).unwrap_err();
        assert!(mistake.what.contains("takes no budgets") && mistake.line > 15, "{mistake}");
    }
}

#[test]
fn a_file_of_budgets_alone_has_a_name_as_one_of_a_link_has() {
    let link = "[interfaces]\nwan = 'eth0'\n";
    for before in [link, "[c2ml]\n"] {
        let parse = |name: &str| Kind::parse(&format!("{name}{before}[link]\nrate = '20Mbit/s'\n"), "f").unwrap();
        assert_eq!(parse("name = 'cellar'\n").name(), "cellar", "{before}");
        assert_eq!(parse("").name(), "gateway", "{before}");
    }
}

#[test]
fn a_tree_is_read() {
    let file = File::parse(TREE, "f").unwrap();
    assert_eq!(file.settings.ways[0].aqm.name(), "fq-codel", "PINK divides a whole link");
    let number = |name: &str| NodeId(if name == "shop" { 7 } else { 3 });
    let [down, up] =
        Direction::BOTH.map(|d| file.settings.subscribers.discipline(d, &file.settings.ways[0].aqm, number));
    let (AnyConfig::Tree(down), AnyConfig::Tree(up)) = (down, up) else { panic!("a tree") };
    let names: Vec<&str> = down.members.iter().map(|member| member.name.as_str()).collect();
    assert_eq!(names, ["house", "shop", "street"]);
    let shop = &down.members[1];
    assert_eq!((shop.branch.parent, shop.branch.weight.get()), (Some(2), 2));
    assert_eq!(shop.branch.guaranteed, Some(Rate::from_bps(5_000_000)));
    let (of, discipline) = shop.queue.as_ref().unwrap();
    assert_eq!((of.0, discipline.name()), (7, "codel"));
    assert_eq!(down.members[0].queue.as_ref().unwrap().1.name(), "fq-codel");
    let street = (down.members[2].branch.ceiling, down.members[2].queue.is_none());
    assert_eq!(street, (Some(Rate::from_bps(15_000_000)), true));
    assert_eq!((up.members[1].branch.guaranteed, up.members[2].branch.ceiling), (None, None));
    let guaranteed = Direction::BOTH.map(|d| file.settings.subscribers.guaranteed(d));
    assert_eq!(guaranteed, [5_000_000, 1_000_000]);
    assert_eq!(file.settings.subscribers.room(Limit::Packets(1000)), Limit::Packets(16_000));
    assert_eq!(file.settings.subscribers.named().len(), 2, "a group has no prefixes");
}

#[test]
fn lists_alone_are_no_tree() {
    let (lists, _) = TREE.split_once("[subscribers.street]").unwrap();
    let file = File::parse(lists, "f").unwrap();
    assert!(!file.settings.subscribers.tree && file.settings.ways[0].aqm.name() == "pink");
    assert_eq!(file.settings.subscribers.room(Limit::Packets(1000)), Limit::Packets(1000));
}

#[test]
fn mistakes_are_told_with_line_and_column() {
    for (from, to, line, said) in [
        ("guaranteed = '5Mbit/s'", "guaranteed = '25Mbit/s'", 9, "25Mbit/s guaranteed"),
        ("ceiling = '15Mbit/s'\n", "guaranteed = '30Mbit/s'\n", 9, "link is 20Mbit/s (`rate` in line 4)"),
        ("reverse_guaranteed = '1", "reverse_guaranteed = '3", 10, "(`reverse_rate` in line 5)"),
        ("ceiling = '15Mbit/s'", "ceiling = '4Mbit/s'", 9, "5Mbit/s guaranteed"),
        ("parent = 'street'", "parent = 'stret'", 13, "did you mean \"street\"?"),
        ("parent = 'street'", "parent = 'house'", 7, "it has members"),
        ("weight = 2", "weigth = 2", 14, "did you mean `weight`?"),
        ("weight = 2", "weight = 0", 14, "1 to 1048576"),
        ("'codel', target = '10ms'", "'pink'", 16, "divides the rate of a whole link"),
        ("'codel', target", "'codle', target", 16, "did you mean \"codel\"?"),
        ("10.2.0.0/16", "10.1.0.0/28", 12, "10.1.0.0/28 is 10.1.0.0/28 of \"house\" in line 7"),
        ("'10.2.0.0/16", "'fe:80:00:00:00:01', '10.0.0.0/8", 12, "10.0.0.0/8 has addresses of 10.1"),
        ("prefixes = ['10.2.0.0/16']\nparent = 'street'", "parent = 'street'", 11, "at least one prefix"),
        ("ceiling = '15Mbit/s'", "parent = 'street'", 9, "no group \"street\""),
        ("[link]", "[discipline]\nname = 'pink'\n[link]", 3, "such as \"fq-codel\""),
    ] {
        assert_eq!(TREE.matches(from).count(), 1, "{from}");
        let mistake = File::parse(&TREE.replacen(from, to, 1), "f").unwrap_err();
        assert!(mistake.line == line && mistake.to_string().contains(said), "{to}: {mistake}");
    }
}

#[test]
fn what_the_programs_do_not_have_is_refused() {
    let refused = |piece: &str| File::parse(&format!("{KERNEL}[discipline]\n{piece}"), "f").unwrap_err().to_string();
    assert!(refused("name = 'codel'").contains("allowed is \"pink\""));
    assert!(refused("name = 'pink'\nwindow = 'literal'").contains("only c, rate and reserve"));
    assert!(File::parse(&format!("{KERNEL}[discipline]\nname = 'pink'\nc = 0.9"), "f").is_ok());
}

/// Budgets are given with any file; they are enforced at the interface of the LAN, so it must be named, and only then.
#[test]
fn budgets_are_enforced_where_the_file_says() {
    let with = |lan: &str, c2ml: &str| File::parse(&(KERNEL.replace("[link]", lan) + c2ml), "f");
    let (none, lan, enforce) = ("[link]", "lan = 'h1'\n[link]", "[c2ml]\npercent = 90\nenforce = true\n");
    assert!(with(none, "[c2ml]\n").is_ok() && with(lan, enforce).is_ok());
    let out = "leave `lan` out";
    for (lan, c2ml, said) in [(none, enforce, "write lan"), (lan, "[c2ml]\n", out), (lan, "", out)] {
        let refused = with(lan, c2ml).unwrap_err();
        assert!(refused.line > 2 && refused.to_string().contains(said), "{refused}");
    }
}

fn settings(text: &str) -> Settings {
    let text = format!("[interfaces]\nwan = 'w0'\n[link]\n{text}");
    File::parse(&text, "f").unwrap().settings
}

/// Only what differs is told, with its direction.
#[test]
fn a_file_is_told_by_what_is_another_in_it() {
    let old = settings("rate = '10Mbit/s'\nlimit = '100p'\n");
    let told = |text: &str| Value::from(old.difference(&settings(text)));
    assert_eq!(told("rate = '10Mbit/s'\nlimit = '100p'\n"), json!({}));
    let faster = told("rate = '20Mbit/s'\nreverse_rate = '10Mbit/s'\nlimit = '100p'\n");
    assert_eq!(faster, json!({"rate": "20Mbit/s"}));
    let other = told("rate = '10Mbit/s'\nreverse_rate = '5Mbit/s'\nlimit = '50p'\n");
    assert_eq!(other, json!({"limit": "50p", "reverse_rate": "5Mbit/s", "reverse_limit": "50p"}));
    let other = told("rate = '10Mbit/s'\nlimit = '100p'\n[discipline]\nname = 'codel'\n");
    let keys: Vec<&String> = other.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["discipline", "reverse_discipline"]);
    assert!(other["discipline"].as_str().unwrap().starts_with("codel"), "{other}");
}

#[test]
fn all_that_is_set_is_told_for_both_directions() {
    let settings = settings("rate = '10Mbit/s'\nreverse_rate = '2Mbit/s'\nlimit = '100p'\n");
    let told = json!({"rate": "10Mbit/s", "limit": "100p", "discipline": "pink", "reverse_rate": "2Mbit/s",
        "reverse_limit": "100p", "reverse_discipline": "pink"});
    assert_eq!(Value::from(settings.told()), told);
    assert_eq!(settings.rates().map(|rate| rate.as_bps()), [10_000_000, 2_000_000]);
}
