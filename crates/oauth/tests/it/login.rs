//! People who sign in at a provider.

use serde_json::{Value, json};
use tribune_core::UserId;
use tribune_oauth::login::Provider;
use tribune_storage::{Backend, Store, User, Users};
use url::Url;

use crate::issuer::{Key, ManualClock, Server};

const CALLBACK: &str = "https://tribune.example.org/login/callback";

/// A provider with one key, and a store of users.
struct Fixture {
    server: Server,
    key: Key,
    provider: Provider,
    users: Users,
    _dir: tempfile::TempDir,
}

impl Fixture {
    async fn new(allow: &[&str]) -> Self {
        let (server, key) = (Server::start().await, Key::new("one"));
        server.publish(&[&key]);
        let allow = allow.iter().map(|&allowed| allowed.to_owned()).collect();
        let provider = Provider::new(&server.url, "tribune".into(), "secret".into(), allow, ManualClock::new());
        let dir = tempfile::tempdir().expect("a folder");
        let store = Store::new(Backend::Sqlite(dir.path().join("tribune.sqlite"))).expect("a store");
        Self { server, key, provider: provider.expect("a provider"), users: store.users(), _dir: dir }
    }

    /// Signs in; the provider says this about the person.
    async fn sign_in(&self, about: Value) -> Result<User, String> {
        let (address, pending) = self.provider.begin(CALLBACK, "/").await.expect("begun");
        let address = Url::parse(&address).expect("an address");
        let nonce = address.query_pairs().find(|(name, _)| name == "nonce").expect("a nonce").1.into_owned();
        let mut claims = json!({
            "iss": self.server.url, "aud": "tribune", "sub": "1", "nonce": nonce, "exp": ManualClock::START + 60,
            "email": "ann@example.org", "email_verified": true,
        });
        for (name, value) in about.as_object().into_iter().flatten() {
            claims[name] = value.clone();
        }
        self.server.give(self.key.sign(&self.key.header(), &claims));
        let name = self.provider.finish("code", &pending, CALLBACK, &self.users).await;
        let name = name.map_err(|error| error.to_string())?;
        Ok(self.users.find(&name).await.expect("the store").expect("a user"))
    }
}

#[tokio::test]
async fn groups_follow_the_provider() {
    let fixture = Fixture::new(&[]).await;
    let first = fixture.sign_in(json!({"groups": ["board", "admin", 7]})).await.expect("signed in");
    assert_eq!(
        (first.name.as_str(), first.groups.clone()),
        ("ann@example.org", vec!["board".to_owned()]),
        "no scope by claim"
    );
    assert_eq!(fixture.sign_in(json!({})).await.expect("signed in").groups, ["board"], "nothing said");
    assert_eq!(fixture.sign_in(json!({"groups": "staff"})).await.expect("signed in").groups, ["staff"]);
    fixture.users.set_groups(&first.name, &["staff".into(), "trade".into()]).await.expect("set by the operator");
    assert_eq!(fixture.sign_in(json!({"groups": ["board"]})).await.expect("signed in").groups, ["board", "trade"]);
    assert_eq!(fixture.sign_in(json!({"groups": []})).await.expect("signed in").groups, ["trade"]);
}

#[tokio::test]
async fn only_allowed_and_proved_people_sign_in() {
    let fixture = Fixture::new(&["@example.org", "guest@example.com"]).await;
    for (about, why) in [
        (json!({"email": "ann@example.com"}), "may not sign in"),
        (json!({"email": "ann@evil-example.org"}), "may not sign in"),
        (json!({"email_verified": false}), "may not sign in"),
        (json!({"nonce": "another"}), "not valid here"),
        (json!({"aud": "another program"}), "not valid here"),
        (json!({"aud": ["tribune", "other"], "azp": "other"}), "not valid here"),
        (json!({"email_verified": "false"}), "may not sign in"),
        (json!({"exp": ManualClock::START - 60}), "not valid here"),
    ] {
        let refused = fixture.sign_in(about.clone()).await.expect_err("refused");
        assert!(refused.contains(why), "{about}: {refused}");
    }
    assert!(fixture.users.list().await.expect("the store").is_empty());
    assert!(fixture.sign_in(json!({"email": "Guest@example.com", "email_verified": "true"})).await.is_ok());
    assert!(fixture.sign_in(json!({"aud": ["tribune", "other"], "azp": "tribune"})).await.is_ok());
}

#[tokio::test]
async fn names_of_others_are_not_given_away() {
    let fixture = Fixture::new(&[]).await;
    let ann = User {
        name: UserId::new("ann@example.org").expect("a name"),
        password: Some("a hash".into()),
        login: None,
        groups: vec!["board".into()],
        created_at: jiff::Timestamp::UNIX_EPOCH,
    };
    fixture.users.add(&ann).await.expect("added");
    let other = fixture.sign_in(json!({})).await.expect("signed in");
    assert!(other.name.as_str().starts_with("user-") && other.groups.is_empty(), "{other:?}");
    let again = fixture.sign_in(json!({"email": "moved@example.org"})).await.expect("signed in");
    assert_eq!(again.name, other.name, "known by subject");
    for reserved in ["local", "admin"] {
        let named = json!({"sub": reserved, "email": reserved, "email_verified": true});
        assert!(fixture.sign_in(named).await.expect("signed in").name.as_str().starts_with("user-"), "{reserved}");
    }
    // An address that is not verified may be anybody's.
    let unproved = json!({"sub": "2", "email": "bob@example.org", "email_verified": false});
    assert!(fixture.sign_in(unproved).await.expect("signed in").name.as_str().starts_with("user-"));
}
