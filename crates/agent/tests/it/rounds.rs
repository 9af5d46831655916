//! Asking, calling, asking again.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::json;
use tribune_agent::{Event, ToolCallSummary};

use crate::support::Chat;
use crate::support::model::{calls, calls_after, says};
use crate::support::tools::MILK_ID;

fn summary(tool: &str, success: bool, preview: &str) -> ToolCallSummary {
    ToolCallSummary {
        tool: tool.into(),
        label: label(tool, success),
        success,
        result_preview: Some(preview.into()),
        needs_confirmation: false,
    }
}

/// As the tools of these tests are labelled.
fn label(tool: &str, success: bool) -> String {
    match tool {
        "list_tasks" => "Read your tasks".into(),
        other if success => format!("Used “{other}”"),
        other => other.into(),
    }
}

#[tokio::test]
async fn answer_without_tools_is_streamed_and_stored() {
    let chat = Chat::new([says("Hello, what can I do?")]).await;
    let answer = chat.ask("  hello ").await.unwrap();
    assert_eq!(answer.message, "Hello, what can I do?");
    assert_eq!((answer.tool_calls, answer.citations), (None, vec![]));
    assert_eq!(chat.heard.text(), answer.message);
    assert_eq!(chat.heard.deltas(), 5);
    let started = Event::Started { conversation_id: answer.conversation_id };
    assert_eq!(chat.heard.events()[0], started);
    let kept = chat.store.exchanges();
    assert_eq!(kept.len(), 1);
    assert_eq!((&*kept[0].question.content, &*kept[0].answer.content), ("hello", &*answer.message));
    assert_eq!(kept[0].conversation, answer.conversation_id);
}

#[tokio::test]
async fn several_steps_list_then_complete() {
    let complete = format!("{{\"task_id\":\"{MILK_ID}\"}}");
    let chat =
        Chat::new([calls(&[("list_tasks", "")]), calls(&[("complete_task", &complete)]), says("“Buy milk” is done.")])
            .await;
    let answer = chat.ask("I have bought milk").await.unwrap();
    assert_eq!(answer.message, "“Buy milk” is done.");
    assert_eq!(
        answer.tool_calls.unwrap(),
        [summary("list_tasks", true, "2 tasks"), summary("complete_task", true, "Buy milk")]
    );
    assert_eq!(chat.tasks.completed(), ["Buy milk"]);
    assert_eq!(answer.citations, [], "their own list is no source");

    let requests = chat.requests();
    assert_eq!(requests.len(), 3);
    let last = requests[2].messages();
    let roles: Vec<&str> = last.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant", "tool"]);
    assert_eq!(last[4]["tool_calls"][0]["function"]["arguments"], complete);
    assert_eq!(last[5]["tool_call_id"], "c0");
    assert!(last[5]["content"].as_str().unwrap().contains("\"completed\":true"));
}

#[tokio::test]
async fn tools_are_shown_as_functions() {
    let chat = Chat::new([says("Hi")]).await;
    chat.ask("hello").await.unwrap();
    let request = &chat.requests()[0];
    assert_eq!(
        request.body["tools"][0],
        json!({"type": "function", "function": {
            "name": "list_tasks",
            "description": "The tool list_tasks",
            "parameters": {"type": "object", "properties": {"task_id": {"type": "string"}}},
        }})
    );
    assert_eq!(request.body["stream"], true);
    assert_eq!(request.body["model"], "scripted");
    assert_eq!(request.body["max_tokens"], 1024);
    assert!(request.body.get("tool_choice").is_none());
    assert!(request.headers.get("authorization").is_none());
}

#[tokio::test]
async fn no_rounds_means_no_tools() {
    let chat = Chat::with([says("Hi")], |settings| {
        settings.max_rounds = 0;
        settings.api_key = Some("sk-test".into());
    })
    .await;
    chat.ask("hello").await.unwrap();
    let request = &chat.requests()[0];
    assert!(request.body.get("tools").is_none() && request.body.get("tool_choice").is_none());
    assert_eq!(request.headers["authorization"], "Bearer sk-test");
}

#[tokio::test]
async fn calls_of_one_round_run_concurrently() {
    // Each waits for the other: one after the other they would never end.
    let chat =
        Chat::new([calls(&[("meet", "{\"who\":\"first\"}"), ("meet", "{\"who\":\"second\"}")]), says("They met.")])
            .await;
    let answer = chat.ask("let them meet").await.unwrap();
    assert_eq!(answer.tool_calls.unwrap(), [summary("meet", true, "Met"), summary("meet", true, "Met")]);
    let requests = chat.requests();
    let results = requests[1].contents("tool");
    assert!(results[0].contains("first") && results[1].contains("second"));
}

#[tokio::test]
async fn candidates_pass_through() {
    let question = "Which one do you mean?\n- Buy milk\n- Buy bread";
    let chat = Chat::new([calls(&[("list_tasks", "{}")]), says(question)]).await;
    let answer = chat.ask("complete the buying one").await.unwrap();
    assert_eq!(answer.message, question);
    assert_eq!(chat.tasks.completed(), Vec::<&str>::new());
}

#[tokio::test]
async fn model_can_correct_wrong_arguments() {
    let right = format!("{{\"task_id\":\"{MILK_ID}\"}}");
    let chat = Chat::new([
        calls(&[("complete_task", "{\"task_id\":")]),
        calls(&[("complete_task", "[1]"), ("complet_task", "{}"), ("complete_task", "{}")]),
        calls(&[("complete_task", &right)]),
        says("Done."),
    ])
    .await;
    let answer = chat.ask("complete milk").await.unwrap();
    let success: Vec<bool> = answer.tool_calls.unwrap().iter().map(|call| call.success).collect();
    assert_eq!(success, [false, false, false, false, true]);
    let requests = chat.requests();
    let last = &requests[3];
    let results = last.contents("tool");
    assert!(results[0].starts_with("error: the arguments are not valid JSON"), "{}", results[0]);
    assert!(results[1].starts_with("error: the arguments are not a JSON object"), "{}", results[1]);
    assert!(results[2].starts_with("error: unknown tool; available: list_tasks, "), "{}", results[2]);
    assert!(results[3].starts_with("error: `task_id` is missing"), "{}", results[3]);
    // What the model wrote is shown to it again only as far as every server can read it.
    let echoed: Vec<&str> = last
        .messages()
        .iter()
        .flat_map(|message| message["tool_calls"].as_array().into_iter().flatten())
        .map(|call| call["function"]["arguments"].as_str().unwrap())
        .collect();
    assert_eq!(echoed, ["{}", "{}", "{}", "{}", &right]);
}

#[tokio::test]
async fn tool_loop_stops_after_five_rounds() {
    let looks = |n: usize| calls_after("Let me look. ", &[("list_tasks", &format!("{{\"n\":{n}}}"))]);
    let chat = Chat::new((0..6).map(looks)).await;
    let answer = chat.ask("go on for ever").await.unwrap();
    assert!(answer.message.starts_with("I stopped"), "{}", answer.message);
    assert!(answer.message.contains("Looked up: 2 tasks"), "{}", answer.message);
    assert_eq!(answer.tool_calls.unwrap().len(), 5);
    assert_eq!(chat.tasks.runs.load(Ordering::SeqCst), 5);
    let requests = chat.requests();
    assert_eq!(requests.len(), 6);
    assert!(requests[..5].iter().all(|request| request.body.get("tool_choice").is_none()));
    assert_eq!(requests[5].body["tool_choice"], "none");
    assert_eq!(chat.heard.text(), answer.message);
    assert_eq!(chat.store.exchanges().len(), 1);
}

#[tokio::test]
async fn after_the_last_round_the_model_may_answer() {
    let mut script = vec![calls(&[("list_tasks", "{}")]); 5];
    script.push(says("Two tasks."));
    let chat = Chat::new(script).await;
    assert_eq!(chat.ask("how many?").await.unwrap().message, "Two tasks.");
}

#[tokio::test]
async fn text_before_calls_is_taken_back() {
    let chat = Chat::new([calls_after("Let me look. ", &[("list_tasks", "{}")]), says("Two tasks.")]).await;
    let answer = chat.ask("how many?").await.unwrap();
    assert_eq!(answer.message, "Two tasks.");
    assert_eq!(chat.heard.text(), "Two tasks.");
    let events = chat.heard.events();
    let place = |wanted: fn(&Event) -> bool| events.iter().position(wanted).unwrap();
    let discard = place(|event| *event == Event::Discard);
    let start = place(|event| matches!(event, Event::ToolStart { call: 0, .. }));
    let end = place(|event| matches!(event, Event::ToolEnd { call: 0, .. }));
    assert!(discard < start && start < end, "{events:?}");
}

#[tokio::test]
async fn model_learns_of_failed_tools() {
    let chat = Chat::new([calls(&[("fail", "{}"), ("panic", "{}")]), says("That did not work.")]).await;
    let answer = chat.ask("do it").await.unwrap();
    assert_eq!(
        answer.tool_calls.unwrap(),
        [
            summary("fail", false, "the database is away; try again later"),
            summary("panic", false, "it stopped unexpectedly")
        ]
    );
    let requests = chat.requests();
    let results = requests[1].contents("tool");
    assert_eq!(results[0], "error: the database is away; try again later");
    assert_eq!(results[1], "error: it stopped unexpectedly");
}

#[tokio::test]
async fn hanging_tool_leaves_time_to_answer() {
    let chat = Chat::with([calls(&[("hang", "{}"), ("list_tasks", "{}")]), says("It took too long.")], |settings| {
        settings.turn_timeout = Duration::from_secs(10);
    })
    .await;
    // A turn that took all its time would fail.
    let answer = chat.ask("wait").await.unwrap();
    assert_eq!(answer.message, "It took too long.");
    let success: Vec<bool> = answer.tool_calls.unwrap().iter().map(|call| call.success).collect();
    assert_eq!(success, [false, true]);
}

#[tokio::test]
async fn at_most_sixteen_calls_are_run_at_once() {
    let arguments: Vec<String> = (0..20).map(|n| format!("{{\"n\":{n}}}")).collect();
    let twenty: Vec<(&str, &str)> = arguments.iter().map(|arguments| ("list_tasks", arguments.as_str())).collect();
    let chat = Chat::new([calls(&twenty), says("Done.")]).await;
    let answer = chat.ask("a lot").await.unwrap();
    let success = answer.tool_calls.unwrap().iter().filter(|call| call.success).count();
    assert_eq!((success, chat.tasks.runs.load(Ordering::SeqCst)), (16, 16));
    let requests = chat.requests();
    let results = requests[1].contents("tool");
    assert_eq!(results.len(), 20);
    assert!(results[19].starts_with("error: at most 16 calls"));
}

#[tokio::test]
async fn previews_never_show_ids() {
    let unknown = "{\"task_id\":\"018f6b1e-7c1d-7aaa-8bbb-00000000dead\"}";
    let chat = Chat::new([calls(&[("complete_task", unknown)]), says("There is none.")]).await;
    let answer = chat.ask("complete it").await.unwrap();
    assert_eq!(answer.tool_calls.unwrap(), [summary("complete_task", false, "there is no task …")]);
}

#[tokio::test]
async fn same_call_runs_once_in_a_turn() {
    let complete = |note: &str| format!("{{\"task_id\":\"{MILK_ID}\",\"note\":{note}}}");
    let reordered = format!("{{ \"note\":[1],\"task_id\":\" {MILK_ID}\"}}");
    let chat = Chat::new([
        calls(&[("list_tasks", "{}"), ("list_tasks", "")]),
        calls(&[("list_tasks", "{}"), ("complete_task", &complete("[1]")), ("complete_task", &reordered)]),
        // What was read may have changed, what was changed has not.
        calls(&[("list_tasks", "{}"), ("complete_task", &complete("[1]")), ("complete_task", &complete("[2]"))]),
        says("Done."),
    ])
    .await;
    let answer = chat.ask("complete milk").await.unwrap();
    assert!(answer.tool_calls.unwrap().iter().all(|call| call.success));
    assert_eq!(chat.tasks.runs.load(Ordering::SeqCst), 4, "two lists and two notes");
    let requests = chat.requests();
    let results = requests[3].contents("tool");
    let repeated: Vec<bool> = results.iter().map(|result| result.starts_with("[You made this call already")).collect();
    assert_eq!(repeated, [false, true, true, false, true, false, true, false]);
    assert!(results[1].ends_with(results[0]) && results[4].ends_with(results[3]), "{results:?}");
    assert!(results[5].contains("\"completed\":true"), "{}", results[5]);
}

#[tokio::test]
async fn written_call_is_no_answer() {
    let raw = format!("{{\"name\": \"delete_task\", \"arguments\": {{\"task_id\": \"{MILK_ID}\"}}}}");
    let tagged = format!("<tool_call>\n{raw}\n</tool_call>");
    for text in [&raw, &tagged, &format!("```json\n{raw}\n```")] {
        let chat = Chat::new([says(text)]).await;
        let error = chat.fails("delete milk").await;
        assert!(error.message().contains("wrote a tool call as text"), "{error}");
        assert_eq!((chat.heard.deltas(), chat.store.exchanges().len()), (0, 0), "nothing of it is seen");
        assert_eq!(chat.tasks.titles().len(), 2);
    }
    // After a tool has run, the answer says what was done.
    let chat = Chat::new([calls(&[("list_tasks", "{}")]), says(&format!("I will delete it.\n{raw}"))]).await;
    let answer = chat.ask("delete milk").await.unwrap();
    assert!(answer.message.ends_with("so nothing was done.\n- Looked up: 2 tasks"), "{}", answer.message);
    assert_eq!(chat.heard.text(), answer.message);
    // What only begins like a call is an answer.
    let chat = Chat::new([says("[Buy milk](https://example.org/milk) it is.")]).await;
    assert_eq!(chat.ask("which?").await.unwrap().message, "[Buy milk](https://example.org/milk) it is.");
    assert_eq!(chat.heard.text(), "[Buy milk](https://example.org/milk) it is.");
}

#[tokio::test]
async fn answer_says_whether_anything_was_looked_up() {
    let chat = Chat::new([
        says("Hello."),
        calls(&[("fail", "{}")]),
        says("That failed."),
        calls(&[("list_tasks", "{}"), ("fail", "{}"), ("no_such_tool", "{}")]),
        says("Two tasks."),
        says("I have deleted both."),
    ])
    .await;
    let mut looked_up = Vec::new();
    for question in ["hello", "fail", "list", "delete both"] {
        looked_up.push(chat.ask(question).await.unwrap().looked_up);
    }
    assert_eq!(looked_up, [false, false, true, false]);
    let kept: Vec<Option<bool>> = chat.store.exchanges().iter().map(|exchange| exchange.answer.looked_up).collect();
    assert_eq!(kept, [Some(false), Some(false), Some(true), Some(false)]);
}

#[tokio::test]
async fn model_sees_traces_of_earlier_calls() {
    let letter = json!({"to": "canary"}).to_string();
    let chat = Chat::new([
        says("Hello."),
        calls(&[("list_tasks", "{\"secret\":\"canary\"}"), ("fail", "{}"), ("canary", "{}"), ("send_letter", &letter)]),
        says("Not asked."),
    ])
    .await;
    for question in ["hello", "do it", "and then?"] {
        chat.ask(question).await.unwrap();
    }
    let requests = chat.requests();
    let system = |at: usize| requests[at].contents("system").concat();
    assert!(system(0).ends_with("(UTC)."), "nothing was done before");
    assert!(system(1).ends_with("Nothing else was done or looked up.\n1. no calls"), "{}", system(1));
    let expected = format!(
        "\n1. no calls\n2. list_tasks: done ({MILK_ID}, {}); fail: failed; send_letter: not run, the user is asked",
        crate::support::tools::BREAD_ID
    );
    assert!(system(2).ends_with(&expected) && !system(2).contains("canary"), "{}", system(2));
}
