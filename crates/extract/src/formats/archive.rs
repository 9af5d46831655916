//! Archives: their files, one after another. What is written elsewhere, linked or encrypted is not followed.

use std::io::{Cursor, Read};

use super::{Reading, damaged};
use crate::extracted::{Problem, Reason, Stop};

pub(super) fn zip(bytes: Vec<u8>, reading: &mut Reading<'_>) -> Result<(), Stop> {
    let mut archive = match zip::ZipArchive::new(Cursor::new(bytes)) {
        Ok(archive) => archive,
        Err(error) => return reading.fail(damaged(error)),
    };
    for index in 0..archive.len() {
        let (name, is_encrypted) = match archive.by_index_raw(index) {
            Ok(file) if !file.is_file() => continue,
            Ok(file) => match file.name() {
                Ok(name) => (name.into_owned(), file.encrypted()),
                Err(error) => {
                    reading.fail(damaged(error))?;
                    continue;
                }
            },
            Err(error) => {
                reading.fail(damaged(error))?;
                continue;
            }
        };
        if is_hidden(&name) {
            continue;
        }
        reading.inner(&name, |most| {
            if is_encrypted {
                return Err(Problem::new(Reason::Encrypted, ""));
            }
            whole(archive.by_index(index).map_err(damaged)?, most)
        })?;
    }
    Ok(())
}

pub(super) fn tar(from: impl Read, reading: &mut Reading<'_>) -> Result<(), Stop> {
    let mut archive = ::tar::Archive::new(from);
    let entries = match archive.entries() {
        Ok(entries) => entries,
        Err(error) => return reading.fail(damaged(error)),
    };
    for entry in entries {
        let entry = match entry {
            Ok(entry) => entry,
            // What follows cannot be found.
            Err(error) => return reading.fail(damaged(error)),
        };
        if !entry.header().entry_type().is_file() {
            continue;
        }
        let name = entry.path().map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        if !is_hidden(&name) {
            reading.inner(&name, |most| whole(entry, most))?;
        }
    }
    Ok(())
}

/// A compressed archive, or one compressed file.
pub(super) fn tar_gz(bytes: &[u8], reading: &mut Reading<'_>) -> Result<(), Stop> {
    match whole(flate2::read::MultiGzDecoder::new(bytes), super::MAX_UNPACKED_BYTES) {
        Ok(unpacked) if unpacked.get(257..262) == Some(b"ustar") => tar(&*unpacked, reading),
        Ok(_) => reading.fail(Problem::new(Reason::Damaged, "it holds no tar archive")),
        Err(problem) => reading.fail(problem),
    }
}

/// Everything from a reader, which may give more than it promises.
pub(super) fn whole(from: impl Read, most: u64) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    from.take(most + 1).read_to_end(&mut bytes).map_err(damaged)?;
    match bytes.len() as u64 > most {
        true => Err(Problem::new(Reason::TooLarge, "it unpacks to too much")),
        false => Ok(bytes),
    }
}

/// Whether a path has a part that begins with a dot, or that macOS adds.
fn is_hidden(path: &str) -> bool {
    path.split(['/', '\\']).any(|part| part.starts_with('.') || part == "__MACOSX")
}
