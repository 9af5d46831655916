//! Every path of the router, with every method that it answers.

use serde_json::{Value, json};

use super::hidden::Shows;
use super::{ADMIN_TOKEN, ELSEWHERE, Outcome, Proof, Secrets, Site};
use crate::support::{TestServer, sample};

/// What a path needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Nothing at all; not even a token that is sent is looked at.
    Nothing,
    /// Nothing: for signing in.
    Open,
    /// Nothing, but it shows data, which is not for a token that opens one profile.
    Home,
    /// The same with a query: it searches.
    Search,
    /// Proof of its own, which nobody has here: a link, a sign-in that has begun, the name of a program.
    Own,
    /// Somebody, where strangers are refused; each tool says what it needs.
    Mcp,
    /// A tool of the profile `admin`.
    Admin,
    Read,
    Chat,
    /// The scope `admin`, on a server that other machines reach.
    Operator,
}

/// One line for each path, with the methods that it answers, what it needs and what it shows.
pub const PATHS: &[(&str, &[&str], Need, Shows)] = &[
    ("/mcp", &["POST", "DELETE"], Need::Mcp, Shows::Both),
    ("/mcp/", &["POST", "DELETE"], Need::Mcp, Shows::Both),
    ("/mcp/{profile}", &["POST", "DELETE"], Need::Mcp, Shows::Both),
    ("/sse", &["GET"], Need::Mcp, Shows::Common),
    ("/sse/", &["GET"], Need::Mcp, Shows::Common),
    ("/sse/{profile}", &["GET"], Need::Mcp, Shows::Common),
    ("/sse/messages", &["POST"], Need::Mcp, Shows::Common),
    ("/sse/messages/", &["POST"], Need::Mcp, Shows::Common),
    ("/", &["GET"], Need::Home, Shows::Both),
    ("/data/{*id}", &["GET"], Need::Read, Shows::Both),
    ("/live", &["GET"], Need::Read, Shows::Documents),
    ("/live/{*id}", &["GET"], Need::Read, Shows::Common),
    ("/try", &["GET"], Need::Read, Shows::Common),
    ("/try/", &["GET"], Need::Read, Shows::Common),
    ("/try/{profile}", &["GET"], Need::Read, Shows::Documents),
    ("/try/{profile}/{tool}", &["GET", "POST"], Need::Read, Shows::Both),
    ("/design", &["GET"], Need::Read, Shows::Common),
    ("/assets/{name}", &["GET"], Need::Open, Shows::Common),
    ("/chat", &["POST"], Need::Chat, Shows::Both),
    ("/conversations", &["GET"], Need::Chat, Shows::Personal),
    ("/conversations/{id}/messages", &["GET"], Need::Chat, Shows::Both),
    ("/openapi.json", &["GET"], Need::Read, Shows::Common),
    ("/session", &["POST", "DELETE"], Need::Open, Shows::Common),
    ("/login", &["GET", "POST"], Need::Open, Shows::Common),
    ("/login/local", &["GET"], Need::Own, Shows::Common),
    ("/login/provider", &["GET"], Need::Open, Shows::Common),
    ("/login/callback", &["GET"], Need::Own, Shows::Common),
    ("/oauth/authorize", &["GET", "POST"], Need::Open, Shows::Common),
    ("/oauth/token", &["POST"], Need::Own, Shows::Common),
    ("/oauth/register", &["POST"], Need::Open, Shows::Common),
    ("/oauth/revoke", &["POST"], Need::Open, Shows::Common),
    ("/oauth/jwks", &["GET"], Need::Open, Shows::Common),
    ("/.well-known/oauth-protected-resource", &["GET"], Need::Open, Shows::Common),
    ("/.well-known/oauth-protected-resource/", &["GET"], Need::Open, Shows::Common),
    ("/.well-known/oauth-protected-resource/{*path}", &["GET"], Need::Open, Shows::Common),
    ("/.well-known/oauth-authorization-server", &["GET"], Need::Open, Shows::Common),
    ("/.well-known/oauth-authorization-server/", &["GET"], Need::Open, Shows::Common),
    ("/.well-known/oauth-authorization-server/{*path}", &["GET"], Need::Open, Shows::Common),
    ("/.well-known/openid-configuration", &["GET"], Need::Open, Shows::Common),
    ("/.well-known/openid-configuration/", &["GET"], Need::Open, Shows::Common),
    ("/.well-known/openid-configuration/{*path}", &["GET"], Need::Open, Shows::Common),
    ("/healthz", &["GET"], Need::Nothing, Shows::Common),
    ("/readyz", &["GET"], Need::Nothing, Shows::Common),
    ("/metrics", &["GET"], Need::Operator, Shows::Common),
];

/// Paths that are no routes of their own.
const MORE: &[(&str, &str, Need)] = &[
    ("POST", "/mcp/admin", Need::Admin),
    ("GET", "/?q=beans", Need::Search),
    ("GET", "/nowhere", Need::Read),
    ("GET", "/mcp-not", Need::Read),
];

/// A server as somebody runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// On this machine, and strangers may read.
    Local,
    /// On the internet, and everybody has to sign in.
    Closed,
}

impl Kind {
    fn start(self) -> Site {
        let (server, auth) = match self {
            Self::Local => ("", ""),
            Self::Closed => ("public_url = \"https://tribune.example.org\"", "required = true"),
        };
        let secrets = Secrets::new();
        let admin = secrets.add("admin", ADMIN_TOKEN);
        let server = TestServer::builder()
            .documents(&sample())
            .server(&format!("admin_token = \"{admin}\"\n{server}"))
            .tables(&format!(
                "[store]\n[auth]\nissuer = \"builtin\"\n{auth}\n[[sources]]\nname = \"hansard\"\nkind = \"speeches\"\npath = \"docs\"\ningest_dir = \"docs\""
            ))
            .start();
        let local = (self == Self::Local).then_some(Proof::Local);
        let callers: Vec<Proof> = ELSEWHERE.into_iter().chain(local).collect();
        Site::new(server, secrets, &callers)
    }

    fn outcome(self, need: Need, path: &str, caller: Proof) -> Outcome {
        if need == Need::Nothing {
            return Outcome::Allowed;
        }
        if caller == Proof::Invalid {
            return Outcome::InvalidToken;
        }
        let is_research = path.ends_with("/research");
        match need {
            Need::Open => Outcome::Allowed,
            Need::Home if caller == Proof::OneProfile => Outcome::OtherProfile,
            Need::Home => Outcome::Allowed,
            Need::Search if caller == Proof::Nothing => Outcome::Allowed,
            Need::Search => scoped("read", caller),
            Need::Admin if caller == Proof::Administrator || caller.has("admin") && caller != Proof::Local => {
                Outcome::Allowed
            }
            // Orders are there too.
            Need::Admin if caller == Proof::Scopes(&["trade"]) => Outcome::Allowed,
            Need::Admin if caller.is_user() || caller == Proof::OneProfile => Outcome::Lacks("admin"),
            // The secret of the local user is not the administrators' token.
            Need::Admin if caller == Proof::Local => Outcome::InvalidToken,
            Need::Admin => Outcome::SignIn("admin"),
            Need::Mcp if caller == Proof::Nothing && self == Self::Closed => Outcome::SignIn("read tasks"),
            Need::Mcp if caller == Proof::OneProfile && !is_research && !path.starts_with("/sse/messages") => {
                Outcome::OtherProfile
            }
            Need::Mcp => Outcome::Allowed,
            Need::Read if caller == Proof::Nothing && self == Self::Local => Outcome::Allowed,
            Need::Read => scoped("read", caller),
            Need::Chat => scoped("chat", caller),
            Need::Operator => scoped("admin", caller),
            Need::Nothing | Need::Own => unreachable!("decided before"),
        }
    }
}

fn scoped(scope: &'static str, caller: Proof) -> Outcome {
    match caller {
        Proof::Nothing => Outcome::SignIn(scope),
        Proof::OneProfile => Outcome::OtherProfile,
        caller if caller.has(scope) => Outcome::Allowed,
        _ => Outcome::Lacks(scope),
    }
}

/// A path of a route that leads somewhere.
pub fn example(route: &str) -> String {
    let path = route
        .replace("{*id}", "docs:beans.md")
        .replace("{id}", "00000000-0000-0000-0000-000000000000")
        .replace("{*path}", "mcp")
        .replace("{profile}", "research")
        .replace("{tool}", "search")
        .replace("{name}", "tribune.css");
    assert!(!path.contains('{'), "say what stands for the parameter in {route}");
    path
}

fn body(path: &str) -> Value {
    if path.starts_with("/mcp") { json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}) } else { json!({}) }
}

/// The paths and methods that the router answers, with what each needs.
fn requests(site: &Site, wrong: &mut Vec<String>) -> Vec<(&'static str, String, Need)> {
    let mut found: Vec<_> = MORE.iter().map(|(method, path, need)| (*method, (*path).to_owned(), *need)).collect();
    for route in tribune_server::paths() {
        let path = example(route);
        let known = PATHS.iter().find(|(known, ..)| *known == route);
        let (_, methods, need, _) = known.unwrap_or_else(|| panic!("say in PATHS who may call {route}"));
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let answer = site.send(Proof::Administrator, method, &path, &body(&path));
            let is_answered = answer.status() != 405;
            if is_answered != methods.contains(&method) {
                wrong.push(format!("{method} {path}: {}; correct PATHS", answer.status()));
            }
            if is_answered {
                found.push((method, path.clone(), *need));
            }
        }
    }
    found
}

fn check(kind: Kind) {
    let site = kind.start();
    let mut wrong = Vec::new();
    for (method, path, need) in requests(&site, &mut wrong) {
        for caller in site.callers() {
            let answer = site.send(caller, method, &path, &body(&path));
            let status = answer.status().as_u16();
            let checked = match need {
                Need::Own if status == 401 => Ok(()),
                Need::Own => Err(format!("{status} instead of 401")),
                need => kind.outcome(need, &path, caller).check(status, answer.headers()),
            };
            wrong.extend(checked.err().map(|why| format!("{method} {path} as {caller:?}: {why}")));
        }
    }
    assert!(wrong.is_empty(), "{kind:?}\n{}", wrong.join("\n"));
}

#[test]
fn every_path_of_a_local_server() {
    check(Kind::Local);
}

#[test]
fn every_path_of_a_closed_server() {
    check(Kind::Closed);
}

#[test]
fn every_expectation_is_of_a_path() {
    let paths = tribune_server::paths();
    for (path, ..) in PATHS {
        assert!(paths.contains(path), "{path} is no longer served");
    }
}

/// Details of readiness name folders: they are for operators.
#[test]
fn readiness_tells_strangers_only_whether() {
    let public = Kind::Closed.start();
    for caller in public.callers() {
        let mut answer = public.send(caller, "GET", "/readyz", &Value::Null);
        assert_eq!(answer.status(), 200, "{caller:?}");
        let body: Value = serde_json::from_str(&answer.body_mut().read_to_string().expect("a body")).expect("JSON");
        assert_eq!(body["status"], "ready");
        assert_eq!(body.get("sources").is_some(), caller.has("admin"), "{caller:?}: {body}");
    }
    let local = Kind::Local.start();
    assert!(local.server.readiness().json().get("sources").is_some());
    assert!(local.server.get("/readyz", &[]).json().get("sources").is_none());
    assert_eq!(local.server.get("/metrics", &[]).status, 401);
}
