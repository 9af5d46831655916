//! `tribune user`: people who sign in, their groups, and the programs that they let in.

#![allow(clippy::disallowed_methods, reason = "a command runs in real time")]

use std::io::{IsTerminal, Read};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use jiff::Timestamp;
use serde_json::{Value, json};
use tribune_core::UserId;
use tribune_oauth::hash_password;
use tribune_storage::{Grant, Grants, User, Users};

use super::{minute, print, print_list, record, with_store};
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
            UserVerb::Group { name, add, remove } => {
                change_groups(&users, name, add, remove).await?;
                record(store, config, "change groups", &[name]).await
            }
            UserVerb::Grants { name, json } => list_grants(&store.grants(), name, *json).await,
            UserVerb::Revoke { name, id } => {
                revoke(&store.grants(), name, id.trim()).await?;
                record(store, config, "end a grant", &[name, id.trim()]).await
            }
        }
    })
}

async fn add(users: &Users, args: &UserAdd) -> anyhow::Result<()> {
    let name = named(&args.name)?;
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
    let none = "There are no users. Add one with `tribune user add NAME`.";
    print_list(as_json, &users.list().await?, view, none, &["USER", "CREATED", "SIGNS IN", "GROUPS"], |user| {
        vec![user.name.to_string(), minute(Some(user.created_at)), signs_in(user).to_owned(), user.groups.join(" ")]
    })
}

async fn remove(users: &Users, name: &str) -> anyhow::Result<()> {
    let name = named(name)?;
    if !users.remove(&name).await? {
        bail!(unknown(&name));
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

async fn change_groups(users: &Users, name: &str, add: &[String], remove: &[String]) -> anyhow::Result<()> {
    let name = named(name)?;
    let user = users.find(&name).await?.with_context(|| unknown(&name))?;
    let mut groups = user.groups;
    groups.extend(add.iter().filter(|group| !groups.contains(group)).cloned().collect::<Vec<_>>());
    groups.retain(|group| !remove.contains(group));
    users.set_groups(&name, &groups).await?;
    print(&match groups.is_empty() {
        true => format!("{name} is in no group."),
        false => format!("{name} is in: {}.", groups.join(", ")),
    })
}

async fn list_grants(grants: &Grants, name: &str, as_json: bool) -> anyhow::Result<()> {
    let name = named(name)?;
    let grants = grants.list(&name, Timestamp::now()).await?;
    let none = format!("{name} lets no program in.");
    let header = ["ID", "PROGRAM", "SCOPES", "PROFILE", "SINCE", "LAST USED"];
    print_list(as_json, &grants, view_grant, &none, &header, |grant| {
        vec![
            grant.id.clone(),
            match grant.client_name.as_str() {
                "" => grant.client.clone(),
                name => name.to_owned(),
            },
            grant.scopes.join(" "),
            grant.profile.clone().unwrap_or_else(|| "all".to_owned()),
            minute(Some(grant.created_at)),
            minute(grant.used_at),
        ]
    })
}

async fn revoke(grants: &Grants, name: &str, id: &str) -> anyhow::Result<()> {
    let (name, now) = (named(name)?, Timestamp::now());
    let known = grants.list(&name, now).await?;
    let grant = known.iter().find(|grant| grant.id == id);
    let grant =
        grant.with_context(|| format!("{name} has no grant `{id}`; `tribune user grants {name}` lists them"))?;
    grants.revoke(id, now).await?;
    print(&format!("Revoked what {name} allowed {}; running servers refuse it within a second.", grant.client_name))
}

fn unknown(name: &UserId) -> String {
    format!("there is no user `{name}`; `tribune user list` shows the users")
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

fn view_grant(grant: &Grant) -> Value {
    json!({
        "id": grant.id,
        "program": grant.client_name,
        "client_id": grant.client,
        "scopes": grant.scopes,
        "profile": grant.profile,
        "created_at": grant.created_at,
        "last_used": grant.used_at,
        "expires_at": grant.expires_at,
    })
}

fn view(user: &User) -> Value {
    json!({
        "name": user.name.as_str(),
        "created_at": user.created_at,
        "signs_in": signs_in(user),
        "groups": user.groups,
    })
}
