//! Passwords, hashed with Argon2id.

use argon2::Argon2;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use tribune_core::{Error, Result};

/// Slow on purpose, and blocks: a few tens of milliseconds.
pub fn hash_password(password: &str) -> Result<String> {
    let hash = Argon2::default().hash_password(password.as_bytes());
    hash.map(|hash| hash.to_string())
        .map_err(|error| Error::internal(format!("the password cannot be hashed: {error}")))
}

/// Takes equally long for unknown users, so that timing does not reveal names. Blocks.
pub fn verify_password(password: &str, hash: Option<&str>) -> bool {
    /// Checked for unknown users; no password matches it.
    const NOBODY: &str =
        "$argon2id$v=19$m=19456,t=2,p=1$dHJpYnVuZS1ub2JvZHk$2mWCu1xTLkhBlRrfLzYIuFl6Zf9dL0h7B0kQqf3Lm6o";
    let is_right = Argon2::default().verify_password(password.as_bytes(), hash.unwrap_or(NOBODY));
    hash.is_some() && is_right.is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_password_fits() {
        let hash = hash_password("correct horse").expect("hashed");
        assert!(hash.starts_with("$argon2id$"), "{hash}");
        assert_ne!(hash, hash_password("correct horse").expect("hashed"), "salted");
        assert!(verify_password("correct horse", Some(&hash)));
        assert!(!verify_password("correct horse ", Some(&hash)));
        assert!(!verify_password("", Some("not a hash")));
        assert!(!verify_password("correct horse", None));
    }
}
