//! What every engine must do. A new one implements [`Fixture`] and calls [`check`].

use std::ops::Bound;
use std::sync::Arc;

use jiff::civil::{Date, date};
use serde_json::json;
use tribune_core::Readers;
use tribune_corpus::engine::embedded::{Embedded, EnglishWords};
use tribune_corpus::engine::{
    Candidate, Changes, DatedDocument, Engine, EngineError, Entry, IndexedDocument, Leg, Lookup, PassageId, Ranking,
    Result, StoredDocument, StoredPassage, TimelineEntry, VectorWriter, Version, VersionMark, Visible,
};
use tribune_corpus::format::Record;
use tribune_corpus::manifest::{FileEntry, Manifest};
use tribune_corpus::passage::{Words, passages, stems};
use tribune_corpus::query::{Clause, Demand, Want, parse};
use tribune_corpus::{Condition, Filter, Timeline};
use tribune_embed::{EmbedError, Embedder, Role};

trait Fixture {
    /// The same index each time, as another process would open it, with a model of this fingerprint and two dimensions.
    fn engine_with(&self, model: &'static str) -> Arc<dyn Engine>;

    fn engine(&self) -> Arc<dyn Engine> {
        self.engine_with("0")
    }
}

fn check(fixture: &dyn Fixture) {
    nothing_is_published_before_the_first_commit(fixture);
    commit_publishes_everything_at_once(fixture);
    dropped_changes_leave_no_trace(fixture);
    one_writer_at_a_time(fixture);
    documents_and_passages_come_back_as_added(fixture);
    words_rank_documents_by_their_best_passage(fixture);
    filters_restrict_every_leg(fixture);
    facets_count_documents(fixture);
    holders_are_found_by_key_and_value(fixture);
    keys_and_dates_are_in_order(fixture);
    vectors_rank_and_survive_reopening(fixture);
    vectors_of_another_model_are_not_used(fixture);
    removed_files_are_gone(fixture);
    removing_all_files_leaves_an_empty_version(fixture);
    unseen_documents_do_not_exist(fixture);
    few_seen_documents_rank_like_all(fixture);
}

fn record(key: &str, text: &str, date: Date, party: &str) -> Record {
    let fields = json!({"party": party, "page": 3, "content_hash": format!("hash of {key}")});
    Record {
        key: key.to_owned(),
        title: format!("Title of {key}"),
        text: text.to_owned(),
        date: Some(date),
        url: Some(format!("https://example.org/{key}")),
        fields: fields.as_object().cloned().expect("an object"),
        readers: Readers::default(),
        ..Record::default()
    }
}

fn long_text() -> String {
    let filler = |from: u32| (from..from + 40).map(|n| format!("Sentence {n} says nothing of note and then it ends. "));
    let (before, after) = (filler(0).collect::<String>(), filler(40).collect::<String>());
    format!("{before}A walrus appears. {after}")
}

fn records() -> Vec<(&'static str, Record)> {
    vec![
        ("a.md", record("a", "The walrus and the carpenter.", date(2024, 5, 1), "Labor")),
        ("a.md", record("b", "Oysters were walking hand in hand.", date(2024, 5, 2), "Labor")),
        ("b.md", record("c", &long_text(), date(2024, 5, 3), "Greens")),
    ]
}

fn add(changes: &mut dyn Changes, file: &str, record: &Record) {
    let passages = passages(record);
    let entry = Entry { file, record, passages: &passages };
    changes.add(&entry).expect("added");
}

fn manifest(files: &[&str]) -> Manifest {
    let entry = FileEntry { documents: 1, ..FileEntry::default() };
    Manifest {
        reading: "contract".to_owned(),
        files: files.iter().map(|file| ((*file).to_owned(), entry.clone())).collect(),
        ..Manifest::default()
    }
}

fn published(fixture: &dyn Fixture) -> Arc<dyn Version> {
    fixture.engine().open().expect("opened").expect("published")
}

fn clauses(text: &str) -> Vec<Clause> {
    parse(text, |_| None, &mut EnglishWords::default())
}

fn rank(version: &dyn Version, text: &str, filter: Filter, leg: Leg<'_>) -> Vec<String> {
    let clauses = clauses(text);
    let ranking = Ranking { clauses: &clauses, filter: &filter, visible: &Visible::All, depth: 10 };
    let mut legs = version.rank(&ranking, &[leg]).expect("ranked");
    assert_eq!(legs.len(), 1, "one ranking for each leg");
    let found = legs.pop().expect("a ranking");
    assert!(found.windows(2).all(|pair| pair[0].score >= pair[1].score));
    keys(version, found)
}

/// The passage by which a document was found.
fn best_passage(version: &dyn Version, text: &str, key: &str) -> String {
    let clauses = clauses(text);
    let ranking = Ranking { clauses: &clauses, filter: &Filter::default(), visible: &Visible::All, depth: 10 };
    let legs = version.rank(&ranking, &[Leg::Words]).expect("ranked");
    let mut passages = legs[0].iter().map(|found| version.passage(found.passage).expect("a passage"));
    passages.find(|passage| passage.key == key).expect("found").text
}

fn keys(version: &dyn Version, found: Vec<Candidate>) -> Vec<String> {
    let key = |found: Candidate| version.passage(found.passage).expect("a passage").key;
    found.into_iter().map(key).collect()
}

fn party(value: &str) -> Filter {
    Filter(vec![Condition::Is { field: "party".to_owned(), value: value.to_owned() }])
}

fn nothing_is_published_before_the_first_commit(fixture: &dyn Fixture) {
    let engine = fixture.engine();
    assert!(engine.open().expect("opened").is_none());
    let changes = engine.begin(0).expect("begun");
    assert!(changes.is_first() && changes.manifest().files.is_empty());
}

fn commit_publishes_everything_at_once(fixture: &dyn Fixture) {
    let engine = fixture.engine();
    let mut changes = engine.begin(0).expect("begun");
    for (file, record) in records() {
        add(&mut *changes, file, &record);
    }
    assert!(engine.open().expect("opened").is_none(), "not yet");
    changes.commit(&manifest(&["a.md", "b.md"])).expect("committed");
    let version = published(fixture);
    assert_eq!(*version.manifest(), manifest(&["a.md", "b.md"]));
    assert!(version.size() >= 3);
    let mark = engine.published().expect("published");
    assert_eq!(fixture.engine().published(), Some(mark), "the same for everybody");
}

fn dropped_changes_leave_no_trace(fixture: &dyn Fixture) {
    let engine = fixture.engine();
    let before = engine.published();
    let mut changes = engine.begin(0).expect("begun");
    assert!(!changes.is_first());
    changes.remove("a.md");
    add(&mut *changes, "z.md", &record("z", "A zebra.", date(2024, 5, 4), "Labor"));
    drop(changes);
    assert_eq!(engine.published(), before);
    let version = published(fixture);
    assert!(version.document("a", &Visible::All).expect("read").is_some());
    assert!(version.document("z", &Visible::All).expect("read").is_none());
}

fn one_writer_at_a_time(fixture: &dyn Fixture) {
    let held = fixture.engine().begin(0).expect("begun");
    let refused = fixture.engine().begin(0).err();
    assert!(matches!(refused, Some(EngineError::Busy)), "{refused:?}");
    drop(held);
    drop(fixture.engine().begin(0).expect("free again"));
}

fn documents_and_passages_come_back_as_added(fixture: &dyn Fixture) {
    let version = published(fixture);
    for (file, record) in records() {
        let stored = version.document(&record.key, &Visible::All).expect("read").expect("held");
        assert_eq!((stored.file.as_str(), &stored.title), (file, &record.title));
        assert_eq!((&stored.text, &stored.url, stored.date), (&record.text, &record.url, record.date));
        assert_eq!(stored.fields, record.fields);
        assert!(version.holds(&record.key, &Visible::All).expect("read"));
        for range in stored.passages {
            assert!(stored.text.get(range).is_some());
        }
    }
    assert!(version.document("never", &Visible::All).expect("read").is_none());
    assert!(!version.holds("never", &Visible::All).expect("read"));
    let contents = version.contents().expect("read");
    assert!(contents.len() >= 4, "the long document has several passages");
    for (_, passage) in contents {
        let stored = version.passage(passage).expect("a passage");
        assert!(stored.ordinal < stored.count);
        assert!(version.document(&stored.key, &Visible::All).expect("read").expect("held").text.contains(&stored.text));
    }
}

fn words_rank_documents_by_their_best_passage(fixture: &dyn Fixture) {
    let version = published(fixture);
    assert_eq!(rank(&*version, "walruses", Filter::default(), Leg::Words), ["a", "c"]);
    assert!(best_passage(&*version, "walrus", "c").contains("A walrus appears."));
    assert_eq!(rank(&*version, "\"hand in hand\"", Filter::default(), Leg::Words), ["b"]);
    assert_eq!(rank(&*version, "walrus -carpenter", Filter::default(), Leg::Words), ["c"]);
    assert!(rank(&*version, "zeppelin", Filter::default(), Leg::Words).is_empty());
    assert!(rank(&*version, "", Filter::default(), Leg::Words).is_empty());
    let similar = version.similar("a walrus and a carpenter", &Visible::All, 10).expect("ranked");
    assert_eq!(keys(&*version, similar)[0], "a");
    let mut words = version.words();
    assert_eq!(stems("Walruses", &mut *words), stems("walrus", &mut *words));
}

fn filters_restrict_every_leg(fixture: &dyn Fixture) {
    let version = published(fixture);
    assert_eq!(rank(&*version, "walrus", party("greens"), Leg::Words), ["c"]);
    let early = Filter(vec![Condition::Days { from: None, until: Some(date(2024, 5, 1)) }]);
    assert_eq!(rank(&*version, "walrus", early, Leg::Words), ["a"]);
    let part = Condition::Holds { field: "party".to_owned(), part: "gree".to_owned() };
    assert_eq!(rank(&*version, "walrus", Filter(vec![part]), Leg::Words), ["c"]);
    let page_from = |from: f64| Condition::Number {
        field: "page".to_owned(),
        from: Bound::Included(from),
        until: Bound::Unbounded,
    };
    assert_eq!(rank(&*version, "walrus", Filter(vec![page_from(3.0)]), Leg::Words), ["a", "c"]);
    assert!(rank(&*version, "walrus", Filter(vec![page_from(3.5)]), Leg::Words).is_empty());
    let mut both = party("greens");
    both.0.push(Condition::Days { from: None, until: Some(date(2024, 5, 2)) });
    assert!(rank(&*version, "walrus", both, Leg::Words).is_empty(), "all conditions hold");
    let any = version.any(&party("GREENS"), &Visible::All).expect("read").expect("one");
    assert_eq!(version.passage(any).expect("a passage").key, "c");
    assert!(version.any(&party("Teal"), &Visible::All).expect("read").is_none());
}

fn facets_count_documents(fixture: &dyn Fixture) {
    let version = published(fixture);
    let count = |filter: &Filter| version.facets("party", filter, &Visible::All).expect("counted");
    let all = [("Labor".to_owned(), 2), ("Greens".to_owned(), 1)];
    assert_eq!(count(&Filter::default()), all);
    assert_eq!(count(&party("Greens")), all[1..]);
    assert!(version.facets("never", &Filter::default(), &Visible::All).expect("counted").is_empty());
}

fn holders_are_found_by_key_and_value(fixture: &dyn Fixture) {
    let changes = fixture.engine().begin(0).expect("begun");
    let find = |by: Lookup<'_>| changes.holder(&by, &mut |_| true).expect("read");
    let held = find(Lookup::Key("b")).expect("held");
    assert_eq!((held.key.as_str(), held.file.as_str()), ("b", "a.md"));
    let held = find(Lookup::Field("content_hash", "hash of c")).expect("held");
    assert_eq!((held.key.as_str(), held.date), ("c", Some(date(2024, 5, 3))));
    assert!(find(Lookup::Key("never")).is_none());
    let unwanted = changes.holder(&Lookup::Key("b"), &mut |_| false);
    assert!(unwanted.expect("read").is_none());
}

fn keys_and_dates_are_in_order(fixture: &dyn Fixture) {
    let version = published(fixture);
    assert_eq!(version.keys_beside("b", false, 5, &Visible::All).expect("read"), ["c"]);
    assert_eq!(version.keys_beside("c", true, 5, &Visible::All).expect("read"), ["b", "a"]);
    assert_eq!(version.keys_beside("c", true, 1, &Visible::All).expect("read"), ["b"]);
    let with = version.documents_with("party", "Labor", &Visible::All).expect("read");
    assert_eq!(with.len(), 2);
    let timeline = Timeline { series: Some("party"), page: Some("page") };
    let places = version.timeline(timeline).expect("read");
    assert_eq!(places.len(), 3, "each document once");
    assert!(places.is_sorted() && places.iter().all(|place| place.page == 3));
}

fn vectors_rank_and_survive_reopening(fixture: &dyn Fixture) {
    let engine = fixture.engine();
    let version = published(fixture);
    assert_eq!((version.embedded(), version.ranks_by_vector()), (0, false));
    let before = engine.published().expect("published");
    let mut writer = engine.vectors().expect("opened").expect("there is a model");
    let busy = fixture.engine().vectors().err();
    assert!(matches!(busy, Some(EngineError::Busy)), "{busy:?}");
    let vectors: Vec<(u64, Vec<f32>)> = version
        .contents()
        .expect("read")
        .into_iter()
        .map(|(content, passage)| {
            let is_oyster = version.passage(passage).expect("a passage").key == "b";
            (content, if is_oyster { vec![1.0, 0.0] } else { vec![0.0, 1.0] })
        })
        .collect();
    writer.add(&vectors).expect("added");
    assert!(vectors.iter().all(|(content, _)| writer.holds(*content)));
    writer.publish().expect("published");
    writer.retain(&|_| true).expect("nothing is dropped");
    drop(writer);
    let after = engine.published().expect("published");
    assert!(after.vectors != before.vectors && after.index == before.index);
    let version = published(fixture);
    assert!(version.ranks_by_vector());
    assert_eq!(version.embedded(), vectors.len() as u64);
    assert_eq!(rank(&*version, "", Filter::default(), Leg::Vector(&[1.0, 0.0]))[0], "b");
    assert_eq!(rank(&*version, "", party("Greens"), Leg::Vector(&[1.0, 0.0])), ["c"]);
    let centroid = version.centroid("b").expect("read").expect("a vector");
    assert!(centroid[0] > 0.99 && centroid[1].abs() < 0.01, "{centroid:?}");
    let all = version.contents().expect("read");
    assert!(all.iter().all(|(_, passage)| version.has_vector(*passage)));
}

fn vectors_of_another_model_are_not_used(fixture: &dyn Fixture) {
    let other = fixture.engine_with("1");
    let version = other.open().expect("opened").expect("published");
    assert_eq!((version.embedded(), version.ranks_by_vector()), (0, false));
    let writer = other.vectors().expect("opened").expect("there is a model");
    let contents = version.contents().expect("read");
    assert!(contents.iter().all(|(content, _)| !writer.holds(*content)));
    drop(writer);
    assert!(published(fixture).ranks_by_vector(), "the first model keeps its vectors");
}

fn removed_files_are_gone(fixture: &dyn Fixture) {
    let engine = fixture.engine();
    let before = published(fixture);
    let mut changes = engine.begin(0).expect("begun");
    changes.remove("a.md");
    add(&mut *changes, "a.md", &record("d", "A walrus again.", date(2024, 5, 4), "Labor"));
    changes.commit(&manifest(&["a.md", "b.md"])).expect("committed");
    let version = published(fixture);
    assert!(version.document("a", &Visible::All).expect("read").is_none());
    assert_eq!(rank(&*version, "again", Filter::default(), Leg::Words), ["d"]);
    let mut walruses = rank(&*version, "walrus", Filter::default(), Leg::Words);
    walruses.sort();
    assert_eq!(walruses, ["c", "d"]);
    assert_eq!(rank(&*version, "", Filter::default(), Leg::Vector(&[1.0, 0.0])), ["c"]);
    let mut parties = version.facets("party", &Filter::default(), &Visible::All).expect("counted");
    parties.sort();
    assert_eq!(parties, [("Greens".to_owned(), 1), ("Labor".to_owned(), 1)]);
    assert_eq!(version.documents_with("party", "Labor", &Visible::All).expect("read").len(), 1);
    assert!(!version.holds("b", &Visible::All).expect("read"));
    assert!(!version.holds("z", &Visible::All).expect("read"), "a dropped change stays dropped");
    assert!(before.document("a", &Visible::All).expect("read").is_some(), "a version does not change");
}

fn removing_all_files_leaves_an_empty_version(fixture: &dyn Fixture) {
    let mut changes = fixture.engine().begin(0).expect("begun");
    changes.remove("a.md");
    changes.remove("b.md");
    changes.commit(&manifest(&[])).expect("committed");
    let version = published(fixture);
    assert_eq!(*version.manifest(), manifest(&[]));
    assert!(rank(&*version, "walrus", Filter::default(), Leg::Words).is_empty());
    assert!(version.contents().expect("read").is_empty());
    assert!(version.facets("party", &Filter::default(), &Visible::All).expect("counted").is_empty());
    assert!(!version.holds("c", &Visible::All).expect("read"));
}

/// Who may see a document, as it stands in an index.
fn only(readers: &[&str]) -> Visible {
    Visible::Only(readers.iter().map(|readers| (*readers).to_owned()).collect())
}

/// By words and by a vector.
fn rank_seen(version: &dyn Version, text: &str, visible: &Visible, depth: usize) -> [Vec<String>; 2] {
    let clauses = clauses(text);
    let ranking = Ranking { clauses: &clauses, filter: &Filter::default(), visible, depth };
    let legs = version.rank(&ranking, &[Leg::Words, Leg::Vector(&[0.0, 1.0])]).expect("ranked");
    let legs: Vec<Vec<String>> = legs.into_iter().map(|found| keys(version, found)).collect();
    legs.try_into().expect("two legs")
}

/// Documents `m00` and so on, each by its readers, with vectors.
fn publish_with_readers(fixture: &dyn Fixture, readers: &[&str]) -> Arc<dyn Version> {
    let engine = fixture.engine();
    let mut changes = engine.begin(0).expect("begun");
    changes.remove("m.jsonl");
    for (number, readers) in readers.iter().enumerate() {
        let text = format!("Minutes {number} of the board{}.", " walrus".repeat(readers.len() - number % 3));
        let mut record = record(&format!("m{number:02}"), &text, date(2024, 6, 1), readers);
        record.readers = Readers::read(readers);
        add(&mut *changes, "m.jsonl", &record);
    }
    changes.commit(&manifest(&["m.jsonl"])).expect("committed");
    let version = published(fixture);
    let mut writer = engine.vectors().expect("opened").expect("there is a model");
    let vectors: Vec<(u64, Vec<f32>)> =
        version.contents().expect("read").into_iter().map(|(content, _)| (content, vec![0.0, 1.0])).collect();
    writer.add(&vectors).expect("added");
    writer.publish().expect("published");
    drop(writer);
    published(fixture)
}

fn unseen_documents_do_not_exist(fixture: &dyn Fixture) {
    let (board, ann) = ("group:board", "group:board&user:ann");
    let version = publish_with_readers(fixture, &[board, "everybody", ann, board, "everybody", "nobody"]);
    let everybody = only(&["everybody"]);
    for (visible, seen) in [
        (Visible::All, vec!["m00", "m01", "m02", "m03", "m04", "m05"]),
        (everybody.clone(), vec!["m01", "m04"]),
        (only(&["everybody", board]), vec!["m00", "m01", "m03", "m04"]),
        (only(&["everybody", board, ann]), vec!["m00", "m01", "m02", "m03", "m04"]),
        (only(&["group:never"]), Vec::new()),
        (only(&[]), Vec::new()),
    ] {
        for mut leg in rank_seen(&*version, "walrus", &visible, 10) {
            leg.sort();
            assert_eq!(leg, seen, "{visible:?}");
        }
        // Two documents rank although others would come first.
        assert!(rank_seen(&*version, "walrus", &visible, 2).iter().all(|leg| leg.len() == seen.len().min(2)));
        let mut similar = keys(&*version, version.similar("the walrus of the board", &visible, 10).expect("ranked"));
        similar.sort();
        assert_eq!(similar, seen);
        for number in 0..6 {
            let key = format!("m{number:02}");
            let is_seen = seen.contains(&key.as_str());
            assert_eq!(version.holds(&key, &visible).expect("read"), is_seen, "{key} {visible:?}");
            assert_eq!(version.document(&key, &visible).expect("read").is_some(), is_seen);
        }
        for (_, passage) in version.contents().expect("read") {
            let key = version.passage(passage).expect("a passage").key;
            assert_eq!(version.shows(passage, &visible).expect("read"), seen.contains(&key.as_str()));
        }
        let beside = version.keys_beside("m", false, 9, &visible).expect("read");
        assert_eq!(beside, seen);
        let counted = version.facets("party", &Filter::default(), &visible).expect("counted");
        assert_eq!(counted.iter().map(|(_, count)| *count).sum::<u64>(), seen.len() as u64);
        let with = version.documents_with("party", board, &visible).expect("read");
        assert_eq!(with.len(), seen.iter().filter(|key| ["m00", "m03"].contains(key)).count());
        assert_eq!(version.any(&party("nobody"), &visible).expect("read").is_some(), seen.contains(&"m05"));
    }
    assert_eq!(version.keys_beside("m04", true, 1, &everybody).expect("read"), ["m01"]);
    let changes = fixture.engine().begin(0).expect("begun");
    let held = changes.holder(&Lookup::Key("m02"), &mut |_| true).expect("read").expect("held");
    assert_eq!(held.readers, Readers::read(ann));
}

/// An engine may rank few visible documents in another way than many.
fn few_seen_documents_rank_like_all(fixture: &dyn Fixture) {
    let groups: Vec<String> = (0..300).map(|number| format!("group:g{}", number % 100)).collect();
    let groups: Vec<&str> = groups.iter().map(String::as_str).collect();
    let version = publish_with_readers(fixture, &groups);
    let seen = only(&["group:g7"]);
    for text in ["walrus board", "walrus", "walrus -never", "\"the board\" walrus", "party:x walrus minutes"] {
        let [all, _] = rank_seen(&*version, text, &Visible::All, 300);
        let [few, _] = rank_seen(&*version, text, &seen, 300);
        let expected: Vec<String> =
            all.into_iter().filter(|key| ["m07", "m107", "m207"].contains(&key.as_str())).collect();
        assert_eq!(few, expected, "{text}");
        assert_eq!(few.len(), 3, "{text}");
    }
}

/// Never called: the suite brings its own vectors.
struct NoModel(&'static str);

impl Embedder for NoModel {
    fn name(&self) -> &str {
        "none"
    }

    fn fingerprint(&self) -> &str {
        self.0
    }

    fn dimensions(&self) -> usize {
        2
    }

    fn embed(&self, _: Role, _: &[&str]) -> std::result::Result<Vec<Vec<f32>>, EmbedError> {
        unreachable!("the contract embeds nothing")
    }
}

struct EmbeddedFixture(tempfile::TempDir);

impl Fixture for EmbeddedFixture {
    fn engine_with(&self, model: &'static str) -> Arc<dyn Engine> {
        Arc::new(Embedded::new("contract", self.0.path(), Some(Arc::new(NoModel(model)))))
    }
}

#[test]
fn embedded_meets_the_contract() {
    check(&EmbeddedFixture(tempfile::tempdir().expect("a folder")));
}

mod memory;

#[test]
fn memory_meets_the_contract() {
    check(&memory::MemoryFixture::default());
}
