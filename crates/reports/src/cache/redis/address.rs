//! The address of Redis.

use std::sync::Arc;

use redis::{Client, ConnectionAddr, IntoConnectionInfo};
use tribune_core::{Error, Result};

pub(super) struct Address {
    pub(super) client: Client,
    /// Without secrets.
    pub(super) place: Arc<str>,
}

impl Address {
    /// Errors do not repeat the address: it may contain a password.
    pub(super) fn parse(url: &str) -> Result<Self> {
        let bad = |why: &str| {
            Error::invalid_argument(format!(
                "the Redis URL cannot be used: {why}; write it as redis://host:6379, with rediss:// for TLS, \
                 user:password@ before the host, or /2 after the port for database 2 (percent-encode special characters)"
            ))
        };
        if url.trim().is_empty() {
            return Err(bad("it is empty"));
        }
        if redis::parse_redis_url(url).is_none() {
            return Err(bad("it is no URL that begins with redis:// or rediss://"));
        }
        if url.contains('#') {
            return Err(bad("it ends in a `#` fragment, and TLS is never used without checks"));
        }
        let info = url.into_connection_info().map_err(|_| bad("its host, port or database is missing or malformed"))?;
        // Saves a round trip per connection.
        let settings = info.redis_settings().clone().set_skip_set_lib_name();
        let database = settings.db();
        let secure = matches!(info.addr(), ConnectionAddr::TcpTls { .. });
        let mut place = format!("Redis at {}", info.addr());
        if database != 0 {
            place.push_str(&format!(", database {database}"));
        }
        if secure {
            // An error means that the program has installed a provider already.
            drop(rustls::crypto::ring::default_provider().install_default());
        }
        let client = Client::open(info.set_redis_settings(settings)).map_err(|_| bad("it names no server"))?;
        Ok(Self { client, place: place.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(url: &str) -> String {
        Address::parse(url).expect("an address").place.to_string()
    }

    #[test]
    fn places_have_no_secrets() {
        assert_eq!(place("redis://127.0.0.1"), "Redis at 127.0.0.1:6379");
        assert_eq!(place("redis://me:hunter2@cache.example:7000/3"), "Redis at cache.example:7000, database 3");
        assert_eq!(place("rediss://:hunter2@cache.example"), "Redis at cache.example:6379");
    }

    #[test]
    fn malformed_addresses_are_refused_without_secrets() {
        for url in [
            "",
            "  ",
            "127.0.0.1:6379",
            "http://:hunter2@127.0.0.1",
            "redis://",
            "redis://:hunter2@host:99999",
            "redis://:hunter2@host/hunter2",
            "rediss://:hunter2@host#insecure",
            "redis://:hunter2@host?protocol=hunter2",
        ] {
            let Err(error) = Address::parse(url) else {
                panic!("`{url}` was accepted");
            };
            let text = format!("{error} {error:?}");
            assert!(text.contains("redis://host:6379"), "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
    }
}
