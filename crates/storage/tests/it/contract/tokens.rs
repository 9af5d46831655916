use tribune_core::ErrorKind;
use tribune_storage::Store;
use tribune_storage::Token;

use crate::fixtures::{time, user};

fn token(id: &str, made: i64) -> Token {
    Token {
        id: id.to_owned(),
        user: user("ann"),
        label: Some("laptop ☕".to_owned()),
        scopes: Some(vec!["read".to_owned(), "tasks".to_owned()]),
        profile: Some("research".to_owned()),
        created_at: time(made),
        expires_at: Some(time(1_000)),
        last_used: None,
        revoked_at: None,
    }
}

pub async fn token_is_found_by_hash(store: &Store) {
    let tokens = store.tokens();
    let plain = Token { label: None, scopes: None, profile: None, expires_at: None, ..token("t2", 1) };
    tokens.add(&token("t1", 0), [1; 32]).await.expect("kept");
    tokens.add(&plain, [0xab; 32]).await.expect("kept");
    assert_eq!(tokens.find([1; 32]).await.expect("an answer"), Some(token("t1", 0)));
    assert_eq!(tokens.find([0xab; 32]).await.expect("an answer"), Some(plain));
    assert_eq!(tokens.find([2; 32]).await.expect("an answer"), None);
}

pub async fn duplicate_token_id_or_hash_is_refused(store: &Store) {
    let tokens = store.tokens();
    tokens.add(&token("t1", 0), [1; 32]).await.expect("kept");
    for (id, hash) in [("t1", [2; 32]), ("t2", [1; 32])] {
        let error = tokens.add(&token(id, 0), hash).await.expect_err("it is there");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
    let long = "x".repeat(513);
    let error = tokens.add(&token(&long, 0), [3; 32]).await.expect_err("too long");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(tokens.list().await.expect("all").len(), 1);
}

pub async fn tokens_are_listed_by_creation(store: &Store) {
    let tokens = store.tokens();
    for (number, id) in (0..).zip(["c", "a", "b"]) {
        tokens.add(&token(id, i64::from(number)), [number; 32]).await.expect("kept");
    }
    let ids: Vec<_> = tokens.list().await.expect("all").into_iter().map(|token| token.id).collect();
    assert_eq!(ids, ["c", "a", "b"]);
}

pub async fn revoking_twice_keeps_the_first_time(store: &Store) {
    let tokens = store.tokens();
    tokens.add(&token("t1", 0), [1; 32]).await.expect("kept");
    tokens.add(&token("t2", 0), [2; 32]).await.expect("kept");
    let revoked = Token { revoked_at: Some(time(5)), ..token("t1", 0) };
    assert_eq!(tokens.revoke("t1", time(5)).await.expect("an answer"), Some(revoked.clone()));
    assert_eq!(tokens.revoke("t1", time(9)).await.expect("an answer"), Some(revoked.clone()));
    assert_eq!(tokens.find([1; 32]).await.expect("an answer"), Some(revoked));
    assert_eq!(tokens.find([2; 32]).await.expect("an answer"), Some(token("t2", 0)));
    assert_eq!(tokens.revoke("t3", time(5)).await.expect("an answer"), None);
}

pub async fn an_earlier_use_changes_nothing(store: &Store) {
    let tokens = store.tokens();
    tokens.add(&token("t1", 0), [1; 32]).await.expect("kept");
    tokens.record_use("nobody's", time(1)).await.expect("nothing to note");
    for (used, known) in [(5, 5), (3, 5), (8, 8)] {
        tokens.record_use("t1", time(used)).await.expect("noted");
        let found = tokens.find([1; 32]).await.expect("an answer").expect("the token");
        assert_eq!(found.last_used, Some(time(known)));
    }
}
