//! Who may do what, for every path and every tool. The paths are the router's own, the tools those that the binary lists:
//! a new one fails these tests until somebody says here who may use it, and whether it shows documents or personal data.

mod hidden;
mod paths;
mod personal;
mod tools;

use serde_json::{Value, json};
use ureq::http::HeaderMap;

use crate::people::tribune;
use crate::support::{PATIENCE, TestServer};

const ADMIN_TOKEN: &str = "0123456789abcdef0123";

/// What a caller shows. Tokens are ann's unless another user is named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Proof {
    Nothing,
    /// A token of a user, with these scopes.
    Scopes(&'static [&'static str]),
    /// A token for the profile `research` alone.
    OneProfile,
    /// A token of rea, a reader of documents that are not for everybody.
    Reader,
    /// A token of ben, another user.
    Other,
    /// The secret of the person at this machine.
    Local,
    /// The token of `server.admin_token`.
    Administrator,
    /// A token that nobody has.
    Invalid,
}

/// Everybody but the local user, whom a public server does not know.
const ELSEWHERE: [Proof; 12] = [
    Proof::Nothing,
    Proof::Scopes(&["read", "tasks", "chat"]),
    Proof::Scopes(&["read"]),
    Proof::Scopes(&["tasks"]),
    Proof::Scopes(&["chat"]),
    Proof::Scopes(&["trade"]),
    Proof::Scopes(&["admin"]),
    Proof::OneProfile,
    Proof::Reader,
    Proof::Other,
    Proof::Administrator,
    Proof::Invalid,
];

impl Proof {
    /// Whether a caller who is known may do what needs a scope.
    fn has(self, scope: &str) -> bool {
        match self {
            Self::Scopes(scopes) => scopes.contains(&scope),
            Self::Reader | Self::Other => matches!(scope, "read" | "tasks" | "chat"),
            Self::Local | Self::Administrator => true,
            Self::Nothing | Self::OneProfile | Self::Invalid => false,
        }
    }

    /// Whether it is a user's token for all profiles.
    fn is_user(self) -> bool {
        matches!(self, Self::Scopes(_) | Self::Reader | Self::Other)
    }
}

/// What a response has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// Neither 401 nor 403.
    Allowed,
    /// 401 with a challenge that names the scope.
    SignIn(&'static str),
    /// 401 because of the token.
    InvalidToken,
    /// 403 with a challenge that names the missing scope.
    Lacks(&'static str),
    /// 403 because the token opens another profile.
    OtherProfile,
}

impl Outcome {
    /// What is wrong with a response.
    fn check(self, status: u16, headers: &HeaderMap) -> Result<(), String> {
        let challenge = headers.get("www-authenticate").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let names = |scope: &str| challenge.contains(&format!("scope=\"{scope}\""));
        let is_right = match self {
            Self::Allowed => !matches!(status, 401 | 403),
            Self::SignIn(scope) => status == 401 && names(scope) && !challenge.contains("error="),
            Self::InvalidToken => status == 401 && challenge.contains("error=\"invalid_token\""),
            Self::Lacks(scope) => status == 403 && names(scope) && challenge.contains("error=\"insufficient_scope\""),
            Self::OtherProfile => status == 403 && challenge.is_empty(),
        };
        is_right.then_some(()).ok_or_else(|| format!("{status} [{challenge}] instead of {self:?}"))
    }
}

/// Files with secrets, which commands read too.
struct Secrets(tempfile::TempDir);

impl Secrets {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    /// A reference to a secret, for the configuration.
    fn add(&self, name: &str, value: &str) -> String {
        let path = self.0.path().join(name);
        std::fs::write(&path, value).expect("a secret");
        format!("file:{}", path.display())
    }
}

/// A server and the tokens of its callers.
struct Site {
    server: TestServer,
    tokens: Vec<(Proof, String)>,
    _secrets: Secrets,
}

impl Site {
    fn new(server: TestServer, secrets: Secrets, callers: &[Proof]) -> Self {
        let tokens = callers.iter().map(|proof| (*proof, secret(&server, *proof))).collect();
        Self { server, tokens, _secrets: secrets }
    }

    fn callers(&self) -> impl Iterator<Item = Proof> {
        self.tokens.iter().map(|(proof, _)| *proof)
    }

    fn header(&self, proof: Proof) -> Option<(&'static str, String)> {
        let (_, token) = self.tokens.iter().find(|(known, _)| *known == proof).expect("a caller of this site");
        (!token.is_empty()).then(|| ("authorization", format!("Bearer {token}")))
    }

    /// A JSON request, as a page of the server sends it; streams are not read.
    fn send(&self, proof: Proof, method: &str, path: &str, body: &Value) -> ureq::http::Response<ureq::Body> {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(PATIENCE))
            .max_redirects(0)
            .max_redirects_will_error(false)
            .build()
            .into();
        let url = format!("{}{path}", self.server.url);
        let mut headers = vec![
            ("content-type", "application/json".to_owned()),
            ("accept", "application/json, text/event-stream".to_owned()),
            ("sec-fetch-site", "same-origin".to_owned()),
        ];
        headers.extend(self.header(proof));
        macro_rules! with_headers {
            ($request:expr) => {{
                let mut request = $request;
                for (name, value) in &headers {
                    request = request.header(*name, value);
                }
                request
            }};
        }
        let answer = match method {
            "GET" => with_headers!(agent.get(url)).call(),
            "DELETE" => with_headers!(agent.delete(url)).call(),
            "POST" => with_headers!(agent.post(url)).send(body.to_string()),
            "PUT" => with_headers!(agent.put(url)).send(body.to_string()),
            "PATCH" => with_headers!(agent.patch(url)).send(body.to_string()),
            other => panic!("unknown method {other}"),
        };
        answer.expect("an answer")
    }

    fn rpc(&self, proof: Proof, path: &str, method: &str, params: Value) -> ureq::http::Response<ureq::Body> {
        self.send(proof, "POST", path, &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
    }
}

fn secret(server: &TestServer, proof: Proof) -> String {
    let create_for = |user: &str, more: &[&str]| {
        let args = [&["token", "create", "--user", user], more].concat();
        tribune(server, &args).0.trim().to_owned()
    };
    let create = |more: &[&str]| create_for("ann", more);
    match proof {
        Proof::Nothing => String::new(),
        Proof::Scopes(scopes) => create(&scopes.iter().flat_map(|scope| ["--scope", scope]).collect::<Vec<_>>()),
        Proof::OneProfile => create(&["--profile", "research"]),
        Proof::Reader => create_for("rea", &[]),
        Proof::Other => create_for("ben", &[]),
        Proof::Local => server.local_header().1.trim_start_matches("Bearer ").to_owned(),
        Proof::Administrator => ADMIN_TOKEN.to_owned(),
        Proof::Invalid => "tribune_00000000_nobody".to_owned(),
    }
}
