//! The command line as it is typed.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand, ValueEnum};

/// Gives your data a voice in ChatGPT, Claude and every other MCP client: sources in, MCP out,
/// every answer cited.
#[derive(Debug, Parser)]
#[command(name = "tribune", version, propagate_version = true, max_term_width = 100)]
#[command(after_help = "Start with `tribune serve`: without a configuration it runs a demo. \
Then `tribune init` writes a tribune.toml for your own documents.")]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,

    #[command(flatten)]
    pub common: Common,
}

#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Configuration file [default: tribune.toml in this folder; without one, the demo]
    #[arg(long, global = true, value_name = "FILE", env = "TRIBUNE_CONFIG")]
    pub config: Option<PathBuf>,

    /// Format of log lines, which go to standard error
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text, env = "TRIBUNE_LOG_FORMAT")]
    pub log_format: LogFormat,

    /// Log level: error, warn, info, debug, trace, or a filter such as `info,tribune_server=debug`
    #[arg(long, global = true, value_name = "LEVEL", env = "TRIBUNE_LOG")]
    pub log: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Text,
    Json,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve over HTTP: MCP at /mcp and /sse, pages at / and /data/{id}
    Serve(Serve),
    /// Serve the same tools over standard input and output
    Stdio {
        /// The profile (sources and tools) to serve
        #[arg(long, default_value = "default")]
        profile: String,
    },
    /// Write a commented tribune.toml
    Init(Init),
    /// Check the configuration and show what would be served
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Bring the search indexes up to date: only files that changed are read
    Index(Index),
    /// Search as a host would
    Search(Search),
    /// Fetch one document by its id
    Fetch(Fetch),
    /// Call any tool with JSON arguments
    Call(Call),
    /// Measure how well search finds what it should, with your own questions or a BEIR dataset
    Eval(Eval),
    /// Talk to the agent in this terminal
    Chat(Chat),
    /// Create, list and revoke API tokens
    Token {
        #[command(subcommand)]
        verb: TokenVerb,
    },
    /// Add, list and remove users who sign in with a password
    User {
        #[command(subcommand)]
        verb: UserVerb,
    },
    /// Show the audit log: who called what, and with which outcome
    Audit(Audit),
    /// List orders that wait for a confirmation, or confirm one
    Orders {
        #[command(subcommand)]
        verb: Option<OrdersVerb>,
    },
    /// Run a simulated Binance exchange on this machine, or replay a recording of the real one
    Sim(Sim),
    /// Show how to connect a host, with the text to paste
    Connect {
        #[arg(value_enum)]
        host: Host,
    },
    /// Print a shell's completion script
    Completions {
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Write manual pages
    Man {
        /// Where to write them
        #[arg(long, value_name = "DIR", default_value = "man")]
        dir: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub enum OrdersVerb {
    /// Let the model's next call place this order
    Confirm {
        /// The order's id, as `tribune orders` lists it
        id: String,
    },
}

#[derive(Debug, Args)]
pub struct Serve {
    /// Address and port to listen on [default: the configuration's, or 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub listen: Option<SocketAddr>,

    /// Serve the fixtures of the MCP conformance suite too
    #[arg(long, hide = true)]
    pub conformance: bool,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        let port = text.rsplit(':').next().and_then(|port| port.parse::<u16>().ok()).unwrap_or(8080);
        format!("write an IP address and a port, such as 127.0.0.1:{port}")
    })
}

#[derive(Debug, Args)]
#[command(after_help = "Set `rest_url = \"http://ADDR\"` in the section `[market]` of tribune.toml to use it. \
A recording has one message per line, `<receive_ns> <json>`: combined-stream messages (depth, trade, aggTrade, bookTicker, \
kline) and REST depth snapshots; files may be gzipped. A recording that cannot be played is refused with the line and the \
reason. The replay starts with the first subscription. GET /sim/state shows its progress, POST /sim/faults injects faults.")]
pub struct Sim {
    /// Address and port to listen on
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9330", value_parser = address)]
    pub listen: SocketAddr,

    /// Seed of the simulation; the same seed gives the same market
    #[arg(long, value_name = "N", default_value_t = 1, conflicts_with = "replay")]
    pub seed: u64,

    /// Replay these recordings instead of simulating
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub replay: Vec<PathBuf>,

    /// Let this API key trade, with a balance of 100,000 USDT and 1 BTC
    #[arg(long, value_name = "KEY:SECRET", conflicts_with = "replay")]
    pub key: Vec<String>,

    /// Replay speed: 1 is the recorded pace, 0 is as fast as clients can read
    #[arg(long, value_name = "X", default_value_t = 1.0, requires = "replay")]
    pub speed: f64,
}

#[derive(Debug, Args)]
pub struct Audit {
    /// Only entries since then: 12h, 7d, 2026-11-19 or 2026-11-19T10:00:00Z
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,

    /// Only entries of this user; `local` is the user of this machine, `anonymous` is any caller without a token
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,

    /// The most entries to show; the newest are shown
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub limit: u16,

    /// Print one JSON object per line
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Init {
    /// The folder with your documents; created with a first note if it does not exist
    #[arg(default_value = "notes")]
    pub folder: PathBuf,

    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub struct Index {
    /// The sources to index [default: all]
    pub sources: Vec<String>,

    /// Keep running and update the index after every change
    #[arg(long)]
    pub watch: bool,

    /// Print JSON; with --watch, one line per update
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Search {
    /// Words to search for; "exact phrase", field:value and -word work too
    #[arg(required = true, num_args = 1.., value_name = "QUERY")]
    pub query: Vec<String>,

    /// The most results to show
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=50))]
    pub limit: u64,

    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct Fetch {
    /// The id of a search result
    pub id: String,

    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct Call {
    /// The tool's name; `tribune check` lists them
    pub tool: String,

    /// Its arguments, as a JSON object
    #[arg(default_value = "{}")]
    pub arguments: String,

    #[command(flatten)]
    pub output: Output,
}

#[derive(Debug, Args)]
pub struct Output {
    /// Print exactly the tool's structured result
    #[arg(long)]
    pub json: bool,

    /// The profile (sources and tools) to use
    #[arg(long, default_value = "default")]
    pub profile: String,
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).args(["beir", "queries"]))]
#[command(after_help = EVAL_EXAMPLES)]
pub struct Eval {
    /// A dataset in BEIR layout: corpus.jsonl, queries.jsonl, qrels/test.tsv; several are measured in turn
    #[arg(long, value_name = "DIR", conflicts_with = "queries")]
    pub beir: Vec<PathBuf>,

    /// Your own questions, asked of the configured sources as a host would: TSV (question, expected id,
    /// further ids) or JSONL ({"query", "expected": [ids]}); ids with or without their source
    #[arg(long, value_name = "FILE")]
    pub queries: Option<PathBuf>,

    /// Model for vector search: minilm, static, none, or the folder of a model [default: the configuration's]
    #[arg(long, value_name = "MODEL", conflicts_with = "queries")]
    pub embedder: Option<String>,

    /// Rank by keyword search (words), by vector search (meaning), or by both
    #[arg(long, value_parser = ["both", "words", "meaning"], default_value = "both", conflicts_with = "queries")]
    pub legs: String,

    /// A second configuration to compare with, as MODEL or MODEL:LEGS (none, static, minilm:meaning)
    #[arg(long, value_name = "SPEC", conflicts_with = "queries")]
    pub against: Option<String>,

    /// The judgements to use: qrels/SPLIT.tsv
    #[arg(long, default_value = "test", conflicts_with = "queries")]
    pub split: String,

    /// Only the first N queries, for a quick look
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit_queries: Option<u64>,

    /// Write the result of each query, one JSON object per line
    #[arg(long, value_name = "FILE")]
    pub per_query: Option<PathBuf>,

    /// Write the first hundred results of each query as a TREC run, for other tools
    #[arg(long, value_name = "FILE", conflicts_with = "queries")]
    pub run: Option<PathBuf>,

    /// Exit with 1 if nDCG@10 is lower than this
    #[arg(long, value_name = "NDCG", value_parser = fraction)]
    pub floor: Option<f64>,

    /// Seed of the bootstrap samples from which a comparison gets its interval and p
    #[arg(long, default_value_t = 1, conflicts_with = "queries")]
    pub seed: u64,

    /// Rebuild the dataset's index and vectors
    #[arg(long, conflicts_with = "queries")]
    pub fresh: bool,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

const EVAL_EXAMPLES: &str = "\
Examples:
  tribune eval --queries questions.tsv --floor 0.8
  tribune eval --beir datasets/scifact
  tribune eval --beir datasets/scifact --embedder minilm --against none

docs/evaluation.md explains the figures and how to make a list of questions of your own.";

impl Eval {
    /// How many queries at most.
    pub fn limit(&self) -> usize {
        self.limit_queries.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
    }
}

fn fraction(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("write a number between 0 and 1, such as 0.8".to_owned()),
    }
}

#[derive(Debug, Args)]
#[command(after_help = CHAT_EXAMPLES)]
pub struct Chat {
    /// One message [default: a conversation until Ctrl-D]
    #[arg(num_args = 0.., value_name = "MESSAGE")]
    pub message: Vec<String>,

    /// Continue this conversation [default: the last one, if it was active within the last 30 minutes]
    #[arg(long, value_name = "ID", conflicts_with = "new")]
    pub conversation: Option<uuid::Uuid>,

    /// Start a new conversation
    #[arg(long)]
    pub new: bool,

    /// Print the answer as JSON; needs a MESSAGE
    #[arg(long, requires = "message")]
    pub json: bool,
}

const CHAT_EXAMPLES: &str = "\
Examples:
  tribune chat
  tribune chat What do I have to do this week?
  tribune chat --new --json \"Add a task: water the tomatoes\"

The model is that of [agent] in tribune.toml. In a conversation, /new starts another, /history shows
the messages, /tools lists what the agent can use, and /quit ends it.";

#[derive(Debug, Subcommand)]
pub enum TokenVerb {
    /// Create a token for a user; it is shown once, and only its digest is stored
    Create(TokenCreate),
    /// List tokens: user, label, creation, last use, expiry
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a token
    Revoke {
        /// The id that `tribune token list` shows
        id: String,

        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub struct TokenCreate {
    /// The user it belongs to: 1 to 64 letters, digits and . _ @ + -
    #[arg(long, value_name = "NAME")]
    pub user: String,

    /// A label to recognise it by
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,

    /// A scope; may be given more than once [default: read, tasks and chat]
    #[arg(long, value_name = "read|tasks|chat|trade|admin", value_parser = scope)]
    pub scope: Vec<ScopeArg>,

    /// Limit the token to this profile, at /mcp/NAME
    #[arg(long, value_name = "NAME")]
    pub profile: Option<String>,

    /// When it expires: a number of days such as 30d, or never
    #[arg(long, value_name = "TIME", default_value = "90d", value_parser = lifetime)]
    pub expires: Lifetime,

    /// The same as --expires, as a number of days
    #[arg(long, value_name = "DAYS", hide = true, conflicts_with = "expires", value_parser = clap::value_parser!(i64).range(1..=36_500))]
    pub expires_days: Option<i64>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Clone, Copy)]
pub struct ScopeArg(pub tribune_core::Scope);

fn scope(name: &str) -> Result<ScopeArg, String> {
    let scope = tribune_core::Scope::parse(name).map(ScopeArg);
    scope.ok_or_else(|| "write read, tasks, chat, trade or admin".to_owned())
}

/// A number of days, or no end.
#[derive(Debug, Clone, Copy)]
pub struct Lifetime(pub Option<i64>);

fn lifetime(text: &str) -> Result<Lifetime, String> {
    if text == "never" {
        return Ok(Lifetime(None));
    }
    let days = text.strip_suffix('d').and_then(|days| days.parse().ok());
    let days = days.filter(|days| (1..=36_500).contains(days));
    let days = days.ok_or_else(|| "write a number of days such as 90d, or never".to_owned());
    days.map(|days| Lifetime(Some(days)))
}

#[derive(Debug, Args)]
pub struct UserAdd {
    /// 1 to 64 letters, digits and . _ @ + -
    pub name: String,

    /// A file with the password; without it, the password is read from standard input
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,

    /// A group; may be given more than once. Members of `trade` and `admin` may allow programs these scopes
    #[arg(long = "group", value_name = "GROUP")]
    pub groups: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub enum UserVerb {
    /// Add a user who signs in with a password
    Add(UserAdd),
    /// List users: their groups, and how they sign in
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a user, and end every session, token and grant of the user; tasks and conversations stay
    Remove { name: String },
    /// Set a new password, and end every session, token and grant that the user has
    Password {
        name: String,

        /// A file with the password; without it, the password is read from standard input
        #[arg(long, value_name = "FILE")]
        password_file: Option<PathBuf>,
    },
    /// Put a user into groups, or take them out
    Group {
        name: String,

        /// A group that the user joins; may be repeated
        #[arg(long = "add", value_name = "GROUP", required_unless_present = "remove")]
        add: Vec<String>,

        /// A group that the user leaves; may be repeated
        #[arg(long = "remove", value_name = "GROUP")]
        remove: Vec<String>,
    },
    /// List the programs that a user lets in: scopes, since when, and last use
    Grants {
        name: String,

        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// End what a user allows one program; running servers refuse its tokens within a second
    Revoke {
        name: String,

        /// The grant's id, as `tribune user grants` lists it
        id: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Host {
    Chatgpt,
    Claude,
    Vscode,
    Cursor,
}
