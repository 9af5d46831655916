//! The command line as it is typed.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

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
    /// Configuration file; without one, and without a tribune.toml here, the demo is used
    #[arg(long, global = true, value_name = "FILE", env = "TRIBUNE_CONFIG")]
    pub config: Option<PathBuf>,

    /// How log lines look, on standard error
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text, env = "TRIBUNE_LOG_FORMAT")]
    pub log_format: LogFormat,

    /// What is logged: error, warn, info, debug, trace, or a filter such as `info,tribune_server=debug`
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
    Stdio(Stdio),
    /// Write a commented tribune.toml
    Init(Init),
    /// Check the configuration and say what would be served
    Check(Check),
    /// Bring the search indexes up to date: only files that changed are read
    Index(Index),
    /// Search as a host would
    Search(Search),
    /// Fetch one document by its id
    Fetch(Fetch),
    /// Call any tool with JSON arguments
    Call(Call),
    /// Print exactly what to paste where, to connect a host
    Connect(Connect),
    /// Print a shell's completion script
    Completions(Completions),
    /// Write manual pages
    Man(Man),
}

#[derive(Debug, Args)]
pub struct Serve {
    /// Address and port to listen on [default: the configuration's, or 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,

    /// Serve the fixtures of the MCP conformance suite too
    #[arg(long, hide = true)]
    pub conformance: bool,
}

#[derive(Debug, Args)]
pub struct Stdio {
    /// Which selection of tools to serve
    #[arg(long, default_value = "default")]
    pub profile: String,
}

#[derive(Debug, Args)]
pub struct Init {
    /// The folder with your documents; made, with a first note, if it does not exist
    #[arg(default_value = "notes")]
    pub folder: PathBuf,

    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, Args)]
pub struct Check {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Index {
    /// Which sources; all if none is named
    pub sources: Vec<String>,

    /// Go on: follow the folders, and bring the index up to date whenever something changes
    #[arg(long)]
    pub watch: bool,

    /// Print JSON; with --watch, one line for each update
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Search {
    /// Words to look for; "exact phrase", field:value and -word work too
    #[arg(required = true, num_args = 1.., value_name = "QUERY")]
    pub query: Vec<String>,

    /// How many results at most
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

    /// Which selection of tools to use
    #[arg(long, default_value = "default")]
    pub profile: String,
}

#[derive(Debug, Args)]
pub struct Connect {
    #[arg(value_enum)]
    pub host: Host,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Host {
    Chatgpt,
    Claude,
    Vscode,
    Cursor,
}

#[derive(Debug, Args)]
pub struct Completions {
    #[arg(value_enum)]
    pub shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub struct Man {
    /// Where to write them
    #[arg(long, value_name = "DIR", default_value = "man")]
    pub dir: PathBuf,
}
