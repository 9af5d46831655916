//! Checks the address of PostgreSQL.
//!
//! sqlx logs unknown parameters with their values, and an unencoded password may be parsed as a host, a database or a
//! parameter. So the address is checked first, and errors quote nothing from it except a plain parameter name.

use tribune_core::{Error, Result};

/// The parameters that sqlx knows, except `password`.
const PARAMETERS: [&str; 17] = [
    "application_name",
    "dbname",
    "host",
    "hostaddr",
    "options",
    "port",
    "ssl-ca",
    "ssl-cert",
    "ssl-key",
    "ssl-mode",
    "ssl-root-cert",
    "sslcert",
    "sslkey",
    "sslmode",
    "sslrootcert",
    "statement-cache-capacity",
    "user",
];
const MAX_NAME_BYTES: usize = 40;

pub(crate) fn check(url: &str) -> Result<()> {
    let (_, rest) = url.split_once("://").ok_or_else(unreadable)?;
    let after_host = rest.find(['/', '?', '#']).map_or("", |end| &rest[end..]);
    // What follows would be part of a password that contains one of these three characters.
    if after_host.contains(['@', '#']) {
        return Err(unreadable());
    }
    let parameters = after_host.split_once('?').map_or("", |(_, parameters)| parameters);
    parameters.split('&').filter(|parameter| !parameter.is_empty()).try_for_each(check_parameter)
}

pub(crate) fn unreadable() -> Error {
    Error::invalid_argument(
        "the address of PostgreSQL cannot be read: write postgres://USER:PASSWORD@HOST:PORT/DATABASE, \
         with special characters of the password percent-encoded",
    )
}

fn check_parameter(parameter: &str) -> Result<()> {
    let (name, _) = parameter.split_once('=').ok_or_else(unreadable)?;
    if name == "password" {
        return Err(Error::invalid_argument(
            "the address of PostgreSQL has a password among its parameters: write it before the host, as in \
             postgres://USER:PASSWORD@HOST/DATABASE, put the whole address into a variable or a file, and name that \
             as \"env:NAME\" or \"file:PATH\"",
        ));
    }
    if is_known(name) {
        return Ok(());
    }
    Err(if is_plain(name) {
        Error::invalid_argument(format!(
            "the address of PostgreSQL has the parameter {name}, which is unknown: remove it"
        ))
    } else {
        unreadable()
    })
}

/// Compared without decoding: an encoded name counts as unknown.
fn is_known(name: &str) -> bool {
    PARAMETERS.contains(&name)
        || name.strip_prefix("options[").and_then(|rest| rest.strip_suffix(']')).is_some_and(is_plain)
}

fn is_plain(name: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || b"_-.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sqlx_parameter_is_accepted() {
        for fine in [
            "postgres://localhost",
            "postgres://ann:s%40crt%2F%3F%23@[::1]:5432/tribune",
            "postgres:///tribune?host=/run/postgresql&user=ann&port=5433&dbname=x",
            "postgresql://ann@db/x?sslmode=verify-full&sslrootcert=/a.pem&ssl-cert=/b.pem&ssl-key=/c.pem&",
            "postgres://db/x?options=-csearch_path%3Dy&options[work_mem]=1MB&application_name=me&hostaddr=127.0.0.1",
            "postgres://db/x?statement-cache-capacity=0",
        ] {
            check(fine).expect(fine);
        }
    }

    #[test]
    fn errors_quote_only_parameter_names() {
        let cases = [
            ("postgres://db/x?password=hunter", "\"env:NAME\" or \"file:PATH\""),
            ("postgres://db/x?sslmode=require&sslpassword=hunter", "the parameter sslpassword,"),
            ("postgres://db/x?passwd=hunter&sslmode=require", "the parameter passwd,"),
            ("postgres://db/x?p%61ssword=hunter", "cannot be read"),
            ("postgres://db/x?pass\tword=hunter", "cannot be read"),
            ("postgres://db/x?hunter", "cannot be read"),
            ("postgres://db/x?options[a=hunter", "cannot be read"),
            // Passwords that should have been encoded: 1?hunter, 1?hunter=, 1/hunter, 1#hunter.
            ("postgres://ann:1?hunter@db/x", "cannot be read"),
            ("postgres://ann:1?hunter=@db/x", "cannot be read"),
            ("postgres://ann:1/hunter@db/x", "cannot be read"),
            ("postgres://ann:1#hunter@db/x", "cannot be read"),
            ("hunter", "cannot be read"),
            ("", "cannot be read"),
        ];
        for (url, words) in cases {
            let error = check(url).expect_err(url);
            assert!(error.message().contains(words), "{url}: {error}");
            assert!(!error.message().contains("hunter"), "{url}: {error}");
        }
    }
}
