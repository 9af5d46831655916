//! The servers under test, and how each is started.

mod bare;
mod rmcp;
pub mod tribune;

use std::{
    ffi::OsString,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result};
use axum::{Router, routing::get, serve::ListenerExt};
use clap::{Args, ValueEnum};
use tokio::net::TcpListener;

use crate::{
    answers::Answers,
    process::{Server, free_addr},
};

const READY_LIMIT: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// axum, constant bytes: the ceiling
    Bare,
    /// axum, parses and checks the request, serialises the answer
    BareJson,
    /// rmcp, JSON answers, no sessions
    RmcpJson,
    /// rmcp with its default configuration (SSE framing)
    RmcpDefault,
    /// the Tribune release binary
    Tribune,
}

impl Kind {
    pub const ALL: [Self; 5] = [Self::Bare, Self::BareJson, Self::RmcpJson, Self::RmcpDefault, Self::Tribune];

    pub fn label(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::BareJson => "bare-json",
            Self::RmcpJson => "rmcp-json",
            Self::RmcpDefault => "rmcp-default",
            Self::Tribune => "tribune",
        }
    }
}

/// Arguments of the hidden `serve-...` commands.
#[derive(Args)]
pub struct ServeArgs {
    #[arg(long)]
    listen: SocketAddr,
    #[arg(long)]
    answers: PathBuf,
}

/// Starts a peer: this very program, as a process of its own.
pub async fn start_peer(kind: Kind, answers: &Path, log: &Path) -> Result<Server> {
    let program = std::env::current_exe().context("find this program")?;
    let addr = free_addr()?;
    let args: [OsString; 5] = [
        format!("serve-{}", kind.label()).into(),
        "--listen".into(),
        addr.to_string().into(),
        "--answers".into(),
        answers.into(),
    ];
    Server::start(&program, &args, addr, log, READY_LIMIT).await.with_context(|| format!("start {}", kind.label()))
}

/// What a peer process does until it is told to end.
pub fn serve(kind: Kind, args: &ServeArgs) -> Result<()> {
    let answers = Answers::load(&args.answers)?;
    // The usual server runtime: one worker for each core, as in Tribune.
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    runtime.block_on(async {
        let app = router(kind, &answers)?.route("/readyz", get(|| async { "ready" }));
        // Nagle's algorithm would hold back the end of a chunked answer until
        // the client's delayed acknowledgement, and so punish SSE framing.
        let listener = TcpListener::bind(args.listen)
            .await
            .with_context(|| format!("listen on {}", args.listen))?
            .tap_io(|stream| {
                if let Err(error) = stream.set_nodelay(true) {
                    eprintln!("set TCP_NODELAY: {error}");
                }
            });
        axum::serve(listener, app).await.context("serve")
    })
}

fn router(kind: Kind, answers: &Answers) -> Result<Router> {
    match kind {
        Kind::Bare => bare::constant(answers),
        Kind::BareJson => bare::json(answers),
        Kind::RmcpJson => rmcp::json(answers),
        Kind::RmcpDefault => rmcp::default(answers),
        Kind::Tribune => anyhow::bail!("tribune is a program of its own"),
    }
}
