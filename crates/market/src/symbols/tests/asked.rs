//! Some twelve hundred questions (`questions.tsv`) of an exchange with over a thousand symbols (`exchange.txt`):
//! not every one can be right at once, but their share must not fall.

use std::collections::BTreeMap;

use super::super::search;
use super::listing;

/// How many questions of each hundred must find what they mean, at least.
const RIGHT_PERCENT: usize = 95;

/// A result must be among so many to count as found.
const LOOKED_AT: usize = 5;

struct Asked {
    group: &'static str,
    query: &'static str,
    /// Ids that may come first; `-` stands for nothing at all.
    first: Vec<&'static str>,
    /// Of each of these one must be among the first five.
    also: Vec<Vec<&'static str>>,
}

fn questions() -> Vec<Asked> {
    let mut group = "";
    let mut questions = Vec::new();
    for line in include_str!("questions.tsv").lines() {
        if let Some(name) = line.strip_prefix("## ") {
            group = name;
        } else if !line.starts_with("# ") {
            let mut fields = line.split('\t');
            questions.push(Asked {
                group,
                query: fields.next().expect("a query"),
                first: fields.next().expect("ids").split(' ').collect(),
                also: fields
                    .next()
                    .unwrap_or_default()
                    .split_ascii_whitespace()
                    .map(|ids| ids.split('|').collect())
                    .collect(),
            });
        }
    }
    questions
}

impl Asked {
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
    let mut groups: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut wrong = Vec::new();
    let questions = questions();
    for asked in &questions {
        let found: Vec<String> = search(&table, asked.query, 10)
            .iter()
            .map(|found| found.id.to_string())
            .collect();
        let group = groups.entry(asked.group).or_default();
        group.1 += 1;
        if asked.is_right(&found) {
            group.0 += 1;
        } else {
            let Asked {
                group, query, first, ..
            } = asked;
            wrong.push(format!(
                "[{group}] {query:?}: {:?}, and not {first:?}",
                found.iter().take(3).collect::<Vec<_>>()
            ));
        }
    }
    let right = questions.len() - wrong.len();
    let told = format!("{right} of {} right\n{groups:?}\n{}", questions.len(), wrong.join("\n"));
    println!("{told}");
    assert!(right * 100 >= RIGHT_PERCENT * questions.len(), "{told}");
}
