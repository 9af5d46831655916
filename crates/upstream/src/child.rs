//! A server that is a program of its own: little environment, a group to end, and its last words.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use process_wrap::tokio::{CommandWrap, KillOnDrop};
use rmcp::transport::TokioChildProcess;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, BufReader};
use tokio::process::{ChildStderr, Command};
use tokio_util::sync::CancellationToken;

use crate::spec::Reach;
use crate::words::{cut, line};

/// What programs need to run at all. Anything else, keys above all, is given to a server by name.
const INHERITED: [&str; 12] = [
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TMPDIR",
    "TZ",
    "USER",
    "LOGNAME",
    "SHELL",
    "SYSTEMROOT",
    "TEMP",
];
const MAX_LINE_BYTES: usize = 1_000;
const MAX_LAST_WORDS_CHARS: usize = 200;
const A_MOMENT: Duration = Duration::from_millis(200);

/// The last line that a child wrote to its standard error: mostly why it ended.
#[derive(Clone, Default)]
pub(crate) struct LastWords(Option<Arc<Words>>);

#[derive(Default)]
struct Words {
    last: Mutex<String>,
    /// Cancelled when there will be no more.
    ended: CancellationToken,
}

impl LastWords {
    /// What happened, and the last words if there are any. What was said is read a moment later than heard.
    pub(crate) async fn after(&self, what: &str) -> String {
        let Some(words) = &self.0 else {
            return what.to_owned();
        };
        drop(tokio::time::timeout(A_MOMENT, words.ended.cancelled()).await);
        let last = words.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_empty() {
            what.to_owned()
        } else {
            format!("{what}; its last words: {last}")
        }
    }
}

/// Starts the program. It ends when its standard input closes, as it does when we die, or when it is killed,
/// as it is when the transport is dropped.
pub(crate) fn spawn(server: &str, reach: &Reach) -> std::io::Result<(TokioChildProcess, LastWords)> {
    let mut command = CommandWrap::from(command(reach)?);
    command.wrap(KillOnDrop);
    // What it starts itself (`npx`, `uvx`, a shell) goes with it.
    #[cfg(unix)]
    command.wrap(process_wrap::tokio::ProcessGroup::leader());
    let (child, stderr) = TokioChildProcess::builder(command).stderr(Stdio::piped()).spawn()?;
    let words = stderr.map(|stderr| {
        let words = Arc::new(Words::default());
        tokio::spawn(follow(server.to_owned(), stderr, Arc::clone(&words)));
        words
    });
    Ok((child, LastWords(words)))
}

fn command(reach: &Reach) -> std::io::Result<Command> {
    let Reach::Command {
        program,
        args,
        env,
        cwd,
    } = reach
    else {
        return Err(std::io::Error::other("not a command"));
    };
    let mut command = Command::new(program);
    command.args(args).env_clear();
    command.envs(
        INHERITED
            .iter()
            .filter_map(|name| Some((name, std::env::var_os(name)?))),
    );
    command.envs(env.iter().map(|(name, value)| (name, value)));
    if let Some(cwd) = cwd {
        command.current_dir(cwd);
    }
    Ok(command)
}

/// Everything a child says there goes to the log, a line at a time.
async fn follow(server: String, stderr: ChildStderr, words: Arc<Words>) {
    let _until_here = words.ended.clone().drop_guard();
    let mut reader = BufReader::new(stderr);
    while let Some(said) = next_line(&mut reader).await {
        let said = line(&said, MAX_LINE_BYTES);
        if !said.is_empty() {
            tracing::debug!(%server, "stderr: {said}");
            *words.last.lock().unwrap_or_else(PoisonError::into_inner) = cut(&said, MAX_LAST_WORDS_CHARS);
        }
    }
}

/// The beginning of the next line; the rest of a long one is read and dropped.
async fn next_line(reader: &mut (impl AsyncBufRead + Unpin)) -> Option<String> {
    let mut kept = Vec::new();
    loop {
        let available = reader.fill_buf().await.ok()?;
        if available.is_empty() {
            return (!kept.is_empty()).then(|| String::from_utf8_lossy(&kept).into_owned());
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let part = &available[..end.unwrap_or(available.len())];
        let room = MAX_LINE_BYTES.saturating_sub(kept.len());
        kept.extend_from_slice(&part[..part.len().min(room)]);
        let used = end.map_or(available.len(), |end| end + 1);
        reader.consume(used);
        if end.is_some() {
            return Some(String::from_utf8_lossy(&kept).into_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn long_lines_are_kept_from_growing() {
        let text = format!("{}\nshort\n\nlast", "x".repeat(100_000));
        let mut reader = BufReader::with_capacity(64, text.as_bytes());
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut reader).await {
            lines.push(line);
        }
        assert_eq!(lines, ["x".repeat(MAX_LINE_BYTES).as_str(), "short", "", "last"]);
    }

    #[test]
    fn the_environment_is_little_and_what_was_asked_for() {
        let reach = Reach::Command {
            program: "p".to_owned(),
            args: vec!["a".to_owned()],
            env: vec![("KEY".to_owned(), "v".to_owned())],
            cwd: None,
        };
        let command = command(&reach).expect("a command");
        let names: Vec<String> = command
            .as_std()
            .get_envs()
            .map(|(name, _)| name.to_string_lossy().into_owned())
            .collect();
        assert!(
            names
                .iter()
                .all(|name| name == "KEY" || INHERITED.contains(&name.as_str())),
            "{names:?}"
        );
        assert!(names.contains(&"KEY".to_owned()) && names.contains(&"PATH".to_owned()));
    }
}
