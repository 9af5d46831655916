//! `tribune sim`

use std::process::ExitCode;

use anyhow::bail;
use tribune_exchange_sim::{ApiKey, Mode, Settings, Simulation, start};

use super::{print, runtime, stop_signal};
use crate::cli::{Common, Sim};
use crate::logging;

pub fn run(common: &Common, args: &Sim) -> anyhow::Result<ExitCode> {
    let _logs = logging::start(common)?;
    if !args.listen.ip().is_loopback() {
        bail!("the simulator listens on loopback only; use --listen 127.0.0.1:{}", args.listen.port());
    }
    if !args.speed.is_finite() || args.speed < 0.0 {
        bail!("--speed {} is not a speed: 1 is the recorded pace, 0 is as fast as possible", args.speed);
    }
    let (mode, what) = if args.replay.is_empty() {
        let simulation = Simulation { seed: args.seed, ..Simulation::default() };
        (Mode::Simulated(simulation), format!("SIMULATED exchange, seed {}", args.seed))
    } else {
        let mode = Mode::Replay { files: args.replay.clone(), speed: args.speed };
        (mode, format!("SIMULATED exchange, replaying {} file(s)", args.replay.len()))
    };
    let api_keys = args.key.iter().map(|text| api_key(text)).collect::<anyhow::Result<_>>()?;
    runtime()?.block_on(async {
        let exchange = start(Settings {
            listen: args.listen,
            mode,
            api_keys,
            ..Settings::default()
        })
        .await?;
        print(&format!(
            "{what}\n\n  REST      {rest}\n  streams   {streams}\n  state     {rest}/sim/state\n\nIn tribune.toml:\n\n  [market]\n  rest_url = \"{rest}\"\n  stream_url = \"{streams}\"\n\nCtrl-C stops.\n",
            rest = exchange.rest_url(),
            streams = exchange.stream_url(),
        ))?;
        stop_signal().await;
        exchange.stop();
        anyhow::Ok(())
    })?;
    Ok(ExitCode::SUCCESS)
}

fn api_key(text: &str) -> anyhow::Result<ApiKey> {
    let Some((key, secret)) = text.split_once(':').filter(|(key, secret)| !key.is_empty() && !secret.is_empty()) else {
        bail!("--key needs a key and a secret of your choice, such as --key KEY:SECRET");
    };
    let balances = [("USDT", "100000"), ("BTC", "1")];
    Ok(ApiKey {
        key: key.to_owned(),
        secret: secret.to_owned(),
        balances: balances.map(|(asset, amount)| (asset.to_owned(), amount.to_owned())).to_vec(),
    })
}
