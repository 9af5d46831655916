//! tantivy alone, used as in its examples: one field, the best ten.

use std::fs;

use anyhow::{Context, Result};
use tantivy::{
    Index, IndexReader, ReloadPolicy, TantivyDocument, Term,
    collector::TopDocs,
    query::{BooleanQuery, Occur, Query, TermQuery},
    schema::{Field, IndexRecordOption, STORED, Schema, TextFieldIndexing, TextOptions, Value},
    tokenizer::{
        AsciiFoldingFilter, Language, LowerCaser, RemoveLongFilter, SimpleTokenizer, Stemmer, TextAnalyzer, TokenStream,
    },
};

use super::{
    engines::{Caller, LIMIT, Opened},
    texts::{Corpus, folder_bytes},
};

const FOLDER: &str = "tantivy";
const ANALYZER: &str = "english";
/// Indexed like Tribune.
const THREADS: usize = 2;
const ARENA_BYTES: usize = THREADS * 48 * 1024 * 1024;

/// Tribune's tokenizer, so that both rank by the same words.
fn analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(SimpleTokenizer::default())
        .filter(RemoveLongFilter::limit(100))
        .filter(LowerCaser)
        .filter(AsciiFoldingFilter)
        .filter(Stemmer::new(Language::English))
        .build()
}

struct Fields {
    schema: Schema,
    id: Field,
    text: Field,
}

fn fields() -> Fields {
    let mut schema = Schema::builder();
    let indexing =
        TextFieldIndexing::default().set_tokenizer(ANALYZER).set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let text = TextOptions::default().set_indexing_options(indexing).set_stored();
    Fields {
        id: schema.add_text_field("id", STORED),
        text: schema.add_text_field("text", text),
        schema: schema.build(),
    }
}

pub fn index(corpus: &Corpus) -> Result<u64> {
    let dir = corpus.index(FOLDER);
    fs::create_dir_all(&dir)?;
    let fields = fields();
    let index = Index::create_in_dir(&dir, fields.schema)?;
    index.tokenizers().register(ANALYZER, analyzer());
    let mut writer = index.writer_with_num_threads(THREADS, ARENA_BYTES)?;
    for document in corpus.documents()? {
        let document = document?;
        for passage in document.passages() {
            let mut entry = TantivyDocument::new();
            entry.add_text(fields.id, &document.id);
            entry.add_text(fields.text, passage);
            writer.add_document(entry)?;
        }
    }
    writer.commit()?;
    writer.wait_merging_threads()?;
    folder_bytes(&dir)
}

pub struct Open {
    reader: IndexReader,
    fields: Fields,
}

impl Open {
    pub fn new(corpus: &Corpus) -> Result<Self> {
        let index = Index::open_in_dir(corpus.index(FOLDER))?;
        index.tokenizers().register(ANALYZER, analyzer());
        let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        Ok(Self { reader, fields: fields() })
    }
}

impl Opened for Open {
    fn caller(&self) -> Result<Caller<'_>> {
        let searcher = self.reader.searcher();
        let mut analyzer = analyzer();
        Ok(Box::new(move |question| {
            let mut words: Vec<(Occur, Box<dyn Query>)> = Vec::new();
            analyzer.token_stream(&question.text).process(&mut |token| {
                let term = Term::from_field_text(self.fields.text, &token.text);
                words.push((Occur::Should, Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))));
            });
            let best = TopDocs::with_limit(LIMIT).order_by_score();
            let found = searcher.search(&BooleanQuery::new(words), &best)?;
            for (_, address) in &found {
                let entry: TantivyDocument = searcher.doc(*address)?;
                let text = entry.get_first(self.fields.text).and_then(|value| value.as_str());
                std::hint::black_box(text.context("an entry without text")?);
            }
            Ok(found.len())
        }))
    }
}
