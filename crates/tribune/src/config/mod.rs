//! The configuration: a commented TOML file, variables such as `TRIBUNE_SERVER_LISTEN`, flags. Flags win,
//! then the environment, then the file.

mod agent;
mod cache;
mod embedder;
mod file;
mod market;
mod store;

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use tribune_corpus::{Limits, Reading};
use tribune_market::symbols::MarketId;
use tribune_server::{ProfileSpec, Settings};

pub use agent::AgentConfig;
pub use cache::{CacheConfig, CachePlace};
pub use embedder::{EmbedderChoice, Secret};
pub use file::{ConfigFile, Environment};
pub use market::{Exchange, MarketConfig};
pub use store::StorePlace;

pub const DEFAULT_FILE: &str = "tribune.toml";

/// Names with a meaning of their own in addresses.
const RESERVED_NAMES: [&str; 5] = ["admin", "default", "full", "research", "messages"];

/// The names of the market and its reports among the sources, and what ids of reports begin with.
const MARKET_NAMES: [&str; 3] = [tribune_market::NAME, tribune_market::report::NAME, "report"];

/// The name of tasks among the sources, and what their ids begin with.
const TASK_NAMES: [&str; 2] = [tribune_tasks::NAME, tribune_tasks::SCHEME];

/// A configuration that has been checked.
#[derive(Debug, Clone)]
pub struct Config {
    /// `None` for the demo.
    pub file: Option<PathBuf>,
    pub listen: SocketAddr,
    pub public_url: Option<String>,
    pub data_dir: PathBuf,
    pub auto_index: bool,
    /// What callers of the profile `admin` must show.
    admin_token: Option<String>,
    /// Whether servers follow their folders; never without `auto_index`.
    pub watch: bool,
    /// What sources use that do not say otherwise.
    pub embedder: EmbedderChoice,
    pub sources: Vec<SourceConfig>,
    pub profiles: Vec<ProfileSpec>,
    pub market: Option<MarketConfig>,
    pub cache: CacheConfig,
    pub store: StorePlace,
    /// Whether tasks are served: where a store or an agent is configured, and in the demo.
    pub tasks: bool,
    pub agent: Option<AgentConfig>,
    /// Whether nobody is served without a token.
    pub auth_required: bool,
    server: file::Server,
    /// What is accepted but not served by this version.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct SourceConfig {
    pub name: String,
    pub title: String,
    pub description: Option<String>,
    pub path: PathBuf,
    pub limits: Limits,
    pub reading: Reading,
    pub embedder: EmbedderChoice,
    /// Where administrators may ingest speeches from.
    pub ingest_dir: Option<PathBuf>,
}

impl Config {
    /// The file that is named, or the one here, or `None`: then the demo is meant.
    pub fn load(named: Option<&Path>) -> anyhow::Result<Option<Self>> {
        let path = match named {
            Some(path) => path.to_owned(),
            None if Path::new(DEFAULT_FILE).exists() => PathBuf::from(DEFAULT_FILE),
            None => return Ok(None),
        };
        let text = std::fs::read_to_string(&path).with_context(|| {
            format!(
                "the configuration {} cannot be read; `tribune init` writes one",
                path.display()
            )
        })?;
        Self::parse(&text, &path, &file::environment()).map(Some)
    }

    /// What an empty file here would say, for commands that bring their own data.
    pub fn defaults() -> anyhow::Result<Self> {
        Self::parse("", Path::new(DEFAULT_FILE), &file::environment())
    }

    pub fn parse(text: &str, path: &Path, environment: &Environment) -> anyhow::Result<Self> {
        let file = file::parse(text, path, environment)?;
        let base = path.parent().unwrap_or(Path::new(""));
        Self::from_file(file, Some(path.to_owned()), base).with_context(|| path.display().to_string())
    }

    /// What the demo uses: `sources` and a data folder that does not outlive it.
    pub fn demo(data_dir: PathBuf, sources: Vec<SourceConfig>, market: MarketConfig) -> anyhow::Result<Self> {
        let mut table = toml::Table::new();
        file::overlay_environment(&mut table, &file::environment())?;
        let file: ConfigFile = table.try_into()?;
        let mut config = Self::from_file(file, None, Path::new(""))?;
        config.store = StorePlace::Sqlite(data_dir.join("tribune.db"));
        config.tasks = true;
        config.data_dir = data_dir;
        config.sources = sources;
        config.market = Some(market);
        Ok(config)
    }

    fn from_file(file: ConfigFile, path: Option<PathBuf>, base: &Path) -> anyhow::Result<Self> {
        let warnings = file.warnings();
        let server = file.server;
        server.check()?;
        let listen = match &server.listen {
            None => SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)),
            Some(text) => text.parse().with_context(|| {
                format!("server.listen = \"{text}\" is not an address with a port, such as \"127.0.0.1:8080\"")
            })?,
        };
        let public_url = server.public_url.as_deref().map(checked_url).transpose()?;
        let embedder = file.embedder.checked(base)?;
        let mut sources: Vec<SourceConfig> = Vec::new();
        for source in file.sources {
            check_name(&source.name)?;
            if sources.iter().any(|other| other.name == source.name) {
                bail!(
                    "two sources are named `{}`: a name is the scheme of a source's ids, so each needs its own",
                    source.name
                );
            }
            if !(1..=1024).contains(&source.max_document_mb) {
                bail!(
                    "source `{}`: max_document_mb = {} must be between 1 and 1024",
                    source.name,
                    source.max_document_mb
                );
            }
            sources.push(SourceConfig {
                reading: source.reading()?,
                ingest_dir: source.ingest_dir.as_ref().map(|dir| base.join(dir)),
                embedder: embedder::of_source(&source.name, source.embedder.as_deref(), &embedder)?,
                title: source.title.unwrap_or_else(|| title_of(&source.name)),
                name: source.name,
                description: source.description,
                path: base.join(source.path),
                limits: Limits {
                    max_document_bytes: source.max_document_mb * 1024 * 1024,
                },
            });
        }
        let market = file.market.map(|market| market.checked(base)).transpose()?;
        let cache = file.cache.unwrap_or_default().checked(base)?;
        if cache.place == CachePlace::Memory && market.as_ref().is_some_and(|market| !market.feed) {
            bail!(
                "market.feed = false serves reports that other processes write, so it needs a shared cache: set `url` of [cache] to an address such as \"redis://127.0.0.1:6379\""
            );
        }
        let data_dir = base.join(server.data_dir.as_deref().unwrap_or(Path::new("tribune-data")));
        let tasks = file.store.is_some() || file.agent.is_some();
        if tasks && let Some(taken) = sources.iter().find(|source| TASK_NAMES.contains(&source.name.as_str())) {
            bail!(
                "`{}` cannot name a source beside [store] or [agent], with which tasks are served; choose another name",
                taken.name
            );
        }
        let store = file.store.unwrap_or_default().checked(base, &data_dir)?;
        let agent = file.agent.map(|agent| agent.checked(base)).transpose()?;
        let schemes = || MARKET_NAMES.into_iter().chain(MarketId::SCHEMES.iter().copied());
        if market.is_some()
            && let Some(taken) = sources
                .iter()
                .find(|source| schemes().any(|scheme| scheme == source.name))
        {
            bail!(
                "`{}` cannot name a source beside [market], whose ids begin with it; choose another name",
                taken.name
            );
        }
        for name in file.profiles.keys() {
            check_profile_name(name)?;
        }
        let profiles = file
            .profiles
            .into_iter()
            .map(|(name, profile)| ProfileSpec {
                name,
                sources: profile.sources,
                tools: profile.tools,
                hosts: profile.hosts,
                admin: false,
            })
            .collect();
        Ok(Self {
            file: path,
            listen,
            public_url,
            data_dir,
            auto_index: server.auto_index,
            admin_token: admin_token(&server, base)?,
            watch: server.auto_index && server.watch,
            embedder,
            sources,
            profiles,
            market,
            cache,
            store,
            tasks,
            agent,
            auth_required: file.auth.required,
            server,
            warnings,
        })
    }

    /// What the server is told, once the address it really listens on is known.
    pub fn settings(&self, listen: SocketAddr, conformance: bool) -> Settings {
        let server = &self.server;
        let secs = Duration::from_secs;
        let mut settings = Settings::new(listen);
        if let Some(url) = &self.public_url {
            settings.public_url.clone_from(url);
        } else if listen.ip().is_unspecified() {
            settings.public_url = format!("http://localhost:{}", listen.port());
        }
        settings.allowed_hosts.clone_from(&server.allowed_hosts);
        settings.allowed_origins.clone_from(&server.allowed_origins);
        settings.sessions = server.sessions;
        settings.session_idle = secs(server.session_idle_secs);
        settings.max_sessions = server.max_sessions;
        settings.max_body_bytes = server.max_body_mb * 1024 * 1024;
        settings.call_timeout = secs(server.call_timeout_secs);
        settings.source_timeout = secs(server.source_timeout_secs);
        settings.keep_alive = secs(server.keep_alive_secs);
        settings.max_sse = secs(server.sse_max_secs);
        settings.drain = secs(server.drain_secs);
        settings.legacy_results = server.legacy_results;
        settings.admin_token.clone_from(&self.admin_token);
        settings.auth_required = self.auth_required;
        settings.conformance = conformance;
        settings
    }
}

fn admin_token(server: &file::Server, base: &Path) -> anyhow::Result<Option<String>> {
    const MIN_CHARS: usize = 16;
    let Some(text) = &server.admin_token else {
        return Ok(None);
    };
    let token = Secret::parse(text, base)
        .and_then(|secret| secret.read())
        .context("server.admin_token")?;
    if token.chars().count() < MIN_CHARS {
        bail!("server.admin_token is shorter than {MIN_CHARS} characters; make one with `openssl rand -hex 24`");
    }
    Ok(Some(token))
}

fn checked_url(url: &str) -> anyhow::Result<String> {
    let bare = url.trim_end_matches('/');
    let rest = bare.strip_prefix("https://").or_else(|| bare.strip_prefix("http://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.contains([' ', '?', '#']) => Ok(bare.to_owned()),
        _ => bail!("server.public_url = \"{url}\" is not an address such as \"https://tribune.example.org\""),
    }
}

fn check_name(name: &str) -> anyhow::Result<()> {
    let starts_well = name.starts_with(|c: char| c.is_ascii_lowercase());
    let fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if !starts_well || !name.chars().all(fit) || name.len() > 40 {
        bail!(
            "the source name `{name}` cannot be an id scheme: use up to 40 of a-z, 0-9, - and _, starting with a letter"
        );
    }
    if RESERVED_NAMES.contains(&name) {
        bail!(
            "`{name}` cannot name a source because it names something else (reserved: {})",
            RESERVED_NAMES.join(", ")
        );
    }
    Ok(())
}

/// A profile may take the place of a built-in one.
fn check_profile_name(name: &str) -> anyhow::Result<()> {
    if name == "messages" {
        bail!("`messages` cannot name a profile because it is part of the address of the older transport");
    }
    if name == "admin" {
        bail!("`admin` cannot name a profile because it is the administrator's own");
    }
    if !RESERVED_NAMES.contains(&name) && check_name(name).is_err() {
        bail!(
            "the profile name `{name}` cannot be part of an address: use up to 40 of a-z, 0-9, - and _, starting with a letter"
        );
    }
    Ok(())
}

/// `field-notes` as `Field notes`.
fn title_of(name: &str) -> String {
    let words = name.replace(['-', '_'], " ");
    let mut chars = words.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribune_corpus::{Dialect, Duplicates};

    fn parse(text: &str) -> anyhow::Result<Config> {
        Config::parse(text, Path::new("dir/tribune.toml"), &Environment::new())
    }

    fn fault(text: &str) -> String {
        format!("{:#}", parse(text).expect_err("refused"))
    }

    #[test]
    fn paths_are_relative_to_the_file() {
        let config = parse("[[sources]]\nname = \"notes\"\nkind = \"documents\"\npath = \"n\"\n").expect("config");
        assert_eq!(config.sources[0].path, Path::new("dir/n"));
        assert_eq!(config.data_dir, Path::new("dir/tribune-data"));
        assert_eq!(config.sources[0].title, "Notes");
    }

    #[test]
    fn a_wrong_key_is_named_with_its_line_and_the_near_one() {
        let message = fault("[server]\nlisten = \"127.0.0.1:1\"\npublic_ulr = \"https://x\"\n");
        assert!(message.contains("tribune.toml:3:1"), "{message}");
        assert!(message.contains("`public_ulr`"), "{message}");
        assert!(message.contains("did you mean `public_url`?"), "{message}");
    }

    #[test]
    fn broken_toml_is_named_with_its_line() {
        let message = fault("[server]\nlisten = \n");
        assert!(message.contains("tribune.toml:2:"), "{message}");
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_the_fix() {
        for (text, told) in [
            ("[server]\nlisten = \"8080\"", "such as \"127.0.0.1:8080\""),
            (
                "[server]\npublic_url = \"tribune.example.org\"",
                "such as \"https://tribune.example.org\"",
            ),
            ("[server]\nkeep_alive_secs = 60", "between 1 and 15"),
            (
                "[[sources]]\nname = \"My Notes\"\nkind = \"documents\"\npath = \"x\"",
                "a-z, 0-9",
            ),
            (
                "[[sources]]\nname = \"full\"\nkind = \"documents\"\npath = \"x\"",
                "reserved",
            ),
            (
                "[[sources]]\nname = \"x\"\nkind = \"documnets\"\npath = \"x\"",
                "did you mean `documents`?",
            ),
        ] {
            assert!(fault(text).contains(told), "{}", fault(text));
        }
    }

    #[test]
    fn speeches_are_read_by_the_rules_that_are_told() {
        let text = "[[sources]]\nname = \"hansard\"\nkind = \"speeches\"\npath = \"x\"\n";
        let config = parse(text).expect("config");
        let reading = &config.sources[0].reading;
        assert_eq!((reading.noun(), reading.duplicates), ("speeches", Duplicates::Skip));

        let more = "duplicates = \"update\"\nfields = { speaker = \"MP\" }\nparliament = \"other\"\nparties = { Labour = [\"LAB\"] }\n";
        let config = parse(&format!("{text}{more}")).expect("config");
        let reading = &config.sources[0].reading;
        assert_eq!(reading.duplicates, Duplicates::Update);
        assert_eq!(reading.fields.theirs("speaker"), Some("MP"));
        let Dialect::Speeches(rules) = &reading.dialect else {
            panic!("speeches");
        };
        assert_eq!(rules.parties.canonical("lab"), Some("Labour"));
        assert!(rules.chambers.is_empty());

        let told = fault(&format!("{}{more}", text.replace("speeches", "documents")));
        assert!(
            told.contains("`parliament`") && told.contains("kind = \"speeches\""),
            "{told}"
        );
    }

    #[test]
    fn the_environment_overrides_the_file() {
        let set = |name: &str, value: &str| (format!("TRIBUNE_SERVER_{name}"), value.to_owned());
        let environment = Environment::from([
            set("LISTEN", "127.0.0.1:9"),
            set("SESSIONS", "false"),
            set("ALLOWED_HOSTS", "a.example, b.example"),
            set("DRAIN_SECS", "3"),
        ]);
        let config =
            Config::parse("[server]\nlisten = \"127.0.0.1:1\"", Path::new("t.toml"), &environment).expect("config");
        assert_eq!(config.listen.port(), 9);
        let settings = config.settings(config.listen, false);
        assert!(!settings.sessions);
        assert_eq!(settings.allowed_hosts, ["a.example", "b.example"]);
        assert_eq!(settings.drain, Duration::from_secs(3));
    }

    #[test]
    fn a_variable_that_sets_nothing_or_does_not_fit_is_named() {
        for (name, value, told) in [
            ("TRIBUNE_SERVER_LISTNE", "x", "did you mean TRIBUNE_SERVER_LISTEN?"),
            (
                "TRIBUNE_SERVER_SESSIONS",
                "maybe",
                "TRIBUNE_SERVER_SESSIONS=maybe does not fit",
            ),
        ] {
            let environment = Environment::from([(name.to_owned(), value.to_owned())]);
            let error = Config::parse("", Path::new("t.toml"), &environment).expect_err("refused");
            assert!(format!("{error:#}").contains(told), "{error:#}");
        }
    }

    #[test]
    fn tasks_are_served_where_a_store_or_an_agent_is_configured() {
        assert!(!parse("").expect("config").tasks);
        for text in ["[agent]", "[store]\nurl = \"sqlite:x\""] {
            assert!(parse(text).expect("config").tasks, "{text}");
            let taken = format!("{text}\n[[sources]]\nname = \"tasks\"\nkind = \"documents\"\npath = \"x\"");
            assert!(fault(&taken).contains("choose another name"), "{}", fault(&taken));
        }
    }

    #[test]
    fn a_cache_without_a_market_is_told_to_be_idle() {
        let alone = parse("[cache]\nurl = \"memory:\"").expect("config");
        assert!(alone.warnings[0].contains("without [market]"), "{:?}", alone.warnings);
    }

    #[test]
    fn a_process_without_a_feed_needs_a_shared_cache() {
        let told = fault("[market]\nfeed = false");
        assert!(told.contains("redis://127.0.0.1:6379"), "{told}");
        let shared = parse("[market]\nfeed = false\n[cache]\nurl = \"redis://127.0.0.1:6379\"").expect("config");
        assert!(shared.market.is_some_and(|market| !market.feed));
    }

    #[test]
    fn variables_set_keys_of_several_sections() {
        let set = |text: &str, variables: &[(&str, &str)]| {
            let environment = variables
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            Config::parse(text, Path::new("tribune.toml"), &environment.collect())
        };
        let variables = [
            ("TRIBUNE_CACHE_URL", "redis://127.0.0.1:7000"),
            ("TRIBUNE_MARKET_FEED", "false"),
            ("TRIBUNE_MARKET_SYMBOLS", "BTCUSDT, ethusdt"),
        ];
        let config = set("[market]", &variables).expect("config");
        let market = config.market.expect("market");
        assert_eq!((market.feed, market.symbols.len()), (false, 2));
        assert_eq!(
            config.cache.place,
            CachePlace::Redis("redis://127.0.0.1:7000".to_owned())
        );
        let lone = format!("{:#}", set("", &variables[1..]).expect_err("no market"));
        assert!(lone.contains("has no [market]"), "{lone}");
        let wrong = format!("{:#}", set("", &[("TRIBUNE_CACHE_ULR", "x")]).expect_err("wrong"));
        assert!(wrong.contains("TRIBUNE_CACHE_URL"), "{wrong}");
    }

    #[test]
    fn a_market_is_served_by_being_there_and_its_schemes_are_its_own() {
        assert!(parse("").expect("config").market.is_none());
        assert!(parse("[market]").expect("config").market.is_some());
        let taken = "[market]\n[[sources]]\nname = \"ticker\"\nkind = \"documents\"\npath = \"x\"";
        assert!(fault(taken).contains("choose another name"), "{}", fault(taken));
    }
}
