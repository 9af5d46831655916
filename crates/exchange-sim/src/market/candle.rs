//! One candle.

use serde_json::{Value, json};

use super::tape::Aggregate;
use crate::interval::Millis;
use crate::number::{self, Money, Price, Quantity};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Candle {
    pub open_time: Millis,
    pub open: Price,
    pub high: Price,
    pub low: Price,
    pub close: Price,
    pub volume: Quantity,
    pub quote_volume: Money,
    pub trades: u64,
    pub buy_volume: Quantity,
    pub buy_quote_volume: Money,
    pub first_trade: u64,
    pub last_trade: u64,
}

impl Candle {
    pub fn flat(open_time: Millis, price: Price) -> Self {
        Self { open_time, open: price, high: price, low: price, close: price, ..Self::default() }
    }

    pub fn of(open_time: Millis, fills: &Aggregate) -> Self {
        let mut candle = Self::flat(open_time, fills.price);
        candle.first_trade = fills.first_trade;
        candle.last_trade = fills.last_trade;
        candle.add(fills);
        candle
    }

    /// Adds trades at one price. They may come out of order.
    pub fn add(&mut self, fills: &Aggregate) {
        self.high = self.high.max(fills.price);
        self.low = self.low.min(fills.price);
        if fills.first_trade < self.first_trade {
            self.open = fills.price;
            self.first_trade = fills.first_trade;
        }
        if fills.last_trade >= self.last_trade {
            self.close = fills.price;
            self.last_trade = fills.last_trade;
        }
        self.volume += fills.quantity;
        self.quote_volume = self.quote_volume.saturating_add(fills.money());
        self.trades = self.trades.saturating_add(fills.trade_count());
        if !fills.buyer_is_maker {
            self.buy_volume += fills.quantity;
            self.buy_quote_volume = self.buy_quote_volume.saturating_add(fills.money());
        }
    }

    /// Adds the candle that follows.
    pub fn extend(&mut self, next: &Self) {
        self.high = self.high.max(next.high);
        self.low = self.low.min(next.low);
        self.close = next.close;
        self.volume += next.volume;
        self.quote_volume = self.quote_volume.saturating_add(next.quote_volume);
        if self.trades == 0 {
            self.first_trade = next.first_trade;
        }
        if next.trades > 0 {
            self.last_trade = next.last_trade;
        }
        self.trades = self.trades.saturating_add(next.trades);
        self.buy_volume += next.buy_volume;
        self.buy_quote_volume = self.buy_quote_volume.saturating_add(next.buy_quote_volume);
    }

    /// A trade's id for the wire; −1 if nothing traded.
    pub fn id(&self, trade: u64) -> i64 {
        i64::try_from(trade).ok().filter(|_| self.trades > 0).unwrap_or(-1)
    }

    /// The twelve columns of a kline.
    pub fn row(&self, close_time: Millis) -> Value {
        json!([
            self.open_time,
            number::fixed(self.open),
            number::fixed(self.high),
            number::fixed(self.low),
            number::fixed(self.close),
            number::fixed(self.volume),
            close_time,
            number::fixed_money(self.quote_volume),
            self.trades,
            number::fixed(self.buy_volume),
            number::fixed_money(self.buy_quote_volume),
            "0"
        ])
    }
}
