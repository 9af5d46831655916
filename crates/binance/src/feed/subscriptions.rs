//! The subscriptions of one connection: sent in few messages, answered one by one, and sent again after a refusal. A
//! refusal concerns only what its message asked for.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

/// The last day of every symbol, as a topic of its own.
pub(super) const ALL_TICKERS: &str = "!miniTicker@arr";
/// Topics in one message: a hundred streams.
const TOPICS_A_MESSAGE: usize = 25;
/// A message that is not answered in this time never will be.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
const FIRST_RETRY: Duration = Duration::from_millis(500);
const MAX_RETRY: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
enum Method {
    Subscribe,
    Unsubscribe,
}

/// To subscribe to a topic, a symbol or [`ALL_TICKERS`], or to unsubscribe from it.
#[derive(Debug, Clone)]
struct Request {
    kind: Method,
    topic: Arc<str>,
    /// How often the exchange refused it, and when it is sent again after that.
    refusals: u32,
    again_at: Option<Instant>,
}

/// A message that waits for its answer.
#[derive(Debug)]
struct Sent {
    requests: Vec<Request>,
    at: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Queued,
    /// With the message of this id.
    Sent(u64),
    Confirmed,
    Refused,
}

/// What an answer, or a missing one, means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Confirmed,
    /// They are asked for again later.
    Refused {
        topics: Vec<Arc<str>>,
        why: String,
    },
    /// The exchange has answered nothing on this connection, and sent nothing.
    Unresponsive,
}

#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    queue: VecDeque<Request>,
    sent: HashMap<u64, Sent>,
    states: HashMap<Arc<str>, State>,
    last_id: u64,
    /// The exchange has answered a message, or sends market data.
    has_answered: bool,
}

impl Subscriptions {
    pub(super) fn subscribe(&mut self, topic: &Arc<str>) {
        self.states.insert(topic.clone(), State::Queued);
        self.enqueue(Method::Subscribe, topic);
    }

    pub(super) fn unsubscribe(&mut self, topic: &Arc<str>) {
        self.states.remove(topic);
        self.queue.retain(|request| request.topic != *topic || request.refusals == 0);
        self.enqueue(Method::Unsubscribe, topic);
    }

    fn enqueue(&mut self, kind: Method, topic: &Arc<str>) {
        self.queue.push_back(Request { kind, topic: topic.clone(), refusals: 0, again_at: None });
    }

    /// The next message, with as many topics as fit. What was refused goes alone, so that one topic cannot spoil another.
    pub(super) fn next_message(&mut self, now: Instant) -> Option<String> {
        let is_due = |request: &Request| request.again_at.is_none_or(|at| at <= now);
        let at = self.queue.iter().position(is_due)?;
        let first = &self.queue[at];
        let count = match first.refusals {
            0 => {
                let goes_with = |other: &&Request| other.kind == first.kind && other.refusals == 0;
                let together = self.queue.iter().skip(at).take_while(goes_with);
                together.count().min(TOPICS_A_MESSAGE)
            }
            _ => 1,
        };
        let kind = first.kind;
        let requests: Vec<Request> = self.queue.drain(at..at + count).collect();
        self.last_id += 1;
        let id = self.last_id;
        for request in requests.iter().filter(|_| kind == Method::Subscribe) {
            if let Some(state) = self.states.get_mut(&request.topic) {
                *state = State::Sent(id);
            }
        }
        let streams: Vec<String> = requests.iter().flat_map(|request| streams(&request.topic)).collect();
        self.sent.insert(id, Sent { requests, at: now });
        Some(serde_json::json!({"method": kind, "params": streams, "id": id}).to_string())
    }

    /// The exchange has answered the message of this id.
    pub(super) fn answered(&mut self, id: u64, error: Option<String>, now: Instant) -> Outcome {
        self.has_answered = true;
        match (self.sent.remove(&id), error) {
            (Some(sent), Some(why)) => self.refused(id, sent, why, now),
            (Some(sent), None) => {
                for request in sent.requests {
                    self.settle(id, &request.topic, State::Confirmed);
                }
                Outcome::Confirmed
            }
            (None, _) => Outcome::Confirmed,
        }
    }

    /// Market data has come.
    pub(super) fn note_market(&mut self) {
        self.has_answered = true;
    }

    /// A message that has waited too long for its answer counts as refused.
    pub(super) fn overdue(&mut self, now: Instant) -> Option<Outcome> {
        let is_overdue = |sent: &Sent| now.duration_since(sent.at) >= ANSWERED_WITHIN;
        let id = *self.sent.iter().find(|(_, sent)| is_overdue(sent))?.0;
        if !self.has_answered {
            return Some(Outcome::Unresponsive);
        }
        let sent = self.sent.remove(&id)?;
        Some(self.refused(id, sent, "it was not answered".to_owned(), now))
    }

    fn refused(&mut self, id: u64, sent: Sent, why: String, now: Instant) -> Outcome {
        let mut topics = Vec::new();
        for request in sent.requests {
            // Unless it was asked for again since, or is no longer wanted.
            if self.settle(id, &request.topic, State::Refused) {
                topics.push(request.topic.clone());
                let wait = (FIRST_RETRY * 2u32.pow(request.refusals.min(10))).min(MAX_RETRY);
                self.queue.push_back(Request {
                    refusals: request.refusals.saturating_add(1),
                    again_at: Some(now + wait),
                    ..request
                });
            }
        }
        if topics.is_empty() {
            return Outcome::Confirmed;
        }
        Outcome::Refused { topics, why }
    }

    fn settle(&mut self, id: u64, topic: &str, as_: State) -> bool {
        match self.states.get_mut(topic) {
            Some(state) if *state == State::Sent(id) => {
                *state = as_;
                true
            }
            _ => false,
        }
    }

    /// Whether the exchange has confirmed the subscription.
    pub(super) fn is_confirmed(&self, topic: &str) -> bool {
        self.states.get(topic) == Some(&State::Confirmed)
    }

    /// Whether the exchange has confirmed every subscription.
    pub(super) fn are_all_confirmed(&self) -> bool {
        self.states.values().all(|state| *state == State::Confirmed)
    }

    /// Whether every subscription has been confirmed or refused at least once.
    pub(super) fn is_settled(&self) -> bool {
        let is_first = |request: &Request| request.refusals == 0;
        !self.queue.iter().any(is_first) && !self.sent.values().flat_map(|sent| &sent.requests).any(is_first)
    }

    /// Whether nothing has been sent yet.
    pub(super) fn is_untouched(&self) -> bool {
        self.last_id == 0
    }
}

fn streams(topic: &str) -> Vec<String> {
    if topic == ALL_TICKERS {
        return vec![topic.to_owned()];
    }
    let name = topic.to_lowercase();
    ["depth@100ms", "bookTicker", "trade", "aggTrade"].iter().map(|kind| format!("{name}@{kind}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(topics: &[&str]) -> Subscriptions {
        let mut all = Subscriptions::default();
        for topic in topics {
            all.subscribe(&Arc::from(*topic));
        }
        all
    }

    fn params(message: Option<String>) -> usize {
        let message: serde_json::Value = serde_json::from_str(&message.expect("a message")).expect("JSON");
        message["params"].as_array().expect("streams").len()
    }

    fn refused(outcome: Outcome) -> usize {
        match outcome {
            Outcome::Refused { topics, .. } => topics.len(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn refused_topics_are_retried_alone() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut all = of(&["AUSDT", "BUSDT", ALL_TICKERS]);
        assert_eq!(params(all.next_message(start)), 9);
        assert_eq!(refused(all.answered(1, Some("busy".to_owned()), start)), 3);
        assert!(all.is_settled() && !all.are_all_confirmed() && all.next_message(at(499)).is_none());
        for (id, streams) in [(2, 4), (3, 4), (4, 1)] {
            assert_eq!(params(all.next_message(at(500))), streams);
            let why = (id == 3).then(|| "Invalid".to_owned());
            let outcome = all.answered(id, why, at(500));
            assert_eq!(matches!(outcome, Outcome::Refused { .. }), id == 3);
        }
        assert_eq!(["AUSDT", "BUSDT", ALL_TICKERS].map(|topic| all.is_confirmed(topic)), [true, false, true]);
        assert!(all.next_message(at(1_499)).is_none());
        assert_eq!(params(all.next_message(at(1_500))), 4);
        assert!(all.is_settled(), "who waits for the first answers need not wait for this one");
        all.answered(5, None, at(1_500));
        assert!(all.is_confirmed("BUSDT") && all.are_all_confirmed());
    }

    #[test]
    fn answer_to_an_unwanted_topic_is_ignored() {
        let start = Instant::now();
        let mut all = of(&["AUSDT"]);
        all.next_message(start).expect("subscribe");
        all.unsubscribe(&Arc::from("AUSDT"));
        all.subscribe(&Arc::from("AUSDT"));
        assert_eq!(all.answered(1, None, start), Outcome::Confirmed);
        assert!(!all.is_confirmed("AUSDT"), "it will be taken away first");
        all.next_message(start).expect("unsubscribe");
        all.next_message(start).expect("subscribe");
        all.answered(2, None, start);
        assert!(!all.is_confirmed("AUSDT"));
        all.answered(3, None, start);
        assert!(all.is_confirmed("AUSDT"));
    }

    #[test]
    fn unanswered_message_is_retried() {
        let start = Instant::now();
        let late = start + ANSWERED_WITHIN;
        let mut all = of(&["AUSDT"]);
        all.next_message(start).expect("subscribe");
        assert_eq!(all.overdue(late), Some(Outcome::Unresponsive));
        all.answered(1, None, start);
        all.subscribe(&Arc::from("BUSDT"));
        all.next_message(start).expect("subscribe");
        assert_eq!(refused(all.overdue(late).expect("overdue")), 1);
        assert!(all.is_confirmed("AUSDT") && all.overdue(late).is_none());
        assert_eq!(params(all.next_message(late + FIRST_RETRY)), 4);
    }
}
