//! Whole configurations: what is accepted, refused, documented.

use std::time::Duration;

use super::file::Profile;
use super::variables::{SECTIONS, keys_of};
use super::*;

fn parse(text: &str) -> anyhow::Result<Config> {
    Config::parse(text, Path::new("dir/tribune.toml"), &Variables::new())
}

fn fault(text: &str) -> String {
    format!("{:#}", parse(text).expect_err("refused"))
}

#[test]
fn paths_are_relative_to_the_file() {
    let config = parse("[[sources]]\nname = \"notes\"\nkind = \"documents\"\npath = \"n\"\n").expect("config");
    assert_eq!((config.dir.as_path(), config.data_dir.as_path()), (Path::new("dir"), Path::new("dir/tribune-data")));
    assert_eq!(config.source_names, [("documents".to_owned(), "notes".to_owned())]);
}

#[test]
fn unknown_source_key_has_its_line() {
    let text = "[[sources]]\nname = \"a\"\nkind = \"documents\"\npath = \"a\"\n\n[[sources]]\nname = \"b\"\nkind = \"documents\"\n  tilte = \"x\"\n";
    let message = fault(text);
    assert!(message.contains("tribune.toml:9:3"), "{message}");
    assert!(message.contains("did you mean `title`?"), "{message}");
}

#[test]
fn unknown_key_error_has_line_and_suggestion() {
    let message = fault("[server]\nlisten = \"127.0.0.1:1\"\npublic_ulr = \"https://x\"\n");
    assert!(message.contains("tribune.toml:3:1"), "{message}");
    assert!(message.contains("`public_ulr`"), "{message}");
    assert!(message.contains("did you mean `public_url`?"), "{message}");
}

#[test]
fn broken_toml_is_named_with_its_line() {
    let message = fault("[server]\nlisten = \n");
    assert!(message.contains("tribune.toml:2:"), "{message}");
}

#[test]
fn impossible_settings_are_refused_with_the_fix() {
    for (text, told) in [
        ("[server]\nlisten = \"8080\"", "such as \"127.0.0.1:8080\""),
        ("[server]\npublic_url = \"tribune.example.org\"", "such as \"https://tribune.example.org\""),
        ("[server]\nkeep_alive_secs = 60", "between 1 and 15"),
        ("[[sources]]\nname = \"My Notes\"\nkind = \"documents\"\npath = \"x\"", "a-z, 0-9"),
        ("[[sources]]\nname = \"full\"\nkind = \"documents\"\npath = \"x\"", "reserved"),
        ("[[sources]]\nname = \"x\"\nkind = \"documnets\"\npath = \"x\"", "did you mean `documents`?"),
    ] {
        assert!(fault(text).contains(told), "{}", fault(text));
    }
}

#[test]
fn key_of_another_kind_names_that_kind() {
    let table = |kind| format!("[[sources]]\nname = \"x\"\nkind = \"{kind}\"\npath = \"x\"\nparliament = \"other\"\n");
    parse(&table("speeches")).expect("speeches have it");
    let message = fault(&table("documents"));
    assert!(message.contains("`parliament`"), "{message}");
    assert!(message.contains("kind = \"speeches\""), "{message}");
}

#[test]
fn the_variables_overrides_the_file() {
    let set = |name: &str, value: &str| (format!("TRIBUNE_SERVER_{name}"), value.to_owned());
    let variables = Variables::from([
        set("LISTEN", "127.0.0.1:9"),
        set("SESSIONS", "false"),
        set("ALLOWED_HOSTS", "a.example, b.example"),
        set("DRAIN_SECS", "3"),
    ]);
    let config = Config::parse("[server]\nlisten = \"127.0.0.1:1\"", Path::new("t.toml"), &variables).expect("config");
    assert_eq!(config.listen.port(), 9);
    let settings = config.settings(config.listen, false);
    assert!(!settings.config.sessions);
    assert_eq!(settings.config.allowed_hosts, ["a.example", "b.example"]);
    assert_eq!(settings.config.drain, Duration::from_secs(3));
}

#[test]
fn wrong_variables_are_refused_by_name() {
    for (name, value, told) in [
        ("TRIBUNE_SERVER_LISTNE", "x", "did you mean TRIBUNE_SERVER_LISTEN?"),
        ("TRIBUNE_SERVER_SESSIONS", "maybe", "TRIBUNE_SERVER_SESSIONS=maybe does not fit"),
    ] {
        let variables = Variables::from([(name.to_owned(), value.to_owned())]);
        let error = Config::parse("", Path::new("t.toml"), &variables).expect_err("refused");
        assert!(format!("{error:#}").contains(told), "{error:#}");
    }
}

#[test]
fn store_or_agent_section_serves_tasks() {
    assert!(!parse("").expect("config").tasks);
    for text in ["[agent]", "[store]\nurl = \"sqlite:x\""] {
        assert!(parse(text).expect("config").tasks, "{text}");
        let taken = format!("{text}\n[[sources]]\nname = \"tasks\"\nkind = \"documents\"\npath = \"x\"");
        assert!(fault(&taken).contains("choose another name"), "{}", fault(&taken));
    }
}

#[test]
fn cache_without_market_is_warned_about() {
    let alone = parse("[cache]\nurl = \"memory:\"").expect("config");
    assert!(alone.warnings[0].contains("without [market]"), "{:?}", alone.warnings);
    let rates = parse("[cache]\nurl = \"redis://127.0.0.1:6379\"").expect("config");
    assert!(rates.warnings.is_empty(), "{:?}", rates.warnings);
}

#[test]
fn a_proxy_without_a_name_is_told() {
    let server = "[server]\npublic_url = \"https://tribune.example.org\"\n";
    let warned = |text: &str| parse(text).expect("config").warnings.join("\n");
    assert!(warned(server).contains("trusted_proxies = [\"127.0.0.1\"]"), "{}", warned(server));
    for text in [
        "",
        "[server]\npublic_url = \"http://localhost:8080\"\n",
        &format!("{server}listen = \"0.0.0.0:80\"\n"),
        &format!("{server}[limits]\ntrusted_proxies = [\"127.0.0.1\"]\n"),
    ] {
        assert_eq!(warned(text), "", "{text}");
    }
}

#[test]
fn node_without_feed_needs_a_shared_cache() {
    let told = fault("[market]\nfeed = false");
    assert!(told.contains("redis://127.0.0.1:6379"), "{told}");
    let shared = parse("[market]\nfeed = false\n[cache]\nurl = \"redis://127.0.0.1:6379\"").expect("config");
    assert!(shared.market.is_some_and(|market| !market.feed));
}

#[test]
fn variables_set_keys_of_several_sections() {
    let set = |text: &str, variables: &[(&str, &str)]| {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::parse(text, Path::new("tribune.toml"), &variables.collect())
    };
    let variables = [
        ("TRIBUNE_CACHE_URL", "redis://127.0.0.1:7000"),
        ("TRIBUNE_MARKET_FEED", "false"),
        ("TRIBUNE_MARKET_SYMBOLS", "BTCUSDT, ethusdt"),
    ];
    let config = set("[market]", &variables).expect("config");
    let market = config.market.expect("market");
    assert_eq!((market.feed, market.symbols.len()), (false, 2));
    assert_eq!(config.cache.url.as_deref(), Some("redis://127.0.0.1:7000"));
    let lone = format!("{:#}", set("", &variables[1..]).expect_err("no market"));
    assert!(lone.contains("has no [market]"), "{lone}");
    let wrong = format!("{:#}", set("", &[("TRIBUNE_CACHE_ULR", "x")]).expect_err("wrong"));
    assert!(wrong.contains("TRIBUNE_CACHE_URL"), "{wrong}");
}

#[test]
fn market_section_serves_a_market_and_reserves_its_schemes() {
    assert!(parse("").expect("config").market.is_none());
    assert!(parse("[market]").expect("config").market.is_some());
    let taken = "[market]\n[[sources]]\nname = \"ticker\"\nkind = \"documents\"\npath = \"x\"";
    assert!(fault(taken).contains("choose another name"), "{}", fault(taken));
}

/// The text of `docs/configuration.md`, and of the file that `tribune init` writes.
const REFERENCE: &str = include_str!("../../../../docs/configuration.md");
const INIT: &str = include_str!("../init.toml");

#[test]
fn every_setting_is_documented() {
    let mut sections: Vec<(String, Vec<String>)> = vec![
        ("embedder".to_owned(), keys_of::<tribune_corpus::EmbedderConfig>()),
        ("profiles".to_owned(), keys_of::<Profile>()),
        ("agent.servers".to_owned(), keys_of::<tribune_upstream::Config>()),
        ("market.trading".to_owned(), keys_of::<tribune_trading::Config>()),
    ];
    sections.extend(SECTIONS.iter().map(|section| (section.name.to_owned(), (section.keys)())));
    let kinds = SourceConfig::kinds();
    assert!(kinds.len() >= 2, "{kinds:?}");
    for (kind, _) in &kinds {
        assert!(REFERENCE.contains(&format!("`\"{kind}\"`")), "docs/configuration.md lacks kind = \"{kind}\"");
        assert!(INIT.contains(&format!("kind = \"{kind}\"")), "init.toml lacks kind = \"{kind}\"");
    }
    sections.extend(kinds);
    for (section, keys) in sections {
        assert!(!keys.is_empty(), "{section}");
        for key in keys {
            assert!(REFERENCE.contains(&format!("| `{key}` |")), "docs/configuration.md lacks {section}.{key}");
            assert!(
                INIT.contains(&format!("{key} = ")) || INIT.contains(&format!("[{section}.{key}]")),
                "init.toml lacks {section}.{key}"
            );
        }
    }
}

#[test]
fn init_file_loads_with_every_setting() {
    let all_on: String = INIT.lines().map(|line| format!("{}\n", line.strip_prefix("#:").unwrap_or(line))).collect();
    for text in [INIT, &all_on] {
        let text = text.replace("{folder}", "notes");
        file::parse(&text, Path::new("tribune.toml"), &Variables::new()).expect("loads");
    }
}

#[test]
fn every_example_loads() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut loaded = 0;
    for folder in ["examples", "docs", "deploy", "."] {
        for (name, text) in examples(&root.join(folder), folder != ".") {
            file::parse(&text, &name, &Variables::new()).expect("an example that loads");
            loaded += 1;
        }
    }
    assert!(loaded >= 5, "{loaded} examples");
}

/// TOML files, and code blocks of Markdown files.
fn examples(folder: &Path, recursive: bool) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let text = || std::fs::read_to_string(&path).expect("a text");
        match path.extension().and_then(|extension| extension.to_str()) {
            _ if path.is_dir() && recursive => found.extend(examples(&path, true)),
            Some("toml") if recursive => found.push((path.clone(), text())),
            Some("md") => {
                let text = text();
                let blocks = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
                found.extend(blocks.map(|block| (path.clone(), block.to_owned())));
            }
            _ => {}
        }
    }
    found
}
