//! CPU time and memory of this process.

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::process;

pub fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// Resident bytes of this process.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Memory {
    pub resident: u64,
    /// Without pages of files, which the system takes back when it needs them.
    pub own: u64,
    pub peak: u64,
}

impl Memory {
    pub fn now() -> Result<Self> {
        let status = fs::read_to_string("/proc/self/status").context("read /proc/self/status")?;
        let field = |name: &str| -> Result<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kib: u64 = line
                .and_then(|rest| rest.split_whitespace().next())
                .and_then(|number| number.parse().ok())
                .with_context(|| format!("no {name} in /proc/self/status"))?;
            Ok(kib * 1024)
        };
        Ok(Self { resident: field("VmRSS:")?, own: field("RssAnon:")?, peak: field("VmHWM:")? })
    }
}

/// CPU time of this process and the machine between two moments.
pub struct Watch {
    begun: Instant,
    own: Duration,
    machine: Duration,
}

pub struct Spent {
    pub wall: Duration,
    pub cpu: Duration,
    machine: Duration,
}

impl Watch {
    pub fn start() -> Result<Self> {
        Ok(Self {
            begun: Instant::now(),
            own: process::cpu_time(std::process::id())?,
            machine: process::machine_time()?,
        })
    }

    pub fn stop(self) -> Result<Spent> {
        Ok(Spent {
            wall: self.begun.elapsed(),
            cpu: process::cpu_time(std::process::id())?.saturating_sub(self.own),
            machine: process::machine_time()?.saturating_sub(self.machine),
        })
    }
}

impl Spent {
    /// Cores used by other processes meanwhile.
    pub fn other_cores(&self) -> f64 {
        self.machine.saturating_sub(self.cpu).as_secs_f64() / self.wall.as_secs_f64().max(1e-9)
    }
}

/// The smallest of the sorted durations that this share of them does not exceed.
pub fn at_share(sorted: &[Duration], share: f64) -> Option<Duration> {
    let rank = (sorted.len() as f64 * share).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

/// Says what was measured to whoever started this process, as the last line of the output.
pub fn tell(measured: &impl Serialize) -> Result<()> {
    let line = serde_json::to_string(measured)?;
    std::io::Write::write_all(&mut std::io::stdout(), format!("\n{line}\n").as_bytes())?;
    Ok(())
}
