//! Files whose text is extracted in child processes: PDF, office documents, mail and others.

use std::sync::Arc;

use tribune_extract::{Extracted, Problem, Receive, Workers, worker};

use super::{Draft, Format, Input, Markup, Sink, Stop, markdown, read_bytes};

/// Counts up when the same files give other text.
const VERSION: u32 = 1;

pub(super) struct Files {
    pub(super) format: tribune_extract::Format,
    pub(super) workers: Arc<Workers>,
}

impl Format for Files {
    fn extensions(&self) -> &'static [&'static str] {
        self.format.extensions()
    }

    fn holds_many(&self) -> bool {
        self.format.holds_many()
    }

    fn version(&self) -> u32 {
        VERSION
    }

    fn read(&self, input: &Input<'_>, sink: &mut dyn Sink) -> Result<(), Stop> {
        let bytes = match read_bytes(input.path, worker::MAX_FILE_BYTES) {
            Ok(bytes) => bytes,
            Err(problem) => {
                sink.fault(None, true, problem);
                return Ok(());
            }
        };
        let max_text_bytes = usize::try_from(input.max_document_bytes).unwrap_or(usize::MAX);
        let mut documents = Documents { input, sink };
        self.workers.extract(self.format, bytes, max_text_bytes, &mut documents).map_err(|_| Stop)
    }
}

/// Makes drafts of what is extracted.
struct Documents<'a> {
    input: &'a Input<'a>,
    sink: &'a mut dyn Sink,
}

impl Receive for Documents<'_> {
    fn extracted(&mut self, extracted: Extracted) -> Result<(), tribune_extract::Stop> {
        let Extracted { within, title, text, is_markdown, places, mut fields } = extracted;
        let mut place = self.input.relative.to_owned();
        if !within.is_empty() {
            place.push('/');
            place.push_str(&within);
        }
        if let Some(title) = title.filter(|title| !title.trim().is_empty()) {
            fields.insert("title".to_owned(), title.into());
        }
        let draft = Draft {
            heading: is_markdown.then(|| markdown::title(&text)).flatten(),
            file_title: Some(markdown::file_stem(&place)),
            place,
            text: Some(text),
            fields,
            markup: if is_markdown { Markup::Markdown } else { Markup::Plain },
            places,
            is_row: false,
        };
        self.input.give(None, draft, Vec::new(), self.sink).map_err(|Stop| tribune_extract::Stop)
    }

    fn problem(&mut self, problem: Problem) -> Result<(), tribune_extract::Stop> {
        self.sink.unreadable(problem.reason, problem.to_string());
        Ok(())
    }

    fn is_wanted(&self) -> bool {
        self.sink.is_wanted()
    }
}
