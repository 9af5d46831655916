//! Indexing processes are killed at random moments; the served index is always complete.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::json;

use crate::support::{TestServer, binary, repetitions};

const DOCUMENTS: usize = 300;
/// Every n-th document is long enough for several passages.
const LONG: usize = 25;

/// xorshift: the same delays in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

fn text(generation: u64, number: usize) -> String {
    let filler = if number.is_multiple_of(LONG) {
        format!("This is said in g{generation} at some length. ").repeat(100)
    } else {
        String::new()
    };
    format!("state g{generation} of document{number}. {filler}The end of g{generation}.")
}

/// All documents of a generation arrive by one rename.
fn write_batch(dir: &Path, generation: u64) {
    let rows: String =
        (0..DOCUMENTS).map(|n| format!("{}\n", json!({"id": format!("d{n}"), "text": text(generation, n)}))).collect();
    let beside = dir.join("batch.new");
    fs::write(&beside, rows).expect("written");
    fs::rename(beside, dir.join("docs/batch.jsonl")).expect("renamed");
}

/// `tribune index`, which prints a line after each commit.
fn index(dir: &Path, args: &[&str]) -> Child {
    Command::new(binary())
        .args(["index", "--config"])
        .arg(dir.join("tribune.toml"))
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("started")
}

/// The one generation that a fresh server serves; `None` if no index was ever committed.
fn served(dir: &Arc<tempfile::TempDir>) -> Option<u64> {
    // Only what the killed process has left.
    let server = TestServer::over(dir.clone(), &[], &[("TRIBUNE_SERVER_AUTO_INDEX", "false")]);
    let ready = server.readiness();
    if ready.status == 503 {
        assert!(ready.body.contains("waiting to be indexed"), "{}", ready.body);
        return None;
    }
    assert_eq!(ready.json()["sources"][0]["documents"], DOCUMENTS, "{}", ready.body);
    let found = server.call("search", json!({"query": "state", "limit": 50}));
    let results = found["results"].as_array().expect("results");
    assert_eq!(results.len(), 50, "{found}");
    let generation = |text: &str| -> u64 {
        let at = text.split(" g").nth(1).and_then(|rest| rest.split(' ').next());
        at.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{text}"))
    };
    let one = generation(results[0]["text"].as_str().expect("a text"));
    for hit in results {
        let text = hit["text"].as_str().expect("a text");
        assert_eq!(generation(text), one, "{text}");
    }
    for number in (0..DOCUMENTS).step_by(LONG).flat_map(|n| [n, n + 1]) {
        let document = server.call("fetch", json!({"id": format!("docs:d{number}")}));
        assert_eq!(document["text"].as_str(), Some(text(one, number).as_str()), "document {number}");
    }
    Some(one)
}

#[test]
fn killed_index_runs_leave_a_whole_index() {
    let kills = repetitions(10, 50);
    let dir = Arc::new(tempfile::tempdir().expect("a folder"));
    fs::create_dir(dir.path().join("docs")).expect("made");
    let config =
        "[server]\nlisten = \"127.0.0.1:0\"\n[[sources]]\nname = \"docs\"\nkind = \"documents\"\npath = \"docs\"\n";
    fs::write(dir.path().join("tribune.toml"), config).expect("written");
    let mut random = Random(0x7472_6962_756e_6521);
    let written = AtomicU64::new(1);
    write_batch(dir.path(), 1);
    let mut before = None;
    let (mut moved, mut first) = (0, 0);
    for kill in 0..kills {
        let watch = kill % 2 == 1;
        if kill % 10 < 2 {
            // From nothing, so that the first commit is interrupted too.
            drop(fs::remove_dir_all(dir.path().join("tribune-data")));
            before = None;
        }
        let stop = AtomicBool::new(false);
        let pauses: Vec<u64> = (0..20).map(|_| 20 + random.below(500)).collect();
        std::thread::scope(|scope| {
            let (stop, written, folder) = (&stop, &written, dir.path());
            scope.spawn(move || {
                for pause in pauses {
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    write_batch(folder, 1 + written.fetch_add(1, Ordering::SeqCst));
                    std::thread::sleep(Duration::from_millis(pause));
                }
            });
            let mut run = index(folder, if watch { &["--watch"] } else { &[] });
            if watch {
                // After a commit, while the next one is under way.
                let mut line = String::new();
                let out = run.stdout.as_mut().expect("stdout");
                BufReader::new(out).read_line(&mut line).expect("a line");
                assert!(line.starts_with("docs: "), "{line}");
            }
            std::thread::sleep(Duration::from_millis(random.below(400)));
            // On Unix this is SIGKILL.
            run.kill().expect("killed");
            run.wait().expect("reaped");
            stop.store(true, Ordering::SeqCst);
        });
        let now = served(&dir);
        assert!(now >= before, "kill {kill}: {now:?} after {before:?}");
        assert!(now <= Some(written.load(Ordering::SeqCst)), "kill {kill}: {now:?}");
        assert!(!watch || now.is_some(), "kill {kill}: the commit it told of is lost");
        moved += u64::from(now > before);
        first += u64::from(now.is_none());
        before = now;
    }
    eprintln!("{kills} kills: {moved} after a commit, {first} before the first");

    let mut last = index(dir.path(), &[]);
    assert!(last.wait().expect("ended").success(), "the next run goes on");
    assert_eq!(served(&dir), Some(written.load(Ordering::SeqCst)), "with the newest state");
}
