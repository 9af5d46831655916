//! `[audit]`.

use std::path::{Path, PathBuf};

use jiff::SignedDuration;
use serde::Deserialize;
use tribune_config::check_range;
use tribune_server::audit::AuditSettings;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Audit {
    pub enabled: bool,
    /// Whether the reads of anonymous callers are recorded too.
    pub anonymous: bool,
    /// Whether queries are recorded as text instead of a digest.
    pub queries: bool,
    pub keep_days: u64,
    /// A file that gets one JSON object a line, beside the store.
    pub file: Option<PathBuf>,
}

impl Default for Audit {
    fn default() -> Self {
        Self { enabled: true, anonymous: false, queries: false, keep_days: 90, file: None }
    }
}

impl Audit {
    /// `None` if there is to be no audit log.
    pub fn settings(&self, dir: &Path) -> tribune_core::Result<Option<AuditSettings>> {
        check_range("audit.keep_days", self.keep_days, 1, 3_650)?;
        let settings = AuditSettings {
            anonymous: self.anonymous,
            queries: self.queries,
            keep: SignedDuration::from_hours(24 * i64::try_from(self.keep_days).unwrap_or(i64::MAX / 24)),
            file: self.file.as_ref().map(|file| dir.join(file)),
        };
        Ok(self.enabled.then_some(settings))
    }
}
