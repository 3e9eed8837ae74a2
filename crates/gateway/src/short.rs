//! Short paths with PINK. It writes windows in the units of the receiver, which are 1024 bytes with Linux: where the
//! share of a flow is a few segments, a part of the link stays unused (`docs/results/gateway.md` has what was measured).

use penstock_core::registry::AnyConfig;
use penstock_core::units::{Bytes, Span};
use penstock_shaper::bottleneck::Config;

/// With this product of rate and round trip two flows of Linux use 0.83 of the link: 10 Mbit/s and 20 ms.
const PRODUCT: Bytes = Bytes::new(25_000);
const CURE: &str = "take name = \"fq-codel\" or \"cake\" in [discipline] for short paths";
const WAYS: [&str; 2] = ["download", "upload"];

/// The round trip below which a sixth of the link and more stays unused; `None` if the discipline writes no windows.
fn least(way: &Config) -> Option<Span> {
    matches!(way.aqm, AnyConfig::Pink(_)).then(|| way.rate.time_for(PRODUCT))
}

/// What a file should be told, if round trips are at least `known`.
pub fn note(ways: &[Config; 2], known: Option<Span>) -> Option<String> {
    let short = |(way, name): (&Config, &str)| {
        let least = least(way).filter(|least| known.is_none_or(|known| known < *least))?;
        Some(format!("{:.0} ms ({name})", least.as_millis_f64()))
    };
    let short: Vec<String> = ways.iter().zip(WAYS).filter_map(short).collect();
    let some = "leaves a sixth of the link and more unused, because windows of Linux have units of 1024 bytes";
    (!short.is_empty()).then(|| format!("with round trips of less than {} PINK {some}; {CURE}", short.join(" or ")))
}

/// What a status tells while round trips are as short as this.
pub fn remark(ways: &[Config; 2], trip: Option<Span>) -> Option<String> {
    let short = |(way, _): &(&Config, &str)| least(way).zip(trip).is_some_and(|(least, trip)| trip < least);
    let names: Vec<&str> = ways.iter().zip(WAYS).filter(short).map(|(_, name)| name).collect();
    let trip = trip.filter(|_| !names.is_empty())?.as_millis_f64();
    let unused = "units of windows leave a sixth and more unused";
    Some(format!("round trips are {trip:.1} ms: of the {} {unused} with PINK; {CURE}", names.join(" and the ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_core::link_layer::LinkLayer;
    use penstock_core::units::{Limit, Rate};

    fn ways(aqm: &AnyConfig) -> [Config; 2] {
        [100, 10].map(|mbps| Config {
            aqm: aqm.clone(),
            rate: Rate::from_bps(mbps * 1_000_000),
            layer: LinkLayer::default(),
            delay: Span::ZERO,
            limit: Limit::Packets(1000),
        })
    }

    #[test]
    fn a_path_is_short_by_its_rate_and_only_for_pink() {
        let ms = |ms| Some(Span::from_millis(ms));
        let pink = ways(&AnyConfig::Pink(Default::default()));
        let told = note(&pink, None).unwrap();
        assert!(told.contains("less than 2 ms (download) or 20 ms (upload)") && told.contains("fq-codel"), "{told}");
        assert!(note(&pink, ms(10)).unwrap().contains("less than 20 ms (upload)"));
        assert_eq!((note(&pink, ms(20)), remark(&pink, ms(20)), remark(&pink, None)), (None, None, None));
        assert!(remark(&pink, ms(1)).unwrap().contains("1.0 ms: of the download and the upload units"));
        assert!(remark(&pink, ms(19)).unwrap().contains("of the upload units"));
        let others = ways(&AnyConfig::FqCodel(Default::default()));
        assert_eq!((note(&others, None), remark(&others, ms(1))), (None, None));
    }
}
