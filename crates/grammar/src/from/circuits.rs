//! `ShapedDevices.csv` of LibreQoS: a row for each device, those of one circuit with the same number.

use super::nodes::{self, Nodes};
use super::tree::{self, Member, Prefix};
use super::units::mbps;
use super::{Description, Format, Key, Note, Text, Way, quoted};
use crate::Diagnosis;
use penstock_core::units::Rate;
use std::collections::BTreeMap;

/// A column: its names in headers, without spaces and in small letters.
const COLUMNS: [(&str, &[&str]); 16] = [
    ("Circuit ID", &["circuitid"]),
    ("Circuit Name", &["circuitname"]),
    ("Device ID", &["deviceid"]),
    ("Device Name", &["devicename"]),
    ("Parent Node", &["parentnode"]),
    ("Parent Node ID", &["parentnodeid"]),
    ("Anchor Node ID", &["anchornodeid"]),
    ("MAC", &["mac"]),
    ("IPv4", &["ipv4"]),
    ("IPv6", &["ipv6"]),
    ("Download Min Mbps", &["downloadmin", "downloadminmbps"]),
    ("Upload Min Mbps", &["uploadmin", "uploadminmbps"]),
    ("Download Max Mbps", &["downloadmax", "downloadmaxmbps"]),
    ("Upload Max Mbps", &["uploadmax", "uploadmaxmbps"]),
    ("Comment", &["comment"]),
    ("sqm", &["sqm"]),
];

fn plain(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// True if this line begins the table of devices.
pub(super) fn is_header(line: &str) -> bool {
    plain(line.split([',', ';', '\t']).next().unwrap_or("")) == "circuitid"
}

/// The columns of former versions, which rows may have below a header of today.
const FORMER: &str = "Circuit ID,Circuit Name,Device ID,Device Name,Parent Node,MAC,IPv4,IPv6,Download Min Mbps,\
                      Upload Min Mbps,Download Max Mbps,Upload Max Mbps,Comment";

/// The columns of a file, by their names.
struct Layout {
    places: BTreeMap<&'static str, usize>,
    /// The least number of columns of a row.
    least: usize,
}

impl Layout {
    fn of(text: &Text<'_>, header: &csv::StringRecord) -> Result<Self, Diagnosis> {
        let mut all = BTreeMap::new();
        for (at, name) in header.iter().enumerate() {
            let name = plain(name);
            if let Some((column, _)) = COLUMNS.iter().find(|(_, names)| names.contains(&name.as_str())) {
                all.entry(*column).or_insert(at);
            }
        }
        let mut least = 0;
        for needed in ["Circuit ID", "IPv4", "Download Max Mbps", "Upload Max Mbps"] {
            match all.get(needed) {
                Some(at) => least = least.max(at + 1),
                None => return Err(text.wrong(1, &format!("the header has no column {needed:?}"))),
            }
        }
        Ok(Self { places: all, least })
    }

    fn get<'r>(&self, row: &'r csv::StringRecord, column: &str) -> &'r str {
        self.places.get(column).and_then(|at| row.get(*at)).unwrap_or("").trim()
    }
}

/// Circuits as they are read.
#[derive(Default)]
struct Circuits {
    members: Vec<Member>,
    /// Their numbers and the names of their parents, as the rows have them.
    ids: Vec<String>,
    parents: Vec<[String; 2]>,
    known: BTreeMap<String, usize>,
    notes: Vec<Note>,
    has_mac: bool,
    has_comment: bool,
    has_former: bool,
}

/// Reads one of the two files, or both.
pub(super) fn read(csv: Option<Text<'_>>, json: Option<Text<'_>>) -> Result<Description, Diagnosis> {
    let nodes = json.as_ref().map_or_else(|| Ok(Nodes::default()), nodes::read)?;
    let circuits = csv.as_ref().map_or_else(|| Ok(Circuits::default()), table)?;
    if let (Some(json), true) = (&json, circuits.members.is_empty()) {
        let what =
            "without ShapedDevices.csv nobody knows whose addresses are whose; give both files, or their directory";
        return Err(json.wrong(1, if csv.is_some() { "ShapedDevices.csv has no circuit" } else { what }));
    }
    let Some(file) = csv else { return Err(super::drawn("", 1, "", "no file")) };
    if circuits.members.is_empty() {
        return Err(file.wrong(1, "it has no circuit"));
    }
    let files = [Some(file), json].into_iter().flatten().map(|text| text.name.to_owned()).collect();
    describe(&file, files, nodes, circuits)
}

fn describe(file: &Text<'_>, files: Vec<String>, nodes: Nodes, circuits: Circuits) -> Result<Description, Diagnosis> {
    let notes = nodes.notes.clone();
    let mut gateway_notes = circuits.notes.clone();
    let parents = parents(&nodes, &circuits, &mut gateway_notes);
    let rates = uplink(&nodes, &circuits, &parents);
    let busiest = busiest(&nodes, &circuits, &parents);
    let members = joined(nodes, circuits, parents);
    let told = "it is in lqos.conf, which is not read";
    gateway_notes.push(file.note(
        1,
        "interfaces",
        told,
        "write the interface to the internet as `wan`, and the other as `lan`",
    ));
    gateway_notes.push(file.note(
        1,
        "the rate of the uplink",
        told,
        "the sum of what is below it is written; write the rate of the link",
    ));
    gateway_notes.push(file.note(
        1,
        "the default queue",
        told,
        "fq-codel is written; `name = \"cake\"` in [discipline] is another",
    ));
    let members = tree::fit(members, rates.map(Some), &mut gateway_notes);
    if members.is_empty() {
        return Err(file.wrong(1, "no circuit has an address, so there is nobody to share the link"));
    }
    let scenario_notes = vec![file.note(
        1,
        "subscribers",
        "a scenario has one link and no tree of subscribers",
        "the busiest link is written",
    )];
    let way = |rate: Rate| Way {
        rate: Some((rate, "the sum of what is below".into())),
        discipline: vec![Key { key: "name", value: quoted("fq-codel"), from: "of each subscriber".into() }],
        layer_from: "none".into(),
        ..Way::default()
    };
    Ok(Description {
        format: Format::LibreQos,
        files,
        wan: ("eth0".into(), String::new()),
        ways: rates.map(way),
        members,
        busiest: Some(busiest),
        notes,
        gateway_notes,
        scenario_notes,
    })
}

/// Returns the groups of circuits, and notes those which `network.json` does not have.
fn parents(nodes: &Nodes, circuits: &Circuits, notes: &mut Vec<Note>) -> Vec<Option<usize>> {
    let [mut by_name, mut by_id] = [BTreeMap::new(), BTreeMap::new()];
    for node in &nodes.all {
        by_name.entry(node.names[0].as_str()).or_insert(node.group);
        by_id.entry(node.names[1].as_str()).or_insert(node.group);
    }
    let mut find = |(member, [name, id]): (&Member, &[String; 2])| {
        let found = if id.is_empty() { None } else { by_id.get(id.as_str()) };
        let found = found.or_else(|| by_name.get(name.as_str()));
        let is_named = !["", "none", "root"].contains(&name.to_ascii_lowercase().as_str());
        if found.is_none() && is_named {
            let why = "network.json has no node of this name";
            notes.push(member.note(&format!("parent {name}"), why, "it is directly before the link"));
        }
        found.copied().flatten()
    };
    circuits.members.iter().zip(&circuits.parents).map(&mut find).collect()
}

/// Returns the sums of the rates at the top.
fn uplink(nodes: &Nodes, circuits: &Circuits, parents: &[Option<usize>]) -> [Rate; 2] {
    let most = crate::link::MAX_RATE.as_bps();
    [0, 1].map(|way| {
        let groups = nodes.groups.iter().filter(|group| group.parent.is_none());
        let own = circuits.members.iter().zip(parents).filter(|(_, parent)| parent.is_none()).map(|(member, _)| member);
        let ceiling = |member: &Member| member.rates[way][1].unwrap_or_default();
        let sum = groups.chain(own).map(ceiling).fold(0u64, u64::saturating_add);
        Rate::from_bps(sum.clamp(super::LEAST_RATE.as_bps(), most))
    })
}

/// Finds the node before which most is promised for what it has, or else the largest circuit.
fn busiest(nodes: &Nodes, circuits: &Circuits, parents: &[Option<usize>]) -> ([Option<Rate>; 2], String) {
    let mut promised = vec![0u64; nodes.groups.len()];
    for (member, parent) in circuits.members.iter().zip(parents) {
        let mut at = *parent;
        while let Some(group) = at {
            promised[group] = promised[group].saturating_add(member.rates[0][1].unwrap_or(0));
            at = nodes.groups[group].parent;
        }
    }
    let ratio = |at: usize| promised[at] as f64 / nodes.groups[at].rates[0][1].unwrap_or(u64::MAX) as f64;
    let first = |a, b| if ratio(b) > ratio(a) { b } else { a };
    let least = super::LEAST_RATE.as_bps();
    let rates = |member: &Member| member.rates.map(|[_, ceiling]| ceiling.map(|bps| Rate::from_bps(bps.max(least))));
    if let Some(at) = (0..nodes.groups.len()).reduce(first).filter(|at| promised[*at] > 0) {
        let group = &nodes.groups[at];
        let of = format!("{} line {}: node {}", group.file, group.line, group.name);
        return (rates(group), format!("{of}, which has promised {:.1} times this rate", ratio(at)));
    }
    let larger = |a, b| if largest_first(b) > largest_first(a) { b } else { a };
    let largest = circuits.members.iter().reduce(larger);
    largest.map_or(([None; 2], String::new()), |of| {
        (rates(of), format!("{} line {}: the largest circuit, {}", of.file, of.line, of.name))
    })
}

fn largest_first(member: &Member) -> Option<u64> {
    member.rates[0][1]
}

/// Puts circuits below their nodes.
fn joined(nodes: Nodes, circuits: Circuits, parents: Vec<Option<usize>>) -> Vec<Member> {
    let mut all = nodes.groups;
    let first = all.len();
    let of_circuit = |(at, (member, parent))| {
        // Until names are told apart, the weight is the place of the number of the circuit.
        Member { parent, weight: Some(at as u64), ..member }
    };
    all.extend(circuits.members.into_iter().zip(parents).enumerate().map(of_circuit));
    tree::name_apart(&mut all, |member| {
        let at = member.weight.and_then(|at| circuits.ids.get(usize::try_from(at).ok()?));
        at.cloned().unwrap_or_else(|| format!("line {}", member.line))
    });
    all.iter_mut().skip(first).for_each(|member| member.weight = None);
    all
}

/// How far a table is read.
struct Place<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl Place<'_> {
    /// Returns the line of a row. The reader counts empty lines to the row behind them.
    fn of(&mut self, row: &csv::StringRecord) -> usize {
        let bytes = self.text.as_bytes();
        let begin = row.position().and_then(|at| usize::try_from(at.byte()).ok()).unwrap_or(self.at);
        let empty =
            bytes.get(begin..).unwrap_or_default().iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let to = (begin + empty).clamp(self.at, bytes.len());
        self.line += bytes[self.at..to].iter().filter(|byte| **byte == b'\n').count();
        self.at = to;
        self.line
    }
}

fn table(text: &Text<'_>) -> Result<Circuits, Diagnosis> {
    let first = text.text.trim_start().lines().next().unwrap_or("");
    let delimiter =
        *[b',', b';', b'\t'].iter().max_by_key(|c| first.bytes().filter(|b| b == *c).count()).unwrap_or(&b',');
    let mut reader = csv::ReaderBuilder::new()
        .flexible(true)
        .has_headers(false)
        .delimiter(delimiter)
        .from_reader(text.text.as_bytes());
    let mut row = csv::StringRecord::new();
    let mut layout = None;
    let former = Layout::of(text, &FORMER.split(',').collect())?;
    let mut circuits = Circuits::default();
    let mut place = Place { text: text.text, at: 0, line: 1 };
    loop {
        match reader.read_record(&mut row) {
            Ok(false) => break,
            Ok(true) => {}
            Err(e) => return Err(text.wrong(place.line, &format!("ShapedDevices.csv: {e}"))),
        }
        let line = place.of(&row);
        let is_empty = row.iter().all(|field| field.trim().is_empty());
        match &layout {
            _ if is_empty || row.get(0).is_some_and(|first| first.trim_start().starts_with('#')) => {}
            None => layout = Some((Layout::of(text, &row)?, row.len())),
            Some((layout, columns)) => {
                let is_former = *columns > 14 && row.len() == 13;
                if row.len() < layout.least && !is_former {
                    let what = format!("the row has {} columns, and the header {columns}; is a quote open?", row.len());
                    return Err(text.wrong(line, &what));
                }
                circuits.has_former |= is_former;
                circuits.take(text, line, if is_former { &former } else { layout }, &row)?;
            }
        }
    }
    circuits.columns(text);
    Ok(circuits)
}

impl Circuits {
    /// Reads a device: it is of a circuit that is there, or it is the first one of its circuit.
    fn take(
        &mut self,
        text: &Text<'_>,
        line: usize,
        layout: &Layout,
        row: &csv::StringRecord,
    ) -> Result<(), Diagnosis> {
        let get = |column: &str| layout.get(row, column);
        let (id, name) = (get("Circuit ID").to_owned(), get("Circuit Name"));
        let rate = |column: &str| mbps(get(column)).map_err(|what| text.wrong(line, &format!("{column}: {what}")));
        let rates = [
            [rate("Download Min Mbps")?, rate("Download Max Mbps")?],
            [rate("Upload Min Mbps")?, rate("Upload Max Mbps")?],
        ];
        self.has_mac |= !get("MAC").is_empty();
        self.has_comment |= !get("Comment").is_empty();
        let mut prefixes = Vec::new();
        let mut widened = Vec::new();
        for written in [get("IPv4"), get("IPv6")]
            .iter()
            .flat_map(|field| field.split([',', ' ', ';']))
            .filter(|one| !one.is_empty())
        {
            let (prefix, is_wider) =
                Prefix::read(written.trim_matches(['[', ']', '"', '\''])).map_err(|what| text.wrong(line, &what))?;
            prefixes.push(prefix);
            widened.extend(is_wider.then_some(written));
        }
        let before = self.known.get(&id).copied().filter(|_| !id.is_empty());
        let at = before.unwrap_or(self.members.len());
        if before.is_none() {
            let ids = [get("Parent Node ID"), get("Anchor Node ID")];
            let by_id = ids
                .into_iter()
                .find(|id| !id.is_empty())
                .filter(|_| get("Parent Node").is_empty() || !ids[0].is_empty());
            self.begin(text, line, (&id, name), rates, [get("Parent Node").into(), by_id.unwrap_or("").into()]);
            self.sqm(text, line, get("sqm"), at);
        } else if self.members[at].rates != rates {
            let word = format!("{}: rates", self.members[at].name);
            let why = format!(
                "the circuit has other rates since line {}, which LibreQoS takes as well",
                self.members[at].line
            );
            self.notes.push(text.note(line, &word, &why, "write the same rates"));
        }
        self.members[at].prefixes.extend(prefixes);
        for written in widened {
            let word = format!("{}: {written}", self.members[at].name);
            self.notes.push(text.note(line, &word, "a subscriber of IPv6 has a /64 here", "the whole /64 is written"));
        }
        Ok(())
    }

    fn begin(
        &mut self,
        text: &Text<'_>,
        line: usize,
        (id, name): (&str, &str),
        rates: [[Option<u64>; 2]; 2],
        parent: [String; 2],
    ) {
        let name = if name.is_empty() { id } else { name };
        for (way, column) in ["Download Max Mbps", "Upload Max Mbps"].into_iter().enumerate() {
            if rates[way][1].is_none() {
                let word = format!("{name}: {column}");
                self.notes.push(text.note(line, &word, "a ceiling of 0 is none here", "it has no ceiling; write one"));
            }
        }
        self.known.insert(id.to_owned(), self.members.len());
        let about =
            if id.is_empty() { format!("line {line}") } else { format!("line {line}: circuit {}", super::clipped(id)) };
        let member = Member { name: name.into(), file: text.name.into(), line, about, rates, ..Member::default() };
        self.members.push(member);
        self.ids.push(id.to_owned());
        self.parents.push(parent);
    }

    /// Reads `cake`, `fq_codel`, `none`, or one for each direction.
    fn sqm(&mut self, text: &Text<'_>, line: usize, told: &str, at: usize) {
        if told.is_empty() {
            return;
        }
        let (down, up) = told.split_once('/').unwrap_or((told, told));
        let name = self.members[at].name.clone();
        if down != up {
            let word = format!("{name}: sqm {told}");
            let why = "a subscriber has one discipline for both directions";
            self.notes.push(text.note(
                line,
                &word,
                why,
                "that of the download is written, or that of the upload if it has none",
            ));
        }
        let one = if down.is_empty() { up } else { down };
        let known = match one.to_ascii_lowercase().as_str() {
            "cake" => "cake",
            "fq_codel" => "fq-codel",
            "none" => "droptail",
            _ => {
                let word = format!("{name}: sqm {told}");
                self.notes.push(text.note(
                    line,
                    &word,
                    "it is none of cake, fq_codel and none",
                    "it has the discipline of the others",
                ));
                return;
            }
        };
        let key = |key, value| Key { key, value, from: format!("sqm {told}") };
        self.members[at].discipline = vec![key("name", quoted(known))];
    }

    /// Notes columns that are not taken.
    fn columns(&mut self, text: &Text<'_>) {
        if self.has_mac {
            let why = "LibreQoS shapes by IP addresses, and so does this; a MAC is no address of a subscriber there";
            self.notes.push(text.note(1, "MAC", why, "write hardware addresses in `prefixes` if they are meant"));
        }
        if self.has_former {
            let why = "rows have 13 columns and the header has more: they are read as those of former versions";
            self.notes.push(text.note(1, "columns", why, "see whether addresses and rates are right"));
        }
        if self.has_comment {
            self.notes.push(text.note(1, "Comment", "it says nothing of a queue", "see it in the source"));
        }
    }
}
