//! Keeps the tasks that fixtures created, and works out what state each is in.
//!
//! Nothing runs in the background: what a fixture task will result in is known when it starts, or
//! when its last question is answered, so its state follows from the clock alone.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use jiff::Timestamp;
use rmcp::model::{
    CallToolResult, CreateTaskResult, DetailedTask, ErrorData, GetTaskResult, InputRequests, InputResponses,
    JsonObject, Task, TaskPayload, TaskStatus,
};
use serde::Serialize;
use serde_json::Value;

/// How long a task can be asked about after its creation.
const RETENTION: Duration = Duration::from_secs(600);

/// How often a client should ask.
const POLL_INTERVAL_MS: u64 = 200;

/// Turns the answers to all questions of a task into its result.
type Conclude = Box<dyn Fn(&InputResponses) -> CallToolResult + Send>;

/// What a task turns into when its time has come.
#[derive(Clone, Debug)]
pub(super) enum Outcome {
    /// The tool ran; the result may still report a tool error.
    Completed(JsonObject),
    /// The call failed as a protocol error.
    Failed(JsonObject),
}

impl Outcome {
    pub(super) fn completed(result: &CallToolResult) -> Self {
        as_object(result).map_or_else(Self::Failed, Self::Completed)
    }

    pub(super) fn failed(error: &ErrorData) -> Self {
        Self::Failed(as_object(error).unwrap_or_else(|failure| failure))
    }
}

/// The object a value serializes to, or the error object that says it is none.
fn as_object(value: &impl Serialize) -> Result<JsonObject, JsonObject> {
    match serde_json::to_value(value) {
        Ok(Value::Object(object)) => Ok(object),
        _ => Err(rmcp::object!({
            "code": rmcp::model::ErrorCode::INTERNAL_ERROR.0,
            "message": "the result of the task is no object"
        })),
    }
}

enum Stage {
    /// Working until `due`, settled from then on.
    Running {
        due: Instant,
        outcome: Outcome,
    },
    /// Waiting for answers to the questions still pending.
    Asking {
        pending: InputRequests,
        answers: InputResponses,
        conclude: Conclude,
    },
    Cancelled,
}

struct Entry {
    created: Instant,
    created_at: Timestamp,
    /// Time from the creation to the latest transition, if that is in the past.
    updated_after: Duration,
    stage: Stage,
}

impl Entry {
    fn new(stage: Stage) -> Self {
        Self { created: Instant::now(), created_at: Timestamp::now(), updated_after: Duration::ZERO, stage }
    }

    fn enter(&mut self, stage: Stage) {
        self.updated_after = self.created.elapsed();
        self.stage = stage;
    }

    fn payload(&self) -> TaskPayload {
        match &self.stage {
            Stage::Running { due, .. } if Instant::now() < *due => TaskPayload::Working,
            Stage::Running { outcome, .. } => match outcome.clone() {
                Outcome::Completed(result) => TaskPayload::Completed { result },
                Outcome::Failed(error) => TaskPayload::Failed { error },
            },
            Stage::Asking { pending, .. } => TaskPayload::InputRequired { input_requests: pending.clone() },
            Stage::Cancelled => TaskPayload::Cancelled,
        }
    }

    fn updated_at(&self) -> Timestamp {
        let after = match &self.stage {
            Stage::Running { due, .. } if *due <= Instant::now() => due.saturating_duration_since(self.created),
            _ => self.updated_after,
        };
        self.created_at.checked_add(after).unwrap_or(self.created_at)
    }

    fn describe(&self, id: &str) -> DetailedTask {
        let task = Task::new(id, TaskStatus::default(), self.created_at.to_string(), self.updated_at().to_string())
            .with_ttl_ms(u64::try_from(RETENTION.as_millis()).unwrap_or(u64::MAX))
            .with_poll_interval_ms(POLL_INTERVAL_MS);
        DetailedTask::new(task, self.payload())
    }
}

/// Every task of this process that is not yet forgotten.
#[derive(Default)]
pub(super) struct TaskBoard(Mutex<HashMap<String, Entry>>);

impl fmt::Debug for TaskBoard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("TaskBoard").field("tasks", &self.entries().len()).finish()
    }
}

impl TaskBoard {
    /// Creates a task that settles by itself after `duration`.
    pub(super) fn run(&self, duration: Duration, outcome: Outcome) -> CreateTaskResult {
        self.create(Stage::Running { due: Instant::now() + duration, outcome })
    }

    /// Creates a task that settles when every question is answered.
    pub(super) fn ask(
        &self,
        questions: InputRequests,
        conclude: impl Fn(&InputResponses) -> CallToolResult + Send + 'static,
    ) -> CreateTaskResult {
        self.create(Stage::Asking { pending: questions, answers: InputResponses::new(), conclude: Box::new(conclude) })
    }

    fn create(&self, stage: Stage) -> CreateTaskResult {
        let id = format!("{:032x}", rand::random::<u128>());
        let entry = Entry::new(stage);
        let task = entry.describe(&id).task;
        let mut entries = self.entries();
        entries.retain(|_, entry| entry.created.elapsed() < RETENTION);
        entries.insert(id, entry);
        CreateTaskResult::new(task)
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        self.entries().contains_key(id)
    }

    pub(super) fn get(&self, id: &str) -> Result<GetTaskResult, ErrorData> {
        self.entries().get(id).map(|entry| GetTaskResult::new(entry.describe(id))).ok_or_else(unknown_task)
    }

    /// Takes the answers to pending questions and ignores all others.
    pub(super) fn update(&self, id: &str, responses: InputResponses) -> Result<(), ErrorData> {
        let mut entries = self.entries();
        let entry = entries.get_mut(id).ok_or_else(unknown_task)?;
        let Stage::Asking { pending, answers, conclude } = &mut entry.stage else {
            return Ok(());
        };
        for (key, response) in responses {
            if pending.remove(&key).is_some() {
                answers.insert(key, response);
            }
        }
        if pending.is_empty() {
            let outcome = Outcome::completed(&conclude(answers));
            entry.enter(Stage::Running { due: Instant::now(), outcome });
        }
        Ok(())
    }

    /// Cancels a task; one that already settled keeps its outcome.
    pub(super) fn cancel(&self, id: &str) -> Result<(), ErrorData> {
        let mut entries = self.entries();
        let entry = entries.get_mut(id).ok_or_else(unknown_task)?;
        if !entry.payload().status().is_terminal() {
            entry.enter(Stage::Cancelled);
        }
        Ok(())
    }

    /// A panic elsewhere leaves the map as it was, so a poisoned lock is still good.
    fn entries(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unknown_task() -> ErrorData {
    ErrorData::invalid_params("Unknown task", None)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::rounds, *};

    fn outcome() -> Outcome {
        Outcome::completed(&CallToolResult::success(Vec::new()))
    }

    fn status(board: &TaskBoard, id: &str) -> TaskStatus {
        board.get(id).expect("a known task").task.status()
    }

    fn answer(key: &str) -> InputResponses {
        InputResponses::from([(key.to_owned(), json!({}))])
    }

    #[test]
    fn a_task_settles_when_it_is_due() {
        let board = TaskBoard::default();
        let slow = board.run(Duration::from_secs(60), outcome()).task.task_id;
        let fast = board.run(Duration::ZERO, outcome()).task.task_id;
        assert_eq!(status(&board, &slow), TaskStatus::Working);
        assert_eq!(status(&board, &fast), TaskStatus::Completed);
    }

    #[test]
    fn cancelling_spares_what_has_settled() {
        let board = TaskBoard::default();
        let slow = board.run(Duration::from_secs(60), outcome()).task.task_id;
        let fast = board.run(Duration::ZERO, outcome()).task.task_id;
        assert_eq!(board.cancel(&slow), Ok(()));
        assert_eq!(board.cancel(&fast), Ok(()));
        assert_eq!(status(&board, &slow), TaskStatus::Cancelled);
        assert_eq!(status(&board, &fast), TaskStatus::Completed);
        assert!(board.cancel("unknown").is_err());
    }

    #[test]
    fn a_task_asks_until_every_question_is_answered() {
        let board = TaskBoard::default();
        let questions = ["a", "b"].map(|key| (key.to_owned(), rounds::list_roots()));
        let id = board.ask(InputRequests::from(questions), |_| CallToolResult::success(Vec::new())).task.task_id;
        for unrelated in ["c", "a", "a"] {
            assert_eq!(board.update(&id, answer(unrelated)), Ok(()));
            assert_eq!(status(&board, &id), TaskStatus::InputRequired);
        }
        assert_eq!(board.update(&id, answer("b")), Ok(()));
        assert_eq!(status(&board, &id), TaskStatus::Completed);
    }
}
