//! Requests in progress, within this process.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;

#[derive(Debug, Clone, Default)]
pub(crate) struct Claims(Arc<Mutex<HashSet<String>>>);

/// Released when it is dropped.
#[derive(Debug)]
pub(crate) struct Claim {
    claims: Claims,
    key: String,
}

impl Claims {
    /// `None` if the key is taken.
    pub(crate) fn take(&self, key: String) -> Option<Claim> {
        let free = self.0.lock().insert(key.clone());
        free.then(|| Claim { claims: self.clone(), key })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.claims.0.lock().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_claim_is_free_again() {
        let claims = Claims::default();
        let take = || claims.take("it".to_owned());
        let first = take().expect("it is free");
        assert!(take().is_none());
        drop(first);
        assert!(take().is_some());
    }
}
