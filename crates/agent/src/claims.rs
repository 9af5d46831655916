//! What only one turn at a time may do, within this process.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug, Clone, Default)]
pub(crate) struct Claims(Arc<Mutex<HashSet<String>>>);

/// Held for as long as it lives.
#[derive(Debug)]
pub(crate) struct Claim {
    claims: Claims,
    key: String,
    kept: bool,
}

impl Claims {
    /// `None` if somebody holds it.
    pub(crate) fn take(&self, key: String) -> Option<Claim> {
        let free = self.lock().insert(key.clone());
        free.then(|| Claim {
            claims: self.clone(),
            key,
            kept: false,
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Claim {
    /// Nobody takes it again for as long as the process lives.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.kept {
            self.claims.lock().remove(&self.key);
        }
    }
}
