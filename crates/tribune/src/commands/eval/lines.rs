//! Reading files line by line, so that every error names its file and line.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::Context;

/// Gives `take` every line that is not blank, with its number. `what` says what the file is for, in case it is missing.
pub fn each_line(path: &Path, what: &str, mut take: impl FnMut(u64, &str) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let file = File::open(path).with_context(|| format!("cannot read {what}, {}", path.display()))?;
    for (number, line) in (1..).zip(BufReader::new(file).lines()) {
        let place = || format!("{}:{number}", path.display());
        let line = line.with_context(place)?;
        let line = line.trim_start_matches('\u{feff}').trim_end_matches('\r');
        if !line.trim().is_empty() {
            take(number, line).with_context(place)?;
        }
    }
    Ok(())
}
