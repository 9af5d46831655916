//! The child's side: reads files from standard input, writes what they hold to standard output.
//!
//! Before it reads anything it gives up what a parser never needs: opening files and sockets, and more memory than
//! [`MEMORY_BYTES`].

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::extracted::{Extracted, Problem, Reason, Receive, Stop};
use crate::pipe::{Reply, Request, read_frame, read_json, write_json};

/// How much memory a parser may take.
pub const MEMORY_BYTES: u64 = 1 << 30;
/// The largest file.
pub const MAX_FILE_BYTES: u64 = 256 << 20;
/// A worker that has grown beyond this ends after its file.
const ROOMY_BYTES: u64 = 128 << 20;
/// Parsers recurse into nested files. Overflowing the stack ends the process.
const STACK_BYTES: usize = 64 << 20;
const MAX_REQUEST_BYTES: u64 = 4096;
/// How long a worker waits for its next file before it ends.
const IDLE_SECS: i64 = 10;

/// Serves one request after another until standard input ends.
pub fn run() -> io::Result<()> {
    // Unbuffered, so that what is asked next is still in the pipe.
    let from = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let memory = Memory::open()?;
    give_up_rights(&memory)?;
    // A parser's panic is a reply, not a message on the terminal.
    std::panic::set_hook(Box::new(|_| {}));
    let serving = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || serve(from, &memory))?;
    serving.join().unwrap_or_else(|_| Err(io::Error::other("the worker failed")))
}

fn serve(mut from: File, memory: &Memory) -> io::Result<()> {
    let mut to = BufWriter::new(io::stdout().lock());
    while is_asked(&from)? {
        let Some(request) = read_json::<Request>(&mut from, MAX_REQUEST_BYTES)? else { break };
        let Some(bytes) = read_frame(&mut from, MAX_FILE_BYTES)? else { break };
        let mut replies = Replies { to: &mut to, failure: None };
        let reading = || {
            // Only a broken pipe stops it.
            let _ = crate::formats::read(request.format, bytes, request.max_text_bytes, &mut replies);
        };
        if catch_unwind(AssertUnwindSafe(reading)).is_err() {
            let problem = Problem::new(Reason::Damaged, "its parser failed");
            let _ = replies.problem(problem);
        }
        if let Some(failure) = replies.failure {
            return Err(failure);
        }
        let goes_on = memory.resident()? < ROOMY_BYTES;
        write_json(&mut to, &Reply::Done { goes_on })?;
        to.flush()?;
        if !goes_on {
            break;
        }
    }
    Ok(())
}

/// Waits for the next request; `false` if there is none for some time.
fn is_asked(from: &File) -> io::Result<bool> {
    let ready = poll(&mut [PollFd::new(from, PollFlags::IN)], Some(&Timespec { tv_sec: IDLE_SECS, tv_nsec: 0 }))?;
    Ok(ready > 0)
}

struct Replies<'a, W> {
    to: &'a mut W,
    failure: Option<io::Error>,
}

impl<W: Write> Replies<'_, W> {
    fn send(&mut self, reply: &Reply) -> Result<(), Stop> {
        write_json(self.to, reply).map_err(|failure| {
            self.failure = Some(failure);
            Stop
        })
    }
}

impl<W: Write> Receive for Replies<'_, W> {
    fn extracted(&mut self, extracted: Extracted) -> Result<(), Stop> {
        self.send(&Reply::Extracted(extracted))
    }

    fn problem(&mut self, problem: Problem) -> Result<(), Stop> {
        self.send(&Reply::Problem(problem))
    }
}

/// Gives up what a parser never needs.
fn give_up_rights(memory: &Memory) -> io::Result<()> {
    let lower = |resource, most: u64| {
        let most = getrlimit(resource).maximum.map_or(most, |now| now.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })
    };
    lower(Resource::As, memory.mapped()? + MEMORY_BYTES)?;
    // Open descriptors stay; there are no new ones for files or sockets. With 0, not even waiting is allowed.
    lower(Resource::Nofile, 1)?;
    lower(Resource::Core, 0)?;
    lower(Resource::Fsize, 0)?;
    rustix::thread::set_no_new_privs(true)?;
    // Searches come first; a system that refuses this is only slower.
    let _ = rustix::process::nice(10);
    Ok(())
}

/// The memory of this process, from a descriptor that was opened while that was allowed.
struct Memory(File);

impl Memory {
    fn open() -> io::Result<Self> {
        File::open("/proc/self/statm").map(Self)
    }

    fn mapped(&self) -> io::Result<u64> {
        self.bytes(0)
    }

    fn resident(&self) -> io::Result<u64> {
        self.bytes(1)
    }

    /// `statm` counts pages.
    fn bytes(&self, column: usize) -> io::Result<u64> {
        let mut text = [0; 128];
        let length = self.0.read_at(&mut text, 0)?;
        let text = String::from_utf8_lossy(&text[..length]);
        let pages: Option<u64> = text.split_whitespace().nth(column).and_then(|pages| pages.parse().ok());
        let pages = pages.ok_or_else(|| io::Error::other("the size of this process is unknown"))?;
        Ok(pages * rustix::param::page_size() as u64)
    }
}
