//! A PostgreSQL of the tests' own, on a free port of this machine, gone when they are.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);

/// Changes are on the disk when they are acknowledged, as they are unless a server is told otherwise.
pub struct PostgresServer {
    port: u16,
    binaries: PathBuf,
    user: String,
    folder: TempDir,
    running: Option<Running>,
}

/// The system ends the server when the thread that started it ends, also when that is killed with all the others.
struct Running {
    pid: u32,
    stop: mpsc::Sender<()>,
    thread: JoinHandle<()>,
}

impl PostgresServer {
    /// One for all tests that are running.
    pub fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<PostgresServer>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Self::start());
            *shared = Arc::downgrade(&server);
            server
        })
    }

    pub fn start() -> Self {
        let mut server = Self::stopped();
        server.start_again();
        server
    }

    /// Ready to be started.
    pub fn stopped() -> Self {
        let server = Self {
            port: free_port(),
            binaries: binaries(),
            user: unprivileged_user(),
            folder: tempfile::tempdir().expect("a folder"),
            running: None,
        };
        hand_over(server.folder.path(), &server.user);
        let made = server
            .command("initdb")
            .args(["-A", "trust", "-U", "tribune", "-E", "UTF8", "--no-locale", "--no-sync", "-D"])
            .arg(server.data())
            .stdout(Stdio::null())
            .output()
            .expect("initdb runs");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        server
    }

    pub fn url(&self) -> String {
        format!("postgres://tribune:secret-word@127.0.0.1:{}/postgres", self.port)
    }

    pub fn start_again(&mut self) {
        assert!(self.running.is_none(), "it is running");
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data()).args(["-p", &self.port.to_string()]);
        for setting in ["listen_addresses=127.0.0.1", "unix_socket_directories=", "max_connections=200"] {
            command.args(["-c", setting]);
        }
        let log = self.folder.path().join("log");
        command.stdout(Stdio::null()).stderr(std::fs::File::create(&log).expect("a log"));
        self.running = Some(run(command));
        let begun = Instant::now();
        while !self.accepts() {
            let said = || std::fs::read_to_string(&log).unwrap_or_default();
            assert!(begun.elapsed() < PATIENCE, "PostgreSQL does not start: {}", said());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Without waiting for anybody: clients lose their connections.
    pub fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            signal("-INT", running.pid);
            let _ = running.stop.send(());
            let _ = running.thread.join();
        }
    }

    fn accepts(&self) -> bool {
        let asked = Command::new(self.binaries.join("pg_isready"))
            .args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()])
            .status();
        asked.is_ok_and(|status| status.success())
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// PostgreSQL does not run as root.
    fn command(&self, binary: &str) -> Command {
        let mut command = Command::new("setpriv");
        if is_root() {
            let group = group_of(&self.user);
            command.args([&format!("--reuid={}", self.user), &format!("--regid={group}"), "--clear-groups"]);
        }
        command.arg("--pdeathsig=INT").arg(self.binaries.join(binary));
        command.current_dir(self.folder.path());
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(mut command: Command) -> Running {
    let (stop, stopped) = mpsc::channel();
    let (started, start) = mpsc::channel();
    let thread = thread::spawn(move || {
        let mut server: Child = command.spawn().expect("PostgreSQL and setpriv run");
        started.send(server.id()).expect("somebody waits");
        let _ = stopped.recv();
        let _ = server.wait();
    });
    let pid = start.recv().expect("PostgreSQL and setpriv run");
    Running { pid, stop, thread }
}

pub fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").args([name, &pid.to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "kill {name} {pid}");
}

fn binaries() -> PathBuf {
    let has_server =
        |folder: &PathBuf| ["postgres", "initdb", "pg_isready"].iter().all(|name| folder.join(name).is_file());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut debian: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .map(|versions| versions.flatten().map(|version| version.path().join("bin")).collect())
        .unwrap_or_default();
    debian.sort();
    std::env::split_paths(&path)
        .chain(debian.into_iter().rev())
        .find(has_server)
        .expect("PostgreSQL is missing: run ./test, which installs what the tests need")
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output().expect("id runs");
    output.stdout.trim_ascii() == b"0"
}

/// Debian's user for PostgreSQL, or nobody.
fn unprivileged_user() -> String {
    let there = Command::new("id").arg("postgres").output().is_ok_and(|output| output.status.success());
    if there { "postgres" } else { "nobody" }.to_owned()
}

fn group_of(user: &str) -> String {
    let output = Command::new("id").args(["-g", user]).output().expect("id runs");
    String::from_utf8_lossy(output.stdout.trim_ascii()).into_owned()
}

fn hand_over(folder: &Path, user: &str) {
    if is_root() {
        let done = Command::new("chown").arg(user).arg(folder).status();
        assert!(done.is_ok_and(|status| status.success()), "chown {user}");
    }
}

fn free_port() -> u16 {
    // Below the ports that the system gives to outgoing connections, so that nobody takes it meanwhile.
    loop {
        let random = RandomState::new().build_hasher().finish();
        let port = 10_000 + u16::try_from(random % 20_000).expect("less than 20,000");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
