//! Settings of the server, with their defaults.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tribune_config::check_range;
use tribune_config::units::{MIB, mebibytes, secs};
use tribune_core::Result;
use tribune_limits::LimitSettings;
use tribune_limits::shared::SharedCounts;

use crate::local_proof::LocalProof;

/// `[server]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub listen: Option<String>,
    pub ops_listen: Option<String>,
    pub public_url: Option<String>,
    pub data_dir: Option<PathBuf>,
    pub auto_index: bool,
    pub watch: bool,
    /// Host names that the server accepts, besides loopback and the public address.
    pub allowed_hosts: Vec<String>,
    /// Origins whose pages may call the server from a browser.
    pub allowed_origins: Vec<String>,
    /// Whether clients of the `initialize` era get sessions.
    pub sessions: bool,
    #[serde(rename = "session_idle_secs", deserialize_with = "secs")]
    pub session_idle: Duration,
    pub max_sessions: usize,
    #[serde(rename = "max_body_mb", deserialize_with = "mebibytes")]
    pub max_body_bytes: usize,
    /// Timeout of a tool call.
    #[serde(rename = "call_timeout_secs", deserialize_with = "secs")]
    pub call_timeout: Duration,
    /// Timeout of one source in a search; the answer names it as missing.
    #[serde(rename = "source_timeout_secs", deserialize_with = "secs")]
    pub source_timeout: Duration,
    #[serde(rename = "keep_alive_secs", deserialize_with = "secs")]
    pub keep_alive: Duration,
    /// Maximum age of an HTTP+SSE connection; clients reconnect.
    #[serde(rename = "sse_max_secs", deserialize_with = "secs")]
    pub max_sse: Duration,
    /// How long running calls may take after a stop.
    #[serde(rename = "drain_secs", deserialize_with = "secs")]
    pub drain: Duration,
    /// Also put `results` at the top level of a tool result, for hosts of 2025.
    pub legacy_results: bool,
    /// The token for the profile `admin`. `None` closes it to the network.
    pub admin_token: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: None,
            ops_listen: None,
            public_url: None,
            data_dir: None,
            auto_index: true,
            watch: true,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            sessions: true,
            session_idle: Duration::from_secs(300),
            max_sessions: 2_000,
            max_body_bytes: 4 * MIB,
            call_timeout: Duration::from_secs(45),
            source_timeout: Duration::from_secs(10),
            keep_alive: Duration::from_secs(15),
            max_sse: Duration::from_secs(3600),
            drain: Duration::from_secs(25),
            legacy_results: false,
            admin_token: None,
        }
    }
}

impl Config {
    pub fn check(&self) -> Result<()> {
        check_range("server.keep_alive_secs", self.keep_alive.as_secs(), 1, 15)?;
        check_range("server.sse_max_secs", self.max_sse.as_secs(), 1, 3600)?;
        check_range("server.session_idle_secs", self.session_idle.as_secs(), 1, 86_400)?;
        check_range("server.call_timeout_secs", self.call_timeout.as_secs(), 1, 300)?;
        check_range("server.source_timeout_secs", self.source_timeout.as_secs(), 1, 300)?;
        check_range("server.max_sessions", self.max_sessions as u64, 1, 1_000_000)?;
        check_range("server.drain_secs", self.drain.as_secs(), 0, 600)?;
        check_range("server.max_body_mb", (self.max_body_bytes / MIB) as u64, 1, 64)
    }
}

#[derive(Debug, Clone)]
pub struct Settings {
    pub listen: SocketAddr,
    /// The public address, without a trailing slash.
    pub public_url: String,
    pub config: Config,
    /// How much callers and connections may take.
    pub limits: LimitSettings,
    /// Rates that are counted together with other nodes; `None`: alone.
    pub shared: Option<Arc<SharedCounts>>,
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
            config: Config::default(),
            limits: LimitSettings::default(),
            shared: None,
            local: None,
            auth_required: false,
            offers_oauth: false,
            conformance: false,
        }
    }
}
