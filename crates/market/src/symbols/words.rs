//! What the words of a question mean beside the names of assets.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::assets;
use super::id::{AnalyticsKind, Kind};
use crate::model::Interval;

/// The candles meant by whoever names no length.
pub(super) const DEFAULT_INTERVAL: Interval = Interval::H1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sense {
    /// Says nothing: "what", "please".
    Stop,
    /// Is about markets, without saying what is wanted.
    Market,
    /// Is about coins, and nothing else is: "token", "crypto".
    Coins,
    /// The 24 hours that tickers tell of.
    Day,
    /// Is about something of markets that there is nothing on here: futures, forecasts.
    Elsewhere,
    /// Asks for a kind of document.
    Wants(Kind),
    /// Candles of one length: "hourly".
    Every(Interval),
    /// "eth to btc": the first is priced in the second, if such a market exists.
    Toward,
    /// "bitcoin vs ethereum", "compare": each for itself.
    Compare,
    /// "pair", "exchange rate": two assets side by side are one market.
    Pairing,
}

use AnalyticsKind::{Anomalies, Health, LiquidityVacuums, OrderFlow, VolumeProfile};
use Kind::{Analytics, ExchangeInfo, Klines, OrderBook, OrderBookL1, OrderBookL2, Report, Ticker, Trades};

const SENSES: &[(Sense, &str)] = &[
    (
        Sense::Stop,
        "a about all am an and any are around as at be been being best by can check could currently current did do \
         does doing don exact exactly explain fetch figure figures find for from get gimme give going had has have \
         having hello hey hi how i if im info information into is it its just kindly know latest let like look \
         looking looks make many may me mean might more most much my need new now of off on one or our out over \
         please plz pls question recent right say see should show since so some tell than thank thanks that the \
         their them there these they thing this those today tonight up us use using want was we were what whats \
         when where which while who why will with within would yesterday you your",
    ),
    (
        Sense::Coins,
        "altcoin altcoins binance coin coins crypto cryptos cryptocurrencies cryptocurrency memecoin stablecoin token tokens",
    ),
    (
        Sense::Market,
        "active amount analytics big convert conversion deep huge large small analyse analysis analyze asset assets bull bear bullish bearish buy buyers buying chance \
         currencies currency data digital exchange financial \
         happening hold hodl invest investing investment live long market markets money now \
         order orders level levels pattern patterns perform performed performance performing position real realtime resistance \
         resting sell sellers selling short size snapshot spot statistics stats support time trade traded trader traders trading trend trending trends value worth \
         day days hour hours minute minutes month months second seconds week weeks year years past previous",
    ),
    (
        Sense::Elsewhere,
        "derivatives dominance etf etfs fdv forecast forecasts funding futures halving hashrate leverage leveraged \
         liquidated liquidation liquidations marketcap options outlook perp perpetual perpetuals perps predict \
         prediction predictions tvl",
    ),
    (
        Sense::Wants(Ticker),
        "price prices priced pricing ticker tickers quote quotes quoted last change changed changes volume volumes \
         gain gained gains loss lost up down high low highs lows cost costs expensive cheap move moved moving \
         turnover vwap",
    ),
    (Sense::Day, "24h 24hr 24hrs"),
    (
        Sense::Wants(OrderBook),
        "orderbook orderbooks book books depth bids asks",
    ),
    (
        Sense::Wants(OrderBookL1),
        "spread spreads microprice mid midprice bid bbo l1",
    ),
    (
        Sense::Wants(OrderBookL2),
        "imbalance imbalanced slippage liquidity liquid impact l2 wall walls",
    ),
    (
        Sense::Wants(Klines(DEFAULT_INTERVAL)),
        "candle candles candlestick candlesticks kline klines chart charts charting graph ohlc ohlcv history \
         historical historic atr volatile volatility",
    ),
    (Sense::Wants(Trades), "trades tape prints executions"),
    (
        Sense::Wants(ExchangeInfo),
        "status filter filters rule rules lot tick listed delisted precision notional tradable tradeable \
         exchangeinfo halted suspended paused",
    ),
    (
        Sense::Wants(Analytics(OrderFlow)),
        "orderflow cvd flow flows netflow aggressor aggressors delta ofi takers taker",
    ),
    (
        Sense::Wants(Analytics(VolumeProfile)),
        "poc concentrated concentration concentrates vah val",
    ),
    (
        Sense::Wants(Analytics(Anomalies)),
        "anomaly anomalies anomalous unusual unusually abnormal suspicious strange weird odd iceberg icebergs spoofing",
    ),
    (Sense::Wants(Analytics(LiquidityVacuums)), "vacuum vacuums gap gaps"),
    (Sense::Wants(Analytics(Health)), "health healthy microstructure"),
    (Sense::Wants(Report), "report reports overview summary"),
    (Sense::Every(Interval::M1), "minutely"),
    (Sense::Every(Interval::H1), "hourly"),
    (Sense::Every(Interval::D1), "daily"),
    (Sense::Every(Interval::W1), "weekly"),
    (Sense::Every(Interval::Mo1), "monthly"),
    (Sense::Toward, "to in into per against"),
    (
        Sense::Compare,
        "vs versus compare compared comparing comparison between both",
    ),
    (Sense::Pairing, "pair pairs ratio rate cross"),
];

/// Phrases, divided by commas.
const PHRASES: &[(Sense, &str)] = &[
    (Sense::Day, "24 h, 24 hr, 24 hrs, 24 hour, 24 hours"),
    (
        Sense::Wants(Ticker),
        "how much, how much is, trading volume, price change, price action, last price, doing today, \
         market price, price level",
    ),
    (
        Sense::Wants(OrderBook),
        "order book, order books, market depth, depth chart, bids and asks, limit orders, resting orders, \
         how deep",
    ),
    (
        Sense::Wants(OrderBookL1),
        "best bid, best ask, best bid and ask, best bid ask, best offer, bid ask, bid and ask, bid ask spread, \
         bid price, ask price, top of book, top of the book, micro price, mid price, level 1, inside market, \
         order book spread, orderbook l1, order book l1",
    ),
    (
        Sense::Wants(OrderBookL2),
        "depth bands, depth band, cost to buy, cost to sell, cost to trade, cost to fill, cost to execute, \
         cost of buying, cost of selling, cost of trading, cost of executing, trading cost, execution cost, \
         price impact, market impact, market order, level 2, book imbalance, order book imbalance, \
         order imbalance, how liquid, orderbook l2, order book l2",
    ),
    (
        Sense::Elsewhere,
        "market cap, market caps, market capitalization, market capitalisation, funding rate, funding rates, \
         open interest, circulating supply, total supply, max supply, hash rate, long short ratio, \
         long to short ratio, implied volatility, total value locked, fear and greed, price prediction, \
         price predictions, price target, price targets, margin trading, gas fee, gas fees",
    ),
    (
        Sense::Wants(Klines(DEFAULT_INTERVAL)),
        "how volatile, price history, price chart, candle chart, open high low close, over time, historical prices, \
         historical data, historical price",
    ),
    (
        Sense::Wants(Trades),
        "time and sales, recent trades, latest trades, last trades, last trade, latest trade, trade history, \
         trade list, recent trade, market trades",
    ),
    (
        Sense::Wants(ExchangeInfo),
        "tick size, lot size, step size, min notional, minimum notional, minimum order, min order, \
         minimum order size, minimum size, exchange info, exchange information, trading rules, trading status, \
         symbol info, order size, price precision, minimum quantity, still trading, can i trade",
    ),
    (
        Sense::Wants(Analytics(OrderFlow)),
        "order flow, order flows, buying pressure, selling pressure, buy pressure, sell pressure, net flow, \
         net flows, trade flow, cumulative volume delta, volume delta, cumulative delta, buyers or sellers, \
         aggressive buyers, aggressive sellers, aggressive buying, aggressive selling, taker flow, \
         buy and sell volume, money flow, who is buying, who is selling, who buying, who selling, \
         buying or selling, buyers and sellers, more buyers, more sellers",
    ),
    (
        Sense::Wants(Analytics(VolumeProfile)),
        "volume profile, volume profiles, point of control, value area, most volume, market profile, \
         volume concentrated, volume is concentrated, volume by price, volume at price, high volume node, \
         high volume nodes, most traded price",
    ),
    (
        Sense::Wants(Analytics(Anomalies)),
        "iceberg order, iceberg orders, unusual activity, anything unusual, market anomalies, quote stuffing, market manipulation",
    ),
    (
        Sense::Wants(Analytics(LiquidityVacuums)),
        "liquidity vacuum, liquidity vacuums, liquidity gap, liquidity gaps, gaps in liquidity, \
         gap in liquidity, gaps in the liquidity, thin liquidity, liquidity thin, liquidity is thin, low volume node, low volume nodes, \
         air pockets, liquidity holes",
    ),
    (
        Sense::Wants(Report),
        "market report, market reports, market overview, market summary, whole picture, full picture, big picture, \
         state of the market, full report",
    ),
    (
        Sense::Wants(Analytics(Health)),
        "liquidity health, market health, health score, order book health, orderbook health, \
         microstructure health, book health, market quality",
    ),
    (
        Sense::Toward,
        "priced in, quoted in, measured in, denominated in, in terms of, expressed in",
    ),
    (Sense::Compare, "compared to, compared with, as against, relative to"),
    (
        Sense::Pairing,
        "exchange rate, conversion rate, cross rate, trading pair",
    ),
    (Sense::Market, "real time, right now, at the moment"),
];

/// What a folded word or phrase means, if it means something here.
pub(super) fn sense(phrase: &str) -> Option<Sense> {
    static SENSED: LazyLock<HashMap<&'static str, Sense>> = LazyLock::new(|| {
        let words = SENSES
            .iter()
            .flat_map(|(sense, words)| words.split_ascii_whitespace().map(|word| (word, *sense)));
        let phrases = PHRASES
            .iter()
            .flat_map(|(sense, phrases)| phrases.split(", ").map(|phrase| (phrase, *sense)));
        words.chain(phrases).collect()
    });
    SENSED.get(phrase).copied()
}

/// Most words that a phrase with this first word has.
pub(super) fn longest(first: &str) -> usize {
    static LONGEST: LazyLock<HashMap<String, usize>> =
        LazyLock::new(|| assets::longest(PHRASES.iter().flat_map(|(_, phrases)| phrases.split(", "))));
    LONGEST.get(first).copied().unwrap_or(0)
}

/// The dollar and what stands for it.
const DOLLARS: &str = "USD USDT USDC FDUSD TUSD BUSD USDP USD1 USDE USDS DAI PAX PYUSD XUSD BFUSD RLUSD USDG UST USTC";

/// Other money, whether or not anything here is priced in it.
const CURRENCIES: &str = "\
    AED AEUR ARS AUD BIDR BKRW BRL BVND CAD CHF CLP CNY COP CZK DKK EUR EURI GBP HKD HUF IDR IDRT ILS INR JPY KRW \
    KZT MXN MYR NGN NOK NZD PEN PHP PKR PLN RON RUB SAR SEK SGD THB TRY TWD UAH VAI VND ZAR";

/// Numbers in letters that stand behind others: "2 million dollars".
pub(super) fn is_magnitude(folded: &str) -> bool {
    matches!(folded, "thousand" | "million" | "billion" | "mn" | "bn")
}

/// Assets that are money: beside another asset they are what its price is in.
pub(super) fn is_money(ticker: &str) -> bool {
    static MONEY: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
        let dollars = DOLLARS.split_ascii_whitespace();
        dollars.chain(CURRENCIES.split_ascii_whitespace()).collect()
    });
    MONEY.contains(ticker)
}

pub(super) fn is_dollar(ticker: &str) -> bool {
    DOLLARS.split_ascii_whitespace().any(|dollar| dollar == ticker)
}

/// Wishes in words that are said of anything: they do not show that a market is meant.
const VAGUE: &str = "\
    abnormal ask asks bid bids book books change changed changes chart charts cheap concentrated concentrates \
    concentration cost costs delta depth down executions expensive filter filters flow flows gain gained gains gap \
    gaps graph halted health healthy high highs historic historical history how iceberg icebergs impact last \
    liquid listed loss lost lot low lows mid move moved moving odd paused precision prints quote quoted quotes \
    rule rules spoofing spread spreads status strange suspended suspicious tape tick turnover unusual unusually up \
    vacuum vacuums val volatile volatility wall walls weird";

/// Whether a word or phrase that asks for something is said of markets alone.
pub(super) fn is_telling(folded: &str) -> bool {
    !VAGUE.split_ascii_whitespace().any(|vague| vague == folded)
}
