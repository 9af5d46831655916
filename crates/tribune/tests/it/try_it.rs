//! `/try`: every tool by form and address, changes only after a confirmation, and only what the caller may see.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::exchange::Simulator;
use crate::people::{Person, token};
use crate::support::{Answer, TestServer, sample, text};

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
const SPEECH: &str = "---\nspeech_id: one\ntitle: On rail\nspeaker: Ann Other\nparty: ALP\nchamber: Senate\ndate: 2024-05-28\n---\nTrains.\n";
const ADMIN: &str = "a-long-enough-administrators-token-0123456789";
const HTML: (&str, &str) = ("accept", "text/html");

fn with_tasks() -> TestServer {
    TestServer::builder().documents(&sample()).tables("[store]").start()
}

/// Submits a form like a browser on a page of the server: with `cookie`, or else as the local user.
fn send(server: &TestServer, path: &str, cookie: Option<&str>, body: &str) -> Answer {
    let (authorization, secret) = server.local_header();
    let who = cookie.map_or((authorization, secret.as_str()), |cookie| ("cookie", cookie));
    let headers = [FORM, HTML, ("origin", server.url.as_str()), ("sec-fetch-site", "same-origin"), who];
    server.post(path, &headers, body)
}

/// Opens a page as the local user.
fn open(server: &TestServer, path: &str) -> Answer {
    open_with(server, path, server.local_header())
}

fn open_with(server: &TestServer, path: &str, (authorization, secret): (&str, String)) -> Answer {
    let page = server.get(path, &[HTML, (authorization, &secret)]);
    assert_eq!(page.status, 200, "{path}: {}", page.body);
    page
}

/// The visible text of the element with this id.
fn element(page: &Answer, id: &str) -> Option<String> {
    let (_, from) = page.body.split_once(&format!(" id=\"{id}\""))?;
    let (_, content) = from.split_once('>')?;
    let (content, _) = content.split_once("</")?;
    // Browsers drop a leading line break.
    Some(unescaped(content.strip_prefix('\n').unwrap_or(content)))
}

fn unescaped(html: &str) -> String {
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#x27;", "'"), ("&#x2f;", "/"), ("&amp;", "&")]
        .iter()
        .fold(html.to_owned(), |text, (entity, character)| text.replace(entity, character))
}

fn text_of(page: &Answer) -> String {
    element(page, "text-content").unwrap_or_else(|| panic!("no answer: {}", page.body))
}

fn raw(page: &Answer) -> Value {
    let raw = element(page, "raw-content").unwrap_or_else(|| panic!("no answer: {}", page.body));
    serde_json::from_str(&raw).unwrap_or_else(|error| panic!("{error}: {raw}"))
}

/// The result of the shell command that a page prints.
fn run_curl(page: &Answer, token: Option<&str>) -> Value {
    let mut command = element(page, "curl").unwrap_or_else(|| panic!("no command: {}", page.body));
    if let Some(token) = token {
        command = command.replace("Bearer TOKEN", &format!("Bearer {token}"));
    }
    let output = Command::new("sh").arg("-c").arg(&command).output().expect("a shell");
    assert!(output.status.success(), "{command}\n{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {command}"))
}

#[test]
fn every_tool_has_a_try_page() {
    let simulator = Simulator::start(&["--seed", "5"]);
    let server = TestServer::builder()
        .documents(&sample())
        .documents(&[("../speeches/one.md", SPEECH)])
        .tables(&format!(
            "[store]\n[[sources]]\nname = \"hansard\"\nkind = \"speeches\"\npath = \"speeches\"\n[market]\nrest_url = \"{}\"\nsymbols = [\"BTCUSDT\"]",
            simulator.url
        ))
        .start();
    let list = open(&server, "/try");
    let mut tried = 0;
    for profile in ["default", "research", "full", "docs", "hansard", "tasks", "market", "reports"] {
        assert!(unescaped(&list.body).contains(&format!("href=\"/try/{profile}\"")), "{profile}");
        let (authorization, secret) = server.local_header();
        let who = [(authorization, secret.as_str())];
        let tools = server.modern_with(&format!("/mcp/{profile}"), "tools/list", json!({}), &who).json();
        let tools = tools["result"]["tools"].as_array().expect("tools").clone();
        assert!(!tools.is_empty(), "{profile}");
        let page = unescaped(&open(&server, &format!("/try/{profile}")).body);
        for tool in tools {
            let path = format!("/try/{profile}/{}", text(&tool["name"]));
            assert!(page.contains(&format!("href=\"{path}\"")), "{path}");
            let page = open(&server, &path);
            let shown = unescaped(&page.body);
            assert!(shown.contains(text(&tool["description"])), "{path}: {shown}");
            for (name, _) in tool["inputSchema"]["properties"].as_object().expect("arguments") {
                assert!(shown.contains(&format!("name=\"{name}\"")), "{path}: {name}");
            }
            let word = if tool["annotations"]["readOnlyHint"] == true { "read-only" } else { "changes data" };
            assert!(shown.contains(&format!(">{word}</span>")), "{path}");
            assert!(element(&page, "text-content").is_none(), "{path} was run");
            tried += 1;
        }
    }
    assert!(tried > 60, "{tried}");
    // None of these pages called a tool.
    assert!(!server.log().contains("tool call"), "{}", server.log());
}

#[test]
fn try_address_runs_the_call() {
    let server = with_tasks();
    let page = open(&server, "/try/default/search?query=runner+beans&limit=1");
    let wire = server.modern(
        "/mcp",
        "tools/call",
        json!({"name": "search", "arguments": {"query": "runner beans", "limit": 1}}),
    );
    assert_eq!(raw(&page), wire.json());
    assert_eq!(text_of(&page), text(&wire.json()["result"]["content"][0]["text"]));
    assert!(page.body.contains(">ok</span>") && page.body.contains(" ms · "), "{}", page.body);
    assert!(page.body.contains("value=\"runner beans\""), "the form is filled: {}", page.body);
    assert!(unescaped(&page.body).contains("<a href=\"/data/docs:beans.md\">Runner beans</a>"), "{}", page.body);
    let link = element(&page, "link").expect("a link");
    assert_eq!(link, format!("{}/try/default/search?query=runner%20beans&limit=1", server.url));
    assert_eq!(raw(&server.get(link.strip_prefix(&server.url).expect("ours"), &[])), wire.json());

    // All arguments at once, under an alias, and with empty fields.
    let as_json = open(&server, "/try/default/search?json=%7B%22query%22%3A%22runner+beans%22%2C%22limit%22%3A1%7D");
    assert_eq!(raw(&as_json), wire.json());
    let padded = open(&server, "/try/default/search?query=runner+beans&limit=1&extra=");
    assert_eq!(raw(&padded), wire.json());
    assert_eq!(element(&padded, "link"), Some(link));
    let nothing = open(&server, "/try/default/list_tasks?run=1");
    assert_eq!(raw(&nothing)["result"]["structuredContent"]["tasks"], json!([]));

    // The tool's error is shown with the submitted values.
    let wrong = open(&server, "/try/default/search?query=beans&limit=lots");
    assert!(text_of(&wrong).contains("`limit` has the wrong type"), "{}", wrong.body);
    assert!(wrong.body.contains(">error</span>") && wrong.body.contains("value=\"lots\""), "{}", wrong.body);
    let missing = open(&server, "/try/default/search?query=&limit=");
    assert!(text_of(&missing).contains("the argument `query` is missing"), "{}", missing.body);
    let broken = server.get("/try/default/search?json=%7B", &[HTML]);
    assert_eq!(broken.status, 400);
    assert!(broken.body.contains("Not a JSON object"), "{}", broken.body);
}

#[test]
fn try_answers_are_private_to_caller() {
    let server = with_tasks();
    for path in ["/try", "/try/default", "/try/default/search?query=zeppelins"] {
        let page = open(&server, path);
        assert_eq!(page.header("cache-control"), "private, no-store", "{path}");
        assert_eq!(page.header("referrer-policy"), "same-origin", "{path}");
        let policy = page.header("content-security-policy");
        assert!(policy.contains("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(policy.contains("require-trusted-types-for 'script'; trusted-types 'none'"), "{policy}");
        assert!(!page.body.contains("style=\"") && !page.body.contains("<script>"), "{path}");
    }
    assert!(!server.log().contains("zeppelins"), "{}", server.log());
}

#[test]
fn changing_tool_asks_before_running() {
    let server = with_tasks();
    let me = Person::local(&server);
    let path = "/try/default/add_task";
    // An address fills the form in.
    let filled = open(&server, &format!("{path}?title=Mow+the+lawn&run=1&confirm=yes"));
    assert!(filled.body.contains("value=\"Mow the lawn\"") && element(&filled, "text-content").is_none());
    // The form asks for confirmation.
    let asked = send(&server, path, None, "title=Mow+the+lawn&priority=high&tags=a%0D%0Ab&category=");
    assert_eq!(asked.status, 200);
    for said in ["Run add_task?", "This changes data", "Mow the lawn", "the user of this machine"] {
        assert!(asked.body.contains(said), "{said}: {}", asked.body);
    }
    assert!(asked.body.contains("name=\"confirm\" value=\"yes\""), "{}", asked.body);
    assert!(!asked.body.contains("cannot be undone"));
    assert_eq!(me.titles(), Vec::<String>::new());
    // Only an explicit yes counts.
    send(&server, path, None, "title=Mow+the+lawn&confirm=");
    send(&server, path, None, "title=Mow+the+lawn&confirm=no");
    assert_eq!(me.titles(), Vec::<String>::new());
    let done = send(&server, path, None, "title=Mow+the+lawn&priority=high&tags=a%0D%0Ab&confirm=yes");
    let task = &raw(&done)["result"]["structuredContent"];
    assert_eq!(
        (&task["title"], &task["priority"], &task["tags"]),
        (&json!("Mow the lawn"), &json!("high"), &json!(["a", "b"]))
    );
    assert_eq!(me.titles(), ["Mow the lawn"]);
    // JSON arguments need confirmation too.
    let id = text(&task["id"]);
    let asked = send(&server, "/try/tasks/delete_task", None, &format!("json=%7B%22task_id%22%3A%22{id}%22%7D"));
    assert!(asked.body.contains("and cannot be undone") && asked.body.contains(id), "{}", asked.body);
    assert_eq!(me.titles(), ["Mow the lawn"]);
    send(&server, "/try/tasks/delete_task", None, &format!("task_id={id}&confirm=yes"));
    assert_eq!(me.titles(), Vec::<String>::new());
}

#[test]
fn foreign_page_cannot_change_anything() {
    let server = TestServer::builder()
        .documents(&sample())
        .server("allowed_origins = [\"https://partner.example\"]")
        .tables("[store]")
        .start();
    let secret = token(&server, "ann");
    let signed_in = server.post("/session", &[], &json!({"token": secret}).to_string());
    let cookie = signed_in.header("set-cookie").split(';').next().expect("a cookie").to_owned();
    let path = "/try/default/add_task";
    let body = "title=Mow+the+lawn&confirm=yes";
    let own = ("origin", server.url.as_str());
    for headers in [
        vec![("origin", "https://evil.example")],
        // An allowed origin may call with its own token, but not with a reader's cookie.
        vec![("origin", "https://partner.example")],
        vec![("origin", "http://localhost:3000")],
        vec![("origin", "null")],
        vec![own, ("sec-fetch-site", "cross-site")],
        vec![own, ("sec-fetch-site", "same-site")],
        vec![("sec-fetch-site", "cross-site")],
        vec![],
    ] {
        for who in [vec![], vec![("cookie", cookie.as_str())]] {
            let all: Vec<_> = headers.iter().chain(&who).copied().chain([FORM, HTML]).collect();
            let refused = server.post(path, &all, body);
            // A foreign page is anonymous, so the tool does not exist for it.
            let is_nobody = who.is_empty() && refused.status == 404;
            assert!(refused.status == 403 || is_nobody, "{headers:?}: {}", refused.body);
        }
    }
    assert_eq!(Person::local(&server).titles(), Vec::<String>::new());
    let ann = Person::with_token(&server, &secret);
    assert_eq!(ann.titles(), Vec::<String>::new());
    // Embedded in another page it runs nothing; opened as a link it does.
    let search = "/try/default/search?query=beans";
    let embedded = server.get(search, &[("sec-fetch-site", "cross-site"), ("sec-fetch-dest", "image")]);
    assert_eq!((embedded.status, element(&embedded, "text-content")), (403, None));
    let opened = server.get(search, &[("sec-fetch-site", "cross-site"), ("sec-fetch-dest", "document")]);
    text_of(&opened);
    // Her own page with her cookie acts as her.
    let done = send(&server, path, Some(&cookie), body);
    assert_eq!(done.status, 200, "{}", done.body);
    assert_eq!(ann.titles(), ["Mow the lawn"]);
    assert_eq!(Person::local(&server).titles(), Vec::<String>::new());
}

#[test]
fn try_page_uses_callers_identity() {
    let server = with_tasks();
    Person::new(&server, "ann").add("Mow the lawn");
    let bob = format!("Bearer {}", token(&server, "bob"));
    let bobs = server.get("/try/default/list_tasks?run=1", &[("authorization", &bob), HTML]);
    assert_eq!(raw(&bobs)["result"]["structuredContent"]["tasks"], json!([]));
    assert!(!bobs.body.contains("Mow the lawn"));
    // Anonymous callers neither see nor use tools that need a user.
    let stranger = [HTML];
    for path in ["/try", "/try/default"] {
        let page = server.get(path, &stranger);
        assert!(page.body.contains("/find_related") || page.body.contains("find_related"), "{}", page.body);
        assert!(!page.body.contains("add_task"), "{}", page.body);
    }
    let tool = server.get("/try/default/add_task", &stranger);
    assert_eq!(tool.status, 404);
    assert!(tool.body.contains("sign in on the start page"), "{}", tool.body);
    let origin = [("origin", server.url.as_str()), FORM, HTML];
    let sent = server.post("/try/default/add_task", &origin, "title=x&confirm=yes");
    assert_eq!(sent.status, 404, "{}", sent.body);
    let wrong = server.get("/try/default/search?query=x", &[("authorization", "Bearer nonsense"), HTML]);
    assert_eq!(wrong.status, 401);

    let closed = TestServer::builder().documents(&sample()).tables("[auth]\nrequired = true").start();
    for path in ["/try", "/try/default", "/try/default/search?query=beans"] {
        let page = closed.get(path, &[HTML]);
        assert_eq!(page.status, 401, "{path}");
        assert!(!page.body.contains("Runner beans"), "{path}");
    }
}

#[test]
fn admin_tools_need_admin_token() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(folder.path().join("held")).expect("a folder");
    fs::create_dir_all(folder.path().join("incoming")).expect("a folder");
    fs::write(folder.path().join("incoming/one.md"), SPEECH).expect("a speech");
    fs::write(folder.path().join("token"), ADMIN).expect("a token");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let server = TestServer::builder()
        .documents(&sample())
        .server(&format!("admin_token = \"file:{}\"", path("token")))
        .tables(&format!(
            "[store]\n[[sources]]\nname = \"hansard\"\nkind = \"speeches\"\npath = {:?}\ningest_dir = {:?}\n",
            path("held"),
            path("incoming")
        ))
        .start();
    let ann = format!("Bearer {}", token(&server, "ann"));
    for who in [vec![HTML], vec![HTML, ("authorization", ann.as_str())]] {
        assert!(!server.get("/try", &who).body.contains("ingest_"));
        for path in ["/try/admin", "/try/admin/ingest_hansard_directory"] {
            let refused = server.get(path, &who);
            assert_eq!(refused.status, 403, "{}", refused.body);
            assert!(refused.body.contains("server.admin_token"), "{}", refused.body);
            assert!(!refused.body.contains("ingest_"), "{}", refused.body);
        }
    }
    let bearer = format!("Bearer {ADMIN}");
    let admin = ("authorization", bearer.as_str());
    let page = server.get("/try/admin/ingest_hansard_directory", &[HTML, admin]);
    assert_eq!(page.status, 200, "{}", page.body);
    assert!(unescaped(&page.body).contains(&format!("{}/mcp/admin", server.url)));
    let own = [FORM, HTML, ("origin", server.url.as_str()), admin];
    let done = server.post("/try/admin/ingest_hansard_directory", &own, "confirm=yes");
    assert_eq!(raw(&done)["result"]["isError"], false, "{}", done.body);
    assert!(!done.body.contains(ADMIN), "a token is never printed");
}

#[test]
fn shell_command_matches_try_page() {
    let server = with_tasks();
    let query = "it's%20%22odd%22%20%24(id)%20%60id%60%20%5C%20%21%20%C3%A9%0Abeans";
    let page = open(&server, &format!("/try/research/search?query={query}&limit=3"));
    assert_eq!(run_curl(&page, None), raw(&page));
    let wrong = open(&server, "/try/default/fetch?id=docs:nothing");
    assert_eq!(run_curl(&wrong, None), raw(&wrong));
    // A change by a user whose token the page does not show.
    let secret = token(&server, "ann");
    let bearer = format!("Bearer {secret}");
    let page = server.get("/try/default/add_task?title=Ann%27s", &[("authorization", &bearer), HTML]);
    assert!(!page.body.contains(&secret));
    assert_eq!(run_curl(&page, Some(&secret))["result"]["structuredContent"]["title"], "Ann's");
    assert_eq!(Person::with_token(&server, &secret).titles(), ["Ann's"]);
}

#[test]
fn hostile_arguments_and_answers_stay_text() {
    let server = with_tasks();
    let hostile = "</textarea></pre><script>alert(1)</script><img src=x onerror=alert(1)>\"'";
    let escaped =
        "%3C/textarea%3E%3C/pre%3E%3Cscript%3Ealert(1)%3C/script%3E%3Cimg%20src=x%20onerror=alert(1)%3E%22%27";
    Person::local(&server).add(hostile);
    let asked = send(&server, "/try/default/add_task", None, &format!("title={escaped}&description={escaped}"));
    for page in [
        open(&server, &format!("/try/default/search?query={escaped}")),
        open(&server, &format!("/try/default/search?query=x&{escaped}={escaped}")),
        open(
            &server,
            &format!("/try/default/search?json=%7B%22query%22:%22%3Cscript%3E%22,%22{}%22:1%7D", "%3Cscript%3E"),
        ),
        open(&server, &format!("/try/default/add_task?title={escaped}&description={escaped}&tags={escaped}")),
        open(&server, "/try/default/list_tasks?run=1"),
        server.get(&format!("/try/{}", escaped.replace('/', "%2F")), &[HTML]),
        server.get(&format!("/try/default/{}", escaped.replace('/', "%2F")), &[HTML]),
        asked,
    ] {
        assert!(!page.body.contains("<script>") && !page.body.contains("<img"), "{}", page.body);
        assert!(page.body.contains("script&gt;"), "it is shown: {}", page.body);
    }
}

#[test]
fn unknown_tool_lists_known_ones() {
    let server = with_tasks();
    let tool = server.get("/try/default/serch?query=x", &[HTML]);
    assert_eq!(tool.status, 404);
    assert!(unescaped(&tool.body).contains("Did you mean <a href=\"/try/default/search\">"), "{}", tool.body);
    assert!(tool.body.contains("find_related"), "{}", tool.body);
    let profile = server.get("/try/reserch", &[HTML]);
    assert_eq!(profile.status, 404);
    assert!(unescaped(&profile.body).contains("Did you mean <a href=\"/try/research\">"), "{}", profile.body);
    let far = server.get("/try/zzz/search", &[HTML]);
    assert!(far.status == 404 && !far.body.contains("Did you mean"), "{}", far.body);
    let program = server.get("/try/default/serch", &[("accept", "application/json")]);
    assert!(program.status == 404 && text(&program.json()["error"]).contains("serch"), "{}", program.body);
}

#[test]
fn try_form_input_is_bounded() {
    let server = with_tasks();
    let long = "x".repeat(70_000);
    let sent = send(&server, "/try/default/add_task", None, &format!("title={long}&confirm=yes"));
    assert_eq!(sent.status, 413);
    assert!(sent.body.contains("longer than 64 KB"), "{}", sent.body);
    let many = server.get(&format!("/try/default/search?{}", "a=1&".repeat(300)), &[HTML]);
    assert_eq!(many.status, 400);
    assert!(many.body.contains("More than 200 parameters"), "{}", many.body);
}

#[test]
fn try_page_uses_public_address() {
    let server = TestServer::builder()
        .documents(&sample())
        .server("public_url = \"https://tribune.example.org/t\"")
        .tables("[store]\n[profiles.chosen]\ntools = [\"search\"]\nhosts = [\"tribune.example.org\"]")
        .start();
    let bearer = format!("Bearer {}", token(&server, "ann"));
    let list = unescaped(&open_with(&server, "/try", ("authorization", bearer.clone())).body);
    for part in [
        "href=\"/t/try/default/fetch\"",
        "href=\"/t/assets/try.css\"",
        // The public name serves the profile that has it in `hosts`.
        "https://tribune.example.org/t/mcp</code>",
        "https://tribune.example.org/t/mcp/default</code>",
    ] {
        assert!(list.contains(part), "{part}: {list}");
    }
    let page = open_with(&server, "/try/default/search?query=beans", ("authorization", bearer.clone()));
    let link = "https://tribune.example.org/t/try/default/search?query=beans";
    assert_eq!(element(&page, "link").as_deref(), Some(link));
    let shown = unescaped(&page.body);
    assert!(shown.contains("<a href=\"/t/data/docs:beans.md\">"), "{shown}");
    assert!(shown.contains("action=\"/t/try/default/search#answer\""), "{shown}");
    // A form from a page under the public name.
    let headers = [FORM, HTML, ("origin", "https://tribune.example.org"), ("authorization", bearer.as_str())];
    let done = server.post("/try/default/add_task", &headers, "title=x&confirm=yes");
    assert_eq!(raw(&done)["result"]["structuredContent"]["title"], "x");
}
