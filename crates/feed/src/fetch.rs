//! One request for a feed: conditional, and limited in time, size and redirects.

use std::time::Duration;

use reqwest::header::{ACCEPT, ETAG, HeaderMap, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, LAST_MODIFIED};
use reqwest::{StatusCode, Url};
use serde::{Deserialize, Serialize};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// From the start of a request to the last byte of its answer.
const TIMEOUT: Duration = Duration::from_secs(30);
const MAX_REDIRECTS: usize = 5;
const MAX_BODY_BYTES: usize = 8 * 1024 * 1024;
const ACCEPTED: &str =
    "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=0.9, */*;q=0.5";

/// The headers that identify the version the server sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validators {
    pub etag: Option<String>,
    pub last_modified: Option<String>,
}

pub enum Fetched {
    NotModified,
    Body { bytes: Vec<u8>, validators: Validators },
}

/// The clients of one poll.
pub struct Clients {
    timeout: Duration,
    /// Uses the proxy of the environment, if there is one.
    proxied: reqwest::Client,
    /// For this machine.
    direct: reqwest::Client,
}

impl Clients {
    pub fn new() -> reqwest::Result<Self> {
        Self::with_timeout(TIMEOUT)
    }

    fn with_timeout(timeout: Duration) -> reqwest::Result<Self> {
        // Fails if the program has installed a provider already, which is fine.
        drop(rustls::crypto::ring::default_provider().install_default());
        let builder = || {
            reqwest::Client::builder()
                .connect_timeout(CONNECT_TIMEOUT)
                .timeout(timeout)
                .redirect(reqwest::redirect::Policy::limited(MAX_REDIRECTS))
                .user_agent(concat!("tribune/", env!("CARGO_PKG_VERSION")))
        };
        Ok(Self { timeout, proxied: builder().build()?, direct: builder().no_proxy().build()? })
    }

    /// Gets a feed, unless it is still the version of `validators`. The error is for the operator.
    pub async fn fetch(&self, url: &str, validators: &Validators) -> Result<Fetched, String> {
        let parsed = Url::parse(url).map_err(|error| format!("not a URL: {error}"))?;
        let is_local = matches!(parsed.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        let client = if is_local { &self.direct } else { &self.proxied };
        let mut request = client.get(parsed).header(ACCEPT, ACCEPTED);
        if let Some(etag) = &validators.etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        if let Some(last_modified) = &validators.last_modified {
            request = request.header(IF_MODIFIED_SINCE, last_modified);
        }
        let mut answer = request.send().await.map_err(|error| self.reason(&error))?;
        if answer.status() == StatusCode::NOT_MODIFIED {
            return Ok(Fetched::NotModified);
        }
        if !answer.status().is_success() {
            return Err(format!("the server answered {}", answer.status()));
        }
        let validators =
            Validators { etag: text(answer.headers(), &ETAG), last_modified: text(answer.headers(), &LAST_MODIFIED) };
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| self.reason(&error))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MAX_BODY_BYTES {
                return Err(format!("larger than {} MiB", MAX_BODY_BYTES / 1024 / 1024));
            }
        }
        Ok(Fetched::Body { bytes, validators })
    }

    /// Without the URL, which the caller adds.
    fn reason(&self, error: &reqwest::Error) -> String {
        if error.is_timeout() {
            return format!("no complete answer within {} s", self.timeout.as_secs_f32());
        }
        if error.is_redirect() {
            return format!("more than {MAX_REDIRECTS} redirects");
        }
        if error.is_connect() {
            return "cannot connect".to_owned();
        }
        let cause = std::error::Error::source(error).map(ToString::to_string);
        cause.unwrap_or_else(|| "the connection failed".to_owned())
    }
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    /// Sends a byte every 20 ms, each of them far within the timeout, and a complete answer only after ten seconds.
    fn dripping_server() -> String {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            drop(stream.read(&mut [0; 4096]));
            drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"));
            for _ in 0..500 {
                if stream.write_all(b"x").is_err() {
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        format!("http://{address}/feed")
    }

    #[tokio::test]
    async fn timeout_covers_the_whole_answer() {
        let client = Clients::with_timeout(Duration::from_millis(500)).expect("clients");
        let fetched = client.fetch(&dripping_server(), &Validators::default()).await;
        let problem = fetched.err().expect("a timeout");
        assert_eq!(problem, "no complete answer within 0.5 s");
    }
}
