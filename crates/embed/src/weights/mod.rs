//! The weights of a model by name, from safetensors and ONNX files.

pub mod half;
pub mod onnx;
mod protobuf;
pub mod quantise;
pub mod safetensors;

use std::borrow::Cow;

use crate::EmbedError;

/// Part of every fingerprint. Increase it when the rounding of weights changes, because vectors depend on it.
pub const QUANTISATION_VERSION: u32 = 1;

/// An array in row-major order.
pub struct Tensor {
    pub shape: Vec<usize>,
    pub values: Values,
}

pub enum Values {
    Floats(Vec<f32>),
    /// int8 with one scale per row.
    Bytes {
        values: Cow<'static, [u8]>,
        scales: Vec<f32>,
    },
}

/// A file of named tensors.
pub trait Tensors {
    fn names(&self) -> Vec<&str>;

    fn lookup(&self, name: &str) -> Result<Option<Tensor>, EmbedError>;

    /// The weights of a linear layer with one row per output; some formats store them transposed.
    fn lookup_layer(&self, name: &str) -> Result<Option<Tensor>, EmbedError> {
        self.lookup(&format!("{name}.weight"))
    }
}

/// An int8 matrix with one scale per row.
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
                rows.flat_map(|(row, &scale)| row.iter().map(move |&byte| f32::from(byte as i8) * scale)).collect()
            }
        }
    }

    /// Quantises floats; int8 stays as it is.
    pub fn into_bytes(self, name: &str) -> Result<ByteMatrix, EmbedError> {
        let &[rows, columns] = self.shape.as_slice() else {
            return Err(EmbedError::model(format!("{name} has {} dimensions, not 2", self.shape.len())));
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
        Ok(ByteMatrix { rows, columns, values, scales })
    }
}
