//! Folders that change while they are served.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::documents::{Tmpfs, index, search_ids};
use crate::support::{PATIENCE, TestServer, binary, exit_code, sample, signal, wait_for};

/// That the watcher reports each change, rather than the comparison once a minute, is tested beside it.
fn finds(server: &TestServer, query: &str, expected: &[&str]) {
    wait_for(&format!("{query} in {expected:?}"), || search_ids(server, query) == expected);
}

/// Saves like most editors: writes a new file and renames it.
fn replace(path: &Path, content: &str) {
    let beside = path.with_extension("tmp");
    fs::write(&beside, content).expect("written");
    fs::rename(beside, path).expect("renamed");
}

#[test]
fn running_server_follows_every_file_change() {
    let server = TestServer::start();
    let docs = server.dir.path().join("docs");
    fs::write(docs.join("new.md"), "anemone arrived").expect("written");
    finds(&server, "anemone", &["docs:new.md"]);
    fs::write(docs.join("new.md"), "begonia instead").expect("written");
    finds(&server, "begonia", &["docs:new.md"]);
    finds(&server, "anemone", &[]);
    fs::rename(docs.join("new.md"), docs.join("renamed.md")).expect("renamed");
    finds(&server, "begonia", &["docs:renamed.md"]);
    replace(&docs.join("renamed.md"), "crocus by an editor");
    finds(&server, "crocus", &["docs:renamed.md"]);
    fs::remove_file(docs.join("renamed.md")).expect("removed");
    finds(&server, "crocus", &[]);

    // A folder that is moved in, and one that is filled right after its creation.
    let outside = server.dir.path().join("outside/v1.2");
    fs::create_dir_all(&outside).expect("made");
    fs::write(outside.join("d.md"), "dahlia moved in").expect("written");
    fs::rename(&outside, docs.join("v1.2")).expect("moved in");
    finds(&server, "dahlia", &["docs:v1.2/d.md"]);
    fs::create_dir_all(docs.join("deep/er")).expect("made");
    fs::write(docs.join("deep/er/e.md"), "edelweiss below").expect("written");
    finds(&server, "edelweiss", &["docs:deep/er/e.md"]);
    fs::write(docs.join("deep/er/e.md"), "freesia below").expect("written");
    finds(&server, "freesia", &["docs:deep/er/e.md"]);
    fs::rename(docs.join("deep"), docs.join("deeper")).expect("renamed");
    finds(&server, "freesia", &["docs:deeper/er/e.md"]);
    fs::write(docs.join("deeper/er/e.md"), "gentian below").expect("written");
    finds(&server, "gentian", &["docs:deeper/er/e.md"]);
    fs::rename(docs.join("v1.2"), server.dir.path().join("outside/back")).expect("moved out");
    finds(&server, "dahlia", &[]);
    fs::remove_dir_all(docs.join("deeper")).expect("removed");
    finds(&server, "gentian", &[]);
    assert_eq!(search_ids(&server, "beans"), ["docs:beans.md"], "what did not change is still there");
}

#[test]
fn removed_folder_is_followed_again() {
    let server = TestServer::start();
    let docs = server.dir.path().join("docs");
    fs::remove_dir_all(&docs).expect("removed");
    let reason = |server: &TestServer| server.readiness().json()["sources"][0]["reason"].to_string();
    wait_for("the reason", || reason(&server).contains("does not exist"));
    assert_eq!(server.readiness().json()["sources"][0]["status"], "degraded");
    assert_eq!(search_ids(&server, "beans"), ["docs:beans.md"], "the last index serves meanwhile");
    fs::create_dir(&docs).expect("made");
    fs::write(docs.join("again.md"), "hyacinth again").expect("written");
    finds(&server, "hyacinth", &["docs:again.md"]);
    let ready = server.readiness().json();
    assert_eq!(ready["sources"][0]["status"], "ready", "{ready} {}", server.log());
    fs::write(docs.join("again.md"), "iris again").expect("written");
    finds(&server, "iris", &["docs:again.md"]);

    // Another folder under the same name.
    fs::create_dir(server.dir.path().join("other")).expect("made");
    fs::write(server.dir.path().join("other/j.md"), "jasmine").expect("written");
    fs::rename(&docs, server.dir.path().join("old")).expect("moved");
    fs::rename(server.dir.path().join("other"), &docs).expect("moved");
    finds(&server, "jasmine", &["docs:j.md"]);
    fs::write(docs.join("j.md"), "kalmia").expect("written");
    finds(&server, "kalmia", &["docs:j.md"]);
    let told = server.log().matches("does not exist").count();
    assert!(told <= 2, "told {told} times: {}", server.log());
}

#[test]
fn single_file_and_linked_source_are_followed() {
    let server = TestServer::builder()
        .documents(&sample())
        .tables("[[sources]]\nname = \"one\"\nkind = \"documents\"\npath = \"one.md\"\n")
        .tables("[[sources]]\nname = \"linked\"\nkind = \"documents\"\npath = \"link\"\n")
        .at_once()
        .start();
    let dir = server.dir.path();
    wait_for("the first source", || server.readiness().json()["sources"][0]["status"] == "ready");
    fs::write(dir.join("one.md"), "larkspur alone").expect("written");
    fs::create_dir(dir.join("first")).expect("made");
    fs::write(dir.join("first/m.md"), "magnolia").expect("written");
    std::os::unix::fs::symlink("first", dir.join("link")).expect("linked");
    finds(&server, "larkspur", &["one:one.md"]);
    replace(&dir.join("one.md"), "narcissus alone");
    finds(&server, "narcissus", &["one:one.md"]);
    replace(&dir.join("one.md"), "orchid alone");
    finds(&server, "orchid", &["one:one.md"]);
    finds(&server, "magnolia", &["linked:m.md"]);
    fs::write(dir.join("first/m.md"), "peony").expect("written");
    finds(&server, "peony", &["linked:m.md"]);
    // The link is switched, as in a release.
    fs::create_dir(dir.join("second")).expect("made");
    fs::write(dir.join("second/m.md"), "primrose").expect("written");
    std::os::unix::fs::symlink("second", dir.join("next")).expect("linked");
    fs::rename(dir.join("next"), dir.join("link")).expect("switched");
    finds(&server, "primrose", &["linked:m.md"]);
}

#[test]
fn watch_false_does_not_follow() {
    // The first indexes once at its start; the second does not index at all.
    let indexes_at_start = TestServer::builder().documents(&sample()).server("watch = false").start();
    let never_indexes = TestServer::builder().documents(&sample()).server("auto_index = false").at_once().start();
    assert!(index(&never_indexes).status.success());
    never_indexes.wait_ready();
    for server in [indexes_at_start, never_indexes] {
        fs::write(server.dir.path().join("docs/new.md"), "anemone").expect("written");
        // Nothing tells that a change was not noticed; a server that watches takes less than a second.
        std::thread::sleep(Duration::from_secs(3));
        assert_eq!(search_ids(&server, "anemone"), Vec::<String>::new(), "{}", server.log());
        assert!(index(&server).status.success());
        finds(&server, "anemone", &["docs:new.md"]);
    }
}

/// Every document of a batch names its version, and a batch arrives by one rename.
#[test]
fn answers_never_mix_index_versions() {
    let server = TestServer::start();
    let docs = server.dir.path().join("docs");
    let batch = |generation: usize| -> String {
        (0..45).map(|n| format!("{{\"id\":\"b{n}\",\"text\":\"batch of state g{generation} here\"}}\n")).collect()
    };
    replace(&docs.join("batch.jsonl"), &batch(0));
    wait_for("the batch", || search_ids(&server, "batch").len() == 10);
    for generation in 1..=5 {
        replace(&docs.join("batch.jsonl"), &batch(generation));
        let until = Instant::now() + PATIENCE;
        loop {
            let found = server.call("search", json!({"query": "batch of state", "limit": 50}));
            let results = found["results"].as_array().expect("results");
            assert_eq!(results.len(), 45);
            let texts: Vec<&str> = results.iter().filter_map(|hit| hit["text"].as_str()).collect();
            assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
            if texts[0].contains(&format!("g{generation} ")) {
                break;
            }
            assert!(Instant::now() < until, "{}", texts[0]);
        }
    }
}

#[test]
fn second_index_run_waits_for_first() {
    let server = TestServer::builder().documents(&sample()).server("watch = false").start();
    let rows: String = (0..60_000)
        .map(|n| format!("{{\"id\":\"r{n}\",\"text\":\"many rows of text number {n} with some more words\"}}\n"))
        .collect();
    fs::write(server.dir.path().join("docs/many.jsonl"), rows).expect("written");
    let runs: Vec<Child> = (0..2)
        .map(|_| {
            Command::new(binary())
                .args(["index", "--json", "--config"])
                .arg(server.config())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("started")
        })
        .collect();
    let mut waited = 0;
    let mut read = 0;
    for run in runs {
        let output = run.wait_with_output().expect("ended");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{told}");
        waited += usize::from(told.contains("is being indexed by another process; waiting for it"));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(report[0]["documents"], 60_004);
        read += report[0]["files_read"].as_u64().expect("a number");
    }
    assert_eq!((waited, read), (1, 1), "one read it, the other waited and found it done");
}

/// `tribune index --watch`, its lines as they come.
struct Watching {
    child: Child,
    out: mpsc::Receiver<String>,
}

impl Watching {
    fn start(config: &Path, args: &[&str]) -> Self {
        let mut child = Command::new(binary())
            .args(["index", "--watch", "--config"])
            .arg(config)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started");
        let (lines, out) = mpsc::channel();
        let outs: [Box<dyn std::io::Read + Send>; 2] =
            [Box::new(child.stdout.take().expect("stdout")), Box::new(child.stderr.take().expect("stderr"))];
        for stream in outs {
            let lines = lines.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(stream).lines().map_while(Result::ok) {
                    drop(lines.send(line));
                }
            });
        }
        Self { child, out }
    }

    fn line(&self) -> String {
        self.out.recv_timeout(PATIENCE).expect("a line")
    }

    fn is_silent(&self) -> bool {
        self.out.recv_timeout(Duration::from_secs(2)).is_err()
    }

    fn stop(mut self) -> Option<i32> {
        signal(self.child.id(), "TERM");
        exit_code(&mut self.child)
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn configured(data_dir: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    fs::create_dir(dir.path().join("docs")).expect("made");
    fs::write(dir.path().join("docs/a.md"), "alpha").expect("written");
    let config = format!(
        "[server]\ndata_dir = {data_dir:?}\n[embedder]\nkind = \"none\"\n[[sources]]\nname = \"docs\"\nkind = \"documents\"\npath = \"docs\"\n"
    );
    fs::write(dir.path().join("tribune.toml"), config).expect("written");
    dir
}

#[test]
fn index_watch_prints_one_line_per_update() {
    let dir = configured("data");
    let docs = dir.path().join("docs");
    let watching = Watching::start(&dir.path().join("tribune.toml"), &[]);
    let line = watching.line();
    assert!(line.starts_with("docs: 1 document in the index (1 file read, 0 unchanged, 0 removed"), "{line}");
    fs::write(docs.join("latin.txt"), b"caf\xe9").expect("written");
    let line = watching.line();
    assert!(line.starts_with("docs: 1 document in the index (1 file read, 1 unchanged, 0 removed"), "{line}");
    let line = watching.line();
    assert!(line.starts_with("  latin.txt: is not UTF-8"), "{line}");
    fs::rename(docs.join("a.md"), docs.join("b.md")).expect("renamed");
    let line = watching.line();
    assert!(line.starts_with("docs: 1 document in the index (1 file read, 1 unchanged, 1 removed"), "{line}");
    // Reads, other file types and hidden files cause no update.
    fs::write(docs.join("picture.png"), "not a document").expect("written");
    fs::write(docs.join(".hidden.md"), "hidden").expect("written");
    fs::read(docs.join("b.md")).expect("read");
    assert!(watching.is_silent());
    assert_eq!(watching.stop(), Some(0));

    let watching = Watching::start(&dir.path().join("tribune.toml"), &["docs", "--json"]);
    let first: Value = serde_json::from_str(&watching.line()).expect("JSON");
    assert_eq!((&first["source"], &first["files_unchanged"]), (&json!("docs"), &json!(2)));
    fs::remove_file(docs.join("b.md")).expect("removed");
    let second: Value = serde_json::from_str(&watching.line()).expect("JSON");
    assert_eq!((&second["files_removed"], &second["faults"]), (&json!(1), &json!([])));
    assert_eq!(watching.stop(), Some(0));
}

#[test]
fn watching_survives_a_full_disk() {
    let disk = Tmpfs::mount("4m");
    let dir = configured(disk.path().to_str().expect("UTF-8"));
    let docs = dir.path().join("docs");
    let watching = Watching::start(&dir.path().join("tribune.toml"), &[]);
    assert!(watching.line().starts_with("docs: 1 document"));
    let rows: String = (0..100_000u64)
        .map(|n| format!("{{\"id\":\"r{n}\",\"text\":\"unlike rows {} {}\"}}\n", n * 7919, n * 104_729))
        .collect();
    fs::write(docs.join("many.jsonl"), rows).expect("written");
    let line = watching.line();
    assert!(line.contains("the disk is full") && line.contains("the previous index keeps serving"), "{line}");
    fs::remove_file(docs.join("many.jsonl")).expect("removed");
    fs::write(docs.join("b.md"), "bravo").expect("written");
    let line = watching.line();
    assert!(line.starts_with("docs: 2 documents in the index"), "{line}");
    assert_eq!(watching.stop(), Some(0));
}
