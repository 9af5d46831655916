//! The built-in issuer: requests for access, grants, tokens. Authorization code with PKCE, for public programs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tribune_core::{Clock, Result, Scope, Scopes, UserId};
use tribune_storage::{Grant, GrantSecret, Grants, SecretExchange, SecretKind};
use url::{Url, form_urlencoded};

use crate::client::{Client, Clients};
use crate::fetch::Fetcher;
use crate::refused::Refused;
use crate::secret::{challenge, is_same};
use crate::{Resources, new_secret, redirect, sha256};

/// Access tokens begin with this.
pub const ACCESS_PREFIX: &str = "tribune_at_";
const REFRESH_PREFIX: &str = "tribune_rt_";
const CODE_PREFIX: &str = "tribune_code_";
const CODE_LIVES: Duration = Duration::from_secs(300);
const ACCESS_LIVES: Duration = Duration::from_secs(3_600);
const REFRESH_LIVES: Duration = Duration::from_secs(90 * 24 * 3_600);
/// How long a replaced refresh token still works: some hosts refresh from two addresses at once.
const REFRESH_GRACE: Duration = Duration::from_secs(60);
/// How often it works in all.
const MAX_REFRESHES: u32 = 5;
const NOT_OURS: &str = "resource is not an MCP endpoint of this server, nor its base address";

pub struct Issuer {
    /// The public address, without a slash at the end: the issuer's name, everywhere the same.
    base: String,
    resources: Resources,
    grants: Grants,
    clients: Clients,
    clock: Arc<dyn Clock>,
}

/// A checked request for access, which a person allows or denies.
#[derive(Debug, Clone)]
pub struct Authorization {
    pub client: Client,
    pub scopes: Scopes,
    /// The one profile that it is for; `None` for all.
    profile: Option<String>,
    /// Where the browser goes after the decision.
    redirect: Url,
    /// The same as the program wrote it.
    redirect_uri: String,
    state: Option<String>,
    challenge: String,
}

impl Authorization {
    /// Who gets the code, for the person: a host, or the scheme of a program on their machine.
    pub fn destination(&self) -> String {
        redirect::destination(&self.redirect)
    }

    /// Where the form for the decision leads, for the page's policy: an origin or a scheme.
    pub fn form_target(&self) -> String {
        redirect::origin(&self.redirect)
    }
}

/// Why a request for access does not reach the person.
#[derive(Debug)]
pub enum AuthorizeError {
    /// To be shown: it is not certain where the program is.
    Shown(String),
    /// The address to send the browser to, which tells the program.
    Redirect(String),
}

/// What must be proved to redeem a code.
#[derive(Serialize, Deserialize)]
struct Proof {
    challenge: String,
    redirect_uri: String,
}

impl Issuer {
    /// `exempt` are hosts of this network, written `host:port`, whose descriptions of programs may be fetched.
    pub fn new(
        base: &str,
        resources: Resources,
        grants: Grants,
        exempt: Arc<[String]>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self> {
        Ok(Self {
            base: base.to_owned(),
            resources,
            clients: Clients::new(grants.clone(), Fetcher::guarded(exempt)?),
            grants,
            clock,
        })
    }

    /// The document at `/.well-known/oauth-authorization-server` and `/.well-known/openid-configuration`.
    pub fn metadata(&self) -> Value {
        let base = &self.base;
        let scopes: Vec<&str> = Scope::ALL.into_iter().map(Scope::as_str).collect();
        json!({
            "issuer": base,
            "authorization_endpoint": format!("{base}/oauth/authorize"),
            "token_endpoint": format!("{base}/oauth/token"),
            "registration_endpoint": format!("{base}/oauth/register"),
            "revocation_endpoint": format!("{base}/oauth/revoke"),
            "jwks_uri": format!("{base}/oauth/jwks"),
            "scopes_supported": scopes,
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": ["authorization_code", "refresh_token"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "revocation_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": true,
            "client_id_metadata_document_supported": true,
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": [],
        })
    }

    /// Registers a program; returns its description with its id.
    pub async fn register(&self, body: &[u8]) -> Result<Value, Refused> {
        let metadata: Value = serde_json::from_slice(body)
            .map_err(|error| Refused::new("invalid_client_metadata", format!("the body is not JSON: {error}")))?;
        self.clients.register(&metadata, &*self.clock).await
    }

    /// Checks an authorization request; `has_profile` says which profiles the user may use.
    pub async fn authorization(
        &self,
        query: &str,
        has_profile: impl Fn(&str) -> bool,
    ) -> Result<Authorization, AuthorizeError> {
        let shown = |why: &str| AuthorizeError::Shown(why.to_owned());
        let parameters = parameters(query).map_err(|refused| AuthorizeError::Shown(refused.description))?;
        let given = |name: &str| parameters.get(name).map(String::as_str).filter(|value| !value.is_empty());
        let id =
            given("client_id").ok_or_else(|| shown("The program did not say who it is: `client_id` is missing."))?;
        let client = self.clients.find(id, self.clock.monotonic()).await;
        let client = client.map_err(AuthorizeError::Shown)?;
        let redirect_uri = given("redirect_uri").or(client.only_redirect());
        let redirect_uri = redirect_uri
            .ok_or_else(|| shown("The program did not say where to send you back: `redirect_uri` is missing."))?
            .to_owned();
        let redirect = client.redirect(&redirect_uri).ok_or_else(|| {
            shown(
                "The program wants to send you to an address that it did not register. Do not go on: this may be an attack.",
            )
        })?;
        let state = given("state").map(str::to_owned);
        let refused = |code: &str, why: &str| {
            let answer = [("error", code), ("error_description", why)];
            AuthorizeError::Redirect(self.answer(&redirect, state.as_deref(), &answer))
        };
        if given("response_type") != Some("code") {
            return Err(refused("unsupported_response_type", "response_type must be code"));
        }
        let challenge = given("code_challenge").filter(|_| given("code_challenge_method") == Some("S256"));
        let challenge = challenge.filter(|challenge| challenge.len() == 43);
        let Some(challenge) = challenge.map(str::to_owned) else {
            return Err(refused("invalid_request", "PKCE is required: code_challenge with code_challenge_method=S256"));
        };
        let profile = self.profile(given("resource")).filter(|profile| profile.as_deref().is_none_or(&has_profile));
        let profile = profile.ok_or_else(|| refused("invalid_target", NOT_OURS))?;
        let scopes = match given("scope") {
            Some(asked) => Scopes::named(asked.split(' ')),
            None => Scopes::USUAL,
        };
        if scopes == Scopes::NONE {
            return Err(refused("invalid_scope", "no known scope was asked for"));
        }
        Ok(Authorization { client, scopes, profile, redirect, redirect_uri, state, challenge })
    }

    /// Grants access to what was asked for and is `allowed` to this user; returns where to send the browser.
    pub async fn allow(&self, asked: &Authorization, user: &UserId, allowed: Scopes) -> Result<String> {
        let now = self.clock.now();
        let scopes = asked.scopes.and(allowed);
        if scopes == Scopes::NONE {
            return Ok(self.deny(asked));
        }
        let code = new_secret(CODE_PREFIX);
        let proof = Proof { challenge: asked.challenge.clone(), redirect_uri: asked.redirect_uri.clone() };
        let grant = Grant {
            id: new_secret("")[..16].to_owned(),
            user: user.clone(),
            client: asked.client.id.clone(),
            client_name: asked.client.name.clone(),
            scopes: scopes.names(),
            profile: asked.profile.clone(),
            created_at: now,
            expires_at: now + CODE_LIVES,
            used_at: None,
            revoked_at: None,
        };
        let secret = GrantSecret {
            proof: serde_json::to_string(&proof).ok(),
            ..secret(&code, SecretKind::Code, now + CODE_LIVES)
        };
        self.grants.begin(&grant, &secret).await?;
        Ok(self.answer(&asked.redirect, asked.state.as_deref(), &[("code", &code)]))
    }

    /// Where to send the browser of somebody who denies access.
    pub fn deny(&self, asked: &Authorization) -> String {
        let answer = [("error", "access_denied"), ("error_description", "the person did not allow it")];
        self.answer(&asked.redirect, asked.state.as_deref(), &answer)
    }

    fn answer(&self, redirect: &Url, state: Option<&str>, answer: &[(&str, &str)]) -> String {
        let mut url = redirect.clone();
        let mut query = url.query_pairs_mut();
        query.extend_pairs(answer);
        query.extend_pairs(state.map(|state| ("state", state)));
        query.append_pair("iss", &self.base);
        drop(query);
        url.into()
    }

    /// The one profile that a resource opens, which a program names (RFC 8707); `None` if it is not of this server.
    fn profile(&self, resource: Option<&str>) -> Option<Option<String>> {
        match resource {
            Some(resource) => self.resources.get(resource.trim_end_matches('/')).cloned(),
            None => Some(None),
        }
    }

    /// Tokens are for what was allowed, and for nothing else that the program names later.
    fn check_resource(&self, grant: &Grant, resource: Option<&str>) -> Result<(), Refused> {
        if resource.is_none() || self.profile(resource).as_ref() == Some(&grant.profile) {
            return Ok(());
        }
        Err(Refused::new("invalid_target", "resource is not what the person allowed"))
    }

    /// The token endpoint: a form, and the id of the program if it came as a user name.
    pub async fn token(&self, form: &str, basic_client: Option<&str>) -> Result<Value, Refused> {
        let parameters = parameters(form)?;
        let given = |name: &str| parameters.get(name).map(String::as_str).filter(|value| !value.is_empty());
        let client = given("client_id").or(basic_client);
        let client = client.ok_or_else(|| Refused::new("invalid_client", "client_id is missing"))?;
        let resource = given("resource");
        let required =
            |name: &str| given(name).ok_or_else(|| Refused::new("invalid_request", format!("{name} is missing")));
        match required("grant_type")? {
            "authorization_code" => {
                let verifier = required("code_verifier")?;
                self.redeem(required("code")?, client, verifier, given("redirect_uri"), resource).await
            }
            "refresh_token" => self.refresh(required("refresh_token")?, client, given("scope"), resource).await,
            _ => Err(Refused::new("unsupported_grant_type", "grant_type must be authorization_code or refresh_token")),
        }
    }

    async fn redeem(
        &self,
        code: &str,
        client: &str,
        verifier: &str,
        redirect_uri: Option<&str>,
        resource: Option<&str>,
    ) -> Result<Value, Refused> {
        let invalid = || Refused::new("invalid_grant", "the code is unknown, expired, used or not of this program");
        let now = self.clock.now();
        let found = self.grants.find(sha256(code)).await?;
        let (grant, secret) = found.filter(|(_, secret)| secret.kind == SecretKind::Code).ok_or_else(invalid)?;
        if secret.used_at.is_some() {
            // Somebody has a copy of the code: nothing that came of it can be trusted.
            self.grants.revoke(&grant.id, now).await?;
            return Err(invalid());
        }
        let proof: Option<Proof> = secret.proof.as_deref().and_then(|proof| serde_json::from_str(proof).ok());
        let proof = proof.ok_or_else(invalid)?;
        let is_same_address = redirect_uri.is_none_or(|address| address == proof.redirect_uri);
        let is_proved = is_same(&challenge(verifier), &proof.challenge);
        if !is_proved || !is_same_address || grant.client != client || secret.expires_at <= now {
            return Err(invalid());
        }
        self.check_resource(&grant, resource)?;
        // A used code never works again.
        self.exchange(&grant, None, code, now, Timestamp::MAX).await?.ok_or_else(invalid)
    }

    async fn refresh(
        &self,
        token: &str,
        client: &str,
        asked: Option<&str>,
        resource: Option<&str>,
    ) -> Result<Value, Refused> {
        let invalid = || {
            let why = "the refresh token is unknown, expired, replaced, revoked or not of this program";
            Refused::new("invalid_grant", why)
        };
        let now = self.clock.now();
        let found = self.grants.find(sha256(token)).await?;
        let of_client = found.filter(|(grant, secret)| secret.kind == SecretKind::Refresh && grant.client == client);
        let (grant, secret) = of_client.ok_or_else(invalid)?;
        if grant.revoked_at.is_some() || secret.expires_at <= now {
            return Err(invalid());
        }
        self.check_resource(&grant, resource)?;
        let granted = Scopes::named(grant.scopes.iter().map(String::as_str));
        let asked = asked.map(|asked| Scopes::named(asked.split(' ')));
        if asked.is_some_and(|asked| asked == Scopes::NONE || asked.without(granted) != Scopes::NONE) {
            return Err(Refused::new("invalid_scope", "a refresh gives what was allowed, or a part of it"));
        }
        let reusable_from = now - REFRESH_GRACE;
        if secret.used_at.is_none_or(|used| used >= reusable_from) {
            return self.exchange(&grant, asked, token, now, reusable_from).await?.ok_or_else(invalid);
        }
        // Replaced long ago, and used again: one of two holders stole it.
        self.grants.revoke(&grant.id, now).await?;
        tracing::warn!(grant = grant.id, "a replaced refresh token was used again; its grant is revoked");
        Err(invalid())
    }

    /// New tokens for a secret that is used with this. The access token allows only `narrowed`, if that is given.
    async fn exchange(
        &self,
        grant: &Grant,
        narrowed: Option<Scopes>,
        used: &str,
        now: Timestamp,
        reusable_from: Timestamp,
    ) -> Result<Option<Value>, Refused> {
        let (access, refresh) = (new_secret(ACCESS_PREFIX), new_secret(REFRESH_PREFIX));
        let narrowed = narrowed.map(Scopes::names);
        let scope = narrowed.as_ref().unwrap_or(&grant.scopes).join(" ");
        let exchange = SecretExchange {
            used: sha256(used),
            now,
            reusable_from,
            most_uses: MAX_REFRESHES,
            new: vec![
                GrantSecret { scopes: narrowed, ..secret(&access, SecretKind::Access, now + ACCESS_LIVES) },
                secret(&refresh, SecretKind::Refresh, now + REFRESH_LIVES),
            ],
            expires_at: now + REFRESH_LIVES,
        };
        if !self.grants.exchange(exchange).await? {
            return Ok(None);
        }
        Ok(Some(json!({
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": ACCESS_LIVES.as_secs(),
            "refresh_token": refresh,
            "scope": scope,
        })))
    }

    /// The revocation endpoint; returns whose token it was. An unknown one is no error.
    pub async fn revoke(&self, form: &str) -> Result<Option<UserId>, Refused> {
        let parameters = parameters(form)?;
        let token = parameters.get("token");
        let token = token.ok_or_else(|| Refused::new("invalid_request", "token is missing"))?;
        let Some((grant, secret)) = self.grants.find(sha256(token)).await? else {
            return Ok(None);
        };
        if parameters.get("client_id").is_some_and(|client| *client != grant.client) {
            return Ok(None);
        }
        match secret.kind {
            SecretKind::Access => self.grants.end_secret(secret.sha256).await?,
            SecretKind::Code | SecretKind::Refresh => {
                self.grants.revoke(&grant.id, self.clock.now()).await?;
            }
        }
        Ok(Some(grant.user))
    }

    /// Whether this was given to a program, however long ago.
    pub async fn knows(&self, secret: &str) -> Result<bool> {
        Ok(self.grants.find(sha256(secret)).await?.is_some())
    }

    /// The user of an access token, what it allows, and the one profile that it opens; `None` if it is not valid.
    pub async fn authenticate(&self, token: &str) -> Result<Option<(UserId, Scopes, Option<String>)>> {
        let Some((grant, secret)) = self.grants.find(sha256(token)).await? else {
            return Ok(None);
        };
        let is_valid =
            secret.kind == SecretKind::Access && secret.expires_at > self.clock.now() && grant.revoked_at.is_none();
        let scopes = secret.scopes.unwrap_or(grant.scopes);
        let scopes = Scopes::named(scopes.iter().map(String::as_str));
        Ok(is_valid.then_some((grant.user, scopes, grant.profile)))
    }
}

fn secret(shown: &str, kind: SecretKind, expires_at: Timestamp) -> GrantSecret {
    GrantSecret { sha256: sha256(shown), kind, proof: None, scopes: None, expires_at, used_at: None }
}

/// The parameters of a query or a form. Only `resource` may be given more than once; then all must be the same.
fn parameters(text: &str) -> Result<HashMap<String, String>, Refused> {
    let mut parameters = HashMap::new();
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        let before = parameters.insert(name.clone().into_owned(), value.clone().into_owned());
        if before.is_some_and(|before| before != *value || name != "resource") {
            return Err(Refused::new("invalid_request", format!("{name} is given more than once")));
        }
    }
    Ok(parameters)
}
