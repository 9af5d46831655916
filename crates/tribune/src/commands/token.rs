//! `tribune token`: API tokens of users.

#![allow(clippy::disallowed_methods, reason = "a command runs in real time")]

use std::process::ExitCode;

use anyhow::{Context, bail};
use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};
use tribune_core::{Scopes, UserId};
use tribune_server::identity::{TokenUse, new_token};
use tribune_storage::{Token as KeptToken, Tokens};

use super::{minute, print, print_list, record, with_store};
use crate::cli::{Common, TokenCreate, TokenVerb};

pub fn run(common: &Common, verb: &TokenVerb) -> anyhow::Result<ExitCode> {
    with_store(common, "tokens", async |store, config| {
        let tokens = store.tokens();
        match verb {
            TokenVerb::Create(args) => {
                let id = create(&tokens, args).await?;
                record(store, config, "create a token", &[&id, &args.user]).await
            }
            TokenVerb::List { json } => list(&tokens, *json).await,
            TokenVerb::Revoke { id, json } => {
                revoke(&tokens, id.trim(), *json).await?;
                record(store, config, "revoke a token", &[id.trim()]).await
            }
        }
    })
}

/// Returns the id of the new token.
async fn create(tokens: &Tokens, args: &TokenCreate) -> anyhow::Result<String> {
    const MAX_LABEL: usize = 100;
    let user = UserId::new(args.user.trim())?;
    let label = args.label.as_deref().map(str::trim).filter(|label| !label.is_empty());
    if label.is_some_and(|label| label.chars().count() > MAX_LABEL || label.contains(char::is_control)) {
        bail!("--label is one line of at most {MAX_LABEL} characters");
    }
    let now = Timestamp::now();
    let days = args.expires_days.or(args.expires.0);
    let expires_at = match days {
        Some(days) => Some(now.checked_add((days * 24).hours()).context("--expires")?),
        None => None,
    };
    let usage = TokenUse {
        label: label.map(str::to_owned),
        scopes: match args.scope.is_empty() {
            true => Scopes::USUAL,
            false => args.scope.iter().map(|scope| scope.0).collect(),
        },
        profile: args.profile.clone(),
        expires_at,
    };
    let made = new_token(user, usage, now)?;
    tokens.add(&made.token, made.sha256).await?;
    if args.json {
        let mut shown = view(&made.token);
        shown["token"] = json!(made.shown);
        print(&shown.to_string())?;
        return Ok(made.token.id);
    }
    // To be piped into a file or a variable: the token alone is standard output.
    eprintln!(
        "Created a token for {}. It is shown only now; clients send it as `Authorization: Bearer TOKEN`.",
        made.token.user
    );
    eprintln!("To revoke it: tribune token revoke {}", made.token.id);
    print(&made.shown)?;
    Ok(made.token.id)
}

async fn list(tokens: &Tokens, as_json: bool) -> anyhow::Result<()> {
    let now = Timestamp::now();
    let none = "There are no tokens. Create one with `tribune token create --user NAME`.";
    let header = ["ID", "USER", "CREATED", "LAST USED", "STATE", "LABEL"];
    print_list(as_json, &tokens.list().await?, view, none, &header, |token| {
        vec![
            token.id.clone(),
            token.user.to_string(),
            minute(Some(token.created_at)),
            minute(token.last_used),
            state(token, now),
            token.label.clone().unwrap_or_default(),
        ]
    })
}

async fn revoke(tokens: &Tokens, id: &str, as_json: bool) -> anyhow::Result<()> {
    let Some(token) = tokens.revoke(id, Timestamp::now()).await? else {
        bail!("there is no token `{id}`; `tribune token list` shows the ids");
    };
    if as_json {
        return print(&view(&token).to_string());
    }
    print(&format!("Revoked token {} of {}; running servers refuse it within a second.", token.id, token.user))
}

fn view(token: &KeptToken) -> Value {
    json!({
        "id": token.id,
        "user": token.user.as_str(),
        "label": token.label,
        "scopes": token.scopes,
        "profile": token.profile,
        "created_at": token.created_at,
        "expires_at": token.expires_at,
        "last_used": token.last_used,
        "revoked_at": token.revoked_at,
    })
}

fn state(token: &KeptToken, now: Timestamp) -> String {
    match (token.revoked_at, token.expires_at) {
        (Some(at), _) => format!("revoked {}", minute(Some(at))),
        (None, Some(end)) if end <= now => format!("expired {}", minute(Some(end))),
        (None, Some(end)) => format!("until {}", minute(Some(end))),
        (None, None) => "valid".to_owned(),
    }
}
