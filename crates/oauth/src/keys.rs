//! The signing keys of another issuer, and signatures made with them.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use data_encoding::BASE64URL_NOPAD;
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use serde::Deserialize;
use tokio::sync::Mutex;
use tribune_core::{Clock, Error, Result};
use url::Url;

use crate::fetch::Fetcher;
use crate::redirect::is_loopback;

/// Keys are fetched anew after this.
const KEPT: Duration = Duration::from_secs(3_600);
/// And no more often than this, whatever key a token names.
const PAUSE: Duration = Duration::from_secs(60);
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
    keys: Vec<serde_json::Value>,
}

/// Another issuer, with its keys as they were last fetched.
pub(crate) struct Keys {
    pub(crate) issuer: String,
    pub(crate) fetcher: Fetcher,
    clock: Arc<dyn Clock>,
    known: RwLock<Option<Known>>,
    /// When keys were last asked for; held while they are.
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
    pub(crate) async fn fitting(&self, kid: Option<&str>, algorithm: Algorithm) -> Result<Vec<Key>> {
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
        let asked = self.ask(|known| is_fresh(known) && !fitting(known).is_empty()).await;
        match (self.known(), asked) {
            (Some(known), _) => Ok(fitting(&known)),
            (None, Err(error)) => Err(error),
            (None, Ok(())) => Err(self.unreachable()),
        }
    }

    /// Fetches the keys, unless somebody else just did and `suffices` says that this is enough.
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
        let trimmed = self.issuer.trim_end_matches('/');
        let address = format!("{trimmed}/.well-known/openid-configuration");
        let invalid = |error: &dyn std::fmt::Display| Error::unavailable(format!("{address} cannot be used: {error}"));
        let url = Url::parse(&address).map_err(|error| invalid(&error))?;
        let discovery: Discovery =
            serde_json::from_value(self.fetcher.json(&url).await?).map_err(|error| invalid(&error))?;
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

    fn known(&self) -> Option<Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn unreachable(&self) -> Error {
        Error::unavailable(format!("the issuer {} does not answer; try again in a minute", self.issuer))
    }
}

/// The signatures that are accepted: none without a key pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Algorithm {
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    Es256,
    Es384,
    EdDsa,
}

impl Algorithm {
    const NAMES: [(&'static str, Self); 9] = [
        ("RS256", Self::Rs256),
        ("RS384", Self::Rs384),
        ("RS512", Self::Rs512),
        ("PS256", Self::Ps256),
        ("PS384", Self::Ps384),
        ("PS512", Self::Ps512),
        ("ES256", Self::Es256),
        ("ES384", Self::Es384),
        ("EdDSA", Self::EdDsa),
    ];

    pub(crate) fn named(name: &str) -> Option<Self> {
        let known = Self::NAMES.iter().find(|(known, _)| *known == name);
        known.map(|(_, algorithm)| *algorithm)
    }

    fn name(self) -> &'static str {
        let known = Self::NAMES.iter().find(|(_, algorithm)| *algorithm == self);
        known.map_or("", |(name, _)| name)
    }

    /// The type of key and its curve.
    const fn family(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Es256 => ("EC", Some("P-256")),
            Self::Es384 => ("EC", Some("P-384")),
            Self::EdDsa => ("OKP", Some("Ed25519")),
            _ => ("RSA", None),
        }
    }
}

impl Key {
    fn fits(&self, kid: Option<&str>, algorithm: Algorithm) -> bool {
        let (kty, curve) = algorithm.family();
        self.kty == kty
            && curve.is_none_or(|curve| self.crv.as_deref() == Some(curve))
            && self.alg.as_deref().is_none_or(|alg| alg == algorithm.name())
            && self.purpose.as_deref().is_none_or(|purpose| purpose == "sig")
            && kid.is_none_or(|kid| self.kid.as_deref() == Some(kid))
    }

    pub(crate) fn verifies(&self, algorithm: Algorithm, signed: &[u8], signature: &[u8]) -> bool {
        let part = |part: &Option<String>| BASE64URL_NOPAD.decode(part.as_deref()?.as_bytes()).ok();
        let rsa = |parameters: &signature::RsaParameters| {
            let (Some(n), Some(e)) = (part(&self.n), part(&self.e)) else {
                return false;
            };
            RsaPublicKeyComponents { n, e }.verify(parameters, signed, signature).is_ok()
        };
        let curve = |verifier: &'static dyn signature::VerificationAlgorithm| {
            let (Some(x), Some(y)) = (part(&self.x), part(&self.y)) else {
                return false;
            };
            let point = [&[4], x.as_slice(), y.as_slice()].concat();
            UnparsedPublicKey::new(verifier, point).verify(signed, signature).is_ok()
        };
        match algorithm {
            Algorithm::Rs256 => rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
            Algorithm::Rs384 => rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
            Algorithm::Rs512 => rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
            Algorithm::Ps256 => rsa(&signature::RSA_PSS_2048_8192_SHA256),
            Algorithm::Ps384 => rsa(&signature::RSA_PSS_2048_8192_SHA384),
            Algorithm::Ps512 => rsa(&signature::RSA_PSS_2048_8192_SHA512),
            Algorithm::Es256 => curve(&signature::ECDSA_P256_SHA256_FIXED),
            Algorithm::Es384 => curve(&signature::ECDSA_P384_SHA384_FIXED),
            Algorithm::EdDsa => part(&self.x).is_some_and(|point| {
                UnparsedPublicKey::new(&signature::ED25519, point).verify(signed, signature).is_ok()
            }),
        }
    }
}
