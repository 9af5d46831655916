//! The scripts that Redis runs: each reads and changes a symbol atomically.

use std::sync::LazyLock;

use redis::{Cmd, ToRedisArgs};

pub(super) static READ: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("scripts/read.lua")));
pub(super) static INDEXED: LazyLock<Script> = LazyLock::new(|| Script::new(include_str!("scripts/indexed.lua")));
pub(super) static NODES: LazyLock<Script> = LazyLock::new(|| Script::after_common(include_str!("scripts/nodes.lua")));
pub(super) static CLAIM: LazyLock<Script> = LazyLock::new(|| Script::after_common(include_str!("scripts/claim.lua")));
pub(super) static WRITE: LazyLock<Script> = LazyLock::new(|| Script::after_common(include_str!("scripts/write.lua")));
pub(super) static RELEASE: LazyLock<Script> =
    LazyLock::new(|| Script::after_common(include_str!("scripts/release.lua")));

pub(super) struct Script {
    source: String,
    hash: String,
}

impl Script {
    fn new(source: &str) -> Self {
        Self {
            source: source.to_owned(),
            hash: redis::Script::new(source).get_hash().to_owned(),
        }
    }

    fn after_common(source: &str) -> Self {
        Self::new(&[include_str!("scripts/common.lua"), source].concat())
    }
}

/// One run of a script.
#[derive(Default)]
pub(super) struct Call {
    keys: Vec<String>,
    arguments: Vec<Vec<u8>>,
}

impl Call {
    pub(super) fn on(key: impl Into<String>) -> Self {
        Self::default().and(key)
    }

    pub(super) fn and(mut self, key: impl Into<String>) -> Self {
        self.keys.push(key.into());
        self
    }

    pub(super) fn with(mut self, argument: impl ToRedisArgs) -> Self {
        argument.write_redis_args(&mut self.arguments);
        self
    }

    /// For a script that Redis has cached.
    pub(super) fn by_hash(&self, script: &Script) -> Cmd {
        self.command("EVALSHA", &script.hash)
    }

    pub(super) fn in_full(&self, script: &Script) -> Cmd {
        self.command("EVAL", &script.source)
    }

    fn command(&self, name: &str, script: &str) -> Cmd {
        let mut command = redis::cmd(name);
        command
            .arg(script)
            .arg(self.keys.len())
            .arg(&self.keys)
            .arg(&self.arguments);
        command
    }
}
