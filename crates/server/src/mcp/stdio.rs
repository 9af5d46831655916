//! MCP over standard input and output: stdout carries protocol only.

use std::sync::Arc;

use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use tribune_core::Principal;

use super::Handler;
use crate::service::{Profile, Service};

#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    #[error("the client closed the connection: {0}")]
    Broken(String),
}

/// Serves until standard input ends or the service stops.
pub async fn serve_stdio(service: Arc<Service>, profile: Arc<Profile>) -> Result<(), StdioError> {
    let stopping = service.stopping.clone();
    let handler = Handler {
        service,
        profile,
        default_principal: Principal::Local,
    };
    match serve_server_with_ct(handler, rmcp::transport::stdio(), stopping).await {
        Ok(running) => {
            drop(running.waiting().await);
            Ok(())
        }
        // Closing before `initialize` is not an error.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(error) => Err(StdioError::Broken(error.to_string())),
    }
}
