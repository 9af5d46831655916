//! Speeches as journalists' assistants use them: the two tools, their metadata, ingestion.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{TestServer, root, wait_for};

const TOKEN: &str = "a-token-of-more-than-sixteen-characters";

fn speeches_table(more: &str) -> String {
    let path = root().join("crates/tribune/demo/hansard");
    format!(
        "[[sources]]\nname = \"hansard\"\nkind = \"speeches\"\npath = {:?}\nembedder = \"none\"\n{more}",
        path.display().to_string()
    )
}

fn server() -> TestServer {
    TestServer::builder().tables(&speeches_table("")).start()
}

/// The result of a call, whether it succeeded or not.
fn called(server: &TestServer, tool: &str, arguments: Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    server.modern("/mcp/hansard", "tools/call", params).json()["result"].clone()
}

fn found(server: &TestServer, arguments: Value) -> Vec<Value> {
    let result = called(server, "search_hansard_speeches", arguments);
    assert_ne!(result["isError"], true, "{result}");
    result["structuredContent"]["speeches"].as_array().cloned().expect("speeches")
}

fn refused(server: &TestServer, tool: &str, arguments: Value) -> String {
    let result = called(server, tool, arguments);
    assert_eq!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().expect("text").to_owned()
}

#[test]
fn speech_tool_descriptions_match_the_data() {
    let server = server();
    let tools = server.modern("/mcp/hansard", "tools/list", json!({})).json()["result"]["tools"].clone();
    let tool = |name: &str| {
        let tools = tools.as_array().expect("tools");
        tools.iter().find(|tool| tool["name"] == name).cloned().expect("the tool")
    };
    let search = tool("search_hansard_speeches");
    let description = search["description"].as_str().expect("a description");
    let head: String = description.chars().take(500).collect();
    for part in ["24 speeches", "2024-02-13 to 2025-10-07", "Use this when", "Do not use"] {
        assert!(head.contains(part), "{part} is not in the first 500 characters: {description}");
    }
    for part in ["Limitations", "Workflow", "fetch_hansard_speech", "Prefer this tool", "Parameters"] {
        assert!(description.contains(part), "{part}: {description}");
    }
    let schema = &search["inputSchema"]["properties"];
    assert_eq!(schema["party"]["enum"], json!(["Greens", "Independent", "Labor", "Liberal", "National"]));
    assert_eq!(schema["chamber"]["enum"], json!(["House of Representatives", "Senate"]));
    assert_eq!(search["annotations"]["readOnlyHint"], true);
    assert_eq!(search["annotations"]["openWorldHint"], false);
    assert_eq!(search["annotations"]["idempotentHint"], false);
    let fetch = tool("fetch_hansard_speech");
    assert_eq!(fetch["annotations"]["idempotentHint"], true);
    assert_eq!(fetch["inputSchema"]["required"], json!(["speech_id"]));
    assert!(!tools.to_string().contains("ingest_"), "ingestion is not offered unless it is switched on");
}

#[test]
fn speech_is_found_and_fetched_exactly() {
    let server = server();
    let speeches = found(&server, json!({"query": "child care places in new estates", "limit": 3}));
    let first = &speeches[0];
    assert_eq!(first["speaker"], "Rosalind Achterberg");
    assert_eq!(first["party"], "Labor");
    assert_eq!(first["chamber"], "House of Representatives");
    assert_eq!(first["date"], "2024-02-13");
    assert_eq!(first["hansard_reference"], "House Hansard (sample), 13 February 2024, p. 17");
    let id = first["speech_id"].as_str().expect("an id");
    assert_eq!(first["chunk_id"], format!("{id}#{}", first["chunk_index"]));
    assert!(first["excerpt"].as_str().expect("an excerpt").chars().count() <= 500);
    let scores: Vec<f64> = speeches.iter().map(|s| s["relevance_score"].as_f64().expect("a score")).collect();
    assert!(scores.windows(2).all(|pair| pair[0] >= pair[1]), "{scores:?}");
    assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)), "{scores:?}");
    // The citation opens at the passage.
    let url = first["url"].as_str().expect("a url");
    let page = server.get(&url[url.find("/data/").expect("a citation")..].replace("#passage", ""), &[]);
    assert_eq!(page.status, 200);
    assert!(page.body.contains("<mark id=\"passage\">") || first["chunk_index"] == 0);

    let file = root().join("crates/tribune/demo/hansard");
    let file = fs::read_dir(file)
        .expect("the samples")
        .map(|entry| fs::read_to_string(entry.expect("entry").path()).expect("text"))
        .find(|text| text.contains(id))
        .expect("the file");
    let body = file.splitn(3, "---\n").nth(2).expect("a body").trim_start_matches('\n');
    for given in [json!({"speech_id": id}), json!({"id": format!("hansard:{id}")}), json!({"speech_id": url})] {
        let fetched = called(&server, "fetch_hansard_speech", given)["structuredContent"].clone();
        assert_eq!(fetched["full_text"], body);
        assert_eq!(fetched["electorate"], "Banksmere");
        assert_eq!(fetched["topic_tags"][0], "child care");
        assert_eq!(fetched["content_hash"].as_str().expect("a hash").len(), 64);
        assert_eq!(fetched["word_count"], 632);
        for key in ["parliament_no", "themes", "video", "related", "note", "bills"] {
            assert!(fetched["metadata"].get(key).is_some(), "{key}: {fetched}");
        }
    }
}

#[test]
fn speech_filters_understand_codes() {
    let server = server();
    let all = |more: Value| {
        let mut arguments = json!({"query": "the people of my electorate", "limit": 100});
        arguments.as_object_mut().expect("object").extend(more.as_object().expect("object").clone());
        found(&server, arguments)
    };
    let labor = all(json!({"party": "Labor"}));
    assert!(!labor.is_empty() && labor.iter().all(|s| s["party"] == "Labor"));
    for code in ["ALP", "alp", "Labour", "Australian Labor Party"] {
        assert_eq!(all(json!({"party": code})).len(), labor.len(), "{code}");
    }
    let senate = all(json!({"chamber": "SENATE"}));
    assert!(!senate.is_empty() && senate.iter().all(|s| s["chamber"] == "Senate"));
    let reps = all(json!({"chamber": "REPS"}));
    assert!(reps.iter().all(|s| s["chamber"] == "House of Representatives"));
    let by = all(json!({"speaker": "achter"}));
    assert!(!by.is_empty() && by.iter().all(|s| s["speaker"] == "Rosalind Achterberg"));
    let spring = all(json!({"start_date": "2024-09-01", "end_date": "2024-11-30"}));
    let dates: Vec<&str> = spring.iter().map(|s| s["date"].as_str().expect("a date")).collect();
    assert!(!dates.is_empty() && dates.iter().all(|d| ("2024-09-01"..="2024-11-30").contains(d)), "{dates:?}");
    let both = all(json!({"party": "Labor", "chamber": "Senate"}));
    assert!(both.iter().all(|s| s["party"] == "Labor" && s["chamber"] == "Senate"));
    assert!(all(json!({"speaker": "nobody of that name"})).is_empty());
    assert_eq!(all(json!({"speaker": "Hon. Achterberg, Rosalind MP"})).len(), by.len());
    // Matching the filters is not enough: the query must match too.
    assert!(found(&server, json!({"query": "zeppelins", "party": "Labor"})).is_empty());
    // A filtered search returns `limit` results if that many match.
    let few = found(&server, json!({"query": "the", "party": "Labor", "limit": labor.len()}));
    assert_eq!(few.len(), labor.len());
}

#[test]
fn wrong_speech_arguments_get_advice() {
    let server = server();
    let search = "search_hansard_speeches";
    let told = refused(&server, search, json!({"query": "water", "start_date": "2024-13-45"}));
    assert!(told.contains("start_date") && told.contains("YYYY-MM-DD"), "{told}");
    let told = refused(&server, search, json!({"query": "water", "start_date": "last June"}));
    assert!(told.contains("start_date"), "{told}");
    let told =
        refused(&server, search, json!({"query": "water", "start_date": "2025-01-01", "end_date": "2024-01-01"}));
    assert!(told.contains("start_date 2025-01-01 is after end_date 2024-01-01"), "{told}");
    let told = refused(&server, search, json!({"query": "water", "party": "Whig"}));
    assert!(told.contains("party") && told.contains("Labor"), "{told}");
    let told = refused(&server, search, json!({"query": "w"}));
    assert!(told.contains("at least 2"), "{told}");
    let told = refused(&server, search, json!({"query": "water", "limit": 101}));
    assert!(told.contains("at most 100"), "{told}");
    let told = refused(&server, "fetch_hansard_speech", json!({"speech_id": "nothing"}));
    assert!(told.starts_with("Speech not found: nothing") && told.contains(search), "{told}");
}

#[test]
fn unusual_speech_queries_answer_or_advise() {
    let server = server();
    let long = "housing ".repeat(1250);
    for query in [
        "",
        " ",
        "the of and",
        "🏠🏠",
        "\"unbalanced",
        "title:housing",
        "party:\"Labor",
        "speaker:",
        "-",
        "--",
        "((",
        "'; DROP TABLE speeches; --",
        "SELECT * FROM speeches WHERE 1=1",
        "a AND OR NOT b",
        "*",
        "?",
        "\\",
        "\u{0}x",
        "date:2024-99",
        "words:>x",
        "\u{202e}abc",
        "%s%n",
        long.as_str(),
    ] {
        for (profile, tool) in [("/mcp/hansard", "search_hansard_speeches"), ("/mcp", "search")] {
            let params = json!({"name": tool, "arguments": {"query": query}});
            let answer = server.modern(profile, "tools/call", params);
            assert_eq!(answer.status, 200, "{query:.40}: {}", answer.body);
            let result = answer.json()["result"].clone();
            let text = result["content"][0]["text"].as_str().unwrap_or_default();
            assert!(!text.is_empty(), "{query:.40}: {}", answer.body);
            if result["isError"] == true {
                assert!(text.contains("query"), "{query:.40}: {text}");
            }
        }
    }
}

#[test]
fn find_related_returns_similar_and_neighbours() {
    let server = server();
    let first = found(&server, json!({"query": "housing in the outer suburbs"})).remove(0);
    let id = format!("hansard:{}", first["speech_id"].as_str().expect("an id"));
    let related = called(&server, "find_related", json!({"id": id, "passage": 1, "limit": 3}));
    let answer = &related["structuredContent"];
    let results = answer["results"].as_array().expect("results");
    assert_eq!(results.len(), 3);
    assert!(results.iter().all(|result| result["id"] != id.as_str()));
    assert_eq!(answer["neighbours"]["previous"]["passage"], 0);
    let page = server.get(&format!("/data/{id}?passage=1"), &[]);
    assert!(page.body.contains("Previous passage") && page.body.contains("Similar documents"), "{}", page.body);
    let told = refused(&server, "find_related", json!({"id": "hansard:none"}));
    assert!(told.contains("not found"), "{told}");
}

#[test]
fn keyword_search_serves_before_vectors() {
    let table = speeches_table("").replace("embedder = \"none\"\n", "");
    let server = TestServer::builder().model().tables(&table).start();
    let first = |query: &str| found(&server, json!({"query": query})).first().map(|s| s["title"].clone());
    assert!(first("seven-eighths problem").is_some());
    // The query shares no words with the speech.
    let paraphrase = "boats queueing offshore cost growers money";
    wait_for("the vectors", || first(paraphrase).is_some_and(|title| title.to_string().contains("Port Carmody")));
    // Filters apply to vector search too.
    let labor = found(&server, json!({"query": paraphrase, "party": "Labor", "limit": 100}));
    assert!(labor.iter().all(|s| s["party"] == "Labor"));
    // An unrelated query finds nothing.
    assert_eq!(found(&server, json!({"query": "qwxz vbnmk"})), Vec::<Value>::new());
}

fn write(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    fs::write(path, text).expect("written");
}

fn speech(id: &str, text: &str) -> String {
    format!(
        "---\nspeech_id: {id}\ntitle: On {id}\nspeaker: Ann Other\nparty: ALP\nchamber: Senate\nstate: NSW\ndate: 2024-05-28\n---\n{text}\n"
    )
}

#[test]
fn only_administrators_ingest() {
    let folder = tempfile::tempdir().expect("dir");
    let incoming = folder.path().join("incoming");
    let held = folder.path().join("held");
    write(&held, "old.md", &speech("old", "Lighthouses need keepers."));
    write(&incoming, "one.md", &speech("one", "Zeppelins may land again."));
    write(&incoming, "2024/two.md", &speech("two", "Canals were dug by hand."));
    write(&incoming, "2024/same.md", &speech("same", "Lighthouses need keepers."));
    write(&incoming, "2024/bad.md", &speech("bad", "Text.").replace("2024-05-28", "2024-13-45"));
    write(folder.path(), "secret.md", &speech("secret", "Not for you."));
    #[cfg(unix)]
    std::os::unix::fs::symlink(folder.path().join("secret.md"), incoming.join("link.md")).expect("a link");
    write(folder.path(), "token", TOKEN);
    let tables = format!(
        "[[sources]]\nname = \"hansard\"\nkind = \"speeches\"\npath = {:?}\nembedder = \"none\"\ningest_dir = {:?}\n",
        held.display().to_string(),
        incoming.display().to_string()
    );
    let token = format!("admin_token = \"file:{}\"", folder.path().join("token").display());
    let server = TestServer::builder().server(&token).tables(&tables).start();

    let call = |token: Option<&str>, tool: &str, arguments: Value| {
        let body = json!({
            "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {
                "name": tool, "arguments": arguments,
                "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                          "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
                          "io.modelcontextprotocol/clientCapabilities": {}},
            },
        })
        .to_string();
        let authorization = token.map(|token| format!("Bearer {token}")).unwrap_or_default();
        let mut headers = vec![
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", tool),
        ];
        if token.is_some() {
            headers.push(("Authorization", &authorization));
        }
        server.post("/mcp/admin", &headers, &body)
    };
    for wrong in [None, Some("wrong"), Some("")] {
        let answer = call(wrong, "ingest_hansard_directory", json!({}));
        assert_eq!(answer.status, 401, "{}", answer.body);
        assert!(answer.header("www-authenticate").starts_with("Bearer"));
    }
    for profile in ["/mcp", "/mcp/full", "/mcp/hansard"] {
        let listed = server.modern(profile, "tools/list", json!({})).body;
        assert!(!listed.contains("ingest_"), "{profile}: {listed}");
    }
    let result = |answer: crate::support::Answer| answer.json()["result"].clone();
    for out in ["../secret.md", "/etc/passwd", "2024/../../secret.md", "link.md"] {
        let refused = result(call(Some(TOKEN), "ingest_hansard_file", json!({"path": out})));
        assert_eq!(refused["isError"], true, "{out}: {refused}");
        assert!(refused["content"][0]["text"].as_str().expect("text").contains("leads out"), "{refused}");
    }
    let one = result(call(Some(TOKEN), "ingest_hansard_file", json!({"path": "one.md"})));
    assert_eq!(one["structuredContent"]["succeeded"], 1, "{one}");
    let all =
        result(call(Some(TOKEN), "ingest_hansard_directory", json!({"path": "2024"})))["structuredContent"].clone();
    let counts = ["total_files", "succeeded", "skipped", "failed", "total_chunks_created"].map(|key| all[key].clone());
    assert_eq!(json!(counts), json!([3, 1, 1, 1, 1]), "{all}");
    assert!(all.to_string().contains("the same text as old") && all.to_string().contains("YYYY-MM-DD"), "{all}");
    for (query, id) in [("zeppelins", "one"), ("canals", "two")] {
        assert_eq!(found(&server, json!({"query": query}))[0]["speech_id"], id);
    }
    let ingest = |path: &str, policy: &str| {
        let arguments = json!({"path": path, "duplicates": policy});
        result(call(Some(TOKEN), "ingest_hansard_file", arguments))["structuredContent"].clone()
    };
    // The owner's own file is never replaced.
    let refused = ingest("2024/same.md", "update");
    assert_eq!(refused["failed"], 1, "{refused}");
    assert!(refused.to_string().contains("old.md"), "{refused}");
    // An indexed speech stays unless `update` is set.
    write(&incoming, "one.md", &speech("one", "Balloons may land again."));
    assert_eq!(ingest("one.md", "skip")["skipped"], 1);
    assert_eq!(ingest("one.md", "error")["failed"], 1);
    assert_eq!(found(&server, json!({"query": "zeppelins"}))[0]["speech_id"], "one");
    assert_eq!(ingest("one.md", "update")["succeeded"], 1);
    assert_eq!(found(&server, json!({"query": "balloons"}))[0]["speech_id"], "one");
    assert!(found(&server, json!({"query": "zeppelins"})).is_empty());
    // A bad file does not replace the indexed one.
    let row = r#"{"id":"row","speaker":"Ann Other","date":"2024-05-28","text":"Gondolas are slow."}"#;
    write(&incoming, "rows.jsonl", &format!("{row}\n"));
    assert_eq!(ingest("rows.jsonl", "skip")["succeeded"], 1);
    assert_eq!(ingest("rows.jsonl", "skip")["skipped"], 1);
    write(&incoming, "rows.jsonl", "{\"broken");
    assert_eq!(ingest("rows.jsonl", "update")["failed"], 1);
    assert_eq!(found(&server, json!({"query": "gondolas"}))[0]["speech_id"], "row");
}

#[test]
fn ingestion_needs_token_over_network() {
    let folder = tempfile::tempdir().expect("dir");
    let more = format!("ingest_dir = {:?}\n", folder.path().display().to_string());
    let server = TestServer::builder().tables(&speeches_table(&more)).start();
    let answer = server.modern("/mcp/admin", "tools/list", json!({}));
    assert_eq!(answer.status, 403, "{}", answer.body);
    assert!(answer.body.contains("admin_token"), "{}", answer.body);
}
