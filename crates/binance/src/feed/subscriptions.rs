//! The subscriptions of one connection: sent in few messages, answered one by one, and sent again after a refusal. A
//! refusal concerns only what its message asked for.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;

/// The last day of every symbol, as a topic of its own.
pub(super) const ALL_TICKERS: &str = "!miniTicker@arr";
/// Topics in one message: a hundred streams.
const TOPICS_A_MESSAGE: usize = 25;
/// A message that is not answered in this time never will be.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
const RETRY_AFTER: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
enum Method {
    Subscribe,
    Unsubscribe,
}

/// To subscribe to a topic, a symbol or [`ALL_TICKERS`], or to unsubscribe from it.
#[derive(Debug)]
struct Request {
    method: Method,
    topic: Arc<str>,
    /// Set once the exchange has refused it.
    not_before: Option<Instant>,
}

#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    queue: VecDeque<Request>,
    /// Messages that wait for their answers, by id, and when they were sent.
    sent: HashMap<u64, (Instant, Vec<Request>)>,
    confirmed: HashSet<Arc<str>>,
    last_id: u64,
}

impl Subscriptions {
    pub(super) fn subscribe(&mut self, topic: &Arc<str>) {
        self.queue.push_back(Request { method: Method::Subscribe, topic: topic.clone(), not_before: None });
    }

    pub(super) fn unsubscribe(&mut self, topic: &Arc<str>) {
        self.confirmed.remove(topic);
        self.queue.retain(|request| request.topic != *topic);
        self.queue.push_back(Request { method: Method::Unsubscribe, topic: topic.clone(), not_before: None });
    }

    /// The next message, with as many topics as fit. What was refused goes alone, so that one topic cannot spoil another.
    pub(super) fn next_message(&mut self, now: Instant) -> Option<String> {
        let at = self.queue.iter().position(|request| request.not_before.is_none_or(|at| at <= now))?;
        let (method, is_retry) = (self.queue[at].method, self.queue[at].not_before.is_some());
        let goes_with = |other: &&Request| other.method == method && other.not_before.is_none();
        let count = match is_retry {
            true => 1,
            false => self.queue.iter().skip(at).take(TOPICS_A_MESSAGE).take_while(goes_with).count(),
        };
        let requests: Vec<Request> = self.queue.drain(at..at + count).collect();
        let streams: Vec<String> = requests.iter().flat_map(|request| streams(&request.topic)).collect();
        self.last_id += 1;
        self.sent.insert(self.last_id, (now, requests));
        Some(serde_json::json!({"method": method, "params": streams, "id": self.last_id}).to_string())
    }

    /// The exchange has answered the message of this id; the topics that it refused, which are asked for again later.
    pub(super) fn answered(&mut self, id: u64, is_refused: bool, now: Instant) -> Vec<Arc<str>> {
        let (_, requests) = self.sent.remove(&id).unwrap_or((now, Vec::new()));
        let mut refused = Vec::new();
        for request in requests.into_iter().filter(|request| request.method == Method::Subscribe) {
            if self.is_overtaken(&request.topic) {
                continue;
            }
            if is_refused {
                refused.push(request.topic.clone());
                self.queue.push_back(Request { not_before: Some(now + RETRY_AFTER), ..request });
            } else {
                self.confirmed.insert(request.topic);
            }
        }
        refused
    }

    /// Whether a later request concerns the topic.
    fn is_overtaken(&self, topic: &str) -> bool {
        let sent = self.sent.values().flat_map(|(_, requests)| requests);
        self.queue.iter().chain(sent).any(|request| &*request.topic == topic)
    }

    /// Whether a message has waited too long for its answer.
    pub(super) fn is_unanswered(&self, now: Instant) -> bool {
        self.sent.values().any(|(at, _)| now.duration_since(*at) >= ANSWERED_WITHIN)
    }

    pub(super) fn is_confirmed(&self, topic: &str) -> bool {
        self.confirmed.contains(topic)
    }

    pub(super) fn are_all_confirmed(&self) -> bool {
        self.queue.is_empty() && self.sent.is_empty()
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

    #[test]
    fn refused_topics_are_retried_alone() {
        let start = Instant::now();
        let mut all = of(&["AUSDT", "BUSDT", ALL_TICKERS]);
        assert_eq!(params(all.next_message(start)), 9);
        assert_eq!(all.answered(1, true, start).len(), 3);
        assert!(!all.are_all_confirmed() && all.next_message(start).is_none());
        let later = start + RETRY_AFTER;
        for (id, streams) in [(2, 4), (3, 4), (4, 1)] {
            assert_eq!(params(all.next_message(later)), streams);
            assert_eq!(all.answered(id, id == 3, later).len(), usize::from(id == 3));
        }
        assert_eq!(["AUSDT", "BUSDT", ALL_TICKERS].map(|topic| all.is_confirmed(topic)), [true, false, true]);
        assert!(all.next_message(later).is_none());
        assert_eq!(params(all.next_message(later + RETRY_AFTER)), 4);
        all.answered(5, false, later);
        assert!(all.is_confirmed("BUSDT") && all.are_all_confirmed());
    }

    #[test]
    fn answer_to_an_unwanted_topic_is_ignored() {
        let start = Instant::now();
        let mut all = of(&["AUSDT"]);
        all.next_message(start).expect("subscribe");
        all.unsubscribe(&Arc::from("AUSDT"));
        all.subscribe(&Arc::from("AUSDT"));
        assert!(all.answered(1, false, start).is_empty());
        assert!(!all.is_confirmed("AUSDT"), "it will be taken away first");
        all.next_message(start).expect("unsubscribe");
        all.next_message(start).expect("subscribe");
        all.answered(2, false, start);
        assert!(!all.is_confirmed("AUSDT"));
        all.answered(3, false, start);
        assert!(all.is_confirmed("AUSDT"));
    }

    #[test]
    fn missing_answer_is_noticed() {
        let start = Instant::now();
        let mut all = of(&["AUSDT"]);
        all.next_message(start).expect("subscribe");
        assert!(!all.is_unanswered(start) && all.is_unanswered(start + ANSWERED_WITHIN));
        all.answered(1, false, start);
        assert!(!all.is_unanswered(start + ANSWERED_WITHIN));
    }
}
