//! Trading rules of a symbol, and the exchange as a whole.

use std::cmp::Reverse;
use std::sync::Arc;

use super::prelude::*;

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TradingRules {
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    status: Arc<str>,
    tick_size: Option<Price>,
    step_size: Option<Quantity>,
    min_quantity: Option<Quantity>,
    max_quantity: Option<Quantity>,
    min_notional: Option<Notional>,
    max_notional: Option<Notional>,
    standing: Standing,
}

pub async fn load(market: &Market, symbol: &str) -> Result<Answer> {
    answer(market, &market.symbol(symbol).await?)
}

pub(super) fn answer(market: &Market, symbol: &Symbol) -> Result<Answer> {
    let unread = symbol.unread_rule.as_ref();
    let figures = TradingRules {
        reason: unread.map(|why| format!("a rule of the exchange could not be read: {why}")),
        status: symbol.status.clone(),
        tick_size: symbol.tick_size,
        step_size: symbol.step_size,
        min_quantity: symbol.min_quantity,
        max_quantity: symbol.max_quantity,
        min_notional: symbol.min_notional,
        max_notional: symbol.max_notional,
        standing: Standing::Exact,
    };
    let provenance = Provenance::new(market, Origin::Rest, None, market.symbols_loaded());
    Answer::new(Kind::ExchangeInfo, symbol, provenance, figures)
}

impl Figures for TradingRules {
    fn sentences(&self, about: &About) -> Vec<String> {
        let (name, pair, base, quote, status) =
            (about.name(), pair_name(about), about.base(), about.quote(), &self.status);
        let (tick, step) = (or_unknown(self.tick_size), or_unknown(self.step_size));
        let least = or_unknown(self.min_notional);
        vec![format!(
            "{name} ({pair}): status {status}; price step {tick} {quote}, quantity step {step} {base}, smallest order {least} {quote}."
        )]
    }
}

#[derive(Debug, Serialize)]
pub struct Exchange {
    #[serde(flatten)]
    provenance: Provenance,
    #[serde(flatten)]
    figures: ExchangeFigures,
}

/// The number of symbols, by quote asset, and the exchange's request limits.
#[derive(Debug, Serialize, JsonSchema)]
struct ExchangeFigures {
    symbols: usize,
    symbols_traded: usize,
    quote_assets: Vec<QuoteAsset>,
    request_weight_used_this_minute: u32,
    request_weight_budget_a_minute: u32,
}

#[derive(Debug, Serialize, JsonSchema)]
struct QuoteAsset {
    asset: Arc<str>,
    symbols: usize,
}

const MOST_QUOTES: usize = 15;

pub async fn exchange(market: &Market) -> Result<Exchange> {
    let table = market.symbols().await?;
    let asset = |asset: &Arc<str>| QuoteAsset {
        asset: asset.clone(),
        symbols: table.of_quote(asset).filter(|symbol| symbol.is_traded()).count(),
    };
    let mut quote_assets: Vec<QuoteAsset> = table.moneys().into_iter().map(asset).collect();
    quote_assets.sort_by_key(|asset| Reverse(asset.symbols));
    quote_assets.truncate(MOST_QUOTES);
    let (used, budget) = market.rest.governor().used();
    Ok(Exchange {
        provenance: Provenance::new(market, Origin::Rest, None, market.symbols_loaded()),
        figures: ExchangeFigures {
            symbols: table.len(),
            symbols_traded: table.symbols().iter().filter(|symbol| symbol.is_traded()).count(),
            quote_assets,
            request_weight_used_this_minute: used,
            request_weight_budget_a_minute: budget,
        },
    })
}

/// For the tool's schema: the rules of a symbol, or the exchange if none is given.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(crate) struct RulesOrExchange {
    #[serde(flatten)]
    rules: TradingRules,
    #[serde(flatten)]
    exchange: Option<ExchangeFigures>,
}
