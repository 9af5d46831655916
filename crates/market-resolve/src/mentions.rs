//! Which markets a query names: assets alone, pairs in their spellings, and quotes for several assets.

use tribune_binance::Symbol;

use crate::assets;
use crate::parts::{MatchedOn, Part, What};
use crate::symbols::SymbolTable;
use crate::tokens::Gap;
use crate::words::Meaning;

#[derive(Debug)]
pub(crate) struct Mention<'t> {
    /// The market, then others that the same words can mean, best first.
    pub symbols: Vec<&'t Symbol>,
    pub on: MatchedOn,
    pub words: usize,
}

/// An asset of the query, with its market if the query names one.
#[derive(Debug, Clone)]
struct Named<'t> {
    tickers: Vec<&'t str>,
    symbol: Option<&'t Symbol>,
    on: MatchedOn,
    words: usize,
    is_money: bool,
}

impl Named<'_> {
    fn is_lone_money(&self) -> bool {
        self.is_money && self.symbol.is_none()
    }
}

#[derive(Debug)]
pub(crate) struct Mentions<'p, 't> {
    table: &'t SymbolTable,
    parts: &'p [Part<'t>],
    named: Vec<Named<'t>>,
    excluded: Vec<&'t str>,
    /// Words that name assets that are not traded.
    pub unknown: usize,
}

/// How an asset follows the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    /// `eth/btc`.
    Joined,
    /// "eth in btc".
    Toward,
    /// "eth btc".
    Adjacent,
    Apart,
}

impl<'p, 't> Mentions<'p, 't> {
    pub fn read(table: &'t SymbolTable, parts: &'p [Part<'t>]) -> Self {
        let excluded = parts.iter().filter(|part| part.is_excluded).filter_map(Part::asset);
        let excluded: Vec<&'t str> = excluded.flat_map(|asset| asset.tickers.iter().copied()).collect();
        let is_wanted = |at: &usize| {
            let asset = parts[*at].asset();
            asset.is_some_and(|asset| asset.tickers.iter().all(|ticker| !excluded.contains(ticker)))
        };
        let assets: Vec<usize> = (0..parts.len()).filter(is_wanted).collect();
        let mut mentions = Self { table, parts, named: Vec::new(), excluded, unknown: 0 };
        let mut next = 0;
        while next < assets.len() {
            next = mentions.add(&assets, next);
        }
        mentions.share_quote();
        mentions
    }

    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }

    /// The only asset that is named, without a quote, and whether it is money.
    pub fn single_asset(&self) -> Option<(&'t str, bool)> {
        match &*self.named {
            [named] if named.symbol.is_none() => Some((named.tickers.first().copied()?, named.is_money)),
            _ => None,
        }
    }

    /// The markets that answer the query. Money alone counts only where every word is understood: "xyz usdt" asks for
    /// something else.
    pub fn answered(&self, unknown: usize) -> Vec<Mention<'t>> {
        let has_bases = self.named.iter().any(|named| !named.is_lone_money());
        let mut mentions: Vec<Mention<'t>> = Vec::new();
        for named in &self.named {
            let symbols = self.symbols(named);
            if symbols.is_empty() || (named.is_lone_money() && (has_bases || unknown > 0)) {
                continue;
            }
            match mentions.iter_mut().find(|known| known.symbols.first() == symbols.first()) {
                Some(known) => known.words += named.words,
                None => mentions.push(Mention { symbols, on: named.on, words: named.words }),
            }
        }
        mentions
    }

    /// The market and its alternatives.
    fn symbols(&self, named: &Named<'t>) -> Vec<&'t Symbol> {
        // A symbol may be an asset's ticker too, such as WBTC of the market W/BTC.
        let symbol = named.symbol.into_iter();
        let as_ticker = symbol.clone().flat_map(|symbol| self.table.of_base(&symbol.name));
        let mut others: Vec<&'t Symbol> = named.tickers.iter().flat_map(|base| self.table.of_base(base)).collect();
        if named.tickers.len() > 1 {
            others.sort_by_key(|symbol| self.table.place(symbol));
        }
        let others = as_ticker.chain(others);
        let is_other = |symbol: &&Symbol| !self.excluded.contains(&&*symbol.quote) && Some(*symbol) != named.symbol;
        symbol.chain(others.filter(is_other)).collect()
    }

    /// Adds the asset at `next` of `assets`, with its quote if it has one; returns which asset comes then.
    fn add(&mut self, assets: &[usize], next: usize) -> usize {
        let Some((base, after)) = self.merged(assets, next) else {
            return next + 1;
        };
        let quote = self.merged(assets, after).filter(|_| base.symbol.is_none());
        let link = self.link(assets, after);
        let pair = quote.filter(|(quote, _)| quote.symbol.is_none() && link != Link::Apart);
        if let Some((quote, end)) = pair {
            let is_run = self.link(assets, end) == Link::Adjacent;
            match self.pair(&base, &quote, link, is_run) {
                Pair::Traded(named) => {
                    self.named.push(named);
                    return end;
                }
                Pair::Missing => {
                    self.unknown += base.words + quote.words;
                    return end;
                }
                // Two assets that are written as a pair, which is not traded.
                Pair::None => self.unknown += usize::from(link == Link::Joined),
            }
        }
        let is_listed = base.is_money || base.tickers.iter().any(|ticker| self.table.has_base(ticker));
        if base.symbol.is_some() || (is_listed && !self.has_unknown_half(assets[next])) {
            self.named.push(base);
        } else {
            self.unknown += base.words;
        }
        after
    }

    /// The asset at `first` together with repetitions of it: "Bitcoin (BTC)", "solana SOLUSDC".
    fn merged(&self, assets: &[usize], first: usize) -> Option<(Named<'t>, usize)> {
        let mut merged: Option<Named<'t>> = None;
        let mut next = first;
        while let Some(part) = assets.get(next).map(|at| &self.parts[*at]) {
            let asset = part.asset()?;
            let symbol = match asset.quote {
                Some(quote) => find_pair(self.table, &asset.tickers, &[quote]),
                None => asset.symbol,
            };
            // A pair in one word that is not traded is an asset that is not listed.
            let is_missing = asset.quote.is_some() && symbol.is_none();
            let tickers = if is_missing { Vec::new() } else { asset.tickers.clone() };
            match &mut merged {
                None => {
                    merged =
                        Some(Named { is_money: asset.is_money(), on: asset.on, words: part.words, symbol, tickers });
                }
                Some(named) => {
                    let is_same = tickers.iter().any(|ticker| named.tickers.contains(ticker));
                    if !is_same || named.symbol.is_some() || self.link(assets, next) == Link::Apart {
                        break;
                    }
                    named.symbol = symbol;
                    named.on = named.on.min(asset.on);
                    named.words += part.words;
                    named.tickers.extend(tickers);
                    named.tickers.dedup();
                }
            }
            next += 1;
        }
        Some((merged?, next))
    }

    /// Whether a slash makes the asset a pair with something unknown: "XYZ/BTC".
    fn has_unknown_half(&self, at: usize) -> bool {
        let is = |at: usize, is: fn(&Part<'_>) -> bool| self.parts.get(at).is_some_and(is);
        let is_unknown = |at| is(at, |part| matches!(part.what, What::Unknown));
        let is_slashed = |at| is(at, |part| part.gap == Gap::Slash);
        (is_slashed(at) && at > 0 && is_unknown(at - 1)) || (is_slashed(at + 1) && is_unknown(at + 1))
    }

    /// How the asset at `index` follows the one before it.
    fn link(&self, assets: &[usize], index: usize) -> Link {
        let Some([before, at]) = index.checked_sub(1).and_then(|before| assets.get(before..=index)) else {
            return Link::Apart;
        };
        let between = &self.parts[before + 1..*at];
        let last = between.iter().rfind(|part| !part.means(Meaning::Noise));
        match (between.is_empty(), self.parts[*at].gap) {
            (true, Gap::Slash | Gap::Join) => Link::Joined,
            (true, Gap::Space) => Link::Adjacent,
            _ if last.is_some_and(|part| part.means(Meaning::Toward)) => Link::Toward,
            _ => Link::Apart,
        }
    }

    /// The pair of two assets, if they are written as one.
    fn pair(&self, base: &Named<'t>, quote: &Named<'t>, link: Link, is_run: bool) -> Pair<'t> {
        let has = |meaning: Meaning| self.parts.iter().any(|part| part.means(meaning));
        let (compares, is_ratio) = (has(Meaning::Compare), has(Meaning::Ratio));
        let may_reverse = link != Link::Adjacent || base.is_money || is_ratio;
        let direct = find_pair(self.table, &base.tickers, &quote.tickers);
        let reversed = find_pair(self.table, &quote.tickers, &base.tickers).filter(|_| may_reverse);
        let is_pair = match link {
            Link::Joined => true,
            Link::Toward => !compares || quote.is_money,
            Link::Adjacent => quote.is_money || (!compares && !is_run && (direct.is_some() || is_ratio)),
            Link::Apart => false,
        };
        let on = direct.map_or(MatchedOn::ReversedPair, |_| MatchedOn::Pair);
        match direct.or(reversed) {
            _ if !is_pair => Pair::None,
            Some(symbol) => Pair::Traded(Named {
                tickers: vec![&*symbol.base],
                symbol: Some(symbol),
                on,
                words: base.words + quote.words,
                is_money: false,
            }),
            None if base.is_money || quote.is_money => Pair::Missing,
            None => Pair::None,
        }
    }

    /// Money that is named apart from the assets is the quote of each: "bitcoin and ether in euros".
    fn share_quote(&mut self) {
        let lone = self.named.iter().position(Named::is_lone_money);
        let quote = match lone {
            Some(at) => self.named[at].tickers.first().copied(),
            None => {
                let paired = self.named.iter().filter(|named| named.on == MatchedOn::Pair);
                let mut quotes = paired.filter_map(|named| named.symbol).map(|symbol| &*symbol.quote);
                quotes.find(|quote| assets::is_money(quote))
            }
        };
        let Some(quote) = quote else { return };
        let is_base = |named: &Named<'_>| named.symbol.is_none() && !named.is_money;
        let has_bases = self.named.iter().any(is_base);
        for named in self.named.iter_mut().filter(|named| is_base(named)) {
            if let Some(symbol) = find_pair(self.table, &named.tickers, &[quote]) {
                (named.symbol, named.on) = (Some(symbol), named.on.max(MatchedOn::Pair));
            } else if lone.is_some() {
                // Not traded in this money.
                self.unknown += named.words;
                named.tickers.clear();
            }
        }
        if has_bases {
            let is_left = |named: &Named<'_>| !named.is_lone_money() && !named.tickers.is_empty();
            self.named.retain(is_left);
        }
    }
}

enum Pair<'t> {
    Traded(Named<'t>),
    /// Asked for, and not traded.
    Missing,
    None,
}

/// The best market of one of the bases in one of the quotes.
fn find_pair<'t>(table: &'t SymbolTable, bases: &[&str], quotes: &[&str]) -> Option<&'t Symbol> {
    let is_asked = |symbol: &&Symbol| quotes.iter().any(|quote| assets::is_quote(quote, &symbol.quote));
    let markets = bases.iter().flat_map(|base| table.of_base(base)).filter(is_asked);
    markets.min_by_key(|symbol| table.place(symbol))
}
