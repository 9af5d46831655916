//! The weight of each endpoint.

use crate::api::params::Params;

/// The weight of a request, before it is answered; an unknown path weighs as much as a ping.
pub fn weight(endpoint: &str, params: &Params) -> u32 {
    // Parameters that are read here but not by the endpoint would count as read, so only those that matter are.
    let is_for_one = || params.get("symbol").is_some();
    match endpoint {
        "exchangeInfo" | "account" | "allOrders" | "myTrades" => 20,
        "depth" => match params.limit(100, 5_000).unwrap_or(100) {
            0..=100 => 5,
            101..=500 => 25,
            501..=1_000 => 50,
            _ => 250,
        },
        "trades" => 25,
        "aggTrades" | "order" => 4,
        "klines" | "avgPrice" => 2,
        "ticker/24hr" => match params.symbols() {
            Ok(Some(symbols)) if symbols.len() <= 20 => 2,
            Ok(Some(symbols)) if symbols.len() <= 100 => 40,
            Ok(_) => 80,
            Err(_) => 2,
        },
        "ticker/price" | "ticker/bookTicker" if is_for_one() => 2,
        "ticker/price" | "ticker/bookTicker" => 4,
        "openOrders" if is_for_one() => 6,
        "openOrders" => 80,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_match_the_documented_table() {
        let many: Vec<String> = (0..60).map(|index| format!("\"S{index}\"")).collect();
        let many = format!("symbols=[{}]", many.join(","));
        for (endpoint, query, expected) in [
            ("ping", "", 1),
            ("exchangeInfo", "", 20),
            ("depth", "symbol=A", 5),
            ("depth", "symbol=A&limit=101", 25),
            ("depth", "symbol=A&limit=1000", 50),
            ("depth", "symbol=A&limit=5000", 250),
            ("trades", "symbol=A", 25),
            ("aggTrades", "symbol=A", 4),
            ("klines", "symbol=A&interval=1m", 2),
            ("ticker/24hr", "symbol=A", 2),
            ("ticker/24hr", many.as_str(), 40),
            ("ticker/24hr", "", 80),
            ("ticker/price", "symbol=A", 2),
            ("ticker/bookTicker", "", 4),
            ("openOrders", "", 80),
        ] {
            let params = Params::parse(query, "").expect("parameters");
            assert_eq!(weight(endpoint, &params), expected, "{endpoint}?{query}");
        }
    }
}
