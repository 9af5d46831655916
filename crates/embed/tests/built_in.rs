//! The built-in model against vectors of the weights it was made from (`minilm_reference.py` says how).

#![allow(clippy::disallowed_methods, reason = "tests use the machine's clock")]

use serde_json::Value;
use tribune_embed::{Role, built_in, static_table};

fn reference() -> Vec<(String, Vec<f32>)> {
    include_str!("minilm_reference.jsonl")
        .lines()
        .map(|line| {
            let line: Value = serde_json::from_str(line).expect("the reference is JSON");
            let vector = line["vector"].as_array().expect("a vector");
            let vector = vector.iter().map(|value| value.as_f64().expect("a number") as f32).collect();
            (line["text"].as_str().expect("a text").to_owned(), vector)
        })
        .collect()
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    product(a, b) / (product(a, a) * product(b, b)).sqrt()
}

#[test]
fn vectors_match_the_reference() {
    let model = built_in().expect("loads");
    let reference = reference();
    let texts: Vec<&str> = reference.iter().map(|(text, _)| text.as_str()).collect();
    let vectors = model.embed(Role::Passage, &texts).expect("embeds");
    assert_eq!(vectors.len(), texts.len());
    let mut cosines = Vec::new();
    for (vector, (text, expected)) in vectors.iter().zip(&reference) {
        let length = vector.iter().map(|value| value * value).sum::<f32>();
        assert!((length - 1.0).abs() < 1e-4, "{text}: of length {length}");
        let cosine = cosine(vector, expected);
        assert!(cosine >= 0.99, "{text}: {cosine}");
        cosines.push(cosine);
    }
    let mean = cosines.iter().sum::<f32>() / cosines.len() as f32;
    let least = cosines.iter().copied().fold(1.0, f32::min);
    eprintln!("cosine with the reference: least {least:.5}, mean {mean:.5}");
}

#[test]
fn vector_does_not_depend_on_the_batch() {
    let model = built_in().expect("loads");
    let reference = reference();
    let texts: Vec<&str> = reference.iter().map(|(text, _)| text.as_str()).collect();
    let together = model.embed(Role::Passage, &texts).expect("embeds");
    for (text, vector) in texts.iter().zip(&together) {
        let alone = model.embed(Role::Query, &[text]).expect("embeds");
        assert!(cosine(&alone[0], vector) > 0.9999, "{text}");
    }
    assert!(model.embed(Role::Query, &[]).expect("embeds").is_empty());
}

#[test]
fn model_is_described_and_thread_safe() {
    let model = built_in().expect("loads");
    assert_eq!(model.name(), "all-MiniLM-L6-v2 (int8, built in)");
    assert_eq!(model.dimensions(), 384);
    assert_eq!(model.fingerprint().len(), 16);
    let expected = model.embed(Role::Query, &["water"]).expect("embeds");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    assert_eq!(model.embed(Role::Query, &["water"]).expect("embeds"), expected);
                }
            });
        }
    });
}

/// `static_reference.json` was made by the numpy program that made the table.
#[test]
fn static_table_matches_its_reference() {
    let table = static_table().expect("loads");
    let reference: Vec<Value> =
        serde_json::from_str(include_str!("static_reference.json")).expect("the reference is JSON");
    for line in &reference {
        let text = line["text"].as_str().expect("a text");
        let expected: Vec<f32> = line["vector"]
            .as_array()
            .expect("a vector")
            .iter()
            .map(|value| value.as_f64().expect("a number") as f32)
            .collect();
        let vector = &table.embed(Role::Passage, &[text]).expect("embeds")[0];
        let furthest = vector.iter().zip(&expected).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(furthest < 1e-4, "{text}: {furthest}");
    }
}
