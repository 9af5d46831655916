//! One score for how healthy a market is, with its published parts.

use tribune_market_parts::parts::{input_of, of_components};
use tribune_page::parts::{noted, table};
use tribune_page::text::{capitalised, plain};

use super::anomalies::{self, MarketAnomalies};
use super::depth::near_mid;
use super::flow::FLOW_SECS;
use super::prelude::*;
use tribune_analytics::depth::{Band, band};
use tribune_analytics::flow::trade_flow;
use tribune_analytics::health::{BAND_BPS, Component, Health, HealthInputs, health};
use tribune_analytics::quotes::quotes;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MarketHealth {
    #[serde(flatten)]
    health: Health,
    spread_bps: Known<f64>,
    band: Known<Band>,
    last_update_id: u64,
}

pub async fn load(market: &Market, symbol: &str) -> Result<Answer> {
    let symbol = market.traded(symbol).await?;
    let (book, trades, found, ticker) = futures::join!(
        market.book(&symbol),
        market.trades(&symbol, FLOW_SECS),
        anomalies::find(market, &symbol),
        market.rest.ticker_24h(&symbol.name),
    );
    let volume = ticker.ok().map(|ticker| ticker.value.quote_volume);
    answer(market, &symbol, &book?, trades.ok().as_ref(), &found, volume)
}

/// Without the checks of candles, which would have to be asked for.
pub(super) fn at_hand(market: &Market, symbol: &Symbol, book: &BookReading) -> Option<Answer> {
    let trades = market.streamed_trades(symbol, FLOW_SECS);
    let volume = market.feed.board.lookup(&symbol.name).map(|day| day.quote_volume);
    let found = anomalies::at_hand_figures(market, symbol);
    answer(market, symbol, book, trades.as_ref(), &found, volume).ok()
}

fn answer(
    market: &Market,
    symbol: &Symbol,
    book: &BookReading,
    trades: Option<&TradesReading>,
    found: &MarketAnomalies,
    quote_volume_24h: Option<Notional>,
) -> Result<Answer> {
    let depth = &book.view.depth;
    let spread = quotes(depth).and_then(|quotes| {
        let unknown = quotes.reason.unwrap_or(Unavailable::Unknown("the spread"));
        quotes.spread_bps.ok_or(unknown)
    });
    let near = band(depth, BAND_BPS);
    let flow = trades.ok_or(Unavailable::Unknown("the trade flow")).and_then(|reading| {
        let window = Window::last(FLOW_SECS, reading.until);
        trade_flow(&reading.trades, window, reading.complete_from)
    });
    let score = health(&HealthInputs {
        spread_bps: spread.clone(),
        band: near.as_ref().map_err(Clone::clone),
        quote_volume_24h,
        flow: flow.as_ref().map_err(Clone::clone),
        flow_secs: FLOW_SECS,
        anomalies: Some(&found.anomalies),
        age_ms: Some(book.received.age_ms(&*market.clock)),
    });
    let figures = MarketHealth {
        health: score,
        spread_bps: spread.into(),
        band: near.into(),
        last_update_id: book.view.last_update_id,
    };
    let kind = Kind::Analytics(AnalyticsKind::Health);
    Answer::new(kind, symbol, Provenance::of_book(market, book), figures)
}

impl Figures for MarketHealth {
    fn sentences(&self, about: &About) -> Vec<String> {
        let (name, score) = (about.name(), &self.health);
        let reason = score.reason.as_ref().map(|reason| format!(": {reason}"));
        let (points, used, reason) = (or_unknown(score.score), score.weights_used, reason.unwrap_or_default());
        let first = format!(
            "{name}: health {points} of 100, a convention of published parts and weights (over {used} of the weight){reason}."
        );
        let parts = score.components.iter().map(sentence);
        std::iter::once(first).chain(parts).collect()
    }

    /// What the score is made of; the score itself needs candles too.
    fn snippet(&self, about: &About) -> Option<String> {
        let (name, spread) = (about.name(), self.spread_bps.value()?);
        let near = near_mid(about, self.band.value()?);
        Some(format!("{name}: spread {spread} bps; {near}. Fetch it for the score."))
    }

    fn headline(&self, page: &Page<'_>) -> Option<Headline> {
        let score = self.health.score.and_then(plain);
        let value = score.map_or_else(|| Amount::plain("unknown"), |score| Amount::new(score, "of 100"));
        let used = (self.health.weights_used * 100.0).round();
        let used = Figure::new("Weight with inputs", Amount::new(used.to_string(), "%"));
        Some(page.headline("Health", value, vec![used]))
    }

    fn panels(&self, _page: &Page<'_>) -> Vec<Panel> {
        let standing = standing_sentence(self.health.standing, &self.health.note);
        let note = format!("Each component has from 0 to 100 points. {standing}.");
        let components = table(of_components(), self.health.components.iter().map(row).collect());
        let components = panel("components", "Components of the score", Width::Whole, components);
        vec![noted(components, note)]
    }

    fn shown(&self) -> &'static str {
        "score weights_used"
    }
}

fn sentence(part: &Component) -> String {
    let Component { name, weight, input_unit, .. } = part;
    match part.score {
        Some(points) => {
            let input = or_unknown(part.input);
            let note = part.note.as_ref().map(|note| format!(" ({note})")).unwrap_or_default();
            format!("{name}: {points} points, from {input} {input_unit}{note}; weight {weight}.")
        }
        None => {
            let reason = or_unknown(part.reason.as_ref());
            format!("{name}: not known ({reason}); weight {weight} left out.")
        }
    }
}

fn row(part: &Component) -> Vec<Cell> {
    let input = match part.input.and_then(plain) {
        Some(input) => {
            let input = input_of(&input, &part.input_unit);
            let note = part.note.as_ref();
            note.map_or_else(|| input.clone(), |note| format!("{input}; {note}"))
        }
        None => {
            let reason = part.reason.as_ref().map(ToString::to_string);
            format!("not known: {}; its weight is left out", reason.unwrap_or_default())
        }
    };
    vec![
        cell(capitalised(&part.name)),
        barred(number(part.score), part.score.map(|points| points / 100.0)),
        number(Some(part.weight)),
        number(part.contribution),
        cell(input),
    ]
}
