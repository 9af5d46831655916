//! The audit log: who called what, from where, with which outcome. Entries are written in the background, in batches, to
//! the store and, if configured, to a file with one JSON object a line.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::SignedDuration;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::JoinHandle;
use tribune_core::{CallContext, Clock, JsonObject, Principal, ToolOutput, ToolSpec, escape_controls};
use tribune_storage::AuditEntry;

/// Entries that wait to be written; more are lost, and counted.
const MAX_WAITING: usize = 10_000;
const MAX_BATCH: usize = 500;
/// How long a failed batch waits before it is tried again, and how often.
const RETRY_AFTER: Duration = Duration::from_secs(1);
const MAX_TRIES: usize = 30;
const MAX_IDS: usize = 50;
const MAX_TEXT_CHARS: usize = 500;

/// What is recorded, and where.
#[derive(Debug, Clone)]
pub struct AuditSettings {
    /// Whether the reads of anonymous callers are recorded too.
    pub anonymous: bool,
    /// Whether queries are recorded as text; otherwise only their digest is.
    pub queries: bool,
    pub keep: SignedDuration,
    pub file: Option<PathBuf>,
}

pub struct Audit {
    settings: AuditSettings,
    clock: Arc<dyn Clock>,
    entries: Mutex<Option<Sender<Waiting>>>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

/// An entry, and the answer whose ids are still to be added, with the name of the field that is an id in it.
struct Waiting {
    entry: AuditEntry,
    answer: Option<(String, &'static str)>,
}

impl Audit {
    /// Starts writing; must be called within a runtime.
    pub fn start(
        store: tribune_storage::Audit,
        settings: AuditSettings,
        clock: Arc<dyn Clock>,
    ) -> std::io::Result<Self> {
        let file = settings.file.as_ref();
        let file = file.map(|path| OpenOptions::new().create(true).append(true).mode(0o600).open(path)).transpose()?;
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let writer = Writer { store, file, keep: settings.keep, clock: clock.clone() };
        Ok(Self {
            settings,
            clock,
            entries: Mutex::new(Some(sender)),
            writer: Mutex::new(Some(tokio::spawn(writer.run(receiver)))),
        })
    }

    /// Writes what waits, and ends.
    pub async fn stop(&self) {
        drop(self.entries.lock().take());
        let writer = self.writer.lock().take();
        if let Some(writer) = writer {
            drop(writer.await);
        }
    }

    /// Whether a call is recorded. Anonymous reads are not, unless the operator wants them.
    pub(crate) fn wants(&self, cx: &CallContext, reads_only: bool) -> bool {
        self.settings.anonymous || !reads_only || cx.principal != Principal::Anonymous
    }

    /// Records a tool call.
    pub(crate) fn tool(&self, tool: &str, asked: Asked, cx: &CallContext, outcome: Result<&ToolOutput, &'static str>) {
        let outcome_name = outcome.err().unwrap_or("ok");
        let mut entry = self.entry(tool, outcome_name, &name(&cx.principal), cx.peer, &cx.correlation_id);
        entry.ids = asked.ids;
        entry.query = asked.text.map(|text| match self.settings.queries {
            true => cut(&text),
            false => format!("sha256:{}", data_encoding::HEXLOWER.encode(&tribune_oauth::sha256(&text)[..16])),
        });
        let answer = outcome.ok().map(|output| (output.json().to_owned(), asked.subject));
        self.send(Waiting { entry, answer });
    }

    /// Records another action, such as a sign-in, with the ids of what it was about.
    pub(crate) fn action(
        &self,
        action: &str,
        outcome: &str,
        who: &str,
        ids: &[&str],
        peer: Option<IpAddr>,
        correlation_id: &str,
    ) {
        let ids = ids.iter().map(|id| cut(id)).collect();
        let entry = AuditEntry { ids, ..self.entry(action, outcome, who, peer, correlation_id) };
        self.send(Waiting { entry, answer: None });
    }

    fn entry(&self, action: &str, outcome: &str, who: &str, peer: Option<IpAddr>, correlation_id: &str) -> AuditEntry {
        AuditEntry {
            at: self.clock.now(),
            who: cut(who),
            peer: peer.map(|peer| peer.to_string()),
            action: action.to_owned(),
            outcome: outcome.to_owned(),
            ids: Vec::new(),
            query: None,
            correlation_id: correlation_id.to_owned(),
        }
    }

    fn send(&self, waiting: Waiting) {
        let entries = self.entries.lock();
        let is_sent = entries.as_ref().is_some_and(|entries| entries.try_send(waiting).is_ok());
        drop(entries);
        if !is_sent {
            lose(1, "the audit log is not written fast enough");
        }
    }
}

/// The name of a caller in the audit log.
pub(crate) fn name(principal: &Principal) -> String {
    principal.user().map_or_else(|| "anonymous".to_owned(), |user| user.to_string())
}

fn lose(entries: usize, why: &str) {
    metrics::counter!("tribune_audit_lost_total").increment(entries as u64);
    tracing::error!(entries, why, "audit entries are lost");
}

/// What the arguments of a call ask for.
pub(crate) struct Asked {
    text: Option<String>,
    ids: Vec<String>,
    subject: &'static str,
}

impl Asked {
    pub(crate) fn new(args: &JsonObject, spec: &ToolSpec) -> Self {
        let subject = spec.display.subject.unwrap_or(ID);
        let text = |name: &str| args.get(name).and_then(Value::as_str);
        let ids = text(ID).or_else(|| text(subject));
        Self { text: text("query").map(str::to_owned), ids: ids.into_iter().map(cut).collect(), subject }
    }
}

const ID: &str = "id";

fn cut(text: &str) -> String {
    text.chars().take(MAX_TEXT_CHARS).collect()
}

/// The ids in an answer: its own, and those of the items of its lists. An item without an id has a `subject`.
fn ids_in(answer: &str, subject: &str) -> Vec<String> {
    let answer: Value = serde_json::from_str(answer).unwrap_or_default();
    let fields = answer.as_object().into_iter().flat_map(|fields| fields.values());
    let items = fields.filter_map(Value::as_array).flatten();
    let id = |object: &Value| object[ID].as_str().or_else(|| object[subject].as_str()).map(cut);
    std::iter::once(&answer).chain(items).filter_map(id).take(MAX_IDS).collect()
}

struct Writer {
    store: tribune_storage::Audit,
    file: Option<File>,
    keep: SignedDuration,
    clock: Arc<dyn Clock>,
}

impl Writer {
    async fn run(mut self, mut entries: Receiver<Waiting>) {
        let mut batch = Vec::with_capacity(MAX_BATCH);
        while entries.recv_many(&mut batch, MAX_BATCH).await > 0 {
            let entries: Vec<AuditEntry> = batch.drain(..).map(complete).collect();
            self.append_lines(&entries).await;
            self.store(entries).await;
        }
    }

    async fn append_lines(&mut self, entries: &[AuditEntry]) {
        let Some(file) = &self.file else {
            return;
        };
        let lines: String = entries.iter().map(|entry| format!("{}\n", line(entry))).collect();
        let written = file.try_clone();
        let written = tokio::task::spawn_blocking(move || written?.write_all(lines.as_bytes())).await;
        if let Err(error) = written.unwrap_or_else(|error| Err(std::io::Error::other(error))) {
            lose(entries.len(), &format!("audit.file cannot be written: {error}"));
        }
    }

    async fn store(&self, entries: Vec<AuditEntry>) {
        let keep_from = self.clock.now().checked_sub(self.keep).unwrap_or(jiff::Timestamp::MIN);
        for _ in 0..MAX_TRIES {
            match self.store.append(entries.clone(), keep_from).await {
                Ok(()) => return,
                Err(error) => tracing::warn!(%error, "the audit log cannot be stored; trying again"),
            }
            tokio::time::sleep(RETRY_AFTER).await;
        }
        lose(entries.len(), "the store does not take them");
    }
}

fn complete(waiting: Waiting) -> AuditEntry {
    let mut entry = waiting.entry;
    entry.ids.extend(waiting.answer.into_iter().flat_map(|(answer, subject)| ids_in(&answer, subject)));
    let mut seen = std::collections::HashSet::new();
    entry.ids.retain(|id| seen.insert(id.clone()));
    entry.ids.truncate(MAX_IDS);
    entry
}

/// An entry as one line of JSON.
pub fn line(entry: &AuditEntry) -> String {
    let line = json!({
        "at": entry.at,
        "who": entry.who,
        "peer": entry.peer,
        "action": entry.action,
        "outcome": entry.outcome,
        "ids": entry.ids,
        "query": entry.query,
        "correlation_id": entry.correlation_id,
    });
    // JSON itself leaves some control characters as they are.
    escape_controls(&line.to_string()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_answers_are_found() {
        for (answer, ids) in [
            (r#"{"id": "docs:a", "text": "x"}"#, vec!["docs:a"]),
            (r#"{"results": [{"id": "docs:a", "title": "A"}, {"title": "B"}]}"#, vec!["docs:a"]),
            (r#"{"letters": [{"letter_id": "s1"}, 4, "x"]}"#, vec!["s1"]),
            (r#"{"letters": [{"id": "1"}], "total": 1}"#, vec!["1"]),
            (r#"{"results": 7}"#, vec![]),
            ("nonsense", vec![]),
        ] {
            assert_eq!(ids_in(answer, "letter_id"), ids, "{answer}");
        }
    }
}
