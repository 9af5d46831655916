//! Files that pandoc and this test make, in every format.

use std::io::Write;
use std::process::{Command, Stdio};

use tribune_extract::{Extracted, Format, Reason, Workers};

use crate::{Contents, contents, format_of, recall, workers};

const SOURCE: &str = "---\ntitle: Harbour handbook\nauthor: Ann Citizen\n---\n\n# Tides\n\nThe tide table hangs beside the door. High water is **late** on Sundays.\n\n- Check the bilge pump\n- Check the mooring lines\n\n## Signals\n\n| Flag | Meaning |\n|------|---------|\n| Alpha | Diver below |\n| Oscar | Man overboard |\n\n# Engines\n\nThe brass impeller fits the older engine only [^1].\n\n```python\nprint('impeller')\n```\n\n[^1]: Order it from the chandler in Fremantle.\n";
/// The words of the source that every format must give back.
const WORDS: &str = "Tides The tide table hangs beside the door High water is late on Sundays Check the bilge pump Check the mooring lines Signals Flag Meaning Alpha Diver below Oscar Man overboard Engines The brass impeller fits the older engine only print impeller Order it from the chandler in Fremantle";

fn pandoc(to: &str, name: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(name);
    let mut child = Command::new("pandoc")
        .args(["--standalone", "--from", "markdown", "--to", to, "--output"])
        .arg(&path)
        .stdin(Stdio::piped())
        .spawn()
        .expect("pandoc: ./test --install-only installs it");
    child.stdin.take().expect("a pipe").write_all(SOURCE.as_bytes()).expect("written");
    assert!(child.wait().expect("ended").success());
    std::fs::read(path).expect("a file")
}

/// The only document of a file.
fn only(workers: &Workers, name: &str, bytes: Vec<u8>) -> Extracted {
    let format = format_of(name.as_ref()).expect("a format");
    let Contents { mut found, problems } = contents(workers, format, bytes);
    assert!(problems.is_empty() && found.len() == 1, "{name}: {problems:?}, {found:?}");
    found.remove(0)
}

#[test]
fn every_word_of_made_documents_is_found() {
    let workers = workers();
    for (to, name) in [
        ("docx", "a.docx"),
        ("pptx", "a.pptx"),
        ("odt", "a.odt"),
        ("epub", "a.epub"),
        ("html", "a.html"),
        ("ipynb", "a.ipynb"),
        ("rst", "a.rst"),
        ("asciidoc", "a.adoc"),
        ("org", "a.org"),
    ] {
        let found = only(&workers, name, pandoc(to, name));
        let recall = recall(WORDS, &found.text);
        assert!(recall >= 0.98, "{name}: {recall}\n{}", found.text);
    }
}

#[test]
fn headings_titles_and_places_are_kept() {
    let workers = workers();
    let docx = only(&workers, "a.docx", pandoc("docx", "a.docx"));
    assert!(docx.text.contains("# Engines") && docx.text.contains("## Signals"), "{}", docx.text);
    let odt = only(&workers, "a.odt", pandoc("odt", "a.odt"));
    assert!(odt.text.contains("# Engines") && odt.text.contains("## Signals"), "{}", odt.text);
    let slides = only(&workers, "a.pptx", pandoc("pptx", "a.pptx"));
    assert!(slides.places.iter().any(|place| place.label == "slide 2"), "{:?}", slides.places);
    let book = only(&workers, "a.epub", pandoc("epub", "a.epub"));
    assert_eq!(book.title.as_deref(), Some("Harbour handbook"));
    assert!(book.places.iter().any(|place| place.label == "Engines"), "{:?}", book.places);
    let page = only(&workers, "a.html", pandoc("html", "a.html"));
    assert_eq!(page.fields["author"], "Ann Citizen");
}

const MAIL: &str = "From: Ann Citizen <ann@example.org>\r\nTo: ben@example.org\r\nSubject: =?utf-8?q?The_p=C3=BCmp?=\r\nDate: Tue, 28 May 2024 10:00:00 +0800\r\nMessage-ID: <1@example.org>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\nContent-Type: text/html; charset=utf-8\r\n\r\n<p>See the <b>attached</b> list.</p>\r\n--x\r\nContent-Type: text/plain; name=list.txt\r\nContent-Disposition: attachment; filename=list.txt\r\n\r\nbrass impeller\r\n--x\r\nContent-Type: image/png\r\nContent-Disposition: attachment; filename=photo.png\r\nContent-Transfer-Encoding: base64\r\n\r\naGVsbG8=\r\n--x--\r\n";

#[test]
fn attachments_of_mail_are_documents() {
    let Contents { found, problems } = contents(&workers(), Format::Mail, MAIL.into());
    assert!(problems.is_empty(), "{problems:?}");
    let [mail, list] = &found[..] else { panic!("{found:?}") };
    assert_eq!(mail.title.as_deref(), Some("The pümp"));
    assert!(mail.text.contains("attached"), "{}", mail.text);
    assert_eq!((&mail.fields["author"], &mail.fields["message_id"]), (&"Ann Citizen".into(), &"1@example.org".into()));
    assert!(mail.fields["date"].as_str().is_some_and(|date| date.starts_with("2024-05-28")));
    assert_eq!((list.within.as_str(), list.text.trim()), ("list.txt", "brass impeller"));
}

#[test]
fn files_in_archives_are_documents() {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let plain = zip::write::SimpleFileOptions::default();
    for (name, bytes) in [
        ("notes/pump.md", b"# Pump\nBrass.".to_vec()),
        ("notes/photo.png", vec![1, 2, 3]),
        ("__MACOSX/notes/._pump.md", b"x".to_vec()),
        ("deep/letter.docx", pandoc("docx", "a.docx")),
        ("deep/broken.docx", b"no document".to_vec()),
    ] {
        zip.start_file(name, plain).expect("begun");
        zip.write_all(&bytes).expect("written");
    }
    let bytes = zip.finish().expect("an archive").into_inner();
    let Contents { found, problems } = contents(&workers(), Format::Zip, bytes);
    let names: Vec<&str> = found.iter().map(|found| found.within.as_str()).collect();
    assert_eq!(names, ["notes/pump.md", "deep/letter.docx"]);
    assert_eq!(problems.len(), 1);
    assert_eq!((problems[0].within.as_str(), problems[0].reason), ("deep/broken.docx", Reason::Damaged));
}
