//! Reports that are cited: each is kept once as it was, however many ask for it, and written as JSON once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde_json::json;
use tribune_core::{Cited, Document, DocumentId, Error, JsonObject, Result};

use super::markdown;
use super::model::{IngestionStatus, Report};
use super::reader::Aged;
use super::template::Template;
use crate::records::Records;
use crate::symbols::MarketId;

/// Where the record has the whole report: its page is drawn from that.
pub(super) const REPORT: &str = "report";

pub(super) struct Citing {
    records: Records,
    /// The last of each symbol.
    last: Mutex<HashMap<Arc<str>, Arc<Kept>>>,
}

/// A report that was kept as it was.
struct Kept {
    token: u64,
    sequence: u64,
    /// The same report is another when it has grown old.
    status: IngestionStatus,
    url: String,
    /// What is answered while it is ok: until then only its ages change.
    template: Option<Template>,
}

/// A report, and where it can be cited.
#[derive(serde::Serialize)]
struct Answer<'a> {
    id: &'a DocumentId,
    title: &'a str,
    url: &'a str,
    #[serde(flatten)]
    report: Report,
}

pub(super) fn title(report: &Report) -> String {
    let label = if report.simulated.is_some() { "SIMULATED " } else { "" };
    format!("{label}{} market report", report.symbol)
}

fn id_of(report: &Report) -> Result<DocumentId> {
    MarketId::Report(report.symbol.as_str().into()).document_id()
}

/// The report for a person or a model to read, not cited.
pub(super) fn document(report: &Report) -> Result<Document> {
    Ok(Document {
        id: id_of(report)?,
        title: title(report),
        text: markdown::render(report),
        url: None,
        as_of: report.generated_at.parse::<Timestamp>().ok(),
        metadata: metadata(report),
        passages: Vec::new(),
    })
}

impl Citing {
    pub(super) fn new(records: Records) -> Self {
        Self {
            records,
            last: Mutex::default(),
        }
    }

    pub(super) fn cited(&self, id: &DocumentId, record: &str) -> Result<Option<Cited>> {
        self.records.cited(id, record)
    }

    /// The report for a person or a model to read, cited: its record is the same word for word, and has the whole
    /// report beside it, some 5 KB: the figures that a text leaves out are cited too, by those who were given the JSON.
    pub(super) fn document(&self, aged: &Aged) -> Result<Document> {
        let report = aged.now();
        let mut document = document(&report)?;
        let mut record = document.clone();
        record.metadata.insert(REPORT.to_owned(), json!(report));
        let url = self.records.cite(&record);
        let answer = |report| Answer {
            id: &document.id,
            title: &document.title,
            url: &url,
            report,
        };
        let kept = Kept {
            token: report.writer.writer_token,
            sequence: report.writer.sequence,
            status: report.ingestion.status,
            template: aged.is_ok().then(|| Template::of(aged.report(), answer)).flatten(),
            url: url.clone(),
        };
        self.lock().insert(report.symbol.into(), Arc::new(kept));
        document.url = Some(url);
        Ok(document)
    }

    /// The address under which the report stays as it is.
    pub(super) fn citation(&self, aged: &Aged) -> Result<String> {
        match self.kept(aged) {
            Some(kept) => Ok(kept.url.clone()),
            None => Ok(self.document(aged)?.url.unwrap_or_default()),
        }
    }

    /// The whole report with its citation, as JSON.
    pub(super) fn answer(&self, aged: &Aged) -> Result<String> {
        let url = self.citation(aged)?;
        let kept = self.kept(aged);
        if let Some(template) = kept.as_ref().and_then(|kept| kept.template.as_ref()) {
            return Ok(template.filled(aged.since_ms()));
        }
        let report = aged.now();
        let answer = Answer {
            id: &id_of(&report)?,
            title: &title(&report),
            url: &url,
            report,
        };
        serde_json::to_string(&answer)
            .map_err(|error| Error::internal("a report could not be written as JSON").caused_by(error))
    }

    fn kept(&self, aged: &Aged) -> Option<Arc<Kept>> {
        let report = aged.report();
        let kept = self.lock().get(report.symbol.as_str())?.clone();
        let is_same = kept.token == report.writer.writer_token
            && kept.sequence == report.writer.sequence
            && kept.status == aged.status();
        is_same.then_some(kept)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Arc<str>, Arc<Kept>>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn metadata(report: &Report) -> JsonObject {
    let fields = [
        ("symbol", json!(report.symbol)),
        ("base_asset", json!(report.base_asset)),
        ("quote_asset", json!(report.quote_asset)),
        ("venue", json!(report.venue)),
        ("schemaVersion", json!(report.schema_version)),
        ("generated_at", json!(report.generated_at)),
        ("data_age_ms", json!(report.data_age_ms)),
        ("ingestion", json!(report.ingestion)),
        ("writer", json!(report.writer)),
    ];
    fields
        .map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .collect()
}
