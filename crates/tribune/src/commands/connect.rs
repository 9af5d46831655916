//! `tribune connect`: exactly what to paste where.

use std::process::ExitCode;

use super::{config, print};
use crate::cli::{Common, Connect, Host};

pub fn run(common: &Common, args: &Connect) -> anyhow::Result<ExitCode> {
    let (config, _demo) = config(common)?;
    let settings = config.settings(config.listen, false);
    let base = settings.public_url.trim_end_matches('/');
    let is_public = base.starts_with("https://");
    let mut text = match args.host {
        Host::Chatgpt => format!(
            "In ChatGPT (web): Settings > Connectors > Advanced settings > Developer mode: on.\n\
             Then Settings > Connectors > Create, and fill in:\n\n\
             \x20 Name            Tribune\n\
             \x20 MCP server URL  {base}/mcp\n\
             \x20 Authentication  No authentication\n\n\
             For Deep Research use {base}/mcp/research instead: exactly `search` and `fetch`.\n\
             After the data or tools change, press Refresh on the connector.\n"
        ),
        Host::Claude => format!(
            "In Claude (web or desktop): Settings > Connectors > Add custom connector, and paste:\n\n\
             \x20 {base}/mcp\n\n\
             In Claude Code:\n\n\
             \x20 claude mcp add --transport http tribune {base}/mcp\n\n\
             In Claude Desktop without a public address, as a local program (claude_desktop_config.json):\n\n{}\n",
            stdio_entry(&config, "mcpServers")
        ),
        Host::Vscode => format!(
            "In VS Code, put this into .vscode/mcp.json:\n\n\
             {{\n  \"servers\": {{\n    \"tribune\": {{ \"type\": \"http\", \"url\": \"{base}/mcp\" }}\n  }}\n}}\n\n\
             Or as a local program:\n\n{}\n",
            stdio_entry(&config, "servers")
        ),
        Host::Cursor => format!(
            "In Cursor, put this into ~/.cursor/mcp.json (or .cursor/mcp.json of a project):\n\n\
             {{\n  \"mcpServers\": {{\n    \"tribune\": {{ \"url\": \"{base}/mcp\" }}\n  }}\n}}\n"
        ),
    };
    if config.tasks {
        text.push_str(match args.host {
            Host::Chatgpt => "\nChatGPT sends no API token: it sees what belongs to nobody in particular, and no tasks.\n",
            _ => "\nFor tasks from another machine: make a token (`tribune token create --user NAME`) and have the client send\nthe header `Authorization: Bearer TOKEN`; on this machine none is needed.\n",
        });
    }
    let needs_public = matches!(args.host, Host::Chatgpt | Host::Claude);
    if needs_public && !is_public {
        text.push_str(&format!(
            "\nNote: {} connects from its own servers, so it needs a public HTTPS address; {base} is not one.\n\
             Put a reverse proxy or tunnel in front (deploy/ has nginx and Caddy examples) and set\n\
             public_url in [server] to its address.\n",
            if args.host == Host::Chatgpt {
                "ChatGPT"
            } else {
                "Claude on the web"
            }
        ));
    }
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// A client's entry that starts `tribune stdio` with this configuration.
fn stdio_entry(config: &crate::config::Config, key: &str) -> String {
    let program = std::env::current_exe().map_or_else(|_| "tribune".to_owned(), |path| path.display().to_string());
    let mut arguments = vec!["stdio".to_owned()];
    if let Some(file) = &config.file {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
        arguments.extend(["--config".to_owned(), file.display().to_string()]);
    }
    let entry = serde_json::json!({key: {"tribune": {"command": program, "args": arguments}}});
    serde_json::to_string_pretty(&entry).unwrap_or_default()
}
