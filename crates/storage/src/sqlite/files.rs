//! The database's files, readable by their owner only.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Creates the folder and an empty file; SQLite creates the files beside it with the same permissions.
pub(super) fn prepare(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    match OpenOptions::new().write(true).mode(0o600).create_new(true).open(path) {
        // Without this a power failure can lose the new file's directory entry.
        Ok(_) => folder.map_or(Ok(()), |folder| fs::File::open(folder)?.sync_all()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            restrict(path);
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Makes files private that an older program or a copy left readable.
fn restrict(path: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        let open_to_others = fs::metadata(&file).is_ok_and(|facts| facts.permissions().mode() & 0o077 != 0);
        if open_to_others && let Err(error) = fs::set_permissions(&file, Permissions::from_mode(0o600)) {
            let path = path.display();
            tracing::warn!(%path, "other users of this machine can read the database, and its permissions cannot be changed: {error}");
        }
    }
}
