//! The results of the questions, for people and for programs.

use serde_json::{Value, json};

use super::DEPTH;
use super::list::Question;
use crate::commands::eval::metrics::{Figures, Judgements, SHORT, Scores};
use crate::commands::plural;

/// Questions shown that were not answered by their first result; the rest are counted.
const MAX_SHOWN: usize = 50;

/// A document that answers a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Expected {
    id: String,
    /// Whether any source holds it.
    held: bool,
}

impl Expected {
    pub fn new(id: &str, held: bool) -> Self {
        Self { id: id.to_owned(), held }
    }
}

/// One question and its result.
pub struct QuestionResult {
    line: u64,
    question: String,
    expected: Vec<Expected>,
    found: Vec<String>,
    scores: Scores,
    ms: f64,
}

impl QuestionResult {
    pub fn new(question: &Question, mut expected: Vec<Expected>, found: Vec<String>, ms: f64) -> Self {
        // The same document may be named twice, with its source and without.
        let mut seen = std::collections::HashSet::new();
        expected.retain(|expected| seen.insert(expected.id.clone()));
        let judged: Judgements = expected.iter().map(|expected| (expected.id.clone(), 1)).collect();
        Self {
            line: question.line,
            question: question.text.clone(),
            scores: Scores::of(&found, &judged),
            expected,
            found,
            ms,
        }
    }

    /// Counted from 1.
    fn rank(&self, expected: &Expected) -> Option<usize> {
        self.found.iter().position(|id| *id == expected.id).map(|at| at + 1)
    }

    fn is_within(&self, depth: usize) -> bool {
        let mut ranks = self.expected.iter().filter_map(|expected| self.rank(expected));
        ranks.any(|rank| rank <= depth)
    }

    fn json(&self) -> Value {
        let expected = self.expected.iter();
        let expected: Vec<Value> = expected
            .map(|expected| json!({"id": expected.id, "rank": self.rank(expected), "held": expected.held}))
            .collect();
        json!({
            "line": self.line,
            "query": self.question,
            "expected": expected,
            "first": self.found.first(),
        })
    }

    fn readable(&self) -> String {
        let mut text = format!("  line {}: {}\n", self.line, self.question);
        for expected in &self.expected {
            let place = match self.rank(expected) {
                Some(rank) => format!("came as number {rank}"),
                None if expected.held => format!("is not among the first {DEPTH}"),
                None => "is in no source; check the id".to_owned(),
            };
            text.push_str(&format!("    {} {place}\n", expected.id));
        }
        match self.found.first() {
            Some(first) => text.push_str(&format!("    first was {first}\n")),
            None => text.push_str("    nothing was found\n"),
        }
        text
    }
}

pub struct Outcome {
    pub file: String,
    pub sources: Vec<String>,
    pub results: Vec<QuestionResult>,
    pub notes: Vec<String>,
}

impl Outcome {
    pub fn mean(&self) -> Scores {
        Scores::mean(self.results.iter().map(|result| result.scores))
    }

    fn figures(&self) -> Figures {
        let times: Vec<f64> = self.results.iter().map(|result| result.ms).collect();
        Figures::new(self.mean(), &times)
    }

    fn hits(&self, depth: usize) -> f64 {
        let hits = self.results.iter().filter(|result| result.is_within(depth)).count();
        hits as f64 / self.results.len().max(1) as f64
    }

    /// Those that the first result does not answer.
    fn misses(&self) -> Vec<&QuestionResult> {
        self.results.iter().filter(|result| !result.is_within(1)).collect()
    }

    pub fn json(&self) -> Value {
        let misses: Vec<_> = self.misses().into_iter().map(QuestionResult::json).collect();
        let figures = self.figures();
        json!({
            "queries": self.results.len(),
            "sources": self.sources,
            "hits@1": self.hits(1),
            "hits@10": self.hits(SHORT),
            "mrr@10": figures.scores.mrr_10,
            "ndcg@10": figures.scores.ndcg_10,
            "p50_ms": figures.p50_ms,
            "p99_ms": figures.p99_ms,
            "misses": misses,
            "notes": self.notes,
        })
    }

    pub fn readable(&self) -> String {
        let figures = self.figures();
        let mut text = format!(
            "{} of {} asked of {}\n\nhits@1  hits@10  MRR@10  nDCG@10  p50 ms  p99 ms\n",
            plural(self.results.len() as u64, "question"),
            self.file,
            self.sources.join(", ")
        );
        text.push_str(&format!(
            "{:>6.4}  {:>7.4}  {:>6.4}  {:>7.4}  {:>6.2}  {:>6.2}\n",
            self.hits(1),
            self.hits(SHORT),
            figures.scores.mrr_10,
            figures.scores.ndcg_10,
            figures.p50_ms,
            figures.p99_ms
        ));
        let misses = self.misses();
        if misses.is_empty() {
            text.push_str("\nevery question is answered by its first result\n");
        } else {
            let count = plural(misses.len() as u64, "question");
            text.push_str(&format!("\nnot answered by the first result: {count}\n"));
        }
        for result in misses.iter().take(MAX_SHOWN) {
            text.push_str(&result.readable());
        }
        if misses.len() > MAX_SHOWN {
            let more = misses.len() - MAX_SHOWN;
            text.push_str(&format!("  and {more} more; --per-query FILE writes them all\n"));
        }
        for note in &self.notes {
            text.push_str(&format!("note: {note}\n"));
        }
        text
    }

    /// One object for each question.
    pub fn lines(&self) -> impl Iterator<Item = Value> {
        self.results.iter().map(|result| {
            let mut line = result.json();
            line["ndcg@10"] = result.scores.ndcg_10.into();
            line["mrr@10"] = result.scores.mrr_10.into();
            line["ms"] = result.ms.into();
            line["found"] = result.found.iter().take(SHORT).cloned().collect();
            line
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(expected: &[Expected], found: &[&str]) -> QuestionResult {
        let question = Question { line: 4, text: "who".to_owned(), expected: Vec::new() };
        let found = found.iter().map(|id| (*id).to_owned()).collect();
        QuestionResult::new(&question, expected.to_vec(), found, 1.0)
    }

    #[test]
    fn misses_say_where_the_expected_document_came() {
        let outcome = Outcome {
            file: "q.tsv".to_owned(),
            sources: vec!["n".to_owned()],
            results: vec![
                result(&[Expected::new("n:a", true)], &["n:a", "n:b"]),
                result(&[Expected::new("n:a", true), Expected::new("n:a", true)], &["n:b", "n:a"]),
                result(&[Expected::new("n:c", true)], &["n:b"]),
                result(&[Expected::new("x", false)], &[]),
            ],
            notes: Vec::new(),
        };
        let json = outcome.json();
        assert_eq!((&json["hits@1"], &json["hits@10"], &json["mrr@10"]), (&json!(0.25), &json!(0.5), &json!(0.375)));
        assert_eq!(json["misses"][0]["expected"], json!([{"id": "n:a", "rank": 2, "held": true}]));
        let text = outcome.readable();
        for told in ["n:a came as number 2", "n:c is not among the first 50", "x is in no source", "nothing was found"]
        {
            assert!(text.contains(told), "{text}");
        }
    }
}
