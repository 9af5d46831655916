use super::*;
use crate::journal::Journal;
use std::time::Instant;

fn line(event: &str, name: &str, result: &str) -> String {
    let action = if event == "found" || event == "absent" { "get_order" } else { "place_order" };
    format!(
        "{{\"time\":\"2026-01-02T03:04:05Z\",\"event\":\"{event}\",\"action\":\"{action}\",\"caller\":\"local\",\
         \"correlation_id\":\"-\",\"client_order_id\":\"{name}\",\"request\":{{\"symbol\":\"SOLUSDT\"}},{result}\"simulated\":null}}\n"
    )
}

fn read(text: &str) -> OrderHistory {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("journal.jsonl");
    std::fs::write(&path, text).expect("journal");
    Journal::open(&path, Instant::now()).expect("journal").history
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
    let outcome = |name| history.lookup(name).map(|placement| placement.outcome);
    assert_eq!(outcome("done"), Some(Outcome::Placed));
    assert_eq!(outcome("killed"), Some(Outcome::Unknown), "no run is left to end it");
    assert_eq!(outcome("refused"), Some(Outcome::Refused));
    assert_eq!(outcome("mended"), Some(Outcome::Placed));
    assert_eq!(outcome("absent"), Some(Outcome::Absent));
    assert_eq!(outcome("another"), None);
    assert_eq!(history.gap(), None);
    let told = history.lookup("done").expect("an order").explain();
    assert!(told.contains("order_id 28, FILLED, 0.1 of 0.1 filled"), "{told}");
}

#[test]
fn orders_are_recent_for_a_minute() {
    let history =
        read(&[line("intent", "done", ""), line("done", "done", FILLED), line("intent", "killed", "")].concat());
    let after = |secs: i64| {
        let time: Timestamp = "2026-01-02T03:04:05Z".parse().expect("time");
        let recent = history.recent(time + jiff::SignedDuration::from_secs(secs));
        recent.into_iter().map(|placement| placement.client_order_id).collect::<Vec<_>>()
    };
    assert_eq!((after(60), after(61)), (vec!["done".to_owned()], Vec::new()));
}

#[test]
fn unreadable_lines_are_named_by_number() {
    let good = line("intent", "a", "");
    let history = read(&format!("{good}{{\"time\":secret\n\n{good}\0\0\0\n"));
    assert_eq!(history.gap(), Some("the journal of orders is incomplete: line 2, 5 cannot be read"));
    let history = read(&"x\n".repeat(9));
    assert!(history.gap().expect("a gap").ends_with("line 1, 2, 3, 4, 5 and 4 more cannot be read"));
}

#[test]
fn remembered_orders_are_bounded() {
    let text: String = (0..=MAX_REMEMBERED).map(|n| line("intent", &format!("n{n}"), "")).collect();
    let history = read(&text);
    assert_eq!(history.placements().len(), MAX_REMEMBERED);
    assert!(history.lookup("n0").is_none() && history.lookup("n1").is_some());
}
