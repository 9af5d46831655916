//! Codes and tokens of the built-in issuer, over time.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tribune_core::{Scopes, UserId};
use tribune_oauth::{Issuer, Refused};
use tribune_storage::{Backend, Store};
use url::{Url, form_urlencoded};

use crate::issuer::ManualClock;

const BASE: &str = "https://tribune.example.org";
const CALLBACK: &str = "https://host.example/callback";
/// From RFC 7636, appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

struct Fixture {
    issuer: Issuer,
    clock: Arc<ManualClock>,
    client: String,
    _dir: tempfile::TempDir,
}

fn encoded(fields: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish()
}

impl Fixture {
    async fn new() -> Self {
        let (dir, clock) = (tempfile::tempdir().expect("a folder"), ManualClock::new());
        let store = Store::new(Backend::Sqlite(dir.path().join("tribune.sqlite"))).expect("a store");
        let resource = |path: &str, profile: Option<&str>| (format!("{BASE}{path}"), profile.map(str::to_owned));
        let resources = [resource("", None), resource("/mcp", None), resource("/mcp/research", Some("research"))];
        let issuer = Issuer::new(BASE, resources.into(), store.grants(), Arc::from([]), clock.clone());
        let issuer = issuer.expect("an issuer");
        let metadata = json!({"client_name": "A host", "redirect_uris": [CALLBACK]}).to_string();
        let registered = issuer.register(metadata.as_bytes()).await.expect("registered");
        let client = registered["client_id"].as_str().expect("an id").to_owned();
        Self { issuer, clock, client, _dir: dir }
    }

    async fn code(&self) -> String {
        self.code_for(BASE).await
    }

    async fn code_for(&self, resource: &str) -> String {
        let query = encoded(&[
            ("resource", resource),
            ("response_type", "code"),
            ("client_id", &self.client),
            ("redirect_uri", CALLBACK),
            ("code_challenge", CHALLENGE),
            ("code_challenge_method", "S256"),
            ("scope", "read tasks"),
        ]);
        let asked = self.issuer.authorization(&query, |_| true).await.expect("a request");
        let ann = UserId::new("ann").expect("a name");
        let back = self.issuer.allow(&asked, &ann, Scopes::USUAL).await.expect("allowed");
        let back = Url::parse(&back).expect("an address");
        back.query_pairs().find(|(name, _)| name == "code").expect("a code").1.into_owned()
    }

    async fn redeem(&self, code: &str) -> Result<Value, Refused> {
        self.redeem_for(BASE, code).await
    }

    async fn redeem_for(&self, resource: &str, code: &str) -> Result<Value, Refused> {
        let form = [
            ("resource", resource),
            ("grant_type", "authorization_code"),
            ("code", code),
            ("client_id", &self.client),
            ("redirect_uri", CALLBACK),
            ("code_verifier", VERIFIER),
        ];
        self.issuer.token(&encoded(&form), None).await
    }

    async fn refresh(&self, tokens: &Value, more: &[(&str, &str)]) -> Result<Value, Refused> {
        let token = tokens["refresh_token"].as_str().expect("a token");
        let mut form = vec![("grant_type", "refresh_token"), ("refresh_token", token)];
        form.extend(more);
        if more.iter().all(|(name, _)| *name != "client_id") {
            form.push(("client_id", &self.client));
        }
        self.issuer.token(&encoded(&form), None).await
    }

    async fn is_valid(&self, tokens: &Value) -> bool {
        let token = tokens["access_token"].as_str().expect("a token");
        self.issuer.authenticate(token).await.expect("the store").is_some()
    }
}

fn code_of(refused: Result<Value, Refused>) -> &'static str {
    refused.expect_err("refused").code
}

#[tokio::test]
async fn codes_and_tokens_expire() {
    let fixture = Fixture::new().await;
    let (late, in_time) = (fixture.code().await, fixture.code().await);
    let tokens = fixture.redeem(&in_time).await.expect("tokens");
    fixture.clock.advance(Duration::from_secs(301));
    assert_eq!(code_of(fixture.redeem(&late).await), "invalid_grant");
    assert!(fixture.is_valid(&tokens).await);
    fixture.clock.advance(Duration::from_secs(3_600));
    assert!(!fixture.is_valid(&tokens).await);
    let renewed = fixture.refresh(&tokens, &[]).await.expect("a refresh token lives longer");
    assert!(fixture.is_valid(&renewed).await);
    fixture.clock.advance(Duration::from_secs(91 * 24 * 3_600));
    assert_eq!(code_of(fixture.refresh(&renewed, &[]).await), "invalid_grant");
}

#[tokio::test]
async fn refresh_token_reused_after_grace_ends_its_grant() {
    let fixture = Fixture::new().await;
    let first = fixture.redeem(&fixture.code().await).await.expect("tokens");
    let second = fixture.refresh(&first, &[]).await.expect("tokens");
    fixture.clock.advance(Duration::from_secs(59));
    let third = fixture.refresh(&first, &[]).await.expect("within the grace");
    fixture.clock.advance(Duration::from_secs(2));
    assert!(fixture.is_valid(&second).await && fixture.is_valid(&third).await);
    assert_eq!(code_of(fixture.refresh(&first, &[]).await), "invalid_grant");
    for tokens in [&second, &third] {
        assert!(!fixture.is_valid(tokens).await);
        assert_eq!(code_of(fixture.refresh(tokens, &[]).await), "invalid_grant");
    }
}

#[tokio::test]
async fn few_tokens_come_of_one_refresh_token() {
    let fixture = Fixture::new().await;
    let first = fixture.redeem(&fixture.code().await).await.expect("tokens");
    let mut last = first.clone();
    for _ in 0..5 {
        last = fixture.refresh(&first, &[]).await.expect("within the grace");
    }
    assert_eq!(code_of(fixture.refresh(&first, &[]).await), "invalid_grant");
    assert!(fixture.is_valid(&last).await, "a program in a hurry is no thief");
}

#[tokio::test]
async fn token_is_for_the_profile_that_was_asked_for() {
    let fixture = Fixture::new().await;
    let (all, research) = (format!("{BASE}/mcp"), format!("{BASE}/mcp/research"));
    for (asked, other, profile) in [(&all, &research, None), (&research, &all, Some("research".to_owned()))] {
        let code = fixture.code_for(asked).await;
        assert_eq!(code_of(fixture.redeem_for(other, &code).await), "invalid_target");
        let tokens = fixture.redeem_for(asked, &code).await.expect("tokens");
        let token = tokens["access_token"].as_str().expect("a token");
        assert_eq!(fixture.issuer.authenticate(token).await.expect("the store").expect("valid").2, profile);
    }
}

/// A stranger must not learn which profiles exist: some serve hidden sources.
#[tokio::test]
async fn strangers_cannot_ask_for_profiles() {
    let fixture = Fixture::new().await;
    for resource in
        [format!("{BASE}/mcp/research"), format!("{BASE}/mcp/never"), "https://elsewhere.example".to_owned()]
    {
        assert_eq!(code_of(fixture.redeem_for(&resource, "guessed").await), "invalid_grant", "{resource}");
        let tokens = json!({"refresh_token": "guessed"});
        assert_eq!(code_of(fixture.refresh(&tokens, &[("resource", &resource)]).await), "invalid_grant", "{resource}");
    }
}

#[tokio::test]
async fn long_descriptions_are_refused() {
    let fixture = Fixture::new().await;
    let long: Vec<String> = (0..10).map(|n| format!("https://host.example/{n}{}", "x".repeat(500))).collect();
    let metadata = json!({"client_name": "A host", "redirect_uris": long}).to_string();
    assert_eq!(code_of(fixture.issuer.register(metadata.as_bytes()).await), "invalid_client_metadata");
}

#[tokio::test]
async fn refresh_gives_no_more_than_was_allowed() {
    let fixture = Fixture::new().await;
    let tokens = fixture.redeem(&fixture.code().await).await.expect("tokens");
    assert_eq!(tokens["scope"], "read tasks");
    for (field, code) in [
        (("scope", "read chat"), "invalid_scope"),
        (("client_id", "registered-other"), "invalid_grant"),
        (("resource", "https://tribune.example.org.evil.example/mcp"), "invalid_target"),
        (("resource", "https://tribune.example.org/mcp/research"), "invalid_target"),
        (("scope", "everything"), "invalid_scope"),
    ] {
        assert_eq!(code_of(fixture.refresh(&tokens, &[field]).await), code, "{field:?}");
    }
    assert!(fixture.refresh(&tokens, &[("resource", "https://tribune.example.org/mcp")]).await.is_ok());
    let narrowed = fixture.refresh(&tokens, &[("scope", "read")]).await.expect("a part of it");
    let token = narrowed["access_token"].as_str().expect("a token");
    let (_, scopes, _) = fixture.issuer.authenticate(token).await.expect("the store").expect("valid");
    assert_eq!((&narrowed["scope"], scopes), (&json!("read"), Scopes::READ));
    assert_eq!(fixture.refresh(&narrowed, &[]).await.expect("tokens")["scope"], "read tasks", "the grant is the same");
    let twice = format!("grant_type=refresh_token&grant_type=refresh_token&client_id={}", fixture.client);
    assert_eq!(code_of(fixture.issuer.token(&twice, None).await), "invalid_request");
    let password = encoded(&[("grant_type", "password"), ("client_id", &fixture.client)]);
    assert_eq!(code_of(fixture.issuer.token(&password, None).await), "unsupported_grant_type");
}
