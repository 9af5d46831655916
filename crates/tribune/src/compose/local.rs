//! The secret by which the person at this machine is known: a file in the data folder that only its owner can read.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use anyhow::{Context, bail};
use tribune_server::LocalProof;
use tribune_server::connect::Reach;

const FILE: &str = "local-secret";

/// `None` where the server has an address that other machines use: people sign in with accounts there.
pub fn local_proof(data_dir: &Path, base: &str) -> anyhow::Result<Option<LocalProof>> {
    if Reach::of(base) != Reach::ThisMachine {
        return Ok(None);
    }
    Ok(Some(LocalProof::new(secret(data_dir)?)))
}

/// Makes the data folder, which only its owner may enter.
pub fn make_private(data_dir: &Path) -> anyhow::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(data_dir);
    let made =
        made.and_then(|()| fs::metadata(data_dir)).and_then(|folder| match folder.permissions().mode() & 0o077 {
            0 => Ok(()),
            _ => fs::set_permissions(data_dir, Permissions::from_mode(0o700)),
        });
    made.with_context(|| format!("cannot make the data folder {} (server.data_dir) private", data_dir.display()))
}

/// Reads the secret, or makes it.
fn secret(data_dir: &Path) -> anyhow::Result<String> {
    make_private(data_dir)?;
    let file = data_dir.join(FILE);
    let found = match fs::read_to_string(&file) {
        Err(error) if error.kind() == ErrorKind::NotFound => make(&file).and_then(|()| fs::read_to_string(&file)),
        found => found,
    };
    let secret = found.with_context(|| format!("cannot read {}", file.display()))?;
    let mode = fs::metadata(&file)?.permissions().mode();
    if mode & 0o077 != 0 {
        bail!("other users of this machine can read {}; delete it, and Tribune creates a new one", file.display());
    }
    let secret = secret.trim();
    if !secret.starts_with(LocalProof::PREFIX) {
        bail!("{} has no secret of Tribune in it; delete it, and Tribune creates a new one", file.display());
    }
    Ok(secret.to_owned())
}

/// Whole or not at all; keeps one that another process has just made.
fn make(file: &Path) -> std::io::Result<()> {
    let new = file.with_extension(std::process::id().to_string());
    let mut open = OpenOptions::new().create_new(true).write(true).mode(0o600).open(&new)?;
    writeln!(open, "{}", LocalProof::new_secret())?;
    let linked = fs::hard_link(&new, file);
    fs::remove_file(&new)?;
    linked.or_else(|error| if error.kind() == ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_is_kept_and_private() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().join("data");
        let first = secret(&data).expect("a secret");
        assert_eq!(secret(&data).expect("the same"), first);
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(&data), mode(&data.join(FILE))), (0o700, 0o600));
        assert_eq!(fs::read_dir(&data).expect("a folder").count(), 1, "nothing else is left there");
        fs::set_permissions(data.join(FILE), Permissions::from_mode(0o644)).expect("set");
        let refused = secret(&data).expect_err("others can read it").to_string();
        assert!(refused.contains("delete it"), "{refused}");
    }

    #[test]
    fn public_servers_know_nobody_as_local() {
        let folder = tempfile::tempdir().expect("a folder");
        let proof = |base| local_proof(folder.path(), base).expect("a proof or none");
        assert!(proof("https://tribune.example.org").is_none());
        assert!(proof("http://192.168.1.5:8080").is_none());
        let local = proof("http://127.0.0.1:8080").expect("a proof");
        assert!(!format!("{local:?}").contains(local.secret()));
        assert_ne!(local.link(""), proof("http://localhost:8080").expect("a proof").link(""), "new with every start");
    }
}
