//! Prints what a file holds: `cargo run -p tribune-extract --example text -- FILE`
#![allow(clippy::print_stdout, reason = "a program")]

use tribune_extract::{Extracted, Format, Problem, Receive, Stop, Workers};

struct Printed;

impl Receive for Printed {
    fn extracted(&mut self, found: Extracted) -> Result<(), Stop> {
        if std::env::var_os("PLACES").is_some() {
            println!("== {} {:?} {:?} {:?}", found.within, found.title, found.fields, found.places);
        }
        println!("{}", found.text);
        Ok(())
    }

    fn problem(&mut self, problem: Problem) -> Result<(), Stop> {
        println!("PROBLEM {problem}");
        Ok(())
    }
}

fn main() -> std::io::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_default();
    let extension = path.rsplit('.').next().unwrap_or_default().to_owned();
    let format = Format::ALL.into_iter().find(|format| format.extensions().contains(&&*extension));
    let format = format.unwrap_or(Format::Text);
    let _ = Workers::here().extract(format, std::fs::read(&path)?, 64 << 20, &mut Printed);
    Ok(())
}
