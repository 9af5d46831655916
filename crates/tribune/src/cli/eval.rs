//! `tribune eval`.

use std::path::PathBuf;

use clap::{ArgGroup, Args};

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).args(["beir", "queries"]))]
#[command(after_help = EVAL_EXAMPLES)]
pub struct Eval {
    /// A dataset in BEIR layout: corpus.jsonl, queries.jsonl, qrels/test.tsv; several are measured in turn
    #[arg(long, value_name = "DIR", conflicts_with = "queries")]
    pub beir: Vec<PathBuf>,

    /// Your own questions, asked of the configured sources as a host would: TSV (question, expected id,
    /// further ids) or JSONL ({"query", "expected": [ids]}); ids with or without their source
    #[arg(long, value_name = "FILE")]
    pub queries: Option<PathBuf>,

    /// Model for vector search: minilm, static, none, or the folder of a model [default: the configuration's]
    #[arg(long, value_name = "MODEL", conflicts_with = "queries")]
    pub embedder: Option<String>,

    /// Rank by keyword search (words), by vector search (meaning), or by both
    #[arg(long, value_parser = ["both", "words", "meaning"], default_value = "both", conflicts_with = "queries")]
    pub legs: String,

    /// A second configuration to compare with, as MODEL or MODEL:LEGS (none, static, minilm:meaning)
    #[arg(long, value_name = "SPEC", conflicts_with = "queries")]
    pub against: Option<String>,

    /// The judgements to use: qrels/SPLIT.tsv
    #[arg(long, default_value = "test", conflicts_with = "queries")]
    pub split: String,

    /// Only the first N queries, for a quick look
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit_queries: Option<u64>,

    /// Write the result of each query, one JSON object per line
    #[arg(long, value_name = "FILE")]
    pub per_query: Option<PathBuf>,

    /// Write the first hundred results of each query as a TREC run, for other tools
    #[arg(long, value_name = "FILE", conflicts_with = "queries")]
    pub run: Option<PathBuf>,

    /// Exit with 1 if nDCG@10 is lower than this
    #[arg(long, value_name = "NDCG", value_parser = fraction)]
    pub floor: Option<f64>,

    /// Seed of the bootstrap samples from which a comparison gets its interval and p
    #[arg(long, default_value_t = 1, conflicts_with = "queries")]
    pub seed: u64,

    /// Rebuild the dataset's index and vectors
    #[arg(long, conflicts_with = "queries")]
    pub fresh: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const EVAL_EXAMPLES: &str = "\
Examples:
  tribune eval --queries questions.tsv --floor 0.8
  tribune eval --beir datasets/scifact
  tribune eval --beir datasets/scifact --embedder minilm --against none

docs/evaluation.md explains the figures and how to make a list of questions of your own.";

impl Eval {
    /// How many queries at most.
    pub fn limit(&self) -> usize {
        self.limit_queries.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
    }
}

fn fraction(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("write a number between 0 and 1, such as 0.8".to_owned()),
    }
}
