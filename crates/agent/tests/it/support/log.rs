//! What is logged, at every level, heard by whoever listens on its thread.

use std::cell::RefCell;
use std::io::Write;
use std::sync::Once;

use tracing_subscriber::filter::LevelFilter;

thread_local! {
    static HEARD: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

struct Listener;

impl Write for Listener {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        HEARD.with_borrow_mut(|heard| {
            if let Some(heard) = heard {
                heard.extend_from_slice(bytes);
            }
        });
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// One for all tests, before anything is logged: a place in the code that logs first asks whether anybody listens, and
/// remembers the answer.
pub fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).with_writer(|| Listener).with_ansi(false).init();
    });
}

/// Everything that is logged meanwhile: all of a test runs on its own thread.
pub async fn logged(work: impl Future<Output = ()>) -> String {
    HEARD.set(Some(Vec::new()));
    work.await;
    let heard = HEARD.take().expect("what was heard");
    String::from_utf8(heard).expect("UTF-8")
}
