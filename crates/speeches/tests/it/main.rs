//! Speeches as their users see them: a folder in, speeches and a report out.

#![allow(clippy::disallowed_methods, reason = "tests use the machine's clock")]

mod shown;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tribune_core::{CallContext, Document, DocumentId, Links, Principal, Source};
use tribune_corpus::manifest::Summary;
use tribune_corpus::{
    Collection, DocumentsSource, Duplicates, FieldMap, Folder, IndexReport, Limits, Pool, Reading, Settings,
};
use tribune_speeches::{SpeechRules, ToolNames, collection, reading};

struct Speeches {
    dir: tempfile::TempDir,
    source: Arc<DocumentsSource>,
}

impl Speeches {
    fn new() -> Self {
        Self::read_as(reading(SpeechRules::default()), collection())
    }

    fn with(duplicates: Duplicates) -> Self {
        let collection = Collection { duplicates, ..collection() };
        Self::read_as(reading(SpeechRules::default()), collection)
    }

    fn read_as(reading: Reading, collection: Collection) -> Self {
        let dir = tempfile::tempdir().expect("dir");
        fs::create_dir(dir.path().join("speeches")).expect("folder");
        let source = Arc::new(source(dir.path(), reading, collection));
        Self { dir, source }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("speeches").join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        fs::write(path, content).expect("write");
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.path(name)).expect("removed");
    }

    fn update(&self) -> IndexReport {
        self.source.update(&CancellationToken::new(), &|_| {}).expect("indexed")
    }

    async fn fetch(&self, key: &str) -> Option<Document> {
        let id = DocumentId::new("hansard", key).expect("an id");
        let context = CallContext::new(Principal::Local, Instant::now() + Duration::from_secs(30));
        self.source.fetch(&id, &context).await.expect("fetched")
    }

    /// Which of these are held.
    async fn held(&self, keys: &[&str]) -> Vec<String> {
        let mut held = Vec::new();
        for key in keys {
            if self.fetch(key).await.is_some() {
                held.push((*key).to_owned());
            }
        }
        held
    }
}

fn source(root: &Path, reading: Reading, collection: Collection) -> DocumentsSource {
    let settings = Settings {
        name: "hansard".to_owned(),
        title: "Speeches".to_owned(),
        description: None,
        readers: tribune_core::Readers::default(),
        provider: Arc::new(Folder::new(root.join("speeches"), reading, Limits::default())),
        collection,
        index_dir: root.join("index"),
        embedder: None,
    };
    let features = tribune_speeches::Speeches {
        title: settings.title.clone(),
        names: ToolNames::for_source("hansard"),
        rules: SpeechRules::default(),
        links: Links::new("http://127.0.0.1"),
        incoming: None,
    };
    DocumentsSource::new(settings, Pool::start().expect("pool")).with_features(Arc::new(features))
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn markdown(id: &str, text: &str) -> String {
    format!(
        "---\nspeech_id: {id}\ntitle: T {id}\nspeaker: Ada Byron\nparty: ALP\nchamber: REPS\nelectorate: Cook\ndate: 2024-05-28\n---\n{text}\n"
    )
}

fn fault_lines(report: &IndexReport) -> Vec<String> {
    report.faults.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn identical_texts_are_one_speech() {
    let speeches = Speeches::new();
    for n in 0..64 {
        let said = match n {
            40 => 10,
            63 => 11,
            n => n,
        };
        let text = format!("The speech number {said}. ").repeat(100);
        speeches.write(&format!("{n:02}.md"), markdown(&format!("id-{n}"), &text));
    }
    let report = speeches.update();
    assert_eq!(report.documents, 62);
    let counts =
        Summary { total_files: 64, succeeded: 62, skipped: 2, failed: 0, total_chunks_created: report.passages };
    assert_eq!(report.summary, counts);
    assert!(report.passages >= 62);
    assert_eq!(
        fault_lines(&report),
        [
            "40.md: has the same text as `id-10` in 10.md; skipped",
            "63.md: has the same text as `id-11` in 11.md; skipped"
        ]
    );
    let again = speeches.update();
    assert_eq!((again.documents, again.faults_in_all, again.passages_added), (62, 2, 0));
    assert_eq!(again.summary.skipped, 2);

    let facts = speeches.source.facts();
    assert_eq!((facts.noun.as_str(), facts.documents), ("speeches", Some(62)));
    let public = speeches.source.public().expect("published");
    assert_eq!(public.values("party"), [("Labor".to_owned(), 62)]);
}

#[tokio::test]
async fn duplicate_is_indexed_when_the_first_goes() {
    for files in [["a.md", "b.md"], ["b.md", "a.md"]] {
        let speeches = Speeches::new();
        speeches.write(files[0], markdown("first", "The same."));
        assert_eq!(speeches.update().documents, 1);
        speeches.write(files[1], markdown("second", "The same."));
        let report = speeches.update();
        assert_eq!((report.documents, report.summary.skipped), (1, 1), "what is there first stays");
        assert_eq!(speeches.held(&["first", "second"]).await, ["first"]);
        speeches.write(files[1], format!("{}\n", markdown("third", "The same.")));
        speeches.update();
        assert_eq!(
            speeches.held(&["first", "second", "third"]).await,
            ["first", "third"],
            "a text with one more line break is another text"
        );
        speeches.write(files[1], markdown("fourth", "The same."));
        speeches.update();
        assert_eq!(speeches.held(&["first", "third", "fourth"]).await, ["first"]);
        speeches.remove(files[0]);
        let report = speeches.update();
        assert_eq!((report.documents, report.faults_in_all), (1, 0));
        assert_eq!(speeches.held(&["first", "fourth"]).await, ["fourth"]);
    }
}

#[tokio::test]
async fn duplicate_policy_error_and_keep() {
    for (policy, documents, failed, faults) in [(Duplicates::Error, 1, 1, 1), (Duplicates::Keep, 2, 0, 0)] {
        let speeches = Speeches::with(policy);
        speeches.write("a.md", markdown("a", "The same."));
        speeches.write("b.md", markdown("b", "The same."));
        let report = speeches.update();
        assert_eq!(
            (report.documents, report.summary.failed, report.faults_in_all),
            (documents, failed, faults),
            "{:?}",
            fault_lines(&report)
        );
    }
}

#[tokio::test]
async fn two_speeches_with_one_id_are_reported() {
    let speeches = Speeches::new();
    speeches.write("a.md", markdown("x", "One text."));
    speeches.write("b.md", markdown("x", "Another text."));
    let report = speeches.update();
    assert_eq!((report.documents, report.summary.failed), (1, 1));
    assert!(fault_lines(&report)[0].contains("the id `x` is already another document's"));
    assert_eq!(speeches.fetch("x").await.expect("held").text, "One text.\n");
}

#[tokio::test]
async fn faulty_files_are_reported_and_few_refused() {
    let speeches = Speeches::new();
    for entry in fs::read_dir(data("bad")).expect("samples").flatten() {
        fs::copy(entry.path(), speeches.path(&entry.file_name().to_string_lossy())).expect("copied");
    }
    #[cfg(unix)]
    std::os::unix::fs::symlink("/etc/hostname", speeches.path("link.md")).expect("link");
    let report = speeches.update();
    let found_faults = fault_lines(&report);
    let named = |file: &str, words: &str, outcome: &str| {
        let found: Vec<&String> = found_faults.iter().filter(|fault| fault.starts_with(file)).collect();
        assert_eq!(found.len(), 1, "{file}: {found_faults:#?}");
        assert!(found[0].contains(words) && found[0].ends_with(outcome), "{}", found[0]);
    };
    named("impossible-date.md", "2024-13-45` is not a day of the calendar: write it as YYYY-MM-DD", "skipped");
    named("empty-text.md", "the file has no text", "skipped");
    named("invalid-yaml.md:", "the front matter is not valid YAML", "skipped");
    named("link.md", "is a link", "skipped");
    let warning = "indexed with a warning";
    named("missing-title.md", "has no `title`: its first words are used instead", warning);
    named("unknown-party.md", "`Sensible Weather Party` is not one of Liberal, Labor", warning);
    named("house-without-electorate.md", "a House speech without `electorate`", warning);
    named("senate-with-electorate.md", "a Senate speech with the `electorate` `Nine Wells`", warning);
    named("state-is-an-electorate.md", "`Harrowgate` is not one of NSW, VIC", warning);
    named("windows-1252.md", "was read as Windows-1252", warning);
    assert_eq!((report.documents, report.summary.failed, report.summary.total_files), (6, 4, 10));

    let cafe = speeches.fetch("e99662ad-eefe-4237-be07-33f5bd72f56d").await.expect("held");
    assert!(cafe.text.contains("Café"), "{}", cafe.text);
    let moved = speeches.fetch("db589bdd-1a84-4f0d-9549-49efe35fed0d").await.expect("held");
    assert_eq!((&moved.metadata["electorate"], &moved.metadata["state"]), (&json!("Harrowgate"), &Value::Null));
}

#[tokio::test]
async fn renamed_columns_are_mapped() {
    let map = |pairs: &[(&str, &str)]| -> FieldMap {
        pairs.iter().map(|(ours, theirs)| ((*ours).to_owned(), (*theirs).to_owned())).collect()
    };
    let jsonl = map(&[
        ("id", "ref"),
        ("speaker", "MP"),
        ("party", "party_name"),
        ("chamber", "house"),
        ("electorate", "seat"),
        ("state", "state_code"),
        ("date", "sitting_day"),
        ("hansard_reference", "cite"),
        ("title", "topic"),
        ("text", "speech_text"),
    ]);
    let csv = map(&[
        ("id", "record_no"),
        ("speaker", "member_name"),
        ("party", "grp"),
        ("chamber", "house_code"),
        ("electorate", "division"),
        ("state", "st"),
        ("date", "day"),
        ("hansard_reference", "volume_page"),
        ("title", "heading"),
        ("text", "body_text"),
    ]);
    for (file, fields, key, speaker, party) in [
        ("speeches.jsonl", jsonl, "r-001", "Cecily Thornbury-Ames", "Liberal"),
        ("speeches.csv", csv, "c-101", "Barnaby Yarrowby", "National"),
    ] {
        let reading = Reading { fields, ..reading(SpeechRules::default()) };
        let speeches = Speeches::read_as(reading, collection());
        fs::copy(data("rows").join(file), speeches.path(file)).expect("copied");
        let report = speeches.update();
        assert_eq!((report.documents, report.faults_in_all), (6, 0), "{:?}", fault_lines(&report));
        let speech = speeches.fetch(key).await.expect("held");
        assert_eq!((&speech.metadata["speaker"], &speech.metadata["party"]), (&json!(speaker), &json!(party)));
        assert_eq!(speech.metadata["chamber"], "House of Representatives");
        assert!(speech.metadata.contains_key("remark"), "every other key stays");
        assert!(speech.as_of.is_some());
    }
}

#[tokio::test]
async fn both_transcript_forms_are_read() {
    let speeches = Speeches::new();
    for file in ["house.xml", "senate.xml"] {
        fs::copy(data("hansard").join(file), speeches.path(file)).expect("copied");
    }
    let report = speeches.update();
    assert_eq!((report.documents, report.faults_in_all), (13, 0), "{:?}", fault_lines(&report));
    for day in ["house", "senate"] {
        let expected = fs::read(data("hansard").join(format!("{day}.expected.json"))).expect("expected");
        let expected: Vec<Value> = serde_json::from_slice(&expected).expect("json");
        for (number, wanted) in expected.iter().enumerate() {
            let key = format!("{day}.xml#{}", number + 1);
            let speech = speeches.fetch(&key).await.expect("held");
            agrees(&key, &speech, wanted);
        }
    }
    let answer = speeches.fetch("house.xml#4").await.expect("held");
    assert_eq!(answer.title, "Regional Libraries");
    assert_eq!(answer.metadata["section"], "SAMPLE QUESTIONS WITHOUT NOTICE › Regional Libraries");
    assert_eq!(answer.metadata["hansard_reference"], "House Hansard, 4 September 2025, p. 14");
    assert_eq!(answer.metadata["party_as_given"], "ALP");
    assert_eq!(speeches.fetch("house.xml#7").await.expect("held").metadata["venue"], "Federation Chamber");
    assert_eq!(speeches.fetch("senate.xml#5").await.expect("held").metadata["first_speech"], true);
}

/// What others say is in the text, each with a name in front; the rest is the speaker's own.
fn agrees(key: &str, speech: &Document, wanted: &Value) {
    let fields = &speech.metadata;
    let rules = SpeechRules::default();
    for name in ["kind", "speaker", "chamber", "date", "time", "page", "debate", "subdebate"] {
        assert_eq!(fields[name], wanted[name], "{key} {name}");
    }
    let given = |name: &str| wanted[name].as_str();
    assert_eq!(fields.get("subdebate_2").and_then(Value::as_str), given("subdebate_2"), "{key}");
    assert_eq!(fields.get("electorate").and_then(Value::as_str), given("electorate"), "{key}");
    assert_eq!(fields["party"].as_str(), given("party").and_then(|p| rules.parties.canonical(p)), "{key}");
    let state = given("state").and_then(|state| rules.states.canonical(state));
    assert_eq!(fields.get("state").and_then(Value::as_str), state, "{key}");

    let mut own: Vec<&str> = speech.text.split("\n\n").collect();
    for said in wanted["interjections"].as_array().expect("a list") {
        let (who, words) = (said["speaker"].as_str(), said["text"].as_str().expect("text"));
        let paragraph = match who {
            Some(who) if words == "interjecting—" => format!("{who} {words}"),
            Some(who) => format!("{who}: {words}"),
            None => words.to_owned(),
        };
        let at = own.iter().position(|own| *own == paragraph);
        own.remove(at.unwrap_or_else(|| panic!("{key} lacks {paragraph:?}: {:#?}", speech.text)));
    }
    let words: Vec<&str> = own.iter().flat_map(|paragraph| paragraph.split_whitespace()).collect();
    assert_eq!(json!(own.len()), wanted["paragraphs"], "{key}: {:#?}", speech.text);
    assert_eq!(json!(words.len()), wanted["words"], "{key}");
    assert_eq!(words[..12].join(" "), wanted["first_12_words"], "{key}");
    assert_eq!(words[words.len() - 12..].join(" "), wanted["last_12_words"], "{key}");
}

#[tokio::test]
async fn copied_transcript_is_indexed_once() {
    let speeches = Speeches::new();
    let day = fs::read_to_string(data("hansard/senate.xml")).expect("sample");
    speeches.write("a.xml", &day);
    assert_eq!(speeches.update().documents, 6);
    speeches.write("b.xml", &day);
    speeches.write("c.xml", day.replace("2009-08-12", "2009-08-13"));
    let report = speeches.update();
    assert_eq!(report.documents, 12, "{:?}", fault_lines(&report));
    assert_eq!((report.summary.succeeded, report.summary.skipped), (2, 1));
    assert!(fault_lines(&report)[0].contains("b.xml:22: has the same text as `a.xml#1`"), "{:?}", fault_lines(&report));
}

#[tokio::test]
async fn text_is_byte_exact_and_keys_survive() {
    let speeches = Speeches::new();
    let text = "  Mr Speaker,\r\n\r\nthis \u{a0}is — “exact”.\n\n\n  And so is this.   \n\n";
    let mut front = String::from("---\nspeech_id: exact\nspeaker: Ada\ndate: 2024-05-28\ntitle: T\n");
    for n in 0..25 {
        front.push_str(&format!("key_{n}: {{deep: [{n}, {{more: yes}}]}}\n"));
    }
    speeches.write("a.md", format!("{front}---\n{text}"));
    speeches.update();
    let speech = speeches.fetch("exact").await.expect("held");
    assert_eq!(speech.text, text);
    for n in 0..25 {
        assert_eq!(speech.metadata[&format!("key_{n}")]["deep"][0], n);
    }
}

#[tokio::test]
async fn changed_rules_read_every_file_again() {
    let speeches = Speeches::new();
    speeches.write("a.md", markdown("a", "Text.").replace("ALP", "Pirates"));
    assert_eq!(speeches.update().faults_in_all, 1);
    let pirates = [("Pirate".to_owned(), vec!["Pirates".to_owned()])].into();
    let rules = SpeechRules::default().with(&pirates, &Default::default(), &Default::default());
    let other = source(speeches.dir.path(), reading(rules), collection());
    let report = other.update(&CancellationToken::new(), &|_| {}).expect("indexed");
    assert_eq!((report.files_read, report.documents, report.faults_in_all), (1, 1, 0));
    speeches.source.refresh().expect("refreshed");
    assert_eq!(speeches.fetch("a").await.expect("held").metadata["party"], "Pirate");
}

#[tokio::test]
async fn plain_documents_ignore_xml() {
    let documents = Speeches::read_as(Reading::default(), Collection::default());
    documents.write("a.xml", "<hansard/>");
    documents.write("a.md", "text");
    assert_eq!(documents.update().files, 1);
}
