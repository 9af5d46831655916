//! Order books: kept exact by the exchange's procedure, and published for readers.

mod local;
mod side;
mod view;

pub use local::{BestQuote, Diff, Fault, Installed, LocalBook, Outcome, Snapshot};
pub use side::{Asks, Bids, Level, Order, Side};
pub use view::Depth;
