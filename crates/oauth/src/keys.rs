//! The signing keys of another issuer, and signatures made with them.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use data_encoding::BASE64URL_NOPAD;
use ring::signature::{self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Mutex;
use tribune_core::{Clock, Error, Result};
use url::Url;

use crate::fetch::Fetcher;
use crate::redirect::is_loopback;

/// Keys are fetched anew after this.
const KEPT: Duration = Duration::from_secs(3_600);
/// An unknown key id causes at most one fetch in this time.
const PAUSE: Duration = Duration::from_secs(60);
/// How long a token with a known key waits for newer keys.
const PATIENCE: Duration = Duration::from_secs(2);
const MAX_KEYS: usize = 100;

/// Addresses of an issuer, from its metadata.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Discovery {
    issuer: String,
    jwks_uri: Url,
    #[serde(default)]
    pub(crate) authorization_endpoint: Option<Url>,
    #[serde(default)]
    pub(crate) token_endpoint: Option<Url>,
    #[serde(default)]
    pub(crate) token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Key {
    kid: Option<String>,
    kty: String,
    alg: Option<String>,
    #[serde(rename = "use")]
    purpose: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

#[derive(Deserialize)]
struct KeySet {
    keys: Vec<Value>,
}

/// Another issuer, with its keys as they were last fetched.
pub(crate) struct Keys {
    pub(crate) issuer: String,
    pub(crate) fetcher: Fetcher,
    clock: Arc<dyn Clock>,
    known: RwLock<Option<Known>>,
    /// When the keys were last fetched; locked during a fetch.
    asking: Mutex<Option<Instant>>,
}

#[derive(Clone)]
struct Known {
    at: Instant,
    discovery: Arc<Discovery>,
    keys: Arc<[Key]>,
}

impl Keys {
    pub(crate) fn new(issuer: &str, clock: Arc<dyn Clock>) -> Result<Self> {
        let wrong = || {
            Error::invalid_argument(format!("the issuer {issuer:?} must be an https address, or http on this machine"))
        };
        let url = Url::parse(issuer).map_err(|_| wrong())?;
        if url.scheme() != "https" && !(url.scheme() == "http" && is_loopback(&url)) {
            return Err(wrong());
        }
        Ok(Self {
            issuer: issuer.to_owned(),
            fetcher: Fetcher::trusted()?,
            clock,
            known: RwLock::default(),
            asking: Mutex::default(),
        })
    }

    pub(crate) async fn discovery(&self) -> Result<Arc<Discovery>> {
        if let Some(known) = self.known() {
            return Ok(known.discovery);
        }
        self.ask(|_| false).await?;
        let known = self.known();
        known.map(|known| known.discovery).ok_or_else(|| self.unreachable())
    }

    /// The keys that fit a token's header. Asks the issuer for a key that is not known; an issuer that does not answer
    /// leaves the known keys in use.
    pub(crate) async fn fitting(&self, kid: Option<&str>, algorithm: &Algorithm) -> Result<Vec<Key>> {
        let fitting = |known: &Known| -> Vec<Key> {
            let keys = known.keys.iter().filter(|key| key.fits(kid, algorithm));
            keys.cloned().collect()
        };
        let known = self.known();
        let is_fresh = |known: &Known| self.clock.monotonic().saturating_duration_since(known.at) < KEPT;
        if let Some(known) = known.filter(is_fresh) {
            let keys = fitting(&known);
            if !keys.is_empty() {
                return Ok(keys);
            }
        }
        let ask = self.ask(|known| is_fresh(known) && !fitting(known).is_empty());
        // An issuer that hangs must not hold up everybody once a minute.
        let asked = match self.known().is_some_and(|known| !fitting(&known).is_empty()) {
            true => tokio::time::timeout(PATIENCE, ask).await.unwrap_or(Ok(())),
            false => ask.await,
        };
        match (self.known(), asked) {
            (Some(known), _) => Ok(fitting(&known)),
            (None, Err(error)) => Err(error),
            (None, Ok(())) => Err(self.unreachable()),
        }
    }

    /// Fetches the keys, at most once a minute, and not if `suffices` accepts those that a concurrent call fetched.
    async fn ask(&self, suffices: impl Fn(&Known) -> bool) -> Result<()> {
        let mut last = self.asking.lock().await;
        let now = self.clock.monotonic();
        let is_recent = last.is_some_and(|last| now.saturating_duration_since(last) < PAUSE);
        if is_recent || self.known().is_some_and(|known| suffices(&known)) {
            return Ok(());
        }
        *last = Some(now);
        let fetched = self.fetch().await.inspect_err(|error| {
            tracing::warn!(issuer = self.issuer, %error, "the keys of the issuer cannot be fetched");
        })?;
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Some(fetched);
        Ok(())
    }

    async fn fetch(&self) -> Result<Known> {
        let (address, metadata) = self.metadata().await?;
        let invalid = |error: &dyn std::fmt::Display| Error::unavailable(format!("{address} cannot be used: {error}"));
        let discovery: Discovery = serde_json::from_value(metadata).map_err(|error| invalid(&error))?;
        if discovery.issuer != self.issuer {
            return Err(invalid(&format!("its issuer is {:?}, not {:?}", discovery.issuer, self.issuer)));
        }
        let set: KeySet =
            serde_json::from_value(self.fetcher.json(&discovery.jwks_uri).await?).map_err(|error| invalid(&error))?;
        // Keys of kinds that are not known here are left out.
        let keys = set.keys.into_iter().take(MAX_KEYS);
        let keys = keys.filter_map(|key| serde_json::from_value(key).ok()).collect();
        Ok(Known { at: self.clock.monotonic(), discovery: Arc::new(discovery), keys })
    }

    /// The metadata, with its address: as OpenID providers publish it, or else as other issuers do (RFC 8414).
    async fn metadata(&self) -> Result<(Url, Value)> {
        let invalid = |error| Error::invalid_argument(format!("the issuer {:?} is no address: {error}", self.issuer));
        let issuer = Url::parse(&self.issuer).map_err(invalid)?;
        let path = issuer.path().trim_end_matches('/');
        let at = |path: &str| {
            let mut url = issuer.clone();
            url.set_path(path);
            url
        };
        let openid = at(&format!("{path}/.well-known/openid-configuration"));
        let failed = match self.fetcher.json(&openid).await {
            Ok(metadata) => return Ok((openid, metadata)),
            Err(error) => error,
        };
        let other = at(&format!("/.well-known/oauth-authorization-server{path}"));
        let metadata = self.fetcher.json(&other).await.map_err(|_| failed)?;
        Ok((other, metadata))
    }

    fn known(&self) -> Option<Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn unreachable(&self) -> Error {
        Error::unavailable(format!("the issuer {} does not answer; try again in a minute", self.issuer))
    }
}

/// A way to sign that is accepted: none works without a key pair.
pub(crate) struct Algorithm {
    name: &'static str,
    /// The type of key and its curve.
    key: (&'static str, Option<&'static str>),
    scheme: Scheme,
}

enum Scheme {
    Rsa(&'static RsaParameters),
    /// A point with two coordinates.
    Ecdsa(&'static dyn VerificationAlgorithm),
    Ed25519,
}

impl Algorithm {
    const fn rsa(name: &'static str, parameters: &'static RsaParameters) -> Self {
        Self { name, key: ("RSA", None), scheme: Scheme::Rsa(parameters) }
    }

    pub(crate) fn named(name: &str) -> Option<&'static Self> {
        ALGORITHMS.iter().find(|algorithm| algorithm.name == name)
    }
}

static ALGORITHMS: [Algorithm; 9] = [
    Algorithm::rsa("RS256", &signature::RSA_PKCS1_2048_8192_SHA256),
    Algorithm::rsa("RS384", &signature::RSA_PKCS1_2048_8192_SHA384),
    Algorithm::rsa("RS512", &signature::RSA_PKCS1_2048_8192_SHA512),
    Algorithm::rsa("PS256", &signature::RSA_PSS_2048_8192_SHA256),
    Algorithm::rsa("PS384", &signature::RSA_PSS_2048_8192_SHA384),
    Algorithm::rsa("PS512", &signature::RSA_PSS_2048_8192_SHA512),
    Algorithm { name: "ES256", key: ("EC", Some("P-256")), scheme: Scheme::Ecdsa(&signature::ECDSA_P256_SHA256_FIXED) },
    Algorithm { name: "ES384", key: ("EC", Some("P-384")), scheme: Scheme::Ecdsa(&signature::ECDSA_P384_SHA384_FIXED) },
    Algorithm { name: "EdDSA", key: ("OKP", Some("Ed25519")), scheme: Scheme::Ed25519 },
];

impl Key {
    fn fits(&self, kid: Option<&str>, algorithm: &Algorithm) -> bool {
        let (kty, curve) = algorithm.key;
        self.kty == kty
            && curve.is_none_or(|curve| self.crv.as_deref() == Some(curve))
            && self.alg.as_deref().is_none_or(|alg| alg == algorithm.name)
            && self.purpose.as_deref().is_none_or(|purpose| purpose == "sig")
            && kid.is_none_or(|kid| self.kid.as_deref() == Some(kid))
    }

    pub(crate) fn verifies(&self, algorithm: &Algorithm, signed: &[u8], signature: &[u8]) -> bool {
        self.verify(algorithm, signed, signature).is_some()
    }

    fn verify(&self, algorithm: &Algorithm, signed: &[u8], signature: &[u8]) -> Option<()> {
        let part = |part: &Option<String>| BASE64URL_NOPAD.decode(part.as_deref()?.as_bytes()).ok();
        let verified = match algorithm.scheme {
            Scheme::Rsa(parameters) => {
                let key = RsaPublicKeyComponents { n: part(&self.n)?, e: part(&self.e)? };
                key.verify(parameters, signed, signature)
            }
            Scheme::Ecdsa(verifier) => {
                let point = [&[4], part(&self.x)?.as_slice(), part(&self.y)?.as_slice()].concat();
                UnparsedPublicKey::new(verifier, point).verify(signed, signature)
            }
            Scheme::Ed25519 => UnparsedPublicKey::new(&signature::ED25519, part(&self.x)?).verify(signed, signature),
        };
        verified.ok()
    }
}
