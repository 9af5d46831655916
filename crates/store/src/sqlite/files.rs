//! The database's files: what users said is for the eyes of their owner only.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

/// Makes the folder and an empty file where there is none; SQLite makes the files beside it with the same rights.
pub(super) fn prepare(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        make_folder(folder)?;
    }
    match private().create_new(true).open(path) {
        Ok(_) => folder.map_or(Ok(()), remember_entries),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            tighten(path);
            Ok(())
        }
        Err(error) => Err(error),
    }
}

fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// A file that the power takes away with its folder's entry is as good as never written.
#[cfg(unix)]
fn remember_entries(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn remember_entries(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Files that others may read, because an older program or a copy left them so, are made private.
#[cfg(unix)]
fn tighten(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    for suffix in ["", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        let open_to_others = fs::metadata(&file).is_ok_and(|facts| facts.permissions().mode() & 0o077 != 0);
        if open_to_others && let Err(error) = fs::set_permissions(&file, fs::Permissions::from_mode(0o600)) {
            let path = path.display();
            tracing::warn!(%path, "other users of this machine may read the database, and that cannot be changed: {error}");
        }
    }
}

#[cfg(not(unix))]
fn tighten(_: &Path) {}
