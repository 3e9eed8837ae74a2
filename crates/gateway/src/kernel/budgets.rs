//! Budgets for hosts in the kernel data path: sessions fill the programs that hold hosts to them (`bpf/police.bpf.c`), with the
//! rules and defaults of QRM.

use crate::enforce::{Count, Enforcement, Held, Used};
use penstock_budgets::gateway::Grant;
use penstock_budgets::served::{Keys, Served};
use penstock_core::ack::qrm;
use penstock_core::qdisc::Backlog;
use penstock_core::units::{Rate, Span};
use penstock_linux::bpf::police::{Host, Key, Police, Rules};
use penstock_linux::links::LinkWatch;
use std::collections::BTreeMap;
use std::time::Duration;

/// What the programs do without a sign of life for so long: they let everything pass.
const PATIENCE: Duration = Duration::from_secs(1);

/// The role that gives budgets, and the programs that hold hosts to them if the file says so.
pub(super) struct Budgets {
    pub served: Served,
    police: Option<Policing>,
}

struct Policing {
    police: Police,
    lan: LinkWatch,
    name: String,
    /// The number of the interface at which the programs are.
    index: u32,
    upload: Rate,
    grants: Vec<Grant>,
    /// What the programs knew of each host at the last two ticks.
    known: BTreeMap<Key, [Host; 2]>,
    ticked: [std::time::Instant; 2],
}

fn time(span: Span) -> Duration {
    Duration::from_nanos(span.as_nanos())
}

impl Budgets {
    /// Begins to serve; with `enforce` programs are attached to `lan` that count what leaves to the interface `wan`.
    pub fn open(keys: &Keys, upload: Rate, lan: Option<&str>, wan: u32, observe: bool) -> Result<Self, String> {
        let attach = |name: &str| {
            let lan = LinkWatch::named(name).map_err(|e| e.to_string())?;
            let qrm = qrm::Config::default();
            let rules = Rules {
                patience: PATIENCE,
                enforces: !observe,
                wan,
                each_bps: upload.as_bps(),
                rtt: time(qrm.rtt),
                max_lan: time(qrm.max_lan),
                tolerance_permille: (qrm.tolerance * 1000.0) as u64,
                syn_rate: qrm.syn_rate.into(),
                ethernet: lan.facts().ethernet,
                clock: 0,
            };
            let police = Police::load(rules, keys.most).map_err(|e| e.to_string())?;
            let (name, ticked) = (name.to_owned(), [std::time::Instant::now(); 2]);
            let (grants, known, index) = (Vec::new(), BTreeMap::new(), 0);
            let mut policing = Policing { police, lan, name, index, upload, grants, known, ticked };
            policing.follow(wan).map_err(|e| e.to_string())?;
            Ok::<Policing, String>(policing)
        };
        let police = lan.filter(|_| keys.enforce).map(attach).transpose()?;
        let served = Served::start(keys, upload, police.is_some())?;
        Ok(Self { served, police })
    }

    /// Gives a sign of life, and tells what has changed: the rate of the upload, and budgets.
    pub fn beat(&mut self, upload: Rate) -> Result<(), penstock_linux::bpf::Error> {
        self.served.set_upload(upload);
        let Some(policing) = &mut self.police else { return Ok(()) };
        policing.upload = upload;
        if let Some(grants) = self.served.grants() {
            policing.grants = grants;
            policing.police.set_budgets(policing.wanted())?;
        }
        policing.police.beat()
    }

    /// Follows the interface of the LAN, and knows the number of that to the link. Returns what happened.
    pub fn follow(&mut self, wan: u32) -> Option<String> {
        let policing = self.police.as_mut()?;
        let name = policing.name.clone();
        match policing.follow(wan) {
            Ok(true) => Some(format!("the programs that hold hosts to budgets are attached to {name} again")),
            Ok(false) => None,
            Err(error) => {
                Some(format!("the programs that hold hosts to budgets cannot be attached to {name}: {error}"))
            }
        }
    }

    /// Ends a second. Returns false if the kernel had other budgets than those that it was told; it has them again.
    pub fn tick(&mut self) -> Result<bool, penstock_linux::bpf::Error> {
        let Some(policing) = &mut self.police else { return Ok(true) };
        policing.tick()?;
        policing.police.check_budgets()
    }

    pub fn report(&self) -> Result<Option<Enforcement>, penstock_linux::bpf::Error> {
        self.police.as_ref().map(Policing::report).transpose()
    }
}

impl Policing {
    /// Returns whether the programs are at another interface now.
    fn follow(&mut self, wan: u32) -> Result<bool, penstock_linux::bpf::Error> {
        self.lan.refresh();
        let (facts, index) = (self.lan.facts(), self.lan.index());
        let rules = Rules { wan, ethernet: facts.ethernet, ..*self.police.told() };
        if facts.gone || (index == self.index && rules.wan == self.police.told().wan) {
            return Ok(false);
        }
        self.police.tell(rules)?;
        if index == self.index {
            return Ok(false);
        }
        // A failure is told once.
        self.index = index;
        self.police.attach(&self.name).map(|()| true)
    }

    /// The budgets of addresses: the sums of their sessions.
    fn wanted(&self) -> BTreeMap<Key, u64> {
        let mut wanted = BTreeMap::new();
        for Grant { address, budget, .. } in &self.grants {
            let sum: &mut u64 = wanted.entry(Key::from(*address)).or_default();
            *sum = sum.saturating_add(budget.as_bps());
        }
        wanted
    }

    fn rest(&self) -> u64 {
        self.upload.as_bps().saturating_sub(self.wanted().values().fold(0, |sum, budget| sum.saturating_add(*budget)))
    }

    fn tick(&mut self) -> Result<(), penstock_linux::bpf::Error> {
        let mut known = BTreeMap::new();
        for key in self.wanted().into_keys() {
            let now = self.police.host(key)?.unwrap_or_default();
            let before = self.known.get(&key).map_or(now, |[before, _]| *before);
            known.insert(key, [now, before]);
        }
        self.known = known;
        self.ticked = [std::time::Instant::now(), self.ticked[0]];
        let strangers = self.police.strangers(time(qrm::Config::default().idle))?;
        let each_bps = self.rest() / strangers.max(1);
        if self.police.told().each_bps != each_bps {
            let rules = Rules { each_bps, ..*self.police.told() };
            self.police.tell(rules)?;
        }
        Ok(())
    }

    fn report(&self) -> Result<Enforcement, penstock_linux::bpf::Error> {
        let [now, before] = self.ticked;
        let wanted = self.wanted();
        let used = |(key, budget): (&Key, &u64)| {
            let counts = self.known.get(key).map(|known| known.map(|host| count(host.arrived, host.policed)));
            Used::within(now.duration_since(before), *budget, counts.unwrap_or_default())
        };
        let all: BTreeMap<Key, Used> = wanted.iter().map(|(key, budget)| (*key, used((key, budget)))).collect();
        let mut nodes = Vec::new();
        for Grant { node, address, .. } in &self.grants {
            let key = Key::from(*address);
            let host = self.police.host(key)?.unwrap_or_default();
            nodes.push(Held {
                node: *node,
                address: *address,
                used: all.get(&key).copied().unwrap_or_default(),
                count: count(host.arrived, host.policed),
            });
        }
        let totals = self.police.totals()?;
        Ok(Enforcement {
            enforces: self.police.told().enforces,
            used_bps: all.values().map(|used| used.used_bps).sum(),
            over: all.values().filter(|used| used.over).count(),
            rest_bps: self.rest(),
            nodes,
            strangers: count(totals.arrived[0], totals.policed[0]),
            sessions: count(totals.arrived[1], totals.policed[1]),
        })
    }
}

fn count(arrived: [u64; 2], policed: [u64; 2]) -> Count {
    let backlog = |[packets, bytes]: [u64; 2]| Backlog { packets, bytes };
    Count { arrived: backlog(arrived), policed: backlog(policed) }
}
