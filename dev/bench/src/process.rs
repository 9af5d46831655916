//! Child processes: starting, waiting until ready, stopping, and what the
//! kernel says they used.

use std::{
    ffi::OsString,
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use nix::{
    sys::{
        resource::{UsageWho, getrusage},
        signal::{Signal, kill},
        time::TimeVal,
    },
    unistd::{Pid, SysconfVar, sysconf},
};
use serde::de::DeserializeOwned;
use tokio::process::{Child, Command};

use crate::{http::Connection, protocol};

/// Short, because the time until a server is ready is measured.
const READY_POLL: Duration = Duration::from_millis(5);
const STOP_GRACE: Duration = Duration::from_secs(5);

/// A server under test. Dropping it kills it, so none outlives the benchmark,
/// not even when a step in between fails.
pub struct Server {
    pub addr: SocketAddr,
    pub pid: u32,
    child: Child,
    log: PathBuf,
}

impl Server {
    /// Tribune with these configuration tables, in its own folder.
    pub async fn tribune(program: &Path, home: &Path, tables: &str) -> Result<Self> {
        const READY_WITHIN: Duration = Duration::from_secs(30);
        fs::create_dir_all(home).with_context(|| format!("make {}", home.display()))?;
        let config = home.join("tribune.toml");
        fs::write(&config, tables).with_context(|| format!("write {}", config.display()))?;
        let addr = free_addr()?;
        let args: Vec<OsString> = vec![
            "serve".into(),
            "--log".into(),
            "warn".into(),
            "--config".into(),
            config.into(),
            "--listen".into(),
            addr.to_string().into(),
        ];
        Self::start(program, &args, addr, &home.join("log"), READY_WITHIN).await
    }

    /// Starts `program` with its output in `log` and waits until `/readyz`
    /// answers 200.
    pub async fn start(
        program: &Path,
        args: &[OsString],
        addr: SocketAddr,
        log: &Path,
        limit: Duration,
    ) -> Result<Self> {
        let child = spawn(program, args, log)?;
        let pid = child.id().context("the child ended at once")?;
        let mut server = Self { addr, pid, child, log: log.to_owned() };
        server.wait_ready(limit).await?;
        Ok(server)
    }

    async fn wait_ready(&mut self, limit: Duration) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < limit {
            self.check_alive()?;
            // A server that accepts but does not answer must not stall us.
            let asked = tokio::time::timeout(Duration::from_secs(2), is_ready(self.addr));
            if asked.await.is_ok_and(|ready| ready.unwrap_or(false)) {
                return Ok(());
            }
            tokio::time::sleep(READY_POLL).await;
        }
        bail!("not ready after {limit:?}; {}", tail(&self.log))
    }

    /// Distinguishes a crashed server from a slow one.
    pub fn check_alive(&mut self) -> Result<()> {
        match self.child.try_wait().context("ask after the server")? {
            None => Ok(()),
            Some(status) => bail!("the server ended with {status}; {}", tail(&self.log)),
        }
    }

    /// Stops the server, and kills it if it does not stop.
    pub async fn stop(mut self) -> Result<()> {
        let pid = i32::try_from(self.pid).context("process id")?;
        kill(Pid::from_raw(pid), Signal::SIGTERM).context("send SIGTERM")?;
        if tokio::time::timeout(STOP_GRACE, self.child.wait()).await.is_err() {
            self.child.kill().await.context("kill the server")?;
        }
        Ok(())
    }
}

async fn is_ready(addr: SocketAddr) -> Result<bool> {
    let mut connection = Connection::open(addr).await?;
    let request = protocol::ready_request(addr);
    Ok(connection.exchange(&request).await?.status == 200)
}

fn spawn(program: &Path, args: &[OsString], log: &Path) -> Result<Child> {
    let output = File::create(log).with_context(|| format!("create {}", log.display()))?;
    let errors = output.try_clone().context("share the log file")?;
    Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .kill_on_drop(true)
        .spawn()
        .with_context(|| format!("start {}", program.display()))
}

fn tail(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().rev().take(10).collect();
    let last: Vec<&str> = lines.into_iter().rev().collect();
    format!("its output ends:\n{}", last.join("\n"))
}

/// Resources that a finished child used.
pub struct Finished {
    pub elapsed: Duration,
    pub cpu: Duration,
    /// Not below this program's own size when it started the child: the kernel
    /// counts the moment before the child became another program.
    pub peak_kib: u64,
}

/// Runs a program to its end. No other child may be reaped meanwhile: its use
/// is read as the growth of what all reaped children used.
pub async fn run_to_end(program: &Path, args: &[OsString], log: &Path, limit: Duration) -> Result<Finished> {
    let before = children_cpu()?;
    let begun = Instant::now();
    let mut child = spawn(program, args, log)?;
    let status = tokio::time::timeout(limit, child.wait())
        .await
        .with_context(|| format!("not done after {limit:?}; {}", tail(log)))?
        .context("wait for the child")?;
    let elapsed = begun.elapsed();
    if !status.success() {
        bail!("{} ended with {status}; {}", program.display(), tail(log));
    }
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("getrusage")?;
    Ok(Finished {
        elapsed,
        cpu: children_cpu()?.saturating_sub(before),
        peak_kib: u64::try_from(usage.max_rss()).unwrap_or(0),
    })
}

/// Runs this program with other arguments and returns the last line of its output, the measurement.
pub async fn step<T: DeserializeOwned>(args: &[OsString], log: &Path, limit: Duration) -> Result<T> {
    let program = std::env::current_exe().context("find this program")?;
    run_to_end(&program, args, log, limit).await?;
    let output = fs::read_to_string(log).context("read what a step measured")?;
    match output.lines().last() {
        Some(line) => serde_json::from_str(line).with_context(|| format!("a step said {line:?}")),
        None => bail!("a step said nothing"),
    }
}

fn children_cpu() -> Result<Duration> {
    used_by(UsageWho::RUSAGE_CHILDREN)
}

/// User and system time of the calling thread so far.
pub fn thread_cpu() -> Result<Duration> {
    used_by(UsageWho::RUSAGE_THREAD)
}

fn used_by(who: UsageWho) -> Result<Duration> {
    let usage = getrusage(who).context("getrusage")?;
    Ok(duration(usage.user_time()) + duration(usage.system_time()))
}

fn duration(time: TimeVal) -> Duration {
    let seconds = u64::try_from(time.tv_sec()).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec()).unwrap_or(0);
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

/// User and system time of a live process so far, all its threads together.
pub fn cpu_time(pid: u32) -> Result<Duration> {
    let stat = read_proc(pid, "stat")?;
    ticks(stat_field(&stat, 14)? + stat_field(&stat, 15)?)
}

/// User, system and stolen time of the whole machine so far. Interrupts are
/// left out: the kernel charges them to no process, so taking a process's time
/// from the sum would make the network look like somebody else's work.
pub fn machine_time() -> Result<Duration> {
    let stat = fs::read_to_string("/proc/stat").context("read /proc/stat")?;
    let line = stat.lines().next().context("empty /proc/stat")?;
    let fields: Vec<u64> = line.split_whitespace().skip(1).map_while(|field| field.parse().ok()).collect();
    let [user, nice, system, _, _, _, _, stolen, ..] = fields[..] else {
        bail!("unexpected /proc/stat");
    };
    ticks(user + nice + system + stolen)
}

fn ticks(count: u64) -> Result<Duration> {
    let rate = sysconf(SysconfVar::CLK_TCK).context("sysconf")?.context("the system gives no clock tick")?;
    Ok(Duration::from_secs_f64(count as f64 / rate as f64))
}

pub fn threads(pid: u32) -> Result<u64> {
    stat_field(&read_proc(pid, "stat")?, 20)
}

/// Field `number` of /proc/PID/stat, counted from 1 as in proc(5). The second
/// one, the name, may hold spaces, so counting starts after its closing bracket.
fn stat_field(stat: &str, number: usize) -> Result<u64> {
    let (_, rest) = stat.rsplit_once(')').context("unexpected /proc/PID/stat")?;
    rest.split_whitespace()
        .nth(number - 3)
        .with_context(|| format!("no field {number} in /proc/PID/stat"))?
        .parse()
        .with_context(|| format!("field {number} of /proc/PID/stat"))
}

/// Resident memory of a live process.
pub struct Memory {
    pub now_kib: u64,
    pub peak_kib: u64,
}

pub fn memory(pid: u32) -> Result<Memory> {
    let status = read_proc(pid, "status")?;
    let field = |name: &str| -> Result<u64> {
        status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .and_then(|rest| rest.split_whitespace().next())
            .and_then(|number| number.parse().ok())
            .with_context(|| format!("no {name} in /proc/{pid}/status"))
    };
    Ok(Memory { now_kib: field("VmRSS:")?, peak_kib: field("VmHWM:")? })
}

fn read_proc(pid: u32, file: &str) -> Result<String> {
    let path = format!("/proc/{pid}/{file}");
    fs::read_to_string(&path).with_context(|| format!("read {path}"))
}

/// A loopback address that is free now. Another process could take it before
/// the server does; then the server says so and the run ends.
pub fn free_addr() -> Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("find a free port")?;
    listener.local_addr().context("find a free port")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_brackets_does_not_shift_the_fields() -> Result<()> {
        let stat = "7 (a) b) c) S 1 2 3 4 5 6 7 8 9 10 140 150 1 2 3 4 200 0";
        assert_eq!(stat_field(stat, 14)?, 140);
        assert_eq!(stat_field(stat, 15)?, 150);
        assert_eq!(stat_field(stat, 20)?, 200);
        Ok(())
    }

    #[test]
    fn this_process_has_memory_and_threads() -> Result<()> {
        let pid = std::process::id();
        assert!(memory(pid)?.peak_kib >= memory(pid)?.now_kib / 2);
        assert!(threads(pid)? >= 1);
        cpu_time(pid)?;
        Ok(())
    }
}
