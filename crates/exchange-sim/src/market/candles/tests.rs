use super::*;
use crate::number::Quantity;

const NOW: Millis = 250_000;

fn trade(id: u64, time: Millis, price: Price, quantity: Quantity, buyer_is_maker: bool) -> Trade {
    Trade { id, price, quantity, time, buyer_is_maker }
}

fn sample() -> Candles {
    let mut candles = Candles::new(Vec::new(), Some(0));
    candles.record(&trade(1, 60_000, 100, 2, false));
    candles.record(&trade(2, 60_500, 90, 1, true));
    candles.record(&trade(3, 119_999, 110, 3, false));
    candles.record(&trade(4, 240_000, 105, 1, true));
    candles
}

fn range(interval: &str, start: Option<Millis>, end: Option<Millis>, limit: usize) -> Range {
    Range { interval: interval.parse().expect("an interval"), start, end, limit }
}

fn opens(candles: &Candles, range: &Range) -> Vec<Millis> {
    candles.range(range, NOW).iter().map(|(candle, _)| candle.open_time).collect()
}

#[test]
fn candle_holds_its_trades() {
    let candle = sample().at("1m".parse().expect("an interval"), 60_000).expect("a candle");
    assert_eq!((candle.open, candle.high, candle.low, candle.close), (100, 110, 90, 110));
    assert_eq!((candle.volume, candle.trades, candle.buy_volume), (6, 3, 5));
    assert_eq!((candle.quote_volume, candle.buy_quote_volume), (620, 530));
}

#[test]
fn quiet_minute_is_flat_at_last_price() {
    let candle = sample().at("1m".parse().expect("an interval"), 120_000).expect("a candle");
    assert_eq!((candle.open, candle.close, candle.volume, candle.trades), (110, 110, 0, 0));
}

#[test]
fn start_gives_oldest_and_end_gives_newest() {
    let candles = sample();
    assert_eq!(opens(&candles, &range("1m", None, None, 2)), [180_000, 240_000]);
    assert_eq!(opens(&candles, &range("1m", Some(1), None, 2)), [60_000, 120_000]);
    assert_eq!(opens(&candles, &range("1m", Some(60_001), None, 2)), [120_000, 180_000]);
    assert_eq!(opens(&candles, &range("1m", None, Some(180_000), 2)), [120_000, 180_000]);
    assert_eq!(opens(&candles, &range("1m", Some(120_000), Some(190_000), 9)), [120_000, 180_000]);
    assert_eq!(opens(&candles, &range("1m", Some(999_000), None, 9)), Vec::<Millis>::new());
}

#[test]
fn long_candles_sum_short_ones() {
    let candles = sample();
    let hour = candles.at("1h".parse().expect("an interval"), 0).expect("a candle");
    let minutes = candles.range(&range("1m", Some(0), None, 100), NOW);
    assert_eq!(hour.volume, minutes.iter().map(|(candle, _)| candle.volume).sum::<i128>());
    assert_eq!((hour.open, hour.close, hour.high, hour.low), (100, 105, 110, 90));
}

#[test]
fn candle_that_opened_before_the_recording_does_not_exist() {
    let mut candles = sample();
    candles.known_since = Some(60_001);
    assert_eq!(opens(&candles, &range("1m", Some(0), None, 9)), [120_000, 180_000, 240_000]);
    assert_eq!(opens(&candles, &range("1h", Some(0), None, 9)), Vec::<Millis>::new());
}
