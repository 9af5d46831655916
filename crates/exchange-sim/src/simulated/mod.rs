//! The simulated mode: seeded order flow over matching books, from which everything else follows.

pub mod catalogue;
pub mod engine;
pub mod flow;
pub mod history;
pub mod matching;
pub mod run;
