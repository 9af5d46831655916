use super::*;
use tribune_binance::testing::minute;

/// A thousand minutes; only a part fits into an answer.
fn unlisted(start: Option<Millis>) -> Unlisted {
    let candles: Vec<Candle> = (0..1_000).map(|at| minute(at, ["64000.12345678"; 4], "1234567.12345678")).collect();
    let query = KlinesQuery { start, ..KlinesQuery::newest(Interval::M1, 1_000) };
    let klines = Klines::new(&candles, &candles, query);
    assert!(klines.klines_listed < MAX_SHOWN, "the bytes, not the count, are what is short");
    let cut = klines.klines_cut.expect("some are left out");
    let left_out = 1_000 - klines.klines_listed;
    assert!(cut.starts_with(&format!("{left_out} rows")), "{cut}");
    klines.klines_unlisted.expect("a part")
}

#[test]
fn unlisted_candles_can_be_requested() {
    let newest = unlisted(None);
    let first_listed = (1_000 - newest.rows as i64) * 60_000;
    assert_eq!((newest.listed, newest.ask_with_end_time), ("newest", Some(first_listed - 1)));
    let oldest = unlisted(Some(0));
    let next = oldest.rows as i64 * 60_000;
    assert_eq!((oldest.listed, oldest.ask_with_start_time), ("oldest", Some(next)));
    assert!(Unlisted::new(&[], &[], Keep::Last).is_none());
}

#[test]
fn only_open_candle_has_a_headline() {
    let minutes = [minute(0, ["100", "120", "99", "110"], "1"), minute(1, ["110", "115", "90", "105"], "1")];
    let headline = |closed| Klines::new(&minutes, &minutes[..closed], KlinesQuery::newest(Interval::M1, 2)).headline();
    assert!(headline(1).starts_with("close_price"));
    assert_eq!(headline(2), "");
}
