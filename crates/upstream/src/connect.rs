//! The handshake in both eras of the protocol, and how Tribune finds out which one a server speaks.

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

use crate::child::{self, LastStderrLine};
use crate::http::{self, HttpError};
use crate::sanitize::single_line;
use crate::server::Era;
use crate::spec::{ServerSpec, Transport};

const MAX_REASON_CHARS: usize = 400;
const NOT_MCP: &str = "it answered with something that is not MCP";
const CLOSED_EARLY: &str = "it ended before it answered";
/// How long rmcp waits for an answer to `server/discover` before it sends `initialize` on the same connection.
const DISCOVER_TIMEOUT: Duration = Duration::from_secs(10);

/// A server that has completed the handshake.
pub(crate) struct Connection {
    pub service: RunningService<RoleClient, Client>,
    pub era: Era,
    /// Notified when the server announces a change of its tool list.
    pub list_changed: Arc<Notify>,
    pub last_stderr_line: LastStderrLine,
}

/// Why connecting failed, for the operator.
#[derive(Debug)]
pub(crate) struct Failure {
    pub reason: String,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Cannot be reached, or wants another token: another handshake would not help.
    Unreachable,
    /// Reached, but it timed out or closed the connection before answering.
    NoAnswer,
    /// It rejected the handshake.
    Rejected,
    /// It rejected the handshakes of both eras.
    RejectedBoth,
    /// It answered `server/discover` after rmcp had stopped waiting: slow to start, but modern.
    LateDiscover,
}

impl Failure {
    fn new(kind: Kind, reason: &str) -> Self {
        Self { reason: single_line(reason, MAX_REASON_CHARS), kind }
    }

    fn from_handshake(error: &ClientInitializeError) -> Self {
        match error {
            ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
                let mut failure = Self::from_handshake(fallback);
                if failure.is_rejection() {
                    failure.kind = Kind::RejectedBoth;
                }
                failure
            }
            ClientInitializeError::ConflictInitResponseId(..) => Self::new(Kind::LateDiscover, "it answered too late"),
            ClientInitializeError::ConnectionClosed(_) => Self::new(Kind::NoAnswer, CLOSED_EARLY),
            ClientInitializeError::TransportError { error, .. } => match http_error(error) {
                Some(error) if error.may_accept_other_handshake() => Self::new(Kind::Rejected, &error.to_string()),
                Some(error) => Self::new(Kind::Unreachable, &error.to_string()),
                // The child has closed its standard input.
                None if error.error.is::<std::io::Error>() => Self::new(Kind::NoAnswer, CLOSED_EARLY),
                None => Self::new(Kind::Rejected, NOT_MCP),
            },
            ClientInitializeError::JsonRpcError(error) => {
                Self::new(Kind::Rejected, &format!("it refused to connect: {}", error.message))
            }
            ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
                let versions: Vec<&str> = server_supported.iter().map(ProtocolVersion::as_str).collect();
                let reason = format!("it speaks only these versions of MCP: {}", versions.join(", "));
                Self::new(Kind::Rejected, &reason)
            }
            _ => Self::new(Kind::Rejected, NOT_MCP),
        }
    }

    pub(crate) fn is_rejection(&self) -> bool {
        matches!(self.kind, Kind::Rejected | Kind::RejectedBoth)
    }

    fn may_be_legacy(&self) -> bool {
        matches!(self.kind, Kind::NoAnswer | Kind::Rejected)
    }
}

/// Tribune as an MCP client. It sends nothing about the user.
pub(crate) struct Client {
    list_changed: Arc<Notify>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let tribune = Implementation::new("tribune", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), tribune)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.list_changed.notify_one();
    }
}

/// Uses the handshake of the server's era. While that is unknown, tries the modern handshake first, which legacy
/// servers reject, then the legacy one.
pub(crate) async fn connect(spec: &ServerSpec, era: Option<Era>) -> Result<Connection, Failure> {
    let modern = vec![ProtocolVersion::LATEST];
    let discover = ClientLifecycleMode::Discover { preferred_versions: modern.clone() };
    match era {
        Some(Era::Modern) => attempt(spec, discover).await,
        Some(Era::Legacy) => attempt(spec, ClientLifecycleMode::Initialize).await,
        None => {
            let auto = ClientLifecycleMode::Auto {
                preferred_versions: modern,
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            };
            match attempt(spec, auto).await {
                // Some legacy servers stop answering, or exit, after `server/discover`.
                Err(failure) if failure.may_be_legacy() => attempt(spec, ClientLifecycleMode::Initialize).await,
                Err(failure) if failure.kind == Kind::LateDiscover => attempt(spec, discover).await,
                other => other,
            }
        }
    }
}

async fn attempt(spec: &ServerSpec, lifecycle: ClientLifecycleMode) -> Result<Connection, Failure> {
    let list_changed = Arc::new(Notify::new());
    let client = Client { list_changed: Arc::clone(&list_changed) };
    // With this much time rmcp has tried `initialize` too.
    let tries_both = matches!(lifecycle, ClientLifecycleMode::Auto { .. }) && spec.timeout > DISCOVER_TIMEOUT * 2;
    let mut last_stderr_line = LastStderrLine::default();
    let handshake = match &spec.transport {
        Transport::Http(endpoint) => {
            let transport =
                http::transport(endpoint, spec.timeout).map_err(|reason| Failure::new(Kind::Unreachable, &reason))?;
            tokio::time::timeout(spec.timeout, client.serve_with_lifecycle(transport, lifecycle)).await
        }
        Transport::Stdio(command) => {
            let (transport, last_line) = child::spawn(&spec.name, command).map_err(|error| {
                let reason = format!("`{}` could not be started: {error}", command.program);
                Failure::new(Kind::Unreachable, &reason)
            })?;
            last_stderr_line = last_line;
            tokio::time::timeout(spec.timeout, client.serve_with_lifecycle(transport, lifecycle)).await
        }
    };
    let failure = match handshake {
        Ok(Ok(service)) => {
            // A cached list would hide that the tools have changed or the server is gone.
            service.set_response_cache_config(ClientCacheConfig::disabled()).await;
            return Ok(Connection { era: negotiated_era(&service), service, list_changed, last_stderr_line });
        }
        Ok(Err(error)) => Failure::from_handshake(&error),
        Err(_) if tries_both => Failure::new(Kind::Unreachable, "it did not answer in time"),
        Err(_) => Failure::new(Kind::NoAnswer, "it did not answer in time"),
    };
    let reason = last_stderr_line.append_to(&failure.reason).await;
    Err(Failure::new(failure.kind, &reason))
}

fn negotiated_era(service: &RunningService<RoleClient, Client>) -> Era {
    match service.peer_info() {
        Some(info) if !info.protocol_version.has_initialize() => Era::Modern,
        _ => Era::Legacy,
    }
}

fn http_error(error: &DynamicTransportError) -> Option<&HttpError> {
    match error.error.downcast_ref::<StreamableHttpError<HttpError>>() {
        Some(StreamableHttpError::Client(error)) => Some(error),
        _ => None,
    }
}

/// Why reading the tool list failed, for the operator.
pub(crate) fn list_failure(error: &ServiceError) -> String {
    let reason = match error {
        ServiceError::TransportSend(error) => match http_error(error) {
            Some(error) => error.to_string(),
            None => "the connection failed".to_owned(),
        },
        ServiceError::McpError(error) => format!("it could not list its tools: {}", error.message),
        ServiceError::TransportClosed => "the connection ended".to_owned(),
        _ => NOT_MCP.to_owned(),
    };
    single_line(&reason, MAX_REASON_CHARS)
}
