//! The rules of the firewall that hand packets to this process, in chains of their own of the table `mangle`.
//!
//! In each chain, in this order: the rule that hands packets over, with `--queue-bypass`, so that they pass when nobody takes
//! them; a rule that only counts what passes while that rule is away. What this machine itself sends and receives comes by
//! another chain, in which that returns which must never wait: neighbour discovery, router advertisements, DHCP. A router
//! forwards none of it, so a host that sends such packets passes nothing by with them. Rules are written by the programs of iptables in one transaction for each family, so
//! that there is never a half of them.

use crate::error::Error;
use crate::file::{File, Firewall, Interfaces};
use penstock_core::qdisc::Backlog;
use penstock_shaper::direction::Direction;
use std::io::{self, Write as _};
use std::process::{Command, Stdio};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    V4,
    V6,
}

impl Firewall {
    /// The name of a program, such as `ip6tables-legacy-save`.
    fn program(self, family: Family, verb: &str) -> String {
        let tables = if family == Family::V4 { "iptables" } else { "ip6tables" };
        let legacy = if self == Self::IptablesLegacy { "-legacy" } else { "" };
        format!("{tables}{legacy}-{verb}")
    }
}

/// How often rules are removed again that somebody else removes meanwhile.
const TRIES: u32 = 3;

/// The chains of one gateway. Whoever knows the number of the queue can open and remove them.
#[derive(Debug, Clone, PartialEq, Eq, clap::Args)]
pub struct Chains {
    /// Firewall programs to use
    #[arg(long, value_enum)]
    pub firewall: Firewall,
    /// Number of the first netfilter queue
    #[arg(long)]
    pub queue: u16,
    /// Handle the rules of IPv6 as well
    #[arg(long)]
    pub v6: bool,
}

/// Numbers of packets and bytes that rules have counted. Packets that an interface has merged count as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// What the rules handed to the gateway.
    pub handed: Backlog,
    /// What passed the gateway by while its rules were removed.
    pub past: Backlog,
}

impl Chains {
    /// Finds the program that works here; `wanted` is the only one to try, if there is one.
    pub fn find(wanted: Option<Firewall>, queue: u16) -> Result<Self, Error> {
        let v6 = std::path::Path::new("/proc/net/if_inet6").exists();
        let candidates = wanted.map_or(vec![Firewall::IptablesLegacy, Firewall::Iptables], |one| vec![one]);
        let mut said = String::new();
        for firewall in candidates {
            let chains = Self { firewall, queue, v6 };
            match chains.families().try_for_each(|family| chains.saved(family).map(drop)) {
                Ok(()) => return Ok(chains),
                Err(error) => said = error.to_string(),
            }
        }
        Err(Error::User(format!(
            "neither iptables-legacy nor iptables works here ({said}); install one (`apt install iptables`), and run as root or \
             with CAP_NET_ADMIN and CAP_NET_RAW"
        )))
    }

    pub fn families(&self) -> impl Iterator<Item = Family> + use<> {
        [Some(Family::V4), self.v6.then_some(Family::V6)].into_iter().flatten()
    }

    /// Returns the number of the queue of a direction.
    pub fn queue_of(&self, direction: Direction) -> u16 {
        self.queue + direction.index() as u16
    }

    fn chain(&self, direction: Direction) -> String {
        format!("penstock-{}-{}", self.queue, ["down", "up"][direction.index()])
    }

    /// The chain of what this machine itself sends and receives.
    fn own_chain(&self, direction: Direction) -> String {
        format!("{}-own", self.chain(direction))
    }

    /// The rule that hands packets over, without `-A` and the chain.
    fn handing(&self, direction: Direction) -> String {
        format!("-j NFQUEUE --queue-num {} --queue-bypass", self.queue_of(direction))
    }

    fn saved(&self, family: Family) -> Result<String, Error> {
        run(&self.firewall.program(family, "save"), &["-c", "-t", "mangle"], "")
    }

    fn restore(&self, family: Family, lines: &[String]) -> Result<(), Error> {
        let text = format!("*mangle\n{}\nCOMMIT\n", lines.join("\n"));
        run(&self.firewall.program(family, "restore"), &["--noflush", "--wait", "5"], &text).map(drop)
    }

    /// Lets packets pass: the rules that hand them over go. The rest stays, and counts what passes.
    pub fn open(&self) -> Result<(), Error> {
        let line = |d| format!("-D {} {}", self.chain(d), self.handing(d));
        self.families().try_for_each(|family| self.restore(family, &Direction::BOTH.map(line)))
    }

    /// Puts the rules back that [`Chains::open`] took away.
    pub fn close(&self) -> Result<(), Error> {
        let line = |d| format!("-I {} 1 {}", self.chain(d), self.handing(d));
        self.families().try_for_each(|family| self.restore(family, &Direction::BOTH.map(line)))
    }

    /// Removes every rule of this gateway; returns whether there was any.
    pub fn remove(&self) -> Result<bool, Error> {
        let mut any = false;
        for family in self.families() {
            let mut lines = self.removal(&self.saved(family)?);
            any |= !lines.is_empty();
            for tries in 0.. {
                let Err(error) = self.restore(family, &lines) else { break };
                // Guard and daemon may do this at the same time: then there is less to remove, or nothing.
                let left = self.removal(&self.saved(family)?);
                if tries == TRIES || left == lines {
                    return Err(error);
                }
                lines = left;
            }
        }
        Ok(any)
    }

    /// Returns the lines that remove what a saved table has of this gateway: jumps first, then chains.
    fn removal(&self, saved: &str) -> Vec<String> {
        let chains = [Direction::BOTH.map(|d| self.own_chain(d)), Direction::BOTH.map(|d| self.chain(d))].concat();
        let jumps = saved.lines().filter_map(|line| {
            let (_, rule) = rule(line)?;
            let own = chains.iter().any(|chain| rule.ends_with(&format!(" -j {chain}")));
            own.then(|| rule.replacen("-A ", "-D ", 1))
        });
        let there = |chain: &&String| saved.lines().any(|line| line.starts_with(&format!(":{chain} ")));
        let ours = |what: &'static str| chains.iter().filter(there).map(move |chain| format!("{what} {chain}"));
        jumps.chain(ours("-F")).chain(ours("-X")).collect()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    pub chains: Chains,
    pub interfaces: Interfaces,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadBack {
    /// The first rule that should be there and is not.
    pub missing: Option<String>,
    /// What rules have counted, from WAN to LAN and from LAN to WAN.
    pub counted: [Counted; 2],
}

impl Rules {
    pub fn of(file: &File) -> Result<Self, Error> {
        let chains = Chains::find(file.keys.firewall, file.keys.queue)?;
        Ok(Self { chains, interfaces: file.interfaces.clone() })
    }

    /// Returns all rules of a family, each as the program saves it.
    pub fn lines(&self, family: Family) -> Vec<String> {
        let chains = Direction::BOTH.into_iter().flat_map(|direction| {
            let chain = self.chains.chain(direction);
            let past = r#"-m comment --comment "past the shaper" -j RETURN"#.to_owned();
            [self.chains.handing(direction), past].map(|rule| format!("-A {chain} {rule}"))
        });
        chains.chain(self.of_own(family)).chain(self.jumps()).collect()
    }

    /// True if what this machine itself sends and receives is governed too.
    fn governs_own(&self) -> bool {
        self.interfaces.lan.is_none()
    }

    /// The chains of what this machine itself sends and receives, if that is governed.
    fn of_own(&self, family: Family) -> Vec<String> {
        let chains = Direction::BOTH.into_iter().filter(|_| self.governs_own()).flat_map(|direction| {
            let chain = self.chains.own_chain(direction);
            let spared = spared(family).into_iter().map(|what| format!("{what} -j RETURN"));
            let rules = spared.chain([format!("-j {}", self.chains.chain(direction))]);
            rules.map(move |rule| format!("-A {chain} {rule}"))
        });
        chains.collect()
    }

    /// The rules by which packets come into the chains. The queues of `mangle` are before the translation of addresses
    /// upwards and after it downwards, so both directions show the addresses of the LAN.
    fn jumps(&self) -> Vec<String> {
        let Interfaces { wan, lan } = &self.interfaces;
        let [down, up] = Direction::BOTH.map(|d| self.chains.chain(d));
        let [own_down, own_up] = Direction::BOTH.map(|d| self.chains.own_chain(d));
        let jumps = match lan {
            Some(lan) => format!("FORWARD -i {wan} -o {lan} -j {down}\nFORWARD -i {lan} -o {wan} -j {up}"),
            None => format!(
                "FORWARD -i {wan} -j {down}\nFORWARD -o {wan} -j {up}\nINPUT -i {wan} -j {own_down}\nOUTPUT -o {wan} -j {own_up}"
            ),
        };
        jumps.lines().map(|jump| format!("-A {jump}")).collect()
    }

    pub fn install(&self) -> Result<(), Error> {
        for family in self.chains.families() {
            let own = Direction::BOTH.into_iter().filter(|_| self.governs_own()).map(|d| self.chains.own_chain(d));
            let chains = Direction::BOTH.into_iter().map(|d| self.chains.chain(d)).chain(own);
            let chains: Vec<String> = chains.map(|chain| format!(":{chain} - [0:0]")).collect();
            self.chains.restore(family, &[&chains[..], &self.lines(family)].concat())?;
        }
        let missing = Error::io("the rules of the firewall are not those that were written; missing");
        self.read_back()?.missing.map_or(Ok(()), |rule| Err(missing(io::Error::other(rule))))
    }

    pub fn read_back(&self) -> Result<ReadBack, Error> {
        let mut all = ReadBack::default();
        for family in self.chains.families() {
            self.compare(family, &self.chains.saved(family)?, &mut all);
        }
        Ok(all)
    }

    fn compare(&self, family: Family, saved: &str, all: &mut ReadBack) {
        let there: Vec<(Backlog, &str)> = saved.lines().filter_map(rule).collect();
        for line in self.lines(family) {
            if !there.iter().any(|(_, rule)| *rule == line) {
                all.missing.get_or_insert(line);
            }
        }
        for direction in Direction::BOTH {
            let (chain, handing) = (self.chains.chain(direction), self.chains.handing(direction));
            let counted = &mut all.counted[direction.index()];
            for (count, rule) in &there {
                let Some(rule) = rule.strip_prefix(&format!("-A {chain} ")) else { continue };
                let sum = match rule == handing {
                    true => &mut counted.handed,
                    false if rule.contains("past the shaper") => &mut counted.past,
                    false => continue,
                };
                sum.packets += count.packets;
                sum.bytes += count.bytes;
            }
        }
    }
}

/// What must never wait in a queue of what this machine sends and receives, as matches of rules.
fn spared(family: Family) -> Vec<String> {
    match family {
        Family::V4 => vec!["-p udp -m udp --sport 67:68 --dport 67:68".into()],
        Family::V6 => {
            let discovery = (133..=137).map(|kind| format!("-p ipv6-icmp -m icmp6 --icmpv6-type {kind}"));
            discovery.chain(["-p udp -m udp --sport 546:547 --dport 546:547".into()]).collect()
        }
    }
}

/// Reads a rule of a saved table, `[packets:bytes] -A CHAIN ...`.
fn rule(line: &str) -> Option<(Backlog, &str)> {
    let (counters, rule) = line.strip_prefix('[')?.split_once("] ")?;
    let (packets, bytes) = counters.split_once(':')?;
    let count = Backlog { packets: packets.parse().ok()?, bytes: bytes.parse().ok()? };
    rule.starts_with("-A ").then_some((count, rule.trim_end()))
}

fn run(program: &str, arguments: &[&str], input: &str) -> Result<String, Error> {
    let failed = |said: String| Error::User(format!("{program}: {said}"));
    // Some shells of people have no /usr/sbin in their path.
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", path).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|e| failed(e.to_string()))?;
    // It reads all of a text that is shorter than a pipe holds, or ends.
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(|e| failed(e.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(failed(if said.is_empty() { output.status.to_string() } else { said }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_fails_is_told_in_its_words_or_by_its_code() {
        let said = |line: &str| run("sh", &["-c", line], "").unwrap_err().to_string();
        assert_eq!(said("echo no >&2; exit 3"), "sh: no");
        assert_eq!(said("exit 3"), "sh: exit status: 3");
    }

    fn rules(lan: Option<&str>) -> Rules {
        let chains = Chains { firewall: Firewall::IptablesLegacy, queue: 7010, v6: true };
        Rules { chains, interfaces: Interfaces { wan: "w0".into(), lan: lan.map(str::to_owned) } }
    }

    /// What `iptables-legacy-save -c -t mangle` printed after these rules were written by hand.
    const SAVED: &str = r#"# Generated by iptables-save v1.8.9 on Mon Nov 23 11:07:39 2026
*mangle
:PREROUTING ACCEPT [0:0]
:penstock-7010-down - [0:0]
:penstock-7010-up - [0:0]
[3:300] -A FORWARD -i w0 -o l0 -j penstock-7010-down
[0:0] -A FORWARD -i l0 -o w0 -j penstock-7010-up
[9:9] -A FORWARD -i l0 -j TCPMSS --clamp-mss-to-pmtu
[2:200] -A penstock-7010-down -j NFQUEUE --queue-num 7010 --queue-bypass
[5:700] -A penstock-7010-down -m comment --comment "past the shaper" -j RETURN
[0:0] -A penstock-7010-up -j NFQUEUE --queue-num 7011 --queue-bypass
[0:0] -A penstock-7010-up -m comment --comment "past the shaper" -j RETURN
COMMIT
"#;

    #[test]
    fn what_the_program_saves_is_what_was_meant_unless_somebody_removed_a_rule() {
        let read = |saved: &str| {
            let mut read = ReadBack::default();
            rules(Some("l0")).compare(Family::V4, saved, &mut read);
            read
        };
        let handed = Backlog { packets: 2, bytes: 200 };
        let counted = Counted { handed, past: Backlog { packets: 5, bytes: 700 } };
        assert_eq!(read(SAVED), ReadBack { missing: None, counted: [counted, Counted::default()] });
        let gone = "-A FORWARD -i l0 -o w0 -j penstock-7010-up";
        assert_eq!(read(&SAVED.replace(gone, "")).missing.as_deref(), Some(gone));
    }

    #[test]
    fn removal_takes_what_is_ours_and_nothing_else() {
        let chains = rules(None).chains;
        let expected = [
            "-D FORWARD -i w0 -o l0 -j penstock-7010-down",
            "-D FORWARD -i l0 -o w0 -j penstock-7010-up",
            "-F penstock-7010-down",
            "-F penstock-7010-up",
            "-X penstock-7010-down",
            "-X penstock-7010-up",
        ];
        assert_eq!(chains.removal(SAVED), expected);
        let other = Chains { queue: 7012, ..chains.clone() };
        assert_eq!(other.removal(SAVED), [""; 0]);
        let own = "*mangle\n:penstock-7010-up - [0:0]\n:penstock-7010-up-own - [0:0]\n\
                   [0:0] -A OUTPUT -o w0 -j penstock-7010-up-own\n[0:0] -A penstock-7010-up-own -j penstock-7010-up\n";
        let expected = [
            "-D OUTPUT -o w0 -j penstock-7010-up-own",
            "-D penstock-7010-up-own -j penstock-7010-up",
            "-F penstock-7010-up-own",
            "-F penstock-7010-up",
            "-X penstock-7010-up-own",
            "-X penstock-7010-up",
        ];
        assert_eq!(chains.removal(own), expected);
    }

    /// What a router forwards is none of its own, whatever ports it has: only what this machine sends and receives is spared.
    #[test]
    fn neighbours_are_never_held_and_no_host_passes_by() {
        let lines = rules(None).lines(Family::V6);
        let to_shaper = lines.iter().position(|line| line == "-A penstock-7010-up-own -j penstock-7010-up").unwrap();
        for kind in 133..=137 {
            let spared = format!("-A penstock-7010-up-own -p ipv6-icmp -m icmp6 --icmpv6-type {kind} -j RETURN");
            assert!(lines.iter().position(|line| *line == spared).unwrap() < to_shaper);
        }
        let bypass = |line: &&String| line.contains("NFQUEUE") && line.ends_with("--queue-bypass");
        assert_eq!(lines.iter().filter(bypass).count(), 2);
        for jump in ["OUTPUT -o w0 -j penstock-7010-up-own", "INPUT -i w0 -j penstock-7010-down-own"] {
            assert!(lines.contains(&format!("-A {jump}")), "{lines:?}");
        }
        for rules in [rules(None), rules(Some("l0"))] {
            let lines = [rules.lines(Family::V4), rules.lines(Family::V6)].concat();
            let forwarded =
                |line: &&String| ["down ", "up "].iter().any(|way| line.contains(&format!("-A penstock-7010-{way}")));
            let first = lines.iter().filter(forwarded).filter(|line| !line.contains("past")).collect::<Vec<_>>();
            assert!(first.iter().all(|line| line.contains("NFQUEUE")), "{first:?}");
            assert_eq!(lines.iter().any(|line| line.contains("-own")), rules.governs_own());
        }
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = run("penstock-no-such-program", &[], "").unwrap_err();
        assert!(error.to_string().starts_with("penstock-no-such-program: "), "{error}");
    }
}
