//! Runs the exchange until it is interrupted: `cargo run -p tribune-exchange-sim --example exchange -- 127.0.0.1:9443`.
//! Files after the address are replayed instead. Key `key` with secret `secret` may trade.

#![allow(clippy::disallowed_methods, reason = "tests use the machine's clock")]

use std::path::PathBuf;

use tribune_exchange_sim::{ApiKey, Mode, Settings, start};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let listen = arguments.next().unwrap_or_else(|| "127.0.0.1:9443".to_owned()).parse()?;
    let files: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    let mut settings = Settings {
        listen,
        api_keys: vec![ApiKey {
            key: "key".to_owned(),
            secret: "secret".to_owned(),
            balances: vec![("USDT".to_owned(), "100000".to_owned()), ("BTC".to_owned(), "1".to_owned())],
        }],
        ..Settings::default()
    };
    if !files.is_empty() {
        settings.mode = Mode::Replay { files, speed: 1.0 };
    }
    let exchange = start(settings).await?;
    eprintln!("{} {}", exchange.rest_url(), exchange.stream_url());
    tokio::signal::ctrl_c().await?;
    exchange.stop();
    Ok(())
}
