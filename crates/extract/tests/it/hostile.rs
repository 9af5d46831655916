//! Files that try to hurt whoever reads them: every one ends with a document or a reason, and the next file is read.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use tribune_extract::{Format, Reason, Workers, worker};
use zip::write::SimpleFileOptions;

use crate::{Contents, contents, workers};

fn zipped(name: &str, contents: impl Fn(&mut dyn Write)) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    zip.start_file(name, SimpleFileOptions::default().compression_level(Some(1)).large_file(true)).expect("begun");
    contents(&mut zip);
    zip.finish().expect("an archive").into_inner()
}

/// The reason why a file could not be read.
fn reason(workers: &Workers, format: Format, bytes: Vec<u8>) -> Reason {
    let Contents { found, problems } = contents(workers, format, bytes);
    assert!(found.is_empty(), "{found:?}");
    problems.first().expect("a problem").reason
}

/// Whether a worker still reads files.
fn assert_well(workers: &Workers) {
    let found = contents(workers, Format::Rst, b"Title\n=====\n\nText.".to_vec());
    assert_eq!(found.found.len(), 1);
}

#[test]
fn file_that_ends_its_parser_twice_is_given_up() {
    let workers = workers();
    // More than a parser may have.
    let page = vec![b'x'; 1 << 20];
    let bomb = zipped("word/document.xml", |to| {
        to.write_all(b"<w:document><w:body><w:p><w:r><w:t>").expect("written");
        for _ in 0..(2 * worker::MEMORY_BYTES) >> 20 {
            to.write_all(&page).expect("written");
        }
    });
    assert!(bomb.len() < 64 << 20, "{} bytes", bomb.len());
    let reason = reason(&workers, Format::Docx, bomb);
    assert!(matches!(reason, Reason::Killed | Reason::Damaged | Reason::TooLarge), "{reason:?}");
    assert_well(&workers);
}

#[test]
fn unpacked_sizes_are_bounded() {
    let workers = workers();
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    let nothing = vec![0; 1 << 20];
    for _ in 0..600 {
        packed.write_all(&nothing).expect("written");
    }
    assert_eq!(reason(&workers, Format::TarGz, packed.finish().expect("packed")), Reason::TooLarge);
    assert_well(&workers);
}

#[test]
fn archives_in_archives_are_bounded() {
    let mut inner = zipped("a.txt", |to| to.write_all(b"deep").expect("written"));
    for _ in 0..8 {
        let bytes = inner;
        inner = zipped("inner.zip", |to| to.write_all(&bytes).expect("written"));
    }
    assert_eq!(reason(&workers(), Format::Zip, inner), Reason::TooLarge);
}

#[test]
fn deep_nesting_is_survived() {
    let workers = workers();
    let depth = 200_000;
    for (format, bytes) in [
        (Format::Html, "<div>".repeat(depth) + "deep"),
        (Format::Json, "[".repeat(depth)),
        (Format::Yaml, "[".repeat(depth)),
        (Format::Notebook, "{\"cells\":".repeat(depth)),
    ] {
        let Contents { found, problems } = contents(&workers, format, bytes.into_bytes());
        assert!(found.len() + problems.len() == 1, "{format:?}: {problems:?}");
        assert_well(&workers);
    }
}

#[test]
fn locked_documents_are_called_encrypted() {
    let compound = [&[0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1][..], &[0; 1024]].concat();
    for format in [Format::Docx, Format::Pptx, Format::Sheet] {
        assert_eq!(reason(&workers(), format, compound.clone()), Reason::Encrypted);
    }
}

/// Whatever the bytes, there is an answer. The files are cut, changed and called by wrong names.
#[test]
fn broken_files_have_reasons() {
    let workers = workers();
    let sample = zipped("word/document.xml", |to| {
        to.write_all(b"<w:document><w:body><w:p><w:r><w:t>Hello</w:t></w:r></w:p></w:body></w:document>")
            .expect("written");
    });
    let mut random = fastrand::Rng::with_seed(7);
    for format in Format::ALL {
        for round in 0..16 {
            let mut bytes = sample.clone();
            match round % 4 {
                0 => bytes.truncate(random.usize(..sample.len())),
                1 => (0..8).for_each(|_| bytes[random.usize(..sample.len())] = random.u8(..)),
                2 => bytes = std::iter::repeat_with(|| random.u8(..)).take(2_000).collect(),
                _ => bytes.clear(),
            }
            let Contents { found, problems } = contents(&workers, format, bytes);
            let is_archive = matches!(format, Format::Zip | Format::Tar | Format::TarGz);
            assert!(is_archive || found.len() + problems.len() > 0, "{format:?} says nothing");
        }
    }
    assert_well(&workers);
}
