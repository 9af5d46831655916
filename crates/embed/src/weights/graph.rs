//! Nodes and stored tensors of an ONNX file.

use std::collections::HashMap;
use std::ops::Range;

use super::protobuf::{Fields, Value, packed};
use crate::EmbedError;

pub const FLOAT: u64 = 1;
pub const UINT8: u64 = 2;
pub const INT8: u64 = 3;
pub const FLOAT16: u64 = 10;
pub const BFLOAT16: u64 = 16;

#[derive(Default)]
pub struct Graph {
    pub nodes: Vec<Node>,
    pub stored: HashMap<String, Stored>,
}

#[derive(Default)]
pub struct Node {
    pub name: String,
    pub operation: String,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
    /// The value of a `Constant` node.
    pub tensor: Option<Stored>,
    /// `transB` of a `Gemm` node.
    pub transposed: bool,
}

/// Where a tensor is in the file.
#[derive(Default)]
pub struct Stored {
    pub shape: Vec<usize>,
    pub kind: u64,
    pub raw: Range<usize>,
    pub floats: Range<usize>,
    pub numbers: Vec<u64>,
    pub external: bool,
}

pub fn read(bytes: &[u8]) -> Result<Graph, EmbedError> {
    parse(bytes).ok_or_else(|| EmbedError::model("not an ONNX file, or one that is cut short"))
}

fn parse(bytes: &[u8]) -> Option<Graph> {
    let mut found = None;
    for field in Fields::of(bytes, 0..bytes.len()) {
        if let (7, Value::Bytes(range)) = field? {
            found.get_or_insert_with(Graph::default).add(bytes, range)?;
        }
    }
    found
}

impl Graph {
    fn add(&mut self, bytes: &[u8], range: Range<usize>) -> Option<()> {
        for field in Fields::of(bytes, range) {
            match field? {
                (1, Value::Bytes(range)) => self.nodes.push(node(bytes, range)?),
                (5, Value::Bytes(range)) => {
                    let (name, stored) = tensor(bytes, range)?;
                    self.stored.insert(name, stored);
                }
                _ => {}
            }
        }
        Some(())
    }
}

fn text(bytes: &[u8], range: Range<usize>) -> String {
    String::from_utf8_lossy(&bytes[range]).into_owned()
}

fn node(bytes: &[u8], range: Range<usize>) -> Option<Node> {
    let mut node = Node::default();
    for field in Fields::of(bytes, range) {
        match field? {
            (1, Value::Bytes(range)) => node.inputs.push(text(bytes, range)),
            (2, Value::Bytes(range)) => node.outputs.push(text(bytes, range)),
            (3, Value::Bytes(range)) => node.name = text(bytes, range),
            (4, Value::Bytes(range)) => node.operation = text(bytes, range),
            (5, Value::Bytes(range)) => attribute(bytes, range, &mut node)?,
            _ => {}
        }
    }
    Some(node)
}

fn attribute(bytes: &[u8], range: Range<usize>, node: &mut Node) -> Option<()> {
    let mut name = String::new();
    let mut number = 0;
    for field in Fields::of(bytes, range) {
        match field? {
            (1, Value::Bytes(range)) => name = text(bytes, range),
            (3, Value::Number(value)) => number = value,
            (5, Value::Bytes(range)) => node.tensor = Some(tensor(bytes, range)?.1),
            _ => {}
        }
    }
    if name == "transB" {
        node.transposed = number == 1;
    }
    Some(())
}

fn tensor(bytes: &[u8], range: Range<usize>) -> Option<(String, Stored)> {
    let mut name = String::new();
    let mut stored = Stored::default();
    for field in Fields::of(bytes, range) {
        match field? {
            (1, Value::Number(number)) => stored.shape.push(usize::try_from(number).ok()?),
            (1, Value::Bytes(range)) => {
                for number in packed(bytes, range)? {
                    stored.shape.push(usize::try_from(number).ok()?);
                }
            }
            (2, Value::Number(kind)) => stored.kind = kind,
            (4, Value::Bytes(range)) => stored.floats = range,
            (5, Value::Number(number)) => stored.numbers.push(number),
            (5, Value::Bytes(range)) => stored.numbers.append(&mut packed(bytes, range)?),
            (8, Value::Bytes(range)) => name = text(bytes, range),
            (9, Value::Bytes(range)) => stored.raw = range,
            (14, Value::Number(place)) => stored.external = place == 1,
            _ => {}
        }
    }
    Some((name, stored))
}
