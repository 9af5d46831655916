//! One candle.

use serde_json::{Value, json};

use super::tape::Trade;
use crate::interval::Millis;
use crate::number::{self, Money, Price, Quantity};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    pub const fn flat(open_time: Millis, price: Price) -> Self {
        Self {
            open_time,
            open: price,
            high: price,
            low: price,
            close: price,
            volume: 0,
            quote_volume: 0,
            trades: 0,
            buy_volume: 0,
            buy_quote_volume: 0,
            first_trade: 0,
            last_trade: 0,
        }
    }

    pub fn of_trade(open_time: Millis, trade: &Trade, count: u64) -> Self {
        let mut candle = Self::flat(open_time, trade.price);
        candle.first_trade = trade.id.saturating_sub(count.saturating_sub(1));
        candle.last_trade = trade.id;
        candle.add(trade, count);
        candle
    }

    /// Adds a trade, or `count` trades at one price that end with this id. Trades may come out of order.
    pub fn add(&mut self, trade: &Trade, count: u64) {
        self.high = self.high.max(trade.price);
        self.low = self.low.min(trade.price);
        if trade.id < self.first_trade {
            self.open = trade.price;
            self.first_trade = trade.id.saturating_sub(count.saturating_sub(1));
        }
        if trade.id >= self.last_trade {
            self.close = trade.price;
            self.last_trade = trade.id;
        }
        self.volume += trade.quantity;
        self.quote_volume = self.quote_volume.saturating_add(trade.money());
        self.trades = self.trades.saturating_add(count);
        if !trade.buyer_is_maker {
            self.buy_volume += trade.quantity;
            self.buy_quote_volume = self.buy_quote_volume.saturating_add(trade.money());
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
