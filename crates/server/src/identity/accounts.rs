//! The users behind tokens and browser sessions, and how people sign in.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::HeaderValue;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tribune_core::{Clock, Error, Result, Scope, Scopes, UserId};
use tribune_oauth::issuer::ACCESS_PREFIX;
use tribune_oauth::jwt::Verifier;
use tribune_oauth::login::Provider;
use tribune_oauth::{Issuer, new_secret, sha256, verify_password};
use tribune_storage::{BrowserSessions, Store, Token, Tokens, User, Users};

use super::tokens;
use crate::response::page::SignInPage;
use tribune_limits::shared::SharedCounts;
use tribune_limits::{Rate, Subject};

const MAX_TOKEN_CHARS: usize = 16 * 1024;
/// How long somebody stays signed in in a browser.
pub(crate) const SESSION_LIVES: Duration = Duration::from_secs(30 * 24 * 3_600);
const SESSION_PREFIX: &str = "tribune_session_";
/// Sessions of the person at this machine: a mark that no name of a user can forge.
const LOCAL_SESSION_PREFIX: &str = "tribune_session_local_";
/// Passwords that are checked at once: each takes a core and 19 MB for a moment.
const MAX_CHECKS: usize = 2;
const MINUTE: Duration = Duration::from_secs(60);
/// Wrong passwords within a minute for one name: from one address, and from all together. The second is much higher, or
/// anybody could keep a user out.
const MAX_OF_PEER: u32 = 5;
const MAX_OF_NAME: u32 = 100;
/// Programs that one address registers within a minute. Hosts on the web register from few addresses.
const MAX_REGISTRATIONS: u32 = 60;

/// The user of a token, and what it allows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub user: UserId,
    pub groups: Arc<[String]>,
    pub scopes: Scopes,
    /// The one profile that it opens; `None` for all.
    pub profile: Option<String>,
    pub proof: Proof,
}

impl Identity {
    /// Without the scopes of groups that the user has left. What an operator gave an API token, it keeps.
    fn narrowed(self) -> Self {
        Self { scopes: self.scopes.and(scopes_of(&self.groups)), ..self }
    }
}

/// How a caller showed who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// A token, or a browser's session that was opened with one.
    Token,
    /// A password, or a sign-in at the provider, in this browser.
    SignIn,
    /// The sign-in link of this machine, in this browser.
    LocalLink,
}

/// Where people sign in to get tokens.
pub enum SignIn {
    /// Nowhere: the operator makes tokens.
    None,
    BuiltIn(Box<Issuer>),
    /// Another issuer, by its address.
    Elsewhere(String, Box<Verifier>),
}

pub struct Accounts {
    pub(crate) users: Users,
    pub(crate) sessions: BrowserSessions,
    tokens: Tokens,
    pub(crate) sign_in: SignIn,
    /// Where people may sign in instead of with a password.
    pub(crate) provider: Option<Provider>,
    clock: Arc<dyn Clock>,
    /// What was valid a moment ago, by digest.
    valid: Mutex<HashMap<[u8; 32], Valid>>,
    /// Wrong passwords, for each name with an address, and for each name.
    wrong_passwords: (Rate<(Option<Subject>, String)>, Rate<String>),
    checks: Semaphore,
    registrations: Rate<Subject>,
}

#[derive(Clone)]
struct Valid {
    identity: Identity,
    checked_at: Instant,
    use_recorded_at: Instant,
}

impl Accounts {
    /// What has ended or was revoked is refused after this long at the latest.
    const TRUSTED_FOR: Duration = Duration::from_secs(1);
    /// The last use of an API token is recorded at most this often.
    const USE_RECORDED_EVERY: Duration = Duration::from_secs(60);
    const MAX_REMEMBERED: usize = 10_000;

    /// `shared` has the counts of all nodes, if there are several.
    pub fn new(
        store: &Store,
        sign_in: SignIn,
        provider: Option<Provider>,
        clock: Arc<dyn Clock>,
        shared: Option<&Arc<SharedCounts>>,
    ) -> Self {
        Self {
            users: store.users(),
            sessions: store.browser_sessions(),
            tokens: store.tokens(),
            sign_in,
            provider,
            wrong_passwords: (
                Rate::new(MAX_OF_PEER, MINUTE, clock.clone()).shared("passwords_of_peer", shared),
                Rate::new(MAX_OF_NAME, MINUTE, clock.clone()).shared("passwords_of_name", shared),
            ),
            registrations: Rate::new(MAX_REGISTRATIONS, MINUTE, clock.clone()).shared("registrations", shared),
            clock,
            valid: Mutex::default(),
            checks: Semaphore::new(MAX_CHECKS),
        }
    }

    pub(crate) fn issuer(&self) -> Option<&Issuer> {
        match &self.sign_in {
            SignIn::BuiltIn(issuer) => Some(issuer),
            SignIn::None | SignIn::Elsewhere(..) => None,
        }
    }

    /// Whether a secret is that of a browser's session.
    pub(crate) fn is_session(secret: &str) -> bool {
        secret.starts_with(SESSION_PREFIX)
    }

    /// Whether hosts can get tokens by themselves.
    pub(crate) fn offers_oauth(&self) -> bool {
        !matches!(self.sign_in, SignIn::None)
    }

    /// Whether a secret that is not valid was valid once: then nobody guesses.
    pub(crate) async fn has_ended(&self, secret: &str) -> Result<bool> {
        match &self.sign_in {
            SignIn::Elsewhere(_, verifier) if Verifier::could_be(secret) => Ok(verifier.has_expired(secret)),
            SignIn::BuiltIn(issuer) if secret.starts_with(ACCESS_PREFIX) => issuer.knows(secret).await,
            _ => Ok(self.tokens.find(sha256(secret)).await?.is_some()),
        }
    }

    /// The user of a bearer token or a session; `None` if it is unknown, has ended or was revoked. An error if it cannot be
    /// checked now.
    pub(crate) async fn authenticate(&self, secret: &str) -> Result<Option<Identity>> {
        if secret.len() > MAX_TOKEN_CHARS {
            return Ok(None);
        }
        let (digest, moment) = (sha256(secret), self.clock.monotonic());
        let known = self.valid.lock().get(&digest).cloned();
        if let Some(known) = &known
            && moment.saturating_duration_since(known.checked_at) < Self::TRUSTED_FOR
        {
            return Ok(Some(known.identity.clone()));
        }
        let Some((identity, token)) = self.look_up(secret, digest).await? else {
            self.valid.lock().remove(&digest);
            return Ok(None);
        };
        let recorded_at = known
            .map(|known| known.use_recorded_at)
            .filter(|at| moment.saturating_duration_since(*at) < Self::USE_RECORDED_EVERY);
        if let Some(id) = token.filter(|_| recorded_at.is_none()) {
            self.record_use(id);
        }
        let mut remembered = self.valid.lock();
        if remembered.len() >= Self::MAX_REMEMBERED {
            remembered.clear();
        }
        let valid =
            Valid { identity: identity.clone(), checked_at: moment, use_recorded_at: recorded_at.unwrap_or(moment) };
        remembered.insert(digest, valid);
        Ok(Some(identity))
    }

    /// The identity, and the id of the API token if it is one.
    async fn look_up(&self, secret: &str, digest: [u8; 32]) -> Result<Option<(Identity, Option<String>)>> {
        if secret.starts_with(SESSION_PREFIX) {
            let session = self.sessions.find(digest, self.clock.now()).await?;
            let Some(session) = session else {
                return Ok(None);
            };
            let scopes = Scopes::named(session.scopes.iter().map(String::as_str));
            let proof = match session.token {
                Some(_) => Proof::Token,
                None if secret.starts_with(LOCAL_SESSION_PREFIX) => Proof::LocalLink,
                None if session.owner.is_reserved() => return Ok(None),
                None => Proof::SignIn,
            };
            let identity = Identity { proof, ..self.identity(session.owner, scopes, None).await? };
            return Ok(Some((if proof == Proof::SignIn { identity.narrowed() } else { identity }, None)));
        }
        if let Some(issuer) = self.issuer()
            && secret.starts_with(ACCESS_PREFIX)
        {
            let Some((user, scopes, profile)) = issuer.authenticate(secret).await? else {
                return Ok(None);
            };
            return Ok(Some((self.identity(user, scopes, profile).await?.narrowed(), None)));
        }
        if let SignIn::Elsewhere(_, verifier) = &self.sign_in
            && Verifier::could_be(secret)
        {
            let found = verifier.authenticate(secret).await?;
            let proof = Proof::Token;
            let identity = |(user, groups, scopes, profile)| Identity { user, groups, scopes, profile, proof };
            return Ok(found.map(|found| (identity(found), None)));
        }
        if !secret.starts_with(tokens::PREFIX) {
            return Ok(None);
        }
        let now = self.clock.now();
        let found = self.tokens.find(digest).await?;
        let valid = found.filter(|token| token.revoked_at.is_none() && token.expires_at.is_none_or(|end| now < end));
        let Some(token) = valid else {
            return Ok(None);
        };
        let scopes = tokens::scopes(&token);
        Ok(Some((self.identity(token.user, scopes, token.profile).await?, Some(token.id))))
    }

    /// By a token, with the groups that the user is in now.
    async fn identity(&self, user: UserId, scopes: Scopes, profile: Option<String>) -> Result<Identity> {
        let groups = self.users.find(&user).await?.map(|user| user.groups).unwrap_or_default();
        Ok(Identity { user, groups: groups.into(), scopes, profile, proof: Proof::Token })
    }

    /// In the background: the caller does not wait for it, and it may fail.
    fn record_use(&self, id: String) {
        let (store, now) = (self.tokens.clone(), self.clock.now());
        tokio::spawn(async move {
            if let Err(error) = store.record_use(&id, now).await {
                tracing::debug!(%error, "could not record the use of a token");
            }
        });
    }

    /// The user of a name and a password. The error says that both are wrong, or to wait.
    pub(crate) async fn check_password(&self, name: &str, password: String, peer: Option<IpAddr>) -> Result<User> {
        let wrong = || Error::forbidden("Wrong name or password.");
        let wait = || Error::rate_limited("Too many attempts. Wait a minute, then try again.");
        // First of all, or attempts that arrive together would all see the same count.
        let _slot = self.checks.acquire().await.map_err(|_| wait())?;
        let (of_peer, of_name) = &self.wrong_passwords;
        // No user has a longer name.
        let from = (Subject::peer(peer), name.chars().take(UserId::MAX_CHARS).collect());
        if of_peer.check(&from).is_err() || of_name.check(&from.1).is_err() {
            return Err(wait());
        }
        let user = match UserId::new(name) {
            Ok(name) => self.users.find(&name).await?,
            Err(_) => None,
        };
        let hash = user.as_ref().and_then(|user| user.password.clone());
        let check = move || verify_password(&password, hash.as_deref());
        let is_right = tokio::task::spawn_blocking(check).await.unwrap_or(false);
        let user = user.filter(|_| is_right);
        if user.is_none() {
            // Names that do not exist count too.
            of_peer.charge(&from, 1);
            of_name.charge(&from.1, 1);
        }
        user.ok_or_else(wrong)
    }

    /// Counts a registration of a program.
    pub(crate) fn count_registration(&self, peer: Option<IpAddr>) -> Result<()> {
        let taken = Subject::peer(peer).map_or(Ok(()), |peer| self.registrations.take(&peer));
        taken.map_err(|_| {
            Error::rate_limited("Too many registrations from your address. Wait a minute, then try again.")
        })
    }

    /// Begins a session in a browser; returns its secret.
    pub(crate) async fn begin_session(&self, begun: NewSession<'_>) -> Result<String> {
        let NewSession { user, scopes, token, is_local } = begun;
        let secret = new_secret(if is_local { LOCAL_SESSION_PREFIX } else { SESSION_PREFIX });
        let now = self.clock.now();
        let session = tribune_storage::BrowserSession {
            owner: user.clone(),
            scopes: scopes.names(),
            token,
            created_at: now,
            expires_at: now + SESSION_LIVES,
        };
        self.sessions.begin(sha256(&secret), &session).await?;
        Ok(secret)
    }

    pub(crate) async fn end_session(&self, secret: &str) -> Result<()> {
        self.valid.lock().remove(&sha256(secret));
        self.sessions.end(sha256(secret)).await
    }

    /// The API token itself, for a browser that signs in with one.
    pub(crate) async fn api_token(&self, secret: &str) -> Result<Option<Token>> {
        match self.authenticate(secret).await? {
            Some(_) => self.tokens.find(sha256(secret)).await,
            None => Ok(None),
        }
    }

    /// What the page for signing in offers.
    pub(crate) fn page(&self) -> SignInPage {
        SignInPage {
            passwords: matches!(self.sign_in, SignIn::BuiltIn(_)),
            provider: self.provider.as_ref().map(Provider::host),
            ..SignInPage::default()
        }
    }
}

/// A session to be begun in a browser.
pub(crate) struct NewSession<'u> {
    user: &'u UserId,
    scopes: Scopes,
    /// The API token that it is opened with.
    token: Option<String>,
    is_local: bool,
}

impl<'u> NewSession<'u> {
    /// Of somebody who has signed in with a password or at the provider.
    pub(crate) fn of(user: &'u User) -> Self {
        Self { user: &user.name, scopes: scopes_of(&user.groups), token: None, is_local: false }
    }

    pub(crate) fn of_token(token: &'u Token) -> Self {
        let scopes = tokens::scopes(token);
        Self { user: &token.user, scopes, token: Some(token.id.clone()), is_local: false }
    }

    /// Of the person at this machine.
    pub(crate) fn local(user: &'u UserId) -> Self {
        Self { user, scopes: Scopes::ALL, token: None, is_local: true }
    }
}

/// What a user in these groups may do, and may allow programs to do.
fn scopes_of(groups: &[String]) -> Scopes {
    let special = [Scope::Trade, Scope::Admin].into_iter();
    let special = special.filter(|scope| groups.iter().any(|group| group == scope.as_str()));
    Scopes::USUAL.iter().chain(special).collect()
}

/// What a refusal tells a program about getting a token: `resource` is the path that it asked for.
pub(crate) fn challenge(base: Option<&str>, resource: &str, scopes: Scopes, error: Option<&str>) -> HeaderValue {
    let mut challenge = String::from("Bearer realm=\"tribune\"");
    if let Some(error) = error {
        // ChatGPT shows its sign-in only for an error with a description.
        let description = match error {
            "insufficient_scope" => "the token does not allow this",
            _ => "the token is missing, unknown, expired or revoked",
        };
        challenge.push_str(&format!(", error=\"{error}\", error_description=\"{description}\""));
    }
    if let Some(base) = base {
        challenge.push_str(&format!(
            ", resource_metadata=\"{base}/.well-known/oauth-protected-resource{resource}\", scope=\"{scopes}\""
        ));
    }
    HeaderValue::from_str(&challenge).unwrap_or(HeaderValue::from_static("Bearer realm=\"tribune\""))
}
