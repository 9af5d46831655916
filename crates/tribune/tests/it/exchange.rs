//! The simulated exchange, as a process of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::{TestServer, binary, wait_for};

/// `tribune sim` as a process of its own.
pub struct Simulator {
    child: Child,
    pub url: String,
}

impl Simulator {
    pub fn start(args: &[&str]) -> Self {
        let mut child = Command::new(binary())
            .args(["sim", "--listen", "127.0.0.1:0"])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the simulator starts");
        let out = BufReader::new(child.stdout.take().expect("stdout"));
        let url = out
            .lines()
            .map_while(Result::ok)
            .find_map(|line| Some(line.trim().strip_prefix("REST")?.trim().to_owned()))
            .expect("its address");
        Self { child, url }
    }

    /// A server that uses this exchange.
    pub fn serve(&self) -> TestServer {
        let server = TestServer::builder()
            .documents(&[("housing.md", "# Housing\n\nA budget speech on housing and rail.\n")])
            .tables(&format!("[market]\nrest_url = \"{}\"\nsymbols = [\"BTCUSDT\"]", self.url))
            .start();
        wait_for("a live book", || {
            let book = server.call("binance_orderbook_l1", json!({"symbol": "BTCUSDT"}));
            book["book_state"] == "live"
        });
        server
    }
}

impl Simulator {
    /// Injects a fault, or clears them.
    pub fn fault(&self, fault: &Value) {
        let answer = ureq::post(format!("{}/sim/faults", self.url)).send(fault.to_string());
        assert!(answer.is_ok(), "{fault}: {answer:?}");
    }
}

impl Simulator {
    /// `STOP` or `CONT`.
    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let told = Command::new("kill").args([&format!("-{name}"), &pid]).status();
        assert!(told.expect("kill").success());
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
