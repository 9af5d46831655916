use super::*;

fn draft(fields: Value, text: &str) -> Draft {
    let Value::Object(fields) = fields else {
        panic!("an object");
    };
    Draft { place: "dir/a.md".into(), text: Some(text.into()), fields, ..Draft::default() }
}

fn whole() -> Value {
    json!({
        "title": "Looms", "speaker": "Ada Byron", "party": "Labor", "chamber": "House of Representatives",
        "electorate": "Cook", "state": "NSW", "date": "2024-05-28", "hansard_reference": "House Hansard, p. 1",
    })
}

fn but(changes: Value) -> Value {
    let mut fields = whole();
    for (name, value) in changes.as_object().expect("an object") {
        match value {
            Value::Null => drop(fields.as_object_mut().expect("an object").remove(name)),
            value => fields[name] = value.clone(),
        }
    }
    fields
}

fn judged(changes: Value) -> (Record, Vec<String>) {
    SpeechRules::default().record(draft(but(changes), "Four words of text.\n"), &FieldMap::default()).expect("taken")
}

#[track_caller]
fn warned(changes: Value, words: &[&str]) -> Record {
    let (record, warnings) = judged(changes);
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    for word in words {
        assert!(warnings[0].contains(word), "{word}: {warnings:?}");
    }
    record
}

#[test]
fn complete_speech_has_no_warnings() {
    let (record, warnings) = judged(json!({"anything": {"else": [1, 2]}, "word_count": 7}));
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!((record.key.as_str(), record.title.as_str()), ("dir/a.md", "Looms"));
    assert_eq!(record.text, "Four words of text.\n");
    assert_eq!(record.date, Some(jiff::civil::date(2024, 5, 28)));
    assert_eq!(record.fields["speech_id"], "dir/a.md");
    assert_eq!(record.fields["word_count"], 4, "counted, whatever the file says");
    assert_eq!(record.fields["word_count_as_given"], 7);
    assert_eq!(record.fields["content_hash"], content_hash("Four words of text.\n"));
    assert_eq!(record.fields["hansard_reference"], "House Hansard, p. 1");
    assert_eq!(record.fields["anything"]["else"][1], 2);
    assert_eq!(record.fields.keys().next().map(String::as_str), Some("speech_id"));
}

#[test]
fn only_missing_text_or_impossible_date_refuses() {
    let rules = SpeechRules::default();
    assert!(rules.record(draft(whole(), " \n"), &FieldMap::default()).expect_err("refused").contains("no text"));
    for date in ["2024-13-45", "2023-02-29", "30 February 2024"] {
        let problem = rules.record(draft(but(json!({"date": date})), "x"), &FieldMap::default()).expect_err("refused");
        assert!(problem.contains(date) && problem.contains("YYYY-MM-DD"), "{problem}");
    }
    let (record, warnings) = rules.record(draft(json!({}), "Only a text"), &FieldMap::default()).expect("taken");
    assert_eq!(record.title, "Only a text");
    assert_eq!(warnings.len(), 3, "date, speaker, title: {warnings:?}");
}

#[test]
fn dates_are_normalised_or_reported() {
    let (record, warnings) = judged(json!({"date": "28 May 2024"}));
    assert!(warnings.is_empty());
    assert_eq!(
        (&record.fields["date"], &record.fields["date_as_given"]),
        (&json!("2024-05-28"), &json!("28 May 2024"))
    );
    let record = warned(json!({"date": "last week", "hansard_reference": null}), &["`last week`", "YYYY-MM-DD"]);
    assert_eq!((record.date, &record.fields["date"]), (None, &Value::Null));
    assert_eq!(record.fields["date_as_given"], "last week");
    warned(json!({"date": "03/04/2024"}), &["either of two days"]);
    warned(json!({"date": null}), &["has no `date`"]);
}

#[test]
fn parties_and_chambers_are_normalised() {
    for (given, name) in [
        ("ALP", "Labor"),
        ("Labour", "Labor"),
        ("australian labor party", "Labor"),
        ("LIB", "Liberal"),
        ("LP", "Liberal"),
        ("Liberal Party of Australia", "Liberal"),
        ("AG", "Greens"),
        ("GRN", "Greens"),
        ("The Greens", "Greens"),
        ("NATS", "National"),
        ("NP", "National"),
        ("IND", "Independent"),
        ("LNP", "LNP"),
    ] {
        let (record, warnings) = judged(json!({"party": given}));
        assert!(warnings.is_empty(), "{warnings:?}");
        assert_eq!(record.fields["party"], name);
        assert_eq!(record.fields.contains_key("party_as_given"), given != name);
    }
    for given in ["REPS", "HoR", "house", "House of Reps"] {
        let (record, warnings) = judged(json!({"chamber": given}));
        assert!(warnings.is_empty(), "{warnings:?}");
        assert_eq!((&record.fields["chamber"], &record.fields["chamber_as_given"]), (&json!(HOUSE), &json!(given)));
    }
    let (record, _) = judged(json!({"chamber": "SENATE", "electorate": null}));
    assert_eq!(record.fields["chamber"], SENATE);

    let record = warned(
        json!({"party": "Pirate"}),
        &["party `Pirate`", "Liberal, Labor, Greens, National, Independent", "kept"],
    );
    assert_eq!(record.fields["party"], "Pirate");
    warned(json!({"chamber": "Legislative Council"}), &["chamber `Legislative Council`", "kept"]);
}

#[test]
fn seats_and_states_are_told_apart() {
    let record = warned(json!({"electorate": null}), &["House speech without `electorate`"]);
    assert!(!record.fields.contains_key("electorate"));
    let record = warned(json!({"chamber": "Senate"}), &["Senate speech", "`Cook`", "kept"]);
    assert_eq!(record.fields["electorate"], "Cook");
    let record =
        warned(json!({"chamber": "Senate", "electorate": "Tasmania", "state": null}), &["TAS is used as the state"]);
    assert_eq!(record.fields["state"], "TAS");

    let record = warned(json!({"state": "Barker", "electorate": null}), &["`state` `Barker`", "moved to `electorate`"]);
    assert_eq!((&record.fields["electorate"], &record.fields["state"]), (&json!("Barker"), &Value::Null));
    assert_eq!(record.fields["state_as_given"], "Barker");
    let record = warned(json!({"state": "Cook"}), &["left out"]);
    assert_eq!(record.fields["state"], Value::Null);
    warned(json!({"state": "Barker"}), &["left out", "`Cook`"]);
    let (record, warnings) = judged(json!({"state": "New South Wales"}));
    assert!(warnings.is_empty());
    assert_eq!(record.fields["state"], "NSW");
    let (_, warnings) = judged(json!({"electorate": null, "speaker": "The Speaker"}));
    assert!(warnings.is_empty(), "whoever presides has none: {warnings:?}");
}

#[test]
fn missing_title_is_derived() {
    let changes = json!({"title": null, "debate": "Bills", "subdebate": "Looms Bill", "summary": "On looms"});
    let record = warned(changes, &["no `title`", "`subdebate`"]);
    assert_eq!((record.title.as_str(), &record.fields["section"]), ("Looms Bill", &json!("Bills › Looms Bill")));
    assert_eq!(warned(json!({"title": null, "debate": "Looms"}), &["`debate`"]).title, "Looms");
    assert_eq!(warned(json!({"title": null, "summary": "On looms"}), &["`summary`"]).title, "On looms");
    assert_eq!(warned(json!({"title": null}), &["first words"]).title, "Four words of text.");
}

#[test]
fn ids_come_from_file_or_path() {
    for (changes, key) in [
        (json!({"speech_id": "S-1", "id": 9}), "S-1"),
        (json!({"id": 9}), "9"),
        (json!({"speech_id": "", "id": "x y"}), "x y"),
    ] {
        let (record, _) = judged(changes);
        assert_eq!((record.key.as_str(), &record.fields["speech_id"]), (key, &json!(key)));
    }
    assert_eq!(judged(json!({"speech_id": "S-1", "id": 9})).0.fields["id"], 9, "nothing is lost");
    assert_eq!(warned(json!({"id": ["a"]}), &["`id`", "dir/a.md"]).key, "dir/a.md");
}

#[test]
fn speaker_may_be_a_map_or_list() {
    let changes = json!({"speaker": {"name": "Ada Byron", "party": "ALP"}, "party": null});
    let (record, warnings) = judged(changes);
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!((&record.fields["speaker"], &record.fields["party"]), (&json!("Ada Byron"), &json!("Labor")));
    assert_eq!(record.fields["speaker_as_given"]["party"], "ALP");
    assert_eq!(judged(json!({"speaker": ["A", "B"]})).0.fields["speaker"], "A, B");
    warned(json!({"speaker": null}), &["has no `speaker`"]);
}

#[test]
fn missing_references_and_tags_are_made() {
    let (record, _) = judged(json!({"hansard_reference": null, "page": 41, "topic_tags": "housing, tax;"}));
    assert_eq!(record.fields["hansard_reference"], "House Hansard, 28 May 2024, p. 41");
    assert_eq!(record.fields["topic_tags"], json!(["housing", "tax"]));
    assert_eq!(record.fields["topic_tags_as_given"], "housing, tax;");
    let (record, _) = judged(json!({"tags": ["a", "b"]}));
    assert_eq!((&record.fields["topic_tags"], &record.fields["tags"]), (&json!(["a", "b"]), &json!(["a", "b"])));
}

#[test]
fn names_of_fields_are_known_in_any_case() {
    let (record, warnings) =
        judged(json!({"speaker": null, "Speaker": "Ada", "hansard_reference": null, "Hansard Reference": "R"}));
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!((&record.fields["speaker"], &record.fields["hansard_reference"]), (&json!("Ada"), &json!("R")));
}

#[test]
fn another_parliament_brings_its_own_names() {
    let table = |name: &str, variants: &[&str]| {
        std::collections::BTreeMap::from([(name.to_owned(), variants.iter().map(|v| (*v).to_owned()).collect())])
    };
    let commons = table("House of Commons", &["HoC"]);
    let rules = SpeechRules::unknown().with(&table("Labour", &["LAB"]), &commons, &std::collections::BTreeMap::new());
    let fields = but(json!({"party": "LAB", "chamber": "HoC", "state": "Kent", "electorate": null}));
    let (record, warnings) = rules.record(draft(fields, "text"), &FieldMap::default()).expect("taken");
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!((&record.fields["party"], &record.fields["chamber"]), (&json!("Labour"), &json!("House of Commons")));
    assert_eq!(rules.parties.names(), ["Labour"]);
}
