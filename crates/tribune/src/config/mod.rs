//! The configuration: a commented TOML file, variables such as `TRIBUNE_SERVER_LISTEN`, flags. Flags win,
//! then the environment, then the file.
//!
//! - [`file`]: the file as it is written;
//! - [`exposed`]: warnings of secrets that others could read;
//! - [`sources`]: `[[sources]]`, one variant per kind;
//! - [`variables`]: environment variables over the file;
//! - here: the whole, checked.

mod audit;
mod exposed;
mod file;
mod sources;
#[cfg(test)]
mod tests;
mod variables;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use tribune_config::Secret;
use tribune_corpus::EmbedderChoice;
use tribune_limits::{LimitSettings, Proxies};
use tribune_market_resolve::id::MarketId;
use tribune_server::audit::AuditSettings;
use tribune_server::connect::Reach;
use tribune_server::{ProfileSpec, Settings};
use tribune_storage::Backend;

use crate::demo::{self, Demo};
use file::Parsed;
pub use file::{AgentTable, MarketConfig};
pub use sources::SourceConfig;
use variables::Variables;

pub const DEFAULT_FILE: &str = "tribune.toml";

/// Names that are part of addresses.
const RESERVED_NAMES: [&str; 5] = ["admin", "default", "full", "research", "messages"];

/// Profiles that the configuration may replace.
const BUILT_IN_PROFILES: [&str; 3] = ["default", "full", "research"];

/// The source names of the market and its reports, and the scheme of report ids.
const MARKET_NAMES: [&str; 3] = [tribune_market::NAME, tribune_reports::NAME, "report"];

/// The source name of tasks, and the scheme of their ids.
const TASK_NAMES: [&str; 2] = [tribune_tasks::NAME, tribune_tasks::SCHEME];

/// A configuration that has been checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// `None` for the demo.
    pub file: Option<PathBuf>,
    /// What the demo runs on.
    pub demo: Option<Arc<Demo>>,
    /// Relative paths start here.
    pub dir: PathBuf,
    pub listen: SocketAddr,
    /// Where operators ask for health, readiness and metrics, beside `listen`.
    pub ops_listen: Option<SocketAddr>,
    pub data_dir: PathBuf,
    /// `[server]`, with a checked public address and the administrator's token itself.
    pub server: tribune_server::Config,
    /// The default model of sources.
    pub embedder: EmbedderChoice,
    pub sources: Vec<SourceConfig>,
    /// Kind and name of each of `sources`.
    pub source_names: Vec<(String, String)>,
    pub profiles: Vec<ProfileSpec>,
    pub market: Option<MarketConfig>,
    pub cache: tribune_reports::Config,
    pub store: Backend,
    /// Whether users have data of their own, such as tasks: where a store or an agent is configured, and in the demo.
    pub tasks: bool,
    pub agent: Option<AgentTable>,
    /// Who may use the server, and how people sign in.
    pub auth: file::Auth,
    /// How much callers and connections may take.
    pub limits: LimitSettings,
    /// What the audit log keeps; `None` if there is to be none.
    pub audit: Option<AuditSettings>,
    /// Settings that have no effect, and secrets that others could read.
    pub warnings: Vec<String>,
}

impl Config {
    /// The named file, or the one in the current folder; `None` means the demo.
    pub fn load(named: Option<&Path>) -> anyhow::Result<Option<Self>> {
        let path = match named {
            Some(path) => path.to_owned(),
            None if Path::new(DEFAULT_FILE).exists() => PathBuf::from(DEFAULT_FILE),
            None => return Ok(None),
        };
        let text = std::fs::read_to_string(&path).map_err(|error| {
            anyhow!("cannot read the configuration {} ({error}); `tribune init` writes a new one", path.display())
        })?;
        Self::parse(&text, &path, &variables::variables()).map(Some)
    }

    /// The defaults, for commands that bring their own data.
    pub fn defaults() -> anyhow::Result<Self> {
        Self::parse("", Path::new(DEFAULT_FILE), &variables::variables())
    }

    pub fn parse(text: &str, path: &Path, variables: &Variables) -> anyhow::Result<Self> {
        let parsed = file::parse(text, path, variables)?;
        let dir = path.parent().unwrap_or(Path::new(""));
        Self::from_file(parsed, Some(path.to_owned()), dir).with_context(|| path.display().to_string())
    }

    /// The demo, on a temporary data folder, whatever the environment says.
    pub fn demo() -> anyhow::Result<Self> {
        let demo = Demo::new()?;
        let mut variables = variables::variables();
        variables.retain(|name, _| name != "TRIBUNE_SERVER_DATA_DIR" && name != "TRIBUNE_STORE_URL");
        let mut parsed = file::parse(demo::CONFIGURATION, Path::new("demo"), &variables)?;
        if let Some(market) = &mut parsed.file.market {
            market.rest_url = Some(demo.exchange_url()?);
            market.stream_url = None;
            market.origin = Some("a simulated exchange".to_owned());
        }
        let config = Self::from_file(parsed, None, demo.dir())?;
        Ok(Self { demo: Some(Arc::new(demo)), ..config })
    }

    /// Only the sources of `[[sources]]`, which answer every caller alike.
    #[must_use]
    pub fn only_documents(self) -> Self {
        Self { market: None, tasks: false, ..self }
    }

    fn from_file(parsed: Parsed, path: Option<PathBuf>, dir: &Path) -> anyhow::Result<Self> {
        let Parsed { file, source_names, exposed } = parsed;
        let mut server = file.server;
        server.check()?;
        server.public_url = server.public_url.as_deref().map(checked_url).transpose()?;
        server.admin_token = server.admin_token.map(|token| admin_token(&token, dir)).transpose()?;
        let listen = match &server.listen {
            None => SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            Some(text) => socket_address("server.listen", text)?,
        };
        let ops_listen = server.ops_listen.as_deref().map(|text| socket_address("server.ops_listen", text));
        let market = file.market;
        if let Some(market) = &market {
            market.check()?;
            market.trading.check(market.rest_url.as_deref(), dir)?;
        }
        let limits = file.limits;
        limits.check()?;
        let mut warnings = exposed;
        let is_public = |url: &&String| Reach::of(url) != Reach::ThisMachine;
        if let Some(url) = server.public_url.as_ref().filter(is_public)
            && listen.ip().is_loopback()
            && limits.trusted_proxies == Proxies::default()
        {
            warnings.push(format!(
                "{url} leads to a proxy on this machine that limits.trusted_proxies does not name, so all callers behind it count as one: set trusted_proxies = [\"127.0.0.1\"] in [limits]"
            ));
        }
        let has_cache = file.cache.is_some();
        let cache = file.cache.unwrap_or_default();
        cache.check(market.as_ref().is_none_or(|market| market.feed), dir)?;
        if has_cache && market.is_none() && cache.redis(dir)?.is_none() {
            warnings.push(
                "[cache] has no effect without [market], whose reports it keeps, or a Redis, where processes share rates"
                    .to_owned(),
            );
        }
        let tasks = file.store.is_some() || file.agent.is_some();
        check_source_names(&source_names, tasks, market.is_some())?;
        let data_dir = dir.join(server.data_dir.as_deref().unwrap_or(Path::new("tribune-data")));
        if let Some(agent) = &file.agent {
            agent.check(dir)?;
            for server in &agent.servers {
                server.check()?;
            }
        }
        let mut profiles = Vec::with_capacity(file.profiles.len());
        for (name, profile) in file.profiles {
            if !BUILT_IN_PROFILES.contains(&name.as_str()) {
                check_name(&name).context("[profiles]")?;
            }
            profiles.push(ProfileSpec {
                name,
                sources: profile.sources,
                tools: profile.tools,
                hosts: profile.hosts,
                admin: false,
            });
        }
        Ok(Self {
            file: path,
            demo: None,
            dir: dir.to_owned(),
            listen,
            ops_listen: ops_listen.transpose()?,
            embedder: file.embedder.choice(dir)?,
            sources: file.sources,
            source_names,
            profiles,
            market,
            cache,
            store: file.store.unwrap_or_default().backend(dir, &data_dir)?,
            data_dir,
            tasks,
            agent: file.agent,
            auth: file.auth,
            audit: file.audit.settings(dir)?,
            limits,
            server,
            warnings,
        })
    }

    /// The server's settings, once the address it listens on is known.
    pub fn settings(&self, listen: SocketAddr, conformance: bool) -> Settings {
        let mut settings = Settings::new(listen);
        if let Some(url) = &self.server.public_url {
            settings.public_url.clone_from(url);
        } else if listen.ip().is_unspecified() {
            settings.public_url = format!("http://localhost:{}", listen.port());
        }
        settings.config = self.server.clone();
        settings.limits = self.limits.clone();
        settings.auth_required = self.auth.required;
        settings.offers_oauth = self.auth.issuer.is_some();
        settings.conformance = conformance;
        settings
    }
}

fn socket_address(setting: &str, text: &str) -> anyhow::Result<SocketAddr> {
    text.parse()
        .with_context(|| format!("{setting} = \"{text}\" is not an address with a port, such as \"127.0.0.1:8080\""))
}

fn admin_token(text: &str, dir: &Path) -> anyhow::Result<String> {
    const SETTING: &str = "server.admin_token";
    const MIN_CHARS: usize = 16;
    let token = Secret::parse(SETTING, text, dir)?.read(SETTING)?;
    if token.chars().count() < MIN_CHARS {
        bail!("{SETTING} is shorter than {MIN_CHARS} characters; make one with `openssl rand -hex 24`");
    }
    Ok(token)
}

/// A name is the scheme of the source's ids, so it must be unique and not one that another part uses.
fn check_source_names(sources: &[(String, String)], tasks: bool, market: bool) -> anyhow::Result<()> {
    for (at, (_, name)) in sources.iter().enumerate() {
        check_name(name).context("[[sources]]")?;
        if sources[..at].iter().any(|(_, other)| other == name) {
            bail!("two sources are named `{name}`; ids begin with the name, so each source needs its own");
        }
        if tasks && TASK_NAMES.contains(&name.as_str()) {
            bail!("`{name}` cannot name a source beside [store] or [agent], which serve tasks; choose another name");
        }
        if market && (MARKET_NAMES.contains(&name.as_str()) || MarketId::owns(name)) {
            bail!("`{name}` cannot name a source beside [market], whose ids begin with it; choose another name");
        }
    }
    Ok(())
}

fn checked_url(url: &str) -> anyhow::Result<String> {
    let bare = url.trim_end_matches('/');
    let rest = bare.strip_prefix("https://").or_else(|| bare.strip_prefix("http://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.contains([' ', '?', '#']) => Ok(bare.to_owned()),
        _ => bail!("server.public_url = \"{url}\" is not an address such as \"https://tribune.example.org\""),
    }
}

/// Names of sources and profiles are parts of ids and addresses.
fn check_name(name: &str) -> anyhow::Result<()> {
    let starts_well = name.starts_with(|c: char| c.is_ascii_lowercase());
    let fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if !starts_well || !name.chars().all(fit) || name.len() > 40 {
        bail!("the name `{name}` is invalid; use at most 40 of a-z, 0-9, - and _, starting with a letter");
    }
    if RESERVED_NAMES.contains(&name) {
        bail!("the name `{name}` is reserved; choose another than {}", RESERVED_NAMES.join(", "));
    }
    Ok(())
}
