//! A listener that refuses connections while a fault says so.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::net::{TcpListener, TcpStream};

use crate::faults::Faults;

/// While connections are refused, a new one has this long to show that it is for `/sim/…`.
const FIRST_BYTES_WAIT: Duration = Duration::from_millis(100);

/// The client's address.
#[derive(Debug, Clone, Copy)]
pub struct Remote(pub SocketAddr);

pub struct FaultyListener {
    listener: TcpListener,
    faults: Arc<Faults>,
}

impl FaultyListener {
    pub const fn new(listener: TcpListener, faults: Arc<Faults>) -> Self {
        Self { listener, faults }
    }
}

impl Listener for FaultyListener {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            let (stream, remote) = Listener::accept(&mut self.listener).await;
            if self.faults.refuses_connections() && !is_for_simulator(&stream).await {
                continue;
            }
            // Small messages must not wait for the acknowledgement of earlier ones.
            let _ = stream.set_nodelay(true);
            return (stream, remote);
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Whether a connection begins with a request to `/sim/…`: faults can always be cleared.
async fn is_for_simulator(stream: &TcpStream) -> bool {
    let mut beginning = [0; 16];
    let peek = tokio::time::timeout(FIRST_BYTES_WAIT, stream.peek(&mut beginning)).await;
    let read = peek.map_or(0, |read| read.unwrap_or(0));
    let target = beginning[..read].splitn(2, |byte| *byte == b' ').nth(1);
    target.is_some_and(|target| target.starts_with(b"/sim/"))
}

impl Connected<IncomingStream<'_, FaultyListener>> for Remote {
    fn connect_info(stream: IncomingStream<'_, FaultyListener>) -> Self {
        Self(*stream.remote_addr())
    }
}
