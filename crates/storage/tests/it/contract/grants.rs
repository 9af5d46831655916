use futures::future::join_all;
use jiff::Timestamp;
use tribune_core::UserId;
use tribune_storage::{Grant, GrantSecret, SecretExchange, SecretKind, Store};

use crate::fixtures::{time, user};

pub fn grant(id: &str, user: &UserId) -> Grant {
    Grant {
        id: id.to_owned(),
        user: user.clone(),
        client: "https://host.test/client.json".to_owned(),
        client_name: "A host ☕".to_owned(),
        scopes: vec!["read".to_owned(), "tasks".to_owned()],
        profile: Some("research".to_owned()),
        created_at: time(0),
        expires_at: time(100),
        used_at: None,
        revoked_at: None,
    }
}

pub fn code(sha256: [u8; 32]) -> GrantSecret {
    let proof = Some("{}".to_owned());
    GrantSecret { sha256, kind: SecretKind::Code, proof, scopes: None, expires_at: time(60), used_at: None }
}

fn refresh(sha256: [u8; 32]) -> GrantSecret {
    let scopes = Some(vec!["read".to_owned()]);
    GrantSecret { kind: SecretKind::Refresh, proof: None, scopes, expires_at: time(500), ..code(sha256) }
}

/// A use at a second; a secret used before may be used again until `grace` seconds later.
fn exchange(used: [u8; 32], at: i64, grace: Option<i64>, new: [u8; 32]) -> SecretExchange {
    SecretExchange {
        used,
        now: time(at),
        reusable_from: grace.map_or(Timestamp::MAX, |grace| time(at - grace)),
        most_uses: 3,
        new: vec![refresh(new)],
        expires_at: time(500),
    }
}

pub async fn grant_is_found_by_its_secrets(store: &Store) {
    let grants = store.grants();
    let first = grant("g1", &user("ann"));
    grants.begin(&first, &code([1; 32])).await.expect("kept");
    let found = grants.find([1; 32]).await.expect("an answer");
    assert_eq!(found, Some((first.clone(), code([1; 32]))));
    assert_eq!(grants.find([9; 32]).await.expect("an answer"), None);
    assert!(grants.exchange(exchange([1; 32], 5, None, [2; 32])).await.expect("an answer"));
    let (extended, secret) = grants.find([2; 32]).await.expect("an answer").expect("there");
    assert_eq!(secret, refresh([2; 32]));
    assert_eq!(extended, Grant { expires_at: time(500), used_at: Some(time(5)), ..first });
    grants.end_secret([2; 32]).await.expect("ended");
    assert_eq!(grants.find([2; 32]).await.expect("an answer"), None);
}

pub async fn code_is_used_once_by_many(store: &Store) {
    let grants = store.grants();
    grants.begin(&grant("g1", &user("ann")), &code([1; 32])).await.expect("kept");
    let tries = (10..20).map(|new| grants.exchange(exchange([1; 32], 5, None, [new; 32])));
    let made = join_all(tries).await;
    let made = made.into_iter().filter(|made| *made.as_ref().expect("an answer"));
    assert_eq!(made.count(), 1);
}

pub async fn refresh_token_has_a_grace(store: &Store) {
    let grants = store.grants();
    grants.begin(&grant("g1", &user("ann")), &refresh([1; 32])).await.expect("kept");
    let use_at = async |at, new| {
        let exchange = exchange([1; 32], at, Some(30), new);
        grants.exchange(exchange).await.expect("an answer")
    };
    assert!(use_at(10, [2; 32]).await);
    assert!(use_at(40, [3; 32]).await, "within the grace");
    assert!(!use_at(41, [4; 32]).await, "the grace counts from the first use");
    assert!(grants.find([3; 32]).await.expect("an answer").is_some());
    assert!(grants.find([4; 32]).await.expect("an answer").is_none());
    // Within the grace too, only a few come of one.
    for (new, is_made) in [(5, true), (6, true), (7, true), (8, false)] {
        assert_eq!(grants.exchange(exchange([2; 32], 50, Some(30), [new; 32])).await.expect("an answer"), is_made);
    }
}

pub async fn revoked_grant_gives_nothing(store: &Store) {
    let grants = store.grants();
    grants.begin(&grant("g1", &user("ann")), &refresh([1; 32])).await.expect("kept");
    assert!(grants.revoke("g1", time(7)).await.expect("an answer"));
    assert!(grants.revoke("g1", time(9)).await.expect("an answer"));
    assert!(!grants.revoke("g2", time(9)).await.expect("an answer"));
    assert!(grants.list(&user("ann"), time(8)).await.expect("an answer").is_empty());
    let (found, _) = grants.find([1; 32]).await.expect("an answer").expect("there");
    assert_eq!(found.revoked_at, Some(time(7)));
    assert!(!grants.exchange(exchange([1; 32], 8, Some(30), [2; 32])).await.expect("an answer"));
}

pub async fn expired_grants_are_deleted(store: &Store) {
    let grants = store.grants();
    grants.begin(&grant("g1", &user("ann")), &code([1; 32])).await.expect("kept");
    assert_eq!(grants.list(&user("ann"), time(99)).await.expect("hers").len(), 1);
    assert!(grants.list(&user("ann"), time(100)).await.expect("hers").is_empty());
    assert!(grants.list(&user("bob"), time(99)).await.expect("his").is_empty());
    let later = Grant { created_at: time(100), expires_at: time(200), ..grant("g2", &user("ann")) };
    grants.begin(&later, &code([2; 32])).await.expect("kept");
    assert!(grants.find([1; 32]).await.expect("an answer").is_none());
}

pub async fn registrations_are_bounded(store: &Store) {
    let grants = store.grants();
    for (second, id) in [(1, "a"), (2, "b"), (3, "a"), (4, "c")] {
        grants.register(id, "{}", time(second), 2).await.expect("kept");
    }
    assert_eq!(grants.registered("a").await.expect("an answer").as_deref(), Some("{}"));
    assert_eq!(grants.registered("b").await.expect("an answer"), None, "not used for the longest time");
    assert!(grants.registered("c").await.expect("an answer").is_some());
}

pub async fn programs_in_use_stay_registered(store: &Store) {
    let grants = store.grants();
    for id in ["granted", "asked"] {
        grants.register(id, "{}", time(1), 2).await.expect("kept");
    }
    let begun = |id: &str, created_at| Grant { client: id.to_owned(), created_at, ..grant(id, &user("ann")) };
    grants.begin(&begun("granted", time(2)), &code([1; 32])).await.expect("kept");
    grants.begin(&begun("asked", time(50)), &code([2; 32])).await.expect("kept");
    for second in 10..40 {
        grants.register(&format!("flood{second}"), "{}", time(second), 2).await.expect("kept");
    }
    for id in ["granted", "asked", "flood38", "flood39"] {
        assert!(grants.registered(id).await.expect("an answer").is_some(), "{id}");
    }
    // Its use counts from the last grant, also when that has ended.
    let later = Grant { expires_at: time(300), ..begun("other", time(200)) };
    grants.begin(&later, &code([3; 32])).await.expect("kept");
    grants.register("flood60", "{}", time(60), 2).await.expect("kept");
    let is_there = async |id| grants.registered(id).await.expect("an answer").is_some();
    assert!(is_there("asked").await && is_there("flood60").await && !is_there("granted").await);
}
