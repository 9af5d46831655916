//! `tribune check`

use std::process::ExitCode;

use serde_json::{Value, json};
use tribune_core::Source;
use tribune_corpus::DocumentsSource;
use tribune_server::Profile;
use tribune_server::service::NoChat;

use super::{config, plural, print_either};
use crate::cli::Common;
use crate::compose::{Mode, Parts, compose};

pub fn run(common: &Common, as_json: bool) -> anyhow::Result<ExitCode> {
    let config = config(common)?;
    let Parts { service, corpora, .. } = compose(&config, config.settings(config.listen, false), Mode::Command)?;
    for corpus in &corpora {
        drop(corpus.refresh());
    }
    let base = service.links.base();
    let file = config.file.as_ref().map(|file| file.display().to_string());
    let mut lines = vec![
        format!("configuration  {}", file.as_deref().unwrap_or("none: the demo")),
        format!("listens on     {}", config.listen),
        format!("reached at     {base}"),
        "sources".to_owned(),
    ];
    let (mut sources, mut profiles, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for source in service.sources() {
        let corpus = corpora.iter().find(|corpus| corpus.name() == source.name());
        let (entry, line) = describe_source(&**source, corpus.map(|corpus| &**corpus));
        sources.push(entry);
        lines.push(line);
        if let Err(error) = source.check() {
            problems.push(error.message().to_owned());
        }
        let mistakes = corpus.map(|corpus| corpus.provider().mistakes()).unwrap_or_default();
        problems.extend(
            mistakes.iter().map(|fault| format!("source `{}`: {}: {}", source.name(), fault.file, fault.problem)),
        );
    }
    lines.push("profiles".to_owned());
    for profile in service.profiles() {
        let (entry, line) = describe_profile(profile, base);
        profiles.push(entry);
        lines.push(line);
    }
    let mut warnings = config.warnings.clone();
    let chat = match &service.chat {
        Ok(chat) => {
            let settings = chat.agent.settings();
            lines.push(format!("chat           {} at {}", settings.model, settings.base_url));
            json!({"model": settings.model, "at": settings.base_url})
        }
        Err(no_chat) => {
            match no_chat {
                NoChat::Unconfigured => lines.push("chat           off: no model is configured in [agent]".to_owned()),
                NoChat::Unusable(reason) => warnings.push(format!("chat is off: {reason}")),
            }
            json!({"model": null, "missing": no_chat.remedy()})
        }
    };
    lines.extend(warnings.iter().map(|warning| format!("warning: {warning}")));
    lines.extend(problems.iter().map(|problem| format!("problem: {problem}")));
    if problems.is_empty() {
        lines.push("no problems found; start it with `tribune serve`".to_owned());
    }
    let report = json!({
        "configuration": file,
        "listen": config.listen.to_string(),
        "public_url": base,
        "sources": sources,
        "profiles": profiles,
        "chat": chat,
        "warnings": warnings,
        "problems": problems,
    });
    print_either(as_json, &report, || lines.join("\n"))?;
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn describe_source(source: &dyn Source, corpus: Option<&DocumentsSource>) -> (Value, String) {
    let (mut facts, origin) = (source.facts(), source.origin());
    // Facts are about public documents.
    if let Some(published) = corpus.and_then(|corpus| corpus.seen_in_full().ok()) {
        facts.documents = Some(published.manifest().documents());
    }
    let is_live = facts.live || source.is_personal();
    let mut entry = json!({
        "name": facts.name,
        "title": facts.title,
        "path": origin,
        "documents": facts.documents,
    });
    if is_live {
        entry["live"] = json!(true);
    }
    let documents = match facts.documents {
        _ if is_live => "not checked".to_owned(),
        Some(count) => plural(count, "document"),
        None => "not indexed yet".to_owned(),
    };
    let line =
        format!("  {:<14} {} ({documents}) from {}", facts.name, facts.title, origin.as_deref().unwrap_or_default());
    (entry, line)
}

fn describe_profile(profile: &Profile, base: &str) -> (Value, String) {
    let state = profile.state();
    let tools: Vec<&str> = state.registry.names().collect();
    let address = match profile.name() {
        "default" => format!("{base}/mcp"),
        name => format!("{base}/mcp/{name}"),
    };
    let hosts = &profile.spec().hosts;
    let mut line = format!("  {:<14} {address}  {}", profile.name(), tools.join(", "));
    if !hosts.is_empty() {
        line.push_str(&format!("  (at /mcp for {})", hosts.join(", ")));
    }
    let entry = json!({
        "name": profile.name(),
        "address": address,
        "hosts": hosts,
        "tools": tools,
    });
    (entry, line)
}
