use std::sync::atomic::{AtomicU32, Ordering};

use futures::future::join_all;
use jiff::civil::{Date, date};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, TestRunner};
use tribune_core::{ErrorKind, UserId};
use tribune_storage::Store;
use tribune_storage::{Priority, Task, TaskCursor, TaskFilter, TaskSort, Tasks};

use crate::fixtures::{task, texts, time, user};

const SORTS: [TaskSort; 3] = [TaskSort::Newest, TaskSort::Due, TaskSort::Priority];

async fn keep(tasks: &Tasks, owner: &UserId, given: &[Task]) {
    for outcome in join_all(given.iter().map(|task| tasks.add(owner, task))).await {
        outcome.expect("kept");
    }
}

async fn titles(tasks: &Tasks, owner: &UserId, filter: &TaskFilter) -> Vec<String> {
    let page = tasks.list(owner, filter, 100, None).await.expect("a page");
    page.tasks.into_iter().map(|task| task.title).collect()
}

#[derive(Debug, Clone)]
struct Case {
    tasks: Vec<Task>,
    filter: TaskFilter,
    limit: usize,
}

fn words() -> impl Strategy<Value = String> {
    let words = ["Apple", "apple pie", "PEAR", "10%", "a_b", "axb", "Ärger", "ärger", r"c:\d", "", "it's", "日本"];
    select(words.to_vec()).prop_map(str::to_owned)
}

fn days() -> impl Strategy<Value = Date> {
    select(vec![date(2026, 1, 1), date(2026, 1, 2), date(2026, 12, 31), date(2027, 1, 1), date(-1, 1, 1)])
}

fn priorities() -> impl Strategy<Value = Priority> {
    select(Priority::ALL.to_vec())
}

prop_compose! {
    fn tasks()(title in words(), description in of(words()), priority in priorities(), category in of(words()),
               tags in vec(words(), 0..3), due_date in of(days()), completed in any::<bool>()) -> Task {
        Task {
            description, priority, category, tags, due_date,
            completed_at: completed.then(|| time(1)),
            ..task(&title)
        }
    }
}

prop_compose! {
    fn filters()(completed in of(any::<bool>()), priority in of(priorities()), category in of(words()),
                 tag in of(words()), due_from in of(days()), due_until in of(days()), words in vec(words(), 0..3),
                 mask in 0_u8..128, sort in select(SORTS.to_vec())) -> TaskFilter {
        // Few at a time: with all of them hardly anything is let through.
        let few = |bit: u8| mask & (1 << bit) != 0 && mask.count_ones() <= 3;
        TaskFilter {
            completed: completed.filter(|_| few(0)),
            priority: priority.filter(|_| few(1)),
            category: category.filter(|_| few(2)),
            tag: tag.filter(|_| few(3)),
            due_from: due_from.filter(|_| few(4)),
            due_until: due_until.filter(|_| few(5)),
            words: if few(6) { words } else { Vec::new() },
            sort,
        }
    }
}

prop_compose! {
    fn cases()(tasks in vec(tasks(), 0..16), filter in filters(), limit in 1_usize..6) -> Case {
        Case { tasks, filter, limit }
    }
}

/// The same by other means: the filter's words, one after the other, over a plain list.
fn model(case: &Case) -> Vec<Task> {
    let filter = &case.filter;
    let same = |one: &str, other: &str| one.to_lowercase() == other.to_lowercase();
    let has = |field: &str, word: &str| field.to_lowercase().contains(&word.to_lowercase());
    let mut found: Vec<Task> = case
        .tasks
        .iter()
        .filter(|task| filter.completed.is_none_or(|completed| completed == task.completed_at.is_some()))
        .filter(|task| filter.priority.is_none_or(|priority| priority == task.priority))
        .filter(|task| match (&filter.category, &task.category) {
            (None, _) => true,
            (Some(wanted), Some(category)) => same(wanted, category),
            (Some(_), None) => false,
        })
        .filter(|task| filter.tag.as_ref().is_none_or(|wanted| task.tags.iter().any(|tag| same(tag, wanted))))
        .filter(|task| filter.due_from.is_none_or(|day| task.due_date.is_some_and(|due| due >= day)))
        .filter(|task| filter.due_until.is_none_or(|day| task.due_date.is_some_and(|due| due <= day)))
        .filter(|task| {
            filter.words.iter().all(|word| {
                let fields = [Some(&task.title), task.description.as_ref(), task.category.as_ref()];
                fields.into_iter().flatten().chain(&task.tags).any(|field| has(field, word))
            })
        })
        .cloned()
        .collect();
    found.sort_by_key(|task| task.id);
    match filter.sort {
        TaskSort::Newest => found.reverse(),
        TaskSort::Due => found.sort_by_key(|task| (task.due_date.is_none(), task.due_date)),
        TaskSort::Priority => found.sort_by_key(|task| task.priority),
    }
    found
}

pub async fn lists_match_a_plain_model(store: &Store) {
    let tasks = store.tasks();
    let number = AtomicU32::new(0);
    let check = async |case: &Case| -> Result<(), TestCaseError> {
        // Somebody new each time, among everybody else's.
        let owner = user(&format!("user{}", number.fetch_add(1, Ordering::Relaxed)));
        keep(&tasks, &owner, &case.tasks).await;
        let expected = model(case);
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = tasks.list(&owner, &case.filter, case.limit, after).await.expect("a page");
            prop_assert_eq!(page.total, expected.len() as u64);
            prop_assert!(page.tasks.len() <= case.limit);
            found.extend(page.tasks);
            after = page.next;
            if after.is_none() {
                break;
            }
            prop_assert!(found.len() < expected.len(), "a page more than there is");
        }
        prop_assert_eq!(&found, &expected);
        Ok(())
    };
    let config = Config { cases: 150, max_shrink_iters: 200, failure_persistence: None, ..Config::default() };
    let runtime = tokio::runtime::Handle::current();
    tokio::task::block_in_place(|| {
        let outcome = TestRunner::new(config).run(&cases(), |case| runtime.block_on(check(&case)));
        outcome.expect("the same as a plain list");
    });
}

pub async fn pages_neither_repeat_nor_skip_while_tasks_are_added(store: &Store) {
    let tasks = store.tasks();
    for (number, sort) in (0..).zip(SORTS) {
        let owner = user(&format!("user{number}"));
        let some = |count: u8, title: &str| -> Vec<Task> {
            (0..count)
                .map(|number| Task {
                    priority: Priority::ALL[usize::from(number % 3)],
                    due_date: (number % 4 != 0).then(|| date(2026, 5, 1 + i8::try_from(number % 5).expect("small"))),
                    ..task(title)
                })
                .collect()
        };
        let first = some(20, "first");
        keep(&tasks, &owner, &first).await;
        let filter = TaskFilter { sort, ..TaskFilter::default() };
        let (mut seen, mut after) = (Vec::new(), None);
        loop {
            let page = tasks.list(&owner, &filter, 3, after).await.expect("a page");
            seen.extend(page.tasks);
            after = page.next;
            if after.is_none() {
                break;
            }
            if seen.len() < 20 {
                keep(&tasks, &owner, &some(2, "later")).await;
            }
        }
        let mut ids: Vec<_> = seen.iter().map(|task| task.id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), seen.len(), "{sort:?}: something came twice");
        assert!(first.iter().all(|task| seen.contains(task)), "{sort:?}: something was skipped");
    }
}

pub async fn page_is_bounded_and_total_exact(store: &Store) {
    let (tasks, ann) = (store.tasks(), user("ann"));
    let given: Vec<Task> = (0..1_003).map(|number| task(&format!("task {number}"))).collect();
    keep(&tasks, &ann, &given).await;
    let everything = TaskFilter::default();
    let page = tasks.list(&ann, &everything, usize::MAX, None).await.expect("a page");
    assert_eq!((page.tasks.len(), page.total), (1_000, 1_003));
    assert_eq!(page.next, page.tasks.last().map(TaskCursor::from));
    let rest = tasks.list(&ann, &everything, usize::MAX, page.next).await.expect("a page");
    assert_eq!((rest.tasks.len(), rest.total, rest.next), (3, 1_003, None));
    assert_eq!(tasks.find(&ann, &texts(&["task"]), usize::MAX).await.expect("tasks").len(), 1_000);
    let none = tasks.list(&ann, &everything, 0, None).await.expect("a page");
    assert_eq!((none.tasks.len(), none.total), (0, 1_003));
    assert_eq!(tasks.find(&ann, &texts(&["task"]), 0).await.expect("tasks"), []);
}

pub async fn wildcards_are_plain_text(store: &Store) {
    let (tasks, ann) = (store.tasks(), user("ann"));
    let titles_given = ["100% sure", "100 sure", "a_b", "axb", r"back\slash", "back%slash", "it's; --", "50_%"];
    keep(&tasks, &ann, &titles_given.map(task)).await;
    let cases: [(&str, &[&str]); 7] = [
        ("%", &["100% sure", "back%slash", "50_%"]),
        ("_", &["a_b", "50_%"]),
        (r"\", &[r"back\slash"]),
        ("a_b", &["a_b"]),
        ("0%", &["100% sure"]),
        ("_%", &["50_%"]),
        ("'s; --", &["it's; --"]),
    ];
    for (word, expected) in cases {
        let mut expected = expected.to_vec();
        expected.reverse();
        let filter = TaskFilter { words: texts(&[word]), ..TaskFilter::default() };
        assert_eq!(titles(&tasks, &ann, &filter).await, expected, "{word}");
        let found = tasks.find(&ann, &texts(&[word]), 100).await.expect("tasks");
        let found: Vec<_> = found.into_iter().map(|task| task.title).collect();
        assert_eq!(found, expected, "{word}");
    }
}

pub async fn tags_match_whole_tags(store: &Store) {
    let (tasks, ann) = (store.tasks(), user("ann"));
    let tagged = |title: &str, tags: &[&str]| Task { tags: texts(tags), ..task(title) };
    let given = [
        tagged("one", &["work", "database office"]),
        tagged("two", &["homework"]),
        tagged("three", &["a\nb", "%"]),
        tagged("four", &["a", "b"]),
        tagged("five", &[",", "\"", r"a\nb"]),
        tagged("six", &[]),
    ];
    keep(&tasks, &ann, &given).await;
    let cases: [(&str, &[&str]); 10] = [
        ("WORK", &["one"]),
        ("database", &[]),
        ("a", &["four"]),
        ("a\nb", &["three"]),
        (r"a\nb", &["five"]),
        ("%", &["three"]),
        (",", &["five"]),
        ("\"", &["five"]),
        ("", &[]),
        ("_", &[]),
    ];
    for (tag, expected) in cases {
        let filter = TaskFilter { tag: Some(tag.to_owned()), ..TaskFilter::default() };
        assert_eq!(titles(&tasks, &ann, &filter).await, expected, "{tag:?}");
    }
}

pub async fn matching_ignores_case_in_every_script(store: &Store) {
    let (tasks, ann) = (store.tasks(), user("ann"));
    let given = Task { category: Some("ΟΔΟΣ".to_owned()), tags: texts(&["Ёлка"]), ..task("Größe ÄNDERN") };
    keep(&tasks, &ann, &[given]).await;
    let filters = [
        ("GRÖßE", None, None),
        ("ändern", None, None),
        ("", Some("οδος"), None),
        ("οδοσ", None, None),
        ("", None, Some("ЁЛКА")),
    ];
    for (word, category, tag) in filters {
        let filter = TaskFilter {
            words: texts(&[word]),
            category: category.map(str::to_owned),
            tag: tag.map(str::to_owned),
            ..TaskFilter::default()
        };
        assert_eq!(titles(&tasks, &ann, &filter).await.len(), 1, "{filter:?}");
    }
}

pub async fn any_word_finds_newest_first(store: &Store) {
    let (tasks, ann) = (store.tasks(), user("ann"));
    keep(&tasks, &ann, &["milk", "bread", "milk and bread", "tea"].map(task)).await;
    let found = async |words: &[&str], limit| -> Vec<String> {
        let found = tasks.find(&ann, &texts(words), limit).await.expect("tasks");
        found.into_iter().map(|task| task.title).collect()
    };
    assert_eq!(found(&["BREAD", "milk"], 9).await, ["milk and bread", "bread", "milk"]);
    assert_eq!(found(&["BREAD", "milk"], 2).await, ["milk and bread", "bread"]);
    assert_eq!(found(&["coffee"], 9).await, [""; 0]);
    assert_eq!(found(&[], 9).await, [""; 0]);
}

pub async fn oversized_search_is_refused(store: &Store) {
    let (tasks, ann) = (store.tasks(), user("ann"));
    keep(&tasks, &ann, &[task("x")]).await;
    let most = vec!["\u{130}".repeat(5_000); 256];
    assert_eq!(tasks.find(&ann, &most, 1).await.expect("an answer"), []);
    for words in [vec!["x".to_owned(); 257], vec!["x".repeat(10_001)]] {
        let error = tasks.find(&ann, &words, 1).await.expect_err("too much");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        let filter = TaskFilter { words, ..TaskFilter::default() };
        let error = tasks.list(&ann, &filter, 1, None).await.expect_err("too much");
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
    let filter = |bytes| TaskFilter { tag: Some("\\".repeat(bytes)), ..TaskFilter::default() };
    assert_eq!(tasks.list(&ann, &filter(10_000), 1, None).await.expect("a page").total, 0);
    assert!(tasks.list(&ann, &filter(10_001), 1, None).await.is_err());
}
