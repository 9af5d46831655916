//! What goes through the pipes between [`crate::Workers`] and a worker: frames of a length and as many bytes.

use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::extracted::{Extracted, Problem};
use crate::formats::Format;

/// Before the bytes of a file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) format: Format,
    /// The most bytes of text that one document may have.
    pub(crate) max_text_bytes: usize,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    Extracted(Extracted),
    Problem(Problem),
    Done { goes_on: bool },
}

pub(crate) fn write_frame(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(&(bytes.len() as u64).to_le_bytes())?;
    to.write_all(bytes)
}

/// `None` at the end of the stream. A length above `most` is an error, before memory is taken.
pub(crate) fn read_frame(from: &mut impl Read, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 8];
    match from.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        outcome => outcome?,
    }
    let length = u64::from_le_bytes(length);
    if length > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a frame of {length} bytes")));
    }
    let mut bytes = Vec::new();
    let read = from.take(length).read_to_end(&mut bytes)?;
    if (read as u64) < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(bytes))
}

pub(crate) fn write_json(to: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    write_frame(to, &serde_json::to_vec(value)?)
}

pub(crate) fn read_json<T: DeserializeOwned>(from: &mut impl Read, most: u64) -> io::Result<Option<T>> {
    read_frame(from, most)?.map(|bytes| Ok(serde_json::from_slice(&bytes)?)).transpose()
}
