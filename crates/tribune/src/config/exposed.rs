//! Warnings of secrets that others could read: on their way to an unencrypted endpoint, or in a file.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use toml::{Table, Value};
use tribune_config::Secret;
use tribune_server::connect::Reach;

/// Looks through the whole configuration, so that a new setting needs nothing here.
pub fn warnings(table: &Table, dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for (name, value) in table {
        look(name, value, dir, &mut found);
    }
    found
}

fn look(name: &str, value: &Value, dir: &Path, found: &mut Vec<String>) {
    match value {
        Value::Table(table) => {
            // The public address is that of this server.
            if name != "server" {
                found.extend(unencrypted(name, table));
            }
            for (key, value) in table {
                look(&format!("{name}.{key}"), value, dir, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| look(name, value, dir, found)),
        Value::String(text) if text.starts_with("file:") => found.extend(readable(name, text, dir)),
        _ => {}
    }
}

/// An endpoint beyond this machine that gets a secret over plain HTTP.
fn unencrypted(name: &str, table: &Table) -> Option<String> {
    let is_plain = |url: &&str| url.starts_with("http://") && Reach::of(url) != Reach::ThisMachine;
    let (key, url) = table.iter().find_map(|(key, value)| Some((key, value.as_str().filter(is_plain)?)))?;
    let secret = secret_in(table)?;
    Some(format!("{name}.{key} = {url} is not encrypted, and {name}.{secret} is sent there: use https://"))
}

/// A secret of a table, or of a table in it, such as that of `[market.trading]` in `[market]`.
fn secret_in(table: &Table) -> Option<String> {
    let is_secret = |value: &Value| value.as_str().is_some_and(Secret::is_reference);
    let own = table.iter().find(|(_, value)| is_secret(value)).map(|(key, _)| key.clone());
    let below = || {
        let tables = table.iter().filter_map(|(key, value)| Some((key, value.as_table()?)));
        tables.filter(|(_, below)| !has_url(below)).find_map(|(key, below)| {
            let (secret, _) = below.iter().find(|(_, value)| is_secret(value))?;
            Some(format!("{key}.{secret}"))
        })
    };
    own.or_else(below)
}

fn has_url(table: &Table) -> bool {
    table.values().any(|value| value.as_str().is_some_and(|text| text.contains("://")))
}

/// A file with a secret that every user of this machine can read.
fn readable(name: &str, reference: &str, dir: &Path) -> Option<String> {
    const BY_OTHERS: u32 = 0o004;
    let path = dir.join(reference.strip_prefix("file:")?);
    let mode = fs::metadata(&path).ok()?.permissions().mode();
    (mode & BY_OTHERS != 0).then(|| {
        let path = path.display();
        format!("{name}: other users of this machine can read {path}: chmod 600 {path}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warned(configuration: &str, dir: &Path) -> Vec<String> {
        warnings(&configuration.parse().expect("TOML"), dir)
    }

    #[test]
    fn keys_go_only_to_encrypted_endpoints() {
        let dir = Path::new("");
        for (configuration, setting) in [
            ("[agent]\nbase_url = \"http://models.example/v1\"\napi_key = \"env:KEY\"", "agent.base_url"),
            ("[[agent.servers]]\nurl = \"http://10.0.0.4/mcp\"\ntoken = \"env:KEY\"", "agent.servers.url"),
            ("[market]\nrest_url = \"http://ex.example\"\n[market.trading]\napi_key = \"env:KEY\"", "market.rest_url"),
        ] {
            let warned = warned(configuration, dir);
            assert!(warned.len() == 1 && warned[0].starts_with(setting), "{configuration}: {warned:?}");
        }
        for fine in [
            "[agent]\nbase_url = \"https://models.example/v1\"\napi_key = \"env:KEY\"",
            "[agent]\nbase_url = \"http://127.0.0.1:8000/v1\"\napi_key = \"env:KEY\"",
            "[agent]\nbase_url = \"http://models.example/v1\"",
            "[server]\npublic_url = \"http://tribune.example\"\nadmin_token = \"env:KEY\"",
            "[auth]\nissuer = \"http://id.lan\"\n[auth.login.oidc]\nissuer = \"https://a\"\nclient_secret = \"env:KEY\"",
        ] {
            assert_eq!(warned(fine, dir), Vec::<String>::new(), "{fine}");
        }
    }

    #[test]
    fn key_files_belong_to_their_owner() {
        let dir = tempfile::tempdir().expect("a folder");
        let file = dir.path().join("key");
        fs::write(&file, "secret").expect("written");
        let configuration = "[agent]\napi_key = \"file:key\"\n[[agent.servers]]\nheaders = { X = \"file:key\" }";
        for (mode, warnings) in [(0o644, 2), (0o640, 0), (0o600, 0)] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).expect("set");
            let warned = warned(configuration, dir.path());
            assert_eq!(warned.len(), warnings, "{mode:o}: {warned:?}");
        }
    }
}
