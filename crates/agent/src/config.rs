//! `[agent]` in the configuration.

use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use tribune_config::{Secret, check_range, is_http_url};
use tribune_core::{Error, Result};

use crate::settings::{Settings, ToolAccess};

/// `[agent]`. `Server` is the type of `[[agent.servers]]`; the crate that connects to them defines it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config<Server> {
    pub base_url: String,
    pub model: String,
    pub api_key: Option<String>,
    pub profile: String,
    pub tools: ToolAccess,
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
    #[serde(bound(deserialize = "Server: Deserialize<'de>"))]
    pub servers: Vec<Server>,
}

impl<Server> Default for Config<Server> {
    fn default() -> Self {
        Self {
            base_url: "https://openrouter.ai/api/v1".to_owned(),
            model: "openai/gpt-4o-mini".to_owned(),
            api_key: None,
            profile: "default".to_owned(),
            tools: ToolAccess::All,
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

impl<Server> Config<Server> {
    /// Checks everything but the secret: a missing key costs the chat and nothing else.
    pub fn check(&self, config_dir: &Path) -> Result<()> {
        check_range("agent.max_output_tokens", self.max_output_tokens.into(), 16, 1_000_000)?;
        check_range("agent.context_tokens", self.context_tokens.into(), 2_000, 10_000_000)?;
        check_range("agent.max_result_chars", self.max_result_chars as u64, 200, 1_000_000)?;
        check_range("agent.silence_secs", self.silence_secs, 1, 3600)?;
        check_range("agent.request_timeout_secs", self.request_timeout_secs, 1, 3600)?;
        check_range("agent.turn_timeout_secs", self.turn_timeout_secs, 1, 3600)?;
        check_range("agent.max_turns", self.max_turns as u64, 1, 100_000)?;
        check_range("agent.idle_minutes", self.idle_minutes, 1, 60 * 24 * 365)?;
        let problem = if self.temperature.is_some_and(|value| !(0.0..=2.0).contains(&value)) {
            "agent.temperature must be between 0 and 2"
        } else if !is_http_url(&self.base_url) {
            "agent.base_url must be an address such as \"https://openrouter.ai/api/v1\" or \"http://127.0.0.1:8000/v1\""
        } else if self.model.trim().is_empty() {
            "agent.model is empty; use the endpoint's name for the model, such as \"openai/gpt-4o-mini\""
        } else {
            return self.secret(config_dir).map(drop);
        };
        Err(Error::invalid_argument(problem))
    }

    fn secret(&self, config_dir: &Path) -> Result<Option<Secret>> {
        let parse = |text: &str| Secret::parse("agent.api_key", text, config_dir);
        self.api_key.as_deref().map(parse).transpose()
    }

    /// Reads the API key, so it fails where that is missing.
    pub fn settings(&self, config_dir: &Path) -> Result<Settings> {
        let key = self.secret(config_dir)?;
        let key = key.map(|key| key.read("agent.api_key")).transpose()?;
        Ok(self.settings_with(key))
    }

    fn settings_with(&self, api_key: Option<String>) -> Settings {
        let secs = Duration::from_secs;
        Settings {
            base_url: self.base_url.trim_end_matches('/').to_owned(),
            model: self.model.trim().to_owned(),
            api_key,
            temperature: self.temperature,
            max_output_tokens: self.max_output_tokens,
            context_tokens: self.context_tokens,
            max_result_chars: self.max_result_chars,
            max_rounds: 5,
            history: 10,
            silence: secs(self.silence_secs),
            request_timeout: secs(self.request_timeout_secs),
            turn_timeout: secs(self.turn_timeout_secs),
            idle_after: secs(self.idle_minutes * 60),
            tools: self.tools,
            instructions: self.instructions.clone(),
        }
    }
}

impl Settings {
    /// The defaults of the configuration, for this model.
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        let config = Config::<()> { base_url: base_url.into(), model: model.into(), ..Config::default() };
        config.settings_with(None)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(fields: serde_json::Value) -> Config<String> {
        serde_json::from_value(fields).expect("a configuration")
    }

    #[test]
    fn agent_needs_no_key() {
        let config = config(json!({"base_url": "http://127.0.0.1:8000/v1/", "model": "m"}));
        config.check(Path::new("")).expect("valid");
        let settings = config.settings(Path::new("")).expect("settings");
        assert_eq!(settings.base_url, "http://127.0.0.1:8000/v1");
        assert_eq!((settings.api_key, settings.max_rounds, settings.history), (None, 5, 10));
        assert_eq!(settings.tools, ToolAccess::All);
    }

    #[test]
    fn agent_may_only_read() {
        let read = config(json!({"tools": "read"}));
        assert_eq!(read.settings(Path::new("")).expect("settings").tools, ToolAccess::Read);
        assert!(serde_json::from_value::<Config<String>>(json!({"tools": "write"})).is_err());
    }

    #[test]
    fn missing_key_is_named() {
        let config = config(json!({"api_key": "env:TRIBUNE_TEST_NO_SUCH_VARIABLE"}));
        config.check(Path::new("")).expect("valid");
        let error = config.settings(Path::new("")).err().expect("no such variable");
        assert!(error.message().contains("TRIBUNE_TEST_NO_SUCH_VARIABLE"), "{error}");
    }

    #[test]
    fn invalid_settings_are_refused() {
        for (fields, message) in [
            (json!({"base_url": "openrouter.ai"}), "agent.base_url"),
            (json!({"model": " "}), "agent.model is empty"),
            (json!({"api_key": "sk-hunter2"}), "env:NAME"),
            (json!({"temperature": 3.0}), "between 0 and 2"),
            (json!({"silence_secs": 0}), "agent.silence_secs = 0"),
        ] {
            let error = config(fields).check(Path::new("")).expect_err(message);
            assert!(error.message().contains(message), "{error}");
            assert!(!error.message().contains("hunter2"), "{error}");
        }
    }
}
