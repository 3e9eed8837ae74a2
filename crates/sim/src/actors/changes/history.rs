//! The values of links over time, for a table and for figures.
//!
//! A history keeps every row up to a limit. Then it deletes every second row and from there on keeps only every second
//! change; at the next time every fourth, and so on. So a history never takes more memory than the limit, and its rows
//! stay evenly spaced.

use super::{Before, Change, Values, becomes, directions};
use crate::numbers::LinkDir;
use crate::table::{Column, Table};
use penstock_core::units::{Instant, Rate, Span};
use std::collections::BTreeSet;

/// Largest number of rows of one direction of a link, and of all directions together.
const MOST: usize = 10_000;
const MOST_OF_ALL: usize = 400_000;

#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    at: Instant,
    rate: Rate,
    delay: Span,
    loss: f64,
}

/// The history of one direction of a link.
#[derive(Debug)]
pub struct History {
    link: LinkDir,
    now: Row,
    rows: Vec<Row>,
    /// One row is kept for this number of changes.
    stride: u64,
    changes: u64,
    /// Largest number of rows; zero keeps none.
    most: usize,
}

/// Creates a history for each direction of a link whose rate, delay or loss changes, in the order of links.
pub fn of(changes: &[Change], links: &[Before], keeps_rows: bool) -> Vec<History> {
    let changes = changes.iter().filter(|change| becomes(change));
    let changing: BTreeSet<LinkDir> = changes.flat_map(directions).collect();
    let most = if keeps_rows { (MOST_OF_ALL / changing.len().max(1)).clamp(16, MOST) } else { 0 };
    let history = |link: LinkDir| {
        let Before { rates, delays, losses, .. } = links[link.duplex()];
        let now = Row { at: Instant::ZERO, rate: link.of(rates), delay: link.of(delays), loss: link.of(losses) };
        History::new(link, now, most)
    };
    changing.into_iter().map(history).collect()
}

impl History {
    fn new(link: LinkDir, now: Row, most: usize) -> Self {
        let rows = if most > 0 { vec![now] } else { Vec::new() };
        Self { link, now, rows, stride: 1, changes: 0, most }
    }

    /// Returns the direction of a link whose history this is.
    pub fn link(&self) -> LinkDir {
        self.link
    }

    /// Records the values of the link from `at` on.
    pub fn became(&mut self, values: Values, at: Instant) {
        let Row { rate, delay, loss, .. } = self.now;
        self.now = Row {
            at,
            rate: values.rate.unwrap_or(rate),
            delay: values.delay.unwrap_or(delay),
            loss: values.loss.unwrap_or(loss),
        };
        match self.rows.last_mut() {
            None => return,
            Some(last) if last.at == at => *last = self.now,
            Some(_) => {
                self.changes += 1;
                if self.changes.is_multiple_of(self.stride) {
                    self.rows.push(self.now);
                }
            }
        }
        if self.rows.len() > self.most {
            let mut index = 0;
            self.rows.retain(|_| {
                index += 1;
                index % 2 == 1
            });
            self.stride *= 2;
        }
    }
}

/// Returns the rows of all histories, one direction after another; `None` if there are no rows.
pub fn table(histories: &[History]) -> Option<Table> {
    let rows = || histories.iter().flat_map(|history| history.rows.iter().map(|row| (history.link, row)));
    rows().next()?;
    let columns = vec![
        ("t_s", Column::F64(rows().map(|(_, row)| row.at.as_secs_f64()).collect())),
        ("link", Column::U32(rows().map(|(link, _)| link.duplex() as u32).collect())),
        ("reverse", Column::U32(rows().map(|(link, _)| u32::from(!link.is_forward())).collect())),
        ("rate_bps", Column::U64(rows().map(|(_, row)| row.rate.as_bps()).collect())),
        ("delay_s", Column::F64(rows().map(|(_, row)| row.delay.as_secs_f64()).collect())),
        ("loss", Column::F64(rows().map(|(_, row)| row.loss).collect())),
    ];
    Some(Table { name: "link_changes", columns })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn history(most: usize) -> History {
        let now = Row { at: Instant::ZERO, rate: Rate::from_bps(1000), delay: Span::from_millis(5), loss: 0.0 };
        History::new(LinkDir::at(3), now, most)
    }

    /// Sets the rate to n bit/s at second n, for all n from 1 to `last`, and returns what was kept.
    fn ramp(most: usize, last: u64) -> Vec<u64> {
        let mut history = history(most);
        for s in 1..=last {
            let values = Values { rate: Some(Rate::from_bps(s)), ..Values::default() };
            history.became(values, Instant::ZERO + Span::from_secs(s));
        }
        history.rows.iter().map(|row| row.rate.as_bps()).collect()
    }

    #[test]
    fn what_is_not_said_stays() {
        let mut history = history(10);
        let second = Instant::ZERO + Span::from_secs(1);
        history.became(Values { delay: Some(Span::from_millis(7)), ..Values::default() }, second);
        history.became(Values { loss: Some(0.5), ..Values::default() }, second);
        let last = Row { at: second, rate: Rate::from_bps(1000), delay: Span::from_millis(7), loss: 0.5 };
        assert_eq!(history.rows[1..], [last], "one row for one time");
        let table = table(&[history]).unwrap();
        assert_eq!(table.columns[1], ("link", Column::U32(vec![1, 1])));
        assert_eq!(table.columns[2], ("reverse", Column::U32(vec![1, 1])));
    }

    /// There is room for 4 rows: 1000, 1, 2, 3 fit. At 4 every second row goes: 1000, 2, 4 remain; then 6 fits, and at
    /// 8 again: 1000, 4, 8.
    #[test]
    fn it_is_thinned_when_it_is_full() {
        assert_eq!(ramp(4, 3), [1000, 1, 2, 3]);
        assert_eq!(ramp(4, 4), [1000, 2, 4]);
        assert_eq!(ramp(4, 7), [1000, 2, 4, 6]);
        assert_eq!(ramp(4, 8), [1000, 4, 8]);
        assert_eq!(ramp(4, 100), [1000, 32, 64, 96]);
        assert!(ramp(0, 100).is_empty());
    }
}
