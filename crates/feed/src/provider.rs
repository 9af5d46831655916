//! The feeds of a source as a provider: polled when they are due, and read from the archive.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::{StreamExt, stream};
use tokio::time::{Instant, sleep_until};
use tribune_core::{Clock, Readers};
use tribune_corpus::format::{Fault, Record, Sink, Stop};
use tribune_corpus::provider::{Listing, Provider, ProviderError, Unreachable};

use crate::archive::{Archive, State};
use crate::entry::{self, Entry};
use crate::fetch::{Clients, Fetched};

/// Requests in flight at once.
const CONCURRENT_REQUESTS: usize = 4;

pub struct Feeds {
    urls: Vec<String>,
    every: Duration,
    archive: Archive,
    clock: Arc<dyn Clock>,
    /// When to poll next; `None` before the first poll.
    due: Mutex<Option<Instant>>,
    /// Why the last poll of a feed failed, by URL.
    problems: Mutex<BTreeMap<String, String>>,
}

impl Feeds {
    pub fn new(urls: Vec<String>, every: Duration, dir: PathBuf, clock: Arc<dyn Clock>) -> Self {
        Self { urls, every, archive: Archive::new(dir), clock, due: Mutex::default(), problems: Mutex::default() }
    }

    fn problems(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.problems.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Polls the feeds that are due. A failing feed does not affect the others.
    fn poll(&self) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let clients = Clients::new().map_err(io::Error::other)?;
        let poll_all =
            stream::iter(&self.urls).for_each_concurrent(CONCURRENT_REQUESTS, |url| self.poll_one(url, &clients));
        // The caller may be on an async thread, where blocking on a runtime panics.
        std::thread::scope(|scope| drop(scope.spawn(|| runtime.block_on(poll_all))));
        runtime.shutdown_background();
        Ok(())
    }

    async fn poll_one(&self, url: &str, clients: &Clients) {
        let mut state = self.archive.state(url);
        let now = self.clock.now();
        // Up to 30 s early counts as due: timers and the wall clock do not agree to the second.
        let age = state.checked.map(|checked| now.duration_since(checked).as_secs());
        let is_due = age.is_none_or(|age| age < 0 || age.unsigned_abs() + 30 >= self.every.as_secs());
        if is_due {
            state.problem = self.update(url, &mut state, clients).await.err();
            state.checked = Some(now);
            if let Err(error) = self.archive.write_state(url, &state) {
                state.problem = Some(format!("its state cannot be stored: {error}"));
            }
        }
        let mut problems = self.problems();
        match state.problem {
            Some(problem) => problems.insert(url.to_owned(), problem),
            None => problems.remove(url),
        };
    }

    async fn update(&self, url: &str, state: &mut State, clients: &Clients) -> Result<(), String> {
        match clients.fetch(url, &state.validators).await? {
            Fetched::NotModified => Ok(()),
            Fetched::Body { bytes, validators } => {
                let entries = entry::parse(url, &bytes)?;
                let merged = self.archive.merge(url, entries);
                merged.map_err(|error| format!("its entries cannot be stored: {error}"))?;
                state.validators = validators;
                Ok(())
            }
        }
    }
}

#[async_trait]
impl Provider for Feeds {
    fn fingerprint(&self) -> String {
        "feed-1".to_owned()
    }

    fn list(&self) -> Result<Listing, ProviderError> {
        let failed = |doing: &str| {
            let doing = doing.to_owned();
            |error: io::Error| ProviderError::Failed { doing, cause: Box::new(error) }
        };
        self.archive.open(&self.urls).map_err(failed("opening the folder of feeds"))?;
        self.poll().map_err(failed("polling feeds"))?;
        let problems = self.problems().clone();
        let unreachable = problems
            .into_iter()
            .map(|(url, problem)| Unreachable { fault: Fault::skipped(url, problem), readers: Readers::default() });
        Ok(Listing {
            items: self.archive.items().map_err(failed("reading the folder of feeds"))?,
            unreachable: unreachable.collect(),
            ..Listing::default()
        })
    }

    fn read(&self, key: &str, sink: &mut dyn Sink) -> Result<(), Stop> {
        match self.archive.read(key) {
            Ok(entries) => entries.into_iter().try_for_each(|entry| sink.record(None, record(entry), Vec::new())),
            Err(error) => {
                sink.fault(None, true, format!("cannot be read: {error}"));
                Ok(())
            }
        }
    }

    fn holds_many(&self, _key: &str) -> bool {
        true
    }

    async fn changed(&self) {
        let due = *self.due.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(Instant::now);
        sleep_until(due).await;
        *self.due.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + self.every);
    }

    fn origin(&self) -> Option<String> {
        Some(self.urls.join(", "))
    }

    fn degraded(&self) -> Option<String> {
        let problems = self.problems();
        let (url, problem) = problems.first_key_value()?;
        Some(match problems.len() - 1 {
            0 => format!("{url}: {problem}"),
            more => format!("{url}: {problem} (and {more} more feeds)"),
        })
    }
}

fn record(entry: Entry) -> Record {
    let date = entry.fields.get("date").and_then(|date| date.as_str()?.parse().ok());
    Record {
        key: entry.id,
        title: entry.title,
        text: entry.text,
        date,
        url: entry.url,
        fields: entry.fields,
        ..Record::default()
    }
}
