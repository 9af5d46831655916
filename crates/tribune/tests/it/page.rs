//! The start page in a real browser. The checks are in `tests/page`.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::clients::{node, run};
use crate::https::Secured;
use crate::model::{Model, ModelRequest, Reply, calls, says};
use crate::oauth;
use crate::oauth::providers::{Provider, signs_in_at};
use crate::people::token;
use crate::support::{TestServer, free_port, root, sample};

/// The folder for screenshots.
pub fn screenshots(name: &str) -> PathBuf {
    let folder = root().join("target/screenshots").join(name);
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

fn script_of(name: &str, args: &[&str]) -> Command {
    let mut command = Command::new(node());
    command.arg(root().join("tests/page").join(name)).args(args);
    command
}

pub fn check(script: &str, args: &[&str]) {
    let ended = run(&mut script_of(script, args));
    assert_eq!(ended.code, Some(0), "{script}:\n{}", ended.output);
}

/// The model that `tests/page/chat.spec.mjs` describes.
fn script(asked: &ModelRequest, breakdowns: &Mutex<usize>) -> Reply {
    let question = asked.question().to_lowercase();
    let results = asked.results();
    let tomato = || -> Value {
        let listed: Value = serde_json::from_str(results[0]).unwrap_or_default();
        let tasks = listed["tasks"].as_array().cloned().unwrap_or_default();
        let task = tasks.iter().find(|task| task["title"] == "Water the tomatoes");
        json!({"task_id": task.map(|task| task["id"].clone())})
    };
    let is = |words: &str| question.contains(words);
    if question.starts_with("yes: ") || question.starts_with("no: ") {
        return says(if question.starts_with("yes") { "It is deleted." } else { "It stays." });
    }
    if is("water the tomatoes") {
        return match results.len() {
            0 => calls("add_task", &json!({"title": "Water the tomatoes"})),
            _ => says("Done: **Water the tomatoes** is on your list."),
        };
    }
    if is("delete the tomato") {
        return match results.len() {
            0 => calls("list_tasks", &json!({"status": "all"})),
            _ => calls("delete_task", &tomato()),
        };
    }
    if is("find beans") {
        return match results.len() {
            0 => calls("search", &json!({"query": "beans"})),
            _ => says("Beans are sown in *April*."),
        };
    }
    if is("break down") {
        // A turn tries three times, and every view fails once.
        let mut count = breakdowns.lock().expect("the lock");
        *count += 1;
        return if (*count).is_multiple_of(4) { says("Here I am again.") } else { Reply::Fails(500) };
    }
    if is("show me html") {
        return says(HOSTILE);
    }
    if is("long story") {
        let paragraphs = (1..=40).map(|number| format!("Paragraph {number} of a long story.\n\n"));
        return Reply::HeldAfter(3, paragraphs.collect());
    }
    says("I heard you.")
}

const HOSTILE: &str = "<img src=x onerror=\"window.pwned=1\"><script>window.pwned=1</script>\n\n\
    [x](javascript:window.pwned=1) and [y](data:text/html,hi) and ![p](https://evil.example/p.png)\n\n\
    **bold [z](JaVaScRiPt:window.pwned=1)** <a href=\"javascript:window.pwned=1\">a</a>";

#[test]
fn browser_holds_a_whole_conversation() {
    let breakdowns = Mutex::new(0);
    let model = Model::start(move |asked| script(asked, &breakdowns));
    let server = TestServer::builder().documents(&sample()).tables(&model.table()).start();
    let folder = screenshots("chat");
    check("chat.spec.mjs", &[&server.url, &folder.display().to_string(), &model.url, &server.sign_in]);
}

#[test]
fn browser_sign_in_reports_missing_model() {
    let model = Model::start(|_| says("I heard you."));
    let closed =
        TestServer::builder().documents(&sample()).tables(&format!("{}[auth]\nrequired = true", model.table())).start();
    let without_model = TestServer::builder().documents(&sample()).tables("[store]").start();
    let folder = screenshots("states");
    let token = token(&closed, "ann");
    let folder = folder.display().to_string();
    check("states.spec.mjs", &[&folder, &closed.url, &token, "ann", &without_model.url, &without_model.sign_in]);
}

#[test]
fn browser_signs_in_and_decides() {
    let port = free_port();
    let provider = Provider::start(port);
    let server = signs_in_at(&provider, port, "");
    oauth::add_user(&server, "ann", &[]);
    let folder = screenshots("sign-in").display().to_string();
    check("sign-in.spec.mjs", &[&folder, &server.url, "ann", oauth::PASSWORD, "zoe"]);
}

/// Cookies are bound to the host there.
fn signs_in_over_https(path: &str) {
    let site = Secured::start(path);
    oauth::add_user(&site.tribune, "ann", &[]);
    let folder = screenshots("sign-in-https").display().to_string();
    let mut command = script_of("sign-in.spec.mjs", &[&folder, &site.public, "ann", oauth::PASSWORD]);
    let ended = run(command.env("NODE_EXTRA_CA_CERTS", &site.certified.authority));
    assert_eq!(ended.code, Some(0), "{}", ended.output);
}

#[test]
fn browser_signs_in_over_https() {
    signs_in_over_https("");
}

#[test]
fn browser_signs_in_over_https_below_a_path() {
    signs_in_over_https("/tribune");
}
