//! `tribune serve`

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tribune_core::Source;
use tribune_server::Service;
use tribune_server::connect::Reach;
use tribune_server::service::NoChat;

use super::{config, plural, print, runtime, stop_signal};
use crate::cli::{Common, Serve};
use crate::compose::{Mode, compose};
use crate::config::Config;
use crate::{logging, metrics};

pub fn run(common: &Common, args: &Serve) -> anyhow::Result<ExitCode> {
    let _logs = logging::start(common)?;
    let config = config(common)?;
    let metrics = metrics::record()?;
    runtime()?.block_on(serve(&config, args, metrics))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(config: &Config, args: &Serve, metrics: PrometheusHandle) -> anyhow::Result<()> {
    anyhow::ensure!(
        tribune_server::HAS_CONFORMANCE || !args.conformance,
        "this binary has no conformance fixtures; build it with `cargo build --features conformance`"
    );
    let wanted = args.listen.unwrap_or(config.listen);
    let listener = TcpListener::bind(wanted).await.map_err(|error| cannot_listen(wanted, &error))?;
    let listen = listener.local_addr()?;
    let operators = match config.ops_listen {
        Some(address) => Some(TcpListener::bind(address).await.map_err(|error| cannot_listen(address, &error))?),
        None => None,
    };
    let parts = compose(config, config.settings(listen, args.conformance), Mode::Server)?;
    let (service, corpora) = (parts.service.clone(), parts.corpora.clone());
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    if let Some(open) = open_to_all(config, listen) {
        tracing::warn!("{open}");
    }
    if let Err(NoChat::Unusable(reason)) = &service.chat {
        tracing::error!("chat is off: {reason}");
    }
    for corpus in &corpora {
        // The last index serves at once; changes since are indexed in the background.
        if let Err(error) = corpus.refresh() {
            tracing::warn!(source = corpus.name(), %error, "the index cannot be opened yet");
        }
    }
    let running = parts.start().await?;
    // Not in `tribune stdio`, which may itself be started by one of those servers.
    parts.people.upstreams.start();
    print(&welcome(config, &service))?;
    stop_on_signal(service.clone());
    tribune_server::serve(service, listener, operators, Some(metrics)).await?;
    running.stop().await;
    tracing::info!("stopped");
    Ok(())
}

/// A warning for a server that other machines can reach and that serves anonymous callers.
fn open_to_all(config: &Config, listen: SocketAddr) -> Option<String> {
    let public = config.server.public_url.as_deref();
    let public = public.filter(|url| Reach::of(url) != Reach::ThisMachine);
    let reached_at = match public {
        _ if config.auth.required => return None,
        Some(url) => url.to_owned(),
        None if listen.ip().is_loopback() => return None,
        None => listen.to_string(),
    };
    Some(format!(
        "anyone who reaches {reached_at} can read shared data; personal data, the chat and tools that change something need a token (`tribune token create --user NAME`); set `required = true` in [auth] to require one for everything"
    ))
}

fn cannot_listen(wanted: SocketAddr, error: &std::io::Error) -> anyhow::Error {
    let (ip, port) = (wanted.ip(), wanted.port());
    let next = match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            let other = port.saturating_add(1);
            format!("another program has that port; stop it, or choose another: tribune serve --listen {ip}:{other}")
        }
        std::io::ErrorKind::AddrNotAvailable => {
            "that address is not this machine's; use 127.0.0.1 for this machine alone, or 0.0.0.0 for all its addresses"
                .to_owned()
        }
        std::io::ErrorKind::PermissionDenied => {
            "ports below 1024 need privileges; choose a higher one and put a proxy in front".to_owned()
        }
        _ => error.to_string(),
    };
    anyhow::anyhow!("cannot listen on {wanted}: {next}")
}

/// The first signal shuts down gracefully, the second exits at once.
pub fn stop_on_signal(service: Arc<Service>) {
    tokio::spawn(async move {
        stop_signal().await;
        tracing::info!(calls = service.calls.len(), "stopping after the running calls; a second signal stops at once");
        service.stopping.cancel();
        stop_signal().await;
        std::process::exit(130);
    });
}

const DEMO_NOTE: &str = "\
This is the demo, with sample documents and a SIMULATED exchange. For your own: `tribune init FOLDER`, then `tribune serve`.
`tribune connect chatgpt` shows what to paste into ChatGPT; Ctrl-C stops the server.";

/// What the operator needs in the first minute.
fn welcome(config: &Config, service: &Service) -> String {
    let base = service.links.base();
    let mut lines = vec![format!(
        "Tribune {} serves {}",
        env!("CARGO_PKG_VERSION"),
        plural(service.sources().len() as u64, "source")
    )];
    for source in service.sources() {
        let facts = source.facts();
        let state = match facts.counted() {
            _ if source.is_personal() => "per user".to_owned(),
            Some(count) => count,
            None if !source.readers().is_everybody() => "restricted".to_owned(),
            None => "loading".to_owned(),
        };
        lines.push(format!("  {:<14} {} ({state})", facts.name, facts.title));
    }
    if service.sources().is_empty() {
        lines.push("  no sources yet: add a [[sources]] table to the configuration".to_owned());
    }
    lines.extend([
        String::new(),
        format!("  listens on        http://{}", service.settings.listen),
        format!("  page for people   {base}/"),
        format!("  MCP address       {base}/mcp        (paste it into your MCP client)"),
        format!("  older clients     {base}/sse"),
    ]);
    lines.extend(config.ops_listen.map(|address| format!("  for operators     http://{address}/metrics")));
    if let Some(local) = &service.settings.local {
        lines.push(format!("  sign in as you    {}", local.link(base)));
        lines.push("                    (for what is yours alone; valid until Tribune stops)".to_owned());
    }
    if config.tasks {
        let chat = match &service.chat {
            Ok(chat) => format!("{base}/        (with {})", chat.agent.settings().model),
            Err(NoChat::Unconfigured) => "off: add a model to [agent] in the configuration".to_owned(),
            Err(NoChat::Unusable(reason)) => format!("off: {reason}"),
        };
        lines.push(format!("  chat              {chat}"));
    }
    lines.push(String::new());
    lines.push(match &config.file {
        Some(file) => {
            format!("Configured by {}. `tribune connect chatgpt` shows what to paste into ChatGPT.", file.display())
        }
        None => DEMO_NOTE.to_owned(),
    });
    lines.join("\n")
}
