//! What can be set about serving, with its defaults.

use std::net::SocketAddr;
use std::time::Duration;

#[derive(Debug, Clone)]
pub struct Settings {
    pub listen: SocketAddr,
    /// The address people and hosts reach this server at, without a slash at the end.
    pub public_url: String,
    /// Further names the server answers to, beside loopback and the public address.
    pub allowed_hosts: Vec<String>,
    /// Further origins whose pages may call it from a browser.
    pub allowed_origins: Vec<String>,
    /// Whether clients of the `initialize` era get sessions.
    pub sessions: bool,
    pub session_idle: Duration,
    pub max_sessions: usize,
    pub max_body_bytes: usize,
    /// A tool call that takes longer is answered with an error.
    pub call_timeout: Duration,
    /// A source that takes longer is left out of a search, which says so.
    pub source_timeout: Duration,
    pub keep_alive: Duration,
    /// An HTTP+SSE connection is closed after this long; clients connect again.
    pub max_sse: Duration,
    /// On stop, calls under way get this long to finish.
    pub drain: Duration,
    /// Also put `results` at the top level of a tool result, for hosts of 2025 that look there.
    pub legacy_results: bool,
    /// What callers of the profile `admin` must show. Without one it is closed to the network.
    pub admin_token: Option<String>,
    /// Whether nobody is served who has not said who they are.
    pub auth_required: bool,
    /// Serve the fixtures of the protocol's conformance suite.
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
            drain: Duration::from_secs(25),
            legacy_results: false,
            admin_token: None,
            auth_required: false,
            conformance: false,
        }
    }
}
