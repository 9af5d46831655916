//! A real Redis for one test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{PATIENCE, free_port};

pub struct Redis {
    child: Option<Child>,
    dir: tempfile::TempDir,
    pub port: u16,
}

impl Redis {
    pub fn start() -> Self {
        let mut redis = Self { child: None, dir: tempfile::tempdir().expect("a folder"), port: free_port() };
        // Another program may have taken the port meanwhile.
        for _ in 0..5 {
            if redis.runs(&[]) {
                return redis;
            }
            redis.kill();
            redis.port = free_port();
        }
        panic!("no redis-server would start");
    }

    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Restarts it empty, on the same port.
    pub fn run(&mut self, args: &[&str]) {
        assert!(self.runs(args), "redis-server does not start");
    }

    fn runs(&mut self, args: &[&str]) -> bool {
        let child = Command::new("redis-server")
            .args(["--bind", "127.0.0.1", "--port", &self.port.to_string()])
            .args(["--save", "", "--appendonly", "no", "--dir"])
            .arg(self.dir.path())
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("redis-server is missing: run ./test, which installs what the tests need");
        let child = self.child.insert(child);
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if child.try_wait().expect("waited").is_some() {
                return false;
            }
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }

    /// `STOP` or `CONT`.
    pub fn signal(&self, name: &str) {
        let pid = self.child.as_ref().expect("running").id();
        let told = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
        assert!(told.expect("kill").success());
    }

    pub fn connect(&self) -> Connection {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("Redis");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Connection(BufReader::new(stream))
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Enough of the protocol to inspect the data.
pub struct Connection(BufReader<TcpStream>);

impl Connection {
    /// The strings of an answer; empty for a missing key.
    pub fn ask(&mut self, words: &[&str]) -> Vec<String> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.0.get_mut().write_all(request.as_bytes()).expect("asked");
        self.answer()
    }

    fn answer(&mut self) -> Vec<String> {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("an answer");
        let (kind, rest) = line.trim_end().split_at(1);
        let count = || rest.parse::<i64>().expect("a number");
        match kind {
            "$" if count() < 0 => Vec::new(),
            "$" => {
                let mut bytes = vec![0; usize::try_from(count()).expect("a length") + 2];
                self.0.read_exact(&mut bytes).expect("a string");
                bytes.truncate(bytes.len() - 2);
                vec![String::from_utf8_lossy(&bytes).into_owned()]
            }
            "*" => (0..count()).flat_map(|_| self.answer()).collect(),
            _ => vec![rest.to_owned()],
        }
    }
}
