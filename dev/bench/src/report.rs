//! The reports, as Markdown.

use std::{env, fmt::Write as _, fs, path::Path, thread::available_parallelism, time::SystemTime};

use anyhow::{Context, Result};

use crate::{protocol::Workload, servers::Kind};

/// One round's numbers for one server and workload.
#[derive(Clone, Copy)]
pub struct Sample {
    pub rate: f64,
    pub server_cpu_us: f64,
    pub client_cpu_us: f64,
    /// Cores taken by processes that are not part of the measurement.
    pub other_cores: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    pub answer_bytes: f64,
    pub rss_kib: f64,
    pub threads: f64,
    pub failures: u64,
}

/// A line of the comparison.
pub struct Row {
    pub kind: Kind,
    pub workload: Workload,
    pub samples: Vec<Sample>,
}

impl Row {
    pub fn new(kind: Kind, workload: Workload) -> Self {
        Self { kind, workload, samples: Vec::new() }
    }

    /// Over all rounds: a median would hide them.
    pub fn failures(&self) -> u64 {
        self.samples.iter().map(|sample| sample.failures).sum()
    }

    fn sorted(&self, of: impl Fn(&Sample) -> f64) -> Vec<f64> {
        let mut values: Vec<f64> = self.samples.iter().map(of).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    fn median(&self, of: impl Fn(&Sample) -> f64) -> f64 {
        let values = self.sorted(of);
        let middle = values.len() / 2;
        match values.get(middle) {
            None => f64::NAN,
            Some(&value) if values.len() % 2 == 1 => value,
            Some(&value) => f64::midpoint(value, values[middle - 1]),
        }
    }

    fn range(&self, of: impl Fn(&Sample) -> f64) -> String {
        match self.sorted(of).as_slice() {
            [] => "-".to_owned(),
            [least, .., most] => format!("{least:.0}-{most:.0}"),
            [only] => format!("{only:.0}"),
        }
    }

    fn markdown(&self) -> String {
        format!(
            "| {} | {} | {:.0} | {} | {:.1} | {:.2} | {:.2} | {:.0} | {:.1} | {:.0} | {:.1} | {:.2} | {} |",
            self.kind.label(),
            self.workload.label(),
            self.median(|sample| sample.rate),
            self.range(|sample| sample.rate),
            self.median(|sample| sample.server_cpu_us),
            self.median(|sample| sample.p50_ms),
            self.median(|sample| sample.p99_ms),
            self.median(|sample| sample.answer_bytes),
            self.median(|sample| sample.rss_kib) / 1024.0,
            self.median(|sample| sample.threads),
            self.median(|sample| sample.client_cpu_us),
            self.median(|sample| sample.other_cores),
            self.failures(),
        )
    }
}

pub fn comparison(facts: &[(&str, String)], rows: &[Row]) -> String {
    let mut text = heading("Tribune and its peers", facts);
    text.push_str(
        "| Server | Workload | Requests/s | Range | Server CPU µs/request | p50 ms | p99 ms \
         | Answer bytes | RSS MiB | Threads | Client CPU µs/request | Others' cores | Failures |\n\
         | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for row in rows {
        text.push_str(&row.markdown());
        text.push('\n');
    }
    text
}

/// A line of the `corpus-scale` report.
pub struct QueryRow {
    pub concurrency: usize,
    pub queries: usize,
    pub rate: f64,
    /// p50, p95, p99 and the longest.
    pub latencies_ms: [f64; 4],
    pub cpu_ms: f64,
    pub failures: u64,
}

pub fn scale(facts: &[(&str, String)], rows: &[QueryRow]) -> String {
    let mut text = heading("Tribune over a large corpus", facts);
    text.push_str(
        "| Concurrency | Queries | Queries/s | p50 ms | p95 ms | p99 ms | Max ms \
         | Server CPU ms/query | Failures |\n\
         | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for row in rows {
        let [p50, p95, p99, max] = row.latencies_ms;
        let line = format!(
            "| {} | {} | {:.0} | {p50:.2} | {p95:.2} | {p99:.2} | {max:.2} | {:.3} | {} |\n",
            row.concurrency, row.queries, row.rate, row.cpu_ms, row.failures,
        );
        text.push_str(&line);
    }
    text
}

pub fn heading(title: &str, facts: &[(&str, String)]) -> String {
    let mut text = format!("# {title}\n\n");
    for (name, value) in machine().iter().chain(facts) {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "- {name}: {value}");
    }
    text.push('\n');
    text
}

fn machine() -> Vec<(&'static str, String)> {
    let cores = available_parallelism().map_or(0, usize::from);
    vec![
        ("Date", httpdate::fmt_http_date(SystemTime::now())),
        ("CPU", format!("{}, {cores} cores", cpu_model())),
        ("Kernel", first_line("/proc/sys/kernel/osrelease")),
        ("Compiler", env!("BENCH_RUSTC_VERSION").to_owned()),
        ("Command", command_line()),
    ]
}

/// To be read before the run: afterwards it shows the benchmark itself.
pub fn load_average() -> String {
    first_line("/proc/loadavg")
}

fn cpu_model() -> String {
    fs::read_to_string("/proc/cpuinfo")
        .unwrap_or_default()
        .lines()
        .find(|line| line.starts_with("model name"))
        .and_then(|line| line.split_once(':'))
        .map_or_else(|| "unknown CPU".to_owned(), |(_, model)| model.trim().to_owned())
}

fn first_line(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or("unknown").to_owned()
}

fn command_line() -> String {
    let words: Vec<String> = env::args().collect();
    format!("`{}`", words.join(" "))
}

/// Prints the report and, where asked, also writes it to a file.
pub fn publish(text: &str, out: Option<&Path>) -> Result<()> {
    std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes())?;
    let Some(path) = out else { return Ok(()) };
    fs::write(path, text).with_context(|| format!("write {}", path.display()))
}
