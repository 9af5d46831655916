use tribune_core::ErrorKind;
use tribune_storage::{BrowserSession, Store, Token, User};

use crate::contract::grants::{code, grant};
use crate::fixtures::{time, user};

fn ann() -> User {
    User {
        name: user("ann"),
        password: Some("$argon2id$stands-for-a-hash".to_owned()),
        login: None,
        groups: vec!["board".to_owned(), "zoë's".to_owned()],
        created_at: time(1),
    }
}

fn ben() -> User {
    User {
        name: user("ben"),
        password: None,
        login: Some("https://id.test 4711".to_owned()),
        groups: Vec::new(),
        created_at: time(0),
    }
}

pub async fn user_is_found_by_name_and_login(store: &Store) {
    let users = store.users();
    users.add(&ben()).await.expect("kept");
    users.add(&ann()).await.expect("kept");
    assert_eq!(users.find(&user("ann")).await.expect("an answer"), Some(ann()));
    let by_login = users.find_login("https://id.test 4711").await.expect("an answer");
    assert_eq!(by_login, Some(ben()));
    assert_eq!(users.find(&user("Ann")).await.expect("an answer"), None);
    assert_eq!(users.list().await.expect("all"), [ann(), ben()]);
}

pub async fn duplicate_user_or_login_is_refused(store: &Store) {
    let users = store.users();
    users.add(&ben()).await.expect("kept");
    let named = |name: &str| User { name: user(name), login: None, ..ben() };
    for taken in [User { login: None, ..ben() }, User { name: user("eve"), ..ben() }, named("local"), named("admin")] {
        let error = users.add(&taken).await.expect_err("taken");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
    assert_eq!(users.list().await.expect("all"), [ben()]);
}

fn session(owner: &str, begun: i64, ended: i64) -> BrowserSession {
    BrowserSession {
        owner: user(owner),
        scopes: vec!["read".to_owned()],
        token: None,
        created_at: time(begun),
        expires_at: time(ended),
    }
}

/// A session, a grant and an API token of a user.
async fn give_access(store: &Store, name: &str) {
    let name = user(name);
    let hash = |kind: u8| [kind, name.as_str().as_bytes()[0]].repeat(16).try_into().expect("32 bytes");
    let sessions = store.browser_sessions();
    sessions.begin(hash(1), &session(name.as_str(), 0, 900)).await.expect("kept");
    let grant = grant(name.as_str(), &name);
    store.grants().begin(&grant, &code(hash(2))).await.expect("kept");
    let token = Token {
        id: name.to_string(),
        user: name.clone(),
        label: None,
        scopes: None,
        profile: None,
        created_at: time(0),
        expires_at: None,
        last_used: None,
        revoked_at: None,
    };
    store.tokens().add(&token, hash(3)).await.expect("kept");
}

async fn has_access(store: &Store, name: &str) -> [bool; 3] {
    let hash = |kind: u8| [kind, name.as_bytes()[0]].repeat(16).try_into().expect("32 bytes");
    [
        store.browser_sessions().find(hash(1), time(1)).await.expect("an answer").is_some(),
        store.grants().find(hash(2)).await.expect("an answer").is_some(),
        store.tokens().find(hash(3)).await.expect("an answer").is_some(),
    ]
}

pub async fn new_password_ends_access(store: &Store) {
    let users = store.users();
    users.add(&ann()).await.expect("kept");
    give_access(store, "ann").await;
    give_access(store, "ben").await;
    assert!(users.set_password(&user("ann"), "new".to_owned()).await.expect("an answer"));
    assert_eq!(has_access(store, "ann").await, [false; 3]);
    assert_eq!(has_access(store, "ben").await, [true; 3]);
    let kept = users.find(&user("ann")).await.expect("an answer").expect("there");
    assert_eq!(kept.password.as_deref(), Some("new"));
    assert!(!users.set_password(&user("ben"), "new".to_owned()).await.expect("an answer"));
    assert_eq!(has_access(store, "ben").await, [true; 3]);
}

pub async fn removed_user_has_no_access(store: &Store) {
    let users = store.users();
    users.add(&ann()).await.expect("kept");
    give_access(store, "ann").await;
    assert!(users.remove(&user("ann")).await.expect("an answer"));
    assert_eq!(has_access(store, "ann").await, [false; 3]);
    assert!(!users.remove(&user("ann")).await.expect("an answer"));
}

pub async fn sessions_end_and_expire(store: &Store) {
    let sessions = store.browser_sessions();
    let ann = session("ann", 0, 10);
    sessions.begin([1; 32], &ann).await.expect("kept");
    assert_eq!(sessions.find([1; 32], time(9)).await.expect("an answer"), Some(ann));
    assert_eq!(sessions.find([1; 32], time(10)).await.expect("an answer"), None);
    assert_eq!(sessions.find([2; 32], time(0)).await.expect("an answer"), None);
    sessions.begin([2; 32], &session("ben", 10, 20)).await.expect("kept");
    assert_eq!(sessions.find([1; 32], time(0)).await.expect("an answer"), None, "deleted with the next");
    sessions.end([2; 32]).await.expect("ended");
    assert_eq!(sessions.find([2; 32], time(11)).await.expect("an answer"), None);
}

pub async fn session_ends_with_its_token(store: &Store) {
    give_access(store, "ann").await;
    let sessions = store.browser_sessions();
    let opened = BrowserSession { token: Some("ann".to_owned()), ..session("ann", 0, 900) };
    sessions.begin([7; 32], &opened).await.expect("kept");
    assert_eq!(sessions.find([7; 32], time(1)).await.expect("an answer"), Some(opened));
    store.tokens().revoke("ann", time(1)).await.expect("an answer");
    assert_eq!(sessions.find([7; 32], time(1)).await.expect("an answer"), None);
}
