//! All markets of one money: where volume is, what rose and what fell.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::{Value, json};
use tribune_core::{Error, Result};

use super::answer::{Answer, Keep, Provenance, Table, or_unknown};
use crate::analytics::ranking::{Order, Place, Ranking, percent};
use crate::feed::Day;
use crate::market::{Market, Origin};
use crate::model::SymbolStatus;
use crate::moment::Moment;
use crate::rest::Simulation;

/// The streams of an exchange are never silent for so long.
pub(crate) const SILENT_MS: u64 = 5_000;
/// Markets that a document lists in each order, and that its sentences name.
const LISTED: usize = 15;
const NAMED: usize = 3;
/// Moneys that an error names.
const MOST_MONEYS: usize = 15;

/// What is told of each market.
pub(crate) const COLUMNS: [&str; 6] = [
    "symbol",
    "last_price",
    "price_change_pct",
    "range_pct",
    "quote_volume",
    "volume_share_pct",
];

/// The last day of every market of one money, and when that was known.
pub(crate) struct Days {
    pub(crate) money: Arc<str>,
    pub(crate) days: Vec<(Arc<str>, Day)>,
    /// What the figures are of.
    pub(crate) window: &'static str,
    heard: Moment,
    origin: Origin,
    /// Why it is not of now.
    stale: Option<String>,
}

impl Days {
    /// What is at hand.
    pub(crate) fn at_hand(market: &Market, money: &str) -> Option<Self> {
        let table = market.known_symbols()?;
        let traded = table
            .of_quote(money)
            .filter(|symbol| symbol.status == SymbolStatus::Trading);
        let board = &market.feed.board;
        let days = board.lookup_all(traded.map(|symbol| &symbol.name));
        let newest = days
            .iter()
            .map(|(_, day)| day.received)
            .max_by_key(|moment| moment.monotonic)?;
        Some(Self {
            money: table.money(money)?.clone(),
            days,
            heard: board.heard().unwrap_or(newest),
            origin: Origin::Stream,
            window: match market.rest.simulation() {
                Some(Simulation::Replay) => "as much of the last 24 hours as was recorded",
                _ => "the last 24 hours",
            },
            stale: None,
        })
    }

    pub(crate) fn age_ms(&self, market: &Market) -> u64 {
        self.heard.age_ms(&*market.clock)
    }

    /// From the streams, or asked of the exchange where they are silent.
    async fn of(market: &Market, money: &str) -> Result<Self> {
        market.symbols().await?;
        let at_hand = Self::at_hand(market, money);
        if let Some(days) =
            at_hand.filter(|days| market.feed.board.heard().is_some() && days.age_ms(market) < SILENT_MS)
        {
            return Ok(days);
        }
        let asked = market.days_told().await;
        let Some(days) = Self::at_hand(market, money) else {
            return Err(match asked {
                Ok(_) => Error::unavailable(format!(
                    "Nothing was traded for {money} in 24 hours, as far as the exchange says."
                )),
                Err(error) => error.into(),
            });
        };
        Ok(match asked {
            Ok(heard) => Self {
                heard,
                origin: Origin::Rest,
                ..days
            },
            Err(error) => Self {
                stale: Some(format!(
                    "STALE: the streams are silent, and asking the exchange failed: {error}"
                )),
                ..days
            },
        })
    }

    fn exchange_time(&self) -> Option<i64> {
        self.days.iter().filter_map(|(_, day)| day.exchange_time).max()
    }
}

/// The whole picture.
pub async fn overview(market: &Market, money: &str) -> Result<Answer> {
    let days = Days::of(market, &known(market, money).await?).await?;
    let ranking = Ranking::of(days.days.iter().cloned());
    let answer = Answer::of_all(&days.money, &title(&days.money), provenance(market, &days))?;
    let orders = [
        ("most_traded", Order::Volume),
        ("gainers", Order::Gain),
        ("losers", Order::Loss),
        ("widest_range", Order::Range),
    ];
    let answer = told(answer, &days, &ranking)?;
    Ok(orders.into_iter().fold(answer, |answer, (name, order)| {
        answer.table(table(name, &ranking.first(order, LISTED)))
    }))
}

/// The first in one order.
pub async fn top(market: &Market, money: Option<&str>, order: Order, most: usize) -> Result<Answer> {
    let money = match money {
        Some(money) => known(market, money).await?,
        None => main_money(market).await?,
    };
    let days = Days::of(market, &money).await?;
    let ranking = Ranking::of(days.days.iter().cloned());
    let answer = Answer::of_all(&days.money, &title(&days.money), provenance(market, &days))?;
    let answer = told(answer, &days, &ranking)?.with_field("sort_by", &order.as_str())?;
    Ok(answer.table(table("markets", &ranking.first(order, most))))
}

pub(crate) fn title(money: &str) -> String {
    format!("All {money} markets: volume, gainers and losers")
}

/// `BTCUSDT +1.2%, ETHUSDT +0.8%`
pub(crate) fn moves(places: &[&Place]) -> String {
    let named = places.iter().take(NAMED).map(|place| {
        let change = or_unknown(place.change.and_then(percent).map(|change| format!("{change:+.2}")));
        format!("{} {change}%", place.symbol)
    });
    match named.collect::<Vec<_>>() {
        named if named.is_empty() => "none".to_owned(),
        named => named.join(", "),
    }
}

/// `BTCUSDT 45.2%, ETHUSDT 20.1%`
pub(crate) fn shares(places: &[&Place]) -> String {
    let named = places.iter().take(NAMED).map(|place| {
        let share = or_unknown(place.share.and_then(percent).map(|share| format!("{share:.2}")));
        format!("{} {share}%", place.symbol)
    });
    named.collect::<Vec<_>>().join(", ")
}

fn provenance(market: &Market, days: &Days) -> Provenance {
    Provenance::new(market, days.origin, days.exchange_time(), days.heard)
}

fn told(mut answer: Answer, days: &Days, ranking: &Ranking) -> Result<Answer> {
    let money = &days.money;
    if let Some(stale) = &days.stale {
        answer = answer.figure(format!("{stale}.")).with_field("note", stale)?;
    }
    let [rose, fell, unchanged] = [Ordering::Greater, Ordering::Less, Ordering::Equal].map(|way| ranking.count(way));
    let reason = ranking
        .quote_volume
        .is_none()
        .then_some("the sum is more than can be counted");
    let range = ranking.first(Order::Range, 1);
    let widest = range
        .first()
        .and_then(|place| Some((&place.symbol, percent(place.range?)?)));
    let widest = widest.map_or_else(|| "unknown".to_owned(), |(symbol, range)| format!("{symbol} {range}%"));
    answer
        .figure(format!(
            "{} markets priced in {money}, over {}: {rose} rose, {fell} fell; {} {money} traded.",
            ranking.places.len(),
            days.window,
            or_unknown(ranking.quote_volume),
        ))
        .figure(format!(
            "Most of the volume: {}; the first ten have {}% of it.",
            shares(&ranking.first(Order::Volume, NAMED)),
            or_unknown(ranking.share_of_first(10)),
        ))
        .figure(format!(
            "Largest gains: {}. Largest losses: {}. Widest range: {widest}.",
            moves(&ranking.first(Order::Gain, NAMED)),
            moves(&ranking.first(Order::Loss, NAMED)),
        ))
        .with(&json!({
            "markets_counted": ranking.places.len(),
            "rose": rose,
            "fell": fell,
            "unchanged": unchanged,
            "quote_volume": ranking.quote_volume,
            "volume_share_of_first_10_pct": ranking.share_of_first(10),
            "window": format!("{}, of each market as it was last traded", days.window),
            "reason": reason,
            "standing": "exact",
        }))
}

fn table(name: &'static str, places: &[&Place]) -> Table {
    let row = |place: &&Place| -> Vec<Value> {
        vec![
            json!(&*place.symbol),
            json!(place.last),
            json!(place.change.and_then(percent)),
            json!(place.range.and_then(percent)),
            json!(place.quote_volume),
            json!(place.share.and_then(percent)),
        ]
    };
    Table {
        name,
        columns: &COLUMNS,
        rows: places.iter().map(row).collect(),
        keep: Keep::First,
        left_out: 0,
    }
}

/// The money as the exchange writes it.
async fn known(market: &Market, money: &str) -> Result<Arc<str>> {
    let table = market.symbols().await?;
    let known = table.money(&money.trim().to_uppercase()).cloned();
    known.ok_or_else(|| {
        let moneys: Vec<&str> = table.moneys().iter().take(MOST_MONEYS).map(|money| &***money).collect();
        Error::not_found(format!(
            "Nothing is priced in {} on the exchange. Prices are in: {}.",
            tribune_core::wire::clip(money, 40),
            moneys.join(", ")
        ))
    })
}

async fn main_money(market: &Market) -> Result<Arc<str>> {
    let table = market.symbols().await?;
    let main = table.moneys().first().map(|money| Arc::clone(money));
    main.ok_or_else(|| Error::unavailable("The exchange lists no markets now; ask again in a minute."))
}
