//! `tribune token`, `user` and `audit`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub enum TokenVerb {
    /// Create a token for a user; it is shown once, and only its digest is stored
    Create(TokenCreate),
    /// List tokens: user, label, creation, last use, expiry
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token
    Revoke {
        /// The id that `tribune token list` shows
        id: String,

        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub struct TokenCreate {
    /// The user it belongs to: 1 to 64 letters, digits and . _ @ + -
    #[arg(long, value_name = "NAME")]
    pub user: String,

    /// A label to recognise it by
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,

    /// A scope; may be given more than once [default: read, tasks and chat]
    #[arg(long, value_name = "read|tasks|chat|trade|admin", value_parser = scope)]
    pub scope: Vec<ScopeArg>,

    /// Limit the token to this profile, at /mcp/NAME
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,

    /// When it expires: a number of days such as 30d, or never
    #[arg(long, value_name = "TIME", default_value = "90d", value_parser = lifetime)]
    pub expires: Lifetime,

    /// The same as --expires, as a number of days
    #[arg(long, value_name = "DAYS", hide = true, conflicts_with = "expires", value_parser = clap::value_parser!(i64).range(1..=36_500))]
    pub expires_days: Option<i64>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct ScopeArg(pub tribune_core::Scope);

fn scope(name: &str) -> Result<ScopeArg, String> {
    let scope = tribune_core::Scope::parse(name).map(ScopeArg);
    scope.ok_or_else(|| "write read, tasks, chat, trade or admin".to_owned())
}

/// A number of days, or no end.
#[derive(Debug, Clone, Copy)]
pub struct Lifetime(pub Option<i64>);

fn lifetime(text: &str) -> Result<Lifetime, String> {
    if text == "never" {
        return Ok(Lifetime(None));
    }
    let days = text.strip_suffix('d').and_then(|days| days.parse().ok());
    let days = days.filter(|days| (1..=36_500).contains(days));
    let days = days.ok_or_else(|| "write a number of days such as 90d, or never".to_owned());
    days.map(|days| Lifetime(Some(days)))
}

#[derive(Debug, Args)]
pub struct UserAdd {
    /// 1 to 64 letters, digits and . _ @ + -
    pub name: String,

    /// A file with the password; without it, the password is read from standard input
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,

    /// A group; may be given more than once. Members of `trade` and `admin` may allow programs these scopes
    #[arg(long = "group", value_name = "GROUP")]
    pub groups: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub enum UserVerb {
    /// Add a user who signs in with a password
    Add(UserAdd),
    /// List users: their groups, and how they sign in
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a user, and end every session, token and grant of the user; tasks and conversations stay
    Remove { name: String },
    /// Set a new password, and end every session, token and grant that the user has
    Password {
        name: String,

        /// A file with the password; without it, the password is read from standard input
        #[arg(long, value_name = "FILE")]
        password_file: Option<PathBuf>,
    },
    /// Put a user into groups, or take them out
    Group {
        name: String,

        /// A group that the user joins; may be repeated
        #[arg(long = "add", value_name = "GROUP", required_unless_present = "remove")]
        add: Vec<String>,

        /// A group that the user leaves; may be repeated
        #[arg(long = "remove", value_name = "GROUP")]
        remove: Vec<String>,
    },
    /// List the programs that a user lets in: scopes, since when, and last use
    Grants {
        name: String,

        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// End what a user allows one program; running servers refuse its tokens within a second
    Revoke {
        name: String,

        /// The grant's id, as `tribune user grants` lists it
        id: String,
    },
}

#[derive(Debug, Args)]
pub struct Audit {
    /// Only entries since then: 12h, 7d, 2026-11-19 or 2026-11-19T10:00:00Z
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,

    /// Only entries of this user; `local` is the user of this machine, `anonymous` is any caller without a token
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,

    /// The most entries to show; the newest are shown
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub limit: u16,

    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}
