//! Files of named tensors: a length, a JSON header that says where each tensor lies, and the bytes.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;

use super::half::{from_bf16, from_f16};
use super::{Tensor, Tensors, Values};
use crate::EmbedError;

const MAX_HEADER_BYTES: usize = 16 << 20;

pub struct SafeTensors {
    bytes: Cow<'static, [u8]>,
    data: usize,
    entries: HashMap<String, Entry>,
}

#[derive(Deserialize)]
struct Entry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (usize, usize),
}

impl SafeTensors {
    pub fn parse(bytes: Cow<'static, [u8]>) -> Result<Self, EmbedError> {
        let broken = |what: &str| EmbedError::model(format!("not a safetensors file: {what}"));
        let (length, rest) = bytes
            .split_first_chunk::<8>()
            .ok_or_else(|| broken("it has no header"))?;
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        if length > MAX_HEADER_BYTES || length > rest.len() {
            return Err(broken("its header is longer than the file"));
        }
        let header: HashMap<String, serde_json::Value> = serde_json::from_slice(&rest[..length])
            .map_err(|error| broken(&format!("its header is not JSON: {error}")))?;
        let data = 8 + length;
        let mut entries = HashMap::with_capacity(header.len());
        for (name, entry) in header {
            if name == "__metadata__" {
                continue;
            }
            let entry: Entry =
                serde_json::from_value(entry).map_err(|error| broken(&format!("tensor {name}: {error}")))?;
            let (start, end) = entry.data_offsets;
            if start > end || end > bytes.len() - data {
                return Err(broken(&format!("tensor {name} lies outside of the file")));
            }
            if entry.size() != Some(end - start) {
                return Err(broken(&format!("tensor {name} has another size than its shape")));
            }
            entries.insert(name, entry);
        }
        Ok(Self { bytes, data, entries })
    }

    fn slice(&self, entry: &Entry) -> Cow<'static, [u8]> {
        let range = self.data + entry.data_offsets.0..self.data + entry.data_offsets.1;
        match &self.bytes {
            Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[range]),
            Cow::Owned(bytes) => Cow::Owned(bytes[range].to_vec()),
        }
    }

    fn bytes_of(&self, entry: &Entry) -> &[u8] {
        &self.bytes[self.data + entry.data_offsets.0..self.data + entry.data_offsets.1]
    }
}

impl Entry {
    /// Bytes, by the shape; `None` if that is no number.
    fn size(&self) -> Option<usize> {
        let width = match self.dtype.as_str() {
            "I8" | "U8" | "BOOL" => 1,
            "F16" | "BF16" | "I16" | "U16" => 2,
            "F32" | "I32" | "U32" => 4,
            "F64" | "I64" | "U64" => 8,
            _ => return Some(self.data_offsets.1 - self.data_offsets.0),
        };
        self.shape
            .iter()
            .try_fold(width, |size: usize, &length| size.checked_mul(length))
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
            "F32" => Values::Floats(floats(bytes)),
            "F16" => Values::Floats(halves(bytes, from_f16)),
            "BF16" => Values::Floats(halves(bytes, from_bf16)),
            "I8" => {
                let scales = self
                    .entries
                    .get(&format!("{name}.scale"))
                    .filter(|entry| entry.dtype == "F32");
                let scales = scales.map(|entry| floats(self.bytes_of(entry)));
                let rows = entry.shape.first().copied().unwrap_or_default();
                match scales {
                    Some(scales) if scales.len() == rows => Values::Bytes {
                        values: self.slice(entry),
                        scales,
                    },
                    _ => {
                        return Err(EmbedError::model(format!(
                            "tensor {name} is in bytes and needs {name}.scale with {rows} floats"
                        )));
                    }
                }
            }
            other => {
                return Err(EmbedError::model(format!(
                    "tensor {name} is of type {other}; F32, F16, BF16 and I8 with scales are supported"
                )));
            }
        };
        Ok(Some(Tensor {
            shape: entry.shape.clone(),
            values,
        }))
    }
}

pub fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|&bytes| f32::from_le_bytes(bytes))
        .collect()
}

pub fn halves(bytes: &[u8], widen: fn(u16) -> f32) -> Vec<f32> {
    bytes
        .as_chunks::<2>()
        .0
        .iter()
        .map(|&bytes| widen(u16::from_le_bytes(bytes)))
        .collect()
}

/// A tensor to be written: name, type, shape and bytes.
pub struct Written {
    pub name: String,
    pub dtype: &'static str,
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
}

impl Written {
    pub fn floats(name: impl Into<String>, shape: &[usize], values: &[f32]) -> Self {
        Self {
            name: name.into(),
            dtype: "F32",
            shape: shape.to_vec(),
            bytes: values.iter().flat_map(|value| value.to_le_bytes()).collect(),
        }
    }

    pub fn bytes(name: impl Into<String>, shape: &[usize], values: &[u8]) -> Self {
        Self {
            name: name.into(),
            dtype: "I8",
            shape: shape.to_vec(),
            bytes: values.to_vec(),
        }
    }
}

/// The bytes of a file that holds `tensors`.
pub fn write(tensors: &[Written]) -> Vec<u8> {
    let mut header = serde_json::Map::new();
    let mut at = 0;
    for tensor in tensors {
        let end = at + tensor.bytes.len();
        let entry = serde_json::json!({ "dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [at, end] });
        header.insert(tensor.name.clone(), entry);
        at = end;
    }
    let mut header = serde_json::Value::Object(header).to_string().into_bytes();
    // Data begins on a multiple of eight, as the format asks.
    header.resize(header.len().next_multiple_of(8), b' ');
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.append(&mut header);
    for tensor in tensors {
        bytes.extend_from_slice(&tensor.bytes);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(bytes: Vec<u8>) -> String {
        match SafeTensors::parse(Cow::Owned(bytes)) {
            Ok(_) => panic!("was taken"),
            Err(error) => error.to_string(),
        }
    }

    fn with_header(header: &str) -> Vec<u8> {
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(&[0; 16]);
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        let written = [
            Written::floats("a", &[2, 1], &[1.5, -2.0]),
            Written::bytes("b", &[2, 2], &[1, 255, 2, 254]),
            Written::floats("b.scale", &[2], &[0.5, 2.0]),
        ];
        let file = SafeTensors::parse(Cow::Owned(write(&written))).expect("reads");
        let read = |name: &str| file.lookup(name).expect("reads").expect("is there").into_floats();
        assert_eq!(read("a"), [1.5, -2.0]);
        assert_eq!(read("b"), [0.5, -0.5, 4.0, -4.0]);
        assert!(file.lookup("c").expect("reads").is_none());
    }

    #[test]
    fn broken_files_are_refused() {
        assert!(refusal(vec![1, 2]).contains("no header"));
        assert!(refusal(vec![255; 40]).contains("longer than the file"));
        assert!(refusal(with_header("nonsense")).contains("not JSON"));
        let entry = |shape: &str, range: &str| {
            with_header(&format!(
                r#"{{"a":{{"dtype":"F32","shape":{shape},"data_offsets":{range}}}}}"#
            ))
        };
        assert!(refusal(entry("[2]", "[0,800]")).contains("outside"));
        assert!(refusal(entry("[2]", "[8,0]")).contains("outside"));
        assert!(refusal(entry("[3]", "[0,8]")).contains("another size"));
        assert!(refusal(entry("[9223372036854775807,9]", "[0,8]")).contains("another size"));
    }

    #[test]
    fn bytes_without_scales_are_refused() {
        let file = write(&[Written::bytes("b", &[1, 1], &[1])]);
        let file = SafeTensors::parse(Cow::Owned(file)).expect("reads");
        let error = file.lookup("b").err().expect("is refused").to_string();
        assert!(error.contains("needs b.scale"), "{error}");
    }
}
