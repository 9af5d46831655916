//! `tribune init`

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};

use super::print;
use crate::cli::{Common, Init};
use crate::config::DEFAULT_FILE;

const TEMPLATE: &str = include_str!("../init.toml");
const FIRST_NOTE: &str = "---\ntitle: Welcome\ntags: [example]\n---\n\nThis folder is served by Tribune. Put Markdown, text, JSONL or CSV files here;\n`tribune index` (or a restart of `tribune serve`) makes them searchable.\n";

pub fn run(common: &Common, args: &Init) -> anyhow::Result<ExitCode> {
    let file = common.config.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_FILE));
    if file.exists() && !args.force {
        bail!("{} exists; edit it, or replace it with `tribune init --force`", file.display());
    }
    let folder =
        args.folder.to_str().context("the folder's name is not UTF-8, so a configuration cannot name it; rename it")?;
    let quoted = toml::Value::String(folder.to_owned()).to_string();
    std::fs::write(&file, TEMPLATE.replace("\"{folder}\"", &quoted))
        .with_context(|| format!("cannot write {}", file.display()))?;
    let base = file.parent().unwrap_or(Path::new(""));
    let made = make_folder(&base.join(&args.folder))?;
    print(&format!("Wrote {}.", file.display()))?;
    if made {
        print(&format!("Created the folder {} with a first note.", args.folder.display()))?;
    }
    print("Next: `tribune check` shows what will be served, `tribune serve` serves it.")?;
    Ok(ExitCode::SUCCESS)
}

fn make_folder(folder: &Path) -> anyhow::Result<bool> {
    if folder.exists() {
        return Ok(false);
    }
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create the folder {}", folder.display()))?;
    std::fs::write(folder.join("welcome.md"), FIRST_NOTE)
        .with_context(|| format!("cannot write into {}", folder.display()))?;
    Ok(true)
}
