//! Programs that ask for access. They register, or their id is the address of a document that describes them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tribune_core::{Clock, Result, legible};
use tribune_storage::Grants;
use url::Url;

use crate::fetch::Fetcher;
use crate::refused::Refused;
use crate::{redirect, sha256};

const MAX_REDIRECTS: usize = 20;
const MAX_NAME_CHARS: usize = 100;
/// Programs without a grant that may be registered; the one that was not used for the longest time is forgotten first.
const MAX_REGISTERED: u32 = 10_000;
const MAX_DESCRIPTION_BYTES: usize = 4 * 1024;
/// How long a document that describes a program is used without being fetched again.
const DOCUMENT_KEPT: Duration = Duration::from_secs(600);
/// The same for one that could not be used.
const FAILURE_KEPT: Duration = Duration::from_secs(30);
const MAX_DOCUMENTS: usize = 1_000;
/// Documents that are fetched at once.
const MAX_FETCHES: usize = 8;

/// A program that asks for access.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Client {
    #[serde(skip)]
    pub id: String,
    /// The name that the program gave; unverified.
    pub name: String,
    redirect_uris: Vec<String>,
}

impl Client {
    /// Reads a registration or a document about a program.
    fn read(id: String, metadata: &Value) -> Result<Self, Refused> {
        let invalid = |why: String| Refused::new("invalid_client_metadata", why);
        let named = metadata.get("redirect_uris").and_then(Value::as_array);
        let named = named.ok_or_else(|| invalid("`redirect_uris` must be a list of addresses".to_owned()))?;
        if named.is_empty() || named.len() > MAX_REDIRECTS {
            return Err(invalid(format!("`redirect_uris` must have 1 to {MAX_REDIRECTS} addresses")));
        }
        let mut redirect_uris = Vec::with_capacity(named.len());
        for address in named {
            let address = address.as_str().unwrap_or_default();
            redirect::check(address).map_err(|why| Refused::new("invalid_redirect_uri", why))?;
            redirect_uris.push(address.to_owned());
        }
        let name = metadata.get("client_name").and_then(Value::as_str).unwrap_or_default();
        let name = legible(name).chars().take(MAX_NAME_CHARS).collect();
        Ok(Self { id, name, redirect_uris })
    }

    /// The address as a URL, if the program may be sent there.
    pub(crate) fn redirect(&self, address: &str) -> Option<Url> {
        let mut registered = self.redirect_uris.iter();
        let url = redirect::check(address).ok()?;
        registered.any(|registered| redirect::matches(registered, address)).then_some(url)
    }

    /// The only address of the program, if it has one.
    pub(crate) fn only_redirect(&self) -> Option<&str> {
        match self.redirect_uris.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }
}

/// All programs.
pub(crate) struct Clients {
    grants: Grants,
    fetcher: Fetcher,
    documents: Mutex<HashMap<String, (Instant, Described)>>,
    fetches: Semaphore,
}

/// What the document of a program says, or why it cannot be used.
type Described = Result<Client, String>;

impl Clients {
    pub(crate) fn new(grants: Grants, fetcher: Fetcher) -> Self {
        Self { grants, fetcher, documents: Mutex::default(), fetches: Semaphore::new(MAX_FETCHES) }
    }

    /// Registers a program. The same description gets the same id, so that registering again costs nothing.
    pub(crate) async fn register(&self, metadata: &Value, clock: &dyn Clock) -> Result<Value, Refused> {
        let mut client = Client::read(String::new(), metadata)?;
        let described = serde_json::to_string(&client)
            .map_err(|error| Refused::new("invalid_client_metadata", error.to_string()))?;
        if described.len() > MAX_DESCRIPTION_BYTES {
            let why = format!("name and redirect addresses have more than {MAX_DESCRIPTION_BYTES} bytes");
            return Err(Refused::new("invalid_client_metadata", why));
        }
        let digest = data_encoding::HEXLOWER.encode(&sha256(&described)[..16]);
        client.id = format!("registered-{digest}");
        let now = clock.now();
        self.grants.register(&client.id, &described, now, MAX_REGISTERED).await?;
        let mut answer = json!({
            "client_id": client.id,
            "client_id_issued_at": now.as_second(),
            "client_name": client.name,
            "redirect_uris": client.redirect_uris,
            // Public programs prove themselves with PKCE.
            "token_endpoint_auth_method": "none",
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
        });
        for echoed in ["application_type", "client_uri", "logo_uri", "scope"] {
            if let Some(value) = metadata.get(echoed).filter(|value| value.is_string()) {
                answer[echoed] = value.clone();
            }
        }
        Ok(answer)
    }

    /// The program with this id; the error is a sentence for the person who was sent here.
    pub(crate) async fn find(&self, id: &str, now: Instant) -> Result<Client, String> {
        if id.contains("://") {
            return self.described(id, now).await;
        }
        let unknown = || {
            "This program is not registered here. Remove the connection in the program and add it again: it then registers anew."
                .to_owned()
        };
        let metadata = self.grants.registered(id).await.map_err(|error| {
            tracing::error!(%error, "could not look up a program");
            "The database does not answer. Try again in a moment.".to_owned()
        })?;
        let client: Client = serde_json::from_str(&metadata.ok_or_else(unknown)?).map_err(|_| unknown())?;
        Ok(Client { id: id.to_owned(), ..client })
    }

    /// A program whose id is the address of a document about it.
    async fn described(&self, id: &str, now: Instant) -> Described {
        let url = self.checked_id(id)?;
        let known = |documents: &HashMap<String, (Instant, Described)>| {
            let (at, described) = documents.get(id)?;
            let kept = if described.is_ok() { DOCUMENT_KEPT } else { FAILURE_KEPT };
            (now.saturating_duration_since(*at) < kept).then(|| described.clone())
        };
        if let Some(described) = known(&self.documents()) {
            return described;
        }
        let _slot = self.fetches.acquire().await.map_err(|_| "This server is stopping.".to_owned())?;
        // Who waited for a slot may have waited for this document.
        if let Some(described) = known(&self.documents()) {
            return described;
        }
        let described = self.fetch(id, &url).await;
        let mut documents = self.documents();
        if documents.len() >= MAX_DOCUMENTS {
            documents.clear();
        }
        documents.insert(id.to_owned(), (now, described.clone()));
        described
    }

    async fn fetch(&self, id: &str, url: &Url) -> Described {
        let failed = |why: &str| format!("The description of this program, {url}, cannot be used: {why}.");
        let document = self.fetcher.json(url).await.map_err(|error| failed(error.message()))?;
        if document.get("client_id").and_then(Value::as_str) != Some(id) {
            return Err(failed("its `client_id` is not its own address"));
        }
        Client::read(id.to_owned(), &document).map_err(|refused| failed(&refused.description))
    }

    fn checked_id(&self, id: &str) -> Result<Url, String> {
        let wrong = |why: &str| Err(format!("The id of this program, {id:?}, {why}."));
        if id.len() > 500 {
            return Err("The id of this program is longer than 500 characters.".to_owned());
        }
        let Ok(url) = Url::parse(id) else {
            return wrong("is not a URL");
        };
        if url.scheme() != "https" && !(url.scheme() == "http" && self.fetcher.is_exempt(&url)) {
            return wrong("must be an https address");
        }
        // As it is written, or two spellings would be two programs.
        if url.as_str() != id || url.path() == "/" || url.fragment().is_some() || !url.username().is_empty() {
            return wrong("must be a plain address with a path, without user name and fragment");
        }
        Ok(url)
    }

    fn documents(&self) -> std::sync::MutexGuard<'_, HashMap<String, (Instant, Described)>> {
        self.documents.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
