//! Reading of what the gateway of a link does not know: the rates of the link.

use super::{Check, Checker};
use crate::scenario::{Estimate, LinkSpec};
use penstock_core::estimate::{Known, Law};
use penstock_core::units::{Limit, Rate};
use penstock_grammar::link::{self, Link, MAX_RATE, thousand_packets};
use penstock_grammar::source::Table;
use serde::Deserialize;

/// The keys of a link whose gateway is not told its rates.
#[derive(Debug, Deserialize, schemars::JsonSchema)]
pub(super) struct EstimateKeys {
    /// Who tells the gateway at the first end of the link the rates. With `"estimate"` nobody does: it estimates them. With
    /// `"autorate"` it does so by the law of cake-autorate, with probes to a reflector behind the link; the first rates are its base
    /// rates. `"oracle"` tells the true rates, and `"late-oracle"` does so one round trip over the link and 100 ms later.
    rate_from: Option<Law>,
    /// The rate with which the gateway begins, from the first end to the second; by default that of the link.
    first_rate: Option<Rate>,
    /// The same from the second end to the first.
    reverse_first_rate: Option<Rate>,
    /// The lowest rate that the gateway takes for right; by default a twentieth of the first.
    lowest: Option<Rate>,
    /// The highest one; by default twenty times the first.
    highest: Option<Rate>,
    /// The lowest one from the second end to the first.
    reverse_lowest: Option<Rate>,
    /// The highest one from the second end to the first.
    reverse_highest: Option<Rate>,
    /// Limit of the queue of the modem, behind the gateway.
    modem_limit: Option<Limit>,
    /// Limit of the queue of the provider, at the second end.
    provider_limit: Option<Limit>,
}

impl EstimateKeys {
    /// Returns the first key that is there, besides `rate_from`.
    fn key(&self) -> Option<&'static str> {
        let there = [
            ("first_rate", self.first_rate.is_some()),
            ("reverse_first_rate", self.reverse_first_rate.is_some()),
            ("lowest", self.lowest.is_some()),
            ("highest", self.highest.is_some()),
            ("reverse_lowest", self.reverse_lowest.is_some()),
            ("reverse_highest", self.reverse_highest.is_some()),
            ("modem_limit", self.modem_limit.is_some()),
            ("provider_limit", self.provider_limit.is_some()),
        ];
        there.into_iter().find(|(_, there)| *there).map(|(key, _)| key)
    }
}

impl Checker<'_> {
    /// Reads what the gateway of a link begins with; `None` if it is told the rates.
    pub(super) fn estimate(&self, path: &[&str], table: &Table<'_, '_>, link: &Link) -> Check<Option<Estimate>> {
        let keys: EstimateKeys = table.part()?;
        let Some(law) = keys.rate_from else {
            let without = "the gateway is told the rates of this link; write rate_from = \"estimate\"";
            return match keys.key() {
                Some(key) => Err(self.source.at(&[path, &[key]].concat(), without)),
                None => Ok(None),
            };
        };
        let given = [
            ("first_rate", keys.first_rate, keys.lowest, keys.highest),
            ("reverse_first_rate", keys.reverse_first_rate, keys.reverse_lowest, keys.reverse_highest),
        ];
        let mut known = Vec::new();
        for ((key, first, lowest, highest), rate) in given.into_iter().zip(link.rates()) {
            let around = Known::around(first.unwrap_or(rate));
            let (lowest, highest) = (lowest.unwrap_or(around.lowest), highest.unwrap_or(around.highest.min(MAX_RATE)));
            self.placed(path, link::rate(key, around.first))?;
            if !(lowest..=highest).contains(&around.first) {
                let what = format!("{key} is {}; allowed are the bounds, {lowest} to {highest}", around.first);
                return Err(self.source.at(&[path, &[key]].concat(), &what));
            }
            known.push(Known { lowest, highest, ..around });
        }
        let limits = [keys.modem_limit, keys.provider_limit].map(|limit| limit.unwrap_or_else(thousand_packets));
        Ok(Some(Estimate { law, known: [known[0], known[1]], limits }))
    }

    /// Refuses what cannot be beside a gateway that estimates rates.
    pub(super) fn estimates_stand_alone(&self, links: &[LinkSpec]) -> Check<()> {
        if !links.iter().any(|link| link.estimate.is_some()) {
            return Ok(());
        }
        for (table, there) in
            [("handovers", !self.keys.handovers.is_empty()), ("cooperation", self.keys.cooperation.is_some())]
        {
            if there {
                let message = format!("no [{table}] with a link whose rates are estimated (rate_from = \"estimate\")");
                return Err(self.source.at(&[table], &message));
            }
        }
        Ok(())
    }
}
