//! A server that Tribune starts as a child process: minimal environment, its own process group, bounded stderr.

use std::process::Stdio;
use std::time::Duration;

use process_wrap::tokio::{CommandWrap, KillOnDrop};
use rmcp::transport::TokioChildProcess;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, BufReader};
use tokio::process::{ChildStderr, Command};
use tokio::sync::watch;

use crate::sanitize::{single_line, truncate};
use crate::spec::ChildCommand;

/// What programs need to run at all. Everything else, secrets above all, is passed explicitly (`env`).
const INHERITED: [&str; 12] =
    ["PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "TZ", "USER", "LOGNAME", "SHELL", "SYSTEMROOT", "TEMP"];
const MAX_LINE_BYTES: usize = 1_000;
const MAX_REASON_CHARS: usize = 200;
/// How long to wait for the rest of stderr after a child has ended.
const STDERR_TIMEOUT: Duration = Duration::from_millis(200);

/// The last line that a child wrote to stderr, which mostly says why it ended.
#[derive(Clone, Default)]
pub(crate) struct LastStderrLine(Option<watch::Receiver<String>>);

impl LastStderrLine {
    /// Appends the line, if there is one, to the reason of a failure.
    pub(crate) async fn append_to(&self, reason: &str) -> String {
        let Some(mut line) = self.0.clone() else {
            return reason.to_owned();
        };
        // The end of the connection is noticed before the last bytes of stderr have been read.
        drop(tokio::time::timeout(STDERR_TIMEOUT, line.wait_for(|_| false)).await);
        match line.borrow().as_str() {
            "" => reason.to_owned(),
            line => format!("{reason}; last line on stderr: {line}"),
        }
    }
}

/// Starts the program. It ends when its standard input closes (also when Tribune dies), and is killed when the
/// transport is dropped.
pub(crate) fn spawn(server: &str, child: &ChildCommand) -> std::io::Result<(TokioChildProcess, LastStderrLine)> {
    let mut command = CommandWrap::from(command(child));
    command.wrap(KillOnDrop);
    // Launchers (`npx`, `uvx`, a shell) start the actual server; the group makes sure it is killed too.
    #[cfg(unix)]
    command.wrap(process_wrap::tokio::ProcessGroup::leader());
    let (child, pipe) = TokioChildProcess::builder(command).stderr(Stdio::piped()).spawn()?;
    let last_line = pipe.map(|pipe| {
        let (sender, last_line) = watch::channel(String::new());
        tokio::spawn(read_stderr(server.to_owned(), pipe, sender));
        last_line
    });
    Ok((child, LastStderrLine(last_line)))
}

fn command(child: &ChildCommand) -> Command {
    let mut command = Command::new(&child.program);
    command.args(&child.args).env_clear();
    command.envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.envs(child.env.iter().map(|(name, value)| (name, value)));
    if let Some(cwd) = &child.cwd {
        command.current_dir(cwd);
    }
    command
}

/// Logs stderr line by line and remembers the last one. At the end of stderr the sender is dropped.
async fn read_stderr(server: String, pipe: ChildStderr, last_line: watch::Sender<String>) {
    let mut reader = BufReader::new(pipe);
    while let Some(line) = next_line(&mut reader).await {
        let line = single_line(&line, MAX_LINE_BYTES);
        if !line.is_empty() {
            tracing::debug!(%server, "stderr: {line}");
            last_line.send_replace(truncate(&line, MAX_REASON_CHARS));
        }
    }
}

/// The first `MAX_LINE_BYTES` of the next line; the rest of a longer one is discarded.
async fn next_line(reader: &mut (impl AsyncBufRead + Unpin)) -> Option<String> {
    let mut line = Vec::new();
    loop {
        let available = reader.fill_buf().await.ok()?;
        if available.is_empty() {
            return (!line.is_empty()).then(|| String::from_utf8_lossy(&line).into_owned());
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let part = &available[..end.unwrap_or(available.len())];
        let room = MAX_LINE_BYTES.saturating_sub(line.len());
        line.extend_from_slice(&part[..part.len().min(room)]);
        let used = end.map_or(available.len(), |end| end + 1);
        reader.consume(used);
        if end.is_some() {
            return Some(String::from_utf8_lossy(&line).into_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn long_lines_are_truncated() {
        let text = format!("{}\nshort\n\nlast", "x".repeat(100_000));
        let mut reader = BufReader::with_capacity(64, text.as_bytes());
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut reader).await {
            lines.push(line);
        }
        assert_eq!(lines, ["x".repeat(MAX_LINE_BYTES).as_str(), "short", "", "last"]);
    }

    #[test]
    fn environment_is_minimal_plus_configured() {
        let command = command(&ChildCommand {
            program: "p".to_owned(),
            args: vec!["a".to_owned()],
            env: vec![("KEY".to_owned(), "v".to_owned())],
            cwd: None,
        });
        let names: Vec<String> =
            command.as_std().get_envs().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
        assert!(names.iter().all(|name| name == "KEY" || INHERITED.contains(&name.as_str())), "{names:?}");
        assert!(names.contains(&"KEY".to_owned()) && names.contains(&"PATH".to_owned()));
    }
}
