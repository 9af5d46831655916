//! Decides which log messages a client gets to see.
#![expect(deprecated, reason = "the suite still checks logging on the revisions that have it")]

use std::sync::atomic::{AtomicU8, Ordering};

use rmcp::{
    RoleServer,
    model::{LoggingLevel, LoggingMessageNotificationParam},
    service::RequestContext,
};

use super::negotiates_per_request;

/// The least severe level one connection asked for with `logging/setLevel`.
///
/// Only revisions with a handshake keep a level per connection. Later ones name it in each
/// request, and a request that names none must not be answered with log messages.
#[derive(Debug)]
pub(super) struct LogThreshold(AtomicU8);

impl LogThreshold {
    pub(super) fn set(&self, level: LoggingLevel) {
        self.0.store(severity(level), Ordering::Relaxed);
    }

    fn admits(&self, context: &RequestContext<RoleServer>, level: LoggingLevel) -> bool {
        let threshold = if negotiates_per_request(context) {
            context.meta.log_level().map(severity)
        } else {
            Some(self.0.load(Ordering::Relaxed))
        };
        threshold.is_some_and(|threshold| severity(level) >= threshold)
    }

    /// Sends `message` at level info, if the client wants that level.
    pub(super) async fn info(&self, context: &RequestContext<RoleServer>, message: &str) {
        if !self.admits(context, LoggingLevel::Info) {
            return;
        }
        let notification =
            LoggingMessageNotificationParam::new(LoggingLevel::Info, message.into()).with_logger("conformance");
        if let Err(error) = context.peer.notify_logging_message(notification).await {
            tracing::debug!(%error, "log message not delivered");
        }
    }
}

/// Everything, because a client that never set a level may be sent any message.
impl Default for LogThreshold {
    fn default() -> Self {
        Self(AtomicU8::new(severity(LoggingLevel::Debug)))
    }
}

/// `LoggingLevel` declares its variants from least to most severe.
const fn severity(level: LoggingLevel) -> u8 {
    level as u8
}
