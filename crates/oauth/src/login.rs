//! People who sign in at an OpenID provider.

use std::sync::Arc;

use serde_json::Value;
use tribune_core::{Clock, Error, ErrorKind, Result, Scope, UserId};
use tribune_storage::{User, Users};
use url::Url;

use crate::fetch::send;
use crate::jwt::{Claims, digest_name, verify};
use crate::keys::Keys;
use crate::new_secret;
use crate::secret::challenge;

const MAX_GROUPS: usize = 200;

pub struct Provider {
    keys: Keys,
    client_id: String,
    client_secret: String,
    /// Addresses (`ann@example.org`) and domains (`@example.org`) that may sign in; empty for all.
    allow: Vec<String>,
    clock: Arc<dyn Clock>,
}

/// A sign-in that has begun; only the browser that began it may end it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Pending {
    pub state: String,
    nonce: String,
    verifier: String,
    /// The path to go on to.
    pub back: String,
}

impl Provider {
    pub fn new(
        issuer: &str,
        client_id: String,
        client_secret: String,
        allow: Vec<String>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        Ok(Self { keys: Keys::new(issuer, clock.clone())?, client_id, client_secret, allow, clock })
    }

    /// The provider's own name for itself, an address.
    pub fn issuer(&self) -> &str {
        &self.keys.issuer
    }

    /// The provider's host, for the person who signs in.
    pub fn host(&self) -> String {
        let url = Url::parse(&self.keys.issuer).ok();
        url.and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
    }

    /// Where to send the browser, and what it must bring back.
    pub async fn begin(&self, callback: &str, back: &str) -> Result<(String, Pending)> {
        let discovery = self.keys.discovery().await?;
        let endpoint = discovery.authorization_endpoint.clone();
        let mut url = endpoint.ok_or_else(|| self.misses("authorization_endpoint"))?;
        let pending =
            Pending { state: new_secret(""), nonce: new_secret(""), verifier: new_secret(""), back: back.to_owned() };
        url.query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client_id)
            .append_pair("redirect_uri", callback)
            .append_pair("scope", "openid profile email")
            .append_pair("state", &pending.state)
            .append_pair("nonce", &pending.nonce)
            .append_pair("code_challenge", &challenge(&pending.verifier))
            .append_pair("code_challenge_method", "S256");
        Ok((url.into(), pending))
    }

    /// The user who signed in, who becomes one the first time.
    pub async fn finish(&self, code: &str, pending: &Pending, callback: &str, users: &Users) -> Result<UserId> {
        let token = self.redeem(code, pending, callback).await?;
        let claims = verify(&self.keys, &token, |audience| audience == self.client_id, &*self.clock).await?;
        // A token for several may be issued to another program.
        let is_for_us = |claims: &Claims| claims.azp.as_ref().is_none_or(|program| *program == self.client_id);
        let claims = claims.filter(|claims| claims.nonce.as_deref() == Some(&*pending.nonce) && is_for_us(claims));
        let claims = claims
            .ok_or_else(|| Error::forbidden(format!("{} answered with a token that is not valid here", self.host())))?;
        self.check_allowed(&claims)?;
        self.known_or_new(&claims, users).await
    }

    async fn redeem(&self, code: &str, pending: &Pending, callback: &str) -> Result<String> {
        let discovery = self.keys.discovery().await?;
        let endpoint = discovery.token_endpoint.as_ref();
        let endpoint = endpoint.ok_or_else(|| self.misses("token_endpoint"))?;
        let methods = discovery.token_endpoint_auth_methods_supported.as_ref();
        // What a provider supports unless it says something else.
        let takes_basic = methods.is_none_or(|methods| methods.iter().any(|name| name == "client_secret_basic"));
        let mut fields = vec![
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", callback),
            ("code_verifier", &pending.verifier),
        ];
        if !takes_basic {
            fields.extend([("client_id", self.client_id.as_str()), ("client_secret", &self.client_secret)]);
        }
        let mut request = self.keys.fetcher.post(endpoint);
        if takes_basic {
            let encoded = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
            request = request.basic_auth(encoded(&self.client_id), Some(encoded(&self.client_secret)));
        }
        let request = request
            .header("content-type", "application/x-www-form-urlencoded")
            .body(url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish());
        let answer = send(request, endpoint).await?;
        let token = answer.get("id_token").and_then(Value::as_str);
        token.map(str::to_owned).ok_or_else(|| self.misses("id_token"))
    }

    fn check_allowed(&self, claims: &Claims) -> Result<()> {
        if self.allow.is_empty() {
            return Ok(());
        }
        let email = claims.email.as_deref().filter(|_| claims.email_verified).map(str::to_ascii_lowercase);
        let fits = |allowed: &String| {
            let allowed = allowed.to_ascii_lowercase();
            email.as_ref().is_some_and(|email| match allowed.starts_with('@') {
                true => email.ends_with(&allowed),
                false => *email == allowed,
            })
        };
        if self.allow.iter().any(fits) {
            return Ok(());
        }
        Err(Error::forbidden(
            "This account may not sign in here: its address is not verified, or not among those that the operator allows",
        ))
    }

    async fn known_or_new(&self, claims: &Claims, users: &Users) -> Result<UserId> {
        let login = format!("{} {}", self.keys.issuer, claims.sub);
        let groups = claims.groups.as_deref().map(groups);
        if let Some(user) = users.find_login(&login).await? {
            // Who has left a group there has left it here; what an operator gave stays.
            let given = user.groups.iter().filter(|group| Scope::parse(group).is_some());
            let groups = groups.map(|groups| groups.into_iter().chain(given.cloned()).collect::<Vec<_>>());
            if let Some(groups) = groups.filter(|groups| *groups != user.groups) {
                users.set_groups(&user.name, &groups).await?;
            }
            return Ok(user.name);
        }
        // Other names can be chosen freely at some providers, also those of people here.
        let verified = claims.email.as_deref().filter(|_| claims.email_verified);
        let wanted = verified.and_then(|name| UserId::new(name).ok());
        let mut user = User {
            name: UserId::local(),
            password: None,
            login: Some(login.clone()),
            groups: groups.unwrap_or_default(),
            created_at: self.clock.now(),
        };
        // The name of an existing user is not given to another person.
        for name in wanted.into_iter().chain([digest_name(&login)]) {
            user.name = name;
            match users.add(&user).await {
                Ok(()) => return Ok(user.name),
                Err(error) if error.kind() == ErrorKind::InvalidArgument => {}
                Err(error) => return Err(error),
            }
        }
        // Two sign-ins at once: the other one has made the user.
        let made = users.find_login(&login).await?;
        made.map(|user| user.name).ok_or_else(|| Error::internal("the user could not be stored"))
    }

    fn misses(&self, what: &str) -> Error {
        Error::unavailable(format!("{} gives no {what}, so nobody can sign in there", self.keys.issuer))
    }
}

/// The groups that a provider names. Those that give scopes are the operator's to give.
fn groups(named: &[String]) -> Vec<String> {
    let groups = named.iter().filter(|group| Scope::parse(group).is_none());
    groups.take(MAX_GROUPS).cloned().collect()
}
