//! The input of the XML parser: decoded to UTF-8, with lines counted and a limit on the bytes per event.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use encoding_rs_io::{DecodeReaderBytes, DecodeReaderBytesBuilder};

const CHUNK_BYTES: usize = 64 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    Utf16,
    /// Anything that is not UTF-8. Files that declare ISO-8859-1 are Windows-1252 too, as in browsers.
    Windows1252,
}

/// Reads the whole file, because the declared encoding is often wrong.
pub(super) fn encoding(path: &Path) -> io::Result<Encoding> {
    let mut file = File::open(path)?;
    let mut bytes = vec![0; CHUNK_BYTES];
    let mut filled = 0;
    let mut first = true;
    loop {
        let read = file.read(&mut bytes[filled..])?;
        if read == 0 {
            return Ok(if filled == 0 { Encoding::Utf8 } else { Encoding::Windows1252 });
        }
        filled += read;
        if first && (bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff])) {
            return Ok(Encoding::Utf16);
        }
        first = false;
        match std::str::from_utf8(&bytes[..filled]) {
            Ok(_) => filled = 0,
            Err(error) if error.error_len().is_some() => return Ok(Encoding::Windows1252),
            Err(error) => {
                // A character split between two chunks begins the next one.
                bytes.copy_within(error.valid_up_to()..filled, 0);
                filled -= error.valid_up_to();
            }
        }
    }
}

/// Decodes to UTF-8, counts lines, and returns at most the allowed number of bytes.
pub(super) struct Counted {
    reader: BufReader<DecodeReaderBytes<File, Vec<u8>>>,
    pub(super) line: u64,
    left: u64,
}

impl Counted {
    pub(super) fn open(path: &Path, encoding: Encoding) -> io::Result<Self> {
        let mut decoder = DecodeReaderBytesBuilder::new();
        if encoding == Encoding::Windows1252 {
            decoder.encoding(Some(encoding_rs::WINDOWS_1252));
        } else {
            decoder.bom_sniffing(false);
        }
        Ok(Self { reader: BufReader::with_capacity(CHUNK_BYTES, decoder.build(File::open(path)?)), line: 1, left: 0 })
    }

    /// Allows `bytes` more to be read.
    pub(super) fn allow(&mut self, bytes: u64) {
        self.left = bytes;
    }
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut given = self.fill_buf()?;
        let read = given.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Counted {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.left == 0 {
            return Err(io::Error::other("what begins here is larger than one document may be"));
        }
        self.reader.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        let taken = &self.reader.buffer()[..amount];
        self.line += taken.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.left = self.left.saturating_sub(amount as u64);
        self.reader.consume(amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(content: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("file");
        std::fs::write(file.path(), content).expect("write");
        file
    }

    #[test]
    fn encodings_are_detected_across_chunks() {
        let mut cut = vec![b'x'; CHUNK_BYTES - 1];
        cut.extend("é and more".as_bytes());
        assert_eq!(encoding(file(&cut).path()).expect("read"), Encoding::Utf8);
        assert_eq!(encoding(file(b"").path()).expect("read"), Encoding::Utf8);
        assert_eq!(encoding(file(b"caf\xe9").path()).expect("read"), Encoding::Windows1252);
        assert_eq!(encoding(file(b"caf\xe9 au").path()).expect("read"), Encoding::Windows1252);
        assert_eq!(encoding(file(b"\xff\xfe<\0").path()).expect("read"), Encoding::Utf16);
    }

    #[test]
    fn windows_1252_is_decoded_and_lines_counted() {
        let file = file(&b"\x93caf\xe9\x94\n".repeat(30_000));
        let mut counted = Counted::open(file.path(), Encoding::Windows1252).expect("open");
        counted.allow(u64::MAX);
        let mut text = String::new();
        counted.read_to_string(&mut text).expect("utf-8");
        assert_eq!(text, "“café”\n".repeat(30_000));
        assert_eq!(counted.line, 30_001);
    }
}
