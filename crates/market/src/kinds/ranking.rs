//! All markets of one quote asset: where volume is, what rose and what fell.

mod days;

use std::cmp::Ordering;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tribune_core::Result;
use tribune_page::parts::{cell, noted, numbers, panel, signed, table, tone_of, toned, words};
use tribune_page::text::{dash, padded, plain, sum};
use tribune_page::{Amount, Cell, Figure, Headline, Panel, Tone, Width};

use super::known::or_unknown;
use super::table::{Keep, Table, row as row_struct};
use super::{About, Answer, AnyFigures, Figures, Provenance};
use crate::id::{Kind, MarketId};
use crate::kinds::Page;
use crate::market::Market;
use days::{Days, known, main_money};
use tribune_analytics::Standing;
use tribune_analytics::ranking::{Order, Place, Ranking, percent};
use tribune_binance::number::{Notional, Price};

/// The streams of an exchange are never silent for so long.
pub(crate) const SILENT_MS: u64 = 5_000;
/// Markets that a document lists in each order, and that its sentences name.
const LISTED: usize = 15;
const NAMED: usize = 3;
/// Places of shares and changes, in percent.
const PERCENT_PLACES: usize = 4;

/// The markets of one quote asset together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Summary {
    /// Why it is not of now.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    markets_counted: usize,
    rose: usize,
    fell: usize,
    unchanged: usize,
    quote_volume: Option<Notional>,
    volume_share_of_first_10_pct: Option<f64>,
    window: String,
    reason: Option<String>,
    standing: Standing,
    /// The first of each order, for the sentences.
    #[serde(skip)]
    leaders: Leaders,
    #[serde(skip)]
    covers: &'static str,
}

#[derive(Debug, Clone, PartialEq, Default)]
struct Leaders {
    volume: Vec<RankedMarket>,
    gain: Vec<RankedMarket>,
    loss: Vec<RankedMarket>,
    range: Vec<RankedMarket>,
}

/// The first markets in one order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TopMarkets {
    #[serde(flatten)]
    summary: Summary,
    sort_by: String,
    markets_listed: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    markets_cut: Option<String>,
    markets: Table<RankedMarket>,
}

/// The first markets in every order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AllMarkets {
    #[serde(flatten)]
    summary: Summary,
    most_traded_listed: usize,
    gainers_listed: usize,
    losers_listed: usize,
    widest_range_listed: usize,
    most_traded: Table<RankedMarket>,
    gainers: Table<RankedMarket>,
    losers: Table<RankedMarket>,
    widest_range: Table<RankedMarket>,
}

row_struct! {
    /// One market among the others.
    struct RankedMarket {
        symbol: Arc<str> = "symbol",
        last_price: Price = "last_price",
        price_change_pct: Option<f64> = "price_change_pct",
        range_pct: Option<f64> = "range_pct",
        quote_volume: Notional = "quote_volume",
        volume_share_pct: Option<f64> = "volume_share_pct",
    }
}

impl From<&Place> for RankedMarket {
    fn from(place: &Place) -> Self {
        Self {
            symbol: place.symbol.clone(),
            last_price: place.last,
            price_change_pct: place.change.and_then(percent),
            range_pct: place.range.and_then(percent),
            quote_volume: place.quote_volume,
            volume_share_pct: place.share.and_then(percent),
        }
    }
}

fn answer(days: Days, market: &Market, figures: impl FnOnce(&Ranking, Summary) -> AnyFigures) -> Result<Answer> {
    let ranking = Ranking::of(days.days.iter().cloned());
    let exchange_time = days.days.iter().filter_map(|(_, day)| day.exchange_time).max();
    let provenance = Provenance::new(market, days.origin, exchange_time, days.heard);
    let figures = figures(&ranking, Summary::new(&ranking, days.window, days.stale));
    let id = MarketId::new(Kind::Markets, days.money.clone());
    Answer::about(&id, About::all_markets(days.money), provenance, figures)
}

/// The first in every order.
pub async fn load(market: &Market, money: &str) -> Result<Answer> {
    let days = Days::load(market, &known(market, money).await?).await?;
    answer(days, market, |ranking, summary| {
        AllMarkets::new(ranking, summary).into()
    })
}

/// The same without asking the exchange; `None` while nothing is known of any market.
pub(super) fn at_hand(market: &Market, money: &str) -> Option<Answer> {
    let days = Days::at_hand(market, money)?;
    let answer = answer(days, market, |ranking, summary| {
        AllMarkets::new(ranking, summary).into()
    });
    answer.ok()
}

/// The first in one order.
pub async fn load_top(market: &Market, money: Option<&str>, order: Order, most: usize) -> Result<Answer> {
    let money = match money {
        Some(money) => known(market, money).await?,
        None => main_money(market).await?,
    };
    let days = Days::load(market, &money).await?;
    answer(days, market, |ranking, summary| {
        let markets = listed(ranking, order, most, 1);
        let figures = TopMarkets {
            summary,
            sort_by: order.as_str().to_owned(),
            markets_listed: markets.rows.len(),
            markets_cut: markets.cut(),
            markets,
        };
        figures.into()
    })
}

fn listed(ranking: &Ranking, order: Order, most: usize, tables: usize) -> Table<RankedMarket> {
    Table::fitted(first(ranking, order, most), Keep::First, tables)
}

fn first(ranking: &Ranking, order: Order, most: usize) -> Vec<RankedMarket> {
    ranking.first(order, most).into_iter().map(RankedMarket::from).collect()
}

impl Summary {
    fn new(ranking: &Ranking, covers: &'static str, stale: Option<String>) -> Self {
        let uncounted = ranking.quote_volume.is_none();
        Self {
            note: stale,
            markets_counted: ranking.places.len(),
            rose: ranking.count(Ordering::Greater),
            fell: ranking.count(Ordering::Less),
            unchanged: ranking.count(Ordering::Equal),
            quote_volume: ranking.quote_volume,
            volume_share_of_first_10_pct: ranking.share_of_first(10),
            window: format!("{covers}, of each market as it was last traded"),
            reason: uncounted.then(|| "the sum is more than can be counted".to_owned()),
            standing: Standing::Exact,
            leaders: Leaders {
                volume: first(ranking, Order::Volume, NAMED),
                gain: first(ranking, Order::Gain, NAMED),
                loss: first(ranking, Order::Loss, NAMED),
                range: first(ranking, Order::Range, 1),
            },
            covers,
        }
    }

    fn sentences(&self, about: &About) -> Vec<String> {
        let (money, leaders) = (about.quote(), &self.leaders);
        let widest = leaders.range.first().and_then(|market| {
            let range = market.range_pct?;
            Some(format!("{} {range}%", market.symbol))
        });
        let stale = self.note.as_ref().map(|stale| format!("{stale}."));
        let all = [
            format!(
                "{} markets priced in {money}, over {}: {} rose, {} fell; {} {money} traded.",
                self.markets_counted,
                self.covers,
                self.rose,
                self.fell,
                or_unknown(self.quote_volume),
            ),
            format!(
                "Most of the volume: {}; the first ten have {}% of it.",
                shares(&leaders.volume),
                or_unknown(self.volume_share_of_first_10_pct),
            ),
            format!(
                "Largest gains: {}. Largest losses: {}. Widest range: {}.",
                moves(&leaders.gain),
                moves(&leaders.loss),
                or_unknown(widest),
            ),
        ];
        stale.into_iter().chain(all).collect()
    }

    fn headline(&self, page: &Page<'_>) -> Headline {
        let count = |label: &str, count: usize| Figure::new(label, Amount::plain(count.to_string()));
        let share = self.volume_share_of_first_10_pct.and_then(plain);
        let share = share.map(|share| Figure::new("Of it the first ten", Amount::new(share, "%")));
        let figures = [
            count("Markets", self.markets_counted),
            count("Rose", self.rose),
            count("Fell", self.fell),
        ];
        let traded = self.quote_volume.map_or_else(
            || Amount::plain("unknown"),
            |money| Amount::new(sum(&money.to_string()), page.quote()),
        );
        Headline {
            figures: figures.into_iter().chain(share).collect(),
            ..page.headline("Traded in 24 h", traded)
        }
    }
}

impl AllMarkets {
    fn new(ranking: &Ranking, summary: Summary) -> Self {
        let listed = |order| listed(ranking, order, LISTED, 4);
        let (most_traded, gainers) = (listed(Order::Volume), listed(Order::Gain));
        let (losers, widest_range) = (listed(Order::Loss), listed(Order::Range));
        Self {
            summary,
            most_traded_listed: most_traded.rows.len(),
            gainers_listed: gainers.rows.len(),
            losers_listed: losers.rows.len(),
            widest_range_listed: widest_range.rows.len(),
            most_traded,
            gainers,
            losers,
            widest_range,
        }
    }
}

/// `BTCUSDT +1.2%, ETHUSDT +0.8%`
fn moves(markets: &[RankedMarket]) -> String {
    let named = markets.iter().map(|market| {
        let change = or_unknown(market.price_change_pct.map(|change| format!("{change:+.2}")));
        format!("{} {change}%", market.symbol)
    });
    match named.collect::<Vec<_>>() {
        named if named.is_empty() => "none".to_owned(),
        named => named.join(", "),
    }
}

/// `BTCUSDT 45.2%, ETHUSDT 20.1%`
fn shares(markets: &[RankedMarket]) -> String {
    let named = markets.iter().map(|market| {
        let share = or_unknown(market.volume_share_pct.map(|share| format!("{share:.2}")));
        format!("{} {share}%", market.symbol)
    });
    named.collect::<Vec<_>>().join(", ")
}

fn title(about: &About) -> String {
    format!("All {} markets: volume, gainers and losers", about.quote())
}

impl Figures for TopMarkets {
    fn what(&self, about: &About) -> String {
        title(about)
    }

    fn sentences(&self, about: &About) -> Vec<String> {
        self.summary.sentences(about)
    }

    fn headline(&self, page: &Page<'_>) -> Option<Headline> {
        Some(self.summary.headline(page))
    }

    fn panels(&self, page: &Page<'_>) -> Vec<Panel> {
        let title = match self.sort_by.as_str() {
            "volume" => "Most traded",
            "gain" => "Gainers",
            "loss" => "Losers",
            "range" => "Widest range",
            _ => "Markets",
        };
        vec![markets_panel("markets", title, &self.markets, page)]
    }

    fn notes(&self, _about: &About) -> Option<String> {
        self.summary.note.clone()
    }
}

impl Figures for AllMarkets {
    fn what(&self, about: &About) -> String {
        title(about)
    }

    fn sentences(&self, about: &About) -> Vec<String> {
        self.summary.sentences(about)
    }

    fn snippet(&self, about: &About) -> Option<String> {
        let leader = |markets: &'_ Table<RankedMarket>| markets.rows.iter().take(1).cloned().collect::<Vec<_>>();
        Some(format!(
            "{} {} markets over {}: volume {}; gains {}; losses {}.",
            self.summary.markets_counted,
            about.quote(),
            self.summary.covers,
            shares(&leader(&self.most_traded)),
            moves(&leader(&self.gainers)),
            moves(&leader(&self.losers)),
        ))
    }

    fn headline(&self, page: &Page<'_>) -> Option<Headline> {
        Some(self.summary.headline(page))
    }

    fn panels(&self, page: &Page<'_>) -> Vec<Panel> {
        vec![
            markets_panel("most_traded", "Most traded", &self.most_traded, page),
            markets_panel("gainers", "Gainers", &self.gainers, page),
            markets_panel("losers", "Losers", &self.losers, page),
            markets_panel("widest_range", "Widest range", &self.widest_range, page),
        ]
    }

    fn notes(&self, _about: &About) -> Option<String> {
        self.summary.note.clone()
    }
}

fn markets_panel(key: &'static str, title: &str, markets: &Table<RankedMarket>, page: &Page<'_>) -> Panel {
    let money = page.quote();
    let columns = vec![
        words("Market"),
        numbers(format!("Last price ({money})")),
        numbers("24 h change (%)"),
        numbers("24 h range (%)"),
        numbers(format!("24 h worth ({money})")),
        numbers("Share (%)"),
    ];
    let rows: Vec<Vec<Cell>> = markets.rows.iter().map(row).collect();
    let note = if rows.is_empty() {
        "None."
    } else {
        "Shares are of what was traded of all; large sums are rounded, and exact in the text."
    };
    noted(panel(key, title, Width::Whole, table(columns, rows)), note)
}

fn row(market: &RankedMarket) -> Vec<Cell> {
    let percent = |number: Option<f64>| number.and_then(plain).map(|number| padded(&number, PERCENT_PLACES));
    let ticker = MarketId::new(Kind::Ticker, market.symbol.clone()).document_id();
    vec![
        Cell {
            link: ticker.ok().map(|id| id.to_string()),
            ..cell(&*market.symbol)
        },
        cell(market.last_price.to_string()),
        match percent(market.price_change_pct) {
            Some(change) => toned(signed(&change), tone_of(market.price_change_pct)),
            None => toned(dash(), Tone::Plain),
        },
        cell(percent(market.range_pct).unwrap_or_else(dash)),
        cell(sum(&market.quote_volume.to_string())),
        Cell {
            share: market.volume_share_pct.map(|share| (share / 100.0).clamp(0.0, 1.0)),
            ..cell(percent(market.volume_share_pct).unwrap_or_else(dash))
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribune_binance::testing::{money, price};
    use tribune_page::Content;

    /// A list in an order that was asked for says in which.
    #[test]
    fn list_names_its_order_and_dashes_the_unknown() {
        let market = |symbol: &str, change, range, worth: &str, share| RankedMarket {
            symbol: symbol.into(),
            last_price: price("1.5"),
            price_change_pct: change,
            range_pct: range,
            quote_volume: money(worth),
            volume_share_pct: share,
        };
        let markets = vec![
            market("AAAUSDT", Some(2.5), Some(3.0), "10.5", Some(100.0)),
            market("BBBUSDT", None, None, "0", Some(0.0)),
        ];
        let empty = Ranking::of([]);
        let figures = TopMarkets {
            summary: Summary {
                volume_share_of_first_10_pct: Some(100.0),
                ..Summary::new(&empty, "the last 24 hours", None)
            },
            sort_by: "gain".to_owned(),
            markets_listed: 2,
            markets_cut: None,
            markets: Table::fitted(markets, Keep::First, 1),
        };
        let page = Page::example("2026-11-16T00:00:00Z", 1);
        let page = page.page();
        let panels = figures.panels(&page);
        let [panel] = &panels[..] else { panic!("{panels:?}") };
        assert_eq!((&*panel.title, panel.key), ("Gainers", "markets"));
        let Content::Table(tribune_page::Table { rows, .. }) = &panel.content else {
            panic!("{panel:?}")
        };
        let text = |row: usize| -> Vec<&str> { rows[row].iter().map(|cell| &*cell.text).collect() };
        assert_eq!(text(0), ["AAAUSDT", "1.5", "+2.5000", "3.0000", "10.5", "100.0000"]);
        assert_eq!(text(1)[2..4], ["–", "–"]);
        assert!(rows[0][0].link.is_some());
        let headline = figures.headline(&page).expect("a headline");
        let shares = headline.figures.last().and_then(|figure| figure.value.clone());
        assert_eq!(shares, Some(Amount::new("100", "%")));
    }
}
