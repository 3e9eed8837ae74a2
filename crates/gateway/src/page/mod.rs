//! What the page of a gateway has of its own, beside what `penstock_appliance::page` has for all appliances.

pub mod metrics;

use penstock_appliance::page::Content;
use penstock_appliance::page::history::{Column, Over};
use serde_json::Value;

/// The page of a gateway.
pub const CONTENT: Content = Content {
    name: "gateway",
    html: include_str!("assets/live.html"),
    script: include_str!("assets/live.js"),
    columns: &COLUMNS,
    row,
    magic: b"penstock-day-1\0\0",
    metrics: metrics::encode,
};

/// What a row has after its time.
const COLUMNS: [Column; 16] = [
    Column("down_bps", Over::Mean),
    Column("up_bps", Over::Mean),
    Column("down_set_bps", Over::Mean),
    Column("up_set_bps", Over::Mean),
    Column("down_delay_ms", Over::Largest),
    Column("up_delay_ms", Over::Largest),
    Column("down_drops", Over::Sum),
    Column("up_drops", Over::Sum),
    Column("wan_ms", Over::Largest),
    Column("wan_least_ms", Over::Mean),
    Column("lan_least_ms", Over::Mean),
    Column("queue_ms", Over::Largest),
    Column("down_window", Over::Mean),
    Column("up_window", Over::Mean),
    Column("flows", Over::Mean),
    Column("past", Over::Sum),
];

/// Returns the values of [`COLUMNS`] for the time between two answers.
fn row(old: &Value, new: &Value) -> Vec<f32> {
    let read = |status: &Value, path: &str| status.pointer(path).and_then(Value::as_f64);
    let now = |path: &str| read(new, path).map_or(f32::NAN, |value| value as f32);
    let grown = |path: &str| Some((read(new, path)? - read(old, path)?).max(0.0));
    let seconds = grown("/elapsed_s").unwrap_or(1.0).max(1e-3);
    let ratio = |part: Option<f64>, whole: Option<f64>, scale: f64| match (part, whole) {
        (Some(part), Some(whole)) if whole > 0.0 => (scale * part / whole) as f32,
        _ => f32::NAN,
    };
    let sum = |paths: &[String]| paths.iter().filter_map(|path| grown(path)).sum::<f64>();
    let ways = ["forward", "reverse"];
    let passed = |at: usize| {
        let bytes = [format!("/{}/delivered/bytes", ways[at]), format!("/observed/{at}/bytes")];
        (8.0 * sum(&bytes) / seconds) as f32
    };
    let delay = |at: usize| ratio(grown(&format!("/delays/{at}/sum_s")), grown(&format!("/delays/{at}/count")), 1e3);
    let drops =
        |at: usize| sum(&["early", "overflow", "dequeue"].map(|cause| format!("/{}/dropped/{cause}", ways[at]))) as f32;
    let window =
        |at: usize| ratio(grown(&format!("/windows/{at}/written")), grown(&format!("/windows/{at}/advertised")), 1.0);
    let past = sum(&["/past/opened/packets", "/past/overflow_at_least"].map(str::to_owned)) as f32;
    [
        [0, 1].map(passed),
        ways.map(|way| now(&format!("/{way}/rate_bps"))),
        [0, 1].map(delay),
        [0, 1].map(drops),
        ["/link/wan_ms", "/link/wan_least_ms"].map(now),
        ["/link/lan_least_ms", "/link/queue_ms"].map(now),
        [0, 1].map(window),
        [now("/flows/entries"), past],
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_row_is_what_has_grown_between_two_answers() {
        let status = |elapsed: f64, bytes: u64, sum: f64, count: u64, early: u64| {
            let way = json!({"delivered": {"bytes": bytes}, "dropped": {"early": early, "overflow": 1, "dequeue": 0}, "rate_bps": 9_000_000});
            json!({"elapsed_s": elapsed, "forward": way, "reverse": way, "delays": [{"sum_s": sum, "count": count}, {"sum_s": 0, "count": 0}],
                "windows": [{"written": 10 * count, "advertised": 20 * count}], "link": {"wan_ms": 41.5}, "past": {"overflow_at_least": early}})
        };
        let row = row(&status(1.0, 1000, 0.5, 10, 2), &status(3.0, 251_000, 0.6, 30, 5));
        let value = |name: &str| row[COLUMNS.iter().position(|column| column.0 == name).unwrap()];
        assert_eq!((value("down_bps"), value("down_set_bps"), value("down_drops")), (1e6, 9e6, 3.0));
        assert!((value("down_delay_ms") - 5.0).abs() < 1e-4 && value("up_delay_ms").is_nan());
        assert_eq!((value("down_window"), value("wan_ms"), value("past")), (0.5, 41.5, 3.0));
    }
}
