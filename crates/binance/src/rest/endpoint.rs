//! The exchange's endpoints and their weights.

/// An endpoint below `/api/v3/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Endpoint {
    Time,
    ExchangeInfo,
    Depth,
    Trades,
    AggTrades,
    Klines,
    AvgPrice,
    Ticker24h,
    Account,
    Order,
    OrderTest,
    OpenOrders,
    AllOrders,
    MyTrades,
    ApiRestrictions,
}

impl Endpoint {
    /// Its path below `/api/v3/`; also its name in errors and metrics.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Time => "time",
            Self::ExchangeInfo => "exchangeInfo",
            Self::Depth => "depth",
            Self::Trades => "trades",
            Self::AggTrades => "aggTrades",
            Self::Klines => "klines",
            Self::AvgPrice => "avgPrice",
            Self::Ticker24h => "ticker/24hr",
            Self::Account => "account",
            Self::Order => "order",
            Self::OrderTest => "order/test",
            Self::OpenOrders => "openOrders",
            Self::AllOrders => "allOrders",
            Self::MyTrades => "myTrades",
            // Elsewhere: the dots are resolved before anything is sent.
            Self::ApiRestrictions => "../../sapi/v1/account/apiRestrictions",
        }
    }
}

/// The weight of a request about so many symbols; `None` is all. `limit` is its parameter, if it has one.
pub const fn weight(endpoint: Endpoint, symbols: Option<usize>, limit: Option<u32>) -> u32 {
    match (endpoint, symbols) {
        (Endpoint::Time | Endpoint::ApiRestrictions, _) => 1,
        (Endpoint::ExchangeInfo, _) => 20,
        (Endpoint::Depth, _) => depth(limit),
        (Endpoint::Trades, _) => 25,
        (Endpoint::AggTrades | Endpoint::Order | Endpoint::OrderTest, _) => 4,
        (Endpoint::Klines | Endpoint::AvgPrice, _) | (Endpoint::Ticker24h, Some(..=20)) => 2,
        (Endpoint::Ticker24h, Some(..=100)) => 40,
        (Endpoint::OpenOrders, Some(_)) => 6,
        (Endpoint::Ticker24h | Endpoint::OpenOrders, _) => 80,
        (Endpoint::Account | Endpoint::AllOrders | Endpoint::MyTrades, _) => 20,
    }
}

const fn depth(limit: Option<u32>) -> u32 {
    match limit {
        None | Some(..=100) => 5,
        Some(..=500) => 25,
        Some(..=1000) => 50,
        Some(_) => 250,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_match_the_documentation() {
        let depth = |limit| weight(Endpoint::Depth, Some(1), Some(limit));
        assert_eq!([1, 100, 101, 500, 501, 1000, 1001, 5000].map(depth), [5, 5, 25, 25, 50, 50, 250, 250]);
        assert_eq!(weight(Endpoint::Depth, Some(1), None), 5);
        let tickers = |count| weight(Endpoint::Ticker24h, Some(count), None);
        assert_eq!([1, 20, 21, 100, 101].map(tickers), [2, 2, 40, 40, 80]);
        assert_eq!(weight(Endpoint::Ticker24h, None, None), 80);
        assert_eq!(weight(Endpoint::ExchangeInfo, None, None), 20);
    }
}
