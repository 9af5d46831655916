//! The market and its reports.

use std::sync::Arc;

use tribune_config::Environment;
use tribune_market::MarketSource;
use tribune_reports::ReportsSource;

use super::exchange::{MarketExchange, OrderMarket};
use crate::config::{Config, MarketConfig};

/// The source of `[market]`, with the tools of `[market.trading]`.
pub fn market_source(config: &MarketConfig, environment: &Environment) -> tribune_core::Result<Arc<MarketSource>> {
    let source = tribune_market::build(config, environment)?;
    let market = source.market().clone();
    let tools = tribune_trading::build(
        &config.trading,
        config.rest_url(),
        market.governor().clone(),
        Arc::new(OrderMarket(market)),
        environment,
    )?;
    Ok(Arc::new(source.with_admin_tools(tools)))
}

/// The source of market reports.
#[expect(clippy::disallowed_methods, reason = "the composition root chooses the randomness")]
pub fn reports_source(
    config: &Config,
    market: &MarketConfig,
    source: Option<&Arc<MarketSource>>,
    environment: &Environment,
) -> tribune_core::Result<ReportsSource> {
    let exchange = |source: &Arc<MarketSource>| Arc::new(MarketExchange(source.market().clone())) as _;
    let market = tribune_reports::config::Market {
        exchange: source.map(exchange),
        citations: market.citation_limits(),
        process: uuid::Uuid::new_v4().simple().to_string()[..8].to_owned(),
    };
    tribune_reports::build(&config.cache, market, environment)
}

#[cfg(test)]
mod tests;
