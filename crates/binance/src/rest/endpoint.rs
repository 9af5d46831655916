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

/// How many symbols a request is about, on which its weight depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    One,
    Several(usize),
    All,
}

/// The weight of a request. `limit` is its parameter, if it has one.
pub const fn weight(endpoint: Endpoint, scope: Scope, limit: Option<u32>) -> u32 {
    match endpoint {
        Endpoint::Time | Endpoint::ApiRestrictions => 1,
        Endpoint::ExchangeInfo => 20,
        Endpoint::Depth => depth(limit),
        Endpoint::Trades => 25,
        Endpoint::AggTrades | Endpoint::Order | Endpoint::OrderTest => 4,
        Endpoint::Klines | Endpoint::AvgPrice => 2,
        Endpoint::Ticker24h => match scope {
            Scope::One | Scope::Several(..=20) => 2,
            Scope::Several(..=100) => 40,
            Scope::Several(_) | Scope::All => 80,
        },
        Endpoint::OpenOrders => match scope {
            Scope::One => 6,
            Scope::Several(_) | Scope::All => 80,
        },
        Endpoint::Account | Endpoint::AllOrders | Endpoint::MyTrades => 20,
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
        let depth = |limit| weight(Endpoint::Depth, Scope::One, Some(limit));
        assert_eq!([1, 100, 101, 500, 501, 1000, 1001, 5000].map(depth), [5, 5, 25, 25, 50, 50, 250, 250]);
        assert_eq!(weight(Endpoint::Depth, Scope::One, None), 5);
        let tickers = |count| weight(Endpoint::Ticker24h, Scope::Several(count), None);
        assert_eq!([1, 20, 21, 100, 101].map(tickers), [2, 2, 40, 40, 80]);
        assert_eq!(weight(Endpoint::Ticker24h, Scope::All, None), 80);
        assert_eq!(weight(Endpoint::ExchangeInfo, Scope::All, None), 20);
    }
}
