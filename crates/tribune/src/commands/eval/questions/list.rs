//! A list of questions, each with the documents that answer it: TSV or JSONL.

use std::path::Path;

use anyhow::{Context, bail};
use serde::Deserialize;

use crate::commands::eval::lines::each_line;

#[derive(Debug, PartialEq)]
pub struct Question {
    pub line: u64,
    pub text: String,
    /// Ids, with or without their source; any of them answers the question.
    pub expected: Vec<String>,
}

#[derive(Deserialize)]
struct JsonLine {
    query: String,
    expected: Vec<String>,
}

pub fn read(path: &Path) -> anyhow::Result<Vec<Question>> {
    let mut questions = Vec::new();
    let mut is_json = None;
    each_line(path, "the list of questions", |number, line| {
        // What the first line is, all are: a question may begin with a brace.
        let (text, expected) = if *is_json.get_or_insert_with(|| line.starts_with('{')) {
            json(line)?
        } else if line.starts_with('#') {
            return Ok(());
        } else {
            tab_separated(line)
        };
        if text.trim().is_empty() {
            bail!("the question is empty");
        }
        let mut ids: Vec<String> = Vec::new();
        for id in expected {
            if !id.is_empty() && !ids.contains(&id) {
                ids.push(id);
            }
        }
        if ids.is_empty() {
            bail!("no expected document; write the question, a tab, and the id of the document that answers it");
        }
        questions.push(Question { line: number, text, expected: ids });
        Ok(())
    })?;
    if questions.is_empty() {
        bail!(
            "{} has no questions; write one a line: the question, a tab, and the id of the document that answers it",
            path.display()
        );
    }
    Ok(questions)
}

fn json(line: &str) -> anyhow::Result<(String, Vec<String>)> {
    let line: JsonLine = serde_json::from_str(line).context(
        "expected a JSON object such as {\"query\": \"who mended the pump\", \"expected\": [\"notes:pump.md\"]}",
    )?;
    Ok((line.query, line.expected))
}

fn tab_separated(line: &str) -> (String, Vec<String>) {
    let mut fields = line.split('\t').map(|field| field.trim().to_owned());
    (fields.next().unwrap_or_default(), fields.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(text: &str) -> anyhow::Result<Vec<Question>> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("written");
        read(file.path())
    }

    fn question(line: u64, text: &str, expected: &[&str]) -> Question {
        Question { line, text: text.to_owned(), expected: expected.iter().map(|id| (*id).to_owned()).collect() }
    }

    #[test]
    fn both_forms_are_read() {
        assert_eq!(
            list("# mine\nwho mended the pump\tnotes:pump.md\r\n\n{odd\ta.md\tb.md\ta.md\t\n").expect("read"),
            [question(2, "who mended the pump", &["notes:pump.md"]), question(4, "{odd", &["a.md", "b.md"])]
        );
        assert_eq!(
            list(
                "{\"query\":\"one\",\"expected\":[\"a\",\"b\"]}\n{\"query\":\"two\",\"expected\":[\"c\"],\"note\":1}\n"
            )
            .expect("read"),
            [question(1, "one", &["a", "b"]), question(2, "two", &["c"])]
        );
    }

    #[test]
    fn question_errors_have_a_line() {
        for (text, told) in [
            ("one\ta\ntwo\n", ":2: no expected document"),
            ("\ta\n", ":1: the question is empty"),
            ("{\"query\":\"one\",\"expected\":[]}\n", ":1: no expected document"),
            ("{\"query\":\"one\",\"expected\":[\"a\"]}\n{\"query\":1}\n", ":2: expected a JSON object such as"),
            ("# nothing\n", "has no questions"),
        ] {
            let message = format!("{:#}", list(text).expect_err("refused"));
            assert!(message.contains(told), "{message}");
        }
        let message = format!("{:#}", read(Path::new("none.tsv")).expect_err("refused"));
        assert!(message.contains("cannot read the list of questions, none.tsv"), "{message}");
    }
}
