//! A small task list and tools that misbehave.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::sync::Barrier;
use tribune_agent::{ToolSet, Toolbox};
use tribune_core::{CallContext, CallDisplay, Error, Hints, JsonObject, Result, ToolOutput, ToolSpec};

/// An id that must never be seen by a person.
pub const MILK_ID: &str = "018f6b1e-7c1d-7aaa-8bbb-000000000001";
pub const BREAD_ID: &str = "018f6b1e-7c1d-7aaa-8bbb-000000000002";

#[derive(Clone)]
struct Task {
    id: &'static str,
    title: &'static str,
    completed: bool,
}

pub struct Tasks {
    tasks: Mutex<Vec<Task>>,
    /// Two calls of `meet` end only if they run at the same time.
    meeting: Barrier,
    /// How often any tool was run.
    pub runs: AtomicUsize,
    /// What `send_letter` was called with.
    pub letters: Mutex<Vec<JsonObject>>,
}

impl Default for Tasks {
    fn default() -> Self {
        let task = |id, title| Task { id, title, completed: false };
        Self {
            tasks: Mutex::new(vec![task(MILK_ID, "Buy milk"), task(BREAD_ID, "Buy bread")]),
            meeting: Barrier::new(2),
            runs: AtomicUsize::new(0),
            letters: Mutex::default(),
        }
    }
}

impl Tasks {
    pub fn titles(&self) -> Vec<&'static str> {
        self.tasks.lock().expect("tasks").iter().map(|task| task.title).collect()
    }

    pub fn completed(&self) -> Vec<&'static str> {
        let tasks = self.tasks.lock().expect("tasks");
        tasks.iter().filter(|task| task.completed).map(|task| task.title).collect()
    }

    pub fn rename(&self, id: &str, title: &'static str) {
        let mut tasks = self.tasks.lock().expect("tasks");
        tasks.iter_mut().find(|task| task.id == id).expect("a task").title = title;
    }

    fn list(&self) -> Value {
        let tasks = self.tasks.lock().expect("tasks");
        let shown = tasks.iter().map(|task| {
            json!({
                "id": task.id, "title": task.title, "completed": task.completed,
                "url": format!("https://example.org/tasks/{}", task.id),
            })
        });
        json!({ "tasks": shown.collect::<Vec<_>>() })
    }

    fn find(&self, arguments: &JsonObject) -> Result<usize> {
        let id = arguments.get("task_id").and_then(Value::as_str);
        let id = id.ok_or_else(|| Error::invalid_argument("`task_id` is missing: send {\"task_id\": \"…\"}"))?;
        let tasks = self.tasks.lock().expect("tasks");
        let found = tasks.iter().position(|task| task.id == id);
        found.ok_or_else(|| Error::not_found(format!("there is no task {id}")))
    }

    fn complete(&self, arguments: &JsonObject) -> Result<Value> {
        let at = self.find(arguments)?;
        let mut tasks = self.tasks.lock().expect("tasks");
        tasks[at].completed = true;
        Ok(json!({"task": {"id": tasks[at].id, "title": tasks[at].title, "completed": true}}))
    }

    fn delete(&self, arguments: &JsonObject) -> Result<Value> {
        let at = self.find(arguments)?;
        let task = self.tasks.lock().expect("tasks").remove(at);
        Ok(json!({"deleted": true, "task": {"id": task.id, "title": task.title}}))
    }
}

const WRITE: Hints = Hints { read_only: false, destructive: false, idempotent: true, open_world: false };
const DESTROY: Hints = Hints { destructive: true, ..WRITE };

fn spec(name: &str, hints: Hints) -> ToolSpec {
    let schema = json!({"type": "object", "properties": {"task_id": {"type": "string"}}});
    ToolSpec {
        name: name.into(),
        title: name.into(),
        description: format!("The tool {name}"),
        input_schema: schema.as_object().cloned().expect("an object"),
        output_schema: JsonObject::new(),
        hints,
        icon: None,
        display: CallDisplay::default(),
        aliases: Vec::new(),
    }
}

#[async_trait]
impl Toolbox for Tasks {
    fn tools(&self) -> Arc<ToolSet> {
        Arc::new(ToolSet::new(vec![
            ToolSpec {
                display: CallDisplay {
                    progress: Some(("Reading your tasks", "Read your tasks")),
                    items: Some(("tasks", "task")),
                    is_uncitable: true,
                    ..CallDisplay::default()
                },
                ..spec("list_tasks", Hints::READ)
            },
            spec("complete_task", WRITE),
            ToolSpec {
                display: CallDisplay { is_uncitable: true, ..CallDisplay::default() },
                ..spec("delete_task", DESTROY)
            },
            ToolSpec { title: "Send a letter".into(), ..spec("send_letter", DESTROY) },
            spec("meet", Hints::READ),
            spec("fail", WRITE),
            spec("hang", Hints::READ),
            spec("panic", Hints::READ),
            spec("long", Hints::READ),
        ]))
    }

    fn prepared(&self, _tool: &str, mut arguments: JsonObject) -> JsonObject {
        for value in arguments.values_mut() {
            if let Value::String(text) = value {
                *text = text.trim().to_owned();
            }
        }
        arguments
    }

    async fn question(&self, tool: &str, arguments: JsonObject, _cx: &CallContext) -> Result<Option<String>> {
        if tool != "delete_task" {
            return Ok(None);
        }
        let at = self.find(&arguments)?;
        Ok(Some(format!("Delete the task \"{}\"?", self.tasks.lock().expect("tasks")[at].title)))
    }

    async fn call(&self, tool: &str, arguments: JsonObject, _cx: &CallContext) -> Result<ToolOutput> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let answer = match tool {
            "list_tasks" => self.list(),
            "complete_task" => self.complete(&arguments)?,
            "delete_task" => self.delete(&arguments)?,
            "send_letter" => {
                self.letters.lock().expect("letters").push(arguments);
                json!({"title": "Sent"})
            }
            "meet" => {
                self.meeting.wait().await;
                json!({"title": "Met", "who": arguments.get("who")})
            }
            "fail" => return Err(Error::unavailable("the database is away; try again later")),
            "hang" => {
                tokio::time::sleep(Duration::from_secs(600)).await;
                json!({})
            }
            "panic" => panic!("a bug in a tool"),
            "long" => json!({ "text": "x".repeat(50_000) }),
            other => return Err(Error::not_found(format!("there is no tool {other}"))),
        };
        ToolOutput::structured(&answer, 1)
    }
}
