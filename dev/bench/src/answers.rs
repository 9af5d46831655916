//! The answers that the peers give: one that Tribune gave before the run, or a prepared one.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    http::Connection,
    load::Check,
    process::Server,
    protocol::{self, TOOL, Workload},
    words::{Rng, Vocabulary},
};

/// One answer from the wire.
#[derive(Clone, Serialize, Deserialize)]
pub struct Answer {
    pub content_type: String,
    pub body: String,
}

impl Answer {
    /// The JSON-RPC message, also from an SSE event.
    pub fn message(&self) -> Result<Value> {
        let json = if self.content_type.starts_with("text/event-stream") {
            self.body
                .lines()
                .filter_map(|line| line.strip_prefix("data:"))
                .map(str::trim)
                .rfind(|data| data.starts_with('{'))
                .context("an event stream without a message")?
        } else {
            &self.body
        };
        serde_json::from_str(json).context("the answer is not JSON")
    }

    /// The `result` member, which the peers put into their own messages.
    pub fn result(&self) -> Result<Value> {
        let mut message = self.message()?;
        message.get_mut("result").map(Value::take).context("an answer without a result")
    }
}

/// The answers to both workloads.
#[derive(Clone, Serialize, Deserialize)]
pub struct Answers {
    pub list: Answer,
    pub search: Answer,
    /// Their origin, for the report.
    pub origin: String,
}

impl Answers {
    pub fn of(&self, workload: Workload) -> &Answer {
        match workload {
            Workload::ToolsList => &self.list,
            Workload::Search | Workload::NewSearch => &self.search,
        }
    }

    pub fn save(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string(self).context("serialise the answers")?;
        fs::write(path, text).with_context(|| format!("write {}", path.display()))
    }

    pub fn load(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
        serde_json::from_str(&text).with_context(|| format!("parse {}", path.display()))
    }

    /// Asks a running Tribune. Of the answers to the queries the one of median
    /// size is kept: a peer that always gives it writes about as many bytes.
    pub async fn capture(tribune: &Server, queries: &[String]) -> Result<Self> {
        let mut connection = Connection::open(tribune.addr).await?;
        let list = ask(&mut connection, &protocol::list_request(tribune.addr)).await?;
        let mut found = Vec::with_capacity(queries.len());
        for (index, query) in queries.iter().enumerate() {
            let request = protocol::search_request(tribune.addr, index + 1, query);
            let answer = ask(&mut connection, &request).await;
            found.push(answer.with_context(|| format!("query {query:?}"))?);
        }
        found.sort_by_key(|answer| answer.body.len());
        let size = |index: usize| found.get(index).map_or(0, |answer| answer.body.len());
        let middle = found.len() / 2;
        let origin = format!(
            "captured from tribune; of {} search answers ({} to {} bytes) the peers \
             always give the one of median size ({} bytes)",
            found.len(),
            size(0),
            size(found.len().saturating_sub(1)),
            size(middle),
        );
        let search = found.into_iter().nth(middle).context("no queries")?;
        Ok(Self { list, search, origin })
    }

    /// The stand-in: a search answer of about 3.3 kB and a list of one tool.
    pub fn prepared() -> Self {
        Self {
            list: prepared(&list_result()),
            search: prepared(&search_result()),
            origin: "no tribune binary: prepared answer".to_owned(),
        }
    }
}

async fn ask(connection: &mut Connection, request: &[u8]) -> Result<Answer> {
    let response = connection.exchange(request).await?;
    Check::knowing(response.body).check(&response)?;
    let answer = Answer {
        content_type: response.header("content-type").context("an answer without Content-Type")?,
        body: String::from_utf8(response.body.to_vec()).context("the answer is not UTF-8")?,
    };
    // The load generator only searches for words; here the message is parsed once.
    ensure!(answer.message()?.get("error").is_none(), "an error: {}", answer.body);
    answer.result()?;
    Ok(answer)
}

fn prepared(result: &Value) -> Answer {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "result": result });
    Answer { content_type: "application/json".to_owned(), body: message.to_string() }
}

fn list_result() -> Value {
    let hit = json!({
        "type": "object",
        "properties": {
            "id": { "type": "string" },
            "title": { "type": "string" },
            "snippet": { "type": "string" },
            "score": { "type": "number" },
        },
        "required": ["id", "title", "snippet", "score"],
    });
    json!({
        "resultType": "complete",
        "ttlMs": 60_000,
        "cacheScope": "public",
        "tools": [{
            "name": TOOL,
            "title": "Search the notes",
            "description": "Finds the notes that match the words of a query, best first, \
                            with a short passage from each.",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "query": { "type": "string", "description": "Words to look for." },
                    "limit": { "type": "integer", "minimum": 1, "maximum": 50, "default": 10 },
                },
                "required": ["query"],
            },
            "outputSchema": {
                "type": "object",
                "properties": { "results": { "type": "array", "items": hit } },
                "required": ["results"],
            },
            "annotations": { "readOnlyHint": true, "openWorldHint": false },
        }],
    })
}

fn search_result() -> Value {
    let mut rng = Rng::new(2026);
    let vocabulary = Vocabulary::new(&mut rng, 2_000);
    let words = |rng: &mut Rng, count: usize| -> String {
        let drawn: Vec<&str> = (0..count).map(|_| vocabulary.draw(rng)).collect();
        drawn.join(" ")
    };
    let hits: Vec<Value> = (0..8)
        .map(|rank| {
            json!({
                "id": format!("notes/note-{:03}.md", rng.below(200) + 1),
                "title": words(&mut rng, 3),
                "snippet": words(&mut rng, 16),
                "score": 12.5 - f64::from(rank) * 0.75,
            })
        })
        .collect();
    let structured = json!({ "results": hits });
    json!({
        "resultType": "complete",
        "content": [{ "type": "text", "text": structured.to_string() }],
        "structuredContent": structured,
        "isError": false,
    })
}
