//! A status as Prometheus reads it (OpenMetrics), by tables of counters and gauges with the places of their values.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use serde_json::Value;
use std::fmt;

/// The type of the answer.
pub const KIND: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A value with its labels.
pub type Sample<'a> = (Vec<(&'static str, &'a str)>, f64);

/// Writes the metrics of an appliance; its answer to `status` is in [`Metrics::status`].
pub type Tables = fn(&mut Metrics<'_, '_>) -> fmt::Result;

/// Returns the text for a status; names of metrics begin with `prefix`.
pub fn encode(prefix: &str, status: &Value, tables: Tables) -> String {
    let mut registry = Registry::with_prefix(prefix);
    registry.register_collector(Box::new(Told { status: status.clone(), tables }));
    let mut out = String::new();
    // Writing to a `String` cannot fail.
    let _ = text::encode(&mut out, &registry);
    out
}

#[derive(Debug)]
struct Told {
    status: Value,
    tables: Tables,
}

impl Collector for Told {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        (self.tables)(&mut Metrics { status: &self.status, encoder: &mut encoder })
    }
}

/// A status that becomes metrics.
#[derive(Debug)]
pub struct Metrics<'s, 'e> {
    /// The status.
    pub status: &'s Value,
    encoder: &'s mut DescriptorEncoder<'e>,
}

impl<'s> Metrics<'s, '_> {
    /// Returns a number of the status; milliseconds as seconds.
    pub fn number(&self, pointer: &str) -> Option<f64> {
        let value = self.status.pointer(pointer)?.as_f64()?;
        Some(if pointer.ends_with("_ms") { value / 1e3 } else { value })
    }

    /// Writes a counter (`total`) or a gauge with its samples.
    pub fn one(&mut self, (name, help): (&str, &str), total: bool, samples: &[Sample<'_>]) -> fmt::Result {
        let kind = if total { MetricType::Counter } else { MetricType::Gauge };
        let mut metric = self.encoder.encode_descriptor(name, help, None::<&Unit>, kind)?;
        for (labels, value) in samples {
            let family = &mut if labels.is_empty() { None } else { Some(metric.encode_family(labels)?) };
            match (family, total) {
                (Some(family), true) => family.encode_counter::<NoLabelSet, f64, f64>(value, None)?,
                (Some(family), false) => family.encode_gauge(value)?,
                (None, true) => metric.encode_counter::<NoLabelSet, f64, f64>(value, None)?,
                (None, false) => metric.encode_gauge(value)?,
            }
        }
        Ok(())
    }

    /// Writes counters and gauges without labels: name, help, place of the value, and whether it is a counter. A value in bits
    /// per second is written in bytes per second, as is usual there.
    pub fn whole(&mut self, table: &[(&str, &str, &str, bool)]) -> fmt::Result {
        for (name, help, pointer, total) in table {
            let scale = if pointer.ends_with("_bps") { 8.0 } else { 1.0 };
            let samples: Vec<_> = self.number(pointer).map(|value| (vec![], value / scale)).into_iter().collect();
            self.one((name, help), *total, &samples)?;
        }
        Ok(())
    }

    /// Writes a counter or a gauge with a sample for each value of a label, whose places are given.
    pub fn by(
        &mut self,
        about: (&str, &str),
        label: &'static str,
        places: &[(&'s str, String)],
        total: bool,
    ) -> fmt::Result {
        let scale = |pointer: &str| if pointer.contains("_bps") { 8.0 } else { 1.0 };
        let sample = |(value, pointer): &(&'s str, String)| {
            Some((vec![(label, *value)], self.number(pointer)? / scale(pointer)))
        };
        let samples: Vec<_> = places.iter().filter_map(sample).collect();
        self.one(about, total, &samples)
    }

    /// Writes a histogram for each value of a label: its places have `sum_s`, `count` and `up_to`, which counts values up to
    /// each of the `bounds` in milliseconds.
    pub fn histogram(
        &mut self,
        (name, help): (&str, &str),
        label: &'static str,
        places: &[(&'static str, String)],
        bounds: &[u64],
    ) -> fmt::Result {
        let mut metric = self.encoder.encode_descriptor(name, help, None::<&Unit>, MetricType::Histogram)?;
        for (value, place) in places {
            let number = |key: &str| self.status.pointer(&format!("{place}/{key}")).and_then(Value::as_f64);
            let (Some(sum), Some(count)) = (number("sum_s"), number("count")) else { continue };
            let (mut buckets, mut before) = (Vec::new(), 0);
            for (at, bound) in bounds.iter().enumerate() {
                let up_to = number(&format!("up_to/{at}")).unwrap_or(0.0) as u64;
                buckets.push((*bound as f64 / 1e3, up_to.saturating_sub(before)));
                before = up_to;
            }
            buckets.push((f64::INFINITY, (count as u64).saturating_sub(before)));
            let labels = [(label, *value)];
            let mut family = metric.encode_family(&labels)?;
            family.encode_histogram::<NoLabelSet>(sum, count as u64, &buckets, None)?;
        }
        Ok(())
    }
}
