//! Connections that are used again.
//!
//! sqlx has a pool that asks the server before lending a connection and after taking it back; for changes of a
//! single statement that would be most of the work. Here a connection comes back only from whoever saw its last
//! statement succeed. What fails, or is dropped in the middle, is closed and never used again, which also undoes
//! whatever it had begun.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use tribune_core::Result;

use crate::error;

pub(crate) struct Spares<C> {
    count: usize,
    limit: Semaphore,
    idle: Mutex<Vec<(C, Instant)>>,
}

/// A connection, or the right to open one.
pub(crate) struct Place<'s, C> {
    spares: &'s Spares<C>,
    _permit: SemaphorePermit<'s>,
}

impl<C> Spares<C> {
    pub(crate) fn new(count: usize, first: C) -> Self {
        Self {
            count,
            limit: Semaphore::new(count),
            idle: Mutex::new(vec![(first, Instant::now())]),
        }
    }

    /// Waits until fewer than `count` are in use.
    pub(crate) async fn place(&self) -> Result<Place<'_, C>> {
        match self.limit.acquire().await {
            Ok(permit) => Ok(Place {
                spares: self,
                _permit: permit,
            }),
            Err(_) => Err(error::closed()),
        }
    }

    /// Waits for those in use, but not for ever, and lends nobody one from then on. Gives back the idle ones.
    pub(crate) async fn close(&self, patience: Duration) -> Vec<C> {
        let all = u32::try_from(self.count).unwrap_or(u32::MAX);
        let _ = timeout(patience, self.limit.acquire_many(all)).await;
        self.limit.close();
        self.forget()
    }

    /// After one connection broke off, the others are likely to be no better.
    pub(crate) fn forget(&self) -> Vec<C> {
        self.idle().drain(..).map(|(connection, _)| connection).collect()
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<(C, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<C> Place<'_, C> {
    /// The connection that was used last, and for how long it was not.
    pub(crate) fn spare(&self) -> Option<(C, Duration)> {
        let (connection, since) = self.spares.idle().pop()?;
        Some((connection, since.elapsed()))
    }

    /// Only with nothing under way on it.
    pub(crate) fn give_back(&self, connection: C) {
        if !self.spares.limit.is_closed() {
            self.spares.idle().push((connection, Instant::now()));
        }
    }
}
