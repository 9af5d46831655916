//! Settings of the server, with their defaults.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tribune_limits::LimitSettings;
use tribune_limits::shared::SharedCounts;

use crate::local_proof::LocalProof;

#[derive(Debug, Clone)]
pub struct Settings {
    pub listen: SocketAddr,
    /// The public address, without a trailing slash.
    pub public_url: String,
    /// Host names that the server accepts, besides loopback and the public address.
    pub allowed_hosts: Vec<String>,
    /// Origins whose pages may call the server from a browser.
    pub allowed_origins: Vec<String>,
    /// Whether clients of the `initialize` era get sessions.
    pub sessions: bool,
    pub session_idle: Duration,
    pub max_sessions: usize,
    pub max_body_bytes: usize,
    /// Timeout of a tool call.
    pub call_timeout: Duration,
    /// Timeout of one source in a search; the answer names it as missing.
    pub source_timeout: Duration,
    pub keep_alive: Duration,
    /// Maximum age of an HTTP+SSE connection; clients reconnect.
    pub max_sse: Duration,
    /// How much callers and connections may take.
    pub limits: LimitSettings,
    /// Rates that are counted together with other nodes; `None`: alone.
    pub shared: Option<Arc<SharedCounts>>,
    /// How long running calls may take after a stop.
    pub drain: Duration,
    /// Also put `results` at the top level of a tool result, for hosts of 2025.
    pub legacy_results: bool,
    /// The token for the profile `admin`. `None` closes it to the network.
    pub admin_token: Option<String>,
    /// How the person at this machine is known. `None`: not at all.
    pub local: Option<LocalProof>,
    /// Whether anonymous callers are refused.
    pub auth_required: bool,
    /// Whether hosts can get tokens by themselves, from this server or another issuer.
    pub offers_oauth: bool,
    /// Serve the fixtures of the protocol's conformance suite, where they are compiled in: [`crate::HAS_CONFORMANCE`].
    pub conformance: bool,
}

impl Settings {
    pub fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            public_url: format!("http://{listen}"),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            sessions: true,
            session_idle: Duration::from_secs(300),
            max_sessions: 2_000,
            max_body_bytes: 4 * 1024 * 1024,
            call_timeout: Duration::from_secs(45),
            source_timeout: Duration::from_secs(10),
            keep_alive: Duration::from_secs(15),
            max_sse: Duration::from_secs(3600),
            limits: LimitSettings::default(),
            shared: None,
            drain: Duration::from_secs(25),
            legacy_results: false,
            admin_token: None,
            local: None,
            auth_required: false,
            offers_oauth: false,
            conformance: false,
        }
    }
}
