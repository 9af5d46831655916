//! `ingest_hansard_file` and `ingest_hansard_directory`: copy speeches from the one ingestion folder into the
//! source's folder, and index them. Here are the two tools; `ingestion` is one call.

mod ingestion;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tribune_core::wire::object;
use tribune_core::{
    CallContext, CallDisplay, Error, ErrorKind, Hints, JsonObject, Principal, Result, Tool, ToolOutput, ToolSpec,
};

pub use ingestion::Incoming;
pub(crate) use ingestion::Ingestion;
use ingestion::Summary;

use crate::holdings::output_schema;

/// What happens to a file whose speech is indexed already.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Policy {
    #[default]
    Skip,
    Update,
    Error,
}

pub(crate) struct IngestTool {
    spec: ToolSpec,
    ingestion: Ingestion,
    directory: bool,
}

impl IngestTool {
    pub(crate) fn new(ingestion: Ingestion, name: &str, directory: bool) -> Self {
        Self { spec: spec(name, directory), ingestion, directory }
    }
}

#[async_trait]
impl Tool for IngestTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: JsonObject, cx: &CallContext) -> Result<ToolOutput> {
        if cx.principal == Principal::Anonymous {
            return Err(Error::new(
                ErrorKind::Forbidden,
                "ingesting speeches needs the administrator's token".to_owned(),
            ));
        }
        let given = args.get("path").and_then(Value::as_str).unwrap_or(".").to_owned();
        let policy = args.get("duplicates").and_then(|policy| Policy::deserialize(policy).ok());
        let (ingestion, directory) = (self.ingestion.clone(), self.directory);
        let (progress, cancel) = (cx.progress.clone(), cx.cancel.clone());
        let work = move || {
            let path = ingestion.resolve(&given, directory)?;
            ingestion.run(&path, policy.unwrap_or_default(), &progress, &cancel)
        };
        let summary = tokio::task::spawn_blocking(work)
            .await
            .map_err(|e| Error::internal("ingesting failed unexpectedly; the log has the details").caused_by(e))??;
        ToolOutput::structured(&summary, summary.counts.succeeded as usize)
    }
}

fn spec(name: &str, directory: bool) -> ToolSpec {
    let (what, title, example) = if directory {
        ("every speech file of a folder, and of the folders in it,", "Ingest a folder of speeches", "2024")
    } else {
        ("the speeches of one file", "Ingest a file of speeches", "2024/may.md")
    };
    let mut properties = json!({
        "path": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1000,
            "description": format!("Below the folder that the configuration names for ingesting, for example \"{example}\"."),
        },
        "duplicates": {
            "type": "string",
            "enum": ["skip", "update", "error"],
            "default": "skip",
            "description": "A speech whose text or id is held already: leave it out, let the new file take the old one's place, or count it as failed.",
        },
    });
    if directory {
        properties["path"]["default"] = json!(".");
    }
    ToolSpec {
        name: name.to_owned(),
        title: title.to_owned(),
        description: format!(
            "Take {what} into this collection: they are copied, checked and indexed.\n\
             Use this when: an administrator asks to add speeches that lie in the folder for ingesting.\n\
             Do not use: to search or to read speeches.\n\
             Limitations: reads nothing outside that folder; Markdown with front matter, Hansard XML, JSONL and CSV. One bad file never stops the rest.\n\
             Answers with total_files, succeeded, skipped, failed and total_chunks_created, and names what was skipped or failed and why."
        ),
        input_schema: object(json!({
            "type": "object",
            "properties": properties,
            "required": if directory { json!([]) } else { json!(["path"]) },
        })),
        output_schema: output_schema::<Summary>(),
        // With `update` a file may replace another.
        hints: Hints { read_only: false, destructive: true, idempotent: true, open_world: false },
        icon: None,
        display: CallDisplay::default(),
        aliases: vec![("file_path", "path"), ("directory_path", "path"), ("duplicate_policy", "duplicates")],
    }
}
