//! `[agent]`: the model that chats, how far it may go, and whose tools it has besides ours.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;
use tribune_agent::Settings;
use tribune_upstream::{Reach, ServerSpec};

use super::Secret;

/// `[agent]` in the file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Agent {
    pub base_url: String,
    pub model: String,
    pub api_key: Option<String>,
    pub profile: String,
    pub temperature: Option<f32>,
    pub max_output_tokens: u32,
    pub context_tokens: u32,
    pub max_result_chars: usize,
    pub silence_secs: u64,
    pub request_timeout_secs: u64,
    pub turn_timeout_secs: u64,
    pub max_turns: usize,
    pub idle_minutes: u64,
    pub instructions: Option<String>,
    pub servers: Vec<Server>,
}

impl Default for Agent {
    fn default() -> Self {
        Self {
            base_url: "https://openrouter.ai/api/v1".to_owned(),
            model: "openai/gpt-4o-mini".to_owned(),
            api_key: None,
            profile: "default".to_owned(),
            temperature: None,
            max_output_tokens: 1024,
            context_tokens: 32_000,
            max_result_chars: 12_000,
            silence_secs: 60,
            request_timeout_secs: 120,
            turn_timeout_secs: 300,
            max_turns: 200,
            idle_minutes: 30,
            instructions: None,
            servers: Vec::new(),
        }
    }
}

/// `[[agent.servers]]` in the file: another MCP server whose tools the agent has.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    pub name: String,
    pub url: Option<String>,
    pub token: Option<String>,
    #[serde(default)]
    pub command: Vec<String>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    pub tools: Option<Vec<String>>,
    #[serde(default = "default_timeout_secs")]
    pub timeout_secs: u64,
}

const fn default_timeout_secs() -> u64 {
    30
}

/// The same, checked. Secrets are read when the agent is made: one that is missing costs the chat and nothing else.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    settings: Settings,
    api_key: Option<Secret>,
    pub profile: String,
    /// Questions that may be under way at once.
    pub max_turns: usize,
    servers: Vec<(Server, PathBuf)>,
}

impl Agent {
    pub(super) fn checked(self, base: &Path) -> anyhow::Result<AgentConfig> {
        let within = |name: &str, value: u64, low: u64, high: u64| {
            if !(low..=high).contains(&value) {
                bail!("agent.{name} = {value} must be between {low} and {high}");
            }
            Ok(())
        };
        within("max_output_tokens", self.max_output_tokens.into(), 16, 1_000_000)?;
        within("context_tokens", self.context_tokens.into(), 2_000, 10_000_000)?;
        within("max_result_chars", self.max_result_chars as u64, 200, 1_000_000)?;
        within("silence_secs", self.silence_secs, 1, 3600)?;
        within("request_timeout_secs", self.request_timeout_secs, 1, 3600)?;
        within("turn_timeout_secs", self.turn_timeout_secs, 1, 3600)?;
        within("max_turns", self.max_turns as u64, 1, 100_000)?;
        within("idle_minutes", self.idle_minutes, 1, 60 * 24 * 365)?;
        if self
            .temperature
            .is_some_and(|temperature| !(0.0..=2.0).contains(&temperature))
        {
            bail!("agent.temperature must be between 0 and 2");
        }
        let base_url = self.base_url.trim_end_matches('/');
        if !base_url.starts_with("https://") && !base_url.starts_with("http://") {
            bail!(
                "agent.base_url is not an address such as \"https://openrouter.ai/api/v1\" or \"http://127.0.0.1:8000/v1\""
            );
        }
        if self.model.trim().is_empty() {
            bail!(
                "agent.model is empty: give the name that the endpoint knows the model by, such as \"openai/gpt-4o-mini\""
            );
        }
        let mut settings = Settings::new(base_url, self.model.trim());
        settings.temperature = self.temperature;
        settings.max_output_tokens = self.max_output_tokens;
        settings.context_tokens = self.context_tokens;
        settings.max_result_chars = self.max_result_chars;
        settings.silence = Duration::from_secs(self.silence_secs);
        settings.request_timeout = Duration::from_secs(self.request_timeout_secs);
        settings.turn_timeout = Duration::from_secs(self.turn_timeout_secs);
        settings.idle_after = Duration::from_secs(self.idle_minutes * 60);
        settings.instructions = self.instructions;
        let api_key = self
            .api_key
            .as_deref()
            .map(|text| Secret::parse(text, base))
            .transpose();
        for server in &self.servers {
            server.check()?;
        }
        Ok(AgentConfig {
            settings,
            api_key: api_key.context("agent.api_key")?,
            profile: self.profile,
            max_turns: self.max_turns,
            servers: self
                .servers
                .into_iter()
                .map(|server| (server, base.to_owned()))
                .collect(),
        })
    }
}

impl Server {
    fn check(&self) -> anyhow::Result<()> {
        let name = &self.name;
        match (&self.url, self.command.is_empty()) {
            (Some(_), false) => bail!("[[agent.servers]] `{name}` has both `url` and `command`: keep one"),
            (None, true) => bail!(
                "[[agent.servers]] `{name}` needs `url` (\"https://…/mcp\") or `command` ([\"program\", \"argument\"])"
            ),
            (Some(url), true) if !url.starts_with("https://") && !url.starts_with("http://") => {
                bail!("[[agent.servers]] `{name}`: url is not an address such as \"https://example.org/mcp\"")
            }
            _ => {}
        }
        if !(1..=3600).contains(&self.timeout_secs) {
            bail!("[[agent.servers]] `{name}`: timeout_secs must be between 1 and 3600");
        }
        if self.token.is_some() && self.url.is_none() {
            bail!("[[agent.servers]] `{name}`: `token` goes with `url`; give a command its secrets in `env`");
        }
        if !self.env.is_empty() && self.command.is_empty() {
            bail!("[[agent.servers]] `{name}`: `env` goes with `command`");
        }
        Ok(())
    }

    fn spec(&self, base: &Path) -> anyhow::Result<ServerSpec> {
        let secret = |text: &str| Secret::parse(text, base).and_then(|secret| secret.read());
        let of = || format!("[[agent.servers]] `{}`", self.name);
        let reach = match (&self.url, self.command.split_first()) {
            (Some(url), _) => Reach::Url {
                url: url.clone(),
                bearer: self.token.as_deref().map(secret).transpose().with_context(of)?,
            },
            (None, Some((program, args))) => Reach::Command {
                program: program.clone(),
                args: args.to_vec(),
                env: self
                    .env
                    .iter()
                    .map(|(name, value)| {
                        let is_elsewhere = value.starts_with("env:") || value.starts_with("file:");
                        let value = if is_elsewhere { secret(value)? } else { value.clone() };
                        Ok((name.clone(), value))
                    })
                    .collect::<anyhow::Result<_>>()
                    .with_context(of)?,
                cwd: (!base.as_os_str().is_empty()).then(|| base.to_owned()),
            },
            (None, None) => bail!("{} has neither `url` nor `command`", of()),
        };
        Ok(ServerSpec {
            name: self.name.clone(),
            reach,
            timeout: Duration::from_secs(self.timeout_secs),
            tools: self.tools.clone(),
        })
    }
}

impl AgentConfig {
    /// With the key that is needed for it.
    pub fn settings(&self) -> anyhow::Result<Settings> {
        let mut settings = self.settings.clone();
        settings.api_key = self
            .api_key
            .as_ref()
            .map(Secret::read)
            .transpose()
            .context("agent.api_key")?;
        Ok(settings)
    }

    /// One whose secret cannot be read costs its own tools only.
    pub fn servers(&self) -> Vec<anyhow::Result<ServerSpec>> {
        self.servers.iter().map(|(server, base)| server.spec(base)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(text: &str) -> anyhow::Result<AgentConfig> {
        toml::from_str::<Agent>(text)?.checked(Path::new(""))
    }

    #[test]
    fn an_agent_has_defaults_and_no_key_need_be_there() {
        let agent = checked("base_url = \"http://127.0.0.1:8000/v1/\"\nmodel = \"m\"").expect("agent");
        let settings = agent.settings().expect("settings");
        assert_eq!(settings.base_url, "http://127.0.0.1:8000/v1");
        assert_eq!((settings.api_key, settings.max_rounds, settings.history), (None, 5, 10));
        let missing = checked("api_key = \"env:TRIBUNE_TEST_NO_SUCH_VARIABLE\"").expect("agent");
        let told = format!("{:#}", missing.settings().expect_err("no such variable"));
        assert!(told.contains("TRIBUNE_TEST_NO_SUCH_VARIABLE"), "{told}");
    }

    #[test]
    fn what_cannot_be_meant_is_told() {
        for (text, told) in [
            ("base_url = \"openrouter.ai\"", "agent.base_url"),
            ("model = \" \"", "agent.model is empty"),
            ("api_key = \"sk-hunter2\"", "env:NAME"),
            ("temperature = 3.0", "between 0 and 2"),
            ("silence_secs = 0", "agent.silence_secs = 0"),
            ("[[servers]]\nname = \"x\"", "needs `url`"),
            (
                "[[servers]]\nname = \"x\"\nurl = \"http://a\"\ncommand = [\"b\"]",
                "both",
            ),
            (
                "[[servers]]\nname = \"x\"\ncommand = [\"b\"]\ntoken = \"env:X\"",
                "goes with `url`",
            ),
        ] {
            let fault = format!("{:#}", checked(text).expect_err(text));
            assert!(fault.contains(told), "{fault}");
            assert!(!fault.contains("hunter2"), "{fault}");
        }
    }
}
