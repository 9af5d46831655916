//! `[market.trading]`: the account and order tools exist only with all of it.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use tribune_binance::{Governor, Notional, Priority, Rest, Signer, rest};
use tribune_config::{Environment, Secret, check_range};
use tribune_core::{Error, Result, Tool};
use tribune_market_parts::exchange_error;

use crate::account::TradingAccount;
use crate::confirm::WaitingOrders;
use crate::{Limits, Market, Settings, tool};

/// The address for public data; it has no accounts.
const MARKET_DATA_ONLY: &str = "https://data-api.binance.vision";
const DEFAULT_QUOTES: [&str; 3] = ["USDT", "USDC", "FDUSD"];

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub enabled: bool,
    pub api_key: Option<String>,
    pub api_secret: Option<String>,
    pub max_order_notional: Option<Notional>,
    /// Of all orders within 24 hours.
    pub max_daily_notional: Option<Notional>,
    pub max_orders_per_minute: Option<u32>,
    pub confirm: Option<Confirm>,
    /// Empty for all.
    pub order_symbols: Vec<String>,
    pub order_quotes: Option<Vec<String>>,
}

/// Who must confirm an order, beside the caller's second call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confirm {
    Operator,
}

impl Config {
    /// Finds settings that cannot be meant, without reading the secrets. `rest_url` is as configured: real orders need an
    /// exchange that somebody chose.
    pub fn check(&self, rest_url: Option<&str>, config_dir: &Path) -> Result<()> {
        if !self.enabled {
            return Ok(());
        }
        self.limits()?;
        secret("api_key", self.api_key.as_deref(), config_dir)?;
        secret("api_secret", self.api_secret.as_deref(), config_dir)?;
        match rest_url.map(|url| url.trim_end_matches('/')) {
            Some(url) if url != MARKET_DATA_ONLY => Ok(()),
            url => {
                let lacks = url.map_or("market.rest_url", |_| "a market.rest_url that has accounts");
                Err(Error::invalid_argument(format!(
                    "market.trading.enabled = true needs {lacks}: write rest_url = \"https://api.binance.com\" in [market] to order at the exchange, or \"https://testnet.binance.vision\" to try it at its test network"
                )))
            }
        }
    }

    fn limits(&self) -> Result<Limits> {
        let (daily_notional, orders_per_minute) = (self.max_daily_notional, self.max_orders_per_minute);
        for (name, amount) in [("order", self.max_order_notional), ("daily", daily_notional)] {
            if let Some(amount) = amount.filter(|amount| *amount <= Notional::ZERO) {
                return Err(Error::invalid_argument(format!(
                    "market.trading.max_{name}_notional = \"{amount}\": must be more than zero, such as \"50\""
                )));
            }
        }
        let order_notional = self.max_order_notional.ok_or_else(|| {
            Error::invalid_argument(
                "market.trading.enabled = true needs `max_order_notional`: the most that one order may be worth in its quote asset, such as \"50\"",
            )
        })?;
        if let Some(most) = orders_per_minute {
            check_range("market.trading.max_orders_per_minute", most.into(), 1, 1_000)?;
        }
        Ok(Limits { order_notional, daily_notional, orders_per_minute })
    }
}

fn secret(name: &str, text: Option<&str>, config_dir: &Path) -> Result<Secret> {
    let text = text.ok_or_else(|| Error::invalid_argument(format!("market.trading.enabled = true needs `{name}`")))?;
    Secret::parse(&format!("market.trading.{name}"), text, config_dir)
}

/// Builds the tools of `[market.trading]`; none unless it is enabled. They share `governor` with everything else that
/// talks to the exchange at `rest_url`.
pub fn build(
    config: &Config,
    rest_url: &str,
    governor: Arc<Governor>,
    market: Arc<dyn Market>,
    environment: &Environment,
) -> Result<Vec<Arc<dyn Tool>>> {
    if !config.enabled {
        return Ok(Vec::new());
    }
    config.check(Some(rest_url), &environment.config_dir)?;
    let read = |name: &str, text: &Option<String>| {
        secret(name, text.as_deref(), &environment.config_dir)?.read(&format!("market.trading.{name}"))
    };
    let upper = |names: &[String]| -> Vec<String> { names.iter().map(|name| name.to_uppercase()).collect() };
    let settings = Settings {
        limits: config.limits()?,
        waiting: config.confirm.map(|Confirm::Operator| WaitingOrders::new(&environment.data_dir)),
        quote_assets: config.order_quotes.as_deref().map_or(DEFAULT_QUOTES.map(str::to_owned).into(), upper),
        symbols: (!config.order_symbols.is_empty()).then(|| upper(&config.order_symbols)),
        journal: environment.data_dir.join("orders.jsonl"),
        stop_file: environment.data_dir.join("stop-orders"),
    };
    let signer = Signer::new(&read("api_key", &config.api_key)?, &read("api_secret", &config.api_secret)?);
    let rest = rest::Settings { base_url: rest_url.to_owned(), ..rest::Settings::default() };
    let rest = Rest::governed(rest, governor, environment.clock.clone()).map_err(exchange_error)?;
    tools(settings, signer.map_err(exchange_error)?, rest.with_priority(Priority::Order), market)
}

pub(crate) fn tools(
    settings: Settings,
    signer: Signer,
    rest: Rest,
    market: Arc<dyn Market>,
) -> Result<Vec<Arc<dyn Tool>>> {
    if !rest.is_private() {
        return Err(Error::invalid_argument(
            "[market.trading] needs an encrypted connection: market.rest_url must begin with https://",
        ));
    }
    Ok(tool::all(&Arc::new(TradingAccount::new(settings, signer, rest, market)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_settings_are_refused_with_the_fix() {
        for (text, expected) in [
            ("", "needs `max_order_notional`"),
            ("max_order_notional = \"50\"", "needs `api_key`"),
            ("max_order_notional = \"50\"\napi_key = \"abc\"", "write \"env:NAME\" or \"file:PATH\""),
            ("max_order_notional = \"0\"", "must be more than zero"),
            ("max_order_notional = \"50\"\nmax_daily_notional = \"0\"", "max_daily_notional = \"0\": must be more"),
            ("max_order_notional = \"50\"\nmax_orders_per_minute = 0", "max_orders_per_minute"),
        ] {
            let config: Config = toml::from_str(&format!("enabled = true\n{text}")).expect("TOML");
            let error = config.check(Some("https://api.binance.com"), Path::new("dir")).expect_err(text);
            assert!(error.message().contains(expected), "{error}");
        }
        for amount in ["fifty", "-50"] {
            let error = toml::from_str::<Config>(&format!("max_order_notional = \"{amount}\"")).expect_err(amount);
            assert!(error.message().contains("decimal number"), "{error}");
        }
        let off: Config = toml::from_str("api_key = \"abc\"").expect("TOML");
        assert!(off.check(None, Path::new("dir")).is_ok(), "nothing is needed while it is off");
    }

    #[test]
    fn orders_need_a_chosen_exchange() {
        let text = "enabled = true\nmax_order_notional = \"50\"\napi_key = \"env:K\"\napi_secret = \"env:S\"";
        let config: Config = toml::from_str(text).expect("TOML");
        let check = |url| config.check(url, Path::new("dir"));
        for url in [None, Some("https://data-api.binance.vision"), Some("https://data-api.binance.vision/")] {
            let error = check(url).expect_err("refused");
            assert!(error.message().contains("write rest_url = \"https://api.binance.com\""), "{error}");
        }
        assert!(check(Some("https://testnet.binance.vision")).is_ok());
    }
}
