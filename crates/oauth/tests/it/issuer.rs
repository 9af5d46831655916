//! An issuer on loopback, its keys, and a clock that the test moves.

use std::future::IntoFuture as _;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{get, post};
use data_encoding::BASE64URL_NOPAD;
use jiff::Timestamp;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tribune_core::Clock;

pub fn base64(bytes: impl AsRef<[u8]>) -> String {
    BASE64URL_NOPAD.encode(bytes.as_ref())
}

pub struct ManualClock {
    began: Instant,
    passed: Mutex<Duration>,
}

impl ManualClock {
    /// Where the clock begins, in seconds.
    pub const START: i64 = 1_800_000_000;

    pub fn new() -> Arc<Self> {
        Arc::new(Self { began: Instant::now(), passed: Mutex::default() })
    }

    pub fn advance(&self, by: Duration) {
        *self.passed.lock().expect("the clock") += by;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        let start = Timestamp::from_second(Self::START).expect("a time");
        start + *self.passed.lock().expect("the clock")
    }

    fn monotonic(&self) -> Instant {
        self.began + *self.passed.lock().expect("the clock")
    }
}

pub struct Key {
    name: &'static str,
    pair: EcdsaKeyPair,
}

impl Key {
    pub fn new(name: &'static str) -> Self {
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("a key");
        Self { name, pair: EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).expect("a key") }
    }

    pub fn header(&self) -> Value {
        json!({"alg": "ES256", "kid": self.name})
    }

    pub fn public_point(&self) -> &[u8] {
        self.pair.public_key().as_ref()
    }

    pub fn sign(&self, header: &Value, claims: &Value) -> String {
        let signed = format!("{}.{}", base64(header.to_string()), base64(claims.to_string()));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).expect("signed");
        format!("{signed}.{}", base64(signature))
    }

    fn published(&self) -> Value {
        let (x, y) = self.public_point()[1..].split_at(32);
        json!({"kty": "EC", "crv": "P-256", "kid": self.name, "use": "sig", "x": base64(x), "y": base64(y)})
    }
}

pub struct Server {
    pub url: String,
    keys: Arc<Mutex<Vec<Value>>>,
    /// What the token endpoint answers with.
    id_token: Arc<Mutex<String>>,
    asked: Arc<AtomicUsize>,
    fails: Arc<AtomicBool>,
    hangs: Arc<AtomicBool>,
    /// Whether its metadata is where RFC 8414 says, and not where OpenID does.
    is_oauth_server: Arc<AtomicBool>,
}

impl Server {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let server = Self {
            url,
            keys: Arc::default(),
            id_token: Arc::default(),
            asked: Arc::default(),
            fails: Arc::default(),
            hangs: Arc::default(),
            is_oauth_server: Arc::default(),
        };
        let metadata = json!({
            "issuer": server.url,
            "jwks_uri": format!("{}/jwks", server.url),
            "authorization_endpoint": format!("{}/authorize", server.url),
            "token_endpoint": format!("{}/token", server.url),
        });
        let metadata = metadata.to_string();
        let id_token = server.id_token.clone();
        let token = move || {
            let answer = json!({"id_token": *id_token.lock().expect("a token")}).to_string();
            async move { answer }
        };
        let (keys, asked, fails) = (server.keys.clone(), server.asked.clone(), server.fails.clone());
        let jwks = move || {
            asked.fetch_add(1, Ordering::Relaxed);
            // Kinds of keys that nobody knows are left out.
            let keys: Vec<Value> = keys.lock().expect("keys").iter().cloned().chain([json!({"kty": 7})]).collect();
            async move { json!({"keys": keys}).to_string() }
        };
        let (elsewhere, hangs) = (server.is_oauth_server.clone(), server.hangs.clone());
        let answer = |is_oauth_address: bool| {
            let (fails, elsewhere, metadata) = (fails.clone(), elsewhere.clone(), metadata.clone());
            let hangs = hangs.clone();
            move || {
                let is_here = elsewhere.load(Ordering::Relaxed) == is_oauth_address;
                let status = match (is_here, fails.load(Ordering::Relaxed)) {
                    (false, _) => StatusCode::NOT_FOUND,
                    (true, true) => StatusCode::INTERNAL_SERVER_ERROR,
                    (true, false) => StatusCode::OK,
                };
                let (metadata, hangs) = (metadata.clone(), hangs.load(Ordering::Relaxed));
                async move {
                    if hangs {
                        std::future::pending::<()>().await;
                    }
                    (status, metadata)
                }
            }
        };
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(answer(false)))
            .route("/.well-known/oauth-authorization-server", get(answer(true)))
            .route("/jwks", get(jwks))
            .route("/token", post(token));
        tokio::spawn(axum::serve(listener, router).into_future());
        server
    }

    pub fn publish(&self, keys: &[&Key]) {
        *self.keys.lock().expect("keys") = keys.iter().map(|key| key.published()).collect();
    }

    pub fn give(&self, id_token: String) {
        *self.id_token.lock().expect("a token") = id_token;
    }

    /// How often the keys were fetched.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }

    pub fn publish_as_oauth_server(&self) {
        self.is_oauth_server.store(true, Ordering::Relaxed);
    }

    pub fn hang(&self) {
        self.hangs.store(true, Ordering::Relaxed);
    }

    pub fn fail(&self) {
        self.fails.store(true, Ordering::Relaxed);
    }
}
