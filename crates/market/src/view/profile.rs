//! Where volume was traded.

use tribune_core::view::{Amount, Content, Figure, Headline, Panel, ProfileBin, ProfileChart, Width};

use super::parts::{noted, panel};
use super::record::{Told, finite, places};
use super::words::{amount, capitalised, standing};

/// What the headline and the chart's note have.
pub(crate) const SHOWN: &[&str] = &[
    "poc",
    "poc_low",
    "poc_high",
    "vah",
    "val",
    "value_area_share",
    "vwap",
    "total_volume_base",
    "row_width",
    "rows",
    "window_secs",
    "hours",
    "candles_of",
    "candles",
];

/// `None` if the answer has no profile in it.
pub(crate) fn chart(told: &Told, last_price: Option<f64>, width: Width) -> Option<Panel> {
    let table = told.table("volume_by_row")?;
    let row_width = told.number("row_width")?;
    let rows = || table.select(["price_from", "volume_base"]);
    let bin = |[from, volume]: [&str; 2]| {
        let from = finite(from)?;
        Some(ProfileBin {
            from,
            to: from + row_width,
            volume: finite(volume)?,
        })
    };
    let edges = rows()?.map(|[from, _]| from).chain(told.text("row_width"));
    let chart = ProfileChart {
        price_places: places(edges),
        bins: rows()?.filter_map(bin).collect(),
        poc: told.number("poc"),
        value_area: told.number("val").zip(told.number("vah")),
        last_price,
        price_unit: told.quote.clone(),
        volume_unit: told.base.clone(),
    };
    let hours = told.text("hours").unwrap_or("?");
    let note = format!(
        "Volume in {} by price over {hours} h, from {} candles of {}, in rows of {} {}. {}.",
        told.base,
        told.text("candles").unwrap_or("?"),
        told.text("candles_of").unwrap_or("?"),
        told.text("row_width").unwrap_or("?"),
        told.quote,
        standing(told).unwrap_or_default(),
    );
    let title = format!("Volume profile, {hours} h");
    let content = if chart.bins.is_empty() {
        Content::Missing("nothing was traded in this time".to_owned())
    } else {
        Content::Profile(chart)
    };
    Some(noted(panel("profile", title, width, content), note))
}

pub(crate) fn headline(told: &Told) -> Option<Headline> {
    let poc = told.text("poc").filter(|_| told.fields.contains_key("vah"))?;
    let price = |label: &str, name: &str| match told.text(name) {
        Some(price) => Figure::new(label, amount(name, price, told)),
        None => Figure::unknown(label, "it could not be computed"),
    };
    let share = told
        .number("value_area_share")
        .map(|share| format!("{}", (share * 1_000.0).round() / 10.0));
    let mut figures = vec![price("Value area high", "vah"), price("Value area low", "val")];
    figures.extend(share.map(|share| Figure::new("In the value area", Amount::new(share, "% of volume"))));
    figures.push(price("VWAP", "vwap"));
    if let Some(volume) = told.text("total_volume_base") {
        figures.push(Figure::new("Volume", Amount::new(volume, &told.base)));
    }
    Some(Headline {
        label: "Point of control".to_owned(),
        value: Amount::new(poc, &told.quote),
        change: None,
        as_of: told.as_of,
        age_ms: told.age_ms(),
        figures,
    })
}

/// Price ranges in which little was traded.
pub(crate) fn vacuums_title(told: &Told) -> String {
    capitalised(&format!("liquidity vacuums, {} h", told.text("hours").unwrap_or("?")))
}
