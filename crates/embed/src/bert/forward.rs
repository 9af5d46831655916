//! The forward pass, from tokens to vectors.

use super::Pooling;
use super::attention::{Attention, Head, attend};
use super::load::{Encoder, Layer};
use crate::simd::{Activations, add_layer_norm, gelu, layer_norm, linear};

/// Rows per block, so that intermediate values stay in the cache.
const TILE: usize = 48;

/// Buffers of a pass, reused by the next.
#[derive(Default)]
pub struct Scratch {
    hidden: Vec<f32>,
    projected: Vec<f32>,
    context: Vec<f32>,
    wide: Vec<f32>,
    narrow: Vec<f32>,
    activations: Activations,
    attention: Attention,
}

impl Encoder {
    /// Returns one pooled vector per sequence of token ids, not normalised. Sequences must not be empty, not exceed the
    /// position table, and have known ids only.
    pub fn run(&self, sequences: &[&[u32]], pooling: Pooling, scratch: &mut Scratch) -> Vec<Vec<f32>> {
        self.embed_tokens(sequences, scratch);
        for layer in &self.layers {
            self.project(layer, scratch);
            self.attend(sequences, scratch);
            self.feed_forward(layer, scratch);
        }
        let mut rows = scratch.hidden.chunks_exact(self.hidden);
        sequences.iter().map(|sequence| pool(rows.by_ref().take(sequence.len()), self.hidden, pooling)).collect()
    }

    fn embed_tokens(&self, sequences: &[&[u32]], scratch: &mut Scratch) {
        let tokens = sequences.iter().map(|sequence| sequence.len()).sum::<usize>();
        scratch.hidden.resize(tokens * self.hidden, 0.0);
        scratch.context.resize(tokens * self.hidden, 0.0);
        scratch.projected.resize(tokens * self.hidden * 3, 0.0);
        let mut rows = scratch.hidden.chunks_exact_mut(self.hidden);
        for sequence in sequences {
            let positions = self.positions.chunks_exact(self.hidden);
            for (&token, (row, position)) in sequence.iter().zip(rows.by_ref().zip(positions)) {
                let token = token as usize;
                let word = &self.words.values[token * self.hidden..][..self.hidden];
                let scale = self.words.scales[token];
                for ((value, &byte), position) in row.iter_mut().zip(word).zip(position) {
                    *value = f32::from(byte as i8) * scale + position;
                }
            }
        }
        layer_norm(self.level, &mut scratch.hidden, &self.norm);
    }

    /// Query, key and value of every token.
    fn project(&self, layer: &Layer, scratch: &mut Scratch) {
        let outputs = layer.attention.outputs();
        let tiles = scratch.hidden.chunks(TILE * self.hidden);
        for (rows, out) in tiles.zip(scratch.projected.chunks_mut(TILE * outputs)) {
            scratch.activations.fill(self.level, rows, self.hidden);
            linear(self.level, &scratch.activations, &layer.attention, out);
        }
    }

    fn attend(&self, sequences: &[&[u32]], scratch: &mut Scratch) {
        let mut projected = scratch.projected.as_slice();
        let mut context = scratch.context.as_mut_slice();
        for sequence in sequences {
            let (here, after) = projected.split_at(sequence.len() * self.hidden * 3);
            let (target, rest) = context.split_at_mut(sequence.len() * self.hidden);
            for number in 0..self.heads {
                let head = Head { number, heads: self.heads, hidden: self.hidden };
                let distances = self.distances.as_deref();
                attend(self.level, head, here, target, distances, &mut scratch.attention);
            }
            (projected, context) = (after, rest);
        }
    }

    fn feed_forward(&self, layer: &Layer, scratch: &mut Scratch) {
        let level = self.level;
        let Scratch { hidden, context, wide, narrow, activations, .. } = scratch;
        let tile = TILE * self.hidden;
        for (rows, context) in hidden.chunks_mut(tile).zip(context.chunks(tile)) {
            let count = rows.len() / self.hidden;
            narrow.resize(rows.len(), 0.0);
            wide.resize(count * layer.up.outputs(), 0.0);
            activations.fill(level, context, self.hidden);
            linear(level, activations, &layer.attention_out, narrow);
            add_layer_norm(level, rows, narrow, &layer.attention_norm);
            activations.fill(level, rows, self.hidden);
            linear(level, activations, &layer.up, wide);
            gelu(level, wide);
            activations.fill(level, wide, layer.up.outputs());
            linear(level, activations, &layer.down, narrow);
            add_layer_norm(level, rows, narrow, &layer.norm);
        }
    }
}

fn pool<'a>(mut rows: impl Iterator<Item = &'a [f32]>, width: usize, pooling: Pooling) -> Vec<f32> {
    match pooling {
        Pooling::First => {
            let first = rows.next().map_or_else(|| vec![0.0; width], <[f32]>::to_vec);
            rows.for_each(drop);
            first
        }
        // The sum equals the mean after normalisation.
        Pooling::Mean => rows.fold(vec![0.0; width], |mut sum, row| {
            sum.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
            sum
        }),
    }
}
