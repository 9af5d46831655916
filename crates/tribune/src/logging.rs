//! Log lines on standard error. They are gathered and written by a thread of their own a few times
//! a second, so that neither a slow reader nor the writing itself delays an answer. Names of files, users and clients are in
//! them, chosen by others: control characters are escaped.

#![allow(clippy::disallowed_methods, reason = "the last lines are written within real time")]

use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::{DefaultFields, Writer};
use tracing_subscriber::fmt::{FormatFields, MakeWriter};
use tribune_core::escape_controls;

use crate::cli::{Common, LogFormat};

/// rmcp and tantivy may log messages and paths, and TLS logs each failed certificate check; our own lines have what an
/// operator needs.
const OTHERS: &str = "rmcp=off,tantivy=warn,notify=error,rustls_platform_verifier=off";
const WRITE_EVERY: Duration = Duration::from_millis(100);
const LAST_LINES_WITHIN: Duration = Duration::from_secs(2);
/// Lines beyond this are dropped, and counted, while standard error cannot be written to.
const MAX_GATHERED_BYTES: usize = 4 * 1024 * 1024;

/// Logs until the guard is dropped, which writes what is left.
pub fn start(common: &Common) -> anyhow::Result<LogGuard> {
    let filter = match common.log.as_ref().filter(|log| !log.is_empty()) {
        // A bare level sets ours alone.
        Some(level) if level.parse::<tracing::Level>().is_ok() => format!("{level},{OTHERS}"),
        // Unless it is asked for by name: rmcp's lines hold what callers ask.
        Some(filter) if !filter.contains("rmcp") => format!("{filter},rmcp=off"),
        Some(filter) => filter.clone(),
        None => format!("info,{OTHERS}"),
    };
    let filter = EnvFilter::try_new(&filter).map_err(|e| {
        anyhow::anyhow!("--log `{filter}` is not a level or filter ({e}); use error, warn, info, debug or trace")
    })?;
    let gathered = Gathered::default();
    let lines = tracing_subscriber::fmt().with_env_filter(filter);
    match common.log_format {
        LogFormat::Text => lines
            .with_writer(gathered.clone())
            .fmt_fields(EscapedFields::default())
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .with_target(false)
            .init(),
        LogFormat::Json => {
            let lines = lines.with_writer(Json(gathered.clone())).json();
            lines.flatten_event(true).with_current_span(false).with_span_list(false).init();
        }
    }
    let writer = gathered.clone();
    let thread = std::thread::Builder::new().name("log".to_owned()).spawn(move || {
        while !writer.0.lock().closed {
            std::thread::park_timeout(WRITE_EVERY);
            writer.write_out();
        }
    })?;
    Ok(LogGuard { gathered, thread: Some(thread) })
}

/// The fields of a line, without colours of their own.
#[derive(Default)]
struct EscapedFields(DefaultFields);

impl<'w> FormatFields<'w> for EscapedFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut text = String::new();
        self.0.format_fields(Writer::new(&mut text), fields)?;
        writer.write_str(&escape_controls(&text))
    }
}

/// Lines of JSON, which itself leaves some control characters as they are.
#[derive(Clone)]
struct Json(Gathered);

impl Write for Json {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let escaped = escape_controls(text.trim_end_matches('\n'));
        self.0.write(format!("{escaped}\n").as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Json {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[derive(Clone, Default)]
struct Gathered(Arc<Mutex<Lines>>);

#[derive(Default)]
struct Lines {
    bytes: Vec<u8>,
    dropped: u64,
    closed: bool,
}

impl Gathered {
    fn write_out(&self) {
        let mut lines = self.0.lock();
        let bytes = std::mem::take(&mut lines.bytes);
        let dropped = std::mem::take(&mut lines.dropped);
        drop(lines);
        let mut err = std::io::stderr().lock();
        // There is nowhere to report that standard error cannot be written to.
        let _ = err.write_all(&bytes);
        if dropped > 0 {
            let _ = writeln!(err, "{dropped} log lines were dropped because standard error was too slow");
        }
    }
}

impl Write for Gathered {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let mut lines = self.0.lock();
        if lines.bytes.len() + line.len() > MAX_GATHERED_BYTES {
            lines.dropped += 1;
        } else {
            lines.bytes.extend_from_slice(line);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Gathered {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

/// Writes the last lines when it is dropped.
pub struct LogGuard {
    gathered: Gathered,
    thread: Option<JoinHandle<()>>,
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        self.gathered.0.lock().closed = true;
        let Some(thread) = self.thread.take() else { return };
        thread.thread().unpark();
        // If standard error is not read, the thread may never finish; the process must still stop.
        let until = Instant::now() + LAST_LINES_WITHIN;
        while !thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        if thread.is_finished() {
            self.gathered.write_out();
        }
    }
}
