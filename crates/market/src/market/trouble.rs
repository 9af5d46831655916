//! Why the market is degraded or unavailable, for its operator.

use super::Market;
use tribune_binance::BookState;

/// Shorter troubles are not reported.
const PASSING_MS: u64 = 10_000;
/// Older failures are not reported.
const RECENT_MS: u64 = 60_000;

impl Market {
    /// Why the market cannot answer as it should.
    pub fn current_trouble(&self) -> Option<String> {
        if let Some(error) = &*self.known.trouble.lock() {
            return Some(format!("symbols: {error}"));
        }
        if let Some(wait) = self.rest.governor().paused_for() {
            let secs = wait.as_secs() + 1;
            return Some(format!("the exchange asked for a pause, which ends in {secs} s"));
        }
        let streams = self.feed.health.trouble().map(|why| format!("streams: {why}"));
        let requests = || self.failing_requests().map(|why| format!("requests: {why}"));
        let books = || self.books_not_live().map(|why| format!("books: {why}"));
        streams.or_else(requests).or_else(books)
    }

    /// Why requests fail, if they have failed for a while.
    fn failing_requests(&self) -> Option<String> {
        let failing = self.rest.failing()?;
        let lasts = failing.since.age_ms(&*self.clock) >= PASSING_MS && failing.last.age_ms(&*self.clock) <= RECENT_MS;
        lasts.then(|| failing.why.to_string())
    }

    /// Pinned books that have not been live for a while.
    fn books_not_live(&self) -> Option<String> {
        let books = self.feed.books();
        let out = books.iter().filter(|book| book.is_pinned()).filter_map(|book| {
            let status = book.status();
            let is_out = matches!(status.state, BookState::Stale | BookState::Resyncing);
            let lasts = is_out && status.since.age_ms(&*self.clock) >= PASSING_MS;
            lasts.then(|| (book.symbol.clone(), status))
        });
        let out: Vec<_> = out.collect();
        let (symbol, status) = out.first()?;
        let why = status.reason.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        let others = match out.len() - 1 {
            0 => String::new(),
            others => format!(", and {others} others are not live"),
        };
        Some(format!("{symbol} is {}{why}{others}", status.state.as_str()))
    }
}
