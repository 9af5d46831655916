//! Decodes bytes.

pub struct Decoded {
    pub text: String,
    pub was_windows_1252: bool,
}

/// The warning about a file in Windows-1252.
pub const WAS_WINDOWS_1252: &str = "is not UTF-8 and was read as Windows-1252; if accents or quotation marks look wrong, convert it with `iconv -t UTF-8`";

/// UTF-8 with or without a byte order mark, else Windows-1252 if the rules allow it.
pub fn decode(bytes: Vec<u8>, assume_windows_1252: bool) -> Result<Decoded, String> {
    let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Decoded {
            text: match text.strip_prefix('\u{feff}') {
                Some(rest) => rest.to_owned(),
                None => text,
            },
            was_windows_1252: false,
        }),
        Err(error) if assume_windows_1252 && !utf16 => {
            Ok(Decoded { text: windows_1252(error.as_bytes()), was_windows_1252: true })
        }
        Err(error) => Err(format!(
            "is not UTF-8 (first bad byte at offset {}): convert it, for example with `iconv -t UTF-8`",
            error.utf8_error().valid_up_to()
        )),
    }
}

/// Cannot fail: every byte is a character in Windows-1252.
pub fn windows_1252(bytes: &[u8]) -> String {
    let (text, _) = encoding_rs::WINDOWS_1252.decode_without_bom_handling(bytes);
    text.into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf_8_comes_first_and_windows_1252_only_where_it_may_be_assumed() {
        let decoded = decode("\u{feff}café".into(), true).expect("utf-8");
        assert_eq!((decoded.text.as_str(), decoded.was_windows_1252), ("café", false));
        let decoded = decode(b"caf\xe9 \x93so\x94 \x97".to_vec(), true).expect("decoded");
        assert_eq!((decoded.text.as_str(), decoded.was_windows_1252), ("café “so” —", true));
        assert!(decode(b"caf\xe9".to_vec(), false).is_err());
        assert!(decode(b"\xff\xfea\0".to_vec(), true).is_err(), "UTF-16 is not guessed at");
    }
}
