//! The weights inside an ONNX graph.
//!
//! Exporters keep the names of biases, norms and tables, but not those of matrices. A matrix is found by walking back
//! from the node that adds its bias. Constant expressions (casts, dequantisation, transpositions) are evaluated.

use std::borrow::Cow;
use std::collections::HashMap;

use super::half::{from_bf16, from_f16};
use super::protobuf::{Value, fields, packed};
use super::safetensors::{floats, halves};
use super::{Tensor, Tensors, Values};
use crate::EmbedError;

/// Most nodes on the way to a constant.
const MAX_DEPTH: usize = 12;
/// What quantising adds to the name of a tensor; `_scale` and `_zero_point` are beside it.
const QUANTISED: &str = "_quantized";

const FLOAT: u64 = 1;
const UINT8: u64 = 2;
const INT8: u64 = 3;
const FLOAT16: u64 = 10;
const BFLOAT16: u64 = 16;

#[derive(Default)]
pub struct Onnx<'a> {
    nodes: Vec<Node<'a>>,
    stored: HashMap<&'a str, Stored<'a>>,
    /// The node that produces each value.
    producers: HashMap<&'a str, usize>,
}

#[derive(Default)]
struct Node<'a> {
    operation: &'a str,
    inputs: Vec<&'a str>,
    outputs: Vec<&'a str>,
}

#[derive(Default)]
struct Stored<'a> {
    name: &'a str,
    shape: Vec<usize>,
    kind: u64,
    raw: &'a [u8],
    floats: &'a [u8],
    numbers: Vec<u64>,
    external: bool,
}

impl<'a> Onnx<'a> {
    pub fn parse(bytes: &'a [u8]) -> Result<Self, EmbedError> {
        Self::graph(bytes).ok_or_else(|| EmbedError::model("not an ONNX file, or one that is cut short"))
    }

    fn graph(bytes: &'a [u8]) -> Option<Self> {
        let mut found = None;
        for field in fields(bytes) {
            if let (7, Value::Bytes(graph)) = field? {
                found.get_or_insert_with(Self::default).add(graph)?;
            }
        }
        found
    }

    fn add(&mut self, graph: &'a [u8]) -> Option<()> {
        for field in fields(graph) {
            match field? {
                (1, Value::Bytes(bytes)) => {
                    let node = Node::parse(bytes)?;
                    self.producers.extend(node.outputs.iter().map(|name| (*name, self.nodes.len())));
                    self.nodes.push(node);
                }
                (5, Value::Bytes(bytes)) => {
                    let stored = Stored::parse(bytes)?;
                    self.stored.insert(stored.name, stored);
                }
                _ => {}
            }
        }
        Some(())
    }

    fn producer(&self, name: &str) -> Option<&Node<'a>> {
        self.producers.get(name).map(|&at| &self.nodes[at])
    }

    /// `None` if the value is not constant.
    fn constant(&self, name: &str, depth: usize) -> Result<Option<Array>, EmbedError> {
        if let Some(stored) = self.stored.get(name) {
            return stored.read().map(Some);
        }
        if depth == 0 {
            return Ok(None);
        }
        let get = |name: &str| self.constant(name, depth - 1);
        let Some(node) = self.producer(name) else {
            let Some(values) = self.stored.get(format!("{name}{QUANTISED}").as_str()) else {
                return Ok(None);
            };
            let scale = get(&format!("{name}_scale"))?
                .ok_or_else(|| EmbedError::model(format!("the ONNX tensor {name} has no scale")))?;
            return values.read()?.minus(get(&format!("{name}_zero_point"))?, name)?.scaled(&scale, name).map(Some);
        };
        let input = |at: usize| node.inputs.get(at).map_or(Ok(None), |name| get(name));
        Ok(match node.operation {
            "Cast" | "Identity" => input(0)?,
            "Transpose" => input(0)?.map(Array::transposed),
            "Mul" | "DequantizeLinear" => match (input(0)?, input(1)?) {
                (Some(a), Some(b)) if a.values.len() >= b.values.len() => {
                    Some(a.minus(input(2)?, name)?.scaled(&b, name)?)
                }
                (Some(a), Some(b)) => Some(b.scaled(&a, name)?),
                _ => None,
            },
            _ => None,
        })
    }

    /// The product that leads to a value.
    fn product_before(&self, name: &str, depth: usize) -> Option<&Node<'a>> {
        let node = self.producer(name).filter(|_| depth > 0)?;
        match node.operation {
            "MatMul" | "MatMulInteger" => Some(node),
            // The second factor of a product in bytes is its scale.
            "Cast" | "Identity" | "Reshape" | "Mul" => {
                node.inputs.iter().take(2).find_map(|input| self.product_before(input, depth - 1))
            }
            _ => None,
        }
    }

    /// The matrix of a layer with one row per output, found by the node that adds the bias.
    fn matrix(&self, layer: &str) -> Result<Option<Array>, EmbedError> {
        let bias = format!("{layer}.bias");
        let adds_bias = |node: &&Node<'_>| node.operation == "Add" && node.inputs.contains(&bias.as_str());
        for input in self.nodes.iter().filter(adds_bias).flat_map(|node| &node.inputs) {
            let product = self.product_before(input, MAX_DEPTH);
            let Some(name) = product.and_then(|node| node.inputs.get(1)) else { continue };
            let name = name.strip_suffix(QUANTISED).unwrap_or(name);
            if let Some(matrix) = self.constant(name, MAX_DEPTH)? {
                return Ok(Some(matrix.transposed()));
            }
        }
        Ok(None)
    }
}

impl Tensors for Onnx<'_> {
    fn names(&self) -> Vec<&str> {
        let stored = self.stored.keys().map(|name| name.strip_suffix(QUANTISED).unwrap_or(name));
        stored.chain(self.producers.keys().copied()).collect()
    }

    fn lookup(&self, name: &str) -> Result<Option<Tensor>, EmbedError> {
        Ok(self.constant(name, MAX_DEPTH)?.map(Array::into_tensor))
    }

    fn lookup_layer(&self, name: &str) -> Result<Option<Tensor>, EmbedError> {
        match self.matrix(name)? {
            Some(array) => Ok(Some(array.into_tensor())),
            None => self.lookup(&format!("{name}.weight")),
        }
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

impl<'a> Node<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut node = Self::default();
        for field in fields(bytes) {
            match field? {
                (1, Value::Bytes(bytes)) => node.inputs.push(text(bytes)?),
                (2, Value::Bytes(bytes)) => node.outputs.push(text(bytes)?),
                (4, Value::Bytes(bytes)) => node.operation = text(bytes)?,
                _ => {}
            }
        }
        Some(node)
    }
}

impl<'a> Stored<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut stored = Self::default();
        let mut shape = Vec::new();
        for field in fields(bytes) {
            match field? {
                (1, Value::Number(length)) => shape.push(length),
                (1, Value::Bytes(bytes)) => shape.append(&mut packed(bytes)?),
                (2, Value::Number(kind)) => stored.kind = kind,
                (4, Value::Bytes(bytes)) => stored.floats = bytes,
                (5, Value::Number(number)) => stored.numbers.push(number),
                (5, Value::Bytes(bytes)) => stored.numbers.append(&mut packed(bytes)?),
                (8, Value::Bytes(bytes)) => stored.name = text(bytes)?,
                (9, Value::Bytes(bytes)) => stored.raw = bytes,
                (14, Value::Number(place)) => stored.external = place == 1,
                _ => {}
            }
        }
        stored.shape = shape.into_iter().map(|length| usize::try_from(length).ok()).collect::<Option<_>>()?;
        Some(stored)
    }

    fn read(&self) -> Result<Array, EmbedError> {
        let fault = |what: &str| EmbedError::model(format!("the ONNX tensor {} {what}", self.name));
        if self.external {
            return Err(fault("is in another file; export the model as a single file"));
        }
        let is_integer = matches!(self.kind, INT8 | UINT8);
        let values: Vec<f32> = match self.kind {
            FLOAT if !self.floats.is_empty() => floats(self.floats),
            FLOAT => floats(self.raw),
            FLOAT16 => halves(self.raw, from_f16),
            BFLOAT16 => halves(self.raw, from_bf16),
            _ if is_integer && self.raw.is_empty() => self.numbers.iter().map(|&number| number as i64 as f32).collect(),
            INT8 => self.raw.iter().map(|&byte| f32::from(byte as i8)).collect(),
            UINT8 => self.raw.iter().map(|&byte| f32::from(byte)).collect(),
            other => return Err(fault(&format!("is of the unsupported type {other}"))),
        };
        let count = self.shape.iter().try_fold(1usize, |count, &length| count.checked_mul(length));
        if count != Some(values.len()) {
            return Err(fault("does not have the size of its shape"));
        }
        let array = Array { shape: self.shape.clone(), values, scales: None };
        let scales = is_integer.then(|| array.size().map(|count| vec![1.0; count]));
        Ok(Array { scales, ..array })
    }
}

/// A constant.
struct Array {
    shape: Vec<usize>,
    values: Vec<f32>,
    /// Of integers: the factors of each row and of each column.
    scales: Option<[Vec<f32>; 2]>,
}

impl Array {
    /// Rows and columns.
    fn size(&self) -> [usize; 2] {
        let columns = self.shape.last().copied().unwrap_or(1).max(1);
        [self.values.len() / columns, columns]
    }

    /// The operand's value for each row (axis 0) or each column (axis 1).
    fn spread(&self, operand: &Self) -> Option<(usize, Vec<f32>)> {
        let [rows, columns] = self.size();
        let may_be_rows = operand.shape.last() == Some(&1) || operand.values.len() != columns;
        match operand.values.as_slice() {
            &[one] => Some((0, vec![one; rows])),
            values if values.len() == rows && may_be_rows => Some((0, values.to_vec())),
            values if values.len() == columns => Some((1, values.to_vec())),
            _ => None,
        }
    }

    fn combine(&mut self, axis: usize, operands: &[f32], operation: fn(f32, f32) -> f32) {
        let [_, columns] = self.size();
        for (at, value) in self.values.iter_mut().enumerate() {
            *value = operation(*value, operands[[at / columns, at % columns][axis]]);
        }
    }

    fn scaled(mut self, scale: &Self, name: &str) -> Result<Self, EmbedError> {
        let (axis, factors) = self
            .spread(scale)
            .ok_or_else(|| EmbedError::model(format!("the scale of the ONNX tensor {name} does not fit it")))?;
        match &mut self.scales {
            Some(scales) => scales[axis].iter_mut().zip(factors).for_each(|(scale, factor)| *scale *= factor),
            None => self.combine(axis, &factors, |value, factor| value * factor),
        }
        Ok(self)
    }

    /// Subtracts the zero point.
    fn minus(mut self, zero: Option<Self>, name: &str) -> Result<Self, EmbedError> {
        if let Some(zero) = zero.filter(|zero| !zero.values.is_empty()) {
            let (axis, zeros) = self.spread(&zero).ok_or_else(|| {
                EmbedError::model(format!("the zero point of the ONNX tensor {name} does not fit it"))
            })?;
            self.combine(axis, &zeros, |value, zero| value - zero);
        }
        Ok(self)
    }

    fn transposed(self) -> Self {
        let &[rows, columns] = self.shape.as_slice() else {
            return self;
        };
        let mut values = vec![0.0; self.values.len()];
        for (at, value) in self.values.into_iter().enumerate() {
            values[at % columns * rows + at / columns] = value;
        }
        Self { shape: vec![columns, rows], values, scales: self.scales.map(|[by_row, by_column]| [by_column, by_row]) }
    }

    /// Returns quantised values to int8 if that is exact: if they fit, and a row has one scale.
    fn into_tensor(mut self) -> Tensor {
        if let Some([by_row, by_column]) = self.scales.take() {
            let is_uniform = by_column.windows(2).all(|pair| pair[0] == pair[1]);
            let fits = self.values.iter().all(|value| (-128.0..=127.0).contains(value));
            if self.shape.len() == 2 && is_uniform && fits {
                let values = self.values.into_iter().map(|value| value as i8 as u8).collect();
                let scales = by_row.iter().map(|scale| scale * by_column[0]).collect();
                return Tensor { shape: self.shape, values: Values::Bytes { values: Cow::Owned(values), scales } };
            }
            self.combine(0, &by_row, |value, scale| value * scale);
            self.combine(1, &by_column, |value, scale| value * scale);
        }
        Tensor { shape: self.shape, values: Values::Floats(self.values) }
    }
}
