//! The allocator, and how it gives memory back.

#![allow(clippy::disallowed_methods, reason = "memory is given back at real intervals")]

use std::cell::Cell;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const GIVE_BACK_EVERY: Duration = Duration::from_secs(1);

/// Returns what a thread no longer uses to the system, at most once a second. Called when a thread
/// has nothing to do: mimalloc keeps memory that one thread took and another freed until the first
/// asks for more, so after a burst of sessions an idle server would hold on to all of theirs.
pub fn give_back() {
    thread_local! {
        static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
    }
    let now = Instant::now();
    if LAST.get().is_some_and(|last| now.duration_since(last) < GIVE_BACK_EVERY) {
        return;
    }
    LAST.set(Some(now));
    // SAFETY: takes no pointers and may be called from any thread at any time.
    #[allow(unsafe_code)]
    unsafe {
        libmimalloc_sys::mi_collect(false);
    }
}
