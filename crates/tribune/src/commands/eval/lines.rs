//! Reading files line by line, so that every complaint names its file and line.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, bail};

/// A question or a judgement is never longer.
const MAX_LINE_BYTES: u64 = 1024 * 1024;

/// Gives `take` every line that is not blank, with its number. `what` says what the file is for, to
/// somebody who does not have it.
pub fn each_line(path: &Path, what: &str, mut take: impl FnMut(u64, &str) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let file = File::open(path).with_context(|| format!("{} cannot be read; it is {what}", path.display()))?;
    let mut reader = BufReader::new(file);
    let mut bytes = Vec::new();
    for number in 1.. {
        let place = || format!("{}:{number}", path.display());
        bytes.clear();
        let mut bounded = reader.by_ref().take(MAX_LINE_BYTES);
        if bounded.read_until(b'\n', &mut bytes).with_context(place)? == 0 {
            break;
        }
        if bytes.len() as u64 == MAX_LINE_BYTES {
            bail!("{}: the line is longer than 1 MiB", place());
        }
        let line = std::str::from_utf8(&bytes).map_err(|_| {
            anyhow::anyhow!(
                "{}: is not UTF-8; convert it, for example with `iconv -t UTF-8`",
                place()
            )
        })?;
        let line = line.trim_start_matches('\u{feff}').trim_end_matches(['\n', '\r']);
        if !line.trim().is_empty() {
            take(number, line).with_context(place)?;
        }
    }
    Ok(())
}
