//! `tribune user`: people who sign in with a password.

#![allow(clippy::disallowed_methods, reason = "a command runs in real time")]

use std::io::{IsTerminal, Read};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use jiff::Timestamp;
use serde_json::{Value, json};
use tribune_core::UserId;
use tribune_oauth::hash_password;
use tribune_storage::{User, Users};

use super::{print, record, table, with_store};
use crate::cli::{Common, UserAdd, UserVerb};

const MIN_PASSWORD_CHARS: usize = 8;
const MAX_PASSWORD_BYTES: u64 = 4_096;

pub fn run(common: &Common, verb: &UserVerb) -> anyhow::Result<ExitCode> {
    with_store(common, "users", async |store, config| {
        let users = store.users();
        match verb {
            UserVerb::Add(args) => {
                add(&users, args).await?;
                record(store, config, "add a user", &[&args.name]).await
            }
            UserVerb::List { json } => list(&users, *json).await,
            UserVerb::Remove { name } => {
                remove(&users, name).await?;
                record(store, config, "remove a user", &[name]).await
            }
            UserVerb::Password { name, password_file } => {
                change_password(&users, name, password_file.as_deref()).await?;
                record(store, config, "change a password", &[name]).await
            }
        }
    })
}

async fn add(users: &Users, args: &UserAdd) -> anyhow::Result<()> {
    let name = named(&args.name)?;
    if [UserId::local(), UserId::admin()].contains(&name) {
        bail!("the name `{name}` is reserved; choose another one");
    }
    if users.find(&name).await?.is_some() {
        bail!("there is a user `{name}` already; `tribune user password {name}` sets a new password");
    }
    let user = User {
        name,
        password: Some(hash_password(&password(args.password_file.as_deref())?)?),
        login: None,
        groups: args.groups.clone(),
        created_at: Timestamp::now(),
    };
    users.add(&user).await?;
    print(&format!("Added {}, who can sign in now.", user.name))
}

async fn list(users: &Users, as_json: bool) -> anyhow::Result<()> {
    let users = users.list().await?;
    if as_json {
        return print(&Value::from(users.iter().map(view).collect::<Vec<_>>()).to_string());
    }
    if users.is_empty() {
        return print("There are no users. Add one with `tribune user add NAME`.");
    }
    let mut rows = vec![["USER", "CREATED", "SIGNS IN", "GROUPS"].map(str::to_owned).to_vec()];
    rows.extend(users.iter().map(|user| {
        vec![
            user.name.to_string(),
            user.created_at.strftime("%Y-%m-%d %H:%M").to_string(),
            signs_in(user).to_owned(),
            user.groups.join(" "),
        ]
    }));
    print(&table(&rows, usize::MAX))
}

async fn remove(users: &Users, name: &str) -> anyhow::Result<()> {
    let name = named(name)?;
    if !users.remove(&name).await? {
        bail!("there is no user `{name}`; `tribune user list` shows the users");
    }
    print(&format!("Removed {name}; every session, token and grant has ended. Tasks and conversations are kept."))
}

async fn change_password(users: &Users, name: &str, file: Option<&Path>) -> anyhow::Result<()> {
    let name = named(name)?;
    let hash = hash_password(&password(file)?)?;
    if !users.set_password(&name, hash).await? {
        bail!("there is no user `{name}`; `tribune user add {name}` adds one");
    }
    print(&format!("Changed the password of {name}; every session, token and grant has ended."))
}

fn named(name: &str) -> anyhow::Result<UserId> {
    Ok(UserId::new(name.trim())?)
}

/// The first line of the file, or of standard input.
fn password(file: Option<&Path>) -> anyhow::Result<String> {
    let mut text = String::new();
    match file {
        Some(path) => {
            let file = std::fs::File::open(path);
            let file = file.with_context(|| format!("cannot read the password from {}", path.display()))?;
            file.take(MAX_PASSWORD_BYTES).read_to_string(&mut text)
        }
        None => {
            if std::io::stdin().is_terminal() {
                eprintln!(
                    "Type the password, then Enter. It is shown as you type; --password-file reads it from a file."
                );
                std::io::stdin().read_line(&mut text)
            } else {
                std::io::stdin().take(MAX_PASSWORD_BYTES).read_to_string(&mut text)
            }
        }
    }
    .context("cannot read the password")?;
    let password = text.lines().next().unwrap_or_default();
    if password.chars().count() < MIN_PASSWORD_CHARS {
        bail!("the password has fewer than {MIN_PASSWORD_CHARS} characters; choose a longer one");
    }
    Ok(password.to_owned())
}

fn signs_in(user: &User) -> &'static str {
    match (&user.password, &user.login) {
        (Some(_), _) => "password",
        (None, Some(_)) => "provider",
        (None, None) => "not at all",
    }
}

fn view(user: &User) -> Value {
    json!({
        "name": user.name.as_str(),
        "created_at": user.created_at,
        "signs_in": signs_in(user),
        "groups": user.groups,
    })
}
