//! Memory of many tracked and published books.

use anyhow::{Result, ensure};
use clap::Args;
use serde::{Deserialize, Serialize};
use tribune_binance::Moment;
use tribune_binance::feed::Alone;
use tribune_core::SystemClock;

use super::messages::{Flow, message};
use crate::own::Memory;

/// Messages per book, so that sides have grown and views have been replaced.
const MESSAGES: usize = 100;
const MAX_LEVELS: usize = 6_000;

#[derive(Args)]
pub struct MemoryArgs {
    #[arg(long)]
    books: u32,
    #[arg(long)]
    levels: u32,
}

#[derive(Serialize, Deserialize)]
pub struct Books {
    pub books: u32,
    pub levels: u32,
    /// More than before the first book.
    pub resident_bytes: u64,
}

pub fn measure(args: &MemoryArgs) -> Result<Books> {
    let levels = args.levels as usize;
    let mut flow = Flow::new(levels, 1);
    let snapshot = flow.book.snapshot(0, levels);
    let changes: Vec<String> = (0..MESSAGES).map(|_| flow.next().levels()).collect();
    let now = || Moment::now(&SystemClock);
    let before = Memory::now()?.resident;
    let mut books: Vec<(String, Alone<tribune_analytics::Watch>)> = (0..args.books)
        .map(|number| {
            let name = format!("S{number:04}USDT");
            let book = Alone::new(&name, snapshot.clone(), MAX_LEVELS, now());
            (name, book)
        })
        .collect();
    for (number, levels) in (0..).zip(&changes) {
        for (name, book) in &mut books {
            book.message(&message(name, number, levels), now());
        }
    }
    let after = Memory::now()?.resident;
    let live = books.iter().filter(|(_, book)| book.published().live().is_some());
    ensure!(live.count() == books.len(), "a book is not live after its messages");
    Ok(Books { books: args.books, levels: args.levels, resident_bytes: after.saturating_sub(before) })
}
