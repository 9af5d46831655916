//! What a model is sent in a turn, kept within what it may be sent.

use async_openai::types::chat::ChatCompletionTools;
use tribune_core::store::{Message as Kept, Role};

use crate::model::request::{self, Message};
use crate::text::cut;

/// Tokens are counted roughly: three bytes are one. English has about four to a token, Chinese three, so that the
/// count is rather too high than too low.
const BYTES_PER_TOKEN: usize = 3;
/// What a message takes beside its text.
const MESSAGE_TOKENS: usize = 8;
/// Results are not cut further than this: less would tell nothing.
const LEAST_RESULT_CHARS: usize = 200;

/// A call that was answered, as the model is shown it again.
#[derive(Debug, Clone)]
pub(crate) struct AnsweredCall {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Always a JSON object: some servers fail on anything else in their own history.
    pub(crate) arguments: String,
    pub(crate) result: String,
}

#[derive(Debug)]
pub(crate) struct Transcript {
    system: String,
    history: Vec<Kept>,
    question: String,
    rounds: Vec<Vec<AnsweredCall>>,
    budget_tokens: usize,
    max_result_chars: usize,
}

impl Transcript {
    pub(crate) fn new(
        system: String,
        history: Vec<Kept>,
        question: String,
        budget_tokens: u32,
        max_result_chars: usize,
    ) -> Self {
        Self {
            system,
            history,
            question,
            rounds: Vec::new(),
            budget_tokens: budget_tokens as usize,
            max_result_chars,
        }
    }

    pub(crate) fn add_round(&mut self, calls: Vec<AnsweredCall>) {
        self.rounds.push(calls);
    }

    pub(crate) const fn rounds(&self) -> usize {
        self.rounds.len()
    }

    /// The messages of the next request. What does not fit gives way: first the oldest of the history, then the ends
    /// of results. The system prompt and the question never do.
    pub(crate) fn messages(&self, tools: &[ChatCompletionTools]) -> Vec<Message> {
        let tools: usize = tools.iter().map(definition).sum();
        let fixed = tools + message(&self.system) + message(&self.question);
        let room = self.budget_tokens.saturating_sub(fixed);
        let mut result_chars = self.max_result_chars;
        let history = self.history_within(room.saturating_sub(self.round_tokens(result_chars)));
        while self.round_tokens(result_chars) > room && result_chars > LEAST_RESULT_CHARS {
            result_chars = (result_chars / 2).max(LEAST_RESULT_CHARS);
        }
        let mut messages = vec![request::system(&self.system)];
        messages.extend(history.iter().map(|kept| match kept.role {
            Role::User => request::user(&kept.content),
            Role::Assistant => request::assistant(&kept.content),
        }));
        messages.push(request::user(&self.question));
        for round in &self.rounds {
            let calls = round.iter().map(|call| (&*call.id, &*call.name, &*call.arguments));
            messages.push(request::calls(calls));
            let results = round
                .iter()
                .map(|call| request::result(&call.id, &cut(&call.result, result_chars)));
            messages.extend(results);
        }
        messages
    }

    /// The last messages that fit. An answer is not left without its question.
    fn history_within(&self, room: usize) -> &[Kept] {
        let mut from = 0;
        while from < self.history.len()
            && self.history[from..]
                .iter()
                .map(|kept| message(&kept.content))
                .sum::<usize>()
                > room
        {
            from += 1;
            while self.history.get(from).is_some_and(|kept| kept.role == Role::Assistant) {
                from += 1;
            }
        }
        &self.history[from..]
    }

    fn round_tokens(&self, result_chars: usize) -> usize {
        let call = |call: &AnsweredCall| {
            let result = cut(&call.result, result_chars);
            message(&call.arguments) + tokens(call.name.len() + 2 * call.id.len()) + message(&result)
        };
        self.rounds.iter().flatten().map(call).sum()
    }
}

fn definition(tool: &ChatCompletionTools) -> usize {
    serde_json::to_vec(tool).map_or(0, |json| tokens(json.len()))
}

const fn tokens(bytes: usize) -> usize {
    bytes.div_ceil(BYTES_PER_TOKEN)
}

const fn message(text: &str) -> usize {
    tokens(text.len()) + MESSAGE_TOKENS
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use proptest::prelude::*;
    use serde_json::Value;
    use uuid::Uuid;

    use super::*;

    fn kept(role: Role, content: &str) -> Kept {
        Kept {
            id: Uuid::nil(),
            role,
            content: content.to_owned(),
            created_at: Timestamp::UNIX_EPOCH,
        }
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
        Transcript::new("system".into(), history, "question".into(), budget, 1000)
    }

    fn answered(result: &str) -> AnsweredCall {
        AnsweredCall {
            id: "c".into(),
            name: "look".into(),
            arguments: "{}".into(),
            result: result.into(),
        }
    }

    fn sent(transcript: &Transcript) -> Vec<Value> {
        let messages = transcript.messages(&[]);
        messages
            .iter()
            .map(|m| serde_json::to_value(m).expect("JSON"))
            .collect()
    }

    fn starts(messages: &[Value]) -> Vec<String> {
        let word = |m: &Value| {
            m["content"]
                .as_str()
                .unwrap_or("calls")
                .split(' ')
                .next()
                .map(str::to_owned)
        };
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
        assert_eq!(
            starts(&sent(&transcript(history(3, 300), two_exchanges - 1))),
            ["system", "q2", "a2", "question"]
        );
        assert_eq!(starts(&sent(&transcript(history(3, 300), 1))), ["system", "question"]);
    }

    #[test]
    fn results_are_cut_when_no_history_is_left() {
        let mut transcript = transcript(history(1, 300), 300);
        transcript.add_round(vec![answered(&"y".repeat(900))]);
        let messages = sent(&transcript);
        assert_eq!(starts(&messages)[..2], ["system", "question"]);
        let result = messages[3]["content"].as_str().expect("text");
        assert_eq!(result, format!("{}\n[cut here: 400 more characters]", "y".repeat(500)));
    }

    #[test]
    fn a_result_is_cut_to_its_own_limit_first() {
        let mut transcript = transcript(Vec::new(), 100_000);
        transcript.add_round(vec![answered(&"y".repeat(1001))]);
        let messages = sent(&transcript);
        assert!(
            messages[3]["content"]
                .as_str()
                .expect("text")
                .ends_with("[cut here: 1 more characters]")
        );
    }

    proptest! {
        #[test]
        fn what_is_sent_fits_unless_it_cannot(
            sizes in prop::collection::vec(0_usize..2000, 0..8),
            results in prop::collection::vec(0_usize..5000, 0..6),
            budget in 0_u32..4000,
        ) {
            let history = sizes.iter().enumerate().map(|(n, size)| {
                kept(if n % 2 == 0 { Role::User } else { Role::Assistant }, &"h".repeat(*size))
            }).collect();
            let mut transcript = transcript(history, budget);
            for size in &results {
                transcript.add_round(vec![answered(&"é".repeat(*size))]);
            }
            let messages = sent(&transcript);
            prop_assert_eq!(&messages[0]["content"], "system");
            prop_assert_eq!(messages.iter().filter(|m| m["content"] == "question").count(), 1);
            let bytes: usize = messages.iter().filter_map(|m| m["content"].as_str()).map(str::len).sum();
            let least = 1000 + 500 * results.len();
            prop_assert!(bytes <= (budget as usize * BYTES_PER_TOKEN).max(least));
        }
    }
}
