//! The symbols of the simulation. Their names are well known; their prices and sizes are invented.

use crate::market::symbol::{Status, Symbol};
use crate::number::{self, Price, Quantity, UNIT};

/// A symbol and its market at the start.
#[derive(Debug, Clone)]
pub struct Listing {
    pub symbol: Symbol,
    pub price: Price,
    /// The value of a typical order, in 10⁻⁸ of the quote asset.
    pub typical_order: i128,
    /// The share of market orders in the flow.
    pub market_share: f64,
}

impl Listing {
    /// Steps of the base asset that cost this much at the first price.
    pub fn steps_worth(&self, money: i128) -> i128 {
        money * UNIT / i128::from(self.price) / self.symbol.step
    }
}

/// Base, quote, status, price, tick, step, typical order in thousandths of the quote asset. The product of tick and
/// step has at most eight places, so that money is exact on the wire.
const ROWS: [(&str, &str, Status, &str, &str, &str, i128); 14] = [
    ("BTC", "USDT", Status::Trading, "64000", "0.01", "0.00001", 900_000),
    ("ETH", "USDT", Status::Trading, "3200", "0.01", "0.0001", 700_000),
    ("BNB", "USDT", Status::Trading, "580", "0.01", "0.001", 400_000),
    ("SOL", "USDT", Status::Trading, "150", "0.01", "0.001", 500_000),
    ("XRP", "USDT", Status::Trading, "0.55", "0.0001", "0.1", 300_000),
    ("DOGE", "USDT", Status::Trading, "0.12", "0.00001", "1", 250_000),
    ("ADA", "USDT", Status::Trading, "0.45", "0.0001", "0.1", 200_000),
    ("ETH", "BTC", Status::Trading, "0.05", "0.00001", "0.001", 20),
    ("BTC", "USDC", Status::Trading, "64000", "0.01", "0.00001", 600_000),
    ("LINK", "USDT", Status::Trading, "14", "0.01", "0.01", 200_000),
    ("PEPE", "USDT", Status::Trading, "0.00001", "0.00000001", "1", 150_000),
    ("AVAX", "USDT", Status::Trading, "28", "0.01", "0.01", 200_000),
    ("LUNA", "USDT", Status::Break, "0.5", "0.0001", "0.01", 50_000),
    ("XMR", "USDT", Status::Halt, "160", "0.1", "0.001", 50_000),
];

const BUSY_SHARE: f64 = 0.12;
/// At the default rate of events a quiet symbol trades once in half an hour or so.
const QUIET_SHARE: f64 = 0.002;

pub fn well_known() -> Vec<Listing> {
    let listing = |(base, quote, status, price, tick, step, typical): (&str, &str, Status, &str, &str, &str, i128)| {
        let grid = (number::parse_price(tick).unwrap_or(1), number::parse(step).unwrap_or(1));
        Listing {
            symbol: symbol(base, quote, status, grid),
            price: number::parse_price(price).unwrap_or(UNIT as Price),
            typical_order: typical * UNIT / 1_000,
            market_share: BUSY_SHARE,
        }
    };
    ROWS.into_iter().map(listing).collect()
}

/// Quiet symbols with invented names, to make the list long. Prices and steps are those of the well-known ones.
pub fn extra(count: usize, seed: u64) -> Vec<Listing> {
    const QUOTES: [&str; 3] = ["USDT", "USDC", "FDUSD"];
    let mut random = fastrand::Rng::with_seed(seed);
    let models = well_known();
    let mut listing = |index: usize| {
        let model = models[index % models.len()].clone();
        let grid = (model.symbol.tick, model.symbol.step);
        Listing {
            symbol: symbol(&extra_base(index / QUOTES.len()), QUOTES[index % QUOTES.len()], Status::Trading, grid),
            typical_order: i128::from(random.u32(20..200)) * UNIT,
            market_share: QUIET_SHARE * f64::from(random.u32(1..10)),
            ..model
        }
    };
    (0..count).map(&mut listing).collect()
}

fn symbol(base: &str, quote: &str, status: Status, grid: (Price, Quantity)) -> Symbol {
    let min_notional = if quote == "BTC" { UNIT / 10_000 } else { 5 * UNIT };
    Symbol { status, min_notional: Some(min_notional), ..Symbol::new(&format!("{base}{quote}"), base, quote, grid) }
}

/// `AAAQX`, `AABQX`, …: no coin has a name like that.
fn extra_base(index: usize) -> String {
    let letter = |value: usize| char::from(b'A' + (value % 26) as u8);
    format!("{}{}{}QX", letter(index / 676), letter(index / 26), letter(index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_exact_on_the_wire() {
        for listing in well_known().into_iter().chain(extra(2_000, 1)) {
            let symbol = &listing.symbol;
            assert_eq!(i128::from(symbol.tick) * symbol.step % UNIT, 0, "{}", symbol.name);
            assert_eq!(listing.price % symbol.tick, 0, "{}", symbol.name);
            assert!(listing.typical_order > 0);
        }
    }

    #[test]
    fn names_are_unique() {
        let all: Vec<String> =
            well_known().into_iter().chain(extra(2_000, 1)).map(|listing| listing.symbol.name).collect();
        let unique: std::collections::HashSet<&String> = all.iter().collect();
        assert_eq!(unique.len(), all.len());
    }
}
