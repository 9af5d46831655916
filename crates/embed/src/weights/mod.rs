//! The weights of a model, by name, from the files people have.

mod graph;
pub mod half;
pub mod onnx;
mod protobuf;
pub mod quantise;
pub mod safetensors;

use std::borrow::Cow;

use crate::EmbedError;

/// Vectors depend on how weights are rounded; this number is part of every fingerprint and goes up with a change.
pub const QUANTISATION_VERSION: u32 = 1;

/// One array of numbers, rows first.
pub struct Tensor {
    pub shape: Vec<usize>,
    pub values: Values,
}

pub enum Values {
    Floats(Vec<f32>),
    /// Signed bytes, one scale for each row.
    Bytes {
        values: Cow<'static, [u8]>,
        scales: Vec<f32>,
    },
}

/// Where tensors are looked up under the names that model files use.
pub trait Tensors {
    /// The names of all tensors.
    fn names(&self) -> Vec<&str>;

    /// `None` when there is none of this name.
    fn lookup(&self, name: &str) -> Result<Option<Tensor>, EmbedError>;

    /// The weights of a linear layer, one row for each output, whichever way round the file has them.
    fn lookup_layer(&self, name: &str) -> Result<Option<Tensor>, EmbedError> {
        self.lookup(&format!("{name}.weight"))
    }
}

/// A matrix in signed bytes with a scale for each row.
pub struct ByteMatrix {
    pub rows: usize,
    pub columns: usize,
    pub values: Cow<'static, [u8]>,
    pub scales: Vec<f32>,
}

impl Tensor {
    pub fn into_floats(self) -> Vec<f32> {
        match self.values {
            Values::Floats(values) => values,
            Values::Bytes { values, scales } => {
                let width = (values.len() / scales.len().max(1)).max(1);
                let rows = values.chunks_exact(width).zip(&scales);
                rows.flat_map(|(row, &scale)| row.iter().map(move |&byte| f32::from(byte as i8) * scale))
                    .collect()
            }
        }
    }

    /// Rounded to bytes, if it is not in bytes already.
    pub fn into_bytes(self, name: &str) -> Result<ByteMatrix, EmbedError> {
        let &[rows, columns] = self.shape.as_slice() else {
            return Err(EmbedError::model(format!(
                "{name} has {} dimensions, not 2",
                self.shape.len()
            )));
        };
        if rows == 0 || columns == 0 {
            return Err(EmbedError::model(format!("{name} is empty")));
        }
        let (values, scales) = match self.values {
            Values::Bytes { values, scales } => (values, scales),
            Values::Floats(values) => {
                let (values, scales) = quantise::rows(&values, columns);
                (Cow::Owned(values), scales)
            }
        };
        Ok(ByteMatrix {
            rows,
            columns,
            values,
            scales,
        })
    }
}
