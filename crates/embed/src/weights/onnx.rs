//! The weights inside an ONNX graph.
//!
//! Exporters keep the names of biases, norms and tables, but not those of matrices. A matrix is found by walking back
//! from the node that adds its bias, or by the name of its node. Constant expressions (casts, dequantisation,
//! transpositions) are evaluated.

use std::borrow::Cow;
use std::collections::HashMap;

use super::graph::{self, Graph, Node, Stored};
use super::half::{from_bf16, from_f16};
use super::safetensors::{floats, halves};
use super::{Tensor, Tensors, Values, quantise};
use crate::EmbedError;

/// Most nodes on the way to a constant.
const MAX_DEPTH: usize = 12;
const QUANTISED: &str = "_quantized";

pub struct Onnx {
    bytes: Vec<u8>,
    graph: Graph,
    /// The node that produces each value.
    producers: HashMap<String, usize>,
}

/// A constant.
struct Array {
    shape: Vec<usize>,
    values: Vec<f32>,
    /// If it was quantised: the steps that values are multiples of.
    steps: Option<(Along, Vec<f32>)>,
}

/// What has one number each: the whole array, a row, or a column.
#[derive(Clone, Copy)]
enum Along {
    Whole,
    Rows,
    Columns,
}

impl Onnx {
    pub fn parse(bytes: Vec<u8>) -> Result<Self, EmbedError> {
        let graph = graph::read(&bytes)?;
        let outputs =
            |(at, node): (usize, &Node)| node.outputs.iter().map(|name| (name.clone(), at)).collect::<Vec<_>>();
        let producers = graph.nodes.iter().enumerate().flat_map(outputs).collect();
        Ok(Self { bytes, graph, producers })
    }

    fn producer(&self, name: &str) -> Option<&Node> {
        self.producers.get(name).map(|&at| &self.graph.nodes[at])
    }

    fn constant(&self, name: &str) -> Result<Option<Array>, EmbedError> {
        self.evaluate(name, MAX_DEPTH)
    }

    /// `None` if the value is not constant.
    fn evaluate(&self, name: &str, depth: usize) -> Result<Option<Array>, EmbedError> {
        if let Some(stored) = self.graph.stored.get(name) {
            return self.read(name, stored).map(Some);
        }
        let Some(node) = self.producer(name).filter(|_| depth > 0) else {
            return Ok(None);
        };
        let input = |at: usize| match node.inputs.get(at).filter(|name| !name.is_empty()) {
            Some(name) => self.evaluate(name, depth - 1),
            None => Ok(None),
        };
        Ok(match node.operation.as_str() {
            "Constant" => node.tensor.as_ref().map(|stored| self.read(name, stored)).transpose()?,
            "Cast" | "Identity" => input(0)?,
            "Mul" => match (input(0)?, input(1)?) {
                (Some(a), Some(b)) if a.values.len() >= b.values.len() => Some(a.scaled(&b, name)?),
                (Some(a), Some(b)) => Some(b.scaled(&a, name)?),
                _ => None,
            },
            "DequantizeLinear" => match (input(0)?, input(1)?) {
                (Some(values), Some(scale)) => Some(values.minus(input(2)?, name)?.scaled(&scale, name)?),
                _ => None,
            },
            "Transpose" => input(0)?.map(Array::transposed),
            _ => None,
        })
    }

    fn read(&self, name: &str, stored: &Stored) -> Result<Array, EmbedError> {
        let fault = |what: &str| EmbedError::model(format!("the ONNX tensor {name} {what}"));
        if stored.external {
            return Err(fault("is in another file; export the model as a single file"));
        }
        let raw = &self.bytes[stored.raw.clone()];
        let values = match stored.kind {
            graph::FLOAT if !stored.floats.is_empty() => floats(&self.bytes[stored.floats.clone()]),
            graph::FLOAT => floats(raw),
            graph::FLOAT16 => halves(raw, from_f16),
            graph::BFLOAT16 => halves(raw, from_bf16),
            graph::INT8 | graph::UINT8 if raw.is_empty() => {
                stored.numbers.iter().map(|&number| number as i64 as f32).collect()
            }
            graph::INT8 => raw.iter().map(|&byte| f32::from(byte as i8)).collect(),
            graph::UINT8 => raw.iter().map(|&byte| f32::from(byte)).collect(),
            other => return Err(fault(&format!("is of the unsupported type {other}"))),
        };
        let count = stored.shape.iter().try_fold(1usize, |count, &length| count.checked_mul(length));
        if count != Some(values.len()) {
            return Err(fault("does not have the size of its shape"));
        }
        let is_integer = matches!(stored.kind, graph::INT8 | graph::UINT8);
        Ok(Array { shape: stored.shape.clone(), values, steps: is_integer.then(|| (Along::Whole, vec![1.0])) })
    }

    /// The matrix of the product that leads to `name`, with one row per output.
    fn matrix_before(&self, name: &str) -> Result<Option<Array>, EmbedError> {
        let mut name = name.to_owned();
        let mut scale = None;
        for _ in 0..MAX_DEPTH {
            let Some(node) = self.producer(&name) else {
                return Ok(None);
            };
            name = match node.operation.as_str() {
                "Cast" | "Identity" | "Reshape" => node.inputs.first().cloned().unwrap_or_default(),
                "Mul" => match self.scaled_product(node)? {
                    Some((product, found)) => {
                        scale = found;
                        product
                    }
                    None => return Ok(None),
                },
                "MatMul" | "Gemm" | "MatMulInteger" => return self.matrix_of(node, scale),
                _ => return Ok(None),
            };
        }
        Ok(None)
    }

    /// For a node that scales an int8 product: the product, and the constant part of the scale.
    fn scaled_product(&self, node: &Node) -> Result<Option<(String, Option<Array>)>, EmbedError> {
        let [first, second] = node.inputs.as_slice() else {
            return Ok(None);
        };
        let is_product = |name: &str| self.producer(name).is_some_and(|node| node.operation != "Mul");
        let (product, scale) = match is_product(first) {
            true => (first, second),
            false => (second, first),
        };
        if let Some(constant) = self.constant(scale)? {
            return Ok(Some((product.clone(), Some(constant))));
        }
        let factors = self.producer(scale).filter(|node| node.operation == "Mul");
        for input in factors.into_iter().flat_map(|node| &node.inputs) {
            if let Some(constant) = self.constant(input)? {
                return Ok(Some((product.clone(), Some(constant))));
            }
        }
        Ok(None)
    }

    fn matrix_of(&self, node: &Node, scale: Option<Array>) -> Result<Option<Array>, EmbedError> {
        let Some(name) = node.inputs.get(1) else {
            return Ok(None);
        };
        let Some(mut matrix) = self.constant(name)? else {
            return Ok(None);
        };
        if node.operation == "MatMulInteger" {
            let zero = node.inputs.get(3).map(|zero| self.constant(zero)).transpose()?;
            let scale = scale.ok_or_else(|| no_scale(name))?;
            matrix = matrix.minus(zero.flatten(), name)?.scaled(&scale, name)?;
        }
        // Only `Gemm` with `transB` stores one row per output.
        Ok(Some(if node.transposed { matrix } else { matrix.transposed() }))
    }

    /// Finds the matrix by the node that adds the bias of the layer.
    fn matrix_by_bias(&self, layer: &str) -> Result<Option<Array>, EmbedError> {
        let bias = format!("{layer}.bias");
        for node in self.graph.nodes.iter().filter(|node| node.inputs.contains(&bias)) {
            let found = match node.operation.as_str() {
                "Gemm" => self.matrix_of(node, None)?,
                "Add" => match node.inputs.iter().find(|&name| *name != bias) {
                    Some(other) => self.matrix_before(other)?,
                    None => None,
                },
                _ => None,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Finds the matrix by the node name that exporters derive from a layer: `encoder.layer.0.output.dense` becomes
    /// `/encoder/layer.0/output/dense/MatMul`.
    fn matrix_by_node_name(&self, layer: &str) -> Result<Option<Array>, EmbedError> {
        let mut path = String::from("/");
        let mut parts = layer.split('.').peekable();
        while let Some(part) = parts.next() {
            path.push_str(part);
            let number_follows = parts.peek().is_some_and(|next| next.bytes().all(|byte| byte.is_ascii_digit()));
            path.push(if number_follows { '.' } else { '/' });
        }
        let operations = ["MatMul", "Gemm", "MatMulInteger"];
        let wanted = |node: &&Node| node.name.contains(&path) && operations.contains(&node.operation.as_str());
        let found = self.graph.nodes.iter().find(wanted);
        let output = found.and_then(|node| node.outputs.first());
        output.map_or(Ok(None), |output| self.matrix_before(output))
    }
}

impl Tensors for Onnx {
    fn names(&self) -> Vec<&str> {
        let stored = self.graph.stored.keys().map(|name| name.strip_suffix(QUANTISED).unwrap_or(name));
        stored.chain(self.producers.keys().map(String::as_str)).collect()
    }

    fn lookup(&self, name: &str) -> Result<Option<Tensor>, EmbedError> {
        if let Some(array) = self.constant(name)? {
            return Ok(Some(array.into_tensor()));
        }
        let Some(values) = self.constant(&format!("{name}{QUANTISED}"))? else {
            return Ok(None);
        };
        let Some(scale) = self.constant(&format!("{name}_scale"))? else {
            return Err(no_scale(name));
        };
        let zero = self.constant(&format!("{name}_zero_point"))?;
        Ok(Some(values.minus(zero, name)?.scaled(&scale, name)?.into_tensor()))
    }

    fn lookup_layer(&self, name: &str) -> Result<Option<Tensor>, EmbedError> {
        let mut found = self.matrix_by_bias(name)?;
        if found.is_none() {
            found = self.matrix_by_node_name(name)?;
        }
        match found {
            Some(array) => Ok(Some(array.into_tensor())),
            None => self.lookup(&format!("{name}.weight")),
        }
    }
}

fn no_scale(name: &str) -> EmbedError {
    EmbedError::model(format!("the ONNX tensor {name} has no scale"))
}

impl Array {
    /// Combines each value with one of the operands: the only one, that of its row, or that of its column.
    fn combine(&mut self, operands: &Self, operation: fn(f32, f32) -> f32) -> Option<Along> {
        let columns = self.shape.last().copied().unwrap_or(1).max(1);
        let rows = self.values.len() / columns;
        let may_be_rows = operands.shape.last() == Some(&1) || operands.values.len() != columns;
        let along = match operands.values.len() {
            1 => Along::Whole,
            count if count == rows && may_be_rows => Along::Rows,
            count if count == columns => Along::Columns,
            _ => return None,
        };
        for (row, values) in self.values.chunks_exact_mut(columns).enumerate() {
            for (column, value) in values.iter_mut().enumerate() {
                let operand = match along {
                    Along::Whole => 0,
                    Along::Rows => row,
                    Along::Columns => column,
                };
                *value = operation(*value, operands.values[operand]);
            }
        }
        Some(along)
    }

    fn scaled(mut self, factors: &Self, name: &str) -> Result<Self, EmbedError> {
        let along = self.combine(factors, |value, factor| value * factor);
        let along =
            along.ok_or_else(|| EmbedError::model(format!("the scale of the ONNX tensor {name} does not fit it")))?;
        let was_integer = matches!(&self.steps, Some((Along::Whole, steps)) if *steps == [1.0]);
        self.steps = was_integer.then(|| (along, factors.values.clone()));
        Ok(self)
    }

    /// Subtracts the zero point.
    fn minus(mut self, zero: Option<Self>, name: &str) -> Result<Self, EmbedError> {
        let zero = zero.filter(|zero| !zero.values.is_empty());
        if zero.is_some_and(|zero| self.combine(&zero, |value, zero| value - zero).is_none()) {
            return Err(EmbedError::model(format!("the zero point of the ONNX tensor {name} does not fit it")));
        }
        Ok(self)
    }

    fn transposed(self) -> Self {
        let &[rows, columns] = self.shape.as_slice() else {
            return self;
        };
        let mut values = vec![0.0; self.values.len()];
        for (row, source) in self.values.chunks_exact(columns.max(1)).enumerate() {
            for (column, &value) in source.iter().enumerate() {
                values[column * rows + row] = value;
            }
        }
        let steps = self.steps.map(|(along, steps)| match along {
            Along::Whole => (along, steps),
            Along::Rows => (Along::Columns, steps),
            Along::Columns => (Along::Rows, steps),
        });
        Self { shape: vec![columns, rows], values, steps }
    }

    /// Returns quantised values to int8 if that is exact.
    fn into_tensor(self) -> Tensor {
        let steps = match (self.steps, self.shape.as_slice()) {
            (Some((Along::Whole, steps)), &[rows, _]) => Some(vec![steps[0]; rows]),
            (Some((Along::Rows, steps)), [_, _]) => Some(steps),
            _ => None,
        };
        let columns = self.shape.last().copied().unwrap_or_default();
        let bytes = steps.and_then(|steps| Some((quantise::exactly(&self.values, columns, &steps)?, steps)));
        Tensor {
            shape: self.shape,
            values: match bytes {
                Some((values, scales)) => Values::Bytes { values: Cow::Owned(values), scales },
                None => Values::Floats(self.values),
            },
        }
    }
}
