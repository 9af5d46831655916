//! Reads what a small writer writes; other tests and the packing of the built-in model use the writer too.

use super::*;

/// A tensor to write.
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
        Self { name: name.into(), dtype: "I8", shape: shape.to_vec(), bytes: values.to_vec() }
    }
}

/// Returns a safetensors file.
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
    // The format requires data to begin at a multiple of eight.
    header.resize(header.len().next_multiple_of(8), b' ');
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.append(&mut header);
    for tensor in tensors {
        bytes.extend_from_slice(&tensor.bytes);
    }
    bytes
}

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
fn written_tensors_are_read_back() {
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
        with_header(&format!(r#"{{"a":{{"dtype":"F32","shape":{shape},"data_offsets":{range}}}}}"#))
    };
    assert!(refusal(entry("[2]", "[0,800]")).contains("outside"));
    assert!(refusal(entry("[2]", "[8,0]")).contains("outside"));
    assert!(refusal(entry("[3]", "[0,8]")).contains("size of its shape"));
    assert!(refusal(entry("[9223372036854775807,9]", "[0,8]")).contains("size of its shape"));
}

#[test]
fn bytes_without_scales_are_refused() {
    let file = write(&[Written::bytes("b", &[1, 1], &[1])]);
    let file = SafeTensors::parse(Cow::Owned(file)).expect("reads");
    let error = file.lookup("b").err().expect("is refused").to_string();
    assert!(error.contains("needs b.scale"), "{error}");
}
