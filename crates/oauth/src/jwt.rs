//! Tokens that another issuer signed.

use std::sync::Arc;

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use serde::Deserialize;
use serde_json::Value;
use tribune_core::{Clock, Result, Scope, Scopes, UserId};

use crate::keys::{Algorithm, Keys};
use crate::{Resources, sha256};

/// How far the issuer's clock may be off, in seconds.
const LEEWAY: f64 = 5.0;
const MAX_BYTES: usize = 16 * 1024;

/// Checks tokens of one issuer that are for this server.
pub struct Verifier {
    keys: Keys,
    audience: Resources,
    clock: Arc<dyn Clock>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    /// Extensions that must be understood: none are.
    crit: Option<Value>,
}

/// What a token says. Issuers differ in how they write numbers, lists and truth, so all usual ways are read.
pub(crate) struct Claims {
    iss: String,
    pub(crate) sub: String,
    aud: Vec<String>,
    /// The program that a token was issued to.
    pub(crate) azp: Option<String>,
    exp: f64,
    nbf: Option<f64>,
    pub(crate) nonce: Option<String>,
    scopes: Scopes,
    pub(crate) email: Option<String>,
    pub(crate) email_verified: bool,
    pub(crate) groups: Option<Vec<String>>,
}

impl Claims {
    fn read(token: &Value) -> Option<Self> {
        let claim = |name: &str| token.get(name).filter(|value| !value.is_null());
        let one = |name: &str| claim(name).and_then(text);
        let scopes: Vec<String> = ["scope", "scp"].into_iter().filter_map(claim).flat_map(texts).collect();
        Some(Self {
            iss: one("iss")?,
            sub: one("sub")?,
            aud: texts(claim("aud")?),
            azp: one("azp"),
            exp: seconds(claim("exp")?)?,
            nbf: claim("nbf").map(|from| seconds(from).ok_or(())).transpose().ok()?,
            nonce: one("nonce"),
            scopes: scopes.iter().flat_map(|names| names.split(' ')).filter_map(scope).collect(),
            email: one("email"),
            email_verified: one("email_verified").as_deref() == Some("true"),
            groups: claim("groups").map(texts),
        })
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// One text or a list; what is no text in a list is left out.
fn texts(value: &Value) -> Vec<String> {
    let all = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    all.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn seconds(value: &Value) -> Option<f64> {
    let number = value.as_f64().or_else(|| value.as_str()?.parse().ok());
    number.filter(|number| number.is_finite())
}

/// A scope by its name, or by an address that ends in it (`api://tribune/read`). Another service's `admin` is not ours.
fn scope(name: &str) -> Option<Scope> {
    let of_address = || Scope::parse(name.rsplit_once('/')?.1).filter(|scope| Scopes::USUAL.contains(*scope));
    Scope::parse(name).or_else(of_address)
}

impl Verifier {
    /// A token must be for one of `audience`.
    pub fn new(issuer: &str, audience: Resources, clock: Arc<dyn Clock>) -> Result<Self> {
        Ok(Self { keys: Keys::new(issuer, clock.clone())?, audience, clock })
    }

    /// Whether this could be a token of an issuer: three parts.
    pub fn could_be(token: &str) -> bool {
        token.bytes().filter(|byte| *byte == b'.').count() == 2
    }

    /// Whether a token of this issuer has expired; its signature is not checked.
    pub fn has_expired(&self, token: &str) -> bool {
        let now = self.clock.now().as_millisecond() as f64 / 1_000.0;
        split(token).is_some_and(|(.., claims)| claims.iss == self.keys.issuer && claims.exp <= now)
    }

    /// The user of a token with their groups, what it allows, and the one profile that it opens; `None` if it is not
    /// valid.
    pub async fn authenticate(&self, token: &str) -> Result<Option<(UserId, Arc<[String]>, Scopes, Option<String>)>> {
        let is_ours = |named: &str| self.audience.contains_key(named);
        let Some(claims) = verify(&self.keys, token, is_ours, &*self.clock).await? else {
            return Ok(None);
        };
        let profiles: Vec<_> = claims.aud.iter().filter_map(|named| self.audience.get(named)).collect();
        let opens_all = profiles.iter().any(|profile| profile.is_none());
        let profile = profiles.into_iter().flatten().next().filter(|_| !opens_all);
        let groups = claims.groups.iter().flatten().cloned().collect();
        Ok(Some((user(&claims), groups, claims.scopes, profile.cloned())))
    }
}

/// The claims of a token of this issuer for an audience that `is_ours`, and that is valid now.
pub(crate) async fn verify(
    keys: &Keys,
    token: &str,
    is_ours: impl Fn(&str) -> bool,
    clock: &dyn Clock,
) -> Result<Option<Claims>> {
    let Some((header, signed, signature, claims)) = split(token) else {
        return Ok(None);
    };
    let Some(algorithm) = Algorithm::named(&header.alg).filter(|_| header.crit.is_none()) else {
        return Ok(None);
    };
    // Checks that need no keys come first.
    let now = clock.now().as_millisecond() as f64 / 1_000.0;
    let is_now = claims.exp > now - LEEWAY && claims.nbf.is_none_or(|from| from <= now + LEEWAY);
    let is_for_us = claims.aud.iter().any(|named| is_ours(named));
    if claims.iss != keys.issuer || !is_now || !is_for_us || claims.sub.is_empty() {
        return Ok(None);
    }
    let fitting = keys.fitting(header.kid.as_deref(), algorithm).await?;
    let is_signed = fitting.iter().any(|key| key.verifies(algorithm, signed, &signature));
    Ok(is_signed.then_some(claims))
}

fn split(token: &str) -> Option<(Header, &[u8], Vec<u8>, Claims)> {
    if token.len() > MAX_BYTES {
        return None;
    }
    let (signed, signature) = token.rsplit_once('.')?;
    let (header, claims) = signed.split_once('.')?;
    let decode = |part: &str| BASE64URL_NOPAD.decode(part.as_bytes()).ok();
    let header = serde_json::from_slice(&decode(header)?).ok()?;
    let claims = Claims::read(&serde_json::from_slice(&decode(claims)?).ok()?)?;
    Some((header, signed.as_bytes(), decode(signature)?, claims))
}

/// The subject as a user name; a digest if it is no valid name, a reserved one, or one that looks like the digest of another
/// subject.
fn user(claims: &Claims) -> UserId {
    match UserId::new(&claims.sub) {
        Ok(user) if !user.is_reserved() && !user.as_str().starts_with(DIGEST_PREFIX) => user,
        _ => digest_name(&claims.sub),
    }
}

const DIGEST_PREFIX: &str = "user-";

/// A user name for a subject that is no valid name.
pub(crate) fn digest_name(subject: &str) -> UserId {
    let digest = HEXLOWER.encode(&sha256(subject)[..12]);
    // Letters and digits always fit.
    UserId::new(&format!("{DIGEST_PREFIX}{digest}")).unwrap_or_else(|_| UserId::local())
}
