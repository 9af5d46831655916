//! The many ways in which endpoints write the same answer.

use std::sync::atomic::Ordering;

use serde_json::json;

use crate::support::Chat;
use crate::support::model::{Answer, Ending, calls, delta, says, status, stream_of};
use crate::support::tools::MILK_ID;

#[tokio::test]
async fn plain_json_is_an_answer_too() {
    let call = json!({"id": "a", "type": "function", "function": {"name": "list_tasks", "arguments": "{}"}});
    let chat = Chat::new([
        status(
            200,
            &[],
            &json!({"choices": [{"message": {"content": null, "tool_calls": [call]}, "finish_reason": "tool_calls"}]}),
        ),
        status(
            200,
            &[],
            &json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "Two tasks."}}]}),
        ),
    ])
    .await;
    let answer = chat.ask("how many?").await.unwrap();
    assert_eq!((answer.message.as_str(), answer.tool_calls.unwrap().len()), ("Two tasks.", 1));
    assert_eq!(chat.heard.text(), "Two tasks.");
}

#[tokio::test]
async fn bytes_may_be_split_anywhere() {
    let title = "é😀\\\"\\u00e9";
    let arguments = format!("{{\"task_id\":\"{MILK_ID}\",\"note\":\"{title}\"}}");
    let pieces: Vec<String> = arguments
        .chars()
        .enumerate()
        .map(|(at, c)| {
            let call = if at == 0 {
                json!({"index": 0, "id": "a", "function": {"name": "complete_task", "arguments": c.to_string()}})
            } else {
                json!({"index": 0, "function": {"arguments": c.to_string()}})
            };
            delta(&json!({"tool_calls": [call]}), None)
        })
        .chain([delta(&json!({}), Some("tool_calls"))])
        .collect();
    // Seven bytes at a time: in the middle of lines, escapes and characters.
    let split = |text: &str| text.as_bytes().chunks(7).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let said = format!("{}{}", delta(&json!({"content": "Erledigt: 😀 „é“"}), None), delta(&json!({}), Some("stop")));
    let chat = Chat::new([
        stream_of(split(&pieces.concat()), Ending::Whole),
        stream_of(said.as_bytes().chunks(1).map(<[u8]>::to_vec), Ending::Whole),
    ])
    .await;
    let answer = chat.ask("complete milk").await.unwrap();
    assert_eq!(answer.message, "Erledigt: 😀 „é“");
    assert!(answer.tool_calls.unwrap()[0].success);
    assert_eq!(chat.requests()[1].messages()[2]["tool_calls"][0]["function"]["arguments"], arguments);
}

#[tokio::test]
async fn unnumbered_calls_with_object_arguments_work() {
    let call = |id: &str| json!({"id": id, "function": {"name": "complete_task", "arguments": {"task_id": id}}});
    let piece = delta(&json!({"content": null, "tool_calls": [call(MILK_ID), call("x")]}), Some("tool_calls"));
    let chat = Chat::new([stream_of([piece], Ending::Whole), says("Done.")]).await;
    let calls = chat.ask("complete both").await.unwrap().tool_calls.unwrap();
    let success: Vec<bool> = calls.iter().map(|call| call.success).collect();
    assert_eq!(success, [true, false]);
}

#[tokio::test]
async fn lenient_event_streams_are_read() {
    let stream = ": PROCESSING\r\n\r\nevent: message\r\ndata:{\"choices\":[{\"delta\":{\"content\":\"Hel\"}}]}\r\n\r\n\
                  data: {\"choices\":[{\"delta\":{\"content\":\"lo\"}}],\"usage\":null}\r\n\r\ndata: [DONE]";
    let chat = Chat::new([Answer::Pieces {
        status: 200,
        headers: vec![],
        pieces: vec![stream.as_bytes().to_vec()],
        ending: Ending::Whole,
    }])
    .await;
    assert_eq!(chat.ask("hello").await.unwrap().message, "Hello");
}

#[tokio::test]
async fn a_huge_answer_is_cut() {
    let word = delta(&json!({ "content": "é".repeat(10_000) }), None);
    let chat = Chat::new([stream_of(vec![word; 50], Ending::Hanging)]).await;
    let answer = chat.ask("talk").await.unwrap();
    assert!(answer.message.ends_with("it reached the maximum length.)"));
    let kept = chat.store.exchanges()[0].answer.content.len();
    assert!((100_000..105_000).contains(&kept), "{kept}");
    assert_eq!(chat.heard.text(), answer.message);
}

#[tokio::test]
async fn answer_cut_by_tokens_says_so() {
    let chat = Chat::new([stream_of([delta(&json!({"content": "First of"}), Some("length"))], Ending::Whole)]).await;
    let answer = chat.ask("talk").await.unwrap();
    assert!(answer.message.starts_with("First of\n\n(The answer was cut"));
}

#[tokio::test]
async fn huge_arguments_are_an_error_for_the_model() {
    let huge = format!("{{\"task_id\":\"{}\"}}", "x".repeat(70_000));
    let chat = Chat::new([calls(&[("complete_task", &huge)]), says("Too much.")]).await;
    let answer = chat.ask("complete it").await.unwrap();
    assert!(!answer.tool_calls.unwrap()[0].success);
    assert!(chat.requests()[1].contents("tool")[0].starts_with("error: the arguments are longer than 64 KB"));
}

#[tokio::test]
async fn cut_off_call_does_not_run() {
    let call = |index: usize, name: &str, arguments: &str| {
        let function = json!({"name": name, "arguments": arguments});
        delta(&json!({"tool_calls": [{"index": index, "id": format!("c{index}"), "function": function}]}), None)
    };
    let cut = stream_of(
        [call(0, "list_tasks", ""), call(1, "list_tasks", ""), delta(&json!({}), Some("length"))],
        Ending::Whole,
    );
    let chat = Chat::new([cut, says("Done.")]).await;
    let answer = chat.ask("how many?").await.unwrap();
    let success: Vec<bool> = answer.tool_calls.unwrap().iter().map(|call| call.success).collect();
    assert_eq!(success, [true, false]);
    assert_eq!(chat.tasks.runs.load(Ordering::SeqCst), 1);
    assert!(chat.requests()[1].contents("tool")[1].starts_with("error: the call was cut off"));
}
