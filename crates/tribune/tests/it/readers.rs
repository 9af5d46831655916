//! Documents for some readers, as everybody else does not see them: in tools, pages, descriptions and the chat.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::model::{Model, ModelRequest, Reply, calls, says};
use crate::oauth::add_user;
use crate::people::Person;
use crate::support::{Answer, TestServer, binary, root, wait_for};

/// All have the word `turnip`. What only readers may know is named so that it is found wherever it leaks.
const DOCUMENTS: [(&str, &str); 7] = [
    (
        "open.md",
        "---\ntitle: Open harvest\ndate: 2024-01-01\nauthor: Greta\n---\nThe turnip harvest is for everybody.\n",
    ),
    ("board/.tribune.toml", "readers = [\"group:board\"]\n"),
    (
        "board/plan.md",
        "---\ntitle: Zanzibar plan\ndate: 2031-05-05\nauthor: Greta\nzanzibar: deep\n---\nThe turnip merger in zanzibar.\n",
    ),
    (
        "board/secret.md",
        "---\ntitle: Zanzibar secret\nreaders: [\"user:ann\"]\nauthor: Greta\n---\nThe turnip secret of zanzibar.\n",
    ),
    (
        "rows.jsonl",
        "{\"id\":\"r1\",\"title\":\"Zanzibar row\",\"text\":\"A turnip row in zanzibar.\",\"readers\":\"user:ann\"}\n\
         {\"id\":\"r2\",\"title\":\"Open row\",\"text\":\"A turnip row for everybody.\"}\n",
    ),
    ("typo.md", "---\ntitle: Zanzibar typo\nreaders: board\n---\nThe turnip typo of zanzibar.\n"),
    ("../vault/safe.md", "---\ntitle: Zanzibar safe\n---\nThe turnip safe of zanzibar.\n"),
];
const OPEN: [&str; 2] = ["docs:open.md", "docs:r2"];
const BOARD: [&str; 2] = ["docs:board/plan.md", "vault:safe.md"];
const ANN: [&str; 2] = ["docs:board/secret.md", "docs:r1"];
const NOBODY: &str = "docs:typo.md";

fn server(more: &str) -> TestServer {
    let speeches = root().join("crates/tribune/demo/hansard").display().to_string();
    let vault = "[[sources]]\nname = \"vault\"\nkind = \"documents\"\npath = \"vault\"\ntitle = \"Vault of the board\"\nreaders = [\"group:board\"]\n";
    let speeches = format!(
        "[[sources]]\nname = \"hansard\"\nkind = \"speeches\"\npath = {speeches:?}\nreaders = [\"group:board\"]\n"
    );
    let server = TestServer::builder()
        .documents(&DOCUMENTS)
        .tables(&format!("{vault}{speeches}[store]\n[auth]\nissuer = \"builtin\"\n{more}"))
        .start();
    add_user(&server, "ann", &["board", "staff"]);
    add_user(&server, "bea", &["board"]);
    add_user(&server, "cid", &["staff"]);
    server
}

fn ids(found: &Value) -> Vec<String> {
    let results = found["results"].as_array().expect("results");
    let mut ids: Vec<String> = results.iter().map(|hit| hit["id"].as_str().expect("an id").to_owned()).collect();
    ids.sort();
    ids
}

fn found(person: &Person<'_>, query: &str) -> Vec<String> {
    let found = ids(&person.call("search", &json!({"query": query, "limit": 50})));
    found.into_iter().filter(|id| !id.starts_with("hansard:")).collect()
}

/// A page with slashes as in ids.
fn page(person: &Person<'_>, path: &str) -> Answer {
    let headers: Vec<(&str, &str)> =
        person.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let mut page = person.server.get(path, &[headers, vec![("accept", "text/html")]].concat());
    page.body = page.body.replace("&#x2f;", "/").replace("%2F", "/");
    page
}

fn everybody<'s>(server: &'s TestServer) -> Vec<(Person<'s>, Vec<&'static str>)> {
    let all = [&OPEN[..], &BOARD, &ANN, &[NOBODY]].concat();
    vec![
        (Person::stranger(server), OPEN.to_vec()),
        (Person::new(server, "cid"), OPEN.to_vec()),
        (Person::new(server, "bea"), [OPEN, BOARD].concat()),
        (Person::new(server, "ann"), [OPEN, BOARD, ANN].concat()),
        (Person::local(server), all),
    ]
}

/// An answer without the id that was asked for.
fn without_id(answer: &Answer, id: &str) -> (u16, String) {
    (answer.status, answer.body.replace(id, "ID").replace(id.split_once(':').map_or(id, |(_, key)| key), "KEY"))
}

#[test]
fn unseen_documents_do_not_exist() {
    let server = server("");
    let all = [&OPEN[..], &BOARD, &ANN, &[NOBODY]].concat();
    // Twice, because answers are cached.
    for (person, mut seen) in everybody(&server).into_iter().chain(everybody(&server)) {
        seen.sort_unstable();
        assert_eq!(found(&person, "turnip"), seen);
        let two = ids(&person.call("search", &json!({"query": "turnip for everybody", "limit": 2})));
        assert_eq!(two.len(), 2, "what is not seen takes no place");
        // Only whoever sees the field can filter by it.
        let sees_field = seen.contains(&"docs:board/plan.md");
        let filtered = found(&person, "zanzibar:deep turnip");
        assert_eq!(filtered, if sees_field { BOARD.to_vec() } else { seen.clone() });
        for id in &all {
            let never = id.split_once(':').map_or_else(String::new, |(scheme, _)| format!("{scheme}:never-there"));
            let is_seen = seen.contains(id);
            for tool in ["fetch", "find_related"] {
                let answer = person.try_call(tool, &json!({"id": id}));
                assert_eq!(answer.is_ok(), is_seen, "{tool} {id}");
                if let Err(refusal) = answer {
                    let other = person.try_call(tool, &json!({"id": never})).expect_err("never there");
                    assert_eq!(refusal.replace(id, "ID"), other.replace(&never, "ID"));
                    continue;
                }
                let answer = answer.expect("an answer").to_string();
                for hidden in all.iter().filter(|id| !seen.contains(id)) {
                    assert!(!answer.contains(hidden), "{tool} {id} names {hidden}");
                }
            }
            for path in ["/data/ID", "/data/ID?at=x", "/live/ID", "/data/ID?format=json"] {
                let get = |id: &str| page(&person, &path.replace("ID", id));
                let answer = get(id);
                if is_seen && path.starts_with("/data") {
                    assert_eq!(answer.status, 200, "{path} {id}: {}", answer.body);
                    let hidden = all.iter().filter(|id| !seen.contains(id));
                    let leaks: Vec<_> = hidden.filter(|id| answer.body.contains(**id)).collect();
                    assert!(leaks.is_empty(), "{path} {id} leads to {leaks:?}");
                    assert!(!answer.body.contains("group:board"), "{}", answer.body);
                } else {
                    assert_eq!(answer.status, 404, "{path} {id}");
                    assert_eq!(without_id(&answer, id), without_id(&get(&never), &never));
                }
            }
        }
    }
}

#[test]
fn neighbours_and_counts_are_of_seen_documents() {
    let server = server("");
    let (ann, bea, cid) = (Person::new(&server, "ann"), Person::new(&server, "bea"), Person::new(&server, "cid"));
    let more_by = |person| page(person, "/data/docs:open.md").body.matches("Zanzibar").count();
    assert!(more_by(&ann) > more_by(&bea) && more_by(&bea) > 0);
    assert_eq!(more_by(&cid), 0);
    assert!(page(&ann, "/data/docs:board/plan.md").body.contains("docs:board/secret.md"), "the next in its folder");
    assert!(!page(&bea, "/data/docs:board/plan.md").body.contains("secret"));
    assert!(page(&cid, "/").body.contains("2 documents"));
    let ready = server.readiness().body;
    assert!(ready.contains("docs") && !ready.contains("vault") && !ready.contains("hansard"), "{ready}");
}

#[test]
fn descriptions_leave_no_trace_of_unseen_sources() {
    let server = server("");
    for (person, seen) in everybody(&server) {
        let uses_vault = seen.contains(&"vault:safe.md");
        let listed = person.modern("tools/list", json!({})).body;
        assert!(listed.contains("2 documents"), "{listed}");
        // Descriptions are shared by all who may use the same sources.
        assert!(!listed.contains("2031") && !listed.to_lowercase().contains("zanzibar"), "{listed}");
        assert_eq!(listed.contains("Vault of the board"), uses_vault);
        assert_eq!(listed.contains("search_hansard_speeches"), uses_vault);
        assert!(!listed.contains("24 speeches") && !listed.contains("Liberal"), "counts and values are public ones");
        for path in ["/", "/try", "/try/default", "/live?once=1"] {
            let body = page(&person, path).body;
            assert!(!body.to_lowercase().contains("zanzibar"), "{path}: {body}");
            for name in ["Vault of the board", "vault", "hansard"] {
                assert!(uses_vault || !body.contains(name), "{path}: {name}: {body}");
            }
        }
        assert_eq!(page(&person, "/live?once=1").body.contains("Vault of the board"), uses_vault);
        let called = |tool: &str| {
            let params = json!({"name": tool, "arguments": {"query": "housing"}});
            person.modern("tools/call", params).json()
        };
        let speeches = called("search_hansard_speeches");
        if uses_vault {
            assert!(speeches["result"]["structuredContent"]["speeches"].is_array(), "{speeches}");
        } else {
            let other = called("search_never_speeches").to_string();
            assert_eq!(speeches.to_string(), other.replace("never", "hansard"));
        }
    }
}

#[test]
fn profiles_of_unseen_sources_do_not_exist() {
    let server = server("");
    for (person, seen) in everybody(&server) {
        let headers: Vec<(&str, &str)> =
            person.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let list = |name: &str| server.modern_with(&format!("/mcp/{name}"), "tools/list", json!({}), &headers);
        if seen.contains(&"vault:safe.md") {
            assert_eq!((list("vault").status, page(&person, "/try/vault").status), (200, 200));
            continue;
        }
        for answers in [[list("vault"), list("never")], [page(&person, "/sse/vault"), page(&person, "/sse/never")]] {
            let [vault, never] = answers.map(|answer| (answer.status, answer.body));
            assert_eq!(vault.0, 404);
            assert_eq!(vault, (never.0, never.1.replace("never", "vault")));
        }
        assert_eq!(page(&person, "/try/vault").status, 404);
    }
}

#[test]
fn changed_rules_are_followed_and_mistakes_close() {
    let server = server("");
    let (bea, cid) = (Person::new(&server, "bea"), Person::new(&server, "cid"));
    let plan = "docs:board/plan.md".to_owned();
    let rules = server.config().with_file_name("docs").join("board/.tribune.toml");
    let sees = |person: &Person<'_>| found(person, "turnip").contains(&plan);
    assert!(sees(&bea) && !sees(&cid));
    fs::write(&rules, "readers = [\"user:cid\"]\n").expect("written");
    wait_for("cid to see the plan", || sees(&cid));
    assert!(!sees(&bea));
    fs::write(&rules, "reader = [\"user:cid\"]\n").expect("written");
    wait_for("nobody to see the plan", || !sees(&cid));
    assert!(!sees(&bea) && sees(&Person::local(&server)));
    let check = Command::new(binary()).args(["check", "--config"]).arg(server.config()).output().expect("runs");
    let said = String::from_utf8_lossy(&check.stdout).into_owned();
    assert!(!check.status.success() && said.contains("board/.tribune.toml"), "{said}");
    let index = Command::new(binary()).args(["index", "--config"]).arg(server.config()).output().expect("runs");
    let said = String::from_utf8_lossy(&[index.stdout, index.stderr].concat()).into_owned();
    assert!(said.contains("board/.tribune.toml") && said.contains("typo.md"), "{said}");
    fs::remove_file(&rules).expect("removed");
    wait_for("everybody to see the plan", || sees(&Person::stranger(&server)));
    assert!(!found(&bea, "turnip").contains(&"docs:board/secret.md".to_owned()), "the document's own list stays");
}

#[test]
fn chat_sees_what_the_user_sees() {
    let model = Model::start(|asked: &ModelRequest| -> Reply {
        match asked.results().last() {
            None => calls("search", &json!({"query": "turnip", "limit": 50})),
            Some(result) => says(result),
        }
    });
    let server = server(&model.table());
    for (person, seen) in everybody(&server).into_iter().skip(1) {
        let answer = person.chat("What about turnips?").to_string();
        for id in [&OPEN[..], &BOARD, &ANN, &[NOBODY]].concat() {
            assert_eq!(answer.contains(id), seen.contains(&id), "{id}: {answer}");
        }
    }
}
