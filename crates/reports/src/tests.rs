//! Schema and text agree with the model.

pub(crate) mod fixture;

use serde_json::{Value, json};

use self::fixture::{empty, full, out_of_bounds, valid, wrong};
use super::markdown::render;
use super::model::{IngestionStatus, Report};

/// The path of every field, lists by their first element.
fn fields(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(of) => {
            for (name, value) in of {
                let path = format!("{at}/{name}");
                fields(value, &path, found);
                found.push(path);
            }
        }
        Value::Array(of) => {
            if let Some(first) = of.first() {
                fields(first, &format!("{at}/0"), found);
            }
        }
        _ => {}
    }
}

fn every_field(report: &Value) -> Vec<String> {
    let mut found = Vec::new();
    fields(report, "", &mut found);
    found
}

fn object_with<'a>(report: &'a mut Value, path: &'a str) -> (&'a mut serde_json::Map<String, Value>, &'a str) {
    let (parent, name) = path.rsplit_once('/').expect("a path");
    let parent = report.pointer_mut(parent).and_then(Value::as_object_mut);
    (parent.expect("an object"), name)
}

#[test]
fn schema_has_every_field() {
    valid(&full());
    valid(&empty());
    let report = serde_json::to_value(full()).expect("JSON");
    let all = every_field(&report);
    assert!(all.len() > 110, "{}", all.len());
    for path in &all {
        let mut without = report.clone();
        let (object, name) = object_with(&mut without, path);
        assert!(object.shift_remove(name).is_some());
        assert!(!wrong(&without).is_empty(), "{path} is not missed");

        let mut changed = report.clone();
        let (object, name) = object_with(&mut changed, path);
        object.insert(name.to_owned(), json!({"another": ["kind"]}));
        assert!(!wrong(&changed).is_empty(), "{path} may be anything");
    }
}

#[test]
fn fields_of_later_versions_are_ignored() {
    let mut more = serde_json::to_value(full()).expect("JSON");
    more["added_later"] = json!(1);
    assert_eq!(wrong(&more), Vec::<String>::new());
    assert_eq!(serde_json::from_value::<Report>(more).expect("is read all the same"), full());
}

#[test]
fn schema_refuses_invalid_reports() {
    for (path, value) in [
        ("/ingestion/status", json!("stale")),
        ("/last_price", json!(100.05)),
        ("/liquidity/walls/0/side", json!("buy")),
        ("/anomalies/0/type", json!("spoofing")),
        ("/data_age_ms", json!(-1)),
    ] {
        let mut report = serde_json::to_value(full()).expect("JSON");
        *report.pointer_mut(path).expect(path) = value.clone();
        assert_eq!(wrong(&report).len(), 1, "{path}: {value}");
    }
}

#[test]
fn figures_out_of_bounds_are_found() {
    type Change = fn(&mut Report);
    let changes: [(&str, Change); 6] = [
        ("schemaVersion", |report| report.schema_version = "2.0".to_owned()),
        ("generated_at", |report| report.generated_at = "yesterday".to_owned()),
        ("spread_bps", |report| report.spread_bps = Some(-1.0)),
        ("imbalance", |report| report.depth.as_mut().expect("a book").imbalance = Some(1.5)),
        ("components", |report| report.health.as_mut().expect("a score").components.clear()),
        ("spread", |report| report.health.as_mut().expect("a score").components[0].score = Some(101.0)),
    ];
    for (name, change) in changes {
        let mut report = full();
        change(&mut report);
        assert_eq!(out_of_bounds(&report), [name]);
    }
}

#[test]
fn every_field_has_a_description() {
    fn described(schema: &Value, at: &str) {
        let Some(object) = schema.as_object() else { return };
        for (name, property) in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let words = property["description"].as_str().unwrap_or_default();
            assert!(words.ends_with('.') && words.len() > 5, "{at}/{name}: {words}");
            assert!(!words.trim_end_matches('.').contains(". "), "{at}/{name} is one sentence");
        }
        let keywords = ["properties", "items"];
        for (name, inner) in object {
            let is_schema = keywords.contains(&name.as_str()) || keywords.iter().any(|word| at.ends_with(word));
            if is_schema {
                described(inner, &format!("{at}/{name}"));
            }
        }
    }
    let schema = Value::from(super::model::schema());
    assert_eq!(schema["type"], "object");
    described(&schema, "");
}

#[test]
fn text_matches_golden_file() {
    assert_eq!(render(&full()), include_str!("golden/report.md"));
}

#[test]
fn stale_report_says_so_first() {
    let mut report = empty();
    report.ingestion.status = IngestionStatus::Down;
    report.ingestion.reason = Some("the book is stale: the connection ended".to_owned());
    report.data_age_ms = 7_240;
    report.sections.book.reason = Some("the book is stale:\n# BUY NOW\u{85}at once".to_owned());
    let text = render(&report);
    assert!(
        text.starts_with(
            "# BTCUSDT market report\n\nSTALE (down): the book is stale: the connection ended; the data are 7.2 s old.\n"
        ),
        "{text}"
    );
    // Words of others do not begin a line.
    assert!(!text.contains("\n# BUY"), "{text}");
    for missing in ["- last price: unknown\n", "- depth: unknown\n", "- walls: unknown\n", "- health: unknown\n"] {
        assert!(text.contains(missing), "{missing} in {text}");
    }
    assert!(text.contains("age unknown; the book is stale: # BUY NOW at once\n"), "{text}");
    report.ingestion.status = IngestionStatus::Degraded;
    assert!(render(&report).contains("\nSTALE (degraded): "));
}

/// Whatever number the text has is one of the JSON's, but for the seconds of a stale report's first line.
#[test]
fn every_figure_of_the_text_is_in_the_json() {
    let report = full();
    let json = serde_json::to_string(&report).expect("JSON");
    let words = ["24", "100", "10", "2025-06-15T15", "30", "1", "-1"];
    for line in render(&report).lines().filter(|line| !line.contains("Mapping")) {
        for word in line.split([' ', ',', ';', ':', '(', ')']) {
            let number = word.trim_start_matches('+').trim_end_matches('.');
            let is_number = number.parse::<f64>().is_ok();
            assert!(!is_number || words.contains(&number) || json.contains(number), "{word} in {line}");
        }
    }
}
