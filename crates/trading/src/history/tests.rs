use super::*;
use crate::journal::Journal;

const TIME: &str = "2026-01-02T03:04:05Z";

fn line_of(action: &str, event: &str, order: &str, request: &str, more: &str) -> String {
    format!(
        "{{\"time\":\"{TIME}\",\"event\":\"{event}\",\"action\":\"{action}\",\"caller\":\"local\",{order},\
         \"request\":{{\"symbol\":\"SOLUSDT\"{request}}},{more}\"simulated\":null}}\n"
    )
}

fn line(event: &str, name: &str, more: &str) -> String {
    let action = if event == "found" || event == "absent" { "get_order" } else { "place_order" };
    line_of(action, event, &format!("\"client_order_id\":\"{name}\""), "", more)
}

/// Of a cancellation with a name of its own.
fn cancel(event: &str, name: &str, order: &str, more: &str) -> String {
    line_of("cancel_order", event, order, &format!(",\"cancellation\":\"{name}\""), more)
}

fn read(text: &str) -> History {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("journal.jsonl");
    std::fs::write(&path, text).expect("journal");
    Journal::open(&path, Instant::now()).expect("journal").history
}

fn change(history: &History, name: &str) -> Option<Change> {
    history.changes.borrow().get(name).cloned()
}

const FILLED: &str = "\"result\":{\"symbol\":\"SOLUSDT\",\"client_order_id\":\"done\",\"order_id\":28,\"status\":\"FILLED\",\
                      \"quantity\":\"0.1\",\"executed_quantity\":\"0.1\"},";

#[test]
fn outcomes_are_read_back_from_the_journal() {
    let text = [
        line("intent", "done", ""),
        line("done", "done", FILLED),
        line("intent", "killed", ""),
        line("intent", "refused", ""),
        line("refused", "refused", "\"error\":\"no\","),
        line("intent", "mended", ""),
        line("refused", "mended", ""),
        line("found", "mended", ""),
        line("intent", "absent", ""),
        line("unknown", "absent", ""),
        line("absent", "absent", ""),
    ];
    let history = read(&text.concat());
    let event = |name| change(&history, name).map(|change| change.line.event);
    assert_eq!(event("done"), Some(Event::Done));
    assert_eq!(event("killed"), Some(Event::Unknown), "no run is left to end it");
    assert_eq!(event("refused"), Some(Event::Refused));
    assert_eq!(event("mended"), Some(Event::Found));
    assert_eq!(event("absent"), Some(Event::Absent));
    assert_eq!(event("another"), None);
    assert_eq!(history.gap, None);
    let told = change(&history, "done").expect("an order").explain();
    assert!(told.message().contains("order_id 28, FILLED, 0.1 of 0.1 filled"), "{told}");
}

#[test]
fn journal_leaves_unanswered_orders_open() {
    let (thirty, thirty_one) = ("\"order_id\":30", "\"order_id\":31");
    let text = [
        line("intent", "done", ""),
        line("done", "done", ""),
        line("intent", "killed", ""),
        "{\"time\":\n".to_owned(),
        line("intent", "unknown", ""),
        line("unknown", "unknown", ""),
        cancel("intent", "c1", "\"client_order_id\":\"unknown\"", ""),
        cancel("refused", "c1", "\"client_order_id\":\"unknown\"", ""),
        line("intent", "found", ""),
        line("unknown", "found", ""),
        line("found", "found", ""),
        cancel("intent", "c2", "\"order_id\":28", ""),
        line("intent", "cancelled", ""),
        cancel("intent", "c3", thirty, ""),
        cancel("done", "c3", thirty, "\"result\":{\"order_id\":30,\"client_order_id\":\"cancelled\"},"),
        cancel("intent", "c4", thirty_one, ""),
        cancel("unknown", "c4", thirty_one, ""),
        cancel("intent", "c5", thirty_one, ""),
        cancel("refused", "c5", thirty_one, ""),
    ];
    let unresolved = read(&text.concat()).unresolved();
    let names: Vec<&Value> =
        unresolved.iter().map(|one| one.get("client_order_id").unwrap_or(&one["order_id"])).collect();
    assert_eq!(names, [&json!("killed"), &json!("unknown"), &json!(28), &json!(31)]);
    assert_eq!((&unresolved[2]["action"], &unresolved[2]["symbol"]), (&json!("cancel_order"), &json!("SOLUSDT")));
}

#[test]
fn order_may_arrive_for_ten_seconds() {
    let history = read(&line("intent", "killed", ""));
    let mut pending = change(&history, "killed").expect("an order");
    let given_up = pending.given_up.expect("of an earlier run");
    let after = |pending: &Change, millis| pending.may_arrive_for(given_up + Duration::from_millis(millis));
    assert_eq!(after(&pending, 3_000), Some(Duration::from_secs(7)));
    assert_eq!((after(&pending, 10_000), after(&pending, 99_000)), (None, None));
    pending.given_up = None;
    assert_eq!(after(&pending, 99_000), Some(MAY_ARRIVE_FOR), "its answer may come");
}

#[test]
fn orders_are_recent_for_a_minute() {
    let history =
        read(&[line("intent", "done", ""), line("done", "done", FILLED), line("intent", "killed", "")].concat());
    let after = |secs: i64| {
        let time: Timestamp = TIME.parse().expect("time");
        let recent = history.recent(time + SignedDuration::from_secs(secs));
        recent.into_iter().map(|order| order["client_order_id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!((after(60), after(61)), (vec![json!("done")], Vec::new()));
}

#[test]
fn unreadable_lines_are_counted_and_located() {
    let good = line("intent", "a", "");
    let history = read(&format!("{good}{{\"time\":secret\n\n{good}\0\0\0\n"));
    let told = "the journal of orders is incomplete: lines that cannot be read: 2, the first is line 2";
    assert_eq!(history.gap.as_deref(), Some(told));
}

#[test]
fn remembered_changes_are_bounded() {
    let intents = (0..=MAX_REMEMBERED).map(|number| line("intent", &format!("n{number}"), ""));
    let refused = line("refused", "n5", "");
    let text: String = intents.take(MAX_REMEMBERED).chain([refused, line("intent", "last", "")]).collect();
    let history = read(&text);
    assert_eq!(history.changes.borrow().len(), MAX_REMEMBERED);
    assert!(change(&history, "n5").is_none() && change(&history, "n0").is_some(), "open ones stay");
    let history = read(&(text + &line("intent", "more", "")));
    assert!(change(&history, "n0").is_none() && change(&history, "more").is_some(), "but not all");
}

#[test]
fn limits_count_the_last_day_and_minute() {
    let money = |text: &str| text.parse::<Notional>().expect("money");
    let worth = |name: &str, value: &str| line("intent", name, &format!("\"notional\":\"{value}\","));
    let text = [
        worth("one", "30"),
        worth("refused", "500"),
        line("refused", "refused", ""),
        worth("absent", "500"),
        line("unknown", "absent", ""),
        line("absent", "absent", ""),
        // Of a version that did not write values: as much as an order may be worth.
        line("intent", "old", ""),
        cancel("intent", "c1", "\"order_id\":28", ""),
    ];
    let history = read(&text.concat());
    let limits = |daily: &str, orders_per_minute| Limits {
        order_notional: money("50"),
        daily_notional: Some(money(daily)),
        orders_per_minute,
    };
    let after = |limits: &Limits, secs: i64, value: &str| {
        let time: Timestamp = TIME.parse().expect("time");
        let checked = history.check(limits, time + SignedDuration::from_secs(secs), money(value));
        checked.map_err(|error| error.message().to_owned())
    };
    let hundred = limits("100", None);
    assert_eq!(after(&hundred, 1, "20"), Ok(()));
    let error = after(&hundred, 1, "20.01").expect_err("above");
    assert!(
        error.contains("about 20.01 and the 80 ordered within 24 hours are above the limit for a day (100"),
        "{error}"
    );
    assert_eq!(after(&hundred, 86_399, "20.01").expect_err("still that day"), error);
    assert_eq!(after(&hundred, 86_400, "100"), Ok(()), "a day later");
    assert!(after(&hundred, -60, "30").is_err(), "a clock that was set back forgives nothing");
    let error = after(&limits("10000", Some(4)), 59, "1").expect_err("four were sent");
    assert!(error.contains("4 orders were sent in the last minute"), "{error}");
    assert_eq!(after(&limits("10000", Some(4)), 60, "1"), Ok(()));
    assert_eq!(after(&limits("10000", Some(5)), 59, "1"), Ok(()));
}
