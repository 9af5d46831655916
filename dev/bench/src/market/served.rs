//! `get_report` over HTTP with many concurrent callers, from memory and from Redis.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use tokio::process::{Child, Command};
use tribune_exchange_sim::{Exchange, Settings};

use crate::{
    http::Connection,
    load::{self, Check, Measured, Target},
    process::{self, Server},
    protocol,
};

pub const CALLERS: usize = 100;
/// Interval between two requests of a caller: 5,000 a second in total.
const PACE: Duration = Duration::from_millis(20);
const WARM_UP: Duration = Duration::from_secs(1);
const READY_WITHIN: Duration = Duration::from_secs(30);
const SYMBOLS: [&str; 3] = ["BTCUSDT", "ETHUSDT", "SOLUSDT"];

/// One row of the report: the cache and its latency.
pub struct Served {
    pub place: &'static str,
    pub pace: Option<Duration>,
    pub goal_ms: f64,
    pub measured: Measured,
}

/// `None` for Redis if there is no redis-server to start.
pub async fn measure(program: &Path, dir: &Path, seconds: u64) -> Result<Vec<Served>> {
    let measured = Duration::from_secs(seconds);
    let exchange = tribune_exchange_sim::start(Settings::default()).await?;
    let writer = format!("[market]\nrest_url = \"{}\"\nsymbols = {SYMBOLS:?}\n", exchange.rest_url());
    let memory = Server::tribune(program, &dir.join("memory"), &writer).await?;
    let mut rows = Vec::new();
    for pace in [Some(PACE), None] {
        rows.push(Served { place: "memory", pace, goal_ms: 5.0, measured: load(&memory, pace, measured).await? });
    }
    memory.stop().await?;
    let Some(redis) = Redis::start(dir).await? else {
        eprintln!("no redis-server: reports from Redis are not measured");
        return Ok(rows);
    };
    let cache = format!("[cache]\nurl = \"redis://{}\"\n", redis.addr);
    let node = Server::tribune(program, &dir.join("node"), &format!("{writer}{cache}")).await?;
    wait_for_report(node.addr).await?;
    let reader = Server::tribune(program, &dir.join("reader"), &format!("[market]\nfeed = false\n{cache}")).await?;
    for pace in [Some(PACE), None] {
        rows.push(Served {
            place: "Redis, by a process without a feed",
            pace,
            goal_ms: 20.0,
            measured: load(&reader, pace, measured).await?,
        });
    }
    reader.stop().await?;
    node.stop().await?;
    drop::<Exchange>(exchange);
    Ok(rows)
}

async fn load(server: &Server, pace: Option<Duration>, measured: Duration) -> Result<Measured> {
    wait_for_report(server.addr).await?;
    let target = Target {
        addr: server.addr,
        pid: server.pid,
        requests: SYMBOLS.map(|symbol| protocol::report_request(server.addr, symbol)).into(),
        connections: CALLERS,
        pace,
        check: Check::strict(),
    };
    load::run_for(target, WARM_UP, measured).await
}

async fn wait_for_report(addr: SocketAddr) -> Result<()> {
    let until = Instant::now() + READY_WITHIN;
    let check = Check::strict();
    for symbol in SYMBOLS {
        let request = protocol::report_request(addr, symbol);
        loop {
            let mut connection = Connection::open(addr).await?;
            let answer = connection.exchange(&request).await?;
            if check.check(&answer).is_ok() {
                break;
            }
            if Instant::now() > until {
                bail!("no report of {symbol}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    Ok(())
}

/// Killed when it is dropped.
struct Redis {
    addr: SocketAddr,
    _child: Child,
}

impl Redis {
    async fn start(dir: &Path) -> Result<Option<Self>> {
        let addr = process::free_addr()?;
        let home: PathBuf = dir.join("redis");
        fs::create_dir_all(&home).context("make a folder for Redis")?;
        let started = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &addr.port().to_string()])
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(&home)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn();
        let Ok(child) = started else { return Ok(None) };
        let until = Instant::now() + READY_WITHIN;
        while tokio::net::TcpStream::connect(addr).await.is_err() {
            if Instant::now() > until {
                bail!("redis-server does not answer");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(Some(Self { addr, _child: child }))
    }
}
