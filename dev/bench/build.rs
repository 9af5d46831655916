//! Records the compiler that built the benchmark: the report must name the one
//! that was used, not whichever `rustc` happens to be on PATH at run time.

use std::{env, process::Command};

fn main() {
    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = Command::new(rustc)
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned());
    println!("cargo::rustc-env=BENCH_RUSTC_VERSION={version}");
    println!("cargo::rerun-if-changed=build.rs");
}
