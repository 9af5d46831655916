//! The handshake in both eras of the protocol, and which one a server speaks.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rmcp::ClientHandler;
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProtocolVersion};
use rmcp::service::{
    ClientCacheConfig, ClientInitializeError, ClientLifecycleMode, ClientServiceExt, NotificationContext, RoleClient,
    RunningService, ServiceError,
};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use tokio::sync::Notify;

use crate::child::{self, Epitaph};
use crate::http::{self, Trouble};
use crate::server::Era;
use crate::spec::{Reach, ServerSpec};
use crate::words::line;

const MAX_REASON_CHARS: usize = 400;
/// How long rmcp waits for a first word in the modern era before it tries the old one on the same connection.
const DISCOVER_PATIENCE: Duration = Duration::from_secs(10);

/// A server that has answered.
pub(crate) struct Connection {
    pub running: RunningService<RoleClient, Listener>,
    pub era: Era,
    /// The server has said that its list of tools is another now.
    pub changed: Arc<Notify>,
    pub epitaph: Epitaph,
}

/// Why there is no connection, for the operator.
#[derive(Debug)]
pub(crate) struct Failure {
    reason: String,
    /// It was there, and did not like how it was spoken to.
    pub speaks_otherwise: bool,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

/// What we tell servers of ourselves, which is nothing about users, and what we hear from them.
pub(crate) struct Listener {
    changed: Arc<Notify>,
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        let us = Implementation::new("tribune", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), us)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

/// Connects as the server is known to want it; one that is not known is asked in the modern way first, which
/// old servers refuse, and then in the old way.
pub(crate) async fn connect(spec: &ServerSpec, known: Option<Era>) -> Result<Connection, Failure> {
    let auto = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    };
    let discover = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::LATEST],
    };
    match known {
        Some(Era::Modern) => attempt(spec, discover).await,
        Some(Era::Legacy) => attempt(spec, ClientLifecycleMode::Initialize).await,
        None => match attempt(spec, auto).await {
            // Some that are older take the modern question for a reason to say nothing more, or to end.
            Err(failure) if failure.speaks_otherwise => attempt(spec, ClientLifecycleMode::Initialize).await,
            other => other,
        },
    }
}

async fn attempt(spec: &ServerSpec, lifecycle: ClientLifecycleMode) -> Result<Connection, Failure> {
    let changed = Arc::new(Notify::new());
    let listener = Listener {
        changed: Arc::clone(&changed),
    };
    let fell_back = lifecycle_falls_back(&lifecycle) && spec.timeout > DISCOVER_PATIENCE;
    let (handshake, epitaph) = match &spec.reach {
        Reach::Url { url, bearer } => {
            let transport = http::transport(url, bearer.as_deref(), spec.timeout).map_err(unreachable)?;
            let handshake = listener.serve_with_lifecycle(transport, lifecycle);
            (tokio::time::timeout(spec.timeout, handshake).await, Epitaph::default())
        }
        reach @ Reach::Command { program, .. } => {
            let (transport, epitaph) = child::spawn(&spec.name, reach)
                .map_err(|error| unreachable(format!("`{program}` could not be started: {error}")))?;
            let handshake = listener.serve_with_lifecycle(transport, lifecycle);
            (tokio::time::timeout(spec.timeout, handshake).await, epitaph)
        }
    };
    let running = match handshake {
        Ok(Ok(running)) => running,
        Ok(Err(error)) => return Err(failure(&error, &epitaph)),
        Err(_) => {
            return Err(Failure {
                reason: epitaph.text("it did not answer in time"),
                speaks_otherwise: !fell_back,
            });
        }
    };
    // Lists are read when they may have changed: a stored one would hide that, or that the server is gone.
    running.set_response_cache_config(ClientCacheConfig::disabled()).await;
    Ok(Connection {
        era: era(&running),
        running,
        changed,
        epitaph,
    })
}

fn lifecycle_falls_back(lifecycle: &ClientLifecycleMode) -> bool {
    matches!(lifecycle, ClientLifecycleMode::Auto { .. })
}

fn era(running: &RunningService<RoleClient, Listener>) -> Era {
    match running.peer_info() {
        Some(info) if !info.protocol_version.has_initialize() => Era::Modern,
        _ => Era::Legacy,
    }
}

fn unreachable(reason: String) -> Failure {
    Failure {
        reason: line(&reason, MAX_REASON_CHARS),
        speaks_otherwise: false,
    }
}

fn failure(error: &ClientInitializeError, epitaph: &Epitaph) -> Failure {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            let last = failure(fallback, epitaph);
            Failure {
                speaks_otherwise: false,
                ..last
            }
        }
        ClientInitializeError::ConnectionClosed(_) => otherwise(epitaph.text("it ended before it answered")),
        ClientInitializeError::TransportError { error, .. } => of_transport(error, epitaph),
        ClientInitializeError::JsonRpcError(said) => otherwise(format!("it refused to connect: {}", said.message)),
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<&str> = server_supported.iter().map(ProtocolVersion::as_str).collect();
            otherwise(format!("it speaks only these versions of MCP: {}", versions.join(", ")))
        }
        _ => otherwise("it answered with something that is not MCP".to_owned()),
    }
}

fn otherwise(reason: String) -> Failure {
    Failure {
        reason: line(&reason, MAX_REASON_CHARS),
        speaks_otherwise: true,
    }
}

fn of_transport(error: &DynamicTransportError, epitaph: &Epitaph) -> Failure {
    match trouble_in(error) {
        Some(trouble) => Failure {
            reason: line(&trouble.to_string(), MAX_REASON_CHARS),
            speaks_otherwise: trouble.is_an_answer(),
        },
        None if error.error.downcast_ref::<std::io::Error>().is_some() => {
            otherwise(epitaph.text("it ended before it answered"))
        }
        None => otherwise("it answered with something that is not MCP".to_owned()),
    }
}

fn trouble_in(error: &DynamicTransportError) -> Option<&Trouble> {
    match error.error.downcast_ref::<StreamableHttpError<Trouble>>() {
        Some(StreamableHttpError::Client(trouble)) => Some(trouble),
        _ => None,
    }
}

/// Why something failed that had been connected, for the operator.
pub(crate) fn reason_of(error: &ServiceError) -> String {
    let reason = match error {
        ServiceError::TransportSend(error) => match trouble_in(error) {
            Some(trouble) => trouble.to_string(),
            None => "the connection failed".to_owned(),
        },
        ServiceError::McpError(said) => format!("it does not say which tools it has: {}", said.message),
        ServiceError::TransportClosed => "the connection ended".to_owned(),
        _ => "it answered with something that is not MCP".to_owned(),
    };
    line(&reason, MAX_REASON_CHARS)
}
