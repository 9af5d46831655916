//! A worker for the tests of this crate; the product starts its own program.

fn main() -> std::io::Result<()> {
    tribune_extract::worker::run()
}
