//! Tasks, searched and fetched by their owner.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tribune_core::wire::clip;
use tribune_core::{
    CallContext, Clock, Document, DocumentId, Hit, JsonObject, Links, Panel, Query, Result, Source, SourceFacts,
    SourceStatus, Tool, UserId,
};
use tribune_page::View;
use tribune_storage::{Task, TaskFilter};
use uuid::Uuid;

use crate::tools::{self, Tasks};
use crate::view::{self, SCHEME};
use crate::{board, words};

/// The source's name, and its profile's.
pub const NAME: &str = "tasks";

/// The most tasks that are ranked.
const MAX_CANDIDATES: usize = 500;
const SNIPPET_CHARS: usize = 200;
/// How often the database is checked.
const CHECK_EVERY: Duration = Duration::from_secs(5);

/// The caller's tasks.
pub struct TasksSource {
    tasks: Tasks,
    /// Where the database is, for the operator.
    origin: String,
    /// Why the database cannot be used, as of the last check.
    unavailable: Mutex<Option<String>>,
}

impl TasksSource {
    pub fn new(store: tribune_storage::Tasks, origin: String, links: Links, clock: Arc<dyn Clock>) -> Self {
        Self { tasks: Tasks { store, links, clock }, origin, unavailable: Mutex::default() }
    }

    /// Reads a task that does not exist, so that readiness reflects whether the database answers.
    async fn check_database(&self) {
        let answer = self.tasks.store.get(&UserId::local(), Uuid::nil()).await;
        let now = answer.err().map(|error| error.message().to_owned());
        let mut unavailable = self.unavailable.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*unavailable, &now) {
            (None, Some(reason)) => tracing::error!(reason, "the database is unavailable"),
            (Some(_), None) => tracing::info!("the database is available again"),
            _ => {}
        }
        *unavailable = now;
    }

    /// The tasks that match, or open tasks if the query has no words.
    async fn candidates(&self, owner: &UserId, wanted: &[String], limit: usize) -> Result<Vec<Task>> {
        if !wanted.is_empty() {
            return self.tasks.store.find(owner, wanted, MAX_CANDIDATES).await;
        }
        let open = TaskFilter { completed: Some(false), ..TaskFilter::default() };
        Ok(self.tasks.store.list(owner, &open, limit, None).await?.tasks)
    }

    /// The task of an id, if it is the caller's.
    async fn own(&self, id: &DocumentId, cx: &CallContext) -> Result<Option<Task>> {
        let key = (id.scheme() == SCHEME).then(|| Uuid::try_parse(id.key()).ok()).flatten();
        let (Some(key), Some(owner)) = (key, cx.owner()) else {
            return Ok(None);
        };
        self.tasks.store.get(&owner, key).await
    }

    fn hit(&self, task: &Task, coverage: f32) -> Hit {
        let text = view::text(task).replace('\n', " ");
        Hit {
            id: view::document_id(task.id),
            title: task.title.clone(),
            snippet: clip(&text, SNIPPET_CHARS).into_owned(),
            url: None,
            passage: None,
            score: coverage,
            coverage,
            metadata: None,
        }
    }
}

#[async_trait]
impl Source for TasksSource {
    fn name(&self) -> &str {
        NAME
    }

    fn owns(&self, scheme: &str) -> bool {
        scheme == SCHEME
    }

    fn is_personal(&self) -> bool {
        true
    }

    async fn search(&self, query: &Query, cx: &CallContext) -> Result<Arc<[Hit]>> {
        let Some(owner) = cx.owner() else {
            return Ok(Arc::default());
        };
        let wanted = words::search_words(&query.text);
        if wanted.is_empty() && !words::means_tasks(&query.text) {
            return Ok(Arc::default());
        }
        let found = self.candidates(&owner, &wanted, query.limit).await?;
        let mut hits: Vec<Hit> = found
            .iter()
            .map(|task| self.hit(task, words::coverage(task, &wanted)))
            .filter(|hit| hit.coverage > 0.0)
            .collect();
        // The sort is stable: of equal tasks, the newest stays first.
        hits.sort_by(|a, b| b.coverage.total_cmp(&a.coverage));
        hits.truncate(query.limit);
        Ok(hits.into())
    }

    async fn fetch(&self, id: &DocumentId, cx: &CallContext) -> Result<Option<Document>> {
        let task = self.own(id, cx).await?;
        Ok(task.map(|task| Document {
            id: view::document_id(task.id),
            title: task.title.clone(),
            text: view::text(&task),
            url: None,
            as_of: Some(task.updated_at),
            metadata: metadata(&task, &self.tasks.links),
            passages: Vec::new(),
        }))
    }

    /// Reads the task again with the caller as owner, so that other users see nothing.
    async fn view(&self, document: &Document, _cited: Option<Timestamp>, cx: &CallContext) -> Result<Option<View>> {
        let task = self.own(&document.id, cx).await?;
        Ok(task.map(|task| View::Board(Box::new(board::board(&task, self.tasks.clock.now())))))
    }

    fn facts(&self) -> SourceFacts {
        SourceFacts {
            name: NAME.to_owned(),
            title: "Your tasks".to_owned(),
            description: Some("The user's tasks: titles, priorities, due dates, completion.".to_owned()),
            noun: "tasks".to_owned(),
            // Differs between users, but all share the descriptions.
            documents: None,
            dates: None,
            example_id: Some(format!("{SCHEME}:…")),
            live: false,
            fields: Vec::new(),
        }
    }

    fn status(&self) -> SourceStatus {
        let unavailable = self.unavailable.lock().unwrap_or_else(PoisonError::into_inner);
        unavailable.clone().map_or(SourceStatus::Ready, SourceStatus::Unready)
    }

    fn origin(&self) -> Option<String> {
        Some(self.origin.clone())
    }

    /// Checks the database until it is stopped.
    async fn run(self: Arc<Self>, stop: CancellationToken) -> Result<()> {
        let check = async {
            loop {
                self.check_database().await;
                tokio::time::sleep(CHECK_EVERY).await;
            }
        };
        stop.run_until_cancelled(check).await;
        Ok(())
    }

    fn panel(&self) -> Option<Panel> {
        Some(Panel {
            title: "Tasks",
            ability: "manage your tasks",
            questions: &["What is on my list?", "What should I do first?"],
            markup: include_str!("../assets/panel.html"),
            style: include_str!("../assets/panel.css"),
            script: include_str!("../assets/panel.js"),
        })
    }

    fn tools(self: Arc<Self>) -> Vec<Arc<dyn Tool>> {
        tools::all(&self.tasks)
    }
}

fn metadata(task: &Task, links: &Links) -> JsonObject {
    let view = serde_json::to_value(view::TaskView::of(task, links));
    let mut fields = match view {
        Ok(Value::Object(fields)) => fields,
        _ => JsonObject::new(),
    };
    // The document has fields of its own for these.
    for name in ["id", "title", "description", "url"] {
        fields.shift_remove(name);
    }
    fields.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()));
    fields
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use tribune_core::{Principal, SystemClock};
    use tribune_storage::{Backend, Priority, Store};

    use super::*;

    fn user(name: &str) -> UserId {
        UserId::new(name).expect("a name")
    }

    #[tokio::test]
    async fn only_the_owner_sees_a_task_page() {
        let at = Timestamp::UNIX_EPOCH;
        let task = Task {
            id: Uuid::from_u128(7),
            title: "Water the tomatoes".to_owned(),
            description: None,
            priority: Priority::Low,
            category: None,
            tags: Vec::new(),
            due_date: None,
            created_at: at,
            updated_at: at,
            completed_at: None,
        };
        let folder = tempfile::tempdir().expect("a folder");
        let store = Store::new(Backend::Sqlite(folder.path().join("tribune.db"))).expect("a store");
        store.tasks().add(&user("ann"), &task).await.expect("stored");
        let links = Links::new("http://tribune.test");
        let source = TasksSource::new(store.tasks(), String::new(), links, Arc::new(SystemClock));
        let call = |principal| CallContext::new(principal, Instant::now() + Duration::from_secs(1));
        let own = call(Principal::User(user("ann")));
        let id = view::document_id(Uuid::from_u128(7));
        let document = source.fetch(&id, &own).await.expect("a store").expect("a task");
        let seen = source.view(&document, None, &own).await.expect("a store");
        assert!(matches!(seen, Some(View::Board(board)) if board.title == "Water the tomatoes"));
        // Others see nothing, even if they hold the document.
        for other in [Principal::User(user("bob")), Principal::Local, Principal::Anonymous] {
            let seen = source.view(&document, None, &call(other)).await.expect("a store");
            assert_eq!(seen, None);
        }
        store.close().await;
    }
}
