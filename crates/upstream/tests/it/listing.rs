//! Names, choices, pages and changes.

use serde_json::json;
use tribune_upstream::{Era, Reach, ServerSpec, Status, Upstreams};

use crate::support::*;

#[test]
fn doubled_and_bad_names_are_refused() {
    let named = |name: &str| ServerSpec::new(name, url("http://127.0.0.1:1/mcp"));
    assert!(Upstreams::new(vec![named("a"), named("b")]).is_ok());
    let doubled = Upstreams::new(vec![named("a"), named("a")]).err().expect("an error");
    assert!(doubled.message().contains("two MCP servers are named `a`"), "{doubled}");
    assert!(Upstreams::new(vec![named("A")]).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn names_collide_within_and_between_servers() {
    let marks = Marks::new();
    let chosen = |name: &str, era, tools: &[&str]| ServerSpec {
        tools: Some(tools.iter().map(|&tool| tool.to_owned()).collect()),
        ..by_command(name, era, &marks)
    };
    let upstreams = started(vec![
        chosen(
            "x",
            Era::Legacy,
            &["get-Environment", "get_environment", "add", "missing"],
        ),
        chosen("x_get", Era::Modern, &["get-Environment"]),
    ])
    .await;
    let expected = [
        "x_add",
        "x_get_environment",
        "x_get_environment_2",
        "x_get_get_environment",
    ];
    assert_eq!(names(&upstreams), expected);
    let other = call(&upstreams, "x_get_environment_2", json!({})).await;
    assert_eq!(other.expect("an answer"), text("the other one"));

    // What a child inherits: little, and what it was given.
    let environment = call(&upstreams, "x_get_environment", json!({}))
        .await
        .expect("an answer");
    let names: Vec<&str> = environment["text"].as_str().expect("text").lines().collect();
    assert!(names.contains(&"PATH") && names.contains(&"MARKS"), "{names:?}");
    assert!(
        std::env::var_os("CARGO_MANIFEST_DIR").is_some(),
        "this test has what the child must not have"
    );
    assert!(!names.iter().any(|name| name.starts_with("CARGO")), "{names:?}");
    upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_followed_up_to_a_bound() {
    let paged = |name: &str, arguments: [&str; 2]| {
        let [count, per_page] = arguments;
        spec(
            name,
            command(python(Era::Legacy), &[&script("paged.py"), count, per_page]),
        )
    };
    let upstreams = started(vec![
        paged("few", ["25", "10"]),
        paged("many", ["1000", "50"]),
        paged("endless", ["0", "0"]),
    ])
    .await;
    let count = |name: &str| match status(&upstreams, name) {
        Status::Connected { tools, .. } => tools,
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!((count("few"), count("many"), count("endless")), (25, 200, 20));
    assert_eq!(names(&upstreams)[24], "few_tool_024");
    upstreams.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_list_is_read_again() {
    let marks = Marks::new();
    let old = Process::python(Era::Legacy, free_port(), &marks);
    let new = Process::python(Era::Modern, free_port(), &marks);
    let upstreams = started(vec![
        by_command("old", Era::Legacy, &marks),
        by_command("new", Era::Modern, &marks),
        spec(
            "old_url",
            Reach::Url {
                url: old.url(),
                bearer: Some("unasked for".to_owned()),
            },
        ),
        spec("new_url", url(new.url())),
    ])
    .await;
    for name in ["old", "new", "old_url", "new_url"] {
        let grown = format!("{name}_grown");
        assert!(!names(&upstreams).contains(&grown));
        call(&upstreams, &format!("{name}_grow"), json!({}))
            .await
            .expect("growth");
        until(&grown, || names(&upstreams).contains(&grown)).await;
        assert_eq!(
            call(&upstreams, &grown, json!({})).await.expect("an answer")["result"],
            "new"
        );
    }
    upstreams.stop().await;
}
