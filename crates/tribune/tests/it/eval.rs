//! `tribune eval` on a dataset small enough to compute by hand, with keyword search only.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::binary;

fn command(dir: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.current_dir(dir).arg("eval").args(args);
    command
}

fn eval(dir: &Path, args: &[&str]) -> Output {
    command(dir, args).output().expect("ran")
}

fn out(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("UTF-8")
}

fn err(output: &Output) -> String {
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr.clone()).expect("UTF-8")
}

fn figures(dir: &Path, args: &[&str]) -> Value {
    let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
    serde_json::from_str(&out(&eval(dir, &args))).expect("JSON")
}

/// Four documents, one of them only a title; three queries with judgements.
fn garden(dir: &Path, name: &str) -> PathBuf {
    let folder = dir.join(name);
    std::fs::create_dir_all(folder.join("qrels")).expect("made");
    let write = |name: &str, lines: &[&str]| {
        std::fs::write(folder.join(name), lines.join("\n") + "\n").expect("written");
    };
    write(
        "corpus.jsonl",
        &[
            r#"{"_id":"d1","title":"The pump","text":"The water pump was mended by Ada in spring.","metadata":{}}"#,
            r#"{"_id":"d2","title":"Marrow show","text":"Bertha grew the heaviest marrow of the show.","metadata":{}}"#,
            r#"{"_id":"d3","title":"","text":"Hens are kept on plot twenty. The pump is far away from there.","metadata":{}}"#,
            r#"{"_id":"d4","title":"Padlock of the east gate","text":"","metadata":{}}"#,
        ],
    );
    write(
        "queries.jsonl",
        &[
            r#"{"_id":"q1","text":"who mended the pump"}"#,
            r#"{"_id":"q2","text":"padlock on the gate"}"#,
            r#"{"_id":"q3","text":"heaviest marrow"}"#,
            r#"{"_id":"q4","text":"nobody judged this"}"#,
        ],
    );
    write(
        "qrels/test.tsv",
        &["query-id\tcorpus-id\tscore", "q1\td1\t1", "q1\td3\t2", "q2\td4\t1", "q3\td2\t1", "q3\tgone\t1"],
    );
    write("qrels/dev.tsv", &["query-id\tcorpus-id\tscore", "q2\td4\t1"]);
    folder
}

/// q1 finds d1 (1), then d3 (2); q2 finds d4; q3 finds d2, and one of its two answers is nowhere.
fn expected_ndcg() -> f64 {
    let second = 1.0 / 3f64.log2();
    let q1 = (1.0 + 2.0 * second) / (2.0 + second);
    let q3 = 1.0 / (1.0 + second);
    (q1 + 1.0 + q3) / 3.0
}

#[test]
fn second_eval_run_reuses_the_index() {
    let dir = tempfile::tempdir().expect("a folder");
    garden(dir.path(), "garden");
    let args = ["--beir", "garden", "--embedder", "none"];
    let first = figures(dir.path(), &args);
    let near = |name: &str, wanted: f64| {
        let got = first[name].as_f64().expect(name);
        assert!((got - wanted).abs() < 1e-6, "{name}: {got} instead of {wanted}");
    };
    near("ndcg@10", expected_ndcg());
    near("recall@100", (1.0 + 1.0 + 0.5) / 3.0);
    near("mrr@10", 1.0);
    assert_eq!(first["dataset"], "garden");
    assert_eq!((&first["documents"], &first["passages"], &first["queries"]), (&json!(4), &json!(4), &json!(3)));
    assert_eq!((&first["embedder"], &first["legs"]), (&json!("none"), &json!("words")));
    for name in ["p50_ms", "p99_ms", "index_secs", "embed_secs"] {
        assert!(first[name].as_f64().is_some_and(|value| value >= 0.0), "{name}");
    }
    let note = first["notes"][0].as_str().expect("a note");
    assert!(note.starts_with("1 of 5 relevant documents are not in the corpus (such as `gone`)"), "{note}");

    let index = std::fs::read_dir(dir.path().join("tribune-data/eval")).expect("kept").flatten();
    let kept: Vec<PathBuf> = index.map(|entry| entry.path().join("words/v3/meta.json")).collect();
    let [meta] = kept.as_slice() else { panic!("{kept:?}") };
    let made = || std::fs::metadata(meta).and_then(|file| file.modified()).expect("an index");
    let before = made();
    let second = figures(dir.path(), &args);
    assert_eq!(made(), before, "nothing was indexed again");
    assert_eq!(second["ndcg@10"], first["ndcg@10"]);
    figures(dir.path(), &[&args[..], &["--fresh"]].concat());
    assert_ne!(made(), before, "--fresh indexes again");
}

#[test]
fn eval_prints_table_and_writes_files() {
    let dir = tempfile::tempdir().expect("a folder");
    garden(dir.path(), "garden");
    let text = out(&eval(
        dir.path(),
        &["--beir", "garden", "--embedder", "none", "--per-query", "each.jsonl", "--run", "run.txt"],
    ));
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some("dataset  model  ranked by  documents  passages  queries  nDCG@10  Recall@100  MRR@10  p50 ms  p99 ms")
    );
    let row: Vec<&str> = lines.next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(row[..6], ["garden", "none", "words", "4", "4", "3"]);
    assert_eq!(row[6], format!("{:.4}", expected_ndcg()));
    assert!(text.contains("note: garden: 1 of 5 relevant documents"), "{text}");

    let each = std::fs::read_to_string(dir.path().join("each.jsonl")).expect("written");
    let each: Vec<Value> = each.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(each.len(), 3);
    assert_eq!((&each[0]["query"], &each[0]["found"]), (&json!("q1"), &json!(["d1", "d3"])));
    assert_eq!((&each[1]["ndcg@10"], &each[1]["mrr@10"]), (&json!(1.0), &json!(1.0)));
    let run = std::fs::read_to_string(dir.path().join("run.txt")).expect("written");
    assert!(run.starts_with("q1 Q0 d1 1 2 tribune\nq1 Q0 d3 2 1 tribune\nq2 Q0 d4 1 1 tribune\n"), "{run}");
}

#[test]
fn eval_averages_datasets_and_selects_split() {
    let dir = tempfile::tempdir().expect("a folder");
    garden(dir.path(), "one");
    garden(dir.path(), "two");
    let both = figures(dir.path(), &["--beir", "one", "--beir", "two", "--embedder", "none"]);
    assert_eq!(both["datasets"].as_array().map(Vec::len), Some(2));
    assert_eq!(both["mean"]["ndcg@10"], both["datasets"][0]["ndcg@10"]);
    let dev = figures(dir.path(), &["--beir", "one", "--embedder", "none", "--split", "dev"]);
    assert_eq!((&dev["queries"], &dev["ndcg@10"]), (&json!(1), &json!(1.0)));
    let quick = figures(dir.path(), &["--beir", "one", "--embedder", "none", "--limit-queries", "1"]);
    assert_eq!(quick["queries"], 1);
}

#[test]
fn query_that_is_a_document_excludes_itself() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = garden(dir.path(), "garden");
    let asked = r#"{"_id":"d1","text":"The water pump was mended by Ada in spring."}"#;
    let same_number = r#"{"_id":"d2","text":"heaviest marrow"}"#;
    std::fs::write(folder.join("queries.jsonl"), format!("{asked}\n{same_number}\n")).expect("written");
    std::fs::write(folder.join("qrels/test.tsv"), "d1\td3\t1\nd2\td2\t1\n").expect("written");
    let found = figures(dir.path(), &["--beir", "garden", "--embedder", "none"]);
    assert_eq!((&found["queries"], &found["ndcg@10"]), (&json!(2), &json!(1.0)));
}

#[test]
fn concurrent_eval_runs_succeed() {
    let dir = tempfile::tempdir().expect("a folder");
    garden(dir.path(), "garden");
    let start = |more: &[&str]| {
        let args = [&["--beir", "garden", "--embedder", "none", "--json"], more].concat();
        let mut command = command(dir.path(), &args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("started")
    };
    let running: Vec<_> = [&[][..], &["--fresh"], &[], &["--fresh"]].into_iter().map(start).collect();
    for run in running {
        let output = run.wait_with_output().expect("ran");
        let found: Value = serde_json::from_str(&out(&output)).expect("JSON");
        assert_eq!(found["documents"], 4);
    }
}

#[test]
fn eval_floor_and_errors_fail_with_advice() {
    let dir = tempfile::tempdir().expect("a folder");
    let folder = garden(dir.path(), "garden");
    let none = ["--beir", "garden", "--embedder", "none"];
    assert!(out(&eval(dir.path(), &[&none[..], &["--floor", "0.5"]].concat())).contains("garden"));
    let low = eval(dir.path(), &[&none[..], &["--floor", "0.99"]].concat());
    assert_eq!(low.status.code(), Some(1));
    assert!(err(&low).contains("below the floor of 0.99"));
    for (args, told) in [
        (vec!["--beir", "nowhere"], "--beir takes its folder"),
        (vec!["--beir", "garden", "--split", "train"], "choose with --split one of: dev, test"),
        (vec!["--beir", "garden", "--embedder", "bert"], "there is no model `bert`"),
        (vec!["--beir", "garden", "--embedder", "none", "--legs", "meaning"], "ranking by meaning needs a model"),
        (
            vec!["--beir", "garden", "--embedder", "none", "--against", "minilm:words"],
            "--against is the same configuration",
        ),
        (vec!["--beir", "garden", "--floor", "80"], "between 0 and 1"),
        (vec!["--beir", "garden", "--queries", "q.tsv"], "cannot be used with"),
        (vec![], "required arguments"),
        (vec!["--queries", "none.tsv"], "cannot read the list of questions, none.tsv"),
    ] {
        let message = err(&eval(dir.path(), &args));
        assert!(message.contains(told), "{args:?}: {message}");
    }
    std::fs::write(folder.join("corpus.jsonl"), "not JSON\n").expect("written");
    let message = err(&eval(dir.path(), &none));
    assert!(message.contains("has no documents (corpus.jsonl:1: is not valid JSON"), "{message}");
}

#[test]
fn own_questions_run_on_configured_sources() {
    let dir = tempfile::tempdir().expect("a folder");
    let init = Command::new(binary()).current_dir(dir.path()).arg("init").output().expect("ran");
    assert!(init.status.success());
    let note = |name: &str, text: &str| std::fs::write(dir.path().join("notes").join(name), text).expect("written");
    note("pump.md", "# The pump\n\nThe pump was mended by Ada.\n");
    note("show.md", "# The show\n\nBertha grew the heaviest marrow. The pump was shown too.\n");
    std::fs::write(
        dir.path().join("questions.tsv"),
        "who mended the pump\tnotes:pump.md\nheaviest marrow\tshow.md\npump\tshow.md\nhens\tgone.md\n",
    )
    .expect("written");
    let found = figures(dir.path(), &["--queries", "questions.tsv"]);
    assert_eq!((&found["queries"], &found["hits@1"], &found["hits@10"]), (&json!(4), &json!(0.5), &json!(0.75)));
    let misses = found["misses"].as_array().expect("misses");
    assert_eq!(misses.len(), 2);
    assert_eq!(misses[0]["expected"], json!([{"id": "notes:show.md", "rank": 2, "held": true}]));
    assert_eq!(misses[1]["expected"], json!([{"id": "gone.md", "rank": null, "held": false}]));
    let low = eval(dir.path(), &["--queries", "questions.tsv", "--floor", "0.88"]);
    let told = String::from_utf8_lossy(&low.stdout);
    assert_eq!(low.status.code(), Some(1), "{told}");
    assert!(told.contains("line 3: pump") && told.contains("notes:show.md came as number 2"), "{told}");
    assert!(told.contains("gone.md is in no source"), "{told}");
}

/// The demo, measured with its own questions.
#[test]
fn eval_without_configuration_uses_demo() {
    let dir = tempfile::tempdir().expect("a folder");
    std::fs::write(dir.path().join("q.tsv"), include_str!("../demo-questions.tsv")).expect("written");
    let found = figures(dir.path(), &["--queries", "q.tsv", "--floor", "0.9"]);
    assert_eq!(found["sources"], json!(["manual", "notes", "hansard"]));
    assert_eq!(found["hits@1"], 1.0, "{found}");
}

/// Written for the sample speeches: half of the questions share few words with the passage that answers.
#[test]
fn sample_speeches_answer_their_questions() {
    let dir = tempfile::tempdir().expect("dir");
    let root = crate::support::root();
    let config = format!(
        "[[sources]]\nname = \"hansard\"\nkind = \"speeches\"\npath = {:?}\n",
        root.join("crates/tribune/demo/hansard").display().to_string()
    );
    std::fs::write(dir.path().join("tribune.toml"), &config).expect("written");
    let questions = root.join("crates/tribune/tests/speech-questions.tsv");
    let questions = questions.to_str().expect("a path");
    let both = figures(dir.path(), &["--queries", questions, "--floor", "0.88"]);
    std::fs::write(dir.path().join("tribune.toml"), config + "embedder = \"none\"\n").expect("written");
    let words = figures(dir.path(), &["--queries", questions]);
    let ndcg = |figures: &Value| figures["ndcg@10"].as_f64().expect("a figure");
    assert!(ndcg(&both) > ndcg(&words), "both: {both}; words alone: {words}");
}

#[test]
fn models_are_compared_on_same_queries() {
    let dir = tempfile::tempdir().expect("dir");
    let garden = garden(dir.path(), "garden");
    let garden = garden.to_str().expect("a path");
    let compared = figures(dir.path(), &["--beir", garden, "--embedder", "minilm", "--against", "static:meaning"]);
    assert_eq!(compared["embedder"], "minilm");
    assert_eq!(compared["against"]["embedder"], "static");
    assert_eq!(compared["against"]["legs"], "meaning");
    assert!(compared["difference"].is_object(), "{compared}");
}
