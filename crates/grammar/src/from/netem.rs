//! netem: what a wire does to packets, as the keys of a simulated link.

use super::kinds::Args;
use super::units::{count, rate, share, size, time};
use super::{Key, Way, quoted};
use crate::Diagnosis;
use penstock_core::link_layer::Framing;
use penstock_core::units::Span;

/// What the words say together.
#[derive(Default)]
struct Wire {
    delay: Option<(Span, String)>,
    jitter: Option<Span>,
    correlation: f64,
    distribution: Option<String>,
    reorder: Option<(f64, String)>,
    keys: Vec<Key>,
}

/// Reads the words of netem into a direction.
pub(super) fn read(args: &mut Args<'_>, way: &mut Way) -> Result<(), Diagnosis> {
    let mut wire = Wire::default();
    let is_share = |word: &str| word.ends_with('%') || word.parse::<f64>().is_ok();
    way.discipline = vec![Key { key: "name", value: quoted("droptail"), from: "netem has one queue".into() }];
    while let Some(word) = args.next() {
        match word {
            "limit" => {
                let packets = args.value(word, count)?.max(1);
                way.limit = Some(Key { key: "limit", value: quoted(&format!("{packets}p")), from: args.from(word) });
            }
            "delay" | "latency" => delay(args, &mut wire, word)?,
            "distribution" => wire.distribution = args.next().map(str::to_owned),
            "loss" | "drop" => loss(args, &mut wire)?,
            "duplicate" => {
                let part = args.value(word, share)?;
                correlated(args, "duplicate", is_share);
                wire.keys.push(Key { key: "duplicate", value: part.to_string(), from: args.from(word) });
            }
            "reorder" => {
                let part = args.value(word, share)?;
                correlated(args, "reorder", is_share);
                wire.reorder = Some((part, args.from(word)));
            }
            "gap" => {
                if args.value(word, count)? > 1 {
                    args.note(word, "packets are reordered at random here, not every so many", "leave it out");
                }
            }
            "corrupt" => {
                let _ = args.value(word, share)?;
                correlated(args, "corrupt", is_share);
                args.note(
                    word,
                    "no bits are changed here; a host drops a packet with a wrong sum",
                    "write it as `loss`",
                );
            }
            "rate" => rate_of(args, way)?,
            "ecn" => args.note(word, "what is lost is not marked here", "leave it out"),
            "seed" => drop(args.next()),
            "slot" => {
                while args.next_if(|word| !WORDS.contains(&word)).is_some() {}
                args.note(word, "packets do not leave in slots here", "write `aggregate` for the link of a scenario");
            }
            _ => return Err(args.unknown(word, &WORDS)),
        }
    }
    finish(args, wire, way);
    way.wire_line = args.line;
    Ok(())
}

const WORDS: [&str; 11] =
    ["limit", "delay", "distribution", "loss", "duplicate", "reorder", "gap", "corrupt", "rate", "ecn", "seed"];

/// Notes a correlation that follows, and reads over it.
fn correlated(args: &mut Args<'_>, word: &str, is_share: impl Fn(&str) -> bool) {
    if let Some(value) = args.next_if(is_share)
        && share(value) != Ok(0.0)
    {
        args.note(&format!("{word} {value}"), "packets are drawn independently here", "leave the correlation out");
    }
}

fn delay(args: &mut Args<'_>, wire: &mut Wire, word: &str) -> Result<(), Diagnosis> {
    wire.delay = Some((args.value(word, time)?, args.from(word)));
    if let Some(text) = args.next_if(|word| time(word).is_ok()) {
        wire.jitter = time(text).ok().filter(|by| *by > Span::ZERO);
        if let Some(text) = args.next_if(|word| word.ends_with('%') || word.parse::<f64>().is_ok()) {
            wire.correlation = share(text).map_err(|what| args.wrong(&what))?;
        }
    }
    Ok(())
}

/// Reads `loss`: a part, or a model with states.
fn loss(args: &mut Args<'_>, wire: &mut Wire) -> Result<(), Diagnosis> {
    let is_share = |word: &str| word.ends_with('%') || word.parse::<f64>().is_ok();
    let gilbert = |args: &Args<'_>, model: &str, [to_bad, to_good, bad, good]: [f64; 4]| Key {
        key: "gilbert",
        value: format!("{{ to_bad = {to_bad}, to_good = {to_good}, bad = {bad}, good = {good} }}"),
        from: args.from(model),
    };
    // What tc shows has names between the numbers.
    let shares = |args: &mut Args<'_>| -> Result<Vec<f64>, Diagnosis> {
        let mut all = Vec::new();
        loop {
            args.next_if(|word| ["p", "r", "1-h", "1-k", "p13", "p31", "p32", "p23", "p14"].contains(&word));
            let Some(text) = args.next_if(is_share) else { return Ok(all) };
            all.push(share(text).map_err(|what| args.wrong(&what))?);
        }
    };
    let complement = |part: f64| ((1.0 - part) * 1e12).round() / 1e12;
    if args.next_if(|word| word == "gemodel").is_some() {
        let of = shares(args)?;
        let Some(&p) = of.first() else { return Err(args.wrong("loss gemodel has no number")) };
        let at = |at: usize, default: f64| of.get(at).copied().unwrap_or(default);
        let key = gilbert(args, "loss gemodel", [p, at(1, complement(p)), at(2, 1.0), at(3, 0.0)]);
        wire.keys.push(key);
    } else if args.next_if(|word| word == "state").is_some() {
        let of = shares(args)?;
        let Some(&p13) = of.first() else { return Err(args.wrong("loss state has no number")) };
        let at = |at: usize, default: f64| of.get(at).copied().unwrap_or(default);
        if at(2, 0.0) > 0.0 || at(4, 0.0) > 0.0 {
            args.note("loss state", "the wire has two states here, and no further ones", "its p13 and p31 are kept");
        }
        let key = gilbert(args, "loss state", [p13, at(1, complement(p13)), 1.0, 0.0]);
        wire.keys.push(key);
    } else {
        args.next_if(|word| word == "random");
        let part = args.value("loss", share)?;
        correlated(args, "loss", is_share);
        wire.keys.push(Key { key: "loss", value: part.to_string(), from: args.from("loss") });
    }
    Ok(())
}

/// Reads `rate RATE [OVERHEAD [CELL [OVERHEAD OF A CELL]]]`.
fn rate_of(args: &mut Args<'_>, way: &mut Way) -> Result<(), Diagnosis> {
    way.rate = Some((args.value("rate", rate)?, args.from("rate")));
    args.next_if(|word| word == "packetoverhead");
    let number = |word: &str| word.parse::<i32>().is_ok();
    let Some(overhead) = args.next_if(number) else { return Ok(()) };
    way.layer.overhead = overhead.parse().unwrap_or_default();
    way.layer_from = args.from("rate");
    args.next_if(|word| word == "cellsize");
    let cell = args.next_if(number).and_then(|word| size(word).ok()).map_or(0, |size| size.get());
    args.next_if(|word| word == "celloverhead");
    let more = args.next_if(number).unwrap_or("0");
    match (cell, more) {
        (0, _) => {}
        (48, "5") => way.layer.framing = Framing::Atm,
        _ => args.note("rate", "cells are those of ATM here, 48 bytes and 5", "their overhead is left out"),
    }
    way.layer.mistake().map_or(Ok(()), |(key, what)| Err(args.wrong(&format!("rate: {key} {what}"))))
}

/// Makes keys of delay, jitter and reordering.
fn finish(args: &mut Args<'_>, mut wire: Wire, way: &mut Way) {
    let delay = wire.delay.clone();
    let from = delay.as_ref().map_or_else(String::new, |(_, from)| from.clone());
    let mut before = delay.map(|(delay, _)| delay).unwrap_or_default();
    if let Some((part, from)) = wire.reorder.take() {
        let ok = (Span::from_micros(1)..=Span::from_secs(10)).contains(&before) && wire.jitter.is_none();
        if ok && part > 0.0 {
            // Those parts go at once, and the others have the delay: here all go at once, and the others are late.
            let late = ((1.0 - part) * 1e12).round() / 1e12;
            let value = format!("{{ share = {late}, by = {} }}", quoted(&before.to_string()));
            wire.keys.push(Key { key: "reorder", value, from });
            before = Span::ZERO;
        } else if part > 0.0 {
            args.note(
                "reorder",
                "it needs a delay up to 10s without jitter here",
                "write `reorder` for the link of a scenario",
            );
        }
    }
    let told = if before == Span::ZERO { "0s".to_owned() } else { before.to_string() };
    way.wire.push(Key { key: "delay", value: quoted(&told), from: from.clone() });
    way.wire.append(&mut wire.keys);
    let Some(by) = wire.jitter else { return };
    let name = match wire.distribution.as_deref() {
        None | Some("uniform") => "uniform",
        Some(known @ ("normal" | "pareto")) => known,
        Some(other) => {
            args.note(
                &format!("distribution {other}"),
                "delays are uniform, normal or pareto here",
                "normal is written",
            );
            "normal"
        }
    };
    if by > Span::from_secs(10) || by < Span::from_micros(1) {
        args.note("jitter", "jitter is 1us to 10s here", "it is left out");
        return;
    }
    let correlation =
        if wire.correlation > 0.0 { format!(", correlation = {}", wire.correlation) } else { String::new() };
    let value = format!("{{ by = {}{correlation}, distribution = {} }}", quoted(&by.to_string()), quoted(name));
    way.wire.push(Key { key: "jitter", value, from });
}
