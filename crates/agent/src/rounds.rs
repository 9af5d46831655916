//! Tool calls and results of earlier rounds, shortened to fit the budget.

use std::borrow::Cow;

use crate::model::request::{self, Message};
use crate::text::{Beginning, tokens};

/// Tokens of a message beside its text.
const MESSAGE_TOKENS: usize = 8;
/// Results are not cut below this.
pub(crate) const LEAST_RESULT_CHARS: usize = 200;
/// Shorter arguments are never omitted.
pub(crate) const LEAST_ARGUMENT_BYTES: usize = 200;

/// A finished call, as the model sees it again.
#[derive(Debug, Clone)]
pub(crate) struct AnsweredCall {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Always a JSON object: some servers fail on anything else in their own history.
    pub(crate) arguments: String,
    pub(crate) result: Beginning,
}

/// The part of a round that is sent.
pub(crate) struct Share<'a> {
    round: &'a [AnsweredCall],
    result_chars: usize,
    /// Whether long arguments are included.
    all_arguments: bool,
}

impl<'a> Share<'a> {
    pub(crate) fn whole(round: &'a [AnsweredCall]) -> Self {
        let longest = round.iter().map(|call| call.result.chars()).max();
        Self { round, result_chars: longest.unwrap_or_default(), all_arguments: true }
    }

    fn tokens(&self) -> usize {
        let call = |call: &AnsweredCall| {
            let names = tokens(call.name.len() + 2 * call.id.len());
            names + message(&self.arguments(call)) + message(&call.result.cut(self.result_chars))
        };
        self.round.iter().map(call).sum()
    }

    fn shorten_results(&mut self) -> bool {
        let shorter = (self.result_chars / 2).max(LEAST_RESULT_CHARS);
        let is_shorter = shorter < self.result_chars;
        self.result_chars = self.result_chars.min(shorter);
        is_shorter
    }

    fn leave_arguments_out(&mut self) -> bool {
        std::mem::replace(&mut self.all_arguments, false)
    }

    /// Always a JSON object.
    fn arguments<'b>(&self, call: &'b AnsweredCall) -> Cow<'b, str> {
        let bytes = call.arguments.len();
        if self.all_arguments || bytes <= LEAST_ARGUMENT_BYTES {
            return Cow::Borrowed(&call.arguments);
        }
        Cow::Owned(format!("{{\"left_out\":\"{bytes} bytes of arguments, to save room\"}}"))
    }

    pub(crate) fn add_to(&self, messages: &mut Vec<Message>) {
        let arguments: Vec<Cow<'_, str>> = self.round.iter().map(|call| self.arguments(call)).collect();
        let calls = self.round.iter().zip(&arguments);
        messages.push(request::calls(calls.map(|(call, arguments)| (&*call.id, &*call.name, &**arguments))));
        let result = |call: &AnsweredCall| request::result(&call.id, &call.result.cut(self.result_chars));
        messages.extend(self.round.iter().map(result));
    }
}

pub(crate) fn tokens_of(shares: &[Share<'_>]) -> usize {
    shares.iter().map(Share::tokens).sum()
}

/// Shortens the oldest first until everything fits, or nothing can be shortened.
pub(crate) fn fit(shares: &mut [Share<'_>], room: usize) {
    let last = shares.len().saturating_sub(1);
    for part in [0..last, last..shares.len()] {
        for shorten in [Share::shorten_results, Share::leave_arguments_out] {
            for at in part.clone() {
                while tokens_of(shares) > room && shorten(&mut shares[at]) {}
            }
        }
    }
}

pub(crate) const fn message(text: &str) -> usize {
    tokens(text.len()) + MESSAGE_TOKENS
}
