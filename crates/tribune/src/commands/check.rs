//! `tribune check`

use std::process::ExitCode;

use serde_json::json;

use super::{config, print};
use tribune_server::service::NoChat;

use crate::cli::{Check, Common};
use crate::compose::{Mode, Parts, compose};

pub fn run(common: &Common, args: &Check) -> anyhow::Result<ExitCode> {
    let config = config(common)?;
    let Parts { service, corpora, .. } = compose(&config, config.settings(config.listen, false), Mode::Command)?;
    for corpus in &corpora {
        drop(corpus.refresh());
    }
    let checks = service.sources().iter().map(|source| source.check());
    let problems: Vec<String> = checks
        .filter_map(|check| check.err().map(|error| error.message().to_owned()))
        .collect();
    let sources: Vec<_> = service
        .sources()
        .iter()
        .map(|source| {
            let facts = source.facts();
            let mut entry = json!({
                "name": facts.name,
                "title": facts.title,
                "path": source.origin(),
                "documents": facts.documents,
            });
            if facts.live || source.is_personal() {
                entry["live"] = json!(true);
            }
            entry
        })
        .collect();
    let base = service.links.base();
    let profiles: Vec<_> = service
        .profiles()
        .map(|profile| {
            let state = profile.state();
            let address = match profile.name() {
                "default" => format!("{base}/mcp"),
                name => format!("{base}/mcp/{name}"),
            };
            json!({
                "name": profile.name(),
                "address": address,
                "hosts": profile.spec().hosts,
                "tools": state.registry.names().collect::<Vec<_>>(),
            })
        })
        .collect();
    let mut warnings = config.warnings.clone();
    if let Err(NoChat::Unusable(reason)) = &service.chat {
        warnings.push(format!("chat is off: {reason}"));
    }
    let report = json!({
        "configuration": config.file.as_ref().map(|file| file.display().to_string()),
        "listen": config.listen.to_string(),
        "public_url": base,
        "sources": sources,
        "profiles": profiles,
        "chat": match &service.chat {
            Ok(chat) => json!({"model": chat.agent.settings().model, "at": chat.agent.settings().base_url}),
            Err(no_chat) => json!({"model": null, "missing": no_chat.remedy()}),
        },
        "warnings": warnings,
        "problems": problems,
    });
    if args.json {
        print(&serde_json::to_string_pretty(&report)?)?;
    } else {
        print(&readable(&report))?;
    }
    Ok(if problems.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn readable(report: &serde_json::Value) -> String {
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &serde_json::Value| value.as_array().cloned().unwrap_or_default();
    let mut lines = vec![
        format!(
            "configuration  {}",
            report["configuration"].as_str().unwrap_or("none: the demo")
        ),
        format!("listens on     {}", text(&report["listen"])),
        format!("reached at     {}", text(&report["public_url"])),
        "sources".to_owned(),
    ];
    for source in list(&report["sources"]) {
        let documents = source["documents"]
            .as_u64()
            .map_or("not indexed yet".to_owned(), |n| super::plural(n, "document"));
        let documents = if source["live"] == true {
            "not checked".to_owned()
        } else {
            documents
        };
        lines.push(format!(
            "  {:<14} {} ({documents}) from {}",
            text(&source["name"]),
            text(&source["title"]),
            text(&source["path"])
        ));
    }
    lines.push("profiles".to_owned());
    for profile in list(&report["profiles"]) {
        let tools: Vec<String> = list(&profile["tools"]).iter().map(text).collect();
        let hosts: Vec<String> = list(&profile["hosts"]).iter().map(text).collect();
        let hosts = if hosts.is_empty() {
            String::new()
        } else {
            format!("  (at /mcp for {})", hosts.join(", "))
        };
        lines.push(format!(
            "  {:<14} {}  {}{hosts}",
            text(&profile["name"]),
            text(&profile["address"]),
            tools.join(", ")
        ));
    }
    let chat = &report["chat"];
    lines.push(match chat["model"].as_str() {
        Some(model) => format!("chat           {model} at {}", text(&chat["at"])),
        None => format!(
            "chat           no model; missing: {}",
            text(&chat["missing"]).replace('\n', "  ")
        ),
    });
    for warning in list(&report["warnings"]) {
        lines.push(format!("warning: {}", text(&warning)));
    }
    for problem in list(&report["problems"]) {
        lines.push(format!("problem: {}", text(&problem)));
    }
    if list(&report["problems"]).is_empty() {
        lines.push("no problems found: `tribune serve` will serve this".to_owned());
    }
    lines.join("\n")
}
