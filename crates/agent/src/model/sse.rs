//! Parses server-sent events incrementally, with bounded events.

use super::failure::Cause;

/// Largest event.
pub(super) const MAX_EVENT_BYTES: usize = 1024 * 1024;

/// From bytes to the `data` of events; other fields and comments are ignored.
#[derive(Debug, Default)]
pub(super) struct EventReader {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    /// The last byte was `\r`: a following `\n` belongs to the same line end.
    after_return: bool,
    /// Whether a line was not a field: this may not be an event stream.
    pub(super) strange: bool,
}

impl EventReader {
    /// The events that these bytes complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, Cause> {
        let mut events = Vec::new();
        for &byte in bytes {
            let second_half = byte == b'\n' && std::mem::take(&mut self.after_return);
            self.after_return = byte == b'\r';
            if second_half {
                continue;
            }
            if byte == b'\n' || byte == b'\r' {
                self.end_line(&mut events);
            } else {
                self.line.push(byte);
            }
            if self.line.len() + self.data.len() > MAX_EVENT_BYTES {
                return Err(Cause::Garbage);
            }
        }
        Ok(events)
    }

    /// The last event, if the stream ended without the final empty line.
    pub(super) fn finish(&mut self) -> Option<Vec<u8>> {
        let mut events = Vec::new();
        if !self.line.is_empty() {
            self.end_line(&mut events);
        }
        self.end_line(&mut events);
        events.pop()
    }

    fn end_line(&mut self, events: &mut Vec<Vec<u8>>) {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_prefix(b"\xef\xbb\xbf".as_slice()).unwrap_or(&line);
        if line.is_empty() {
            if std::mem::take(&mut self.has_data) {
                events.push(std::mem::take(&mut self.data));
            }
        } else if let Some(data) = line.strip_prefix(b"data:") {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
            self.has_data = true;
        } else if !is_other_field(line) {
            self.strange = true;
        }
    }
}

fn is_other_field(line: &[u8]) -> bool {
    [b":".as_slice(), b"event:", b"id:", b"retry:"].iter().any(|field| line.starts_with(field))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let mut reader = EventReader::default();
        let mut events = Vec::new();
        for piece in pieces {
            events.extend(reader.push(piece).expect("short events"));
        }
        events.extend(reader.finish());
        events.into_iter().map(|event| String::from_utf8(event).expect("UTF-8")).collect()
    }

    #[test]
    fn all_line_ends_work() {
        assert_eq!(read(&[b"data: a\n\ndata: b\r\n\r\ndata:c\r\r"]), ["a", "b", "c"]);
        assert_eq!(read(&[b"data: a\r", b"\n\r", b"\ndata: b\r\n\r\n"]), ["a", "b"]);
    }

    #[test]
    fn comments_and_other_fields_are_ignored() {
        let stream = b"\xef\xbb\xbfevent: x\n: still working\nid: 4\nretry: 9\ndata: one\ndata: two\n\n\n\n";
        let mut reader = EventReader::default();
        assert_eq!(reader.push(stream).expect("events"), [b"one\ntwo".to_vec()]);
        assert!(!reader.strange);
        reader.push(b"<html>\n").expect("no event");
        assert!(reader.strange);
    }

    #[test]
    fn the_last_event_needs_no_empty_line() {
        assert_eq!(read(&[b"data: a\n\ndata: b"]), ["a", "b"]);
        assert_eq!(read(&[b"data: a\n\ndata: b\n"]), ["a", "b"]);
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut reader = EventReader::default();
        let line = [b"data: ".as_slice(), &[b'x'; 1000], b"\n"].concat();
        let refused = (0..2000).find_map(|_| reader.push(&line).err());
        assert_eq!(refused, Some(Cause::Garbage));
        let refused = EventReader::default().push(&vec![b'x'; MAX_EVENT_BYTES + 1]).err();
        assert_eq!(refused, Some(Cause::Garbage));
    }

    proptest! {
        #[test]
        fn chunk_boundaries_do_not_matter(
            texts in prop::collection::vec("[a-zé😀 ]{0,12}", 0..6),
            end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        ) {
            let stream: String = texts.iter().map(|text| format!("data: {text}{end}{end}")).collect();
            let bytes = stream.as_bytes();
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let pieces: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(read(&pieces), texts);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = EventReader::default();
            let _ = reader.push(&bytes);
            let _ = reader.finish();
        }
    }
}
