//! The exchange's endpoints and their weights.

/// An endpoint below `/api/v3/`.
#[derive(Debug, Clone, Copy)]
pub struct Endpoint {
    /// Its path there; also its name in errors and metrics.
    pub(super) path: &'static str,
    weight: Weight,
}

#[derive(Debug, Clone, Copy)]
enum Weight {
    Always(u32),
    ByLimit,
    /// For up to 20 symbols, up to 100, and more or all.
    BySymbols([u32; 3]),
}

impl Endpoint {
    pub const TIME: Self = Self::new("time", 1);
    pub const EXCHANGE_INFO: Self = Self::new("exchangeInfo", 20);
    pub const DEPTH: Self = Self { path: "depth", weight: Weight::ByLimit };
    pub const TRADES: Self = Self::new("trades", 25);
    pub const AGG_TRADES: Self = Self::new("aggTrades", 4);
    pub const KLINES: Self = Self::new("klines", 2);
    pub const AVG_PRICE: Self = Self::new("avgPrice", 2);
    pub const TICKER_24H: Self = Self { path: "ticker/24hr", weight: Weight::BySymbols([2, 40, 80]) };
    pub const ACCOUNT: Self = Self::new("account", 20);
    pub const ORDER: Self = Self::new("order", 4);
    pub const ORDER_TEST: Self = Self::new("order/test", 4);
    pub const OPEN_ORDERS: Self = Self { path: "openOrders", weight: Weight::BySymbols([6, 6, 80]) };
    pub const ALL_ORDERS: Self = Self::new("allOrders", 20);
    pub const MY_TRADES: Self = Self::new("myTrades", 20);
    /// Elsewhere: the dots are resolved before anything is sent.
    pub const API_RESTRICTIONS: Self = Self::new("../../sapi/v1/account/apiRestrictions", 1);

    const fn new(path: &'static str, weight: u32) -> Self {
        Self { path, weight: Weight::Always(weight) }
    }

    /// Of a request about so many symbols; `None` is all. `limit` is its parameter, if it has one.
    pub(super) const fn weight(self, symbols: Option<usize>, limit: Option<u32>) -> u32 {
        match (self.weight, symbols, limit) {
            (Weight::Always(weight), ..)
            | (Weight::BySymbols([weight, _, _]), Some(..=20), _)
            | (Weight::BySymbols([_, weight, _]), Some(..=100), _)
            | (Weight::BySymbols([_, _, weight]), ..) => weight,
            (Weight::ByLimit, _, None | Some(..=100)) => 5,
            (Weight::ByLimit, _, Some(..=500)) => 25,
            (Weight::ByLimit, _, Some(..=1000)) => 50,
            (Weight::ByLimit, ..) => 250,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_match_the_documentation() {
        let depth = |limit| Endpoint::DEPTH.weight(Some(1), Some(limit));
        assert_eq!([1, 100, 101, 500, 501, 1000, 1001, 5000].map(depth), [5, 5, 25, 25, 50, 50, 250, 250]);
        assert_eq!(Endpoint::DEPTH.weight(Some(1), None), 5);
        let tickers = |count| Endpoint::TICKER_24H.weight(Some(count), None);
        assert_eq!([1, 20, 21, 100, 101].map(tickers), [2, 2, 40, 40, 80]);
        assert_eq!(Endpoint::TICKER_24H.weight(None, None), 80);
        assert_eq!(Endpoint::EXCHANGE_INFO.weight(None, None), 20);
    }
}
