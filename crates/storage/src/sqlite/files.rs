//! The database's files, readable by their owner only.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;

/// Creates the folder and an empty file; SQLite creates the files beside it with the same permissions.
pub(super) fn prepare(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        create_folder(folder)?;
    }
    match private_options().create_new(true).open(path) {
        Ok(_) => folder.map_or(Ok(()), sync_folder),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            restrict(path);
            Ok(())
        }
        Err(error) => Err(error),
    }
}

fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Without this a power failure can lose the new file's directory entry.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Makes files private that an older program or a copy left readable.
#[cfg(unix)]
fn restrict(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    for suffix in ["", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        let open_to_others = fs::metadata(&file).is_ok_and(|facts| facts.permissions().mode() & 0o077 != 0);
        if open_to_others && let Err(error) = fs::set_permissions(&file, fs::Permissions::from_mode(0o600)) {
            let path = path.display();
            tracing::warn!(%path, "other users of this machine can read the database, and its permissions cannot be changed: {error}");
        }
    }
}

#[cfg(not(unix))]
fn restrict(_: &Path) {}
