//! How many streams, or running chats, one caller may have at once.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use super::Subject;

/// How many each caller has now.
pub struct Places {
    /// 0 limits nothing.
    max: usize,
    taken: Mutex<HashMap<Subject, usize>>,
}

/// The place of one stream or chat, until it is dropped.
pub struct Place(Option<(Arc<Places>, Subject)>);

impl Places {
    pub fn new(max: usize) -> Self {
        Self { max, taken: Mutex::default() }
    }

    /// `None` if the caller has too many. Without a subject there is no limit.
    pub fn take(self: &Arc<Self>, subject: Option<Subject>) -> Option<Place> {
        let Some(subject) = subject.filter(|_| self.max > 0) else {
            return Some(Place(None));
        };
        let mut taken = self.taken.lock();
        let own = taken.entry(subject.clone()).or_default();
        if *own >= self.max {
            return None;
        }
        *own += 1;
        drop(taken);
        Some(Place(Some((self.clone(), subject))))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some((places, subject)) = &self.0 else {
            return;
        };
        let mut taken = places.taken.lock();
        match taken.get_mut(subject) {
            Some(own) if *own > 1 => *own -= 1,
            _ => drop(taken.remove(subject)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_leaves_places_for_others() {
        let places = Arc::new(Places::new(2));
        let peer = |last| Subject::peer(Some([203, 0, 113, last].into()));
        let (first, second) = (places.take(peer(1)), places.take(peer(1)));
        assert!(first.is_some() && second.is_some() && places.take(peer(1)).is_none());
        assert!(places.take(peer(2)).is_some() && places.take(None).is_some());
        drop(first);
        assert!(places.take(peer(1)).is_some());
        drop(second);
        assert!(places.taken.lock().is_empty(), "callers without a stream are forgotten");
    }
}
