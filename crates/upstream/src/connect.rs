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

use crate::child::{self, LastWords};
use crate::http::{self, Trouble};
use crate::server::Era;
use crate::spec::{Reach, ServerSpec};
use crate::words::line;

const MAX_REASON_CHARS: usize = 400;
const NOT_MCP: &str = "it answered with something that is not MCP";
/// How long rmcp waits for a first word in the modern era before it tries the old one on the same connection.
const DISCOVER_PATIENCE: Duration = Duration::from_secs(10);

/// A server that has answered.
pub(crate) struct Connection {
    pub running: RunningService<RoleClient, Listener>,
    pub era: Era,
    /// The server has said that its list of tools is another now.
    pub changed: Arc<Notify>,
    pub last_words: LastWords,
}

/// Why there is no connection, for the operator.
#[derive(Debug)]
pub(crate) struct Failure {
    reason: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Nobody is there, or nobody who would talk to us.
    Absent,
    /// Somebody was there and said nothing.
    Silent,
    /// Somebody did not like how they were spoken to.
    Refusal,
    /// The same, after both ways have been tried.
    FinalRefusal,
    /// Somebody answered the modern question after rmcp had ceased to wait for it: slow to start, not old.
    Late,
}

impl Failure {
    fn new(kind: Kind, reason: &str) -> Self {
        Self {
            reason: line(reason, MAX_REASON_CHARS),
            kind,
        }
    }

    pub(crate) fn is_refusal(&self) -> bool {
        matches!(self.kind, Kind::Refusal | Kind::FinalRefusal)
    }

    fn may_like_the_old_way(&self) -> bool {
        matches!(self.kind, Kind::Silent | Kind::Refusal)
    }
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
    let modern = vec![ProtocolVersion::LATEST];
    let discover = ClientLifecycleMode::Discover {
        preferred_versions: modern.clone(),
    };
    match known {
        Some(Era::Modern) => attempt(spec, discover).await,
        Some(Era::Legacy) => attempt(spec, ClientLifecycleMode::Initialize).await,
        None => {
            let auto = ClientLifecycleMode::Auto {
                preferred_versions: modern,
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            };
            match attempt(spec, auto).await {
                // Some take the modern question for a reason to say nothing more, or to end.
                Err(failure) if failure.may_like_the_old_way() => attempt(spec, ClientLifecycleMode::Initialize).await,
                Err(failure) if failure.kind == Kind::Late => attempt(spec, discover).await,
                other => other,
            }
        }
    }
}

async fn attempt(spec: &ServerSpec, lifecycle: ClientLifecycleMode) -> Result<Connection, Failure> {
    let changed = Arc::new(Notify::new());
    let listener = Listener {
        changed: Arc::clone(&changed),
    };
    // With that much time the old way has been tried on the same connection.
    let tries_both = matches!(lifecycle, ClientLifecycleMode::Auto { .. }) && spec.timeout > DISCOVER_PATIENCE * 2;
    let (handshake, last_words) = match &spec.reach {
        Reach::Url { url, bearer } => {
            let transport = http::transport(url, bearer.as_deref(), spec.timeout)
                .map_err(|reason| Failure::new(Kind::Absent, &reason))?;
            let handshake = listener.serve_with_lifecycle(transport, lifecycle);
            (
                tokio::time::timeout(spec.timeout, handshake).await,
                LastWords::default(),
            )
        }
        reach @ Reach::Command { program, .. } => {
            let (transport, last_words) = child::spawn(&spec.name, reach)
                .map_err(|error| Failure::new(Kind::Absent, &format!("`{program}` could not be started: {error}")))?;
            let handshake = listener.serve_with_lifecycle(transport, lifecycle);
            (tokio::time::timeout(spec.timeout, handshake).await, last_words)
        }
    };
    let failure = match handshake {
        Ok(Ok(running)) => {
            // Lists are read when they may have changed: a stored one would hide that, or that the server is gone.
            running.set_response_cache_config(ClientCacheConfig::disabled()).await;
            return Ok(Connection {
                era: era(&running),
                running,
                changed,
                last_words,
            });
        }
        Ok(Err(error)) => failure(&error),
        Err(_) if tries_both => Failure::new(Kind::Absent, "it did not answer in time"),
        Err(_) => Failure::new(Kind::Silent, "it did not answer in time"),
    };
    Err(Failure::new(failure.kind, &last_words.after(&failure.reason).await))
}

fn era(running: &RunningService<RoleClient, Listener>) -> Era {
    match running.peer_info() {
        Some(info) if !info.protocol_version.has_initialize() => Era::Modern,
        _ => Era::Legacy,
    }
}

fn failure(error: &ClientInitializeError) -> Failure {
    match error {
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            let last = failure(fallback);
            let kind = if last.is_refusal() {
                Kind::FinalRefusal
            } else {
                last.kind
            };
            Failure { kind, ..last }
        }
        ClientInitializeError::ConflictInitResponseId(..) => Failure::new(Kind::Late, "it answered too late"),
        ClientInitializeError::ConnectionClosed(_) => Failure::new(Kind::Silent, "it ended before it answered"),
        ClientInitializeError::TransportError { error, .. } => of_transport(error),
        ClientInitializeError::JsonRpcError(said) => {
            Failure::new(Kind::Refusal, &format!("it refused to connect: {}", said.message))
        }
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<&str> = server_supported.iter().map(ProtocolVersion::as_str).collect();
            let versions = versions.join(", ");
            Failure::new(
                Kind::Refusal,
                &format!("it speaks only these versions of MCP: {versions}"),
            )
        }
        _ => Failure::new(Kind::Refusal, NOT_MCP),
    }
}

fn of_transport(error: &DynamicTransportError) -> Failure {
    match trouble_in(error) {
        Some(trouble) if trouble.is_an_answer() => Failure::new(Kind::Refusal, &trouble.to_string()),
        Some(trouble) => Failure::new(Kind::Absent, &trouble.to_string()),
        // A pipe that nobody reads any more.
        None if error.error.is::<std::io::Error>() => Failure::new(Kind::Silent, "it ended before it answered"),
        None => Failure::new(Kind::Refusal, NOT_MCP),
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
        _ => NOT_MCP.to_owned(),
    };
    line(&reason, MAX_REASON_CHARS)
}
