//! What the exchange's rules say of a symbol.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tribune_core::Result;

use super::answer::{Answer, Provenance, or_unknown, pair_name};
use crate::market::{Market, Origin};
use crate::model::{Symbol, SymbolStatus};
use crate::symbols::Kind;

pub async fn info(market: &Market, symbol: &str) -> Result<Answer> {
    let symbol = market.symbol(symbol).await?;
    let provenance = Provenance::new(market, Origin::Rest, None, market.symbols_loaded());
    let traded = match symbol.status {
        SymbolStatus::Trading => "is traded",
        SymbolStatus::Halted => "is halted",
        SymbolStatus::Break => "is not traded",
    };
    let mut answer = Answer::new(Kind::ExchangeInfo, &symbol, "trading rules", provenance)?;
    if let Some(why) = &symbol.unread_rule {
        answer = answer.with_field("reason", &format!("a rule of the exchange could not be read: {why}"))?;
    }
    answer
        .figure(format!(
            "{} ({}) {traded} now: status {}.",
            symbol.name,
            pair_name(&symbol),
            symbol.status_text
        ))
        .figure(format!(
            "Prices move in steps of {} {quote}, quantities in steps of {} {base}; an order is worth at least {} {quote}.",
            or_unknown(symbol.tick_size),
            or_unknown(symbol.step_size),
            or_unknown(symbol.min_notional),
            quote = symbol.quote,
            base = symbol.base,
        ))
        .with(&json!({
            "status": &*symbol.status_text,
            "tick_size": symbol.tick_size,
            "step_size": symbol.step_size,
            "min_quantity": symbol.min_quantity,
            "max_quantity": symbol.max_quantity,
            "min_notional": symbol.min_notional,
            "max_notional": symbol.max_notional,
            "standing": "exact",
        }))
}

/// The exchange as a whole: how many symbols, of which quote assets, and what may be asked of it.
pub async fn overview(market: &Market) -> Result<Value> {
    let table = market.symbols().await?;
    let traded: Vec<&Symbol> = table
        .symbols()
        .iter()
        .filter(|symbol| symbol.status == SymbolStatus::Trading)
        .collect();
    let mut quotes: BTreeMap<&str, usize> = BTreeMap::new();
    for symbol in &traded {
        *quotes.entry(&symbol.quote).or_default() += 1;
    }
    let mut quotes: Vec<(&str, usize)> = quotes.into_iter().collect();
    quotes.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
    let quotes = quotes.iter().take(15);
    let (used, budget) = market.rest.governor().used();
    let provenance = Provenance::new(market, Origin::Rest, None, market.symbols_loaded());
    Ok(json!({
        "venue": provenance.venue,
        "source": provenance.source,
        "exchange_time": provenance.exchange_time,
        "received_time": provenance.received_time,
        "age_ms": provenance.age_ms,
        "simulated": provenance.simulated,
        "symbols": table.len(),
        "symbols_traded": traded.len(),
        "quote_assets": quotes.map(|(asset, symbols)| json!({"asset": asset, "symbols": symbols})).collect::<Vec<_>>(),
        "request_weight_used_this_minute": used,
        "request_weight_budget_a_minute": budget,
    }))
}
