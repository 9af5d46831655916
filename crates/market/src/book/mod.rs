//! Order books: kept exact by the exchange's procedure, and published for readers.

mod side;
mod view;

pub use side::{Asks, Bids, Level, Order, Side};
pub use view::Depth;
