//! The messages for the model, within its token budget.

use std::borrow::Cow;

use tribune_storage::{Message as Kept, Role};

use crate::model::request::{self, Message};
use crate::rounds::{AnsweredCall, Share, fit, message, tokens_of};
use crate::text::cut;

/// The last exchange is always sent: "yes" means nothing without it.
const LAST_EXCHANGE: usize = 2;
/// It is not cut further than this.
const LEAST_MESSAGE_CHARS: usize = 1000;

#[derive(Debug)]
pub(crate) struct Transcript {
    system: String,
    history: Vec<Kept>,
    question: String,
    rounds: Vec<Vec<AnsweredCall>>,
    budget_tokens: usize,
}

impl Transcript {
    pub(crate) fn new(system: String, history: Vec<Kept>, question: String, budget_tokens: u32) -> Self {
        Self { system, history, question, rounds: Vec::new(), budget_tokens: budget_tokens as usize }
    }

    pub(crate) fn add_round(&mut self, calls: Vec<AnsweredCall>) {
        self.rounds.push(calls);
    }

    pub(crate) const fn rounds(&self) -> usize {
        self.rounds.len()
    }

    /// The messages of the next request; tool definitions take `definitions` tokens. If they do not fit, the oldest
    /// history is dropped first, down to the last exchange; then results and arguments of earlier rounds are cut, then
    /// those of the last round. System prompt and question are always complete.
    pub(crate) fn messages(&self, definitions: usize) -> Vec<Message> {
        let fixed = definitions + message(&self.system) + message(&self.question);
        let room = self.budget_tokens.saturating_sub(fixed);
        let mut shares: Vec<Share<'_>> = self.rounds.iter().map(|round| Share::whole(round)).collect();
        let history = self.history_within(room.saturating_sub(tokens_of(&shares)));
        let said: usize = history.iter().map(|(_, text)| message(text)).sum();
        fit(&mut shares, room.saturating_sub(said));

        let mut messages = vec![request::system(&self.system)];
        messages.extend(history.iter().map(|(role, text)| match role {
            Role::User => request::user(text),
            Role::Assistant => request::assistant(text),
        }));
        messages.push(request::user(&self.question));
        for share in &shares {
            share.add_to(&mut messages);
        }
        messages
    }

    /// The last messages that fit, at least the last exchange, cut if needed. No answer without its question.
    fn history_within(&self, room: usize) -> Vec<(Role, Cow<'_, str>)> {
        let last = self.history.len().saturating_sub(LAST_EXCHANGE);
        let fits = |from: usize| {
            let messages = self.history[from..].iter().map(|kept| message(&kept.content));
            messages.sum::<usize>() <= room
        };
        let mut from = 0;
        while from < last && !fits(from) {
            from += 1;
            while from < last && self.history[from].role == Role::Assistant {
                from += 1;
            }
        }
        let whole = fits(from);
        let sent = self.history[from..].iter().map(|kept| {
            let text = kept.content.as_str();
            let text = if whole { text.into() } else { cut(text, LEAST_MESSAGE_CHARS).into() };
            (kept.role, text)
        });
        sent.collect()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;
    use crate::rounds::{LEAST_ARGUMENT_BYTES, LEAST_RESULT_CHARS};
    use crate::text::{BYTES_PER_TOKEN, Beginning};

    fn kept(role: Role, content: &str) -> Kept {
        let content = content.to_owned();
        Kept { id: Uuid::nil(), role, content, created_at: Timestamp::UNIX_EPOCH, trace: None, looked_up: None }
    }

    fn history(exchanges: usize, chars: usize) -> Vec<Kept> {
        (0..exchanges)
            .flat_map(|n| {
                let text = |who: &str| format!("{who}{n} {}", "x".repeat(chars));
                [kept(Role::User, &text("q")), kept(Role::Assistant, &text("a"))]
            })
            .collect()
    }

    fn transcript(history: Vec<Kept>, budget: u32) -> Transcript {
        Transcript::new("system".into(), history, "question".into(), budget)
    }

    fn answered(result: &str) -> AnsweredCall {
        AnsweredCall {
            id: "c".into(),
            name: "look".into(),
            arguments: "{}".into(),
            result: Beginning::of(result, 1000),
        }
    }

    fn sent(transcript: &Transcript) -> Vec<Value> {
        let messages = transcript.messages(0);
        messages.iter().map(|m| serde_json::to_value(m).expect("JSON")).collect()
    }

    fn starts(messages: &[Value]) -> Vec<String> {
        let word = |m: &Value| m["content"].as_str().unwrap_or("calls").split(' ').next().map(str::to_owned);
        messages.iter().filter_map(word).collect()
    }

    #[test]
    fn everything_is_sent_if_there_is_room() {
        let messages = sent(&transcript(history(2, 10), 10_000));
        assert_eq!(starts(&messages), ["system", "q0", "a0", "q1", "a1", "question"]);
    }

    #[test]
    fn the_oldest_exchanges_give_way_first() {
        // 300 characters and the name are 101 tokens, and 8 for the message: an exchange is 218. The system prompt
        // and the question are 10 and 11.
        let two_exchanges = 21 + 2 * 218;
        assert_eq!(
            starts(&sent(&transcript(history(3, 300), two_exchanges))),
            ["system", "q1", "a1", "q2", "a2", "question"]
        );
        assert_eq!(starts(&sent(&transcript(history(3, 300), two_exchanges - 1))), ["system", "q2", "a2", "question"]);
        assert_eq!(
            starts(&sent(&transcript(history(3, 300), 1))),
            ["system", "q2", "a2", "question"],
            "the last exchange never does"
        );
    }

    #[test]
    fn oversized_last_exchange_is_cut() {
        let messages = sent(&transcript(history(2, 3000), 1000));
        assert_eq!(starts(&messages), ["system", "q1", "a1", "question"]);
        let answer = messages[2]["content"].as_str().expect("text");
        // Of 3,003 characters.
        assert!(answer.ends_with("x\n[cut here: 2003 more characters]"), "{answer}");
    }

    #[test]
    fn huge_tool_definitions_keep_the_last_exchange() {
        let transcript = transcript(history(3, 10), 1000);
        let sent_beside = |definitions: usize| transcript.messages(definitions).len();
        assert_eq!((sent_beside(0), sent_beside(100_000)), (8, 4));
    }

    #[test]
    fn results_are_cut_when_the_older_history_is_gone() {
        // The exchange is 218 tokens, system prompt and question are 21, and a call is 9 (`{}`), 2 (its names) and 8.
        // What is left of 500 is 242 tokens, which 450 characters and the note are, but not 900.
        let mut transcript = transcript(history(1, 300), 500);
        transcript.add_round(vec![answered(&"y".repeat(900))]);
        let messages = sent(&transcript);
        assert_eq!(starts(&messages)[..4], ["system", "q0", "a0", "question"]);
        let result = messages[5]["content"].as_str().expect("text");
        assert_eq!(result, format!("{}\n[cut here: 450 more characters]", "y".repeat(450)));
    }

    #[test]
    fn older_history_is_cut_before_newer() {
        let long = |n: usize| AnsweredCall {
            arguments: format!("{{\"text\":\"{}\"}}", "a".repeat(900)),
            ..answered(&n.to_string().repeat(900))
        };
        let lengths = |budget: u32| -> Vec<(usize, usize)> {
            let mut transcript = transcript(Vec::new(), budget);
            (1..=3).for_each(|n| transcript.add_round(vec![long(n)]));
            let messages = sent(&transcript);
            let length = |text: &Value| text.as_str().map_or(0, str::len);
            let arguments = |at: usize| length(&messages[at]["tool_calls"][0]["function"]["arguments"]);
            let rounds = (2..8).step_by(2);
            rounds.map(|at| (arguments(at), length(&messages[at + 1]["content"]))).collect()
        };
        // 911 bytes of arguments and 900 of a result are 304 and 300 tokens; with 18 beside them, a call is 622. Cut
        // to 225 and to 200 characters with a note of 32, a result is 86 and 78 tokens. The note in place of the
        // arguments is 51 bytes, 17 tokens.
        let all = 21 + 3 * 622;
        assert_eq!(lengths(all), [(911, 900), (911, 900), (911, 900)]);
        assert_eq!(lengths(all - 200), [(911, 257), (911, 900), (911, 900)]);
        assert_eq!(lengths(all - 300), [(911, 232), (911, 482), (911, 900)]);
        assert_eq!(lengths(all - 500), [(51, 232), (911, 232), (911, 900)]);
        assert_eq!(lengths(all - 1100), [(51, 232), (51, 232), (911, 482)]);
        assert_eq!(lengths(1), [(51, 232), (51, 232), (51, 232)]);
    }

    /// Arguments as models write them: an id, or a text of any length.
    fn arguments() -> impl Strategy<Value = String> {
        let id = Just("{\"task_id\":\"018f6b1e-7c1d-7aaa-8bbb-000000000001\"}".to_owned());
        let text = ("[a-zé\"\n ]{0,20}", 0_usize..300);
        let text = text.prop_map(|(text, times)| json!({"title": text, "notes": text.repeat(times)}).to_string());
        prop_oneof![id, text]
    }

    proptest! {
        #[test]
        fn what_is_sent_fits_unless_it_cannot(
            sizes in prop::collection::vec(0_usize..2000, 0..8),
            rounds in prop::collection::vec(prop::collection::vec((arguments(), 0_usize..5000), 1..4), 0..5),
            definitions in 0_usize..1000,
            budget in 0_u32..8000,
        ) {
            let history: Vec<Kept> = sizes.iter().enumerate().map(|(n, size)| {
                kept(if n % 2 == 0 { Role::User } else { Role::Assistant }, &"h".repeat(*size))
            }).collect();
            let last_exchange = history.len().min(LAST_EXCHANGE);
            let mut transcript = transcript(history, budget);
            for round in &rounds {
                let call = |(arguments, size): &(String, usize)| AnsweredCall {
                    arguments: arguments.clone(),
                    ..answered(&"é".repeat(*size))
                };
                transcript.add_round(round.iter().map(call).collect());
            }
            let messages: Vec<Value> = transcript
                .messages(definitions)
                .iter()
                .map(|message| serde_json::to_value(message).expect("JSON"))
                .collect();
            prop_assert_eq!(&messages[0]["content"], "system");
            let question = messages.iter().position(|m| m["content"] == "question").expect("the question");
            prop_assert!(question > last_exchange);
            let sent: Vec<&str> = messages[question..].iter()
                .flat_map(|m| m["tool_calls"].as_array().into_iter().flatten())
                .filter_map(|call| call["function"]["arguments"].as_str())
                .collect();
            let calls = rounds.iter().flatten().count();
            prop_assert_eq!(sent.len(), calls);
            prop_assert!(sent.iter().all(|text| serde_json::from_str::<Value>(text).is_ok_and(|v| v.is_object())));
            let texts = messages.iter().filter_map(|m| m["content"].as_str()).chain(sent);
            let bytes = definitions * BYTES_PER_TOKEN + texts.map(str::len).sum::<usize>();
            // Notes of cuts have at most 40 bytes.
            let least = 14 + definitions * BYTES_PER_TOKEN + last_exchange * (LEAST_MESSAGE_CHARS + 40)
                + calls * (2 * LEAST_RESULT_CHARS + 40 + LEAST_ARGUMENT_BYTES);
            prop_assert!(bytes <= (budget as usize * BYTES_PER_TOKEN).max(least), "{bytes} of {budget}, {least}");
        }
    }
}
