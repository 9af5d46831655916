//! Tokens that another issuer signed.

use std::sync::Arc;

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use serde::Deserialize;
use serde_json::Value;
use tribune_core::{Clock, Result, Scopes, UserId};

use crate::keys::{Algorithm, Keys};
use crate::sha256;

/// How far the issuer's clock may be off, in seconds.
const LEEWAY: f64 = 5.0;
const MAX_BYTES: usize = 16 * 1024;

/// Checks tokens of one issuer that are for this server.
pub struct Verifier {
    keys: Keys,
    audience: Vec<String>,
    clock: Arc<dyn Clock>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    /// Extensions that must be understood: none are.
    crit: Option<Value>,
}

#[derive(Deserialize)]
pub(crate) struct Claims {
    iss: String,
    pub(crate) sub: String,
    aud: OneOrMany,
    exp: f64,
    nbf: Option<f64>,
    pub(crate) nonce: Option<String>,
    scope: Option<String>,
    scp: Option<OneOrMany>,
    pub(crate) email: Option<String>,
    pub(crate) email_verified: Option<bool>,
    pub(crate) groups: Option<OneOrMany>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        let all = match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        };
        all.iter().map(String::as_str)
    }
}

impl Claims {
    fn scopes(&self) -> Scopes {
        let listed = self.scp.iter().flat_map(OneOrMany::iter);
        let named = self.scope.as_deref().into_iter().chain(listed);
        Scopes::named(named.flat_map(|names| names.split(' ')))
    }
}

impl Verifier {
    /// A token must be for one of `audience`.
    pub fn new(issuer: &str, audience: Vec<String>, clock: Arc<dyn Clock>) -> Result<Self> {
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

    /// The user of a token with their groups, and what it allows; `None` if it is not valid.
    pub async fn authenticate(&self, token: &str) -> Result<Option<(UserId, Arc<[String]>, Scopes)>> {
        let audience: Vec<&str> = self.audience.iter().map(String::as_str).collect();
        let claims = verify(&self.keys, token, &audience, &*self.clock).await?;
        let groups = |claims: &Claims| claims.groups.iter().flat_map(OneOrMany::iter).map(str::to_owned).collect();
        Ok(claims.map(|claims| (user(&claims), groups(&claims), claims.scopes())))
    }
}

/// The claims of a token of this issuer for one of `audience` that is valid now.
pub(crate) async fn verify(keys: &Keys, token: &str, audience: &[&str], clock: &dyn Clock) -> Result<Option<Claims>> {
    let Some((header, signed, signature, claims)) = split(token) else {
        return Ok(None);
    };
    let Some(algorithm) = Algorithm::named(&header.alg).filter(|_| header.crit.is_none()) else {
        return Ok(None);
    };
    // Checks that need no keys come first.
    let now = clock.now().as_millisecond() as f64 / 1_000.0;
    let is_now = claims.exp > now - LEEWAY && claims.nbf.is_none_or(|from| from <= now + LEEWAY);
    let is_for_us = claims.aud.iter().any(|named| audience.contains(&named));
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
    let claims = serde_json::from_slice(&decode(claims)?).ok()?;
    Some((header, signed.as_bytes(), decode(signature)?, claims))
}

/// The subject as a user name; a digest if it is no valid name, or a reserved one.
fn user(claims: &Claims) -> UserId {
    let is_ours = |user: &UserId| *user == UserId::local() || *user == UserId::admin();
    match UserId::new(&claims.sub) {
        Ok(user) if !is_ours(&user) => user,
        _ => digest_name(&claims.sub),
    }
}

/// A user name for a subject that is no valid name.
pub(crate) fn digest_name(subject: &str) -> UserId {
    let digest = HEXLOWER.encode(&sha256(subject)[..12]);
    // Letters and digits always fit.
    UserId::new(&format!("user-{digest}")).unwrap_or_else(|_| UserId::local())
}
