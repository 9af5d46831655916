//! Connects to the exchange's streams: directly, or through the proxy that requests use; with TLS for `wss://`.

use std::io;
use std::sync::Arc;

use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_tungstenite::tungstenite::http::Uri;
use tower::ServiceExt;

use crate::rest::{distrust, is_loopback};

pub trait Io: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Io for T {}

/// A connection to `ws://…` or `wss://…` before the WebSocket handshake.
pub async fn dial(address: &Uri) -> io::Result<Box<dyn Io>> {
    let host = address
        .host()
        .ok_or_else(|| io::Error::other("the stream address has no host"))?;
    let secure = address.scheme_str() == Some("wss");
    let (scheme, usual) = if secure { ("https", 443) } else { ("http", 80) };
    let port = address.port_u16().unwrap_or(usual);
    let server: Uri = format!("{scheme}://{host}:{port}").parse().map_err(io::Error::other)?;
    let proxy = (!is_loopback(host)).then(|| Matcher::from_env().intercept(&server));
    let tcp = reach(server.clone(), proxy.flatten()).await?;
    if !secure {
        return Ok(Box::new(tcp));
    }
    let name = host.trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
    let secured = tls()?.connect(name, tcp).await;
    Ok(Box::new(secured.map_err(|error| untrusted(error, &server))?))
}

async fn reach(server: Uri, proxy: Option<Intercept>) -> io::Result<TcpStream> {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    let Some(proxy) = proxy else {
        let reached = connector.oneshot(server).await;
        return reached
            .map(hyper_util::rt::TokioIo::into_inner)
            .map_err(io::Error::other);
    };
    let place = proxy.uri().authority().map(ToString::to_string).unwrap_or_default();
    if proxy.uri().scheme_str() != Some("http") {
        let why = format!("streams cannot go through the proxy at {place}: only http:// proxies are supported");
        return Err(io::Error::other(why));
    }
    let mut tunnel = Tunnel::new(proxy.uri().clone(), connector);
    if let Some(auth) = proxy.basic_auth() {
        tunnel = tunnel.with_auth(auth.clone());
    }
    match tunnel.oneshot(server).await {
        Ok(tcp) => Ok(tcp.into_inner()),
        Err(error) => Err(io::Error::other(format!("through the proxy at {place}: {error}"))),
    }
}

/// TLS with the platform's trusted certificates.
fn tls() -> io::Result<TlsConnector> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier)
        .map_err(io::Error::other)?
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Explains a distrusted certificate with the same words as for requests.
fn untrusted(error: io::Error, server: &Uri) -> io::Error {
    let place = server.authority().map(ToString::to_string).unwrap_or_default();
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    match inner.map(distrust) {
        Some(why) => io::Error::other(format!("no secure connection to {place}: {why}")),
        None => error,
    }
}
