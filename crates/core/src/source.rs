//! Anything that can be searched and fetched.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use jiff::civil::Date;
use tokio_util::sync::CancellationToken;
use tribune_page::View;

use crate::context::CallContext;
use crate::document::{Cited, Document, Hit};
use crate::error::Result;
use crate::id::DocumentId;
use crate::readers::Readers;
use crate::tool::Tool;

/// What a caller looks for.
#[derive(Debug, Clone)]
pub struct Query {
    pub text: String,
    /// At most this many hits.
    pub limit: usize,
}

/// True facts about what a source holds now; tool descriptions are rendered from them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SourceFacts {
    /// The source's name, which is also its id scheme.
    pub name: String,
    /// What the owner calls it: "Minutes of the parish council".
    pub title: String,
    /// One sentence by the owner on what it is and when it helps.
    pub description: Option<String>,
    /// Plural noun for what it holds: "documents", "speeches".
    pub noun: String,
    /// `None` where counting makes no sense (a live market).
    pub documents: Option<u64>,
    /// First and last date of what is held, where it has dates.
    pub dates: Option<(Date, Date)>,
    /// An id of it, where ids do not begin with its name.
    pub example_id: Option<String>,
    /// What it holds changes by itself, under the same ids.
    pub live: bool,
    /// Field names that a query may filter on as `field:value`, most common first.
    pub fields: Vec<String>,
}

impl SourceFacts {
    /// What its ids look like: `notes:…`.
    pub fn ids(&self) -> String {
        self.example_id.clone().unwrap_or_else(|| format!("{}:…", self.name))
    }

    /// How much it holds, in words: `1 speech`, `12,345 documents`; `None` where it is not known.
    pub fn counted(&self) -> Option<String> {
        let count = self.documents?;
        if count == 1 {
            let endings = [("ches", "ch"), ("ies", "y"), ("s", "")];
            let stem = |(plural, singular)| Some(format!("1 {}{singular}", self.noun.strip_suffix(plural)?));
            return endings.into_iter().find_map(stem).or_else(|| Some(format!("1 {}", self.noun)));
        }
        Some(format!("{} {}", thousands(count), self.noun))
    }
}

/// `12345` as `12,345`.
pub fn thousands(number: u64) -> String {
    tribune_page::number::grouped(&number.to_string())
}

/// Whether a source can answer now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceStatus {
    Ready,
    /// Answers, but not as well as it should; the reason is for the operator.
    Degraded(String),
    /// Cannot answer; the reason is for the operator.
    Unready(String),
}

/// A panel beside the chat. The markup, the style sheet and the script are part of the program, never data.
#[derive(Debug, Clone, Copy)]
pub struct Panel {
    /// Its heading.
    pub title: &'static str,
    /// What the chat can do with it, after "I": `manage your tasks`.
    pub ability: &'static str,
    /// Example questions.
    pub questions: &'static [&'static str],
    pub markup: &'static str,
    pub style: &'static str,
    /// A module that exports `class Panel`: its constructor takes the API of the page, and its `refresh()` is called
    /// at the start and after each tool call. It shows a count in the element `{source}-count`.
    pub script: &'static str,
}

/// The contract of a source.
///
/// - `fetch` answers `None` for an id it does not hold: "not mine" is not a failure.
/// - An error degrades this source's part of an answer only; the answer says so.
/// - Both observe the context's deadline and cancellation.
/// - CPU-heavy work does not run on the calling async thread.
#[async_trait]
pub trait Source: Send + Sync {
    /// The name in the configuration; the scheme of its ids; the profile `/mcp/{name}`.
    fn name(&self) -> &str;

    /// Whether ids of this scheme are this source's to answer.
    fn owns(&self, scheme: &str) -> bool {
        scheme == self.name()
    }

    /// Whether each user sees their own data. Hidden from anonymous callers.
    fn is_personal(&self) -> bool {
        false
    }

    /// Who may use it; for everybody else it does not exist.
    fn readers(&self) -> &Readers {
        Readers::EVERYBODY
    }

    /// Best hits first, at most `query.limit`. Shared, so that a source may keep what it found.
    async fn search(&self, query: &Query, cx: &CallContext) -> Result<Arc<[Hit]>>;

    async fn fetch(&self, id: &DocumentId, cx: &CallContext) -> Result<Option<Document>>;

    /// A document as it was when it was cited. `None` if the source's documents do not change under
    /// their ids, or if it keeps no such record.
    async fn cited(&self, _id: &DocumentId, _record: &str) -> Result<Option<Cited>> {
        Ok(None)
    }

    /// How a page shows a document: as it is now, or, with the time of its record, as it was cited, from the record
    /// alone. `None` if there is only its text. Live pages ask repeatedly with the same document: current data is read
    /// again, and nothing is cited.
    async fn view(&self, _document: &Document, _cited: Option<Timestamp>, _cx: &CallContext) -> Result<Option<View>> {
        Ok(None)
    }

    /// Documents like the one of this id, best first, without itself. `None` if the id is not held,
    /// or if the source does not compare its documents.
    async fn related(&self, _id: &DocumentId, _limit: usize, _cx: &CallContext) -> Result<Option<Arc<[Hit]>>> {
        Ok(None)
    }

    /// Whether [`Source::related`] ever answers.
    fn relates(&self) -> bool {
        false
    }

    /// Descriptions that all callers share are made of these, so they are about public documents only.
    fn facts(&self) -> SourceFacts;

    /// When its data last changed or was last confirmed; `None` if unknown.
    fn updated(&self) -> Option<Timestamp> {
        None
    }

    fn status(&self) -> SourceStatus {
        SourceStatus::Ready
    }

    /// Where its data comes from, for the operator: a folder, or an address without secrets.
    fn origin(&self) -> Option<String> {
        None
    }

    /// Finds what the operator should correct, such as a folder that does not exist, without connecting to anything.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Grows whenever [`Source::facts`] or [`Source::tools`] may have changed. Read on every
    /// request, so it must cost no more than an atomic load.
    fn revision(&self) -> u64 {
        0
    }

    /// The source's background task: follows a folder, polls a feed, keeps a connection open. It runs until `stop` is
    /// cancelled; `Ok` before that means there is nothing left to do. The server restarts it after an error or a
    /// panic, and reports the source as degraded until it runs again.
    async fn run(self: Arc<Self>, _stop: CancellationToken) -> Result<()> {
        Ok(())
    }

    /// A panel beside the chat, for signed-in users.
    fn panel(&self) -> Option<Panel> {
        None
    }

    /// Tools of its own, with specs rendered from the data as it is now.
    fn tools(self: Arc<Self>) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    /// Tools that change what the source holds: offered in the profile `admin` alone, to callers who
    /// have shown the administrator's token or sit at this machine.
    fn admin_tools(self: Arc<Self>) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_worded() {
        let counted = |noun: &str, count| {
            let facts = SourceFacts { noun: noun.to_owned(), documents: count, ..SourceFacts::default() };
            facts.counted()
        };
        assert_eq!(counted("speeches", Some(1)).as_deref(), Some("1 speech"));
        assert_eq!(counted("entries", Some(1)).as_deref(), Some("1 entry"));
        assert_eq!(counted("documents", Some(1)).as_deref(), Some("1 document"));
        assert_eq!(counted("documents", Some(1_234_567)).as_deref(), Some("1,234,567 documents"));
        assert_eq!(counted("documents", Some(999)).as_deref(), Some("999 documents"));
        assert_eq!(counted("markets", None), None);
    }
}
