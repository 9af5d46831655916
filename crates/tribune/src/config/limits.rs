//! `[limits]`.

use std::time::Duration;

use anyhow::anyhow;
use serde::Deserialize;
use tribune_config::check_range;
use tribune_limits::{LimitSettings, Proxies};

/// 0 switches a number off.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    pub connections: usize,
    pub connections_per_peer: usize,
    pub head_secs: u64,
    pub idle_secs: u64,
    pub stall_secs: u64,
    pub sending_mb: usize,
    pub calls_per_minute: u32,
    pub anonymous_calls_per_minute: u32,
    pub changes_per_hour: u32,
    pub chat_tokens_per_day: u32,
    pub failed_sign_ins_per_minute: u32,
    pub tasks_per_user: u64,
    pub conversations_per_user: u32,
    pub streams_per_caller: usize,
    pub trusted_proxies: Vec<String>,
}

impl Default for Limits {
    fn default() -> Self {
        let defaults = LimitSettings::default();
        Self {
            connections: defaults.connections,
            connections_per_peer: defaults.connections_per_peer,
            head_secs: defaults.head.as_secs(),
            idle_secs: defaults.idle.as_secs(),
            stall_secs: defaults.stall.as_secs(),
            sending_mb: defaults.sending_bytes / MIB,
            calls_per_minute: defaults.calls_per_minute,
            anonymous_calls_per_minute: defaults.anonymous_calls_per_minute,
            changes_per_hour: defaults.changes_per_hour,
            chat_tokens_per_day: defaults.chat_tokens_per_day,
            failed_sign_ins_per_minute: defaults.failed_sign_ins_per_minute,
            tasks_per_user: defaults.tasks_per_user,
            conversations_per_user: defaults.conversations_per_user,
            streams_per_caller: defaults.streams_per_caller,
            trusted_proxies: Vec::new(),
        }
    }
}

const MIB: usize = 1024 * 1024;

impl Limits {
    pub(super) fn settings(&self) -> anyhow::Result<LimitSettings> {
        check_range("limits.head_secs", self.head_secs, 1, 3_600)?;
        check_range("limits.idle_secs", self.idle_secs, 1, 3_600)?;
        check_range("limits.stall_secs", self.stall_secs, 1, 3_600)?;
        check_range("limits.sending_mb", self.sending_mb as u64, 0, 1_000_000)?;
        let trusted_proxies = Proxies::parse(&self.trusted_proxies).map_err(|entry| {
            anyhow!(
                "limits.trusted_proxies: \"{entry}\" is no address or network, such as \"127.0.0.1\" or \"10.0.0.0/8\""
            )
        })?;
        Ok(LimitSettings {
            connections: self.connections,
            connections_per_peer: self.connections_per_peer,
            head: Duration::from_secs(self.head_secs),
            idle: Duration::from_secs(self.idle_secs),
            stall: Duration::from_secs(self.stall_secs),
            sending_bytes: self.sending_mb * MIB,
            calls_per_minute: self.calls_per_minute,
            anonymous_calls_per_minute: self.anonymous_calls_per_minute,
            changes_per_hour: self.changes_per_hour,
            chat_tokens_per_day: self.chat_tokens_per_day,
            failed_sign_ins_per_minute: self.failed_sign_ins_per_minute,
            tasks_per_user: self.tasks_per_user,
            conversations_per_user: self.conversations_per_user,
            streams_per_caller: self.streams_per_caller,
            trusted_proxies,
        })
    }
}
