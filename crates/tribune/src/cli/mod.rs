//! The command line as it is typed.
//!
//! - `eval`: measuring search;
//! - `people`: users, their tokens, and what they did.

mod eval;
mod people;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use eval::Eval;
pub use people::{Audit, TokenCreate, TokenVerb, UserAdd, UserVerb};

/// The command that [`tribune_extract::Workers`] start.
pub const EXTRACT_WORKER: &str = "extract-worker";

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
    /// Read files for the process that started this one
    #[command(name = EXTRACT_WORKER, hide = true)]
    ExtractWorker,
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Host {
    Chatgpt,
    Claude,
    Vscode,
    Cursor,
}
