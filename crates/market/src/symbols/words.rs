//! What the words of a question mean beside the names of assets.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::id::{AnalyticsKind, Kind};
use crate::model::Interval;

/// The candles meant by whoever names no length.
pub(super) const DEFAULT_INTERVAL: Interval = Interval::H1;

/// Most words that a phrase below has.
pub(super) const LONGEST: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sense {
    /// Says nothing: "what", "please".
    Stop,
    /// Is about markets, without saying what is wanted.
    Market,
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
use Kind::{Analytics, ExchangeInfo, Klines, OrderBook, OrderBookL1, OrderBookL2, Ticker, Trades};

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
        Sense::Market,
        "active amount analyse analysis analyze asset assets binance bull bear bullish bearish buy buyers buying chance \
         coin coins crypto cryptos cryptocurrencies cryptocurrency currencies currency data digital exchange financial \
         forecast happening hold hodl invest investing investment live long market markets money now \
         order orders outlook perform performance performing position prediction real realtime report resistance \
         resting sell sellers selling short size snapshot spot statistics stats summary support time token tokens \
         trade traded trader traders trading trend trending trends value volatile volatility worth \
         day days hour hours minute minutes month months second seconds week weeks year years past previous",
    ),
    (
        Sense::Wants(Ticker),
        "price prices priced pricing ticker tickers quote quotes quoted last change changed changes volume volumes \
         gain gained gains loss lost up down high low highs lows cost costs expensive cheap move moved moving \
         turnover vwap 24h 24hr 24hrs",
    ),
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
         historical historic atr",
    ),
    (Sense::Wants(Trades), "trades tape prints executions"),
    (
        Sense::Wants(ExchangeInfo),
        "status filter filters rule rules lot tick listed delisted precision notional tradable tradeable \
         exchangeinfo",
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
        "anomaly anomalies anomalous unusual unusually abnormal suspicious strange weird odd",
    ),
    (Sense::Wants(Analytics(LiquidityVacuums)), "vacuum vacuums gap gaps"),
    (Sense::Wants(Analytics(Health)), "health healthy microstructure"),
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

const PHRASES: &[(Sense, &[&str])] = &[
    (
        Sense::Wants(Ticker),
        &[
            "how much",
            "how much is",
            "trading volume",
            "24 h",
            "24 hr",
            "24 hour",
            "24 hours",
            "price change",
            "price action",
            "last price",
            "doing today",
            "market price",
            "price level",
        ],
    ),
    (
        Sense::Wants(OrderBook),
        &[
            "order book",
            "order books",
            "market depth",
            "depth chart",
            "bids and asks",
            "limit orders",
            "resting orders",
        ],
    ),
    (
        Sense::Wants(OrderBookL1),
        &[
            "best bid",
            "best ask",
            "best bid and ask",
            "best bid ask",
            "best offer",
            "bid ask",
            "bid and ask",
            "bid ask spread",
            "bid price",
            "ask price",
            "top of book",
            "top of the book",
            "micro price",
            "mid price",
            "level 1",
            "inside market",
            "order book spread",
        ],
    ),
    (
        Sense::Wants(OrderBookL2),
        &[
            "depth bands",
            "depth band",
            "cost to buy",
            "cost to sell",
            "cost to trade",
            "cost to fill",
            "cost to execute",
            "cost of buying",
            "cost of selling",
            "cost of trading",
            "cost of executing",
            "trading cost",
            "execution cost",
            "price impact",
            "market impact",
            "market order",
            "level 2",
            "book imbalance",
            "order book imbalance",
            "order imbalance",
            "how liquid",
        ],
    ),
    (
        Sense::Wants(Klines(DEFAULT_INTERVAL)),
        &[
            "price history",
            "price chart",
            "candle chart",
            "open high low close",
            "over time",
            "historical prices",
            "historical data",
            "historical price",
        ],
    ),
    (
        Sense::Wants(Trades),
        &[
            "time and sales",
            "recent trades",
            "latest trades",
            "last trades",
            "last trade",
            "latest trade",
            "trade history",
            "trade list",
            "recent trade",
            "market trades",
        ],
    ),
    (
        Sense::Wants(ExchangeInfo),
        &[
            "tick size",
            "lot size",
            "step size",
            "min notional",
            "minimum notional",
            "minimum order",
            "min order",
            "minimum order size",
            "minimum size",
            "exchange info",
            "exchange information",
            "trading rules",
            "trading status",
            "symbol info",
            "order size",
            "price precision",
            "minimum quantity",
            "still trading",
        ],
    ),
    (
        Sense::Wants(Analytics(OrderFlow)),
        &[
            "order flow",
            "order flows",
            "buying pressure",
            "selling pressure",
            "buy pressure",
            "sell pressure",
            "net flow",
            "net flows",
            "trade flow",
            "cumulative volume delta",
            "volume delta",
            "cumulative delta",
            "buyers or sellers",
            "aggressive buyers",
            "aggressive sellers",
            "aggressive buying",
            "aggressive selling",
            "taker flow",
            "buy and sell volume",
            "money flow",
        ],
    ),
    (
        Sense::Wants(Analytics(VolumeProfile)),
        &[
            "volume profile",
            "volume profiles",
            "point of control",
            "value area",
            "most volume",
            "market profile",
            "volume concentrated",
            "volume is concentrated",
            "volume by price",
            "volume at price",
            "high volume node",
            "high volume nodes",
            "most traded price",
        ],
    ),
    (
        Sense::Wants(Analytics(Anomalies)),
        &[
            "unusual activity",
            "anything unusual",
            "market anomalies",
            "quote stuffing",
            "market manipulation",
        ],
    ),
    (
        Sense::Wants(Analytics(LiquidityVacuums)),
        &[
            "liquidity vacuum",
            "liquidity vacuums",
            "liquidity gap",
            "liquidity gaps",
            "gaps in liquidity",
            "gap in liquidity",
            "gaps in the liquidity",
            "thin liquidity",
            "low volume node",
            "low volume nodes",
            "air pockets",
            "liquidity holes",
        ],
    ),
    (
        Sense::Wants(Analytics(Health)),
        &[
            "liquidity health",
            "market health",
            "health score",
            "order book health",
            "orderbook health",
            "microstructure health",
            "book health",
            "market quality",
        ],
    ),
    (
        Sense::Toward,
        &[
            "priced in",
            "quoted in",
            "measured in",
            "denominated in",
            "in terms of",
            "expressed in",
        ],
    ),
    (
        Sense::Compare,
        &["compared to", "compared with", "as against", "relative to"],
    ),
    (
        Sense::Pairing,
        &["exchange rate", "conversion rate", "cross rate", "trading pair"],
    ),
    (
        Sense::Market,
        &[
            "real time",
            "right now",
            "at the moment",
            "price prediction",
            "market cap",
        ],
    ),
];

/// Tickers that are English words: in lower case they are that word and nothing else.
const WORDLIKE: &str = "\
    ace act acts adventure ai air alice all alpha alt and any ape arc ark array art at audio aura auto bad bake \
    ball banana band bank bar bard base bat bath be beam bear beat bed bee bell best bet big bio bird bit black \
    block blue blur board bob bomb bond bone book boom border bounty box boy brain bread break bridge broccoli \
    buddy build bull burger bus by cake call can cap car card care case cash cat catch centre chain chat chess \
    chip city civic claw clear click cloud club coin combo come cookie cool core corn cow cream credit crew \
    crown cube current cut cyber dam data day deal deep deer degen dent diamond dip dock dog dollar door dope \
    down dream drift drop dusk dust earn earth east edge egg elf else end enemy epic era ever evil eye fair fan \
    far farm fast fate father fear feel fees fight file film fire firm fish fit flag flame flip floor flow \
    flower fly fog food fool for force forest form forth fox frame free friend front fuel fun fund funk future \
    gain game gas gate gem get ghost giant gift giggle glow go goal goat god gold good grass gravity green grow \
    guild gun hair hall hard hat have head heart heat hedge hero hi high hippo hive hold hole holo home hood \
    hook hop hope hot house huge human hype ice icon id idea idol if image in index infinity info init ink io \
    iris iron it jam jasmine jet job joe join joy juice jump just keep key kid kill kind king kiss kite lab lady \
    lamb land last launch law layer lazy lead leaf leash leg legend lens less let level life lift light lime \
    line link lion list lit live load loan lock log long look loom loop lot love luck lucky lung mad magic mail \
    main man mana map marble mark market mask mass mat match math matter maze me media meet melt meme memory \
    mental mercy merge merit met metal meter micro mile milk mill mind mine mint mirror mist mix mob mode mom \
    monkey moo moon more moss most mother mouth move movie much mud muse music must my nano natural near neck \
    net never new news next nice night nil no noon not note nova now nuke null nut oasis ocean of off og oil old \
    on one only ooh oops open opera or oracle orange orbit orca order origin os our out over own pack page paint \
    palm panda paper parcel park part party pass path pay peace peak pearl people perp pet phone photo pick pie \
    pig pine pipe pixel place plain plan planet plant play plus point poke pole pond pool poor pop port portal \
    post pot power pray prime print prism pro prom prompt proof props prove public pull pump pundit punk pure \
    push put quack quick quiz radar rain ram rare rate raw ray reach real red reef render rent request rest rich \
    ride ring rise river road roast robo rock role roll rome room root rope rose round route row rug rule run \
    rush sad safe saga sage sahara salt sand save say scale scare school score scout screen seal seed self sell \
    send sense set shell shift ship shoe shop short show side sign silk silly silver sin sing sir six sky slice \
    slim slip slow smart smile smoke snap snow so soap sock soft solar solid solo solve some son song sonic soon \
    sort soul soup space spark spell spider spike spin spirit spot spring square stable stage star start state \
    stay step stick stock stone stop storage store storm story strike strong struck style suit summer sun super \
    supra sure sushi swap sweat sweet swell swim sword table tag take talk tank tap tape target task taste tax \
    team tell ten term test text than that the then they thing think this thunder tick tide tie tiger time tin \
    tip tire titan to toe token tomato ton tool top torch torn total touch tower town toy track trade train trap \
    tree tribe trick trip troll troy true trump trust truth try tube tune turbo turtle twin two type under unit \
    up us use user utility vacation valley value van vanity vector veil vein verse very vest via vice video view \
    villa vine viral virtual vision vital vite voice void vow voxel wage wait wake walk wall wallet wan want war \
    warm wash watch water wave waves wax way we wealth wear web week weird well west whale what wheel white wife \
    wild will win wind wine wing wings winter wire wise wish wolf woo wood word work world worm worth wow yam \
    year yes yield you young zebra zero zone zoo";

/// Names that are ordinary words or lie close to one: they name the asset only where nothing else is said.
const ORDINARY: &str = "\
    audits avalanche balance balancer celestial chili chilis chilli civic compound cosmos curve dent ethereal \
    flare fusion golem graph gravity harmony harvest horizen horizon icon internet jupiter maker mantle mantra \
    maple metal mirror neutron nexus oasis ocean ontology optimise optimism optimist optimize orchid origin \
    osmosis phoenix polygon polygons polymath quant quantum render request reserve ripple ripples ronin sandbox \
    sky solar sonic space stack stacks stargate status stella stellar storm stratis strike sun synthetic terra \
    tether tethered thorn threshold trust ultra verge vulcan wormhole yearn";

fn set(text: &'static str) -> HashSet<&'static str> {
    text.split_ascii_whitespace().collect()
}

/// Whether a folded word is an English one that is also a ticker: such a ticker is meant only in capitals,
/// in a pair, or with its quote. Single letters and plain numbers are words too.
pub(super) fn is_wordlike(folded: &str) -> bool {
    static WORDS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| set(WORDLIKE));
    let mut letters = folded.chars();
    let single = letters.next().is_some_and(|c| c.is_ascii()) && letters.next().is_none();
    single || folded.chars().all(char::is_numeric) || WORDS.contains(folded) || sense(folded).is_some()
}

/// Whether a folded word is an English one: alone it may still be a name, among others it is itself.
pub(super) fn is_ordinary(folded: &str) -> bool {
    static WORDS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| set(ORDINARY));
    WORDS.contains(folded) || is_wordlike(folded)
}

/// What a folded word or phrase means, if it means something here.
pub(super) fn sense(phrase: &str) -> Option<Sense> {
    static SENSED: LazyLock<HashMap<&'static str, Sense>> = LazyLock::new(|| {
        let words = SENSES
            .iter()
            .flat_map(|(sense, words)| words.split_ascii_whitespace().map(|word| (word, *sense)));
        let phrases = PHRASES
            .iter()
            .flat_map(|(sense, phrases)| phrases.iter().map(|phrase| (*phrase, *sense)));
        words.chain(phrases).collect()
    });
    SENSED.get(phrase).copied()
}

/// Assets that are money: beside another asset they are what its price is in.
const MONEY: &str = "\
    USD USDT USDC FDUSD TUSD BUSD USDP USD1 USDE USDS DAI PAX PYUSD XUSD BFUSD AEUR EURI EUR GBP TRY BRL JPY ARS MXN \
    ZAR PLN RON CZK UAH COP AUD RUB NGN IDR IDRT BIDR BVND BKRW VAI UST USTC";

pub(super) fn is_money(ticker: &str) -> bool {
    static TICKERS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| set(MONEY));
    TICKERS.contains(ticker)
}
