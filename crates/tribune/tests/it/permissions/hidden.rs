//! What a caller may not see does not exist: at every path and in every tool. Two servers differ only in documents for
//! some readers and in what belongs to ann. Who may see neither gets the same from both; ann gets it from each path and
//! tool that is said to show it, and from no other.

use std::fmt::Debug;
use std::io::{BufRead as _, BufReader};

use serde_json::{Value, json};

use super::paths::{PATHS, example};
use super::tools::TOOLS;
use super::{Proof, Secrets, Site};
use crate::model::{Model, ModelRequest, Reply, calls, says};
use crate::oauth::add_user;
use crate::people::Person;
use crate::support::{TestServer, root, text};

/// What a path or a tool shows to those who may see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shows {
    /// The same to everybody.
    Common,
    /// Documents, which may have readers.
    Documents,
    /// What belongs to the user.
    Personal,
    /// Documents and what belongs to the user.
    Both,
}

/// In every document for some readers, and in the title of a source for them.
const DOCUMENT: &str = "Zanzibar";
/// In what belongs to ann.
const PERSONAL: &str = "Timbuktu";
/// In all of it, and asked for.
const QUERY: &str = "turnip";

const EVERYTHING: Proof = Proof::Scopes(&["read", "tasks", "chat"]);
const TO_READ: Proof = Proof::Scopes(&["read"]);
const CALLERS: [Proof; 5] = [EVERYTHING, TO_READ, Proof::Reader, Proof::Other, Proof::Nothing];

/// Ids of what is hidden, as they are asked for.
#[derive(Debug, Clone, Default)]
struct Hidden {
    documents: Vec<String>,
    task: String,
    conversation: String,
}

impl Hidden {
    fn documents_and_task(&self) -> impl Iterator<Item = String> {
        self.documents.iter().cloned().chain([format!("task:{}", self.task)])
    }
}

fn server(model: &Model, is_full: bool) -> TestServer {
    let speeches = root().join("crates/tribune/demo/hansard");
    let speech = std::fs::read_to_string(speeches.join("2024-06-04-a-right-to-stay-put.md")).expect("a speech");
    let other = std::fs::read_to_string(speeches.join("2024-03-26-the-scallop-and-the-survey.md")).expect("a speech");
    let hidden_speech =
        speech.replacen("---\n", "---\nreaders: [\"group:board\"]\n", 1) + "\nThe turnips of Zanzibar.\n";
    let mut files = vec![
        ("open.md", "---\ntitle: Open harvest\ndate: 2024-01-01\nauthor: Greta\n---\nThe turnip harvest.\n"),
        ("beans.md", "---\ntitle: Runner beans\n---\nSow beans in May.\n"),
        ("../talks/open.md", other.as_str()),
    ];
    let mut vault = "";
    if is_full {
        files.extend([
            ("board/.tribune.toml", "readers = [\"group:board\"]\n"),
            (
                "board/plan.md",
                "---\ntitle: Zanzibar plan\ndate: 2031-05-05\nauthor: Greta\n---\nThe turnip merger in Zanzibar.\n",
            ),
            ("../vault/safe.md", "---\ntitle: Zanzibar safe\n---\nThe turnip safe of Zanzibar.\n"),
            ("../talks/hidden.md", hidden_speech.as_str()),
        ]);
        vault = "[[sources]]\nname = \"vault\"\nkind = \"documents\"\npath = \"vault\"\ntitle = \"Vault of Zanzibar\"\nreaders = [\"group:board\"]\n";
    }
    let server = TestServer::builder()
        .documents(&files)
        .tables(&format!(
            "{vault}[[sources]]\nname = \"hansard\"\nkind = \"speeches\"\npath = \"talks\"\n[store]\n[auth]\nissuer = \"builtin\"\n{}",
            model.table()
        ))
        .start();
    for (name, groups) in [("ann", &["board"][..]), ("rea", &["board"]), ("ben", &[])] {
        add_user(&server, name, groups);
    }
    server
}

/// Asks for what is hidden, and answers with what is found.
fn script(asked: &ModelRequest) -> Reply {
    match asked.results().last() {
        None => calls("search", &json!({"query": QUERY, "limit": 50})),
        Some(result) => says(result),
    }
}

fn hidden_things(site: &Site) -> Hidden {
    let (_, token) = site.header(EVERYTHING).expect("a token");
    let ann = Person::with(&site.server, &[("authorization", &token)]);
    let found = ann.call("search", &json!({"query": QUERY, "limit": 50}));
    let hits = found["results"].as_array().expect("results").iter();
    let documents: Vec<String> =
        hits.filter(|hit| hit.to_string().contains(DOCUMENT)).map(|hit| text(&hit["id"]).to_owned()).collect();
    assert_eq!(documents.len(), 3, "{found}");
    let chat = ann.chat("What do you know of Timbuktu?");
    Hidden {
        documents,
        task: ann.add("Fetch a turnip from Timbuktu"),
        conversation: text(&chat["conversation_id"]).to_owned(),
    }
}

/// The request for a path, with hidden ids as its parameters.
fn requests(method: &str, route: &str, hidden: &Hidden) -> Vec<(String, Value)> {
    let call = |name: &str, arguments: Value| json!({"jsonrpc": "2.0", "id": 1, "method": name, "params": arguments});
    let search = call("tools/call", json!({"name": "search", "arguments": {"query": QUERY}}));
    if method == "POST" && route.starts_with("/mcp") {
        let path = example(route);
        return vec![(path.clone(), search), (path, call("tools/list", json!({})))];
    }
    if route == "/try/{profile}/{tool}" {
        return vec![(format!("/try/research/search?query={QUERY}"), json!({})), (example(route), json!({}))];
    }
    if route == "/chat" {
        let message = format!("What about {QUERY}s?");
        let continued = json!({"message": message, "conversation_id": hidden.conversation});
        return vec![
            (route.to_owned(), json!({"message": message, "new_conversation": true})),
            (route.to_owned(), continued),
        ];
    }
    let paths: Vec<String> = if route.contains("{*id}") {
        hidden.documents_and_task().map(|id| route.replace("{*id}", &id)).collect()
    } else if route.contains("{id}") {
        [&hidden.conversation, &hidden.task].map(|id| route.replace("{id}", id)).into()
    } else {
        vec![example(route)]
    };
    let variants = ["", "?q=turnip", "?format=json", "?at=x", "?once=1"];
    // Without `once`, the overview goes on.
    let fitting = variants.iter().filter(|variant| route != "/live" || **variant == "?once=1");
    fitting.flat_map(|variant| paths.iter().map(move |path| (format!("{path}{variant}"), json!({})))).collect()
}

/// A response, without what differs between any two.
#[derive(Debug, PartialEq, Eq)]
struct Answered {
    status: u16,
    headers: String,
    body: String,
}

impl Answered {
    fn of(site: &Site, path: &str, answer: ureq::http::Response<ureq::Body>) -> Self {
        let (status, headers) = (answer.status().as_u16(), format!("{:?}", answer.headers()));
        let goes_on = ["/sse", "/live/"].iter().any(|start| path.starts_with(start));
        let lines = BufReader::new(answer.into_body().into_reader()).lines().map_while(Result::ok);
        // Of a stream that goes on, the first event.
        let body: Vec<String> = lines.take_while(|line| !goes_on || !line.is_empty()).collect();
        Self { status, headers, body: without_chance(&body.join("\n"), site.server.port) }
    }

    fn mentions(&self, word: &str) -> bool {
        self.body.contains(word) || self.headers.contains(word)
    }
}

/// A text without addresses, moments, durations, random ids, and scores, which weigh a word by all documents.
fn without_chance(body: &str, port: u16) -> String {
    let body = body.replace(&format!("127.0.0.1:{port}"), "HOST").replace(&format!("_{port}"), "_PORT");
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | ':' | '.');
    let mut plain = String::new();
    for word in body.split_inclusive(|c: char| !is_part(c)) {
        let part = word.trim_end_matches(|c: char| !is_part(c));
        let scheme = part.rfind(':').map_or("", |colon| &part[..=colon]);
        let key = &part[scheme.len()..];
        let is_id = key.len() >= 16 && key.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
        let is_moment = part.len() >= 19 && part.starts_with("20") && part.as_bytes()[10] == b'T';
        let is_fraction = part.contains('.') && part.parse::<f64>().is_ok();
        match (is_id, is_moment || is_fraction) {
            (true, _) => plain.extend([scheme, "CHANCE"]),
            (_, true) => plain.push_str("CHANCE"),
            _ => plain.push_str(part),
        }
        plain.push_str(&word[part.len()..]);
    }
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let durations: Vec<&str> = plain.split(" ms").map(|before| before.trim_end_matches(is_number)).collect();
    durations.join(" ms")
}

/// A server with everything, and one on which what is hidden never was.
struct Worlds {
    full: Site,
    bare: Site,
    hidden: Hidden,
    wrong: Vec<String>,
}

impl Worlds {
    fn new(model: &Model) -> Self {
        let site = |is_full| Site::new(server(model, is_full), Secrets::new(), &CALLERS);
        let (full, bare) = (site(true), site(false));
        let hidden = hidden_things(&full);
        Self { full, bare, hidden, wrong: Vec::new() }
    }

    /// Compares what each caller is answered to the same questions, ann last, because she may change what is hidden.
    fn compare<Q: Debug>(
        &mut self,
        what: &str,
        shows: Shows,
        questions: &[Q],
        ask: impl Fn(&Site, Proof, &Q) -> Answered,
    ) {
        let mut shown = (false, false);
        for caller in CALLERS.into_iter().rev() {
            for question in questions {
                let answer = ask(&self.full, caller, question);
                let found = (answer.mentions(DOCUMENT), answer.mentions(PERSONAL));
                let may = match caller {
                    EVERYTHING => (true, true),
                    TO_READ | Proof::Reader => (true, false),
                    _ => (false, false),
                };
                if found.0 && !may.0 || found.1 && !may.1 {
                    self.wrong.push(format!("{what} shows {caller:?} what is hidden: {question:?}: {answer:?}"));
                }
                if may == (false, false) {
                    let never = ask(&self.bare, caller, question);
                    if (answer.status, &answer.body) != (never.status, &never.body) {
                        self.wrong.push(format!(
                            "{what} tells {caller:?} that something is hidden: {question:?}:\n{answer:?}\n{never:?}"
                        ));
                    }
                }
                if caller == EVERYTHING {
                    shown = (shown.0 || found.0, shown.1 || found.1);
                }
            }
        }
        let expected =
            (matches!(shows, Shows::Documents | Shows::Both), matches!(shows, Shows::Personal | Shows::Both));
        if shown != expected {
            self.wrong.push(format!("{what} shows ann documents: {}, her own: {}; not {shows:?}", shown.0, shown.1));
        }
    }
}

#[test]
fn hidden_things_never_were_at_any_path() {
    let model = Model::start(script);
    let mut worlds = Worlds::new(&model);
    for (route, methods, _, shows) in PATHS {
        let hidden = worlds.hidden.clone();
        let questions: Vec<(&str, String, Value)> = methods
            .iter()
            .flat_map(|method| {
                requests(method, route, &hidden).into_iter().map(move |(path, body)| (*method, path, body))
            })
            .collect();
        worlds.compare(route, *shows, &questions, |site, caller, (method, path, body)| {
            Answered::of(site, path, site.send(caller, method, path, body))
        });
    }
    assert!(worlds.wrong.is_empty(), "{}", worlds.wrong.join("\n\n"));
}

/// Arguments for a tool: everything that is hidden, for each argument that it requires.
fn arguments(tool: &Value, hidden: &Hidden) -> Vec<Value> {
    let required = tool["inputSchema"]["required"].as_array().cloned().unwrap_or_default();
    let mut all = vec![json!({})];
    for name in required.iter().map(text) {
        let keys = hidden.documents.iter().filter_map(|id| id.split_once(':'));
        let values: Vec<String> = match name {
            "query" => vec![QUERY.to_owned()],
            "id" => hidden.documents_and_task().collect(),
            "task_id" => vec![hidden.task.clone()],
            "speech_id" => keys.map(|(_, key)| key.to_owned()).collect(),
            "title" => vec!["Nothing".to_owned()],
            other => panic!("say what stands for the argument {other} of {}", tool["name"]),
        };
        all = all
            .iter()
            .flat_map(|given| {
                values.iter().map(|value| {
                    let mut given = given.clone();
                    given[name] = json!(value);
                    given
                })
            })
            .collect();
    }
    if tool["name"] == "update_task" {
        all.iter_mut().for_each(|given| given["description"] = json!("With care"));
    }
    all
}

#[test]
fn hidden_things_never_were_in_any_tool() {
    let model = Model::start(script);
    let mut worlds = Worlds::new(&model);
    let mut listed = worlds.full.rpc(EVERYTHING, "/mcp/full", "tools/list", json!({}));
    let listed: Value = serde_json::from_str(&listed.body_mut().read_to_string().expect("a body")).expect("JSON");
    let listed = listed["result"]["tools"].as_array().expect("tools").clone();
    for (_, shows, tools) in TOOLS {
        for name in *tools {
            let Some(tool) = listed.iter().find(|tool| tool["name"] == *name) else {
                assert_eq!(*shows, Shows::Common, "{name} is not tried");
                continue;
            };
            let questions = arguments(tool, &worlds.hidden);
            worlds.compare(name, *shows, &questions, |site, caller, arguments| {
                let params = json!({"name": name, "arguments": arguments});
                Answered::of(site, "/mcp/full", site.rpc(caller, "/mcp/full", "tools/call", params))
            });
        }
    }
    assert!(worlds.wrong.is_empty(), "{}", worlds.wrong.join("\n\n"));
}
