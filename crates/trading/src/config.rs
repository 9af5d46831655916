//! `[market.trading]`: the account and order tools exist only with all of it.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;
use tribune_binance::number::Notional;
use tribune_binance::rest::{self, Governor, Rest};
use tribune_core::{Environment, Error, Result, Secret, Tool};
use tribune_market_parts::exchange_error;

use crate::{MARKET_DATA_ONLY, Market, Settings, tools};

/// Where accounts are while public data comes from [`MARKET_DATA_ONLY`].
const ACCOUNTS: &str = "https://api.binance.com";

/// `[market.trading]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub enabled: bool,
    pub api_key: Option<String>,
    pub api_secret: Option<String>,
    pub max_order_notional: Option<String>,
    /// Empty for all.
    pub order_symbols: Vec<String>,
    pub order_quotes: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            enabled: false,
            api_key: None,
            api_secret: None,
            max_order_notional: None,
            order_symbols: Vec::new(),
            order_quotes: ["USDT", "USDC", "FDUSD"].map(str::to_owned).to_vec(),
        }
    }
}

impl Config {
    /// Finds settings that cannot be meant, without reading the secrets.
    pub fn check(&self, config_dir: &Path) -> Result<()> {
        if !self.enabled {
            return Ok(());
        }
        self.cap()?;
        secret("api_key", self.api_key.as_deref(), config_dir)?;
        secret("api_secret", self.api_secret.as_deref(), config_dir).map(drop)
    }

    fn cap(&self) -> Result<Notional> {
        let text = self.max_order_notional.as_deref().ok_or_else(|| {
            Error::invalid_argument(
                "market.trading.enabled = true needs `max_order_notional`: the most that one order may be worth in its quote asset, such as \"50\"",
            )
        })?;
        let refused =
            |reason: &str| Error::invalid_argument(format!("market.trading.max_order_notional = \"{text}\": {reason}"));
        // A number with a sign is refused as too small, not as unreadable.
        let digits = text.trim_start_matches('-');
        match Notional::parse(digits) {
            Err(error) => Err(refused(&error.to_string())),
            Ok(amount) if digits == text && amount > Notional::ZERO => Ok(amount),
            Ok(_) => Err(refused("must be more than zero, such as \"50\"")),
        }
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
    let read = |name: &str, text: &Option<String>| {
        secret(name, text.as_deref(), &environment.config_dir)?.read(&format!("market.trading.{name}"))
    };
    let upper = |names: &[String]| -> Vec<String> { names.iter().map(|name| name.to_uppercase()).collect() };
    let settings = Settings {
        api_key: read("api_key", &config.api_key)?,
        api_secret: read("api_secret", &config.api_secret)?,
        max_order_notional: config.cap()?,
        quote_assets: upper(&config.order_quotes),
        symbols: (!config.order_symbols.is_empty()).then(|| upper(&config.order_symbols)),
        journal: environment.data_dir.join("orders.jsonl"),
    };
    let is_public = rest_url.strip_prefix("https://") == Some(MARKET_DATA_ONLY);
    let rest = rest::Settings {
        base_url: if is_public { ACCOUNTS } else { rest_url }.to_owned(),
        ..rest::Settings::default()
    };
    let rest = Rest::governed(rest, governor, environment.clock.clone()).map_err(exchange_error)?;
    tools(settings, rest.for_orders(), market)
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
            ("max_order_notional = \"fifty\"", "not a decimal number"),
            ("max_order_notional = \"-50\"", "must be more than zero"),
            ("max_order_notional = \"0\"", "must be more than zero"),
        ] {
            let config: Config = toml::from_str(&format!("enabled = true\n{text}")).expect("TOML");
            let error = config.check(Path::new("dir")).expect_err(text);
            assert!(error.message().contains(expected), "{error}");
        }
        let off: Config = toml::from_str("api_key = \"abc\"").expect("TOML");
        assert!(off.check(Path::new("dir")).is_ok(), "nothing is needed while it is off");
    }
}
