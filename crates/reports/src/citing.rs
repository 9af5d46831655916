//! Citations of reports: each report has one record and is written as JSON once, however many callers ask for it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::json;
use tribune_core::wire::object;
use tribune_core::{Document, DocumentId, Error, JsonObject, Result};

use super::aged::AgedReport;
use super::markdown;
use super::model::{IngestionStatus, Report, Writer};
use super::template::Template;
use tribune_citations::records::{Fingerprint, Records};
use tribune_citations::{Pool, record};

/// The scheme of the ids of reports.
pub(super) const SCHEME: &str = "report";
/// Where a record has the whole report, from which its page is drawn.
pub(super) const REPORT: &str = "report";

pub(super) struct Citing {
    pub(super) records: Records,
    /// The last cited report of each symbol.
    last: Mutex<HashMap<Arc<str>, Arc<CitedReport>>>,
    /// Taken while a new report is cited: many callers ask for it at once.
    turn: tokio::sync::Mutex<()>,
}

/// A report that has a citation record.
pub(super) struct CitedReport {
    pool: Pool,
    writer: Writer,
    /// A report that has become old gets a record of its own.
    status: IngestionStatus,
    pub(super) url: String,
    /// The answer while the status is ok: until then only the ages change.
    template: Option<Template>,
}

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

/// The id of a symbol's report; fails for a symbol that cannot be part of an id.
pub(super) fn report_id(symbol: &str) -> Result<DocumentId> {
    DocumentId::new(SCHEME, symbol)
        .map_err(|error| Error::invalid_argument(format!("this symbol cannot be part of an id: {error}")))
}

/// The report as text, not cited.
pub(super) fn document(report: &Report) -> Result<Document> {
    Ok(Document {
        id: report_id(&report.symbol)?,
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
        Self { records, last: Mutex::default(), turn: tokio::sync::Mutex::default() }
    }

    /// The report as text, cited.
    pub(super) async fn document(&self, pool: Pool, aged: &AgedReport) -> Result<Document> {
        let (document, cited) = self.cite(pool, aged).await?;
        Ok(Document { url: Some(cited.url.clone()), ..document })
    }

    /// The report as text, and its citation. The record has the same text and the whole report (about 5 KB), because the
    /// JSON has figures that the text leaves out.
    async fn cite(&self, pool: Pool, aged: &AgedReport) -> Result<(Document, Arc<CitedReport>)> {
        let report = aged.now();
        let document = document(&report)?;
        let fingerprint = Fingerprint::new(&document.id, &document.text);
        let record = || record(&document, Some(BTreeMap::from([(REPORT, &report)])));
        let url = self.records.cite(pool, fingerprint, record).await;
        let answer = |report| Answer { id: &document.id, title: &document.title, url: &url, report };
        let is_ok = report.ingestion.status == IngestionStatus::Ok;
        let cited = Arc::new(CitedReport {
            pool,
            writer: report.writer.clone(),
            status: report.ingestion.status,
            template: is_ok.then(|| Template::new(&aged.report, answer)).flatten(),
            url: url.clone(),
        });
        self.last.lock().insert(report.symbol.into(), cited.clone());
        Ok((document, cited))
    }

    pub(super) async fn citation(&self, pool: Pool, aged: &AgedReport) -> Result<Arc<CitedReport>> {
        if let Some(cited) = self.last(pool, aged) {
            return Ok(cited);
        }
        let _turn = self.turn.lock().await;
        match self.last(pool, aged) {
            Some(cited) => Ok(cited),
            None => Ok(self.cite(pool, aged).await?.1),
        }
    }

    /// The whole report with its citation, as JSON.
    pub(super) async fn answer(&self, pool: Pool, aged: &AgedReport) -> Result<String> {
        let cited = self.citation(pool, aged).await?;
        if let Some(template) = &cited.template {
            return Ok(template.fill(aged.since_ms()));
        }
        let report = aged.now();
        let answer = Answer { id: &report_id(&report.symbol)?, title: &title(&report), url: &cited.url, report };
        serde_json::to_string(&answer)
            .map_err(|error| Error::internal("the report cannot be written as JSON").caused_by(error))
    }

    /// The record of this report, if it is the last one cited of its symbol.
    fn last(&self, pool: Pool, aged: &AgedReport) -> Option<Arc<CitedReport>> {
        let report = &aged.report;
        let cited = self.last.lock().get(report.symbol.as_str())?.clone();
        let is_same = cited.writer == report.writer && cited.status == aged.status();
        (is_same && cited.pool.serves(pool)).then_some(cited)
    }
}

/// The fields of a report that its document has as metadata.
fn metadata(report: &Report) -> JsonObject {
    object(json!({
        "schemaVersion": report.schema_version,
        "writer": report.writer,
        "symbol": report.symbol,
        "base_asset": report.base_asset,
        "quote_asset": report.quote_asset,
        "venue": report.venue,
        "generated_at": report.generated_at,
        "data_age_ms": report.data_age_ms,
        "ingestion": report.ingestion,
    }))
}
