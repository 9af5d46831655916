//! One pass over a recording before it is played: checks every line, and collects what each symbol has.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::State;
use super::event::{self, Event, Message};
use super::line::{Line, Lines, RecordingError, Refusal};
use crate::clock::Nanos;
use crate::interval::Millis;
use crate::market::Market;
use crate::market::candles::Candles;
use crate::market::levels::{Levels, Side};
use crate::market::symbol::Symbol;
use crate::number::{Price, Quantity, UNIT};

/// A snapshot must be taken so soon after a symbol's first message.
const SNAPSHOT_WITHIN: Nanos = 10_000_000_000;
/// Longer pauses are the seams between recordings.
const MAX_PAUSE: Nanos = 3_600_000_000_000;
const PLAY_PARTS: &str = "play the parts before and after it one after the other";

/// Quote assets that split a symbol's name where the recording has no exchangeInfo.
const QUOTES: [&str; 17] = [
    "USDT", "USDC", "USD", "FDUSD", "TUSD", "BUSD", "BTC", "ETH", "BNB", "EUR", "TRY", "BRL", "GBP", "JPY", "DAI",
    "IDRT", "U",
];

/// A recording that can be played.
#[derive(Debug)]
pub struct Contents {
    /// As they are before the first line, with their first snapshots as books.
    pub markets: Vec<Market>,
    /// The symbol of each file that has exactly one: its snapshots need not name it.
    pub file_symbols: Vec<Option<String>>,
    pub state: State,
}

#[derive(Debug, Clone, Copy)]
struct Position {
    file: usize,
    line: u64,
    time: Nanos,
}

/// A snapshot with its line.
type FoundSnapshot = (Position, Levels);

/// What a recording has of one symbol.
#[derive(Debug)]
struct Findings {
    /// Of the first message of a stream.
    begins: Position,
    since: Millis,
    /// Kinds of streams.
    streams: HashSet<String>,
    snapshot: Option<FoundSnapshot>,
    first_update: Option<u64>,
    last_update: Option<u64>,
    last_trade: Option<u64>,
    last_aggregated_trade: Option<u64>,
    grid: Grid,
}

/// The largest powers of ten that divide all prices and all quantities.
#[derive(Debug, Clone, Copy)]
struct Grid {
    tick: Price,
    step: Quantity,
}

#[derive(Default)]
struct Scan {
    symbols: BTreeMap<String, Findings>,
    entries: HashMap<String, Value>,
    file_symbols: Vec<BTreeSet<String>>,
    /// The first snapshot of each file that does not name its symbol.
    unnamed: Vec<Option<FoundSnapshot>>,
}

pub fn check(files: &[PathBuf]) -> Result<Contents, RecordingError> {
    let mut scan = Scan {
        file_symbols: vec![BTreeSet::new(); files.len()],
        unnamed: files.iter().map(|_| None).collect(),
        ..Scan::default()
    };
    let mut state = State::default();
    let mut lines = Lines::open(files)?;
    while let Some(line) = lines.read()? {
        let refuse = |refusal: Refusal| refusal.at(&files[line.file], Some(line.number));
        if state.lines == 0 {
            state.first_nanos = line.time;
            state.at_nanos = line.time;
            state.last_nanos = line.time;
        }
        let pause = line.time - state.last_nanos;
        if pause > MAX_PAUSE {
            let problem = format!("nothing was recorded in the {} s before this line", pause / 1_000_000_000);
            return Err(refuse(Refusal::new(problem, PLAY_PARTS)));
        }
        state.last_nanos = line.time;
        state.lines += 1;
        let message = event::parse(&line.json).map_err(refuse)?;
        scan.note(&line, message).map_err(refuse)?;
    }
    if scan.symbols.is_empty() {
        let remedy = "record `/stream?streams=btcusdt@depth@100ms/btcusdt@trade`";
        let file = files.first().map_or(Path::new(""), PathBuf::as_path);
        return Err(Refusal::new("the recording has no market data", remedy).at(file, None));
    }
    let file_symbols = scan.attribute_snapshots(files)?;
    let open = |(name, findings): (String, Findings)| {
        let begins = findings.begins;
        let market = findings.open_market(&name, scan.entries.get(&name));
        market.map_err(|refusal| refusal.at(&files[begins.file], Some(begins.line)))
    };
    Ok(Contents { markets: scan.symbols.into_iter().map(open).collect::<Result<_, _>>()?, file_symbols, state })
}

impl Scan {
    fn note(&mut self, line: &Line, message: Message<'_>) -> Result<(), Refusal> {
        let position = Position { file: line.file, line: line.number, time: line.time };
        let Some(symbol) = message.symbol else {
            match message.event {
                Event::Symbols(entries) => {
                    let named = |entry: Value| Some((entry["symbol"].as_str()?.to_owned(), entry));
                    self.entries.extend(entries.into_iter().filter_map(named));
                }
                Event::Snapshot(levels) => {
                    self.unnamed[line.file].get_or_insert((position, levels));
                }
                _ => {}
            }
            return Ok(());
        };
        self.file_symbols[line.file].insert(symbol.clone());
        // A named snapshot may come before the symbol's first message.
        let findings = self.symbols.entry(symbol).or_insert_with(|| Findings::new(position));
        if let Some(stream) = message.stream {
            if findings.streams.is_empty() {
                findings.begins = position;
                // The later of two clocks: trades before it may be missing.
                findings.since = stream.sent.unwrap_or(0).max(position.time / 1_000_000);
            }
            if !findings.streams.contains(stream.kind) {
                findings.streams.insert(stream.kind.to_owned());
            }
        }
        findings.note(position, message.event)
    }

    /// Gives snapshots without a symbol to the only symbol of their file.
    fn attribute_snapshots(&mut self, files: &[PathBuf]) -> Result<Vec<Option<String>>, RecordingError> {
        let mut file_symbols = Vec::with_capacity(files.len());
        for ((file, symbols), unnamed) in files.iter().zip(&self.file_symbols).zip(&mut self.unnamed) {
            let only = symbols.first().filter(|_| symbols.len() == 1);
            file_symbols.push(only.cloned());
            let Some((position, levels)) = unnamed.take() else {
                continue;
            };
            let Some(findings) = only.and_then(|only| self.symbols.get_mut(only)) else {
                let count = symbols.len();
                let problem = format!("the snapshot does not name its symbol, and the file has {count} symbols");
                let remedy =
                    "record one file per symbol, or write the snapshot as `{\"symbol\":\"BTCUSDT\",\"lastUpdateId\":…`";
                return Err(Refusal::new(problem, remedy).at(file, Some(position.line)));
            };
            let known = findings.snapshot.as_ref();
            if known.is_none_or(|(known, _)| position.time < known.time) {
                findings.snapshot = Some((position, levels));
            }
        }
        Ok(file_symbols)
    }
}

impl Findings {
    fn new(position: Position) -> Self {
        Self {
            begins: position,
            since: position.time / 1_000_000,
            streams: HashSet::new(),
            snapshot: None,
            first_update: None,
            last_update: None,
            last_trade: None,
            last_aggregated_trade: None,
            grid: Grid { tick: UNIT as Price, step: UNIT },
        }
    }

    fn note(&mut self, position: Position, event: Event) -> Result<(), Refusal> {
        match event {
            Event::Diff(diff) => {
                diff.levels().for_each(|(_, level)| self.grid.refine(level.0, level.1));
                self.first_update.get_or_insert(diff.first_id);
                follow("depth updates", &mut self.last_update, diff.first_id, diff.last_id)?;
            }
            Event::Snapshot(levels) => {
                self.snapshot.get_or_insert((position, levels));
            }
            Event::Trade(trade) => {
                self.grid.refine(trade.price, trade.quantity);
                follow("trades", &mut self.last_trade, trade.id, trade.id)?;
            }
            Event::Aggregate(aggregate) => {
                self.grid.refine(aggregate.price, aggregate.quantity);
                let last = &mut self.last_aggregated_trade;
                follow("trades", last, aggregate.first_trade, aggregate.last_trade)?;
            }
            Event::Symbols(_) | Event::Other => {}
        }
        Ok(())
    }

    /// The market before the first line, or why its recording cannot be played.
    fn open_market(mut self, name: &str, entry: Option<&Value>) -> Result<Market, Refusal> {
        let lower = name.to_lowercase();
        let has = |kind: &str| self.streams.iter().any(|stream| stream.starts_with(kind));
        if !has("depth") {
            let problem = format!("{name} has no depth updates");
            return Err(Refusal::new(problem, format!("record `{lower}@depth@100ms` too")));
        }
        let take_snapshot = format!("record `GET /api/v3/depth?symbol={name}&limit=5000` right after subscribing");
        let Some((position, levels)) = self.snapshot else {
            return Err(Refusal::new(format!("{name} has no depth snapshot"), take_snapshot));
        };
        let late = position.time - self.begins.time;
        if late > SNAPSHOT_WITHIN {
            let seconds = late / 1_000_000_000;
            let problem = format!("the first depth snapshot of {name} comes {seconds} s after this line");
            return Err(Refusal::new(problem, take_snapshot));
        }
        let (oldest, first_update) = (levels.last_update_id + 1, self.first_update.unwrap_or(0));
        if oldest < first_update {
            let missing = format!("depth updates {oldest} to {} of {name}", first_update - 1);
            return Err(Refusal::new(format!("{missing} are missing after its first depth snapshot"), take_snapshot));
        }
        let has_trades = has("trade");
        if (has("kline_") || has("aggTrade")) && !has_trades {
            let remedy = format!("record `{lower}@trade` too: prices, volumes and candles come from single trades");
            return Err(Refusal::new(format!("{name} has candles or aggregates but no trades"), remedy));
        }
        for (price, quantity) in Side::BOTH.into_iter().flat_map(|side| levels.side(side)) {
            self.grid.refine(price, quantity);
        }
        let symbol = self.grid.symbol(name, entry).ok_or_else(|| {
            let remedy = format!("add a line with the answer of `GET /api/v3/exchangeInfo?symbol={name}`");
            Refusal::new(format!("base and quote asset of {name} are not certain"), remedy)
        })?;
        let candles = Candles::new(Vec::new(), has_trades.then_some(self.since));
        let mut market = Market::new(symbol, levels, candles);
        market.recorded_streams = self.streams;
        Ok(market)
    }
}

/// Notes the ids `first..=last` of `what`. Repeated ones are no harm, but none may be missing.
fn follow(what: &str, known: &mut Option<u64>, first: u64, last: u64) -> Result<(), Refusal> {
    let before = known.unwrap_or(last);
    if first > before + 1 {
        let problem = format!("{what} {} to {} are missing before this line", before + 1, first - 1);
        return Err(Refusal::new(problem, PLAY_PARTS));
    }
    *known = Some(last.max(before));
    Ok(())
}

impl Grid {
    fn refine(&mut self, price: Price, quantity: Quantity) {
        while price % self.tick != 0 {
            self.tick /= 10;
        }
        while quantity % self.step != 0 {
            self.step /= 10;
        }
    }

    /// As exchangeInfo describes it, or split by the only quote asset that fits.
    fn symbol(&self, name: &str, entry: Option<&Value>) -> Option<Symbol> {
        let (base, quote) = match entry {
            Some(entry) => {
                let [base, quote] = ["baseAsset", "quoteAsset"].map(|field| entry[field].as_str());
                base.zip(quote)?
            }
            None => {
                let split = |quote: &&str| name.strip_suffix(quote).filter(|base| !base.is_empty());
                let mut fitting = QUOTES.iter().filter_map(split);
                let base = fitting.next().filter(|_| fitting.next().is_none())?;
                (base, &name[base.len()..])
            }
        };
        Some(Symbol { recorded_entry: entry.cloned(), ..Symbol::new(name, base, quote, (self.tick, self.step)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: Grid = Grid { tick: 1, step: 1 };

    #[test]
    fn names_are_split_by_the_only_fitting_quote() {
        let split = |name: &str| GRID.symbol(name, None).map(|symbol| format!("{}/{}", symbol.base, symbol.quote));
        for (name, pair) in
            [("BTCUSDT", "BTC/USDT"), ("ETHBTC", "ETH/BTC"), ("币安人生USDT", "币安人生/USDT"), ("BTCU", "BTC/U")]
        {
            assert_eq!(split(name).as_deref(), Some(pair), "{name}");
        }
        for name in ["BATUSD", "BTCFDUSD", "USDT", "ABCXYZ"] {
            assert_eq!(split(name), None, "{name}");
        }
        let entry = serde_json::json!({"symbol": "BATUSD", "baseAsset": "BAT", "quoteAsset": "USD"});
        let symbol = GRID.symbol("BATUSD", Some(&entry)).expect("a symbol");
        assert_eq!((symbol.base.as_str(), symbol.quote.as_str()), ("BAT", "USD"));
    }

    #[test]
    fn missing_trade_ids_are_refused() {
        let mut known = None;
        for (first, last) in [(1, 1), (2, 4), (3, 3), (2, 5), (6, 6)] {
            assert!(follow("trades", &mut known, first, last).is_ok(), "{first} to {last}");
        }
        let refusal = follow("trades", &mut known, 9, 9).expect_err("two are missing");
        assert!(refusal.0.starts_with("trades 7 to 8 are missing before this line"), "{}", refusal.0);
    }
}
