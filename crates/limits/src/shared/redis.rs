//! Counts in Redis, which all nodes reach.
//!
//! `rate:9f86…`: a hash of what each node has counted for one key in one window; it expires after the window.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisResult};

use super::{Exchange, Told};

const WITHIN: Duration = Duration::from_secs(1);

/// Connects on first use, and again after any failure.
#[derive(Clone)]
pub struct RedisCounts {
    client: Client,
    /// No other process has it, nor had an earlier one on this machine.
    node: String,
    connection: Option<MultiplexedConnection>,
}

impl RedisCounts {
    pub fn new(client: Client, node: String) -> Self {
        Self { client, node, connection: None }
    }

    async fn sums(&mut self, told: &[Told]) -> RedisResult<Vec<u64>> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let config = AsyncConnectionConfig::new();
                let config = config.set_connection_timeout(Some(WITHIN)).set_response_timeout(Some(WITHIN));
                self.client.get_multiplexed_async_connection_with_config(&config).await?
            }
        };
        let mut commands = redis::pipe();
        for Told { key, own, keep_secs } in told {
            let key = format!("rate:{key:032x}");
            commands.cmd("HSET").arg(&key).arg(&self.node).arg(own).ignore();
            commands.cmd("EXPIRE").arg(&key).arg(keep_secs).ignore();
            commands.cmd("HVALS").arg(&key);
        }
        let counts: Vec<Vec<u64>> = commands.query_async(&mut connection).await?;
        self.connection = Some(connection);
        let sum = |counts: &Vec<u64>| counts.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
        Ok(counts.iter().map(sum).collect())
    }
}

impl Exchange for RedisCounts {
    async fn tell(&mut self, told: &[Told]) -> Result<Vec<u64>, String> {
        self.sums(told).await.map_err(|error| error.to_string())
    }
}
