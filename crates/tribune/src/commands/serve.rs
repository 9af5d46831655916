//! `tribune serve`

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tribune_core::Source;
use tribune_corpus::DocumentsSource;
use tribune_server::Service;
use tribune_server::service::NoChat;

use super::{config, plural, print, runtime, stop_asked};
use crate::cli::{Common, Serve};
use crate::compose::{Stay, compose};
use crate::config::Config;
use crate::follow::{follow, keep_fresh, log};
use crate::logging;

pub fn run(common: &Common, args: &Serve) -> anyhow::Result<ExitCode> {
    let _logs = logging::start(common)?;
    let (config, _demo) = config(common)?;
    let metrics = record_metrics()?;
    runtime()?.block_on(serve(&config, args, metrics))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(config: &Config, args: &Serve, metrics: PrometheusHandle) -> anyhow::Result<()> {
    let wanted = args.listen.unwrap_or(config.listen);
    let listener = TcpListener::bind(wanted)
        .await
        .map_err(|error| cannot_listen(wanted, &error))?;
    let listen = listener.local_addr()?;
    let parts = compose(config, config.settings(listen, args.conformance))?;
    let (service, corpora) = (parts.service.clone(), parts.corpora.clone());
    for warning in &config.warnings {
        tracing::warn!("{warning}");
    }
    if let Some(open) = open_to_all(config, listen) {
        tracing::warn!("{open}");
    }
    for corpus in &corpora {
        // What was indexed before serves at once; what changed since comes behind it.
        if let Err(error) = corpus.refresh() {
            tracing::warn!(source = corpus.name(), %error, "the index cannot be opened yet");
        }
    }
    let begun = parts.begin(Stay::Serving).await?;
    // Only where somebody can chat: a client that starts `tribune stdio` may be one of those servers itself.
    parts.people.upstreams.start();
    print(&welcome(config, &service))?;
    let work = CancellationToken::new();
    keep_indexed(config, &corpora, &work);
    stop_on_signal(service.clone());
    tribune_server::serve(service, listener, Some(metrics)).await?;
    work.cancel();
    begun.end().await;
    tracing::info!("stopped");
    Ok(())
}

/// What whoever starts a server that others reach should know, unless it serves known users alone.
fn open_to_all(config: &Config, listen: SocketAddr) -> Option<String> {
    let public = config.public_url.as_deref().filter(|url| !is_of_this_machine(url));
    let reached_at = match public {
        _ if config.auth_required => return None,
        Some(url) => url.to_owned(),
        None if listen.ip().is_loopback() => return None,
        None => listen.to_string(),
    };
    Some(format!(
        "anyone who reaches {reached_at} can read what belongs to nobody in particular, and nothing else: tasks, the chat and all that changes something need a token (`tribune token create --user NAME`); `required = true` in [auth] closes the rest too"
    ))
}

fn is_of_this_machine(url: &str) -> bool {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest);
    ["localhost", "127.0.0.1", "[::1]"].iter().any(|name| {
        host.strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([':', '/']))
    })
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

/// Brings every index up to date in the background, follows the folders, and serves what is committed.
pub fn keep_indexed(config: &Config, corpora: &[Arc<DocumentsSource>], work: &CancellationToken) {
    for corpus in corpora {
        tokio::spawn(keep_fresh(corpus.clone(), work.clone()));
        if config.auto_index {
            tokio::spawn(follow(corpus.clone(), config.watch, work.clone(), Arc::new(log)));
        }
    }
}

/// The first signal stops in good order, the second at once.
pub fn stop_on_signal(service: Arc<Service>) {
    tokio::spawn(async move {
        stop_asked().await;
        tracing::info!(
            calls = service.calls.len(),
            "stopping: calls under way are finished first"
        );
        service.stopping.cancel();
        stop_asked().await;
        std::process::exit(130);
    });
}

fn record_metrics() -> anyhow::Result<PrometheusHandle> {
    const SECONDS: [f64; 12] = [
        0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 2.0, 10.0,
    ];
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
        .install_recorder()?;
    metrics::describe_counter!("tribune_tool_calls_total", "Tool calls by tool and outcome");
    metrics::describe_histogram!(
        "tribune_tool_call_seconds",
        metrics::Unit::Seconds,
        "How long tool calls took"
    );
    metrics::describe_gauge!("tribune_tool_calls_in_flight", "Tool calls under way");
    metrics::describe_gauge!("tribune_sessions", "Open sessions of the initialize era");
    metrics::describe_gauge!("tribune_sse_streams", "Open HTTP+SSE connections");
    metrics::describe_counter!(
        "tribune_upstream_requests_total",
        "Requests to the exchange by endpoint and outcome"
    );
    metrics::describe_gauge!(
        "tribune_upstream_weight_used",
        "Request weight used in this minute of the exchange"
    );
    metrics::describe_gauge!("tribune_books", "Order books that are kept");
    metrics::describe_counter!("tribune_book_resyncs_total", "Order books that had to be started again");
    metrics::describe_counter!(
        "tribune_feed_disconnects_total",
        "Connections to the exchange that were lost"
    );
    metrics::describe_counter!(
        "tribune_feed_resubscriptions_total",
        "Symbols whose streams went silent and were subscribed to again"
    );
    metrics::describe_counter!(
        "tribune_feed_unreadable_total",
        "Messages of the exchange that could not be read"
    );
    metrics::describe_histogram!(
        "tribune_report_age_seconds",
        metrics::Unit::Seconds,
        "How old the data of market reports was when they were read"
    );
    metrics::describe_histogram!(
        "tribune_report_compute_seconds",
        metrics::Unit::Seconds,
        "How long one market report took to compute"
    );
    metrics::describe_histogram!(
        "tribune_report_cache_seconds",
        metrics::Unit::Seconds,
        "How long the cache of reports took, by operation and outcome"
    );
    metrics::describe_gauge!(
        "tribune_report_cache_breaker_open",
        "1 while the cache of reports is left alone after failures"
    );
    metrics::describe_counter!(
        "tribune_report_lease_changes_total",
        "Symbols whose reports this process began or ceased to write"
    );
    metrics::describe_gauge!(
        "tribune_report_symbols_written",
        "Symbols whose reports this process writes"
    );
    metrics::describe_counter!("tribune_chat_turns_total", "Questions to the agent by outcome");
    metrics::describe_histogram!(
        "tribune_chat_turn_seconds",
        metrics::Unit::Seconds,
        "How long the agent took to answer"
    );
    metrics::describe_counter!("tribune_model_requests_total", "Requests to the model by outcome");
    metrics::describe_histogram!(
        "tribune_model_request_seconds",
        metrics::Unit::Seconds,
        "How long requests to the model took"
    );
    metrics::describe_gauge!("tribune_source_ready", "1 if the source can answer");
    metrics::describe_gauge!("tribune_source_documents", "Documents the source holds");
    Ok(handle)
}

/// What a person needs in the first minute.
fn welcome(config: &Config, service: &Service) -> String {
    let base = service.links.base();
    let mut text = String::new();
    let mut line = |words: String| {
        text.push_str(&words);
        text.push('\n');
    };
    line(format!(
        "Tribune {} serves {}",
        env!("CARGO_PKG_VERSION"),
        plural(service.sources().len() as u64, "source")
    ));
    for source in service.sources() {
        let facts = source.facts();
        let state = match facts.counted() {
            _ if source.is_personal() => "to every user their own".to_owned(),
            Some(count) => count,
            None => "being prepared".to_owned(),
        };
        line(format!("  {:<14} {} ({state})", facts.name, facts.title));
    }
    if service.sources().is_empty() {
        line("  no sources yet: add a [[sources]] table to the configuration".to_owned());
    }
    line(String::new());
    line(format!("  listens on        http://{}", service.settings.listen));
    line(format!("  page for people   {base}/"));
    line(format!(
        "  MCP address       {base}/mcp        (paste it into your MCP client)"
    ));
    line(format!("  older clients     {base}/sse"));
    if config.tasks {
        line(match &service.chat {
            Ok(chat) => format!(
                "  chat              {base}/        (with {})",
                chat.agent.settings().model
            ),
            Err(NoChat::Unconfigured) => "  chat              needs a model: [agent] in the configuration".to_owned(),
            Err(NoChat::Unusable(reason)) => format!("  chat              cannot be used: {reason}"),
        });
    }
    line(String::new());
    match &config.file {
        Some(file) => line(format!(
            "Configured by {}. `tribune connect chatgpt` says what to paste where.",
            file.display()
        )),
        None => {
            line(
                "This is the demo, with sample documents and a SIMULATED exchange. For your own: `tribune init FOLDER`, then `tribune serve`."
                    .to_owned(),
            );
            line("`tribune connect chatgpt` says what to paste where; Ctrl-C stops.".to_owned());
        }
    }
    text
}
