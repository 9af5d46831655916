//! The built-in issuer over time, tokens of another issuer, and people who sign in at a provider.

#![allow(clippy::disallowed_methods, reason = "tests use the machine's clock")]

mod grants;
mod issuer;
mod login;

use std::sync::Arc;
use std::time::Duration;

use ring::hmac;
use serde_json::{Value, json};
use tribune_oauth::Resources;
use tribune_oauth::jwt::Verifier;

use issuer::{Key, ManualClock, Server, base64};

const AUDIENCE: &str = "https://tribune.example.org/mcp";

fn verifier(issuer: &str, clock: &Arc<ManualClock>) -> Verifier {
    let audience = [(AUDIENCE.to_owned(), None), (format!("{AUDIENCE}/research"), Some("research".to_owned()))];
    Verifier::new(issuer, audience.into(), clock.clone()).expect("an issuer")
}

/// The claims of a good token.
fn claims(server: &Server) -> Value {
    json!({"iss": server.url, "sub": "ann", "aud": AUDIENCE, "exp": ManualClock::START + 600, "scope": "read tasks"})
}

async fn accepts(verifier: &Verifier, token: &str) -> bool {
    verifier.authenticate(token).await.expect("the issuer answers").is_some()
}

#[tokio::test]
async fn unknown_keys_are_asked_for_once_a_minute() {
    let (server, clock) = (Server::start().await, ManualClock::new());
    let (old, new) = (Key::new("old"), Key::new("new"));
    server.publish(&[&old]);
    let verifier = verifier(&server.url, &clock);
    let token = |key: &Key| key.sign(&key.header(), &claims(&server));
    assert!(accepts(&verifier, &token(&old)).await);
    server.publish(&[&new]);
    for _ in 0..5 {
        assert!(!accepts(&verifier, &token(&new)).await);
    }
    assert_eq!(server.asked(), 1);
    clock.advance(Duration::from_secs(61));
    assert!(accepts(&verifier, &token(&new)).await);
    assert!(!accepts(&verifier, &token(&old)).await, "its key was withdrawn");
    assert_eq!(server.asked(), 2);
}

#[tokio::test]
async fn known_keys_outlast_their_issuer() {
    let (server, clock) = (Server::start().await, ManualClock::new());
    let key = Key::new("one");
    server.publish(&[&key]);
    let forever = json!({"iss": server.url, "sub": "ann", "aud": AUDIENCE, "exp": ManualClock::START + 1_000_000});
    let token = key.sign(&key.header(), &forever);
    let (first, second) = (verifier(&server.url, &clock), verifier(&server.url, &clock));
    assert!(accepts(&first, &token).await);
    server.fail();
    clock.advance(Duration::from_secs(2 * 3_600));
    assert!(accepts(&first, &token).await);
    assert!(second.authenticate(&token).await.is_err(), "without keys nobody can tell");
}

#[tokio::test]
async fn hanging_issuer_delays_known_keys_only_shortly() {
    let (server, clock) = (Server::start().await, ManualClock::new());
    let key = Key::new("one");
    server.publish(&[&key]);
    let forever = json!({"iss": server.url, "sub": "ann", "aud": AUDIENCE, "exp": ManualClock::START + 1_000_000});
    let token = key.sign(&key.header(), &forever);
    let verifier = verifier(&server.url, &clock);
    assert!(accepts(&verifier, &token).await);
    server.hang();
    clock.advance(Duration::from_secs(2 * 3_600));
    // Skips what is waited for.
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    assert!(accepts(&verifier, &token).await);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let again = tokio::time::Instant::now();
    assert!(accepts(&verifier, &token).await);
    assert_eq!(again.elapsed(), Duration::ZERO, "it is asked once a minute");
}

#[tokio::test]
async fn subject_cannot_take_the_name_of_another() {
    let (server, clock) = (Server::start().await, ManualClock::new());
    let key = Key::new("one");
    server.publish(&[&key]);
    let verifier = verifier(&server.url, &clock);
    let mut named = Vec::new();
    let mut subject = "idp|ann".to_owned();
    for _ in 0..3 {
        let mut claims = claims(&server);
        claims["sub"] = json!(subject);
        let found = verifier.authenticate(&key.sign(&key.header(), &claims)).await.expect("the issuer answers");
        subject = found.expect("valid").0.to_string();
        assert!(!named.contains(&subject), "{subject}");
        named.push(subject.clone());
    }
}

#[tokio::test]
async fn only_good_tokens_are_accepted() {
    let (server, clock) = (Server::start().await, ManualClock::new());
    let (key, other) = (Key::new("one"), Key::new("one"));
    server.publish(&[&key]);
    let verifier = verifier(&server.url, &clock);
    let with = |name: &str, value: Value| {
        let mut claims = claims(&server);
        claims[name] = value;
        key.sign(&key.header(), &claims)
    };
    for (what, token) in [
        ("as it is", with("scope", json!("read"))),
        ("several audiences", with("aud", json!(["https://example.org", AUDIENCE]))),
        ("a clock that is ahead", with("nbf", json!(ManualClock::START + 3))),
        ("a subject that is a number", with("sub", json!(7))),
        ("an end in words", with("exp", json!((ManualClock::START + 60).to_string()))),
        ("groups that are no names", with("groups", json!(["board", 7, null, {"name": "x"}]))),
        ("a flag in words", with("email_verified", json!("true"))),
    ] {
        assert!(accepts(&verifier, &token).await, "{what}");
    }
    let good = with("scope", json!("read"));
    let (signed, signature) = good.rsplit_once('.').expect("three parts");
    let (_, payload) = signed.split_once('.').expect("two parts");
    let unsigned = format!("{}.{payload}", base64(r#"{"alg":"none"}"#));
    // The public key is no secret: whoever signs with it proves nothing.
    let symmetric = format!("{}.{payload}", base64(r#"{"alg":"HS256","kid":"one"}"#));
    let secret = hmac::Key::new(hmac::HMAC_SHA256, key.public_point());
    let symmetric = format!("{symmetric}.{}", base64(hmac::sign(&secret, symmetric.as_bytes())));
    let header = |name: &str, value: &str| {
        let mut header = key.header();
        header[name] = json!(value);
        key.sign(&header, &claims(&server))
    };
    for (what, token) in [
        ("no signature", format!("{unsigned}.")),
        ("a signature of none", format!("{unsigned}.{signature}")),
        ("the public key as secret", symmetric),
        ("another key of that name", other.sign(&other.header(), &claims(&server))),
        ("another algorithm", header("alg", "ES384")),
        ("an extension", header("crit", "exp")),
        ("another key id", header("kid", "two")),
        ("expired", with("exp", json!(ManualClock::START - 10))),
        ("not yet valid", with("nbf", json!(ManualClock::START + 60))),
        ("another audience", with("aud", json!("https://tribune.example.org/mcp/"))),
        ("another issuer", with("iss", json!(format!("{}/", server.url)))),
        ("nobody", with("sub", json!(""))),
        ("no time as end", with("exp", json!("never"))),
        ("an end that is no number", with("exp", json!("NaN"))),
        ("no time as beginning", with("nbf", json!("soon"))),
        ("no subject", with("sub", json!(["ann"]))),
        ("two parts", signed.to_owned()),
        ("nothing", "..".to_owned()),
    ] {
        assert!(!accepts(&verifier, &token).await, "{what}");
    }
}

#[tokio::test]
async fn scopes_and_audience_say_what_is_opened() {
    let (server, clock) = (Server::start().await, ManualClock::new());
    let key = Key::new("one");
    server.publish(&[&key]);
    server.publish_as_oauth_server();
    let verifier = verifier(&server.url, &clock);
    let research = format!("{AUDIENCE}/research");
    for (name, value, scopes, profile) in [
        ("scope", json!("read tasks"), "read tasks", None),
        ("scope", json!(["read", "tasks"]), "read tasks", None),
        ("scope", json!("api://tribune/read https://other.example/admin"), "read", None),
        ("scope", json!("openid"), "", None),
        ("aud", json!(research), "read tasks", Some("research")),
        ("aud", json!([research, AUDIENCE]), "read tasks", None),
    ] {
        let mut claims = claims(&server);
        claims[name] = value.clone();
        let token = key.sign(&key.header(), &claims);
        let found = verifier.authenticate(&token).await.expect("the issuer answers");
        let (_, _, found_scopes, found_profile) = found.expect("valid");
        assert_eq!((found_scopes.to_string().as_str(), found_profile.as_deref()), (scopes, profile), "{name} {value}");
    }
}

#[tokio::test]
async fn issuer_must_call_itself_as_configured() {
    let (server, clock) = (Server::start().await, ManualClock::new());
    let key = Key::new("one");
    server.publish(&[&key]);
    let respelt = format!("{}/", server.url);
    let mut claims = claims(&server);
    claims["iss"] = json!(respelt);
    let refused = verifier(&respelt, &clock).authenticate(&key.sign(&key.header(), &claims)).await;
    let message = refused.expect_err("another spelling").to_string();
    assert!(message.contains("its issuer is"), "{message}");
    assert!(Verifier::new("http://issuer.example.org", Resources::new(), clock).is_err(), "without encryption");
}
