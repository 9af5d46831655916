//! Tool names, configured tools and pages of the tool list.

use serde_json::json;
use tribune_upstream::{Era, ServerSpec, Status, Upstreams};

use crate::support::*;

#[test]
fn duplicate_server_names_are_refused() {
    let named = |name: &str| ServerSpec::new(name, url("http://127.0.0.1:1/mcp"));
    assert!(Upstreams::new(vec![named("a"), named("b")]).is_ok());
    let doubled = Upstreams::new(vec![named("a"), named("a")]).err().expect("an error");
    assert!(doubled.message().contains("two MCP servers are named `a`"), "{doubled}");
}

#[tokio::test(flavor = "multi_thread")]
async fn colliding_tool_names_are_numbered() {
    let marks = Marks::new();
    let chosen = |name: &str, era, tools: &[&str]| ServerSpec {
        tools: Some(tools.iter().map(|&tool| tool.to_owned()).collect()),
        ..by_command(name, era, &marks)
    };
    let upstreams = started(vec![
        chosen("x", Era::Legacy, &["get-Environment", "get_environment", "add", "missing"]),
        chosen("x_get", Era::Modern, &["environment"]),
    ])
    .await;
    let expected = ["x_add", "x_get_environment", "x_get_environment_2", "x_get_environment_3"];
    assert_eq!(names(&upstreams), expected);
    let other = call(&upstreams, "x_get_environment_2", json!({})).await;
    assert_eq!(other.expect("an answer"), text("the other one"));

    let third = call(&upstreams, "x_get_environment_3", json!({})).await;
    assert_eq!(third.expect("an answer"), text("the third one"));

    // A child inherits few variables, and gets the configured ones.
    let environment = call(&upstreams, "x_get_environment", json!({})).await.expect("an answer");
    let names: Vec<&str> = environment["text"].as_str().expect("text").lines().collect();
    assert!(names.contains(&"PATH") && names.contains(&"MARKS"), "{names:?}");
    let allowed = ["HOME", "LANG", "LOGNAME", "MARKS", "PATH", "SHELL", "TMPDIR", "TZ", "USER"];
    let is_allowed = |name: &&str| allowed.contains(name) || name.starts_with("LC_");
    assert!(names.iter().all(is_allowed), "{names:?}");
    upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tool_pages_are_read_up_to_limit() {
    let paged = |name: &str, arguments: [&str; 2]| {
        let [count, per_page] = arguments;
        spec(name, command(python(Era::Legacy), &[&script("paged.py"), count, per_page]))
    };
    let upstreams =
        started(vec![paged("few", ["25", "10"]), paged("many", ["1000", "50"]), paged("endless", ["0", "0"])]).await;
    let count = |name: &str| match status(&upstreams, name) {
        Status::Connected { tools, .. } => tools,
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!((count("few"), count("many"), count("endless")), (25, 200, 20));
    assert_eq!(names(&upstreams)[24], "few_tool_024");
    upstreams.stop().await;
}
