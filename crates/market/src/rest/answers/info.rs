//! `exchangeInfo`: the truth for symbols and limits.

use std::sync::Arc;

use super::Decoded;
use crate::model::{Millis, Symbol, SymbolStatus};
use crate::rest::decode::{self, Fields, Read, Wrong};

/// How many unreadable symbols are named.
const MAX_REFUSED: usize = 4_096;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExchangeInfo {
    pub server_time: Millis,
    pub rate_limits: Vec<RateLimit>,
    pub symbols: Vec<Symbol>,
    /// Symbols that could not be read, with the reason: one of them must not take away all others.
    pub refused: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateLimit {
    /// `REQUEST_WEIGHT`, `ORDERS` or `RAW_REQUESTS`.
    pub kind: Arc<str>,
    pub interval_secs: u64,
    pub limit: u64,
}

impl ExchangeInfo {
    /// What requests may weigh in a minute.
    pub fn weight_per_minute(&self) -> Option<u32> {
        let limit = self.rate_limits.iter().find(|limit| &*limit.kind == "REQUEST_WEIGHT")?;
        let per_minute = limit.limit.checked_mul(60)?.checked_div(limit.interval_secs)?;
        u32::try_from(per_minute).ok().filter(|limit| *limit > 0)
    }
}

pub(in crate::rest) fn exchange_info(body: &[u8]) -> Decoded<ExchangeInfo> {
    let fields = decode::object(body)?;
    let mut info = ExchangeInfo {
        server_time: fields.millis("serverTime")?,
        rate_limits: nested(&fields, "rateLimits", rate_limit)?,
        symbols: Vec::new(),
        refused: Vec::new(),
    };
    let listed = fields.list("symbols")?;
    info.symbols.reserve(listed.len());
    for (at, raw) in listed.into_iter().enumerate() {
        match decode::object(raw.get().as_bytes()).and_then(|fields| symbol(&fields)) {
            Ok(symbol) => info.symbols.push(symbol),
            Err(wrong) if info.refused.len() < MAX_REFUSED => {
                info.refused.push((name_or_place(raw.get(), at), told(&wrong)));
            }
            Err(_) => {}
        }
    }
    if info.symbols.is_empty() && !info.refused.is_empty() {
        let (name, why) = &info.refused[0];
        return Err(Wrong::new("symbols", format!("cannot be read; of {name} {why}")));
    }
    let time = info.server_time;
    Ok((info, Some(time)))
}

fn name_or_place(raw: &str, at: usize) -> String {
    let name = decode::object(raw.as_bytes()).and_then(|fields| fields.word("symbol"));
    name.map_or_else(|_| format!("symbols[{at}]"), |name| name.chars().take(40).collect())
}

fn nested<T>(fields: &Fields<'_>, name: &str, read: fn(&Fields<'_>) -> Read<T>) -> Read<Vec<T>> {
    decode::each(fields.raw(name)?.get().as_bytes(), |fields| read(&fields)).map_err(|wrong| wrong.within(name))
}

fn rate_limit(fields: &Fields<'_>) -> Read<RateLimit> {
    let unit = match &*fields.word("interval")? {
        "SECOND" => 1,
        "MINUTE" => 60,
        "HOUR" => 3_600,
        "DAY" => 86_400,
        _ => return Err(Wrong::new("interval", "is not a known length of time")),
    };
    let interval_secs = fields.count("intervalNum")?.checked_mul(unit);
    Ok(RateLimit {
        kind: fields.word("rateLimitType")?.into(),
        interval_secs: interval_secs
            .filter(|secs| *secs > 0)
            .ok_or_else(|| Wrong::new("intervalNum", "is out of range"))?,
        limit: fields.count("limit")?,
    })
}

fn symbol(fields: &Fields<'_>) -> Read<Symbol> {
    let status_text: Arc<str> = fields.word("status")?.into();
    let mut symbol = Symbol {
        status: status(&status_text),
        status_text,
        ..Symbol::named(
            fields.word("symbol")?,
            fields.word("baseAsset")?,
            fields.word("quoteAsset")?,
        )
    };
    // Price and book need no rule: one that cannot be read does not take the symbol away.
    let unread = rules(&mut symbol, fields).err();
    symbol.unread_rule = unread.map(|wrong| told(&wrong).into());
    Ok(symbol)
}

fn told(wrong: &Wrong) -> String {
    format!("`{}` {}", wrong.field, wrong.why)
}

/// All rules that can be read; says of the first that cannot.
fn rules(symbol: &mut Symbol, fields: &Fields<'_>) -> Read<()> {
    let mut unread = Ok(());
    for (at, raw) in fields.list("filters")?.into_iter().enumerate() {
        let filter = decode::object(raw.get().as_bytes()).and_then(|filter| apply(symbol, &filter));
        unread = unread.and(filter.map_err(|wrong| wrong.within(&format!("filters[{at}]"))));
    }
    unread
}

fn status(text: &str) -> SymbolStatus {
    match text {
        "TRADING" => SymbolStatus::Trading,
        "HALT" => SymbolStatus::Halted,
        _ => SymbolStatus::Break,
    }
}

/// A rule of zero is a rule that is switched off. Other filters are the exchange's own business.
fn apply(symbol: &mut Symbol, filter: &Fields<'_>) -> Read<()> {
    match &*filter.word("filterType")? {
        "PRICE_FILTER" => set(&mut symbol.tick_size, filter.price_unless_zero("tickSize")),
        "LOT_SIZE" => {
            let quantity = |name| filter.quantity(name).map(|q| Some(q).filter(|q| !q.is_zero()));
            let step = set(&mut symbol.step_size, quantity("stepSize"));
            let least = set(&mut symbol.min_quantity, quantity("minQty"));
            let most = set(&mut symbol.max_quantity, quantity("maxQty"));
            step.and(least).and(most)
        }
        "MIN_NOTIONAL" => set(&mut symbol.min_notional, unless_zero(filter, "minNotional")),
        "NOTIONAL" => {
            let least = set(&mut symbol.min_notional, unless_zero(filter, "minNotional"));
            let most = set(&mut symbol.max_notional, unless_zero(filter, "maxNotional"));
            least.and(most)
        }
        _ => Ok(()),
    }
}

fn set<T>(rule: &mut Option<T>, read: Read<Option<T>>) -> Read<()> {
    *rule = read?;
    Ok(())
}

fn unless_zero(filter: &Fields<'_>, name: &str) -> Read<Option<crate::number::Notional>> {
    filter
        .notional(name)
        .map(|money| Some(money).filter(|money| money.units() != 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn info() -> Value {
        json!({
            "timezone": "UTC", "serverTime": 1_700_000_000_000i64,
            "rateLimits": [
                {"rateLimitType": "REQUEST_WEIGHT", "interval": "MINUTE", "intervalNum": 1, "limit": 6000},
                {"rateLimitType": "ORDERS", "interval": "SECOND", "intervalNum": 10, "limit": 100},
            ],
            "symbols": [
                {"symbol": "TUSDT", "status": "TRADING", "baseAsset": "T", "quoteAsset": "USDT", "filters": [
                    {"filterType": "PRICE_FILTER", "minPrice": "0.00001", "maxPrice": "100", "tickSize": "0.00001000"},
                    {"filterType": "LOT_SIZE", "minQty": "1", "maxQty": "90000000", "stepSize": "1.00"},
                    {"filterType": "NOTIONAL", "minNotional": "5.0", "maxNotional": "9000000.00000000"},
                    {"filterType": "ICEBERG_PARTS", "limit": 10},
                ]},
                {"symbol": "OLDBTC", "status": "BREAK", "baseAsset": "OLD", "quoteAsset": "BTC", "filters": [
                    {"filterType": "MIN_NOTIONAL", "minNotional": "0.0001"},
                    {"filterType": "PRICE_FILTER", "tickSize": "0.00000000"},
                ]},
            ],
        })
    }

    fn read(info: &Value) -> Read<ExchangeInfo> {
        exchange_info(info.to_string().as_bytes()).map(|(info, _)| info)
    }

    #[test]
    fn symbols_and_limits_are_read() {
        let info = read(&info()).expect("info");
        assert_eq!(info.weight_per_minute(), Some(6000));
        let symbol = &info.symbols[0];
        assert_eq!((&*symbol.base, &*symbol.quote), ("T", "USDT"));
        assert_eq!(
            symbol.tick_size.map(|tick| tick.to_string()).as_deref(),
            Some("0.00001")
        );
        assert_eq!(symbol.step_size.map(|step| step.to_string()).as_deref(), Some("1"));
        assert_eq!(
            symbol.max_notional.map(|most| most.to_string()).as_deref(),
            Some("9000000")
        );
        let old = &info.symbols[1];
        assert_eq!((old.status, &*old.status_text), (SymbolStatus::Break, "BREAK"));
        assert_eq!(old.tick_size, None, "a tick of zero is no rule");
        assert_eq!(
            old.min_notional.map(|least| least.to_string()).as_deref(),
            Some("0.0001")
        );
        assert!(info.refused.is_empty());
    }

    #[test]
    fn a_symbol_that_cannot_be_read_is_named_and_takes_no_other_away() {
        let mut odd = info();
        odd["symbols"][0]["quoteAsset"] = json!(7);
        let read = read(&odd).expect("the rest");
        assert_eq!(read.symbols.len(), 1);
        assert_eq!(
            read.refused,
            [("TUSDT".to_owned(), "`quoteAsset` is not a string".to_owned())]
        );
    }

    #[test]
    fn a_rule_that_cannot_be_read_is_unknown_and_its_symbol_stays() {
        let unread = |at: usize, name: &str, value: Value| {
            let mut odd = info();
            odd["symbols"][0]["filters"][at][name] = value;
            let read = read(&odd).expect("info");
            assert_eq!((read.symbols.len(), read.refused.len()), (2, 0));
            read.symbols[0].clone()
        };
        let why = |symbol: &Symbol| symbol.unread_rule.clone().expect("why").to_string();
        let odd = unread(1, "stepSize", json!(7));
        assert_eq!(why(&odd), "`filters[1].stepSize` is not a string");
        assert_eq!((odd.step_size, odd.min_quantity.is_some()), (None, true));
        let odd = unread(2, "minNotional", json!(5.0));
        assert_eq!(why(&odd), "`filters[2].minNotional` is not a string");
        assert_eq!((odd.min_notional, odd.max_notional.is_some()), (None, true));
        let odd = unread(3, "filterType", Value::Null);
        assert_eq!(why(&odd), "`filters[3].filterType` is not a string");
        let mut odd = info();
        odd["symbols"][0]["filters"] = json!("none");
        assert_eq!(why(&read(&odd).expect("info").symbols[0]), "`filters` is not a list");
        assert_eq!(read(&info()).expect("info").symbols[0].unread_rule, None);
    }

    #[test]
    fn an_answer_without_a_readable_symbol_is_refused() {
        let mut odd = info();
        odd["symbols"] = json!([{"symbol": "A"}, 7]);
        let wrong = read(&odd).expect_err("none");
        assert_eq!(wrong, Wrong::new("symbols", "cannot be read; of A `status` is missing"));
        odd["rateLimits"][0]["interval"] = json!("FORTNIGHT");
        assert_eq!(read(&odd).expect_err("limits").field, "rateLimits[0].interval");
    }
}
