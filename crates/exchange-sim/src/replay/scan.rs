//! A first look at a recording: which symbols it has, on which grid they trade, whose the snapshots are, and the
//! book that each symbol begins with.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use indexmap::IndexMap;
use serde_json::Value;

use super::lines::{Merged, Misread, Pass, Place};
use super::message::{self, Content, Message};
use super::owners::{Evidence, Owner};
use crate::clock::Nanos;
use crate::interval::{DAY, Millis};
use crate::market::coverage::Holes;
use crate::market::levels::Levels;
use crate::market::ticker::Ticker;
use crate::number::{Price, Quantity, UNIT};

/// What a recording shows of one symbol.
#[derive(Debug, Default)]
pub struct Facts {
    pub streams: HashSet<String>,
    /// The largest powers of ten that divide all prices and quantities; 0 if there are none.
    pub tick: Price,
    pub step: Quantity,
    /// It has messages of its own, and is not only told of among others.
    own: bool,
    /// Where its first snapshot is.
    first_snapshot: Option<(Nanos, Place)>,
    pub first_ticker: Option<Ticker>,
    /// When something of it was first heard, by the clock that was ahead: the recorder's or the exchange's.
    pub heard: Millis,
    /// What is missing between the first and the last trade, and aggregate.
    trade_holes: Holes,
    aggregate_holes: Holes,
    /// The last trade that anything tells of, and when it does.
    last_told: Option<(u64, Millis)>,
}

#[derive(Debug)]
pub struct Recording {
    pub symbols: IndexMap<String, Facts>,
    /// What an exchangeInfo in it says of symbols.
    pub listings: Listings,
    /// Streams of no single symbol.
    pub common_streams: HashSet<String>,
    /// The symbols of snapshots that do not say it themselves.
    pub owners: HashMap<Place, String>,
    pub first_books: HashMap<String, FirstBook>,
    pub first: Nanos,
    pub last: Nanos,
    pub lines: u64,
    pub malformed: u64,
}

/// The first snapshot of a symbol.
#[derive(Debug)]
pub struct FirstBook {
    pub time: Nanos,
    pub levels: Levels,
}

/// Entries of exchangeInfo by their symbols.
pub type Listings = HashMap<String, Value>;

#[derive(Default)]
struct Scan {
    symbols: IndexMap<String, Facts>,
    listings: Listings,
    common_streams: HashSet<String>,
    evidence: Evidence,
    file_symbols: Vec<HashSet<usize>>,
    unread: u64,
    misread: Option<Misread>,
}

pub fn scan(files: &[PathBuf]) -> Result<Recording, String> {
    let mut merged = Merged::open(files, Pass::First)?;
    let mut scan = Scan {
        file_symbols: vec![HashSet::new(); files.len()],
        ..Scan::default()
    };
    let (mut first, mut last, mut lines) = (None, Nanos::MIN, 0);
    for line in merged.by_ref() {
        lines += 1;
        first.get_or_insert(line.time);
        last = last.max(line.time);
        match message::parse(&line.json) {
            Ok(message) => scan.note(line.time, line.place, &message),
            Err(why) => scan.note_unread(line.place, why),
        }
    }
    let malformed = scan.unread + merged.skipped();
    if let Some(misread) = merged.first_misread().or(scan.misread) {
        warn_of(files, malformed, misread);
    }
    let first = first
        .filter(|_| !scan.symbols.is_empty())
        .ok_or_else(|| nothing_to_play(files, merged.first_misread()))?;
    let owners = scan.attribute(files);
    let first_books = load_first_books(files, &scan.symbols)?;
    Ok(Recording {
        symbols: scan.symbols,
        listings: scan.listings,
        common_streams: scan.common_streams,
        owners,
        first_books,
        first,
        last,
        lines,
        malformed,
    })
}

fn warn_of(files: &[PathBuf], count: u64, Misread { place, why }: Misread) {
    let file = files.get(place.file).map(|path| path.display().to_string());
    tracing::warn!(
        count,
        file,
        line = place.line + 1,
        why,
        "lines of the recording are not understood; this is the first of them"
    );
}

fn nothing_to_play(files: &[PathBuf], misread: Option<Misread>) -> String {
    let names: Vec<String> = files.iter().map(|path| path.display().to_string()).collect();
    let names = names.join(", ");
    match misread {
        Some(Misread { place, why }) => format!(
            "there is no line that can be played in {names}: {why}, and line {} is not",
            place.line + 1
        ),
        None => format!("there is no event of any symbol in {names}"),
    }
}

impl Scan {
    fn note_unread(&mut self, place: Place, why: &'static str) {
        self.unread += 1;
        self.misread.get_or_insert(Misread { place, why });
    }

    fn note(&mut self, time: Nanos, place: Place, message: &Message<'_>) {
        if let Content::Unread(what) = &message.content {
            self.note_unread(place, what);
        }
        let Some(symbol) = &message.symbol else {
            return self.note_of_none(time, place, message);
        };
        let number = self.number_of(symbol);
        self.file_symbols[place.file].insert(number);
        let facts = &mut self.symbols[number];
        facts.own = true;
        if let Some(stream) = &message.stream
            && !facts.streams.contains(stream.as_ref())
        {
            facts.streams.insert(stream.to_string());
        }
        // A snapshot was asked for, and may have been before anybody listened.
        if facts.heard == 0 && message.stream.is_some() {
            let received = time / 1_000_000;
            let sent = message.event_time.filter(|sent| sent.abs_diff(received) < DAY as u64);
            facts.heard = sent.map_or(received, |sent| sent.max(received));
        }
        facts.learn((time, place), &message.content);
        self.note_evidence(number, time, &message.content);
    }

    fn number_of(&mut self, symbol: &str) -> usize {
        match self.symbols.get_index_of(symbol) {
            Some(number) => number,
            None => self.symbols.insert_full(symbol.to_owned(), Facts::default()).0,
        }
    }

    /// What is of no single symbol, or does not say of which.
    fn note_of_none(&mut self, time: Nanos, place: Place, message: &Message<'_>) {
        match &message.content {
            Content::Snapshot(levels) => return self.evidence.note_snapshot(time, place, levels),
            Content::Tickers { read, lacking } => {
                if *lacking {
                    self.note_unread(place, "it has a ticker that is not understood");
                }
                for content in read {
                    if let Content::Ticker(ticker) | Content::MiniTicker(ticker) = content {
                        let number = self.number_of(&ticker.symbol);
                        self.symbols[number].learn((time, place), content);
                    }
                }
            }
            Content::Listings(entries) => {
                for entry in entries {
                    let symbol = entry["symbol"].as_str().unwrap_or_default();
                    self.listings.entry(symbol.to_owned()).or_insert_with(|| entry.clone());
                }
            }
            _ => {}
        }
        self.common_streams
            .extend(message.stream.iter().map(ToString::to_string));
    }

    fn note_evidence(&mut self, symbol: usize, time: Nanos, content: &Content) {
        match content {
            Content::Diff(diff) => self.evidence.note_ids(symbol, time, diff.first_id, diff.last_id),
            Content::Quote(quote) => self.evidence.note_quote(symbol, time, *quote),
            Content::Trade(trade) => self.evidence.note_price(symbol, trade.price),
            Content::Aggregate(aggregate) => self.evidence.note_price(symbol, aggregate.price),
            _ => {}
        }
    }

    /// Whose the unnamed snapshots are: of the file's only symbol, else of the one whose ids run through theirs.
    fn attribute(&mut self, files: &[PathBuf]) -> HashMap<Place, String> {
        let mut owners = HashMap::new();
        for unnamed in &self.evidence.unnamed {
            let of_file = &self.file_symbols[unnamed.place.file];
            let candidates: Vec<usize> = match of_file.len() {
                0 => (0..self.symbols.len())
                    .filter(|number| self.symbols[*number].own)
                    .collect(),
                _ => of_file.iter().copied().collect(),
            };
            let name = |number: usize| self.symbols.get_index(number).map(|(name, _)| name.clone());
            let why = match unnamed.owner(&candidates) {
                Owner::One(number) => {
                    owners.extend(name(number).map(|name| (unnamed.place, name)));
                    continue;
                }
                Owner::Nobody => "it is of no symbol that the recording has".to_owned(),
                Owner::OneOf(several) => {
                    let mut names: Vec<String> = several.into_iter().filter_map(name).collect();
                    names.sort_unstable();
                    format!("it may be of {}", names.join(" or of "))
                }
            };
            let file = files.get(unnamed.place.file).map(|path| path.display().to_string());
            tracing::warn!(file, line = unnamed.place.line + 1, why, "a snapshot is not used");
        }
        for unnamed in &self.evidence.unnamed {
            let owner = owners.get(&unnamed.place);
            if let Some(facts) = owner.and_then(|owner| self.symbols.get_mut(owner)) {
                let place = (unnamed.time, unnamed.place);
                facts.first_snapshot = Some(facts.first_snapshot.map_or(place, |first| first.min(place)));
            }
        }
        owners
    }
}

impl Facts {
    pub const fn has_trades(&self) -> bool {
        self.trade_holes.saw_any()
    }

    pub const fn has_aggregates(&self) -> bool {
        self.aggregate_holes.saw_any()
    }

    /// What is missing of the trades that candles are made from.
    pub fn holes(&self) -> Holes {
        let mut holes = self.aggregate_holes.clone();
        if self.has_trades() {
            holes = self.trade_holes.clone();
            holes.begin_with(&self.aggregate_holes);
        }
        if let Some((id, time)) = self.last_told {
            holes.go_on_to(id, time);
        }
        holes
    }

    fn note_told(&mut self, id: u64, time: Millis) {
        if self.last_told.is_none_or(|(last, _)| id > last) {
            self.last_told = Some((id, time));
        }
    }

    fn learn(&mut self, place: (Nanos, Place), content: &Content) {
        match content {
            Content::Diff(diff) => {
                for (price, quantity) in diff.bids.iter().chain(&diff.asks) {
                    self.refine(*price, *quantity);
                }
            }
            Content::Trade(trade) => {
                self.trade_holes.note(trade.id, trade.id, trade.time);
                self.refine(trade.price, trade.quantity);
            }
            Content::Aggregate(aggregate) => {
                self.aggregate_holes
                    .note(aggregate.first_trade, aggregate.last_trade, aggregate.time);
                self.note_told(aggregate.last_trade, aggregate.time);
                self.refine(aggregate.price, aggregate.quantity);
            }
            Content::Snapshot(_) => {
                self.first_snapshot.get_or_insert(place);
            }
            Content::Partial(levels) => {
                for (price, quantity) in levels.bids().chain(levels.asks()) {
                    self.refine(price, quantity);
                }
            }
            Content::Ticker(ticker) => {
                self.first_ticker.get_or_insert_with(|| ticker.as_ref().clone());
                self.refine(ticker.last, ticker.volume);
                if let Some(last) = ticker.last_id.and_then(|id| u64::try_from(id).ok()) {
                    self.note_told(last, ticker.close_time);
                }
            }
            Content::MiniTicker(ticker) => self.refine(ticker.last, ticker.volume),
            Content::Quote(quote) => {
                self.refine(quote.bid.0, quote.bid.1);
                self.refine(quote.ask.0, quote.ask.1);
            }
            Content::Candle(_, told) if told.candle.trades > 0 => {
                self.note_told(told.candle.last_trade, place.0 / 1_000_000);
            }
            Content::Candle(..)
            | Content::Average(_)
            | Content::Tickers { .. }
            | Content::Listings(_)
            | Content::Other
            | Content::Unread(_) => {}
        }
    }

    fn refine(&mut self, price: Price, quantity: Quantity) {
        if price != 0 && self.tick == 0 {
            self.tick = UNIT as Price;
        }
        if quantity != 0 && self.step == 0 {
            self.step = UNIT;
        }
        while self.tick != 0 && price % self.tick != 0 {
            self.tick /= 10;
        }
        while self.step != 0 && quantity % self.step != 0 {
            self.step /= 10;
        }
    }
}

/// Reads again the few lines that hold the first book of each symbol.
fn load_first_books(
    files: &[PathBuf],
    symbols: &IndexMap<String, Facts>,
) -> Result<HashMap<String, FirstBook>, String> {
    let mut wanted: HashMap<Place, (Nanos, &String)> = symbols
        .iter()
        .filter_map(|(symbol, facts)| {
            let (time, place) = facts.first_snapshot?;
            Some((place, (time, symbol)))
        })
        .collect();
    let mut books = HashMap::new();
    for line in Merged::open(files, Pass::Again)? {
        if wanted.is_empty() {
            break;
        }
        let Some((time, symbol)) = wanted.remove(&line.place) else {
            continue;
        };
        if let Ok(Content::Snapshot(levels)) = message::parse(&line.json).map(|m| m.content) {
            books.insert(symbol.clone(), FirstBook { time, levels });
        }
    }
    Ok(books)
}
