//! One candle.

use serde_json::{Value, json};

use super::tape::Trade;
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

    pub fn of(open_time: Millis, trade: &Trade) -> Self {
        let (bought, bought_money) = if trade.buyer_is_maker { (0, 0) } else { (trade.quantity, trade.money()) };
        Self {
            volume: trade.quantity,
            quote_volume: trade.money(),
            trades: 1,
            buy_volume: bought,
            buy_quote_volume: bought_money,
            first_trade: trade.id,
            last_trade: trade.id,
            ..Self::flat(open_time, trade.price)
        }
    }

    /// Adds other trades, which may come late.
    pub fn add(&mut self, other: &Self) {
        self.high = self.high.max(other.high);
        self.low = self.low.min(other.low);
        if other.first_trade < self.first_trade {
            self.open = other.open;
            self.first_trade = other.first_trade;
        }
        if other.last_trade >= self.last_trade {
            self.close = other.close;
            self.last_trade = other.last_trade;
        }
        self.volume += other.volume;
        self.quote_volume = self.quote_volume.saturating_add(other.quote_volume);
        self.trades = self.trades.saturating_add(other.trades);
        self.buy_volume += other.buy_volume;
        self.buy_quote_volume = self.buy_quote_volume.saturating_add(other.buy_quote_volume);
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
