//! A first look at a recording: which symbols it has, on which grid they trade, whose the snapshots are, and the
//! book that each symbol begins with.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use indexmap::IndexMap;

use super::lines::{Merged, Pass, Place};
use super::message::{self, Content, Message};
use crate::clock::Nanos;
use crate::market::levels::{Levels, Side};
use crate::market::ticker::Ticker;
use crate::number::{Price, Quantity, UNIT};

/// Snapshots without a symbol that are told apart; a recording has a few.
const MAX_UNNAMED: usize = 10_000;
/// Within the first factor a snapshot's price is a symbol's own; beyond the second it is another symbol's.
const SAME_PRICE: f64 = 1.2;
const OTHER_PRICE: f64 = 2.0;

/// Whether a snapshot's price is a symbol's; the better the smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    Same,
    Unknown,
    Different,
}

/// What a recording shows of one symbol.
#[derive(Debug)]
pub struct Facts {
    pub streams: HashSet<String>,
    /// The largest powers of ten that divide all prices and quantities.
    pub tick: Price,
    pub step: Quantity,
    /// Where its first snapshot is.
    first_snapshot: Option<(Nanos, Place)>,
    pub first_ticker: Option<Ticker>,
    last_id: Option<u64>,
    price: Option<Price>,
    /// Unnamed snapshots before this one have seen the symbol's next diff.
    answered: usize,
}

impl Default for Facts {
    fn default() -> Self {
        Self {
            streams: HashSet::new(),
            tick: UNIT as Price,
            step: UNIT,
            first_snapshot: None,
            first_ticker: None,
            last_id: None,
            price: None,
            answered: 0,
        }
    }
}

#[derive(Debug)]
pub struct Recording {
    pub symbols: IndexMap<String, Facts>,
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

/// A snapshot without a symbol, and the ids that each symbol had around it.
struct Unnamed {
    time: Nanos,
    place: Place,
    id: u64,
    price: Option<Price>,
    before: HashMap<String, u64>,
    after: HashMap<String, u64>,
}

#[derive(Default)]
struct Scan {
    symbols: IndexMap<String, Facts>,
    common_streams: HashSet<String>,
    unnamed: Vec<Unnamed>,
    file_symbols: Vec<HashSet<String>>,
}

pub fn scan(files: &[PathBuf]) -> Result<Recording, String> {
    let mut merged = Merged::open(files, Pass::First)?;
    let mut scan = Scan {
        file_symbols: vec![HashSet::new(); files.len()],
        ..Scan::default()
    };
    let (mut first, mut last, mut lines, mut malformed) = (None, Nanos::MIN, 0, 0);
    for line in merged.by_ref() {
        lines += 1;
        first.get_or_insert(line.time);
        last = last.max(line.time);
        match message::parse(&line.json) {
            Some(message) => scan.note(line.time, line.place, &message),
            None => malformed += 1,
        }
    }
    let first = first.ok_or_else(|| "there is no line in it that can be played".to_owned())?;
    let owners = scan.attribute();
    let first_books = load_first_books(files, &scan.symbols)?;
    Ok(Recording {
        symbols: scan.symbols,
        common_streams: scan.common_streams,
        owners,
        first_books,
        first,
        last,
        lines,
        malformed: malformed + merged.skipped(),
    })
}

impl Scan {
    fn note(&mut self, time: Nanos, place: Place, message: &Message<'_>) {
        let Some(symbol) = &message.symbol else {
            match &message.content {
                Content::Snapshot(levels) => self.note_unnamed(time, place, levels),
                _ => self
                    .common_streams
                    .extend(message.stream.iter().map(ToString::to_string)),
            }
            return;
        };
        if !self.file_symbols[place.file].contains(symbol) {
            self.file_symbols[place.file].insert(symbol.clone());
        }
        let facts = match self.symbols.get_mut(symbol) {
            Some(facts) => facts,
            None => self.symbols.entry(symbol.clone()).or_default(),
        };
        if let Some(stream) = &message.stream
            && !facts.streams.contains(stream.as_ref())
        {
            facts.streams.insert(stream.to_string());
        }
        facts.learn((time, place), &message.content);
        if let Content::Diff(diff) = &message.content {
            for unnamed in self.unnamed.iter_mut().skip(facts.answered) {
                unnamed.after.insert(symbol.clone(), diff.first_id);
            }
            facts.answered = self.unnamed.len();
        }
    }

    fn note_unnamed(&mut self, time: Nanos, place: Place, levels: &Levels) {
        if self.unnamed.len() == MAX_UNNAMED {
            return;
        }
        let known = |(symbol, facts): (&String, &Facts)| Some((symbol.clone(), facts.last_id?));
        self.unnamed.push(Unnamed {
            time,
            place,
            id: levels.last_update_id,
            price: levels.best(Side::Bid).map(|(price, _)| price),
            before: self.symbols.iter().filter_map(known).collect(),
            after: HashMap::new(),
        });
    }

    /// Whose the unnamed snapshots are: of the file's only symbol, else of the one whose ids are nearest.
    fn attribute(&mut self) -> HashMap<Place, String> {
        let mut owners = HashMap::new();
        for unnamed in &self.unnamed {
            let of_file = &self.file_symbols[unnamed.place.file];
            let candidates: Vec<&String> = match of_file.len() {
                0 => self.symbols.keys().collect(),
                _ => of_file.iter().collect(),
            };
            let owner = match candidates.as_slice() {
                [only] => Some((*only).clone()),
                _ => unnamed.nearest(&candidates, &self.symbols),
            };
            match owner {
                Some(owner) => {
                    owners.insert(unnamed.place, owner);
                }
                None => tracing::warn!(
                    line = unnamed.place.line + 1,
                    "a snapshot is of no symbol that the recording has"
                ),
            }
        }
        for unnamed in &self.unnamed {
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
    fn learn(&mut self, place: (Nanos, Place), content: &Content) {
        match content {
            Content::Diff(diff) => {
                self.last_id = Some(diff.last_id);
                for (price, quantity) in diff.bids.iter().chain(&diff.asks) {
                    self.refine(*price, *quantity);
                }
                let best_bid = diff.bids.iter().map(|(price, _)| *price).max();
                let best = best_bid.or_else(|| diff.asks.iter().map(|(price, _)| *price).min());
                self.price = self.price.or(best);
            }
            Content::Trade(trade) => {
                self.price = Some(trade.price);
                self.refine(trade.price, trade.quantity);
            }
            Content::Aggregate(aggregate) => {
                self.price = Some(aggregate.price);
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
            }
            Content::MiniTicker(ticker) => self.refine(ticker.last, ticker.volume),
            Content::Quote(quote) => {
                self.refine(quote.bid.0, quote.bid.1);
                self.refine(quote.ask.0, quote.ask.1);
            }
            Content::Candle(..) | Content::Other => {}
        }
    }

    fn refine(&mut self, price: Price, quantity: Quantity) {
        while price % self.tick != 0 {
            self.tick /= 10;
        }
        while quantity % self.step != 0 {
            self.step /= 10;
        }
    }
}

impl Unnamed {
    fn nearest(&self, candidates: &[&String], symbols: &IndexMap<String, Facts>) -> Option<String> {
        let mut ranked: Vec<(Likeness, u64, &String)> = candidates
            .iter()
            .filter_map(|symbol| {
                let likeness = self.likeness(symbols.get(*symbol)?);
                Some((likeness, self.distance(symbol)?, *symbol))
            })
            .filter(|(likeness, ..)| *likeness != Likeness::Different)
            .collect();
        ranked.sort_unstable();
        ranked.first().map(|(.., symbol)| (*symbol).clone())
    }

    /// How far its id lies from the ids around it; `None` if the symbol has none.
    fn distance(&self, symbol: &str) -> Option<u64> {
        let (before, after) = (self.before.get(symbol), self.after.get(symbol));
        let low = *before.or(after)?;
        let high = *after.or(before)?;
        Some(low.saturating_sub(self.id).max(self.id.saturating_sub(high)))
    }

    fn likeness(&self, facts: &Facts) -> Likeness {
        let (Some(one), Some(other)) = (self.price, facts.price) else {
            return Likeness::Unknown;
        };
        let (one, other) = ((one as f64).max(1.0), (other as f64).max(1.0));
        match (one / other).max(other / one) {
            ..SAME_PRICE => Likeness::Same,
            ..OTHER_PRICE => Likeness::Unknown,
            _ => Likeness::Different,
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
        if let Some(Content::Snapshot(levels)) = message::parse(&line.json).map(|m| m.content) {
            books.insert(symbol.clone(), FirstBook { time, levels });
        }
    }
    Ok(books)
}
