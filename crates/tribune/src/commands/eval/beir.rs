//! A dataset in BEIR layout: `corpus.jsonl`, `queries.jsonl` and `qrels/test.tsv`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use serde::Deserialize;

use super::lines::each_line;
use super::metrics::Judgements;

/// The questions of a dataset and their judgements.
pub struct Dataset {
    /// The folder's name.
    pub name: String,
    pub corpus: PathBuf,
    /// Those with at least one relevant document, in the order of the file.
    pub queries: Vec<Query>,
    /// Queries that judgements name and the dataset lacks.
    pub unknown_queries: usize,
}

pub struct Query {
    pub id: String,
    pub text: String,
    pub judged: Judgements,
}

#[derive(Deserialize)]
struct QueryLine {
    #[serde(rename = "_id")]
    id: Id,
    text: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Id {
    Text(String),
    Number(u64),
}

impl Dataset {
    /// At most `limit` queries.
    pub fn open(dir: &Path, split: &str, limit: usize) -> anyhow::Result<Self> {
        // The path as the system knows it: `.` has a name too.
        let dir = dir
            .canonicalize()
            .map_err(|error| anyhow!("cannot read the dataset {} ({error}); --beir takes its folder", dir.display()))?;
        let corpus = dir.join("corpus.jsonl");
        if !corpus.is_file() {
            bail!(
                "{} does not exist; it has the dataset's documents, one JSON object per line: {{\"_id\", \"title\", \"text\"}}",
                corpus.display()
            );
        }
        let qrels = judgement_file(&dir, split)?;
        let mut judged = read_judgements(&qrels)?;
        if judged.is_empty() {
            bail!("{} has no relevance above 0, so there is nothing to measure", qrels.display());
        }
        let queries_file = dir.join("queries.jsonl");
        let mut queries = read_queries(&queries_file, &mut judged)?;
        if queries.is_empty() {
            bail!(
                "no query of {} has a judgement in {}; check that they belong to the same dataset",
                queries_file.display(),
                qrels.display()
            );
        }
        queries.truncate(limit);
        let name = dir.file_name().map(|name| name.to_string_lossy().into_owned());
        Ok(Self { name: name.unwrap_or_else(|| "dataset".to_owned()), corpus, queries, unknown_queries: judged.len() })
    }
}

fn judgement_file(dir: &Path, split: &str) -> anyhow::Result<PathBuf> {
    let folder = dir.join("qrels");
    let file = folder.join(format!("{split}.tsv"));
    if file.is_file() {
        return Ok(file);
    }
    let names = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut splits: Vec<String> =
        names.filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".tsv")?.to_owned())).collect();
    splits.sort();
    if splits.is_empty() {
        bail!(
            "{} does not exist; it has the judgements, one per line: query id, document id and relevance, separated by tabs",
            file.display()
        );
    }
    bail!("{} does not exist; choose with --split one of: {}", file.display(), splits.join(", "));
}

/// Judgements of each query that has a relevant document.
fn read_judgements(path: &Path) -> anyhow::Result<HashMap<String, Judgements>> {
    let mut judged: HashMap<String, Judgements> = HashMap::new();
    each_line(path, "the dataset's judgements", |number, line| {
        let fields: Vec<&str> = line.split('\t').map(str::trim).collect();
        let [query, document, score] = fields.as_slice() else {
            bail!("expected query id, document id and relevance, separated by tabs");
        };
        let Ok(relevance) = score.parse::<f64>() else {
            if number == 1 {
                return Ok(()); // the header
            }
            bail!("the relevance `{score}` is not a number");
        };
        if relevance.fract() != 0.0 {
            bail!("the relevance `{score}` is not a whole number such as 0, 1 or 2");
        }
        let of_query = judged.entry((*query).to_owned()).or_default();
        of_query.insert((*document).to_owned(), relevance as i64);
        Ok(())
    })?;
    judged.retain(|_, documents| documents.values().any(|relevance| *relevance > 0));
    Ok(judged)
}

/// Takes from `judged` what it finds the queries of.
fn read_queries(path: &Path, judged: &mut HashMap<String, Judgements>) -> anyhow::Result<Vec<Query>> {
    let mut queries = Vec::new();
    each_line(path, "the dataset's queries", |_, line| {
        let query: QueryLine = serde_json::from_str(line).context("expected a JSON object with `_id` and `text`")?;
        let id = match query.id {
            Id::Text(id) => id,
            Id::Number(id) => id.to_string(),
        };
        if let Some(judged) = judged.remove(&id) {
            if query.text.trim().is_empty() {
                bail!("the query `{id}` has judgements but no text");
            }
            let text = query.text;
            queries.push(Query { id, text, judged });
        }
        Ok(())
    })?;
    Ok(queries)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(queries: &str, qrels: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(dir.path().join("qrels")).expect("made");
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("written");
        write("corpus.jsonl", "{\"_id\":\"d1\",\"title\":\"\",\"text\":\"one\"}\n");
        write("queries.jsonl", queries);
        write("qrels/test.tsv", qrels);
        dir
    }

    fn fault(dir: &Path, split: &str) -> String {
        match Dataset::open(dir, split, 10) {
            Ok(_) => panic!("accepted"),
            Err(error) => format!("{error:#}"),
        }
    }

    #[test]
    fn only_queries_with_a_relevant_document_count() {
        let dir = folder(
            "{\"_id\":\"q1\",\"text\":\"one\",\"metadata\":{}}\n\n{\"_id\":2,\"text\":\"two\"}\n{\"_id\":\"q3\",\"text\":\"\"}\n{\"_id\":\"q4\",\"text\":\"four\"}\n",
            "query-id\tcorpus-id\tscore\r\nq1\td1\t2\r\nq1\td2\t0\r\n2\td1\t1\r\nq4\td1\t0\r\nq9\td1\t1\r\n",
        );
        let dataset = Dataset::open(dir.path(), "test", 10).expect("a dataset");
        let ids: Vec<&str> = dataset.queries.iter().map(|query| query.id.as_str()).collect();
        assert_eq!(ids, ["q1", "2"]);
        assert_eq!(dataset.queries[0].judged["d1"], 2);
        assert_eq!(dataset.queries[0].judged["d2"], 0);
        assert_eq!(dataset.unknown_queries, 1);
    }

    #[test]
    fn dataset_errors_have_file_and_line() {
        let good = "{\"_id\":\"q1\",\"text\":\"one\"}\n";
        let header = "query-id\tcorpus-id\tscore\n";
        for (queries, qrels, told) in [
            ("{\"_id\":\"q1\"}\n", "q1\td1\t1\n", "queries.jsonl:1: expected a JSON object"),
            ("{\"_id\":\"q1\",\"text\":\" \"}\n", "q1\td1\t1\n", "queries.jsonl:1: the query `q1` has judgements"),
            (good, "q1 d1 1\n", "test.tsv:1: expected query id, document id"),
            (good, "h\th\th\nq1\td1\tx\n", "test.tsv:2: the relevance `x` is not a number"),
            (good, "q1\td1\t0.5\n", "test.tsv:1: the relevance `0.5` is not a whole number"),
            (good, header, "has no relevance above 0"),
            (good, "q1\td1\t0\n", "has no relevance above 0"),
            (good, "q7\td1\t1\n", "check that they belong to the same dataset"),
        ] {
            let dir = folder(queries, qrels);
            let message = fault(dir.path(), "test");
            assert!(message.contains(told), "{message}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let dir = folder("{\"_id\":\"q1\",\"text\":\"one\"}\n", "q1\td1\t1\n");
        assert!(fault(dir.path(), "dev").contains("choose with --split one of: test"));
        std::fs::remove_file(dir.path().join("queries.jsonl")).expect("removed");
        assert!(fault(dir.path(), "test").contains("cannot read the dataset's queries, "));
        std::fs::remove_file(dir.path().join("qrels/test.tsv")).expect("removed");
        assert!(fault(dir.path(), "test").contains("it has the judgements, one per line"));
        std::fs::remove_file(dir.path().join("corpus.jsonl")).expect("removed");
        assert!(fault(dir.path(), "test").contains("corpus.jsonl does not exist"));
        assert!(fault(&dir.path().join("none"), "test").contains("--beir takes its folder"));
    }
}
