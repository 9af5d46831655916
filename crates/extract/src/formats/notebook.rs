//! Jupyter notebooks: text cells as they are, code cells as code blocks, without outputs that are pictures.

use serde::Deserialize;
use serde_json::Value;

use super::Found;
use crate::extracted::{Extracted, Problem, Reason};

/// Of the output of one cell.
const MAX_OUTPUT_BYTES: usize = 4096;

#[derive(Deserialize)]
struct Notebook {
    cells: Vec<Cell>,
    #[serde(default)]
    metadata: Value,
}

#[derive(Deserialize)]
struct Cell {
    cell_type: String,
    #[serde(default)]
    source: Lines,
    #[serde(default)]
    outputs: Vec<Output>,
}

#[derive(Deserialize)]
struct Output {
    #[serde(default)]
    text: Lines,
    #[serde(default)]
    data: Value,
}

/// Text, in one piece or in lines that end in line feeds.
#[derive(Deserialize)]
#[serde(untagged)]
enum Lines {
    Whole(String),
    Lines(Vec<String>),
}

impl Default for Lines {
    fn default() -> Self {
        Self::Whole(String::new())
    }
}

impl Lines {
    fn text(&self) -> String {
        match self {
            Self::Whole(text) => text.trim_end().to_owned(),
            Self::Lines(lines) => lines.concat().trim_end().to_owned(),
        }
    }
}

impl Output {
    fn text(&self) -> String {
        let printed = self.text.text();
        if !printed.is_empty() {
            return printed;
        }
        let plain = self.data.get("text/plain").cloned().map(serde_json::from_value::<Lines>);
        plain.and_then(Result::ok).unwrap_or_default().text()
    }
}

pub(super) fn read(bytes: &[u8]) -> Found {
    let notebook: Notebook =
        serde_json::from_slice(bytes).map_err(|error| Problem::new(Reason::Damaged, error.to_string()))?;
    let language = notebook.metadata.pointer("/kernelspec/language").and_then(Value::as_str).unwrap_or("python");
    let mut parts = Vec::new();
    for cell in &notebook.cells {
        let source = cell.source.text();
        if source.is_empty() {
            continue;
        }
        if cell.cell_type != "code" {
            parts.push(source);
            continue;
        }
        parts.push(format!("```{language}\n{source}\n```"));
        let outputs: Vec<String> = cell.outputs.iter().map(Output::text).filter(|text| !text.is_empty()).collect();
        let output = outputs.join("\n");
        if !output.is_empty() {
            parts.push(format!("```\n{}\n```", &output[..output.floor_char_boundary(MAX_OUTPUT_BYTES)]));
        }
    }
    Ok(Extracted { text: parts.join("\n\n"), is_markdown: true, ..Extracted::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_become_markdown_with_code() {
        let notebook = serde_json::json!({
            "metadata": {"kernelspec": {"language": "julia"}},
            "cells": [
                {"cell_type": "markdown", "source": ["# Tides\n", "High and low."]},
                {"cell_type": "code", "source": "1 + 1", "outputs": [
                    {"data": {"text/plain": ["2"], "image/png": "aGVsbG8="}},
                    {"text": ["printed\n"]},
                ]},
                {"cell_type": "code", "source": []},
            ],
        });
        let found = read(notebook.to_string().as_bytes()).expect("a notebook");
        assert_eq!(found.text, "# Tides\nHigh and low.\n\n```julia\n1 + 1\n```\n\n```\n2\nprinted\n```");
    }
}
