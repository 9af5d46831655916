//! A second implementation, so that the suite is not tied to the embedded engine: everything in memory, compared
//! one by one.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::RangeBounds;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

#[derive(Clone)]
struct Stored {
    file: String,
    record: Record,
    passages: Vec<(String, String)>,
    ranges: Vec<std::ops::Range<usize>>,
    places: Vec<Option<String>>,
}

#[derive(Clone, Default)]
struct State {
    commits: u128,
    vector_commits: u128,
    manifest: Manifest,
    documents: BTreeMap<String, Stored>,
    /// By model.
    vectors: HashMap<&'static str, HashMap<u64, Vec<f32>>>,
}

#[derive(Default)]
struct Shared {
    published: Mutex<State>,
    writing: AtomicBool,
    writing_vectors: AtomicBool,
}

#[derive(Clone, Default)]
pub(super) struct MemoryFixture(Arc<Shared>);

impl Fixture for MemoryFixture {
    fn engine_with(&self, model: &'static str) -> Arc<dyn Engine> {
        Arc::new(MemoryEngine { shared: self.0.clone(), model })
    }
}

#[derive(Clone)]
struct MemoryEngine {
    shared: Arc<Shared>,
    model: &'static str,
}

impl MemoryEngine {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.shared.published.lock().expect("a lock")
    }
}

impl Engine for MemoryEngine {
    fn published(&self) -> Option<VersionMark> {
        let state = self.state();
        (state.commits > 0).then(|| VersionMark {
            index: state.commits,
            vectors: state.vector_commits,
            committed: None,
        })
    }

    fn open(&self) -> Result<Option<Arc<dyn Version>>> {
        let state = self.state().clone();
        let vectors = state.vectors.get(self.model).cloned().unwrap_or_default();
        Ok((state.commits > 0).then(|| Arc::new(MemoryVersion { state, vectors }) as Arc<dyn Version>))
    }

    fn begin(&self, _: u64) -> Result<Box<dyn Changes>> {
        if self.shared.writing.swap(true, Ordering::SeqCst) {
            return Err(EngineError::Busy);
        }
        let before = self.state().clone();
        Ok(Box::new(MemoryChanges { engine: self.clone(), after: before.clone(), before }))
    }

    fn vectors(&self) -> Result<Option<Box<dyn VectorWriter>>> {
        if self.shared.writing_vectors.swap(true, Ordering::SeqCst) {
            return Err(EngineError::Busy);
        }
        Ok(Some(Box::new(MemoryVectors(self.clone()))))
    }
}

struct MemoryChanges {
    engine: MemoryEngine,
    before: State,
    after: State,
}

impl Drop for MemoryChanges {
    fn drop(&mut self) {
        self.engine.shared.writing.store(false, Ordering::SeqCst);
    }
}

impl Changes for MemoryChanges {
    fn manifest(&self) -> Arc<Manifest> {
        Arc::new(self.before.manifest.clone())
    }

    fn is_first(&self) -> bool {
        self.before.commits == 0
    }

    fn holder(
        &self,
        by: &Lookup<'_>,
        is_wanted: &mut dyn FnMut(&IndexedDocument) -> bool,
    ) -> Result<Option<IndexedDocument>> {
        let has = |stored: &&Stored| match by {
            Lookup::Key(key) => stored.record.key == *key,
            Lookup::Field(field, value) => stored.record.fields.get(*field).is_some_and(|held| held == value),
        };
        let holdings = self.before.documents.values().filter(has).map(|stored| IndexedDocument {
            key: stored.record.key.clone(),
            file: stored.file.clone(),
            date: stored.record.date,
            readers: stored.record.readers.clone(),
            fields: Some(stored.record.fields.clone()),
        });
        Ok({ holdings }.find(|holding| is_wanted(holding)))
    }

    fn remove(&mut self, file: &str) {
        self.after.documents.retain(|_, stored| stored.file != file);
    }

    fn add(&mut self, entry: &Entry<'_>) -> Result<()> {
        let text = &entry.record.text;
        let stored = Stored {
            file: entry.file.to_owned(),
            record: entry.record.clone(),
            passages: entry
                .passages
                .iter()
                .map(|passage| (passage.header.clone(), text[passage.range.clone()].to_owned()))
                .collect(),
            ranges: entry.passages.iter().map(|passage| passage.range.clone()).collect(),
            places: entry.passages.iter().map(|passage| passage.place.clone()).collect(),
        };
        self.after.documents.insert(entry.record.key.clone(), stored);
        Ok(())
    }

    fn commit(self: Box<Self>, manifest: &Manifest) -> Result<()> {
        let mut published = self.engine.state();
        published.documents = self.after.documents.clone();
        published.manifest = manifest.clone();
        published.commits += 1;
        Ok(())
    }
}

struct MemoryVectors(MemoryEngine);

impl MemoryVectors {
    fn with<T>(&self, change: impl FnOnce(&mut HashMap<u64, Vec<f32>>) -> T) -> T {
        change(self.0.state().vectors.entry(self.0.model).or_default())
    }
}

impl Drop for MemoryVectors {
    fn drop(&mut self) {
        self.0.shared.writing_vectors.store(false, Ordering::SeqCst);
    }
}

impl VectorWriter for MemoryVectors {
    fn holds(&self, content: u64) -> bool {
        self.with(|held| held.contains_key(&content))
    }

    fn add(&mut self, vectors: &[(u64, Vec<f32>)]) -> Result<()> {
        self.with(|held| held.extend(vectors.iter().cloned()));
        Ok(())
    }

    fn publish(&mut self) -> Result<()> {
        self.0.state().vector_commits += 1;
        Ok(())
    }

    fn retain(&mut self, is_needed: &dyn Fn(u64) -> bool) -> Result<()> {
        self.with(|held| held.retain(|content, _| is_needed(*content)));
        Ok(())
    }
}

struct MemoryVersion {
    state: State,
    vectors: HashMap<u64, Vec<f32>>,
}

/// The number of the document above that of the passage.
fn id(document: usize, passage: usize) -> PassageId {
    PassageId(((document as u64) << 32) | passage as u64)
}

fn hash(text: &str) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

impl MemoryVersion {
    fn all(&self) -> impl Iterator<Item = (PassageId, &Stored, &(String, String))> {
        self.state.documents.values().enumerate().flat_map(|(number, stored)| {
            let passages = stored.passages.iter().enumerate();
            passages.map(move |(at, passage)| (id(number, at), stored, passage))
        })
    }

    fn find(&self, passage: PassageId) -> (&Stored, usize) {
        let number = (passage.0 >> 32) as usize;
        let stored = self.state.documents.values().nth(number).expect("a document");
        (stored, (passage.0 & u64::from(u32::MAX)) as usize)
    }

    fn meets(stored: &Stored, condition: &Condition) -> bool {
        match condition {
            Condition::Is { field, value } => {
                let held = stored.record.fields.get(field).and_then(|held| held.as_str());
                held.is_some_and(|held| held.eq_ignore_ascii_case(value))
            }
            Condition::Days { from, until } => {
                let date = stored.record.date;
                from.is_none_or(|from| date >= Some(from)) && until.is_none_or(|until| date.is_some_and(|d| d <= until))
            }
            Condition::Holds { field, part } => {
                let held = stored.record.fields.get(field).and_then(|held| held.as_str());
                held.is_some_and(|held| held.to_lowercase().contains(&part.to_lowercase()))
            }
            Condition::Number { field, from, until } => {
                let held = stored.record.fields.get(field).and_then(serde_json::Value::as_f64);
                held.is_some_and(|held| (*from, *until).contains(&held))
            }
        }
    }

    fn passes(stored: &Stored, filter: &Filter, visible: &Visible) -> bool {
        Self::is_seen(stored, visible) && filter.0.iter().all(|condition| Self::meets(stored, condition))
    }

    fn is_seen(stored: &Stored, visible: &Visible) -> bool {
        match visible {
            Visible::All => true,
            Visible::Only(readers) => readers.contains(&stored.record.readers.to_string()),
        }
    }

    /// How many of the wanted stems a text has, for its length.
    fn score(text: &str, wanted: &[u32]) -> f32 {
        let held = stems(text, &mut EnglishWords::default());
        let found = wanted.iter().filter(|stem| held.contains(stem)).count();
        found as f32 / (text.len() as f32).sqrt()
    }

    fn best(&self, score: impl Fn(&Stored, &(String, String)) -> Option<f32>, depth: usize) -> Vec<Candidate> {
        let mut best: Vec<Candidate> = Vec::new();
        for (passage, stored, text) in self.all() {
            let Some(score) = score(stored, text) else { continue };
            let document = hash(&stored.record.key);
            match best.iter_mut().find(|found| found.document == document) {
                Some(found) if found.score >= score => {}
                Some(found) => *found = Candidate { document, score, passage },
                None => best.push(Candidate { document, score, passage }),
            }
        }
        best.sort_by(|a, b| b.score.total_cmp(&a.score));
        best.truncate(depth);
        best
    }

    fn words_score(text: &str, clauses: &[Clause]) -> Option<f32> {
        let mut total = 0.0;
        for clause in clauses {
            let Want::Words { text: wanted, phrase, .. } = &clause.want else {
                continue;
            };
            let score = Self::score(text, &stems(wanted, &mut EnglishWords::default()));
            let holds = if *phrase { text.contains(wanted.as_str()) } else { score > 0.0 };
            match clause.demand {
                Demand::MustNot if holds => return None,
                Demand::Must if !holds => return None,
                Demand::MustNot => {}
                Demand::Must | Demand::Should => total += score,
            }
        }
        (total > 0.0).then_some(total)
    }
}

impl Version for MemoryVersion {
    fn manifest(&self) -> &Manifest {
        &self.state.manifest
    }

    fn size(&self) -> u64 {
        self.all().count() as u64
    }

    fn embedded(&self) -> u64 {
        self.all().filter(|(passage, ..)| self.has_vector(*passage)).count() as u64
    }

    fn ranks_by_vector(&self) -> bool {
        self.embedded() == self.size()
    }

    fn has_vector(&self, passage: PassageId) -> bool {
        let (stored, at) = self.find(passage);
        self.vectors.contains_key(&hash(&stored.passages[at].1))
    }

    fn words(&self) -> Box<dyn Words> {
        Box::new(EnglishWords::default())
    }

    fn rank(&self, ranking: &Ranking<'_>, legs: &[Leg<'_>]) -> Result<Vec<Vec<Candidate>>> {
        let rank = |leg: &Leg<'_>| match leg {
            Leg::Words => self.best(
                |stored, (header, text)| {
                    let score = Self::words_score(&format!("{header}\n{text}"), ranking.clauses)?;
                    Self::passes(stored, ranking.filter, ranking.visible).then_some(score)
                },
                ranking.depth,
            ),
            Leg::Vector(wanted) => self.best(
                |stored, (_, text)| {
                    let vector = self.vectors.get(&hash(text))?;
                    let cosine = vector.iter().zip(*wanted).map(|(a, b)| a * b).sum();
                    Self::passes(stored, ranking.filter, ranking.visible).then_some(cosine)
                },
                ranking.depth,
            ),
        };
        Ok(legs.iter().map(rank).collect())
    }

    fn similar(&self, text: &str, visible: &Visible, depth: usize) -> Result<Vec<Candidate>> {
        let wanted = stems(text, &mut EnglishWords::default());
        let score = |stored: &Stored, text: &str| Self::is_seen(stored, visible).then(|| Self::score(text, &wanted));
        Ok(self.best(|stored, (_, text)| score(stored, text), depth))
    }

    fn centroid(&self, key: &str) -> Result<Option<Vec<f32>>> {
        let stored = self.state.documents.get(key);
        Ok(stored.and_then(|stored| self.vectors.get(&hash(&stored.passages[0].1)).cloned()))
    }

    fn passage(&self, passage: PassageId) -> Result<StoredPassage> {
        let (stored, ordinal) = self.find(passage);
        let (header, text) = stored.passages[ordinal].clone();
        Ok(StoredPassage {
            key: stored.record.key.clone(),
            title: stored.record.title.clone(),
            url: stored.record.url.clone(),
            text,
            header,
            place: stored.places[ordinal].clone(),
            ordinal,
            count: stored.passages.len(),
        })
    }

    fn document(&self, key: &str, visible: &Visible) -> Result<Option<StoredDocument>> {
        let stored = self.state.documents.get(key).filter(|stored| Self::is_seen(stored, visible));
        Ok(stored.map(|stored| StoredDocument {
            file: stored.file.clone(),
            title: stored.record.title.clone(),
            text: stored.record.text.clone(),
            url: stored.record.url.clone(),
            date: stored.record.date,
            fields: stored.record.fields.clone(),
            passages: stored.ranges.clone(),
            markup: stored.record.markup,
            places: stored.record.places.clone(),
        }))
    }

    fn holds(&self, key: &str, visible: &Visible) -> Result<bool> {
        Ok(self.document(key, visible)?.is_some())
    }

    fn shows(&self, passage: PassageId, visible: &Visible) -> Result<bool> {
        Ok(Self::is_seen(self.find(passage).0, visible))
    }

    fn facets(&self, field: &str, filter: &Filter, visible: &Visible) -> Result<Vec<(String, u64)>> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for stored in self.state.documents.values().filter(|stored| Self::passes(stored, filter, visible)) {
            if let Some(value) = stored.record.fields.get(field).and_then(|value| value.as_str()) {
                *counts.entry(value.to_owned()).or_default() += 1;
            }
        }
        let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Ok(counts)
    }

    fn any(&self, filter: &Filter, visible: &Visible) -> Result<Option<PassageId>> {
        let found = { self.all() }.find(|(_, stored, _)| Self::passes(stored, filter, visible));
        Ok(found.map(|(passage, ..)| passage))
    }

    fn documents_with(&self, field: &str, value: &str, visible: &Visible) -> Result<Vec<DatedDocument>> {
        let filter = Filter(vec![Condition::Is { field: field.to_owned(), value: value.to_owned() }]);
        let found = self.best(|stored, _| Self::passes(stored, &filter, visible).then_some(1.0), usize::MAX);
        let dated = found.into_iter().map(|found| DatedDocument {
            document: found.document,
            passage: found.passage,
            day: None,
        });
        Ok(dated.collect())
    }

    fn timeline(&self, _: Timeline) -> Result<Vec<TimelineEntry>> {
        let mut places: Vec<TimelineEntry> = self
            .best(|_, _| Some(1.0), usize::MAX)
            .into_iter()
            .filter_map(|found| {
                let (stored, _) = self.find(found.passage);
                Some(TimelineEntry {
                    series: 0,
                    day: i64::from(stored.record.date?.day_of_year()),
                    page: u32::try_from(stored.record.fields["page"].as_u64()?).ok()?,
                    passage: found.passage,
                    document: found.document,
                })
            })
            .collect();
        places.sort();
        Ok(places)
    }

    fn keys_beside(&self, key: &str, before: bool, most: usize, visible: &Visible) -> Result<Vec<String>> {
        let seen = self.state.documents.iter().filter(|(_, stored)| Self::is_seen(stored, visible));
        let keys = seen.map(|(key, _)| key.clone());
        Ok(if before {
            let keys: Vec<String> = keys.filter(|other| other.as_str() < key).collect();
            keys.into_iter().rev().take(most).collect()
        } else {
            keys.filter(|other| other.as_str() > key).take(most).collect()
        })
    }

    fn contents(&self) -> Result<Vec<(u64, PassageId)>> {
        let mut seen = HashSet::new();
        let contents = self.all().map(|(passage, _, (_, text))| (hash(text), passage));
        Ok(contents.filter(|(content, _)| seen.insert(*content)).collect())
    }
}
