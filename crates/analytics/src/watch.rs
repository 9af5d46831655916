//! Observes one book once a second: walls, icebergs, and the usual values of its figures.

use parking_lot::Mutex;

use crate::Unavailable;
use crate::anomalies::{
    Anomalies, AnomalyKind, Baseline, Check, iceberg_check, liquidity_stress, quote_rate, vanished_check,
};
use crate::depth::{Band, band};
use crate::health::BAND_BPS;
use crate::history::{History, Sample};
use crate::icebergs::{self, IcebergTracker};
use crate::quotes::Touch;
use crate::walls::{WallTracker, Walls};
use rust_decimal::prelude::ToPrimitive;
use tribune_binance::{Beats, BookView, Millis, Notional, OBSERVED_SECS, Observer, Tape, Trade};

const SAMPLE_SECS: u64 = OBSERVED_SECS;
/// Vanished levels are listed for this long.
const NEWS_MS: Millis = 5 * 60 * 1000;
/// Iceberg hints that an answer lists.
const MOST_LISTED: usize = 10;
/// Why a book that has just been opened cannot be compared.
const UNWATCHED: Unavailable = Unavailable::TooShort { need_secs: SAMPLE_SECS as u32 };
/// A wall is worth at least this part of a day's turnover.
const FLOOR_PART_OF_DAY: i128 = 20_000;

#[derive(Debug, Default)]
pub struct Watch(Mutex<Watching>);

#[derive(Debug, Default)]
struct Watching {
    walls: WallTracker,
    icebergs: IcebergTracker,
    last_trade: u64,
    last_look: Millis,
    looks: u64,
    quote_rate: Baseline,
    depth: Baseline,
    spread: Baseline,
    /// Spread in basis points and the band near the mid, when last looked at; `None` before that.
    now: Option<Result<(f64, Band), Unavailable>>,
    beats: Beats,
    history: History,
}

impl Observer for Watch {
    fn set_turnover(&self, turnover: Notional) {
        let floor = Notional::from_units(turnover.units() / FLOOR_PART_OF_DAY);
        self.0.lock().walls.set_floor(floor);
    }

    fn look(&self, view: &BookView, tape: &Tape, beats: Beats, time: Millis) {
        self.0.lock().look(view, tape, beats, time);
    }

    fn interrupted(&self, time: Millis) {
        let mut watching = self.0.lock();
        watching.walls.reset();
        watching.icebergs.reset();
        // Trade ids may restart, and earlier trades say nothing about later views.
        watching.last_trade = 0;
        watching.last_look = time;
        watching.now = None;
        watching.beats = Beats::default();
        watching.history.interrupted(time);
    }
}

impl Watch {
    /// The walls of the last observation.
    pub fn walls(&self) -> Walls {
        self.0.lock().walls.walls()
    }

    /// The same in a newer book, without recording it as an observation.
    pub fn walls_in(&self, view: &BookView, tape: &Tape, time: Millis) -> Walls {
        let watching = self.0.lock();
        let (mut walls, trades) = (watching.walls.clone(), watching.trades_since(tape));
        drop(watching);
        walls.observe(&view.depth, &trades, time);
        walls.walls()
    }

    /// Spread and imbalance of the last minutes, oldest first, with gaps where the book was not exact.
    pub fn history(&self) -> Vec<Sample> {
        self.0.lock().history.samples()
    }

    /// The book's anomalies, with the `more` checks of the caller.
    pub fn anomalies(&self, now: Millis, more: Vec<Check>) -> Anomalies {
        let watching = self.0.lock();
        let (beats, walls) = (watching.beats, watching.walls.walls());
        let quote_rate = match beats.seconds {
            SAMPLE_SECS.. => quote_rate(beats.updates, beats.trades, &watching.quote_rate),
            _ => Check::not_made(AnomalyKind::QuoteRate, UNWATCHED),
        };
        let stress = match watching.now.as_ref().unwrap_or(&Err(UNWATCHED)) {
            Ok((spread, band)) => liquidity_stress(band, *spread, &watching.depth, &watching.spread),
            Err(reason) => Check::not_made(AnomalyKind::LiquidityStress, reason.clone()),
        };
        let since = now - NEWS_MS;
        let mut checks = vec![
            quote_rate.over(format!("the last {SAMPLE_SECS} s")),
            stress.over("the last second"),
            iceberg_check(&watching.icebergs).over(format!("the last {} s at most", icebergs::WINDOW_MS / 1_000)),
            vanished_check(&walls, since).over(news(walls.watched_ms)),
        ];
        checks.extend(more);
        Anomalies {
            icebergs: watching.icebergs.hints().into_iter().take(MOST_LISTED).collect(),
            vanished_untraded: walls.vanished_since(since).cloned().collect(),
            ..Anomalies::from(checks)
        }
    }
}

impl Watching {
    fn trades_since(&self, tape: &Tape) -> Vec<Trade> {
        let recent = tape.recent(self.last_look);
        recent.trades().filter(|trade| trade.last_id > self.last_trade).copied().collect()
    }

    fn look(&mut self, view: &BookView, tape: &Tape, beats: Beats, time: Millis) {
        let trades = self.trades_since(tape);
        self.last_look = trades.last().map_or(self.last_look, |trade| trade.time);
        self.last_trade = trades.last().map_or(self.last_trade, |trade| trade.last_id);
        self.walls.observe(&view.depth, &trades, time);
        self.icebergs.observe(&view.depth, &trades, time);
        self.now = Some(breadth(view));
        self.history.look(&view.depth, time);
        self.looks += 1;
        if self.looks.is_multiple_of(SAMPLE_SECS) && beats.seconds >= SAMPLE_SECS {
            if beats.trades > 0 {
                self.quote_rate.push(beats.updates as f64 / beats.trades as f64);
            }
            if let Some(Ok((spread, band))) = &self.now {
                self.spread.push(*spread);
                self.depth.push(band.smaller_side().as_f64());
            }
        }
        self.beats = beats;
    }
}

/// The window of the vanished levels, if the book has been watched that long.
fn news(watched_ms: Millis) -> String {
    let window = format!("the last {} s", NEWS_MS / 1_000);
    if watched_ms >= NEWS_MS {
        window
    } else {
        format!("{window}; the book has been watched for {} s", watched_ms / 1_000)
    }
}

fn breadth(view: &BookView) -> Result<(f64, Band), Unavailable> {
    let spread = Touch::of(&view.depth)?.spread_bps();
    let spread = spread.and_then(|bps| bps.to_f64()).ok_or(Unavailable::TooLarge)?;
    Ok((spread, band(&view.depth, BAND_BPS)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tribune_binance::testing::{price, quantity, trade};
    use tribune_binance::{Aggressor::Buyer, Depth, Level, Moment, Price};

    /// Twenty levels a side, and an ask of 500 at 102 that is a wall.
    fn look(watch: &Watch, tape: &Tape, has_wall: bool, time: Millis) {
        let of = |price: i64| Level { price: Price::from_units(price * 100_000_000), quantity: quantity("1") };
        let mut depth = Depth { bids: (80..100).map(of).collect(), asks: (103..123).map(of).collect() };
        depth.asks.set(Level { price: price("102"), quantity: quantity(if has_wall { "500" } else { "0" }) });
        let view = BookView {
            depth,
            last_update_id: 1,
            exchange_time: None,
            received: Moment::now(&tribune_clock::SystemClock),
        };
        watch.look(&view, tape, Beats::default(), time);
    }

    /// A wall that is there for a minute and then bought, by a trade with this id.
    fn vanished(watch: &Watch, tape: &Tape, from: Millis, id: u64) -> usize {
        for second in 0..60 {
            look(watch, tape, true, from + second * 1_000);
        }
        assert_eq!(watch.walls().walls.len(), 1, "a wall");
        tape.push(trade(id, from + 59_500, "102", "500", Buyer), false);
        // Until no trade would come late any more.
        for second in 60..75 {
            look(watch, tape, false, from + second * 1_000);
        }
        watch.walls().vanished_since(from).count()
    }

    #[test]
    fn bought_wall_is_traded_even_after_ids_restart() {
        let (watch, tape) = (Watch::default(), Tape::new(900_000));
        tape.opened(0);
        assert_eq!(vanished(&watch, &tape, 1_000, 5_000_000), 0);
        watch.interrupted(100_000);
        tape.opened(100_000);
        assert_eq!(vanished(&watch, &tape, 101_000, 7), 0, "it was bought");
    }
}
