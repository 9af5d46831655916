//! Citation addresses: absolute, and opening for a person.

use percent_encoding::percent_decode_str;

use crate::id::DocumentId;

#[derive(Debug, Clone)]
pub struct Links {
    base: String,
}

impl Links {
    /// `base` is the public address, with or without a slash at the end.
    pub fn new(base: &str) -> Self {
        Self { base: base.trim_end_matches('/').to_owned() }
    }

    pub fn base(&self) -> &str {
        &self.base
    }

    /// The path under which the public address is reached: empty, or `/prefix`.
    pub fn path_prefix(&self) -> &str {
        let after_scheme = self.base.split_once("://").map_or("", |(_, rest)| rest);
        after_scheme.find('/').map_or("", |at| &after_scheme[at..])
    }

    /// The page of a document, at one of its passages if one is given.
    pub fn citation(&self, id: &DocumentId, passage: Option<usize>) -> String {
        let page = format!("{}/data/{}", self.base, id.to_path_segment());
        match passage {
            Some(passage) => format!("{page}?passage={passage}#passage"),
            None => page,
        }
    }

    /// The page of the document with this id, for links on pages; text that is no id leads to the start page.
    pub fn href(&self, id: &str) -> String {
        DocumentId::parse(id).map_or_else(|_| format!("{}/", self.base), |id| self.citation(&id, None))
    }

    /// The record of a document as it was when it was cited.
    pub fn record(&self, id: &DocumentId, record: &str) -> String {
        format!("{}?at={record}", self.citation(id, None))
    }

    /// The record that a citation address names.
    pub fn cited_record(address: &str) -> Option<&str> {
        let (_, query) = address.split_once('?')?;
        let query = query.split('#').next()?;
        query.split('&').find_map(|pair| pair.strip_prefix("at="))
    }

    /// The id that a citation address names: callers pass on the link where they should pass the id.
    pub fn cited_id(address: &str) -> Option<String> {
        if !address.starts_with("https://") && !address.starts_with("http://") {
            return None;
        }
        let (_, segment) = address.split_once("/data/")?;
        let segment = segment.split(['?', '#']).next()?;
        let id = percent_decode_str(segment).decode_utf8().ok()?;
        (!id.is_empty()).then(|| id.into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn citations_round_trip() {
        let links = Links::new("https://tribune.example.org/t/");
        assert_eq!(links.path_prefix(), "/t");
        for text in ["ticker:BTCUSDT", "x-coredata://A/ICNote/p12", "notes:50% of ü?#&/data/.."] {
            let id = DocumentId::parse(text).expect("id");
            for passage in [None, Some(3)] {
                let address = links.citation(&id, passage);
                assert!(address.starts_with("https://tribune.example.org/t/data/"), "{address}");
                assert_eq!(Links::cited_id(&address).as_deref(), Some(text));
            }
        }
        let id = DocumentId::parse("ticker:BTCUSDT").expect("id");
        let record = links.record(&id, "0abc");
        assert_eq!(record, "https://tribune.example.org/t/data/ticker:BTCUSDT?at=0abc");
        assert_eq!(Links::cited_id(&record).as_deref(), Some("ticker:BTCUSDT"));
        assert_eq!(Links::cited_record(&record), Some("0abc"));
        assert_eq!(Links::cited_record(&links.citation(&id, Some(1))), None);
        assert_eq!(Links::cited_id("notes:a.md"), None);
        assert_eq!(Links::cited_id("https://example.org/other"), None);
    }
}
