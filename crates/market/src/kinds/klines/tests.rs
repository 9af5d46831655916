use super::*;
use tribune_binance::testing::{minute, price};
use tribune_page::Content;

/// A thousand minutes; only a part fits into an answer.
fn unlisted(start: Option<Millis>) -> Unlisted {
    let candles: Vec<Candle> = (0..1_000).map(|at| minute(at, ["64000.12345678"; 4], "1234567.12345678")).collect();
    let range = Range { start, ..Range::newest(Interval::M1, 1_000) };
    let klines = Klines::new(&candles, &candles, range, 0);
    assert!(klines.listed() < MAX_SHOWN, "the bytes, not the count, are what is short");
    let cut = klines.klines_cut.expect("some are left out");
    let left_out = 1_000 - klines.klines.rows.len();
    assert!(cut.starts_with(&format!("{left_out} rows")), "{cut}");
    klines.klines_unlisted.expect("a part")
}

#[test]
fn unlisted_candles_can_be_asked_for() {
    let newest = unlisted(None);
    let first_listed = (1_000 - newest.rows as i64) * 60_000;
    assert_eq!((newest.listed, newest.ask_with_end_time), (End::Newest, Some(first_listed - 1)));
    assert_eq!(
        newest.sentence(),
        format!(
            "Figures are of all 1000; the newest {} are listed: for the others ask with end_time {}.",
            newest.rows,
            first_listed - 1
        )
    );
    let oldest = unlisted(Some(0));
    let next = oldest.rows as i64 * 60_000;
    assert_eq!((oldest.listed, oldest.ask_with_start_time), (End::Oldest, Some(next)));
    assert!(Unlisted::new(&[], &[], false).is_none());
}

#[test]
fn change_is_measured_from_the_first_open() {
    let change = |from, to| {
        let (amount, _) = change(price(from), price(to), "%".to_owned())?;
        Some(amount.text)
    };
    // (110 − 80)/80 = 37.5 %; (2 − 3)/3 = −33.333… %.
    assert_eq!(change("80", "110").as_deref(), Some("+37.5"));
    assert_eq!(change("3", "2").as_deref(), Some("-33.333"));
    assert_eq!(change("0", "1"), None);
}

/// Minutes from 00:00 on; the answer lists the first two.
fn klines(candles: usize, last_closed: bool) -> Klines {
    let first = "2026-11-16T00:00:00Z".parse::<Timestamp>().expect("a time");
    let first = first.as_millisecond();
    let minutes = [
        minute(first / 60_000, ["100", "120", "99", "110"], "1"),
        minute(first / 60_000 + 1, ["110", "115", "90", "105"], "1"),
    ];
    let closed = if last_closed { &minutes[..] } else { &minutes[..1] };
    let range = Range::newest(Interval::M1, 2);
    Klines { candles, ..Klines::new(&minutes, closed, range, first) }
}

/// Of 900 candles the first two are listed, hours before the answer: neither is its price the last, nor is it open.
#[test]
fn cut_list_shows_its_own_last_close() {
    let klines = klines(900, true);
    let page = Page::example("2026-11-16T15:00:30Z", 7);
    let page = page.page();
    let headline = klines.headline(&page).expect("a headline");
    assert_eq!((&*headline.label, &*headline.value.text), ("Last close", "105"));
    let ended = "2026-11-16T00:01:59.999Z".parse::<Timestamp>().expect("a time");
    assert_eq!((headline.as_of, headline.age_ms), (Some(ended), None));
    // (105 − 100)/100 of the two that are drawn, and their range.
    let (change, _) = headline.change.expect("a change");
    assert_eq!(change, Amount::new("+5", "% over 2 candles"));
    let range: Vec<_> = headline.figures.iter().filter_map(|figure| Some(&*figure.value.as_ref()?.text)).collect();
    assert_eq!(range, ["120", "90"]);
    let panel = klines.chart(&page);
    let note = panel.note.expect("a note");
    assert!(note.contains("2 of 900 candles of 1m") && note.contains("all are closed"), "{note}");
    let Content::Candles(drawn) = panel.content else { panic!() };
    assert!(drawn.candles.iter().all(|candle| !candle.is_open));
    assert!(!klines.shown().contains("high_price"), "the answer's own figures are shown beside");
}

#[test]
fn newest_open_candle_is_the_price_now() {
    let page = Page::example("2026-11-16T00:01:30Z", 7);
    let page = page.page();
    let open = klines(2, false);
    let headline = open.headline(&page).expect("a headline");
    assert_eq!((&*headline.label, headline.as_of), ("Last price", Some(page.as_of())));
    assert_eq!(headline.age_ms, Some(7));
    let note = open.chart(&page).note.expect("a note");
    assert!(note.contains("2 candles of 1m") && note.contains("the last is unfinished"), "{note}");
    // The same where the older ones were left out.
    assert_eq!(klines(900, false).headline(&page).expect("a headline").label, "Last price");
}
