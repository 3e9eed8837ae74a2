//! Writes a file anew in which each chosen mutation stands behind a switch, beside what stood there.
//!
//! `a + b` becomes `(if crate::__mutant(7) { (a) - (b) } else { a + b })`. Comments mark where a mutation begins and ends, so
//! that an error of the compiler leads back to the mutation that made it.

use crate::find::{Form, Site};
use std::ops::Range;

/// A place of a file and which of its choices are in, each with the number of its switch.
pub struct Chosen<'a> {
    /// The place.
    pub site: &'a Site,
    /// Index of the choice and number of the switch.
    pub switches: Vec<(usize, u32)>,
}

/// The file with its switches. The places are in the order of [`crate::find::sites`].
pub fn rewritten(text: &str, chosen: &[Chosen<'_>]) -> String {
    let mut order: Vec<&Chosen<'_>> = chosen.iter().collect();
    // An empty range, as that of a function's body, comes before whatever begins there; otherwise the longer is around.
    order.sort_by_key(|one| (one.site.range.start, !one.site.range.is_empty(), std::cmp::Reverse(one.site.range.end)));
    Writer { text, order }.part(0..text.len(), 0)
}

struct Writer<'a> {
    text: &'a str,
    order: Vec<&'a Chosen<'a>>,
}

impl Writer<'_> {
    /// This part of the file; places before the given index are around it.
    fn part(&self, range: Range<usize>, from: usize) -> String {
        let (mut out, mut at, mut index) = (String::new(), range.start, from);
        while index < self.order.len() {
            let place = &self.order[index].site.range;
            if place.start >= at && place.end <= range.end {
                out += &self.text[at..place.start];
                out += &self.place(index);
                at = place.end;
            }
            index += 1;
            if place.start > range.end {
                break;
            }
        }
        out + &self.text[at..range.end]
    }

    fn place(&self, index: usize) -> String {
        let Chosen { site, switches } = self.order[index];
        let inner = |range: &Range<usize>| self.part(range.clone(), index + 1);
        let mut out = String::new();
        match &site.form {
            Form::Body => {
                for (choice, number) in switches {
                    let value = &site.choices[*choice];
                    out +=
                        &format!("if crate::__mutant({number}) {{ {} }}", marked(*number, &format!("return {value};")));
                }
                return out;
            }
            Form::Arm => {
                let number = switches[0].1;
                return format!(" if {}", marked(number, &format!("!crate::__mutant({number})")));
            }
            Form::Binary { left, right, .. } => {
                for (choice, number) in switches {
                    let with = format!("({}) {} ({})", inner(left), site.choices[*choice], inner(right));
                    out += &format!("if crate::__mutant({number}) {{ {} }} else ", marked(*number, &with));
                }
                let between = &self.text[left.end..right.start];
                let before = &self.text[site.range.start..left.start];
                let after = &self.text[right.end..site.range.end];
                out += &format!("{{ ({before}{}{between}{}{after}) }}", inner(left), inner(right));
            }
            Form::Unary(operand) => {
                let number = switches[0].1;
                let without = marked(number, &format!("({})", inner(operand)));
                out += &format!("if crate::__mutant({number}) {{ {without} }} else ");
                out += &format!("{{ {}{} }}", &self.text[site.range.start..operand.start], inner(operand));
            }
            Form::Condition => {
                for (choice, number) in switches {
                    let value = marked(*number, &site.choices[*choice]);
                    out += &format!("if crate::__mutant({number}) {{ {value} }} else ");
                }
                out += &format!("{{ ({}) }}", inner(&site.range));
            }
        }
        let numbers: Vec<String> = switches.iter().map(|(_, number)| number.to_string()).collect();
        format!("(/*[{}*/{out}/*]*/)", numbers.join(","))
    }
}

fn marked(number: u32, text: &str) -> String {
    format!("/*[{number}*/{text}/*]*/")
}

/// The switches whose text holds these bytes of a rewritten file: of the innermost mark around them.
pub fn blamed(rewritten: &str, bytes: &Range<usize>) -> Vec<u32> {
    let mut open: Vec<(usize, &str)> = Vec::new();
    let mut rest = 0;
    while let Some(at) = rewritten[rest..].find("/*[").into_iter().chain(rewritten[rest..].find("/*]*/")).min() {
        let at = rest + at;
        let end = at + rewritten[at..].find("*/").expect("a mark has an end") + 2;
        rest = end;
        if &rewritten[at..end] != "/*]*/" {
            open.push((at, &rewritten[at + 3..end - 2]));
        } else if let Some((begin, numbers)) = open.pop()
            && begin <= bytes.start
            && bytes.end <= end
        {
            return numbers.split(',').filter_map(|number| number.parse().ok()).collect();
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find::sites;

    fn all(text: &str) -> String {
        let sites = sites(text).unwrap();
        let mut number = 0;
        let each = |site| {
            let switches = (0..Site::clone(site).choices.len()).map(|choice| {
                number += 1;
                (choice, number)
            });
            Chosen { site, switches: switches.collect() }
        };
        let chosen: Vec<Chosen<'_>> = sites.iter().map(each).collect();
        rewritten(text, &chosen)
    }

    fn bare(text: &str) -> String {
        let mut out = all(text);
        while let (Some(begin), true) = (out.find("/*"), out.contains("*/")) {
            let end = out.find("*/").unwrap();
            out.replace_range(begin..end + 2, "");
        }
        out
    }

    #[test]
    fn places_within_places_are_in_both_branches() {
        let text = "fn f() -> impl Sized { !(a || b) }";
        let or = "(if crate::__mutant(2) { (a) && (b) } else { (a || b) })";
        let wanted = format!("fn f() -> impl Sized {{ (if crate::__mutant(1) {{ (({or})) }} else {{ !({or}) }}) }}");
        assert_eq!(bare(text), wanted);
    }

    #[test]
    fn what_is_rewritten_can_be_parsed() {
        let text = "fn f(a: u32) -> bool { if a > 3 && a != 7 { return -1 < a as i32 - 2 } match a { 1 | 2 => g(), \
            3 if a % 2 == 1 => true, _ => { let mut b = a; b += 1; while b < 9 { b *= 2 } !(b == a) } } }";
        syn::parse_file(&all(text)).unwrap();
    }

    #[test]
    fn the_innermost_mark_is_blamed() {
        let text = "x /*[1,2*/ if /*[1*/ abc /*]*/ else /*[2*/ def /*]*/ ghi /*]*/ y";
        let at = |word: &str| text.find(word).map(|at| at..at + word.len()).unwrap();
        assert_eq!(blamed(text, &at("abc")), [1]);
        assert_eq!(blamed(text, &at("def")), [2]);
        assert_eq!(blamed(text, &at("ghi")), [1, 2]);
        assert!(blamed(text, &at("y")).is_empty());
    }
}
