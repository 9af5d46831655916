//! Safetensors files: a length, a JSON header with the offsets of each tensor, and the bytes.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;

use super::half::{from_bf16, from_f16};
use super::{Tensor, Tensors, Values};
use crate::EmbedError;

const MAX_HEADER_BYTES: usize = 16 << 20;

pub struct SafeTensors {
    /// Tensors of a file in the program stay where they are; others are copied.
    data: Cow<'static, [u8]>,
    entries: HashMap<String, Entry>,
    /// Where the first tensor begins.
    first: usize,
}

#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

impl SafeTensors {
    pub fn parse(data: Cow<'static, [u8]>) -> Result<Self, EmbedError> {
        let broken = |what: &str| EmbedError::model(format!("not a safetensors file: {what}"));
        let (length, rest) = data.split_first_chunk::<8>().ok_or_else(|| broken("it has no header"))?;
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if length > MAX_HEADER_BYTES || length > rest.len() {
            return Err(broken("its header is longer than the file"));
        }
        let mut header: HashMap<String, serde_json::Value> = serde_json::from_slice(&rest[..length])
            .map_err(|error| broken(&format!("its header is not JSON: {error}")))?;
        header.remove("__metadata__");
        let mut entries = HashMap::with_capacity(header.len());
        for (name, entry) in header {
            let entry: Entry =
                serde_json::from_value(entry).map_err(|error| broken(&format!("tensor {name}: {error}")))?;
            let (start, end) = entry.data_offsets;
            if start > end || end > rest.len() - length {
                return Err(broken(&format!("tensor {name} is outside of the file")));
            }
            let width = match entry.dtype.as_str() {
                "I8" => Some(1),
                "F16" | "BF16" => Some(2),
                "F32" => Some(4),
                // Refused if it is needed.
                _ => None,
            };
            let size = |width| entry.shape.iter().try_fold(width, |size: usize, &length| size.checked_mul(length));
            if width.is_some_and(|width| size(width) != Some(end - start)) {
                return Err(broken(&format!("tensor {name} does not have the size of its shape")));
            }
            entries.insert(name, entry);
        }
        Ok(Self { data, entries, first: 8 + length })
    }

    fn bytes_of(&self, entry: &Entry) -> Cow<'static, [u8]> {
        let range = self.first + entry.data_offsets.0..self.first + entry.data_offsets.1;
        match &self.data {
            Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[range]),
            Cow::Owned(bytes) => Cow::Owned(bytes[range].to_vec()),
        }
    }
}

impl Tensors for SafeTensors {
    fn names(&self) -> Vec<&str> {
        self.entries.keys().map(String::as_str).collect()
    }

    fn lookup(&self, name: &str) -> Result<Option<Tensor>, EmbedError> {
        let Some(entry) = self.entries.get(name) else {
            return Ok(None);
        };
        let bytes = self.bytes_of(entry);
        let values = match entry.dtype.as_str() {
            "F32" => Values::Floats(floats(&bytes)),
            "F16" => Values::Floats(halves(&bytes, from_f16)),
            "BF16" => Values::Floats(halves(&bytes, from_bf16)),
            "I8" => {
                let rows = entry.shape.first().copied().unwrap_or_default();
                let scales = self.entries.get(&format!("{name}.scale"));
                let scales =
                    scales.filter(|scales| scales.dtype == "F32" && scales.shape.iter().product::<usize>() == rows);
                let scales = scales.ok_or_else(|| {
                    EmbedError::model(format!("tensor {name} is in bytes and needs {name}.scale with {rows} floats"))
                })?;
                Values::Bytes { values: bytes, scales: floats(&self.bytes_of(scales)) }
            }
            other => {
                return Err(EmbedError::model(format!(
                    "tensor {name} is of type {other}; F32, F16, BF16 and I8 with scales are supported"
                )));
            }
        };
        Ok(Some(Tensor { shape: entry.shape.clone(), values }))
    }
}

pub fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
}

pub fn halves(bytes: &[u8], widen: fn(u16) -> f32) -> Vec<f32> {
    bytes.as_chunks::<2>().0.iter().map(|&bytes| widen(u16::from_le_bytes(bytes))).collect()
}

#[cfg(test)]
pub mod tests;
