//! Words for the generated corpora: real English ones, and word-like
//! inventions so that there are rare terms too.

use std::collections::HashSet;

/// The most frequent words; queries leave them out.
pub const COMMON: &[&str] = &[
    "the", "of", "and", "to", "in", "that", "is", "was", "for", "with", "as", "on", "by", "at", "from", "this", "are",
    "which", "be", "have", "had", "not", "but", "were", "all", "they", "one", "their", "there", "when", "after",
    "more", "also", "before", "between", "under", "over", "then",
];

const CONTENT: &[&str] = &[
    "harbour",
    "budget",
    "council",
    "meeting",
    "report",
    "winter",
    "garden",
    "bridge",
    "railway",
    "committee",
    "library",
    "teacher",
    "student",
    "kitchen",
    "recipe",
    "market",
    "season",
    "river",
    "mountain",
    "village",
    "station",
    "engine",
    "paper",
    "letter",
    "archive",
    "museum",
    "painting",
    "music",
    "concert",
    "theatre",
    "summer",
    "autumn",
    "spring",
    "weather",
    "storm",
    "forecast",
    "boat",
    "ferry",
    "island",
    "coast",
    "fishing",
    "forest",
    "timber",
    "carpenter",
    "workshop",
    "machine",
    "pattern",
    "fabric",
    "cotton",
    "dye",
    "colour",
    "silver",
    "copper",
    "iron",
    "steel",
    "glass",
    "window",
    "door",
    "chimney",
    "roof",
    "cellar",
    "bread",
    "butter",
    "cheese",
    "apple",
    "orchard",
    "harvest",
    "barley",
    "wheat",
    "flour",
    "mill",
    "water",
    "pump",
    "valve",
    "pressure",
    "measure",
    "survey",
    "map",
    "road",
    "traffic",
    "bicycle",
    "driver",
    "ticket",
    "journey",
    "passenger",
    "luggage",
    "hotel",
    "guest",
    "dinner",
    "invoice",
    "payment",
    "account",
    "auditor",
    "contract",
    "lawyer",
    "court",
    "witness",
    "evidence",
    "decision",
    "policy",
    "election",
    "vote",
    "district",
    "mayor",
    "citizen",
    "petition",
    "newspaper",
    "editor",
    "article",
    "headline",
    "photograph",
    "camera",
    "lens",
    "telescope",
    "planet",
    "comet",
    "observatory",
    "experiment",
    "sample",
    "laboratory",
    "medicine",
    "nurse",
    "hospital",
    "patient",
    "treatment",
    "vaccine",
    "insurance",
    "premium",
    "claim",
    "accident",
    "repair",
    "mechanic",
    "battery",
    "charger",
    "circuit",
    "signal",
    "antenna",
    "radio",
    "broadcast",
    "program",
    "compiler",
    "server",
    "database",
    "backup",
    "network",
    "password",
    "keyboard",
    "screen",
    "printer",
    "software",
    "release",
    "schedule",
    "deadline",
    "project",
    "budgeting",
    "supplier",
    "warehouse",
    "delivery",
    "container",
    "customs",
    "export",
    "tariff",
    "currency",
    "exchange",
    "interest",
    "mortgage",
];

const ONSETS: &[&str] = &[
    "b", "br", "c", "cr", "d", "dr", "f", "fl", "g", "gl", "h", "j", "k", "l", "m", "n", "p", "pl", "qu", "r", "s",
    "sk", "st", "t", "tr", "v", "w", "z",
];
const VOWELS: &[&str] = &["a", "e", "i", "o", "u", "ai", "ea", "ou"];
const CODAS: &[&str] = &["", "", "n", "r", "l", "s", "m", "nd", "rk", "st", "t"];

/// A small generator (SplitMix64): the corpora must be the same on every
/// machine and with every version of every library.
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; the modulo's bias is nothing at these sizes.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    /// A number from `low` to `high`, both included.
    pub fn within(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

/// Words in order of frequency, drawn with a Zipf distribution.
pub struct Vocabulary {
    words: Vec<String>,
    cumulative: Vec<f64>,
}

impl Vocabulary {
    pub fn new(rng: &mut Rng, size: usize) -> Self {
        let words = build_words(rng, size);
        let mut total = 0.0;
        let cumulative = (0..words.len())
            .map(|rank| {
                total += 1.0 / (rank as f64 + 2.0);
                total
            })
            .collect();
        Self { words, cumulative }
    }

    pub fn draw(&self, rng: &mut Rng) -> &str {
        let total = self.cumulative.last().copied().unwrap_or(0.0);
        let point = rng.unit() * total;
        let rank = self.cumulative.partition_point(|&sum| sum < point);
        &self.words[rank.min(self.words.len() - 1)]
    }
}

/// The common words first; the rest shuffled, so that real and invented words
/// are found at every frequency.
fn build_words(rng: &mut Rng, size: usize) -> Vec<String> {
    let mut seen: HashSet<String> = COMMON.iter().map(|&word| word.to_owned()).collect();
    let mut rest: Vec<String> = CONTENT.iter().map(|&word| word.to_owned()).collect();
    seen.extend(rest.iter().cloned());
    while seen.len() < size {
        let word = invent(rng);
        if seen.insert(word.clone()) {
            rest.push(word);
        }
    }
    for index in (1..rest.len()).rev() {
        rest.swap(index, rng.below(index + 1));
    }
    COMMON.iter().map(|&word| word.to_owned()).chain(rest).collect()
}

/// Something like a word.
pub fn invent(rng: &mut Rng) -> String {
    let mut word = String::new();
    for _ in 0..rng.within(2, 4) {
        word.push_str(rng.pick(ONSETS));
        word.push_str(rng.pick(VOWELS));
    }
    word.push_str(rng.pick(CODAS));
    word
}
