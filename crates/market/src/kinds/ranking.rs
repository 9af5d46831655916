//! All markets of one quote asset: where volume is, what rose and what fell.

mod days;

use std::cmp::Ordering;
use std::sync::Arc;

use tribune_page::parts::signed;
use tribune_page::text::{dash, padded, plain, sum};

use super::AnyFigures;
use super::prelude::*;
use days::{Days, quote_asset};
use tribune_analytics::ranking::{Order, Place, Ranking, percent};
use tribune_market_resolve::id::MarketId;

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
    /// With the first of each order, which not every answer lists.
    #[serde(skip)]
    sentences: Vec<String>,
    #[serde(skip)]
    covers: &'static str,
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

row! {
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
    let figures = figures(&ranking, Summary::new(&ranking, &days.money, days.window, days.stale));
    let id = MarketId::new(Kind::Markets, days.money.clone());
    Answer::about(&id, About::all_markets(days.money), provenance, figures)
}

/// The first in every order.
pub async fn load(market: &Market, money: &str) -> Result<Answer> {
    let days = Days::load(market, &quote_asset(market, Some(money)).await?).await?;
    answer(days, market, AllMarkets::of)
}

/// The same without asking the exchange; `None` while nothing is known of any market.
pub(super) fn at_hand(market: &Market, money: &str) -> Option<Answer> {
    answer(Days::at_hand(market, money)?, market, AllMarkets::of).ok()
}

/// The first in one order.
pub async fn load_top(market: &Market, money: Option<&str>, order: Order, most: usize) -> Result<Answer> {
    let days = Days::load(market, &quote_asset(market, money).await?).await?;
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
    fn new(ranking: &Ranking, money: &str, covers: &'static str, stale: Option<String>) -> Self {
        let uncounted = ranking.quote_volume.is_none();
        let (rose, fell) = (ranking.count(Ordering::Greater), ranking.count(Ordering::Less));
        let (count, share) = (ranking.places.len(), ranking.share_of_first(10));
        let (traded, first_ten) = (or_unknown(ranking.quote_volume), or_unknown(share));
        let most = shares(&first(ranking, Order::Volume, NAMED));
        let gains = moves(&first(ranking, Order::Gain, NAMED));
        let losses = moves(&first(ranking, Order::Loss, NAMED));
        let widest = first(ranking, Order::Range, 1).into_iter().next();
        let widest = or_unknown(widest.and_then(|market| Some(format!("{} {}%", market.symbol, market.range_pct?))));
        let about_all = [
            format!(
                "{count} markets priced in {money}, over {covers}: {rose} rose, {fell} fell; {traded} {money} traded."
            ),
            format!("Most of the volume: {most}; the first ten have {first_ten}% of it."),
            format!("Largest gains: {gains}. Largest losses: {losses}. Widest range: {widest}."),
        ];
        let is_stale = stale.as_ref().map(|stale| format!("{stale}."));
        Self {
            note: stale,
            markets_counted: count,
            rose,
            fell,
            unchanged: ranking.count(Ordering::Equal),
            quote_volume: ranking.quote_volume,
            volume_share_of_first_10_pct: share,
            window: format!("{covers}, of each market as it was last traded"),
            reason: uncounted.then(|| "the sum is more than can be counted".to_owned()),
            standing: Standing::Exact,
            sentences: is_stale.into_iter().chain(about_all).collect(),
            covers,
        }
    }

    fn headline(&self, page: &Page<'_>) -> Headline {
        let count = |label: &str, count: usize| Figure::new(label, Amount::plain(count.to_string()));
        let mut figures =
            vec![count("Markets", self.markets_counted), count("Rose", self.rose), count("Fell", self.fell)];
        let share = self.volume_share_of_first_10_pct.and_then(plain);
        figures.extend(share.map(|share| Figure::new("Of it the first ten", Amount::new(share, "%"))));
        let traded = self.quote_volume.map(|money| page.money(sum(&money.to_string())));
        let traded = traded.unwrap_or_else(|| Amount::plain("unknown"));
        page.headline("Traded in 24 h", traded, figures)
    }
}

impl AllMarkets {
    fn of(ranking: &Ranking, summary: Summary) -> AnyFigures {
        let listed = |order| listed(ranking, order, LISTED, 4);
        let (most_traded, gainers) = (listed(Order::Volume), listed(Order::Gain));
        let (losers, widest_range) = (listed(Order::Loss), listed(Order::Range));
        let all = Self {
            summary,
            most_traded_listed: most_traded.rows.len(),
            gainers_listed: gainers.rows.len(),
            losers_listed: losers.rows.len(),
            widest_range_listed: widest_range.rows.len(),
            most_traded,
            gainers,
            losers,
            widest_range,
        };
        all.into()
    }
}

/// `BTCUSDT +1.2%, ETHUSDT +0.8%`
fn moves(markets: &[RankedMarket]) -> String {
    let named = markets.iter().map(|market| {
        let change = or_unknown(market.price_change_pct.map(|change| format!("{change:+.2}")));
        format!("{} {change}%", market.symbol)
    });
    let named = named.reduce(|all, one| format!("{all}, {one}"));
    named.unwrap_or_else(|| "none".to_owned())
}

/// `BTCUSDT 45.2%, ETHUSDT 20.1%`
fn shares(markets: &[RankedMarket]) -> String {
    let named = markets.iter().map(|market| {
        let share = or_unknown(market.volume_share_pct.map(|share| format!("{share:.2}")));
        format!("{} {share}%", market.symbol)
    });
    named.collect::<Vec<_>>().join(", ")
}

fn title(about: &About) -> Option<String> {
    Some(format!("All {} markets: volume, gainers and losers", about.quote()))
}

impl Figures for TopMarkets {
    fn what(&self, about: &About) -> Option<String> {
        title(about)
    }

    fn sentences(&self, _about: &About) -> Vec<String> {
        self.summary.sentences.clone()
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
    fn what(&self, about: &About) -> Option<String> {
        title(about)
    }

    fn sentences(&self, _about: &About) -> Vec<String> {
        self.summary.sentences.clone()
    }

    fn snippet(&self, about: &About) -> Option<String> {
        fn first(markets: &Table<RankedMarket>) -> &[RankedMarket] {
            &markets.rows[..markets.rows.len().min(1)]
        }
        let (count, quote, covers) = (self.summary.markets_counted, about.quote(), self.summary.covers);
        let (most, gains) = (shares(first(&self.most_traded)), moves(first(&self.gainers)));
        let losses = moves(first(&self.losers));
        Some(format!("{count} {quote} markets over {covers}: volume {most}; gains {gains}; losses {losses}."))
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
    let note = match markets.rows.is_empty() {
        true => "None.",
        false => "Shares are of what was traded of all; large sums are rounded, and exact in the text.",
    };
    let rows = markets.rows.iter().map(|market| row(market, page.quote()));
    listing(key, title, rows.collect(), note)
}

fn row(market: &RankedMarket, money: &str) -> Vec<(Column, Cell)> {
    let percent = |number: Option<f64>| number.and_then(plain).map(|number| padded(&number, PERCENT_PLACES));
    let ticker = MarketId::new(Kind::Ticker, market.symbol.clone()).document_id();
    let name = Cell { link: ticker.ok().map(|id| id.to_string()), ..cell(&*market.symbol) };
    let change = percent(market.price_change_pct).map_or_else(dash, |change| signed(&change));
    let share = cell(percent(market.volume_share_pct).unwrap_or_else(dash));
    let range = percent(market.range_pct).unwrap_or_else(dash);
    vec![
        (words("Market"), name),
        (numbers(format!("Last price ({money})")), cell(market.last_price.to_string())),
        (numbers("24 h change (%)"), toned(change, tone_of(market.price_change_pct))),
        (numbers("24 h range (%)"), cell(range)),
        (numbers(format!("24 h worth ({money})")), cell(sum(&market.quote_volume.to_string()))),
        (numbers("Share (%)"), barred(share, market.volume_share_pct.map(|share| share / 100.0))),
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
                ..Summary::new(&empty, "USDT", "the last 24 hours", None)
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
        let Content::Table(tribune_page::Table { rows, .. }) = &panel.content else { panic!("{panel:?}") };
        let text = |row: usize| -> Vec<&str> { rows[row].iter().map(|cell| &*cell.text).collect() };
        assert_eq!(text(0), ["AAAUSDT", "1.5", "+2.5000", "3.0000", "10.5", "100.0000"]);
        assert_eq!(text(1)[2..4], ["–", "–"]);
        assert!(rows[0][0].link.is_some());
        let headline = figures.headline(&page).expect("a headline");
        let shares = headline.figures.last().and_then(|figure| figure.value.clone());
        assert_eq!(shares, Some(Amount::new("100", "%")));
    }
}
