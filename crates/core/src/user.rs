//! Who owns what: the name of a user.

use std::fmt;
use std::sync::Arc;

/// A user's name, fit to be a key, a log field and part of a shell command.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserId(Arc<str>);

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{0}` cannot be a user's name: use 1 to 64 letters, digits and . _ @ + -, beginning with a letter or a digit")]
pub struct InvalidUser(String);

impl UserId {
    pub const MAX_CHARS: usize = 64;

    /// Names are case-sensitive.
    pub fn new(name: &str) -> Result<Self, InvalidUser> {
        let fit = |c: char| c.is_ascii_alphanumeric() || "._@+-".contains(c);
        let starts_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
        if !starts_well || name.len() > Self::MAX_CHARS || !name.chars().all(fit) {
            return Err(InvalidUser(name.chars().take(Self::MAX_CHARS).collect()));
        }
        Ok(Self(name.into()))
    }

    /// The person at this machine.
    pub fn local() -> Self {
        Self("local".into())
    }

    /// Whoever has shown the administrator's token; no API token can be made for this name.
    pub fn admin() -> Self {
        Self("admin".into())
    }

    /// Whether nobody else may have this name: who had it would own what is the local user's or the administrator's.
    pub fn is_reserved(&self) -> bool {
        *self == Self::local() || *self == Self::admin()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_plain() {
        for name in ["ann", "ann.b@example.org", "4", "A-1_x+y"] {
            assert_eq!(UserId::new(name).expect(name).as_str(), name);
        }
        for name in ["", " ann", "-x", "a b", "zoë", "a'; --", "a\n", &"x".repeat(65)] {
            assert!(UserId::new(name).is_err(), "{name}");
        }
    }
}
