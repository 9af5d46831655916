//! `tribune connect`: how to connect a host.

use std::process::ExitCode;

use tribune_server::connect::{self, Guide, Reach, Token};

use super::{config, print};
use crate::cli::{Common, Host};
use crate::compose::local_proof;
use crate::config::Config;

pub fn run(common: &Common, host: Host) -> anyhow::Result<ExitCode> {
    let config = config(common)?;
    let settings = config.settings(config.listen, false);
    let base = settings.public_url.trim_end_matches('/');
    let remote = Token::remote(&settings);
    // The demo's data folder ends with its process.
    let local = if config.demo.is_some() { None } else { local_proof(&config.data_dir, base)? };
    let local = local.as_ref().map_or(remote, |local| Token::Local(local.secret()));
    let mut text = match host {
        Host::Chatgpt => guide(connect::Host::ChatGpt, base, remote),
        Host::Claude => format!(
            "{}\n{}\nIn Claude Desktop without a public address, as a local program (claude_desktop_config.json):\n\n{}\n",
            guide(connect::Host::Claude, base, remote),
            guide(connect::Host::ClaudeCode, base, local),
            stdio_entry(&config, "mcpServers")
        ),
        Host::Vscode => format!(
            "{}\nOr as a local program:\n\n{}\n",
            guide(connect::Host::VsCode, base, local),
            stdio_entry(&config, "servers")
        ),
        Host::Cursor => guide(connect::Host::Cursor, base, local),
    };
    if config.tasks && remote != Token::SignIn {
        text.push_str(match host {
            Host::Chatgpt => "\nChatGPT connects without a token, so it sees shared data and nothing that belongs to a user.\n",
            _ => "\nFor personal data from another machine: create a token (`tribune token create --user NAME`) and have the client send\nthe header `Authorization: Bearer TOKEN`.\n",
        });
    }
    let needs_public = matches!(host, Host::Chatgpt | Host::Claude);
    if let Some(warning) = Reach::of(base).warning(base).filter(|_| needs_public) {
        text.push_str(&format!("\nNote: {warning}\ndeploy/ has examples for nginx and Caddy.\n"));
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The steps, what to paste, and the note.
fn guide(host: connect::Host, base: &str, token: Token<'_>) -> String {
    let Guide { name, steps, paste, note, .. } = host.guide(base, token);
    let mut text = format!("{name}. {steps}\n\n");
    let label_width = paste.iter().map(|(label, _)| label.len()).max().unwrap_or_default();
    for (label, pasted) in &paste {
        match paste.len() {
            1 => text.push_str(&format!("{pasted}\n")),
            _ => text.push_str(&format!("  {label:label_width$}  {pasted}\n")),
        }
    }
    if let Some(note) = note {
        text.push_str(&format!("\n{note}\n"));
    }
    text
}

/// A client's entry that starts `tribune stdio` with this configuration.
fn stdio_entry(config: &Config, key: &str) -> String {
    let program = std::env::current_exe().map_or_else(|_| "tribune".to_owned(), |path| path.display().to_string());
    let mut arguments = vec!["stdio".to_owned()];
    if let Some(file) = &config.file {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
        arguments.extend(["--config".to_owned(), file.display().to_string()]);
    }
    let entry = serde_json::json!({key: {"tribune": {"command": program, "args": arguments}}});
    serde_json::to_string_pretty(&entry).unwrap_or_default()
}
