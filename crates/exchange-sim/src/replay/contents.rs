//! One pass over a recording before it is played: checks every line, and collects what each symbol has.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;

use serde_json::Value;

use super::event::{self, Event, Message};
use super::line::{Line, Lines, RecordingError, Refusal};
use crate::clock::Nanos;
use crate::interval::Millis;
use crate::market::coverage::{Coverage, Gap};
use crate::market::levels::Levels;
use crate::market::symbol::Symbol;
use crate::number::{Price, Quantity, UNIT};

/// A snapshot must be taken so soon after a symbol's first message.
const SNAPSHOT_WITHIN: Nanos = 10_000_000_000;
/// Longer pauses are the seams between recordings.
const MAX_PAUSE: Nanos = 3_600_000_000_000;
/// Interruptions of a symbol's trades; a recording with more is not worth playing.
const MAX_GAPS: usize = 1_000;

/// Quote assets by which a symbol is split where no exchangeInfo says it.
const QUOTES: [&str; 17] = [
    "USDT", "USDC", "USD", "FDUSD", "TUSD", "BUSD", "BTC", "ETH", "BNB", "EUR", "TRY", "BRL", "GBP", "JPY", "DAI",
    "IDRT", "U",
];

/// A recording that can be played.
#[derive(Debug)]
pub struct Contents {
    pub symbols: BTreeMap<String, SymbolContents>,
    /// The symbol of each file that has exactly one: its snapshots need not name it.
    pub file_symbols: Vec<Option<String>>,
    pub first: Nanos,
    pub last: Nanos,
    pub lines: u64,
}

/// What a recording has of one symbol.
#[derive(Debug)]
pub struct SymbolContents {
    pub symbol: Symbol,
    pub streams: HashSet<String>,
    pub first_snapshot: Levels,
    pub has_trades: bool,
    pub has_aggregates: bool,
    pub coverage: Coverage,
}

/// A snapshot with the line it stands in.
#[derive(Debug)]
struct FoundSnapshot {
    position: Position,
    levels: Levels,
}

#[derive(Debug, Clone, Copy)]
struct Position {
    file: usize,
    line: u64,
    time: Nanos,
}

/// The trades of one stream so far: the last id and its time.
#[derive(Debug, Default, Clone, Copy)]
struct TradeIds {
    last: Option<(u64, Millis)>,
}

#[derive(Debug)]
struct Findings {
    /// Of the first message of a stream.
    begins: Position,
    since: Millis,
    streams: HashSet<String>,
    snapshot: Option<FoundSnapshot>,
    trades: TradeIds,
    aggregates: TradeIds,
    gaps: Vec<Gap>,
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
    file_symbols: Vec<HashSet<String>>,
    /// The first snapshot of each file that does not name its symbol.
    unnamed: Vec<Option<FoundSnapshot>>,
}

pub fn check(files: &[PathBuf]) -> Result<Contents, RecordingError> {
    let mut scan = Scan {
        file_symbols: vec![HashSet::new(); files.len()],
        unnamed: files.iter().map(|_| None).collect(),
        ..Scan::default()
    };
    let (mut first, mut last, mut lines) = (None, 0, 0);
    for line in Lines::open(files)? {
        let line = line?;
        let refuse = |refusal: Refusal| refusal.at(&files[line.file], Some(line.number));
        if first.is_some() && line.time - last > MAX_PAUSE {
            let problem = format!(
                "nothing was recorded in the {} s before this line",
                (line.time - last) / 1_000_000_000
            );
            return Err(refuse(Refusal::new(problem, "play the parts one after the other")));
        }
        first.get_or_insert(line.time);
        last = line.time;
        lines += 1;
        let message = event::parse(&line.json).map_err(refuse)?;
        scan.note(&line, message).map_err(refuse)?;
    }
    let Some(first) = first.filter(|_| !scan.symbols.is_empty()) else {
        let refusal = Refusal::new(
            "the recording has no market data",
            "record `/stream?streams=btcusdt@depth@100ms/btcusdt@trade`",
        );
        return Err(refusal.at(files.first().unwrap_or(&PathBuf::new()), None));
    };
    let file_symbols = scan.attribute_snapshots(files)?;
    let entries = scan.entries;
    let finish = |(name, findings): (String, Findings)| {
        let file = &files[findings.begins.file];
        let contents = findings.finish(&name, entries.get(&name));
        let contents = contents.map_err(|(refusal, line)| refusal.at(file, Some(line)))?;
        Ok((name, contents))
    };
    let symbols = scan.symbols.into_iter().map(finish).collect::<Result<_, _>>()?;
    Ok(Contents {
        symbols,
        file_symbols,
        first,
        last,
        lines,
    })
}

impl Scan {
    fn note(&mut self, line: &Line, message: Message<'_>) -> Result<(), Refusal> {
        let Message {
            stream,
            symbol,
            sent,
            event,
            ..
        } = message;
        let position = Position {
            file: line.file,
            line: line.number,
            time: line.time,
        };
        match (stream, symbol, event) {
            (_, _, Event::Acknowledgement) => {}
            (_, _, Event::Symbols(entries)) => {
                let named = |entry: Value| Some((entry["symbol"].as_str()?.to_owned(), entry));
                self.entries.extend(entries.into_iter().filter_map(named));
            }
            (_, None, Event::Snapshot(levels)) => {
                self.unnamed[line.file].get_or_insert(FoundSnapshot { position, levels });
            }
            (_, None, _) => {}
            (None, Some(symbol), event) => {
                // A named snapshot may come before the symbol's first message.
                self.file_symbols[line.file].insert(symbol.clone());
                self.findings(symbol, position).note_event(position, event)?;
            }
            (Some(stream), Some(symbol), event) => {
                self.file_symbols[line.file].insert(symbol.clone());
                let findings = self.findings(symbol, position);
                if findings.streams.is_empty() {
                    // The later of two clocks: trades before it may be missing.
                    findings.begins = position;
                    findings.since = sent.unwrap_or(0).max(position.time / 1_000_000);
                }
                if !findings.streams.contains(stream) {
                    findings.streams.insert(stream.to_owned());
                }
                findings.note_event(position, event)?;
            }
        }
        Ok(())
    }

    fn findings(&mut self, symbol: String, position: Position) -> &mut Findings {
        self.symbols.entry(symbol).or_insert_with(|| Findings {
            begins: position,
            since: position.time / 1_000_000,
            streams: HashSet::new(),
            snapshot: None,
            trades: TradeIds::default(),
            aggregates: TradeIds::default(),
            gaps: Vec::new(),
            grid: Grid {
                tick: UNIT as Price,
                step: UNIT,
            },
        })
    }

    /// Gives snapshots without a symbol to the only symbol of their file.
    fn attribute_snapshots(&mut self, files: &[PathBuf]) -> Result<Vec<Option<String>>, RecordingError> {
        let mut file_symbols = Vec::with_capacity(files.len());
        for (file, symbols) in self.file_symbols.iter().enumerate() {
            let only = symbols.iter().next().filter(|_| symbols.len() == 1);
            if let Some(unnamed) = self.unnamed[file].take() {
                let Some(findings) = only.and_then(|only| self.symbols.get_mut(only)) else {
                    let problem = format!(
                        "the snapshot does not name its symbol, and the file has {} symbols",
                        symbols.len()
                    );
                    let remedy = "record one file per symbol, or write the snapshot as `{\"symbol\":\"BTCUSDT\",\"lastUpdateId\":…`";
                    return Err(Refusal::new(problem, remedy).at(&files[file], Some(unnamed.position.line)));
                };
                if findings
                    .snapshot
                    .as_ref()
                    .is_none_or(|known| unnamed.position.time < known.position.time)
                {
                    findings.snapshot = Some(unnamed);
                }
            }
            file_symbols.push(only.cloned());
        }
        Ok(file_symbols)
    }
}

impl Findings {
    fn note_event(&mut self, position: Position, event: Event) -> Result<(), Refusal> {
        match event {
            Event::Diff(diff) => {
                diff.bids
                    .iter()
                    .chain(&diff.asks)
                    .for_each(|level| self.grid.refine(level.0, level.1));
            }
            Event::Snapshot(levels) => {
                levels
                    .bids()
                    .chain(levels.asks())
                    .for_each(|level| self.grid.refine(level.0, level.1));
                self.snapshot.get_or_insert(FoundSnapshot { position, levels });
            }
            Event::Trade(trade) => {
                self.gaps.extend(self.trades.note(trade.id, trade.id, trade.time));
                self.grid.refine(trade.price, trade.quantity);
            }
            Event::Aggregate(aggregate) => {
                self.gaps.extend(
                    self.aggregates
                        .note(aggregate.first_trade, aggregate.last_trade, aggregate.time),
                );
                self.grid.refine(aggregate.price, aggregate.quantity);
            }
            Event::BookTicker | Event::Kline | Event::Symbols(_) | Event::Acknowledgement => {}
        }
        if self.gaps.len() > MAX_GAPS {
            let problem = format!("trades are missing in more than {MAX_GAPS} places");
            return Err(Refusal::new(problem, "record on one connection that keeps up"));
        }
        Ok(())
    }

    /// Fails with the line that the refusal is about.
    fn finish(self, name: &str, entry: Option<&Value>) -> Result<SymbolContents, (Refusal, u64)> {
        let lower = name.to_lowercase();
        let begins = self.begins;
        let refuse = |problem: String, remedy: String| Err((Refusal::new(problem, remedy), begins.line));
        let has = |kind: &str| {
            self.streams
                .iter()
                .any(|stream| stream[lower.len()..].starts_with(kind))
        };
        let (has_trades, has_aggregates) = (self.trades.last.is_some(), self.aggregates.last.is_some());
        if !has("@depth") {
            return refuse(
                format!("{name} has no depth updates"),
                format!("record `{lower}@depth@100ms` too"),
            );
        }
        let take_snapshot = || format!("record `GET /api/v3/depth?symbol={name}&limit=5000` right after subscribing");
        let Some(snapshot) = self.snapshot else {
            return refuse(format!("{name} has no depth snapshot"), take_snapshot());
        };
        let late = snapshot.position.time - begins.time;
        if late > SNAPSHOT_WITHIN {
            let problem = format!(
                "the first depth snapshot of {name} comes {} s after this line",
                late / 1_000_000_000
            );
            return refuse(problem, take_snapshot());
        }
        if has("@kline_") && !has_trades && !has_aggregates {
            let problem = format!("{name} has candles but no trades");
            return refuse(
                problem,
                format!("record `{lower}@trade` too: candles are made from trades"),
            );
        }
        let symbol = self.grid.symbol(name, entry).ok_or_else(|| {
            let problem = format!("base and quote asset of {name} are not certain");
            let remedy = format!("add a line with the answer of `GET /api/v3/exchangeInfo?symbol={name}`");
            (Refusal::new(problem, remedy), begins.line)
        })?;
        Ok(SymbolContents {
            symbol,
            streams: self.streams,
            first_snapshot: snapshot.levels,
            has_trades,
            has_aggregates,
            coverage: Coverage {
                since: self.since,
                has_trades: has_trades || has_aggregates,
                gaps: self.gaps,
            },
        })
    }
}

impl TradeIds {
    /// Trades `first..=last`; the gap before them, if ids are missing.
    fn note(&mut self, first: u64, last: u64, time: Millis) -> Option<Gap> {
        let (known, from) = *self.last.get_or_insert((last, time));
        if last <= known {
            return None;
        }
        self.last = Some((last, time));
        (first > known + 1).then_some(Gap {
            from: from.min(time),
            to: time.max(from),
        })
    }
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
        Some(Symbol::recorded(
            name,
            base,
            quote,
            (self.tick, self.step),
            entry.cloned(),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRID: Grid = Grid { tick: 1, step: 1 };

    #[test]
    fn names_are_split_by_the_only_fitting_quote() {
        let split = |name: &str| {
            GRID.symbol(name, None)
                .map(|symbol| format!("{}/{}", symbol.base, symbol.quote))
        };
        for (name, pair) in [
            ("BTCUSDT", "BTC/USDT"),
            ("ETHBTC", "ETH/BTC"),
            ("币安人生USDT", "币安人生/USDT"),
            ("BTCU", "BTC/U"),
        ] {
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
    fn missing_trade_ids_are_gaps() {
        let mut ids = TradeIds::default();
        let gaps: Vec<Gap> = [(1, 1, 100), (2, 4, 200), (3, 3, 150), (9, 9, 500), (10, 10, 600)]
            .into_iter()
            .filter_map(|(first, last, time)| ids.note(first, last, time))
            .collect();
        assert_eq!(gaps, [Gap { from: 200, to: 500 }]);
    }
}
