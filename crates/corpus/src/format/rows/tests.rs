use super::*;
use crate::format::{Fault, FieldMap, Reading, Record};

#[derive(Default)]
struct Collected {
    records: Vec<Record>,
    faults: Vec<Fault>,
}

impl Sink for Collected {
    fn record(&mut self, line: Option<u64>, record: Record, warnings: Vec<String>) -> Result<(), Stop> {
        self.records.push(record);
        for warning in warnings {
            self.fault(line, false, warning);
        }
        Ok(())
    }
    fn fault(&mut self, line: Option<u64>, skipped: bool, problem: String) {
        self.faults.push(Fault { file: "f".into(), line, problem, skipped, reason: None });
    }
}

fn read(name: &str, content: &[u8]) -> Collected {
    read_as(&Reading::default(), name, content)
}

fn read_as(reading: &Reading, name: &str, content: &[u8]) -> Collected {
    let dir = tempfile::tempdir().expect("dir");
    let path = dir.path().join(name);
    std::fs::write(&path, content).expect("write");
    let mut collected = Collected::default();
    let input = Input { path: &path, relative: name, reading, max_document_bytes: 1024 };
    assert_eq!(input.read(&mut collected), Ok(()));
    collected
}

#[test]
fn jsonl_keeps_ids_and_names_bad_rows() {
    let long = format!("{{\"id\":\"long\",\"text\":\"{}\"}}", "x".repeat(2000));
    let content = format!(
        "{}\n\nnot json\n{}\n{}\n{}\n{}\n{}\n",
        r#"{"id":"x-coredata://A/ICNote/p12 50%","title":"T","text":"one","date":"2024-01-02","lang":"en"}"#,
        r#"{"id":7,"text":"two"}"#,
        r#"{"id":"no text"}"#,
        long,
        r#"{"text":"four words in here"}"#,
        r#"{"_id":"8","title":"No more than a title","text":""}"#,
    );
    let read = read("rows.jsonl", content.as_bytes());
    let keys: Vec<&str> = read.records.iter().map(|r| r.key.as_str()).collect();
    assert_eq!(keys, ["x-coredata://A/ICNote/p12 50%", "7", "rows.jsonl#7", "8"]);
    assert_eq!(read.records[0].fields["lang"], "en");
    assert_eq!(read.records[2].title, "four words in here");
    assert_eq!(read.records[3].text, "No more than a title");
    let lines: Vec<Option<u64>> = read.faults.iter().map(|f| f.line).collect();
    assert_eq!(lines, [Some(3), Some(5), Some(6)]);
}

#[test]
fn csv_reads_quoted_cells_and_names_bad_ones() {
    let read = read(
        "rows.csv",
        b"ID,Title,Text,Topic\n1,One,\"first, with \"\"quotes\"\"\nand a line\",a\n2,,,b\n3,Three,\xff\xfe,c\n4,Four,fourth\n",
    );
    assert_eq!(read.records.len(), 2);
    assert_eq!(read.records[0].text, "first, with \"quotes\"\nand a line");
    assert_eq!(read.records[0].fields["Topic"], "a");
    assert_eq!(read.records[1].key, "4");
    assert_eq!(read.faults.len(), 2, "{:?}", read.faults);
}

#[test]
fn unclosed_quote_costs_only_the_rest() {
    let content = format!("id,text\n1,one\n2,\"two\n{}", "3,three\n".repeat(10_000));
    let read = read("rows.csv", content.as_bytes());
    assert_eq!(read.records.len(), 1);
    assert_eq!(read.faults[0].line, Some(3));
    assert!(read.faults[0].problem.contains("a quote is not closed"), "{:?}", read.faults);
}

#[test]
fn quote_left_open_near_the_end_is_reported() {
    let read = read("rows.csv", b"id,text\n1,one\n2,\"two\n3,three\n4,four\n");
    assert_eq!(read.records.len(), 2);
    assert_eq!(read.faults[0].line, Some(3));
    assert!(read.faults[0].problem.contains("never closed"), "{:?}", read.faults);
}

#[test]
fn column_named_twice_is_reported() {
    let read = read("rows.csv", b"id,text,text\n1,first,second\n");
    assert_eq!(read.records[0].text, "second");
    assert!(read.faults[0].problem.contains("two columns `text`") && !read.faults[0].skipped);
}

#[test]
fn csv_without_text_column_lists_its_columns() {
    let read = read("rows.csv", b"id,body\n1,x\n");
    assert!(read.faults[0].problem.contains("no column `text` (its columns: id, body)"));
}

#[test]
fn cells_beyond_the_last_column_are_reported() {
    let read = read("rows.csv", b"id,text\n1,one, and more\n2,two,\n");
    assert_eq!(read.records.len(), 2);
    assert_eq!(read.faults.len(), 1, "{:?}", read.faults);
    assert!(read.faults[0].problem.contains("has 3 cells for 2 columns"));
    assert!(!read.faults[0].skipped);
}

#[test]
fn mapped_columns_are_renamed() {
    let fields: FieldMap = [("text", "Body"), ("title", "heading"), ("id", "ref"), ("date", "day")]
        .map(|(ours, theirs)| (ours.to_owned(), theirs.to_owned()))
        .into_iter()
        .collect();
    let reading = Reading { fields, ..Reading::default() };
    let read = read_as(&reading, "rows.csv", b"ref,heading,body,day,x\nR 1,T,words,2024-01-02,y\n");
    assert!(read.faults.is_empty(), "{:?}", read.faults);
    let record = &read.records[0];
    assert_eq!((record.key.as_str(), record.title.as_str(), record.text.as_str()), ("R 1", "T", "words"));
    assert_eq!(record.date, Some(jiff::civil::date(2024, 1, 2)));
    assert_eq!(record.fields["x"], "y");
}
