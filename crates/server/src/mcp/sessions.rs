//! Sessions of the `initialize` era: how many may be open, and who owns each.

use std::cell::Cell;
use std::collections::HashMap;
use std::time::Duration;

use axum::response::Response;
use futures::Stream;
use http::HeaderMap;
use parking_lot::Mutex;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, LocalSessionManagerError};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};
use tokio::sync::OwnedSemaphorePermit;
use tribune_core::Principal;

pub(super) const SESSION_HEADER: &str = "mcp-session-id";

/// A session that is about to be opened.
pub(super) struct Opening {
    pub(super) _slot: OwnedSemaphorePermit,
    pub(super) owner: Principal,
}

tokio::task_local! {
    /// Set around the `initialize` request that opens a session, because rmcp calls
    /// [`SessionManager::create_session`] without saying for which request.
    static OPENING: Cell<Option<Opening>>;
}

/// Runs rmcp's answer to an `initialize` request; the session it creates takes `opening`.
pub(super) async fn open(opening: Opening, answer: impl Future<Output = Response>) -> Response {
    OPENING.scope(Cell::new(Some(opening)), answer).await
}

#[derive(Debug, thiserror::Error)]
pub(super) enum SessionsError {
    #[error("no session was reserved for this request")]
    NotReserved,
    #[error(transparent)]
    Local(#[from] LocalSessionManagerError),
}

/// The sessions of one profile: another profile must not know them.
pub(super) struct Sessions {
    local: LocalSessionManager,
    open: Mutex<HashMap<SessionId, Opening>>,
}

impl Sessions {
    pub(super) fn new(idle: Duration) -> Self {
        let mut local = LocalSessionManager::default();
        local.session_config.keep_alive = Some(idle);
        Self { local, open: Mutex::default() }
    }

    /// Whether a request names another caller's session. Anonymous sessions belong to anyone who has the id.
    pub(super) fn is_foreign(&self, headers: &HeaderMap, caller: Option<&Principal>) -> bool {
        let id = headers.get(SESSION_HEADER).and_then(|id| id.to_str().ok());
        let open = self.open.lock();
        id.and_then(|id| open.get(id))
            .is_some_and(|session| session.owner != Principal::Anonymous && Some(&session.owner) != caller)
    }
}

/// Delegates to rmcp's own manager, and ties a slot and an owner to each session for as long as it is open.
impl SessionManager for Sessions {
    type Error = SessionsError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let opening = OPENING.try_with(Cell::take).ok().flatten();
        let opening = opening.ok_or(SessionsError::NotReserved)?;
        let (id, transport) = self.local.create_session().await?;
        self.open.lock().insert(id.clone(), opening);
        Ok((id, transport))
    }

    /// rmcp calls this for every session that ends: deleted, idle or broken.
    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.open.lock().remove(id);
        Ok(self.local.close_session(id).await?)
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        Ok(self.local.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        Ok(self.local.has_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.local.create_stream(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.local.create_standalone_stream(id).await?)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.local.resume(id, last_event_id).await?)
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        Ok(self.local.accept_message(id, message).await?)
    }
}
