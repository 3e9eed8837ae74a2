//! Lines of a shell, of `tc -batch`, and of what `tc` shows, as words.

use super::Text;
use crate::Diagnosis;

/// The most bytes of a line with its continuations.
const LONGEST: usize = 1 << 16;

/// What a line is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Object {
    Qdisc,
    Class,
    Filter,
}

/// What is done with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Add,
    Replace,
    Change,
    Delete,
    /// `tc` has shown it.
    Shown,
}

/// A command, or a line that `tc` has shown.
#[derive(Debug, Clone)]
pub(super) struct Command {
    /// The number of its first line.
    pub line: usize,
    pub object: Object,
    pub verb: Verb,
    /// What comes behind the verb, or behind the object where `tc` has shown it.
    pub words: Vec<String>,
}

/// What a text says.
#[derive(Debug, Default)]
pub(super) struct Commands {
    pub list: Vec<Command>,
    /// Lines that are none of tc: their numbers, and their first words.
    pub others: Vec<(usize, String)>,
}

/// Commands of a shell that say nothing of a queue.
const SILENT: [&str; 21] = [
    "ip", "modprobe", "insmod", "rmmod", "set", "exit", "fi", "done", "then", "else", "do", "echo", "true", ":",
    "sleep", "sudo", "doas", "ethtool", "ifconfig", "export", "{",
];
/// What stands before a command, with which it is the same.
const BEFORE: [&str; 16] = [
    "sudo", "doas", "exec", "command", "nohup", "nice", "time", "then", "do", "else", "if", "!", "$", "%", "{",
    "busybox",
];

/// The most commands.
const MOST: usize = 20_000;
/// The most lines.
const MOST_LINES: usize = 1_000_000;
/// The most lines of others that are told one by one.
const MOST_OTHERS: usize = 100;

/// Splits a text into commands.
pub(super) fn commands(text: &Text<'_>) -> Result<Commands, Diagnosis> {
    let mut all = Commands::default();
    let mut after_shown = false;
    for (line, joined) in lines(text)? {
        let indented = joined.starts_with([' ', '\t']);
        for words in split(&joined) {
            let Some(first) = words.first() else { continue };
            if let Some(command) = command(text, line, &words)? {
                after_shown = command.verb == Verb::Shown;
                all.list.push(command);
                if all.list.len() > MOST {
                    return Err(text.wrong(line, "more than 20000 lines of tc; give those of one link"));
                }
            } else if (indented && after_shown) || arguments(&words).is_some() {
                // Counters of what was shown, and questions to tc.
            } else if !SILENT.contains(&first.as_str()) && all.others.len() <= MOST_OTHERS {
                let more = all.others.len() == MOST_OTHERS;
                all.others.push((line, if more { "this line, and all others like it".into() } else { first.clone() }));
            }
        }
    }
    Ok(all)
}

/// Joins what a backslash at the end continues, without comments; each with the number of its first line.
fn lines(text: &Text<'_>) -> Result<Vec<(usize, String)>, Diagnosis> {
    let mut all: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (number, line) in (1..).zip(text.text.lines()) {
        if number > MOST_LINES {
            return Err(text.wrong(1, "more than 1000000 lines, so they are none of tc for one link"));
        }
        let code = without_comment(line);
        let continued = code.len() == line.len() && code.trim_end().ends_with('\\');
        let code = if continued { code.trim_end().trim_end_matches('\\') } else { code };
        match all.last_mut().filter(|_| goes_on) {
            Some((_, before)) => {
                before.push(' ');
                before.push_str(code);
            }
            None if code.trim().is_empty() && !continued => {}
            None => all.push((number, code.to_owned())),
        }
        goes_on = continued;
        if all.last().is_some_and(|(_, joined)| joined.len() > LONGEST) {
            return Err(text.wrong(number, "a line has more than 64 KiB, so it is none of tc"));
        }
    }
    Ok(all)
}

/// Cuts a comment off, which begins at the begin of a word outside of quotes.
fn without_comment(line: &str) -> &str {
    let mut quote = None;
    let mut before = ' ';
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '#') if before.is_whitespace() => return &line[..at],
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            _ => {}
        }
        before = c;
    }
    line
}

/// Splits a line into simple commands, and these into words without quotes and redirections.
fn split(line: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars().chain([' ']) {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, ';' | '|' | '&') => {
                let redirects = c == '&' && word.as_deref().is_some_and(|word| word.ends_with('>'));
                if redirects {
                    word.get_or_insert_default().push(c);
                    continue;
                }
                all.last_mut().into_iter().for_each(|words| words.extend(word.take()));
                all.push(Vec::new());
            }
            (None, c) if c.is_whitespace() => all.last_mut().into_iter().for_each(|words| words.extend(word.take())),
            _ => word.get_or_insert_default().push(c),
        }
    }
    all.last_mut().into_iter().for_each(|words| words.extend(word.take()));
    all.into_iter().map(without_redirections).filter(|words| !words.is_empty()).collect()
}

fn without_redirections(words: Vec<String>) -> Vec<String> {
    let mut kept = Vec::with_capacity(words.len());
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let sign = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
        if !sign.starts_with(['>', '<']) {
            kept.push(word);
        } else if sign.trim_start_matches(['>', '<', '&']).is_empty() {
            words.next();
        }
    }
    kept
}

/// Returns the last part of a path.
fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Returns where the arguments of `tc` begin, if these words call it.
fn arguments(words: &[String]) -> Option<usize> {
    let mut at = 0;
    loop {
        let word = words.get(at)?.as_str();
        let is_prompt = word.contains('@') && word.ends_with(['#', '$']);
        match base(word) {
            "tc" => break,
            "ip" if words.get(at + 1).is_some_and(|next| next == "netns") => at += 4,
            other if BEFORE.contains(&other) || is_prompt || (at > 0 && word.starts_with('-')) => at += 1,
            _ => return None,
        }
    }
    at += 1;
    while let Some(option) = words.get(at).filter(|word| word.starts_with('-')) {
        let has_value = ["-n", "-net", "-netns", "-b", "-batch", "-cf", "-conf"].contains(&option.as_str());
        at += if has_value { 2 } else { 1 };
    }
    Some(at)
}

fn object(word: &str) -> Option<Object> {
    Some(match word {
        "qdisc" | "qd" | "q" => Object::Qdisc,
        "class" | "cl" => Object::Class,
        "filter" | "fi" => Object::Filter,
        _ => return None,
    })
}

fn verb(word: &str) -> Option<Verb> {
    Some(match word {
        "add" | "a" => Verb::Add,
        "replace" | "repl" | "link" => Verb::Replace,
        "change" | "chg" | "c" => Verb::Change,
        "delete" | "del" | "d" => Verb::Delete,
        _ => return None,
    })
}

/// Reads a command; `None` if the words are none of tc, or ask for something without changing it.
fn command(text: &Text<'_>, line: usize, words: &[String]) -> Result<Option<Command>, Diagnosis> {
    let begin = arguments(words);
    let rest = &words[begin.unwrap_or(0).min(words.len())..];
    let Some(object) = rest.first().and_then(|word| object(word)) else {
        let Some(begin) = begin else { return Ok(None) };
        let what = "a call of tc without qdisc, class or filter is not read; write the lines that it runs";
        return if begin == words.len() && words.len() == 1 { Ok(None) } else { Err(text.wrong(line, what)) };
    };
    let asked = rest.get(1).map_or("", String::as_str);
    let verb = match verb(asked) {
        Some(verb) => verb,
        None if begin.is_some() => {
            let asks = ["", "show", "list", "ls", "get", "s", "sh", "l"].contains(&asked);
            let what = format!("tc has no {asked:?}; it has add, replace, change, delete and show");
            return if asks { Ok(None) } else { Err(text.wrong(line, &what)) };
        }
        // `qdisc` with a short name may begin any line, so a shown one has a whole name.
        None if ["qdisc", "class", "filter"].contains(&rest[0].as_str()) => Verb::Shown,
        None => return Ok(None),
    };
    if let Some(variable) = rest.iter().find(|word| word.contains(['$', '`'])) {
        return Err(text.wrong(line, &format!("{variable} is a variable of a shell; write its value")));
    }
    let words = rest[if verb == Verb::Shown { 1 } else { 2 }.min(rest.len())..].to_vec();
    Ok(Some(Command { line, object, verb, words }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Commands {
        commands(&Text { name: "f", text }).unwrap()
    }

    #[test]
    fn lines_of_a_script_become_commands() {
        let read = of("#!/bin/sh\nset -e\ntc qdisc del dev eth0 root 2>/dev/null || true\n\
                       sudo -n /sbin/tc qdisc add dev eth0 root \\\n  cake bandwidth 20Mbit # up\nsystemctl restart x\n\
                       ip netns exec a tc -s qdisc replace dev 'eth1' root pie; tc qdisc show\nqdisc add dev eth2 root red\n");
        let told: Vec<_> = read.list.iter().map(|of| (of.line, of.verb, of.words.join(" "))).collect();
        assert_eq!(
            told,
            [
                (3, Verb::Delete, "dev eth0 root".to_owned()),
                (4, Verb::Add, "dev eth0 root cake bandwidth 20Mbit".to_owned()),
                (7, Verb::Replace, "dev eth1 root pie".to_owned()),
                (8, Verb::Add, "dev eth2 root red".to_owned()),
            ]
        );
        assert_eq!(read.others, [(6, "systemctl".to_owned())]);
    }

    #[test]
    fn what_is_shown_is_read_without_its_counters() {
        let read = of(
            "qdisc cake 8001: dev eth0 root refcnt 2\n Sent 1 bytes\n   thresh 6250Kbit\nroot@ap:~# tc -s class show dev x\n\
                       class htb 1:1 root rate 1Mbit\n lended: 1\n",
        );
        assert_eq!((read.list.len(), read.list[1].line, read.others.len()), (2, 5, 0));
        assert!(read.list.iter().all(|of| of.verb == Verb::Shown));
    }

    #[test]
    fn hostile_lengths_are_bounded() {
        let many = commands(&Text { name: "f", text: &"x y\n".repeat(500) }).unwrap();
        assert_eq!((many.others.len(), many.others[100].1.as_str()), (101, "this line, and all others like it"));
        let long = commands(&Text { name: "f", text: &"\n".repeat(1_000_001) }).unwrap_err();
        assert!(long.what.contains("more than 1000000 lines"), "{long}");
        let commands_of_tc = "tc qdisc add dev e root pie\n".repeat(20_001);
        let full = commands(&Text { name: "f", text: &commands_of_tc }).unwrap_err();
        assert!(full.line == 20_001 && full.what.contains("20000"), "{full}");
    }

    #[test]
    fn variables_and_unknown_calls_are_refused_with_their_line() {
        for (text, line, what) in [
            ("\ntc qdisc add dev $DEV root cake", 2, "$DEV is a variable"),
            ("tc -b rules", 1, "write the lines"),
            ("tc qdisc frobnicate dev x", 1, "frobnicate"),
            (&format!("\n\ntc {}", "x ".repeat(40_000)), 3, "64 KiB"),
        ] {
            let mistake = commands(&Text { name: "f", text }).unwrap_err();
            assert!(mistake.line == line && mistake.what.contains(what), "{mistake}");
        }
    }
}
