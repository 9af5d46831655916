//! What one connection is to bring: asked for in few messages, answered one by one, and asked for again where the
//! exchange did not agree. A refusal concerns what was asked for, and nothing else.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The last day of every symbol, as a topic of its own.
pub(super) const ALL_TICKERS: &str = "!miniTicker@arr";
/// Topics in one message: a hundred streams.
const TOPICS_A_MESSAGE: usize = 25;
/// A message that is not answered in this time never will be.
const ANSWERED_WITHIN: Duration = Duration::from_secs(10);
const FIRST_RETRY: Duration = Duration::from_millis(500);
const MAX_RETRY: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Subscribe,
    Unsubscribe,
}

impl Wish {
    const fn method(self) -> &'static str {
        match self {
            Self::Subscribe => "SUBSCRIBE",
            Self::Unsubscribe => "UNSUBSCRIBE",
        }
    }
}

/// A symbol, or [`ALL_TICKERS`], and what is wished of it.
#[derive(Debug, Clone)]
struct Saying {
    wish: Wish,
    topic: Arc<str>,
    /// How often that was refused.
    refusals: u32,
}

#[derive(Debug)]
struct Asked {
    sayings: Vec<Saying>,
    at: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Waiting,
    /// With the message of this id.
    Asked(u64),
    Taken,
    Refused,
}

/// What an answer, or none, means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Taken,
    /// They are not sent, and are asked for again later.
    Refused {
        topics: Vec<Arc<str>>,
        why: String,
    },
    /// Nothing that was ever asked has been answered, and nothing came.
    Deaf,
}

#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    to_say: VecDeque<Saying>,
    asked: HashMap<u64, Asked>,
    standings: HashMap<Arc<str>, Standing>,
    retries: Vec<(Instant, Saying)>,
    last_id: u64,
    /// Something was answered, or comes without an answer.
    is_heard: bool,
}

impl Subscriptions {
    pub(super) fn subscribe(&mut self, topic: &Arc<str>) {
        self.standings.insert(topic.clone(), Standing::Waiting);
        self.say(Wish::Subscribe, topic);
    }

    pub(super) fn unsubscribe(&mut self, topic: &Arc<str>) {
        self.standings.remove(topic);
        self.retries.retain(|(_, saying)| saying.topic != *topic);
        self.say(Wish::Unsubscribe, topic);
    }

    fn say(&mut self, wish: Wish, topic: &Arc<str>) {
        self.to_say.push_back(Saying {
            wish,
            topic: topic.clone(),
            refusals: 0,
        });
    }

    /// As much as goes together into one message. What was refused goes alone, so that one cannot spoil another.
    pub(super) fn next_message(&mut self, now: Instant) -> Option<String> {
        self.take_up_retries(now);
        let first = self.to_say.front()?;
        let count = match first.refusals {
            0 => {
                let goes_with = |other: &&Saying| other.wish == first.wish && other.refusals == 0;
                let together = self.to_say.iter().take_while(goes_with);
                together.count().min(TOPICS_A_MESSAGE)
            }
            _ => 1,
        };
        let wish = first.wish;
        let sayings: Vec<Saying> = self.to_say.drain(..count).collect();
        self.last_id += 1;
        let id = self.last_id;
        for saying in sayings.iter().filter(|_| wish == Wish::Subscribe) {
            if let Some(standing) = self.standings.get_mut(&saying.topic) {
                *standing = Standing::Asked(id);
            }
        }
        let streams: Vec<String> = sayings.iter().flat_map(|saying| streams(&saying.topic)).collect();
        self.asked.insert(id, Asked { sayings, at: now });
        Some(serde_json::json!({"method": wish.method(), "params": streams, "id": id}).to_string())
    }

    fn take_up_retries(&mut self, now: Instant) {
        let due = self.retries.extract_if(.., |(at, _)| *at <= now);
        self.to_say.extend(due.map(|(_, saying)| saying));
    }

    /// The exchange has answered the message of this id.
    pub(super) fn answered(&mut self, id: u64, error: Option<String>, now: Instant) -> Verdict {
        self.is_heard = true;
        match (self.asked.remove(&id), error) {
            (Some(asked), Some(why)) => self.refused(id, asked, why, now),
            (Some(asked), None) => {
                for saying in asked.sayings {
                    self.settle(id, &saying.topic, Standing::Taken);
                }
                Verdict::Taken
            }
            (None, _) => Verdict::Taken,
        }
    }

    /// Something that was asked for has come.
    pub(super) fn note_market(&mut self) {
        self.is_heard = true;
    }

    /// A message that has waited too long for its answer counts as refused.
    pub(super) fn overdue(&mut self, now: Instant) -> Option<Verdict> {
        let is_overdue = |asked: &Asked| now.duration_since(asked.at) >= ANSWERED_WITHIN;
        let id = *self.asked.iter().find(|(_, asked)| is_overdue(asked))?.0;
        if !self.is_heard {
            return Some(Verdict::Deaf);
        }
        let asked = self.asked.remove(&id)?;
        Some(self.refused(id, asked, "it was not answered".to_owned(), now))
    }

    fn refused(&mut self, id: u64, asked: Asked, why: String, now: Instant) -> Verdict {
        let mut topics = Vec::new();
        for saying in asked.sayings {
            // What has been asked for again since, or is no longer wanted, waits for another answer or for none.
            if self.settle(id, &saying.topic, Standing::Refused) {
                topics.push(saying.topic.clone());
                let wait = (FIRST_RETRY * 2u32.pow(saying.refusals.min(10))).min(MAX_RETRY);
                let again = Saying {
                    refusals: saying.refusals.saturating_add(1),
                    ..saying
                };
                self.retries.push((now + wait, again));
            }
        }
        if topics.is_empty() {
            return Verdict::Taken;
        }
        Verdict::Refused { topics, why }
    }

    fn settle(&mut self, id: u64, topic: &str, as_: Standing) -> bool {
        match self.standings.get_mut(topic) {
            Some(standing) if *standing == Standing::Asked(id) => {
                *standing = as_;
                true
            }
            _ => false,
        }
    }

    /// Whether the exchange has agreed to send it.
    pub(super) fn has_taken(&self, topic: &str) -> bool {
        self.standings.get(topic) == Some(&Standing::Taken)
    }

    /// Whether it has agreed to send everything that was ever asked for.
    pub(super) fn has_taken_all(&self) -> bool {
        self.standings.values().all(|standing| *standing == Standing::Taken)
    }

    /// Whether everything has been asked for and answered once, in whatever way.
    pub(super) fn is_settled(&self) -> bool {
        let is_first = |saying: &Saying| saying.refusals == 0;
        !self.to_say.iter().any(is_first) && !self.asked.values().flat_map(|asked| &asked.sayings).any(is_first)
    }

    /// Whether nothing has been said yet.
    pub(super) fn is_untouched(&self) -> bool {
        self.last_id == 0
    }
}

fn streams(topic: &str) -> Vec<String> {
    if topic == ALL_TICKERS {
        return vec![topic.to_owned()];
    }
    let name = topic.to_lowercase();
    ["depth@100ms", "bookTicker", "trade", "aggTrade"]
        .iter()
        .map(|kind| format!("{name}@{kind}"))
        .collect()
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

    fn refused(verdict: Verdict) -> usize {
        match verdict {
            Verdict::Refused { topics, .. } => topics.len(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_refused_is_asked_for_again_alone_and_spoils_nothing() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut all = of(&["AUSDT", "BUSDT", ALL_TICKERS]);
        assert_eq!(params(all.next_message(start)), 9);
        assert_eq!(refused(all.answered(1, Some("busy".to_owned()), start)), 3);
        assert!(all.is_settled() && !all.has_taken_all() && all.next_message(at(499)).is_none());
        for (id, streams) in [(2, 4), (3, 4), (4, 1)] {
            assert_eq!(params(all.next_message(at(500))), streams);
            let why = (id == 3).then(|| "Invalid".to_owned());
            let verdict = all.answered(id, why, at(500));
            assert_eq!(matches!(verdict, Verdict::Refused { .. }), id == 3);
        }
        assert_eq!(
            ["AUSDT", "BUSDT", ALL_TICKERS].map(|topic| all.has_taken(topic)),
            [true, false, true]
        );
        assert!(all.next_message(at(1_499)).is_none());
        assert_eq!(params(all.next_message(at(1_500))), 4);
        assert!(
            all.is_settled(),
            "who waits for the first answers need not wait for this one"
        );
        all.answered(5, None, at(1_500));
        assert!(all.has_taken("BUSDT") && all.has_taken_all());
    }

    #[test]
    fn an_answer_to_what_is_no_longer_wanted_says_nothing() {
        let start = Instant::now();
        let mut all = of(&["AUSDT"]);
        all.next_message(start).expect("subscribe");
        all.unsubscribe(&Arc::from("AUSDT"));
        all.subscribe(&Arc::from("AUSDT"));
        assert_eq!(all.answered(1, None, start), Verdict::Taken);
        assert!(!all.has_taken("AUSDT"), "it will be taken away first");
        all.next_message(start).expect("unsubscribe");
        all.next_message(start).expect("subscribe");
        all.answered(2, None, start);
        assert!(!all.has_taken("AUSDT"));
        all.answered(3, None, start);
        assert!(all.has_taken("AUSDT"));
    }

    #[test]
    fn one_message_without_an_answer_is_asked_again_and_none_at_all_is_a_deaf_exchange() {
        let start = Instant::now();
        let late = start + ANSWERED_WITHIN;
        let mut all = of(&["AUSDT"]);
        all.next_message(start).expect("subscribe");
        assert_eq!(all.overdue(late), Some(Verdict::Deaf));
        all.answered(1, None, start);
        all.subscribe(&Arc::from("BUSDT"));
        all.next_message(start).expect("subscribe");
        assert_eq!(refused(all.overdue(late).expect("overdue")), 1);
        assert!(all.has_taken("AUSDT") && all.overdue(late).is_none());
        assert_eq!(params(all.next_message(late + FIRST_RETRY)), 4);
    }
}
