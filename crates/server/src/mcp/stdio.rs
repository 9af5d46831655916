//! MCP over standard input and output: stdout carries protocol only.

use std::sync::Arc;

use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use tribune_core::Principal;

use super::Handler;
use crate::service::{Profile, Service};

/// Serves until standard input ends or the service stops.
pub async fn serve_stdio(service: Arc<Service>, profile: Arc<Profile>) -> std::io::Result<()> {
    let stopping = service.stopping.clone();
    let handler = Handler { service, profile, default_principal: Principal::Local };
    match serve_server_with_ct(handler, rmcp::transport::stdio(), stopping).await {
        Ok(running) => {
            drop(running.waiting().await);
            Ok(())
        }
        // Closing before `initialize` is not an error.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
        Err(error) => Err(std::io::Error::other(format!("the client closed the connection: {error}"))),
    }
}
