//! Tasks, searched and fetched by their owner.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use serde_json::Value;
use tribune_core::store::{Task, TaskFilter, TaskStore};
use tribune_core::view::View;
use tribune_core::wire::clip;
use tribune_core::{
    CallContext, Clock, Document, DocumentId, Error, Hit, JsonObject, Links, Query, Result, Source, SourceFacts,
    SourceStatus, Tool, UserId,
};
use uuid::Uuid;

use crate::{board, tools, view, words};

/// The source's name, and its profile's.
pub const NAME: &str = "tasks";
/// What ids begin with.
pub const SCHEME: &str = "task";

/// More tasks than these are not ranked.
const MAX_CANDIDATES: usize = 500;
const SNIPPET_CHARS: usize = 200;

/// The tasks of whoever calls.
pub struct TasksSource {
    pub(crate) store: Arc<dyn TaskStore>,
    pub(crate) links: Links,
    pub(crate) clock: Arc<dyn Clock>,
    /// Why the database cannot be used now, if it cannot.
    trouble: Arc<dyn Fn() -> Option<String> + Send + Sync>,
}

impl TasksSource {
    pub fn new(store: Arc<dyn TaskStore>, links: Links, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            links,
            clock,
            trouble: Arc::new(|| None),
        }
    }

    /// Readiness is told by what `trouble` says.
    #[must_use]
    pub fn reporting(mut self, trouble: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        self.trouble = Arc::new(trouble);
        self
    }

    /// Whose tasks a call is about.
    pub(crate) fn owner(cx: &CallContext) -> Result<UserId> {
        cx.principal.user().ok_or_else(|| {
            Error::forbidden("tasks belong to users, and this call does not say whose it is: send an API token as `Authorization: Bearer TOKEN` (the operator makes one with `tribune token create --user NAME`)")
        })
    }

    /// With nothing in particular asked for, what is open.
    async fn candidates(&self, owner: &UserId, asked: &[String], limit: usize) -> Result<Vec<Task>> {
        if !asked.is_empty() {
            return self.store.find(owner, asked, MAX_CANDIDATES).await;
        }
        let open = TaskFilter {
            completed: Some(false),
            ..TaskFilter::default()
        };
        Ok(self.store.list(owner, &open, limit, None).await?.tasks)
    }

    /// The task of an id, if it is the caller's.
    async fn own(&self, id: &DocumentId, cx: &CallContext) -> Result<Option<Task>> {
        let key = (id.scheme() == SCHEME)
            .then(|| Uuid::try_parse(id.key()).ok())
            .flatten();
        let (Some(key), Some(owner)) = (key, cx.principal.user()) else {
            return Ok(None);
        };
        self.store.get(&owner, key).await
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
        let Some(owner) = cx.principal.user() else {
            return Ok(Arc::default());
        };
        let asked = words::asked(&query.text);
        if asked.is_empty() && !words::means_tasks(&query.text) {
            return Ok(Arc::default());
        }
        let found = self.candidates(&owner, &asked, query.limit).await?;
        let mut hits: Vec<Hit> = found
            .iter()
            .map(|task| self.hit(task, words::coverage(task, &asked)))
            .filter(|hit| hit.coverage > 0.0)
            .collect();
        // Stable: of those that hold as much, the newest stays first.
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
            metadata: metadata(&task, &self.links),
            passages: Vec::new(),
        }))
    }

    /// Read again, by the same rule as a fetch: whoever is not its owner sees nothing, whatever document they hold.
    async fn view(&self, document: &Document, _cited: Option<Timestamp>, cx: &CallContext) -> Result<Option<View>> {
        let task = self.own(&document.id, cx).await?;
        Ok(task.map(|task| View::Board(Box::new(board::board(&task, self.clock.now())))))
    }

    fn facts(&self) -> SourceFacts {
        SourceFacts {
            name: NAME.to_owned(),
            title: "Your tasks".to_owned(),
            description: Some("What the user has to do: titles, priorities, due dates, what is done.".to_owned()),
            noun: "tasks".to_owned(),
            // Differs between users, and descriptions are made once for all of them.
            documents: None,
            dates: None,
            example_id: Some(format!("{SCHEME}:…")),
            live: false,
            fields: Vec::new(),
        }
    }

    fn status(&self) -> SourceStatus {
        match (self.trouble)() {
            None => SourceStatus::Ready,
            Some(reason) => SourceStatus::Unready(reason),
        }
    }

    fn tools(self: Arc<Self>) -> Vec<Arc<dyn Tool>> {
        tools::all(&self)
    }
}

fn metadata(task: &Task, links: &Links) -> JsonObject {
    let view = serde_json::to_value(view::TaskView::of(task, links));
    let mut fields = match view {
        Ok(Value::Object(fields)) => fields,
        _ => JsonObject::new(),
    };
    // Said by the document itself.
    for said in ["id", "title", "description", "url"] {
        fields.shift_remove(said);
    }
    fields.retain(|_, value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty()));
    fields
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};
    use std::time::{Duration, Instant};

    use tribune_core::store::{Priority, TaskChanges, TaskCursor, TaskPage};
    use tribune_core::{Principal, SystemClock};

    use super::*;

    /// One task of one user.
    struct One(UserId, Task);

    #[async_trait]
    impl TaskStore for One {
        async fn get(&self, owner: &UserId, id: Uuid) -> Result<Option<Task>> {
            let is_own = *owner == self.0 && id == self.1.id;
            Ok(is_own.then(|| self.1.clone()))
        }
        async fn add(&self, _: &UserId, _: &Task) -> Result<()> {
            Err(Error::internal("not asked for"))
        }
        async fn list(&self, _: &UserId, _: &TaskFilter, _: usize, _: Option<TaskCursor>) -> Result<TaskPage> {
            Err(Error::internal("not asked for"))
        }
        async fn update(&self, _: &UserId, _: Uuid, _: &TaskChanges, _: Timestamp) -> Result<Option<Task>> {
            Err(Error::internal("not asked for"))
        }
        async fn complete(&self, _: &UserId, _: Uuid, _: Option<bool>, _: Timestamp) -> Result<Option<Task>> {
            Err(Error::internal("not asked for"))
        }
        async fn delete(&self, _: &UserId, _: Uuid) -> Result<Option<Task>> {
            Err(Error::internal("not asked for"))
        }
        async fn find(&self, _: &UserId, _: &[String], _: usize) -> Result<Vec<Task>> {
            Err(Error::internal("not asked for"))
        }
    }

    /// Of a store that never waits.
    fn at_once<T>(future: impl Future<Output = T>) -> T {
        match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => value,
            Poll::Pending => panic!("it waits"),
        }
    }

    fn user(name: &str) -> UserId {
        UserId::new(name).expect("a name")
    }

    #[test]
    fn a_page_of_a_task_is_its_owners_alone() {
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
        let store = Arc::new(One(user("ann"), task));
        let source = TasksSource::new(store, Links::new("http://tribune.test"), Arc::new(SystemClock));
        let call = |principal| CallContext::new(principal, Instant::now() + Duration::from_secs(1));
        let own = call(Principal::User(user("ann")));
        let id = view::document_id(Uuid::from_u128(7));
        let document = at_once(source.fetch(&id, &own)).expect("a store").expect("a task");
        let seen_by = |cx: &CallContext| at_once(source.view(&document, None, cx)).expect("a store");
        assert!(matches!(seen_by(&own), Some(View::Board(board)) if board.title == "Water the tomatoes"));
        // Whoever else has got hold of the document sees nothing by it.
        for other in [Principal::User(user("bob")), Principal::Local, Principal::Anonymous] {
            assert_eq!(seen_by(&call(other)), None);
        }
    }
}
