//! Child processes that read files, with limits on time, memory and output.

#![allow(clippy::disallowed_methods, reason = "a child that does not answer is ended by the machine's clock")]

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::extracted::{Problem, Reason, Receive, Stop};
use crate::formats::Format;
use crate::pipe::{Reply, Request, read_json, write_frame, write_json};
use crate::worker::{MAX_FILE_BYTES, MEMORY_BYTES};

/// How long a parser may take for one file.
const MAX_TIME: Duration = Duration::from_secs(30);
/// What all documents of a file may come to.
const MAX_REPLIES_BYTES: u64 = 1 << 30;
/// One reply: a text within its limit, escaped as JSON.
const MAX_REPLY_BYTES: u64 = 256 << 20;
/// A file that ends its parser so often is given up.
const MAX_DEATHS: usize = 2;

/// Reads files in child processes, one file at a time in each.
pub struct Workers {
    start: Start,
    idle: Mutex<Vec<Worker>>,
}

enum Start {
    /// This program must call [`crate::worker::run`].
    Child { program: PathBuf, arguments: Vec<OsString> },
    /// In this process, without limits: for tests and trusted files.
    Here,
}

/// How one attempt at a file ended.
enum Ended {
    Done,
    Stopped,
    /// The worker had to be ended, or ended itself.
    Died(String),
}

impl Workers {
    pub fn new(program: impl Into<PathBuf>, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let arguments = arguments.into_iter().map(Into::into).collect();
        Self { start: Start::Child { program: program.into(), arguments }, idle: Mutex::default() }
    }

    /// Reads in this process: a crash or a loop is this process's.
    pub fn here() -> Self {
        Self { start: Start::Here, idle: Mutex::default() }
    }

    /// Gives everything in a file to `receive`. A file that cannot be read is a problem, never a failure.
    pub fn extract(
        &self,
        format: Format,
        bytes: Vec<u8>,
        max_text_bytes: usize,
        receive: &mut dyn Receive,
    ) -> Result<(), Stop> {
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return receive.problem(Problem::new(Reason::TooLarge, format!("more than {} MiB", MAX_FILE_BYTES >> 20)));
        }
        let Start::Child { program, arguments } = &self.start else {
            return crate::formats::read(format, bytes, max_text_bytes, receive);
        };
        let request = Request { format, max_text_bytes };
        let mut taken = 0;
        for death in 1.. {
            let worker = self.waiting().map_or_else(|| Worker::start(program, arguments), Ok);
            let ended = match worker {
                Ok(worker) => self.attempt(worker, &request, &bytes, &mut taken, receive),
                Err(error) => Ended::Died(format!("its parser could not be started: {error}")),
            };
            match ended {
                Ended::Done => break,
                Ended::Stopped => return Err(Stop),
                Ended::Died(why) if death >= MAX_DEATHS => {
                    return receive.problem(Problem::new(Reason::Killed, why));
                }
                Ended::Died(_) => {}
            }
        }
        Ok(())
    }

    /// A worker that waits for a file. One that has waited for long has ended.
    fn waiting(&self) -> Option<Worker> {
        let mut idle = self.idle();
        std::iter::from_fn(|| idle.pop())
            .find_map(|mut worker| matches!(worker.child.try_wait(), Ok(None)).then_some(worker))
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Worker>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One attempt at a file. `taken` replies of earlier attempts are not given again.
    fn attempt(
        &self,
        mut worker: Worker,
        request: &Request,
        bytes: &[u8],
        taken: &mut usize,
        receive: &mut dyn Receive,
    ) -> Ended {
        worker.deadline = Instant::now() + MAX_TIME;
        if let Err(error) = worker.send(request, bytes) {
            return Ended::Died(worker.why(&error));
        }
        let (mut seen, mut length) = (0, 0);
        loop {
            if !worker.wait(&*receive) {
                return Ended::Stopped;
            }
            let reply = match read_json(&mut worker, MAX_REPLY_BYTES) {
                Ok(Some(reply)) => reply,
                Ok(None) => return Ended::Died(worker.why(&io::ErrorKind::UnexpectedEof.into())),
                Err(error) => return Ended::Died(worker.why(&error)),
            };
            let is_new = seen >= *taken;
            seen += 1;
            let outcome = match reply {
                Reply::Done { goes_on } => {
                    if goes_on {
                        self.idle().push(worker);
                    }
                    return Ended::Done;
                }
                Reply::Extracted(_) | Reply::Problem(_) if !is_new => continue,
                Reply::Extracted(extracted) => {
                    length += extracted.text.len() as u64;
                    receive.extracted(extracted)
                }
                Reply::Problem(problem) => receive.problem(problem),
            };
            *taken = seen;
            if outcome.is_err() {
                return Ended::Stopped;
            }
            if length > MAX_REPLIES_BYTES {
                let problem = Problem::new(Reason::TooLarge, "what follows in it was not read");
                return if receive.problem(problem).is_ok() { Ended::Done } else { Ended::Stopped };
            }
        }
    }
}

/// A child process. Dropping it ends the process.
struct Worker {
    child: Child,
    to: ChildStdin,
    from: ChildStdout,
    deadline: Instant,
}

impl Worker {
    fn start(program: &PathBuf, arguments: &[OsString]) -> io::Result<Self> {
        let mut child = Command::new(program)
            .args(arguments)
            .env_clear()
            // An allocator that reserves memory in advance would raise the limit by as much.
            .env("MIMALLOC_ARENA_RESERVE", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (to, from) = pipes.ok_or_else(|| io::Error::other("the child has no pipes"))?;
        Ok(Self { child, to, from, deadline: Instant::now() })
    }

    fn send(&mut self, request: &Request, bytes: &[u8]) -> io::Result<()> {
        write_json(&mut self.to, request)?;
        write_frame(&mut self.to, bytes)?;
        self.to.flush()
    }

    /// Waits for a reply or the deadline; `false` if nobody wants a reply any more.
    fn wait(&self, receive: &dyn Receive) -> bool {
        let pause = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };
        while receive.is_wanted() {
            let ready = poll(&mut [PollFd::new(&self.from, PollFlags::IN)], Some(&pause));
            if ready != Ok(0) || Instant::now() >= self.deadline {
                return true;
            }
        }
        false
    }

    /// Why it ended, or has to.
    fn why(&mut self, error: &io::Error) -> String {
        match error.kind() {
            io::ErrorKind::TimedOut => format!("it took longer than {} s", MAX_TIME.as_secs()),
            io::ErrorKind::InvalidData => "its parser answered with more than a document may have".to_owned(),
            _ => format!("its parser crashed, or needed more than {} MiB of memory", MEMORY_BYTES >> 20),
        }
    }
}

/// Waits until the deadline at most.
impl Read for Worker {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.from, PollFlags::IN)], Some(&left))? {
            0 => Err(io::ErrorKind::TimedOut.into()),
            _ => self.from.read(buffer),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
