//! Loads an encoder from its tensors.

use super::Config;
use super::config::Architecture;
use crate::EmbedError;
use crate::simd::{Level, Norm, Weights};
use crate::weights::{ByteMatrix, Tensor, Tensors};

pub struct Encoder {
    pub(super) level: Level,
    pub(super) hidden: usize,
    pub(super) heads: usize,
    pub(super) words: ByteMatrix,
    /// Position embeddings, with the embedding of token type 0 added.
    pub(super) positions: Vec<f32>,
    pub(super) norm: Norm,
    pub(super) layers: Vec<Layer>,
    /// MPNet only: the attention bias by distance, one row of heads per bucket.
    pub(super) distances: Option<Vec<f32>>,
}

pub(super) struct Layer {
    /// Query, key and value in one matrix, so that activations are read once.
    pub(super) attention: Weights,
    pub(super) attention_out: Weights,
    pub(super) attention_norm: Norm,
    pub(super) up: Weights,
    pub(super) down: Weights,
    pub(super) norm: Norm,
}

/// The tensor names of a layer, by architecture.
struct Names {
    layers: &'static str,
    query: &'static str,
    key: &'static str,
    value: &'static str,
    attention_out: &'static str,
    attention_norm: &'static str,
    up: &'static str,
    down: &'static str,
    norm: &'static str,
}

const BERT: Names = Names {
    layers: "encoder.layer",
    query: "attention.self.query",
    key: "attention.self.key",
    value: "attention.self.value",
    attention_out: "attention.output.dense",
    attention_norm: "attention.output.LayerNorm",
    up: "intermediate.dense",
    down: "output.dense",
    norm: "output.LayerNorm",
};

const DISTILBERT: Names = Names {
    layers: "transformer.layer",
    query: "attention.q_lin",
    key: "attention.k_lin",
    value: "attention.v_lin",
    attention_out: "attention.out_lin",
    attention_norm: "sa_layer_norm",
    up: "ffn.lin1",
    down: "ffn.lin2",
    norm: "output_layer_norm",
};

const MPNET: Names = Names {
    query: "attention.attn.q",
    key: "attention.attn.k",
    value: "attention.attn.v",
    attention_out: "attention.attn.o",
    attention_norm: "attention.LayerNorm",
    ..BERT
};

/// Rows of the relative position table.
pub(super) const DISTANCE_BUCKETS: usize = 32;

/// A tensor of every model file; some put a prefix before all names.
const WORDS: &str = "embeddings.word_embeddings.weight";

struct Reader<'a> {
    tensors: &'a dyn Tensors,
    prefix: String,
    hidden: usize,
    epsilon: f32,
}

impl Encoder {
    pub fn load(config: &Config, tensors: &dyn Tensors) -> Result<Self, EmbedError> {
        let names = tensors.names();
        let words = names.iter().filter(|name| name.ends_with(WORDS)).min_by_key(|name| name.len());
        let Some(words) = words else {
            return Err(EmbedError::model(format!("the model has no {WORDS}")));
        };
        let reader = Reader {
            tensors,
            prefix: words[..words.len() - WORDS.len()].to_owned(),
            hidden: config.hidden,
            epsilon: config.epsilon,
        };
        let mut distances = None;
        let names = match config.architecture {
            Architecture::Bert | Architecture::Roberta => BERT,
            Architecture::DistilBert => DISTILBERT,
            Architecture::MpNet => {
                let name = "encoder.relative_attention_bias.weight";
                distances = Some(reader.floats(name, DISTANCE_BUCKETS * config.heads)?);
                MPNET
            }
        };
        let words = reader.tensor(WORDS)?.into_bytes(WORDS)?;
        if words.columns != config.hidden {
            return Err(EmbedError::model(format!("{WORDS} is not {} wide as config.json says", config.hidden)));
        }
        Ok(Self {
            level: Level::best(),
            hidden: config.hidden,
            heads: config.heads,
            words,
            positions: reader.positions(config)?,
            norm: reader.norm("embeddings.LayerNorm")?,
            layers: (0..config.layers).map(|number| reader.layer(&names, number)).collect::<Result<_, _>>()?,
            distances,
        })
    }

    pub fn hidden(&self) -> usize {
        self.hidden
    }

    pub fn vocabulary(&self) -> usize {
        self.words.rows
    }
}

impl Reader<'_> {
    fn tensor(&self, name: &str) -> Result<Tensor, EmbedError> {
        let found = self.tensors.lookup(&format!("{}{name}", self.prefix))?;
        found.ok_or_else(|| EmbedError::model(format!("the model has no {name}")))
    }

    fn floats(&self, name: &str, count: usize) -> Result<Vec<f32>, EmbedError> {
        let values = self.tensor(name)?.into_floats();
        if values.len() != count {
            return Err(EmbedError::model(format!("{name} has {} values, not {count}", values.len())));
        }
        Ok(values)
    }

    fn positions(&self, config: &Config) -> Result<Vec<f32>, EmbedError> {
        let name = "embeddings.position_embeddings.weight";
        let positions = self.floats(name, config.positions * config.hidden)?;
        let mut positions = positions[config.first_position * config.hidden..].to_vec();
        let kinds = self.tensors.lookup(&format!("{}embeddings.token_type_embeddings.weight", self.prefix))?;
        if let Some(kinds) = kinds.map(Tensor::into_floats) {
            if kinds.len() < config.hidden {
                return Err(EmbedError::model("embeddings.token_type_embeddings.weight is too small"));
            }
            for row in positions.chunks_exact_mut(config.hidden) {
                row.iter_mut().zip(&kinds).for_each(|(value, kind)| *value += kind);
            }
        }
        Ok(positions)
    }

    fn norm(&self, name: &str) -> Result<Norm, EmbedError> {
        Ok(Norm {
            gain: self.floats(&format!("{name}.weight"), self.hidden)?,
            bias: self.floats(&format!("{name}.bias"), self.hidden)?,
            epsilon: self.epsilon,
        })
    }

    fn layer(&self, names: &Names, number: usize) -> Result<Layer, EmbedError> {
        let name = |part: &str| format!("{}.{number}.{part}", names.layers);
        let hidden = self.hidden;
        let up = self.weights(&[name(names.up)], hidden, None)?;
        let inner = up.outputs();
        Ok(Layer {
            attention: self.weights(&[names.query, names.key, names.value].map(name), hidden, Some(hidden))?,
            attention_out: self.weights(&[name(names.attention_out)], hidden, Some(hidden))?,
            attention_norm: self.norm(&name(names.attention_norm))?,
            up,
            down: self.weights(&[name(names.down)], inner, Some(hidden))?,
            norm: self.norm(&name(names.norm))?,
        })
    }

    /// Concatenates layers with the same inputs.
    fn weights(&self, names: &[String], inputs: usize, outputs: Option<usize>) -> Result<Weights, EmbedError> {
        let mut rows: Vec<i8> = Vec::new();
        let mut scales = Vec::new();
        let mut bias = Vec::new();
        for name in names {
            let found = self.tensors.lookup_layer(&format!("{}{name}", self.prefix))?;
            let found = found.ok_or_else(|| EmbedError::model(format!("the model has no {name}.weight")))?;
            let matrix = found.into_bytes(name)?;
            if matrix.columns != inputs || outputs.is_some_and(|outputs| outputs != matrix.rows) {
                return Err(EmbedError::model(format!(
                    "{name}.weight is {} × {}; config.json asks for {} × {inputs}",
                    matrix.rows,
                    matrix.columns,
                    outputs.unwrap_or(matrix.rows)
                )));
            }
            bias.extend(self.floats(&format!("{name}.bias"), matrix.rows)?);
            rows.extend(matrix.values.iter().map(|&byte| byte as i8));
            scales.extend(matrix.scales);
        }
        Weights::pack(inputs, &rows, &scales, &bias)
            .ok_or_else(|| EmbedError::model(format!("the sizes of {} do not agree", names.join(", "))))
    }
}
