//! All markets of one quote asset: turnover, gainers and losers.

mod days;

use std::cmp::Ordering;
use std::fmt::Debug;

use super::prelude::*;
use days::{Days, quote_asset};
use tribune_analytics::{Order, Place, Ranking, percent};
use tribune_market_resolve::id::MarketId;

/// Streams that are silent for this long have failed.
pub(crate) const SILENT_MS: u64 = 5_000;
/// Markets that a document lists in each order.
const LISTED: usize = 15;

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct Summary {
    /// Why it is stale.
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
    /// They name the first of each order, also where an answer lists only one.
    #[serde(skip)]
    sentences: Vec<String>,
}

/// All markets of one quote asset, with lists of some.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Markets<Lists> {
    #[serde(flatten)]
    summary: Summary,
    #[serde(flatten)]
    lists: Lists,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TopMarkets {
    sort_by: &'static str,
    markets_listed: usize,
    markets: Table<Place>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
struct AllMarkets {
    most_traded_listed: usize,
    gainers_listed: usize,
    losers_listed: usize,
    widest_range_listed: usize,
    most_traded: Table<Place>,
    gainers: Table<Place>,
    losers: Table<Place>,
    widest_range: Table<Place>,
}

impl Row for Place {
    const COLUMNS: &'static [&'static str] =
        &["symbol", "last_price", "price_change_pct", "range_pct", "quote_volume", "volume_share_pct"];
    fn cells(&self) -> impl Serialize {
        let [change, range, share] = [self.change, self.range, self.share].map(|part| part.and_then(percent));
        (&self.symbol, self.last, change, range, self.quote_volume, share)
    }
}

fn answer<Lists>(days: Days, market: &Market, lists: impl FnOnce(&Ranking) -> Lists) -> Result<Answer>
where
    Markets<Lists>: Figures + 'static,
{
    let ranking = Ranking::of(days.days.iter().cloned());
    let exchange_time = days.days.iter().filter_map(|(_, day)| day.exchange_time).max();
    let provenance = Provenance::new(market, days.origin, exchange_time, days.heard);
    let summary = Summary::new(&ranking, &days.money, days.window, days.stale);
    let figures = Markets { summary, lists: lists(&ranking) };
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
    answer(days, market, |ranking| {
        let markets = first(ranking, order, most);
        TopMarkets { sort_by: order.as_str(), markets_listed: markets.len(), markets: Table(markets) }
    })
}

fn first(ranking: &Ranking, order: Order, most: usize) -> Vec<Place> {
    ranking.first(order, most).into_iter().cloned().collect()
}

impl Summary {
    fn new(ranking: &Ranking, money: &str, covers: &'static str, stale: Option<String>) -> Self {
        let uncounted = ranking.quote_volume.is_none();
        let (rose, fell) = (ranking.count(Ordering::Greater), ranking.count(Ordering::Less));
        let (count, share) = (ranking.places.len(), ranking.share_of_first(10));
        let most = leader(ranking, Order::Volume, |market| market.share);
        let gain = leader(ranking, Order::Gain, |market| market.change);
        let loss = leader(ranking, Order::Loss, |market| market.change);
        let all = format!(
            "{count} {money} markets over {covers}: {rose} rose, {fell} fell; most volume {most}; largest gain {gain}, largest loss {loss}."
        );
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
            sentences: is_stale.into_iter().chain([all]).collect(),
        }
    }
}

impl AllMarkets {
    fn of(ranking: &Ranking) -> Self {
        let listed = |order| first(ranking, order, LISTED);
        let (most_traded, gainers) = (listed(Order::Volume), listed(Order::Gain));
        let (losers, widest_range) = (listed(Order::Loss), listed(Order::Range));
        Self {
            most_traded_listed: most_traded.len(),
            gainers_listed: gainers.len(),
            losers_listed: losers.len(),
            widest_range_listed: widest_range.len(),
            most_traded: Table(most_traded),
            gainers: Table(gainers),
            losers: Table(losers),
            widest_range: Table(widest_range),
        }
    }
}

/// `BTCUSDT 45.20%`
fn leader(ranking: &Ranking, order: Order, figure: impl Fn(&Place) -> Option<Decimal>) -> String {
    let Some(market) = ranking.first(order, 1).into_iter().next() else {
        return "none".to_owned();
    };
    let share = figure(market).and_then(percent).map(|share| format!("{share:.2}"));
    format!("{} {}%", market.symbol, or_unknown(share))
}

impl<Lists: Serialize + Debug + Send + Sync> Figures for Markets<Lists> {
    fn what(&self, about: &About) -> Option<String> {
        Some(format!("All {} markets: volume, gainers and losers", about.quote()))
    }

    fn sentences(&self, _about: &About) -> Vec<String> {
        self.summary.sentences.clone()
    }

    fn headline(&self) -> &'static str {
        "quote_volume markets_counted rose fell volume_share_of_first_10_pct"
    }
}
