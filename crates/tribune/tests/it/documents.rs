//! Documents from folder to citation, and failures on the way.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{TestServer, binary, sample, wait_for};

fn ids(answer: &Value) -> Vec<&str> {
    answer["results"].as_array().expect("results").iter().filter_map(|hit| hit["id"].as_str()).collect()
}

pub fn search_ids(server: &TestServer, query: &str) -> Vec<String> {
    ids(&server.call("search", json!({"query": query}))).into_iter().map(str::to_owned).collect()
}

/// Runs `tribune index` over the server's own configuration.
pub fn index(server: &TestServer) -> std::process::Output {
    Command::new(binary()).args(["index", "--config"]).arg(server.config()).output().expect("indexed")
}

#[test]
fn search_and_fetch_match_host_contract() {
    let server = TestServer::start();
    let found = server.call("search", json!({"query": "when to sow beans"}));
    let hit = &found["results"][0];
    assert_eq!(hit["id"], "docs:beans.md");
    assert_eq!(hit["title"], "Runner beans");
    assert!(hit["text"].as_str().is_some_and(|text| text.contains("Sow runner beans in May")), "{hit}");
    let url = hit["url"].as_str().expect("a url");
    assert_eq!(url, format!("{}/data/docs:beans.md", server.url));

    let document = server.call("fetch", json!({"id": hit["id"]}));
    assert_eq!(document["text"], "Sow runner beans in May, when the soil is warm.\n");
    assert_eq!(document["metadata"]["date"], "2024-05-28");
    assert_eq!(document["metadata"]["tags"], json!(["garden"]));
    assert_eq!(document["metadata"]["source"], "docs");
    for alias in ["url", "document_id", "uri"] {
        assert_eq!(server.call("fetch", json!({alias: "docs:beans.md"})), document, "{alias}");
    }
    assert_eq!(server.call("fetch", json!({"url": url})), document, "a citation is as good as an id");
    assert_eq!(ids(&server.call("search", json!({"query": "zeppelin"}))), Vec::<&str>::new());

    let missing =
        server.modern("/mcp", "tools/call", json!({"name": "fetch", "arguments": {"id": "docs:none"}})).json();
    assert_eq!(missing["result"]["isError"], true);
    let text = missing["result"]["content"][0]["text"].as_str().expect("text");
    assert!(text.starts_with("Document not found: docs:none.") && text.contains("call search"), "{text}");
}

#[test]
fn unusual_ids_survive_search_fetch_and_citation() {
    let keys = [
        "x-coredata://A/ICNote/p12",
        "ticker:BTCUSDT",
        "klines:BTCUSDT:1h",
        "50% off",
        "a b/c?d=e&f#g",
        "é漢字🙂",
        " leading and trailing ",
        "../../etc/passwd",
        "%2F%25",
        "quote\"'<>\\",
        "tab\tand\u{7f}",
        "+plus+",
        "a//b",
        ".",
        "..",
    ];
    let rows: String = keys
        .iter()
        .enumerate()
        .map(|(n, key)| format!("{}\n", json!({"id": key, "title": format!("T{n}"), "text": format!("word{n} here")})))
        .collect();
    let server = TestServer::builder().documents(&[("rows.jsonl", &rows)]).start();
    for (n, key) in keys.iter().enumerate() {
        let found = server.call("search", json!({"query": format!("word{n}")}));
        let hit = &found["results"][0];
        assert_eq!(hit["id"], format!("docs:{key}"));
        let document = server.call("fetch", json!({"id": hit["id"]}));
        assert_eq!((&document["id"], &document["text"]), (&hit["id"], &json!(format!("word{n} here"))));
        let path = hit["url"].as_str().expect("a url").strip_prefix(&server.url).expect("absolute and ours").to_owned();
        let cited = server.get(&path, &[("accept", "application/json")]);
        assert_eq!(cited.status, 200, "{path}");
        assert_eq!(cited.json()["id"], hit["id"], "{path}");
        let page = server.get(&path, &[("accept", "text/html")]);
        assert!(page.status == 200 && page.body.contains(&format!("word{n} here")), "{path}");
    }
}

#[test]
fn citation_marks_passage_and_escapes_markup() {
    let filler = "The committee considered the matter and adjourned. ".repeat(80);
    let text = format!("{filler}A walrus <script>alert(1)</script> entered. {filler}");
    let server = TestServer::builder().documents(&[("long.txt", &text)]).start();
    let found = server.call("search", json!({"query": "walrus"}));
    let path = found["results"][0]["url"].as_str().expect("a url").replace(&server.url, "");
    assert!(path.contains("?passage="), "{path}");
    let page = server.get(path.split('#').next().expect("a path"), &[("accept", "text/html")]);
    let marked = page.body.split("<mark id=\"passage\">").nth(1).and_then(|rest| rest.split("</mark>").next());
    assert!(marked.is_some_and(|marked| marked.contains("A walrus &lt;script&gt;")), "{}", page.body.len());
    let mut scripts = page.body.split("<script").skip(1);
    assert!(scripts.all(|script| script.starts_with(" type=\"module\" src=\"/assets/")), "nothing of a document runs");
    assert!(page.header("content-security-policy").starts_with("default-src 'none'"));
    let missing = server.get("/data/docs:none", &[("accept", "text/html")]);
    assert!(missing.status == 404 && missing.body.contains("Search"), "a 404 that helps");
    assert_eq!(
        server.get("/data/docs:none", &[("accept", "application/json")]).json()["error"],
        "There is no document docs:none"
    );
}

/// Hostile documents never make an answer exceed the hosts' limit.
#[test]
fn large_documents_do_not_exceed_answer_limit() {
    let fields: serde_json::Map<String, Value> =
        (0..5000).map(|n| (format!("field{n}"), json!("v".repeat(190)))).collect();
    let mut wide = json!({"id": "wide", "title": "zebra", "text": "zebra wide"});
    wide.as_object_mut().expect("an object").extend(fields);
    let rows = [
        wide,
        json!({"id": "title", "title": "zebra ".repeat(50_000), "text": "zebra"}),
        json!({"id": "control", "text": format!("zebra {}", "\u{1}".repeat(39_000))}),
        json!({"id": "quotes", "text": format!("zebra {}", "\"\\".repeat(19_000))}),
        json!({"id": "url", "title": "zebra zebra zebra", "text": "zebra zebra", "url": format!("https://x/{}", "u".repeat(50_000))}),
        json!({"id": "plain", "title": "Plain", "text": "zebra crossing"}),
    ];
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    let server = TestServer::builder().documents(&[("rows.jsonl", &lines)]).start();
    let found = search_ids(&server, "zebra");
    assert_eq!(found.len(), rows.len(), "{found:?}");
    for id in found {
        let answer = server.modern("/mcp", "tools/call", json!({"name": "fetch", "arguments": {"id": id}}));
        assert!(answer.body.len() < 100_000, "{id}: {} bytes", answer.body.len());
        assert_eq!(answer.json()["result"]["isError"], false, "{id}");
    }
    let answer =
        server.modern("/mcp", "tools/call", json!({"name": "search", "arguments": {"query": "zebra", "limit": 50}}));
    assert!(answer.body.len() < 100_000, "{} bytes", answer.body.len());
}

#[test]
fn unusual_citation_addresses_get_helpful_answers() {
    let server = TestServer::start();
    for path in [
        "/data/docs:beans.md?passage=abc",
        "/data/docs:beans.md?passage=99",
        "/data/docs:beans.md?passage=1&passage=2",
        "/?q=a&q=b",
    ] {
        assert_eq!(server.get(path, &[("accept", "text/html")]).status, 200, "{path}");
    }
    for path in ["/data/%ff%fe", "/data/", "/data/%2e%2e", "/data/nothing"] {
        let answer = server.get(path, &[("accept", "application/json")]);
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.json()["next"].is_string(), "{path}: {}", answer.body);
    }
}

#[test]
fn running_server_switches_index_without_dropped_requests() {
    let server = TestServer::start();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| {
            let mut asked = 0;
            while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                // `call` fails the test on an error.
                assert!(search_ids(&server, "beans").contains(&"docs:beans.md".to_owned()));
                asked += 1;
            }
            asked
        });
        for round in 0..5 {
            fs::write(server.dir.path().join(format!("docs/new{round}.md")), format!("round{round} arrived"))
                .expect("written");
            assert!(index(&server).status.success());
            wait_for("the new index", || search_ids(&server, &format!("round{round}")).len() == 1);
        }
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
        assert!(asked.join().expect("asked") > 10);
    });
}

#[test]
fn reindexing_reads_only_changed_files() {
    let server = TestServer::builder().documents(&sample()).server("watch = false").start();
    fs::write(server.dir.path().join("docs/latin.txt"), b"caf\xe9").expect("written");
    fs::write(server.dir.path().join("docs/huge.txt"), "word ".repeat(10_500_000)).expect("written");
    let told = String::from_utf8(index(&server).stdout).expect("UTF-8");
    assert!(told.contains("(2 files read, 3 unchanged"), "{told}");
    assert!(told.contains("latin.txt: is not UTF-8"), "{told}");
    assert!(told.contains("huge.txt: is larger than one document may be (16 MiB)"), "{told}");
    let again = String::from_utf8(index(&server).stdout).expect("UTF-8");
    assert!(again.contains("(0 files read, 5 unchanged"), "{again}");
    assert_eq!(search_ids(&server, "beans"), ["docs:beans.md"], "nothing else is lost");
}

/// Whether a process has the lock of an index open.
fn holds_lock(pid: u32) -> bool {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    open.filter_map(|entry| fs::read_link(entry.path()).ok())
        .any(|file| file.extension().is_some_and(|extension| extension == "lock"))
}

#[test]
fn killed_index_run_leaves_old_index_serving() {
    let server = TestServer::builder().documents(&sample()).server("watch = false").start();
    let rows: String = (0..200_000)
        .map(|n| {
            format!("{{\"id\":\"r{n}\",\"text\":\"many rows of text number {n} with some more words in them\"}}\n")
        })
        .collect();
    fs::write(server.dir.path().join("docs/many.jsonl"), rows).expect("written");
    let before = server.readiness().json()["sources"][0]["documents"].clone();
    for _ in 0..3 {
        let mut run = Command::new(binary()).args(["index", "--config"]).arg(server.config()).spawn().expect("started");
        wait_for("the run to take the lock", || holds_lock(run.id()));
        run.kill().expect("killed");
        if run.wait().expect("reaped").success() {
            // It was faster than this thread: there is nothing left to interrupt.
            break;
        }
        assert_eq!(search_ids(&server, "beans"), ["docs:beans.md"]);
        assert_eq!(server.readiness().json()["sources"][0]["documents"], before);
    }
    assert!(index(&server).status.success(), "the lock of a killed run frees itself");
    wait_for("the new index", || search_ids(&server, "number 199999").first().is_some_and(|id| id == "docs:r199999"));
}

#[test]
fn full_disk_keeps_old_index_and_reports() {
    let disk = Tmpfs::mount("4m");
    let docs = disk.parent.path().join("docs");
    fs::create_dir_all(&docs).expect("a folder");
    fs::write(docs.join("beans.md"), "runner beans").expect("written");
    let server = TestServer::builder()
        .server(&format!("watch = false\ndata_dir = {:?}", disk.path()))
        .tables(
            &format!("[[sources]]\nname = \"full\"\nkind = \"documents\"\npath = {docs:?}\n")
                .replace("\"full\"", "\"disk\""),
        )
        .start();
    assert_eq!(search_ids(&server, "beans"), ["disk:beans.md"]);
    let rows: String = (0..100_000u64)
        .map(|n| {
            format!("{{\"id\":\"r{n}\",\"text\":\"unlike rows {} {} {}\"}}\n", n * 7919, n * 104_729, n * 1_299_709)
        })
        .collect();
    fs::write(docs.join("many.jsonl"), rows).expect("written");
    let run = index(&server);
    let told = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(!run.status.success());
    assert!(told.contains("the disk is full") && told.contains("the previous index keeps serving"), "{told}");
    assert_eq!(search_ids(&server, "beans"), ["disk:beans.md"]);
    fs::remove_file(docs.join("many.jsonl")).expect("removed");
    fs::write(docs.join("more.md"), "after the flood").expect("written");
    assert!(index(&server).status.success(), "with room again it goes on");
    wait_for("the new index", || search_ids(&server, "flood") == ["disk:more.md"]);
}

/// A small file system of its own, which needs root.
pub struct Tmpfs {
    pub parent: tempfile::TempDir,
}

impl Tmpfs {
    pub fn mount(size: &str) -> Self {
        let parent = tempfile::tempdir().expect("a folder");
        let disk = Self { parent };
        fs::create_dir_all(disk.path()).expect("a folder");
        let mut mount = as_root("mount");
        let done = mount
            .args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"])
            .arg(disk.path())
            .status()
            .expect("mount");
        assert!(done.success(), "a tmpfs could not be mounted: run the tests as root or with sudo");
        disk
    }

    pub fn path(&self) -> std::path::PathBuf {
        self.parent.path().join("disk")
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        drop(as_root("umount").arg("-l").arg(self.path()).status());
    }
}

fn as_root(program: &str) -> Command {
    let is_root = fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0);
    if is_root {
        return Command::new(program);
    }
    let mut sudo = Command::new("sudo");
    sudo.args(["-n", program]);
    sudo
}

#[test]
fn unreadable_file_keeps_last_indexed_state() {
    let server = TestServer::builder().documents(&sample()).server("watch = false").start();
    let file = server.dir.path().join("docs/compost.txt");
    assert_eq!(search_ids(&server, "compost"), ["docs:compost.txt"]);
    set_mode(&file, 0o000);
    let run = as_nobody(server.dir.path(), &["index", "--config", server.config().to_str().expect("UTF-8")]);
    let told = String::from_utf8_lossy(&run.stdout).into_owned();
    assert!(
        told.contains("compost.txt: cannot be opened: Permission denied"),
        "{told}{}",
        String::from_utf8_lossy(&run.stderr)
    );
    assert!(told.contains("its earlier contents are still served"), "{told}");
    assert_eq!(search_ids(&server, "compost"), ["docs:compost.txt"]);
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

/// Root may read everything, so unreadable files are tested as another user.
fn as_nobody(dir: &Path, args: &[&str]) -> std::process::Output {
    let is_root = fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0);
    if !is_root {
        return Command::new(binary()).args(args).output().expect("ran");
    }
    // The binary may be below a folder that only root may enter.
    let copy = dir.join("tribune");
    fs::copy(binary(), &copy).expect("copied");
    let owned = Command::new("chown").args(["-R", "65534:65534"]).arg(dir).status().expect("chown");
    assert!(owned.success());
    set_mode(dir, 0o755);
    let mut run = Command::new("setpriv");
    run.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy).args(args);
    run.output().expect("setpriv, from util-linux")
}
