//! `tribune chat`: the agent in a terminal.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::bail;
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;
use tribune_agent::{Accepted, ChatAnswer, ChatRequest, Event, Events};
use tribune_core::UserId;
use tribune_server::identity::Caller;
use tribune_server::service::NoChat;
use tribune_server::{Chat, Service};
use tribune_storage::Role;
use uuid::Uuid;

use super::ask::{make_ready, quiet};
use super::{config, print, runtime};
use crate::cli::{Chat as Args, Common};
use crate::compose::{Mode, Parts, compose};
use crate::logging;

/// How long the first question waits for other servers.
const FOREIGN_TOOLS_WITHIN: Duration = Duration::from_secs(5);
const HISTORY: usize = 20;

pub fn run(common: &Common, args: &Args) -> anyhow::Result<ExitCode> {
    let _logs = logging::start(&quiet(common))?;
    let config = config(common)?;
    let parts = compose(&config, config.settings(config.listen, false), Mode::Command)?;
    let mut talk = Talk { service: parts.service.clone(), conversation: args.conversation, begin_new: args.new };
    talk.chat()?;
    for corpus in &parts.corpora {
        make_ready(&config, corpus)?;
    }
    let runtime = runtime()?;
    let running = runtime.block_on(async {
        let running = parts.start().await?;
        parts.people.upstreams.start();
        parts.people.upstreams.ready(FOREIGN_TOOLS_WITHIN).await;
        Ok::<_, anyhow::Error>(running)
    })?;
    let outcome = if args.message.is_empty() {
        converse(&runtime, &parts, &mut talk)
    } else {
        let message = args.message.join(" ");
        runtime.block_on(once(&mut talk, &message, args.json))
    };
    runtime.block_on(running.stop());
    outcome
}

/// The current conversation.
struct Talk {
    service: Arc<Service>,
    conversation: Option<Uuid>,
    begin_new: bool,
}

impl Talk {
    fn chat(&self) -> anyhow::Result<&Chat> {
        match &self.service.chat {
            Ok(chat) => Ok(chat),
            Err(NoChat::Unusable(reason)) => bail!("chat is off: {reason}"),
            Err(unconfigured) => bail!("chat needs a model; add this to tribune.toml:\n{}", unconfigured.remedy()),
        }
    }

    async fn say(&mut self, message: &str, events: &dyn Events) -> anyhow::Result<ChatAnswer> {
        let request = ChatRequest {
            message: message.to_owned(),
            conversation_id: self.conversation.filter(|_| !self.begin_new),
            new_conversation: self.begin_new,
            ..ChatRequest::default()
        };
        let chat = self.chat()?;
        let answer = match chat.agent.begin(request, &UserId::local(), |_| Ok(())).await? {
            Accepted::Answered(answer) => answer,
            Accepted::Turn(turn) => {
                let caller = Caller::local(Arc::from("chat"));
                let toolbox = chat.toolbox(&self.service, &caller);
                let cx = chat.call_context(&self.service, &caller);
                let cancel = cx.cancel.clone();
                let mut answer = std::pin::pin!(turn.run(toolbox, cx, events));
                // Ctrl-C cancels the answer, but still shows what was done.
                tokio::select! {
                    answer = &mut answer => answer?,
                    _ = tokio::signal::ctrl_c() => {
                        cancel.cancel();
                        answer.await?
                    }
                }
            }
        };
        self.conversation = Some(answer.conversation_id);
        self.begin_new = false;
        Ok(answer)
    }
}

async fn once(talk: &mut Talk, message: &str, as_json: bool) -> anyhow::Result<ExitCode> {
    if as_json {
        let answer = talk.say(message, &Silent).await?;
        print(&serde_json::to_string(&answer)?)?;
    } else {
        answer_in_terminal(talk, message).await?;
    }
    Ok(ExitCode::SUCCESS)
}

async fn answer_in_terminal(talk: &mut Talk, message: &str) -> anyhow::Result<()> {
    let terminal = Terminal::default();
    let answer = talk.say(message, &terminal).await;
    terminal.end_line();
    let answer = answer?;
    if !terminal.has_said.load(Ordering::Relaxed) {
        print(&printable(&answer.message))?;
    }
    for citation in &answer.citations {
        if !answer.message.contains(&citation.url) {
            print(&printable(&format!("  {} <{}>", citation.title, citation.url)))?;
        }
    }
    Ok(())
}

/// Reads questions until the end of input. One that fails does not end the conversation.
fn converse(runtime: &tokio::runtime::Runtime, parts: &Parts, talk: &mut Talk) -> anyhow::Result<ExitCode> {
    let is_terminal = std::io::stdin().is_terminal();
    let prompt = if is_terminal { "> " } else { "" };
    let mut editor = DefaultEditor::new()?;
    if is_terminal {
        let model = &talk.chat()?.agent.settings().model;
        eprintln!("Talking to {model}. Commands: /new (start another conversation), /history, /tools, /quit.");
    }
    let mut code = ExitCode::SUCCESS;
    while let Some(line) = next_line(&mut editor, prompt)? {
        let done = match line.trim() {
            "" => continue,
            "/quit" | "/exit" => break,
            "/new" => {
                talk.begin_new = true;
                eprintln!("The next message starts a new conversation.");
                continue;
            }
            "/history" => runtime.block_on(show_history(parts, talk)),
            "/tools" => show_tools(talk),
            other if other.starts_with('/') && !other.contains(' ') => {
                eprintln!("There is no command {other}; use /new, /history, /tools or /quit.");
                continue;
            }
            message => runtime.block_on(answer_in_terminal(talk, message)),
        };
        code = ExitCode::SUCCESS;
        if let Err(error) = done {
            eprintln!("tribune: {}", super::chain(&error));
            code = ExitCode::FAILURE;
        }
    }
    // Of input from a pipe, the last message decides.
    Ok(if is_terminal { ExitCode::SUCCESS } else { code })
}

async fn show_history(parts: &Parts, talk: &Talk) -> anyhow::Result<()> {
    let store = parts.people.store.conversations();
    let user = UserId::local();
    let conversation = match talk.conversation {
        Some(id) => Some(id),
        None => store.latest(&user, 0).await?.map(|latest| latest.id),
    };
    let Some(conversation) = conversation else {
        return print("There are no messages yet.");
    };
    let page = store.messages(&user, conversation, HISTORY, None).await?;
    let Some(page) = page else {
        bail!("there is no conversation {conversation}");
    };
    for message in page.items {
        let who = match message.role {
            Role::User => "You",
            Role::Assistant => "Tribune",
        };
        print(&printable(&format!("{who}: {}", message.content)))?;
    }
    Ok(())
}

fn show_tools(talk: &Talk) -> anyhow::Result<()> {
    let toolbox = talk.chat()?.toolbox(&talk.service, &Caller::local(Arc::from("chat")));
    for tool in toolbox.tools().specs() {
        print(&printable(&format!("{}: {}", tool.name, tool.title)))?;
    }
    Ok(())
}

/// The next line; `None` at the end. Ctrl-C drops the line that is being written.
fn next_line(editor: &mut DefaultEditor, prompt: &str) -> anyhow::Result<Option<String>> {
    match editor.readline(prompt) {
        Ok(line) => {
            editor.add_history_entry(&line)?;
            Ok(Some(line))
        }
        Err(ReadlineError::Interrupted) => Ok(Some(String::new())),
        Err(ReadlineError::Eof) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Removes control sequences: text of models and documents must not change the terminal.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

struct Silent;

impl Events for Silent {
    fn emit(&self, _: Event) {}
}

/// Shows an answer as it comes: its text on standard output, what is being done on standard error.
#[derive(Default)]
struct Terminal {
    in_line: AtomicBool,
    has_said: AtomicBool,
}

impl Terminal {
    fn write(&self, text: &str) {
        let mut out = std::io::stdout().lock();
        // A closed pipe is not an error.
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        self.in_line.store(!text.ends_with('\n'), Ordering::Relaxed);
    }

    fn end_line(&self) {
        if self.in_line.load(Ordering::Relaxed) {
            self.write("\n");
        }
    }
}

impl Events for Terminal {
    fn emit(&self, event: Event) {
        match event {
            Event::Started { .. } | Event::ToolStart { .. } => {}
            Event::Delta { text } => {
                self.has_said.store(true, Ordering::Relaxed);
                self.write(&printable(&text));
            }
            Event::Discard => {
                self.has_said.store(false, Ordering::Relaxed);
                self.end_line();
            }
            Event::ToolEnd { summary, .. } => {
                self.end_line();
                let outcome = match (summary.success, summary.needs_confirmation) {
                    (_, true) => "waits for your decision",
                    (true, _) => "done",
                    (false, _) => "failed",
                };
                let preview = summary.result_preview.unwrap_or_default();
                eprintln!("  · {} {outcome} {}", printable(&summary.tool), printable(&preview));
            }
        }
    }
}
