//! A connection pool without health checks.
//!
//! sqlx's pool pings the server when it lends a connection and when it takes it back; for single-statement changes that
//! would be most of the work. Here a connection returns only if its last statement succeeded. One that fails, or is
//! dropped half-way, is closed, which also rolls back its transaction.

#![allow(clippy::disallowed_methods, reason = "connections live in real time")]

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use tribune_core::Result;

use crate::error;

pub(crate) struct ConnectionPool<C> {
    count: usize,
    limit: Semaphore,
    idle: Mutex<Vec<(C, Instant)>>,
}

/// The right to use one connection of the pool, or to open one.
pub(crate) struct Permit<'s, C> {
    pool: &'s ConnectionPool<C>,
    _permit: SemaphorePermit<'s>,
}

impl<C> ConnectionPool<C> {
    pub(crate) fn new(count: usize, first: C) -> Self {
        Self { count, limit: Semaphore::new(count), idle: Mutex::new(vec![(first, Instant::now())]) }
    }

    /// Waits until fewer than `count` connections are in use.
    pub(crate) async fn acquire(&self) -> Result<Permit<'_, C>> {
        match self.limit.acquire().await {
            Ok(permit) => Ok(Permit { pool: self, _permit: permit }),
            Err(_) => Err(error::closed()),
        }
    }

    /// Lends no more connections, waits for those in use, at most for `patience`, and returns the idle ones.
    pub(crate) async fn close(&self, patience: Duration) -> Vec<C> {
        let all = u32::try_from(self.count).unwrap_or(u32::MAX);
        let _ = timeout(patience, self.limit.acquire_many(all)).await;
        self.limit.close();
        self.drain()
    }

    /// Removes all idle connections: after one was lost, the others are likely to be dead too.
    pub(crate) fn drain(&self) -> Vec<C> {
        self.idle.lock().drain(..).map(|(connection, _)| connection).collect()
    }
}

impl<C> Permit<'_, C> {
    /// The most recently used idle connection, and how long it has been idle.
    pub(crate) fn idle_connection(&self) -> Option<(C, Duration)> {
        let (connection, since) = self.pool.idle.lock().pop()?;
        Some((connection, since.elapsed()))
    }

    /// Only for a connection without a running statement.
    pub(crate) fn release(&self, connection: C) {
        if !self.pool.limit.is_closed() {
            self.pool.idle.lock().push((connection, Instant::now()));
        }
    }
}
