//! Some twenty-five hundred questions (`questions.tsv`) of an exchange with over a thousand symbols (`exchange.txt`).
//! Which of them find what they mean is written beside each, so that a change of the rules shows what it does.

use super::{listing, search};

/// How many questions of each hundred must find what they mean, at least.
const RIGHT_PERCENT: usize = 98;

/// A document must be among so many to count as found.
const LOOKED_AT: usize = 5;

struct Asked {
    query: &'static str,
    /// It is known not to find what it means.
    missed: bool,
    /// Ids that may come first; `-` stands for nothing at all.
    first: Vec<&'static str>,
    /// Of each of these one must be among the first five.
    also: Vec<Vec<&'static str>>,
}

impl Asked {
    fn read(line: &'static str) -> Self {
        let mut fields = line.split('\t');
        let query = fields.next().expect("a query");
        let first = fields.next().expect("ids");
        let also = fields.next().unwrap_or_default().split_ascii_whitespace();
        Self {
            query,
            missed: first.starts_with('!'),
            first: first.trim_start_matches('!').split_ascii_whitespace().collect(),
            also: also.map(|ids| ids.split('|').collect()).collect(),
        }
    }

    fn is_right(&self, found: &[String]) -> bool {
        let first = found.first().map_or("-", String::as_str);
        let also = |ids: &Vec<&str>| found.iter().take(LOOKED_AT).any(|id| ids.contains(&id.as_str()));
        self.first.contains(&first) && self.also.iter().all(also)
    }
}

#[test]
fn most_questions_find_what_they_mean() {
    let markets: Vec<&str> = include_str!("exchange.txt").lines().collect();
    let table = listing(&markets);
    assert!(table.len() > 1_000, "{}", table.len());
    let lines = include_str!("questions.tsv")
        .lines()
        .filter(|line| !line.starts_with("# ") && !line.starts_with("## "));
    let questions: Vec<Asked> = lines.map(Asked::read).collect();
    let mut changed = Vec::new();
    for asked in &questions {
        let found: Vec<String> = search(&table, asked.query, 10)
            .iter()
            .map(|found| found.id.to_string())
            .collect();
        let first: Vec<&String> = found.iter().take(3).collect();
        match (asked.is_right(&found), asked.missed) {
            (true, true) => changed.push(format!("{:?} is right now: take its ! away", asked.query)),
            (false, false) => changed.push(format!(
                "{:?}: {first:?}, and not {:?} with {:?}",
                asked.query, asked.first, asked.also
            )),
            _ => {}
        }
    }
    assert!(changed.is_empty(), "{} changed:\n{}", changed.len(), changed.join("\n"));
    let missed = questions.iter().filter(|asked| asked.missed).count();
    let right = questions.len() - missed;
    assert!(
        right * 100 >= RIGHT_PERCENT * questions.len(),
        "{right} of {}",
        questions.len()
    );
}
