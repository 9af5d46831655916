//! What only one turn at a time may do, within this process.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug, Clone, Default)]
pub(crate) struct Claims(Arc<Mutex<HashSet<String>>>);

/// Held for as long as it lives, or for ever once it is spent.
#[derive(Debug)]
pub(crate) struct Claim {
    claims: Claims,
    key: String,
    spent: bool,
}

impl Claims {
    /// `None` if somebody holds it.
    pub(crate) fn take(&self, key: String) -> Option<Claim> {
        let free = self.lock().insert(key.clone());
        free.then(|| Claim {
            claims: self.clone(),
            key,
            spent: false,
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Claim {
    /// Nobody takes it again for as long as the process lives, however this turn ends.
    pub(crate) const fn spend(&mut self) {
        self.spent = true;
    }

    /// What it was about is settled: there is nothing left to take, and its name can be forgotten.
    pub(crate) fn settle(mut self) {
        self.spent = false;
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if !self.spent {
            self.claims.lock().remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_free_again_unless_it_was_spent() {
        let claims = Claims::default();
        let take = || claims.take("it".to_owned());
        let first = take().expect("it is free");
        assert!(take().is_none());
        drop(first);
        let mut settled = take().expect("it is free again");
        settled.spend();
        settled.settle();
        let mut spent = take().expect("it was settled");
        spent.spend();
        drop(spent);
        assert!(take().is_none());
    }
}
