//! A Redis for one test, on a free port of this machine; it ends with the test.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redis::{FromRedisValue, ToRedisArgs};
use tempfile::TempDir;

pub struct RedisServer {
    port: u16,
    password: Option<String>,
    arguments: Vec<String>,
    folder: TempDir,
    process: Option<Child>,
}

impl RedisServer {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// With further arguments.
    pub fn start_with(arguments: &[&str]) -> Self {
        let mut server = Self {
            port: 0,
            password: None,
            arguments: arguments.iter().map(ToString::to_string).collect(),
            folder: tempfile::tempdir().expect("a folder"),
            process: None,
        };
        // Between finding a port and using it another may take it.
        for _ in 0..5 {
            server.port = free_port();
            if server.try_launch() {
                return server;
            }
        }
        panic!("redis-server does not start: see what it says with `redis-server --port 0`");
    }

    pub fn with_password(password: &str) -> Self {
        let mut server = Self::start_with(&["--requirepass", password]);
        server.password = Some(password.to_owned());
        server
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Kills it; its data is lost.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("it is ours");
            process.wait().expect("it ends");
        }
    }

    /// Starts it again, empty.
    pub fn start_again(&mut self) {
        assert!(self.try_launch(), "redis-server does not start again on port {}", self.port);
    }

    /// Stops it from answering, with its connections open.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let process = self.process.as_ref().expect("it runs").id().to_string();
        let status = Command::new("kill").args([signal, &process]).status().expect("kill");
        assert!(status.success());
    }

    fn try_launch(&mut self) -> bool {
        let process = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &self.port.to_string()])
            .args(["--save", "", "--appendonly", "no", "--enable-debug-command", "yes"])
            .arg("--dir")
            .arg(self.folder.path())
            .args(&self.arguments)
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server must be installed (Debian: redis-server)");
        self.process = Some(process);
        let deadline = Instant::now() + crate::support::PATIENCE;
        while Instant::now() < deadline {
            if std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                // Whoever listens: it is ours only if it runs.
                let process = self.process.as_mut().expect("launched");
                return process.try_wait().expect("it is ours").is_none();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.kill();
        false
    }

    /// Runs a command on a connection of its own.
    pub fn does<T: FromRedisValue>(&self, name: &str, arguments: &[impl ToRedisArgs]) -> T {
        let secret = self.password.as_ref().map_or(String::new(), |password| format!(":{password}@"));
        let client = redis::Client::open(format!("redis://{secret}127.0.0.1:{}", self.port)).expect("an address");
        let mut connection = client.get_connection().expect("it runs");
        redis::cmd(name).arg(arguments).query(&mut connection).unwrap_or_else(|error| panic!("{name}: {error}"))
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
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
