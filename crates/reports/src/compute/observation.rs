//! The state of one symbol at one moment, read once, so that all figures agree.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::Inputs;
use crate::aged::{FRESH, millis, status};
use crate::model::{IngestionStatus, Section};
use tribune_binance::{BookState, BookView, Millis, Status, Trade, written};

pub(super) struct Observation<'a> {
    pub inputs: &'a Inputs<'a>,
    pub computed_at: String,
    pub book_status: Arc<Status>,
    /// `None` unless the book is live or stale.
    pub view: Option<Arc<BookView>>,
    pub last_trade: Option<Trade>,
    /// Time since the exchange last confirmed the data.
    pub age: Duration,
    pub status: IngestionStatus,
}

impl<'a> Observation<'a> {
    pub fn new(inputs: &'a Inputs<'a>) -> Self {
        // The age first: what is read later can only be newer.
        let confirmed = inputs.published.confirmed();
        let age = inputs.now.monotonic.saturating_duration_since(confirmed);
        let book_status = inputs.published.status();
        Self {
            inputs,
            computed_at: written(inputs.now.wall),
            view: book_status.view.clone(),
            book_status,
            last_trade: inputs.published.tape.last(),
            age,
            status: status(age, inputs.old_for),
        }
    }

    pub fn age_ms(&self) -> u64 {
        millis(self.age)
    }

    /// Whether the book is live and fresh.
    pub fn is_current(&self) -> bool {
        self.book_status.state == BookState::Live && self.age <= FRESH
    }

    /// Up to when trades are known, by the exchange's clock: now, the last confirmation, or the last trade.
    pub fn trades_until(&self) -> Millis {
        let now = self.inputs.exchange_now;
        if self.is_current() {
            return now;
        }
        let confirmed = now.saturating_sub(Millis::try_from(self.age_ms()).unwrap_or(Millis::MAX));
        let last = self.last_trade.map_or(confirmed, |trade| trade.time);
        confirmed.max(last).min(now)
    }

    /// The age of figures of trades up to `until`.
    pub fn trades_age_ms(&self, until: Millis) -> u64 {
        if self.is_current() {
            return self.age_ms();
        }
        u64::try_from(self.inputs.exchange_now.saturating_sub(until)).unwrap_or(0)
    }

    /// Why the book is not live.
    pub fn trouble(&self) -> Option<String> {
        let state = self.book_status.state;
        let why = self.book_status.reason.as_deref().unwrap_or("no reason is known");
        (state != BookState::Live).then(|| format!("the book is {}: {why}", state.as_str()))
    }

    /// The last change of the book or trade, by the exchange's clock where it says so.
    pub fn last_update(&self) -> Option<String> {
        let view = self.view.as_ref();
        let book = view.and_then(|view| view.exchange_time);
        let trade = self.last_trade.map(|trade| trade.time);
        let exchange = book.max(trade).and_then(exchange_time);
        exchange.or_else(|| view.map(|view| written(view.received.wall)))
    }

    pub fn section(&self, of: Option<Millis>, age_ms: u64, reason: Option<String>) -> Section {
        Section {
            computed_at: Some(self.computed_at.clone()),
            exchange_time: of.and_then(exchange_time),
            age_ms: Some(age_ms),
            reason,
        }
    }

    pub fn book_section(&self, reason: Option<String>) -> Section {
        let time = self.view.as_ref().and_then(|view| view.exchange_time);
        self.section(time, self.age_ms(), reason)
    }
}

/// A time of the exchange as text; `None` if it is out of range.
pub(super) fn exchange_time(millis: Millis) -> Option<String> {
    Timestamp::from_millisecond(millis).ok().map(written)
}
