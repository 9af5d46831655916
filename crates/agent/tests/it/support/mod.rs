//! An agent with everything around it.

pub mod aimock;
pub mod log;
pub mod model;
pub mod store;
pub mod tools;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use tribune_agent::{Accepted, Agent, ChatAnswer, ChatRequest, Event, Events, Settings, Turn};
use tribune_core::{CallContext, Clock, Error, Principal, Result, UserId};

use model::{Answer, Request, ScriptedModel};
use store::Memory;
use tools::Tasks;

/// A clock that stands still until it is moved. Monotonic time goes on: real things are waited for.
pub struct ManualClock(Mutex<Timestamp>);

impl ManualClock {
    pub fn advance(&self, by: SignedDuration) {
        *self.0.lock().expect("the time") += by;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().expect("the time")
    }

    fn monotonic(&self) -> Instant {
        Instant::now()
    }
}

/// Remembers every event.
#[derive(Default)]
pub struct Heard(Mutex<Vec<Event>>);

impl Events for Heard {
    fn emit(&self, event: Event) {
        self.0.lock().expect("events").push(event);
    }
}

impl Heard {
    pub fn events(&self) -> Vec<Event> {
        self.0.lock().expect("events").clone()
    }

    /// The text that was not taken back.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for event in self.events() {
            match event {
                Event::Delta { text: more } => text.push_str(&more),
                Event::Discard => text.clear(),
                _ => {}
            }
        }
        text
    }

    pub fn deltas(&self) -> usize {
        let is_delta = |event: &&Event| matches!(event, Event::Delta { .. });
        self.events().iter().filter(is_delta).count()
    }
}

pub struct Chat {
    pub agent: Agent,
    pub model: Option<ScriptedModel>,
    pub store: Arc<Memory>,
    pub tasks: Arc<Tasks>,
    pub clock: Arc<ManualClock>,
    pub heard: Arc<Heard>,
}

impl Chat {
    pub async fn new(answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::with(answers, |_| {}).await
    }

    pub async fn with(answers: impl IntoIterator<Item = Answer>, change: impl FnOnce(&mut Settings)) -> Self {
        let model = ScriptedModel::start(answers).await;
        let mut settings = Settings::new(&model.url, "scripted");
        settings.silence = Duration::from_secs(25);
        change(&mut settings);
        let mut chat = Self::on(settings);
        chat.model = Some(model);
        chat
    }

    /// On an endpoint that is there already, or is not.
    pub fn on(settings: Settings) -> Self {
        log::install();
        let store = Arc::new(Memory::default());
        let now = "2026-11-16T09:00:00Z".parse().expect("a time");
        let clock = Arc::new(ManualClock(Mutex::new(now)));
        Self {
            agent: Agent::new(settings, store.clone(), clock.clone()).expect("an agent"),
            model: None,
            store,
            tasks: Arc::default(),
            clock,
            heard: Arc::default(),
        }
    }

    pub async fn ask(&self, message: &str) -> Result<ChatAnswer> {
        self.request(request(message)).await
    }

    pub async fn request(&self, request: ChatRequest) -> Result<ChatAnswer> {
        match self.agent.begin(request, &user(), |_| Ok(())).await? {
            Accepted::Answered(answer) => Ok(answer),
            Accepted::Turn(turn) => self.run(turn).await,
        }
    }

    pub async fn run(&self, turn: Turn) -> Result<ChatAnswer> {
        turn.run(self.tasks.clone(), context(), &*self.heard).await
    }

    pub async fn fails(&self, message: &str) -> Error {
        self.ask(message).await.expect_err("a failure")
    }

    pub fn requests(&self) -> Vec<Request> {
        self.model.as_ref().expect("a scripted model").requests()
    }
}

pub fn user() -> UserId {
    UserId::new("ann").expect("a name")
}

pub fn context() -> CallContext {
    CallContext::new(Principal::User(user()), Instant::now() + Duration::from_secs(60))
}

pub fn request(message: &str) -> ChatRequest {
    ChatRequest { message: message.into(), ..ChatRequest::default() }
}
