//! What the page of a gateway has of its own, beside what `penstock_appliance::page` has for all appliances.

pub mod metrics;
mod row;

use penstock_appliance::page::Content;

/// The page of a gateway.
pub const CONTENT: Content = Content {
    name: "gateway",
    html: include_str!("assets/live.html"),
    script: include_str!("assets/live.js"),
    columns: &row::COLUMNS,
    row: row::row,
    magic: b"penstock-day-1\0\0",
    metrics: metrics::encode,
};
