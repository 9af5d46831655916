use futures::future::join_all;
use jiff::Timestamp;
use jiff::civil::date;
use tribune_core::ErrorKind;
use tribune_storage::Store;
use tribune_storage::{Priority, Task, TaskChanges, TaskFilter};

use crate::fixtures::{task, texts, time, user};

fn full(title: &str) -> Task {
    Task {
        description: Some("line one\nline \"two\" \\ 'three'".to_owned()),
        priority: Priority::High,
        category: Some("Wörk".to_owned()),
        tags: texts(&["Büro", "a,b", "\"q\"", "", "日本"]),
        due_date: Some(date(2026, 12, 24)),
        updated_at: time(7),
        completed_at: Some(time(8)),
        ..task(title)
    }
}

pub async fn owner_has_at_most_so_many_tasks(store: &Store) {
    let (tasks, ann, ben) = (store.tasks().at_most(2), user("ann"), user("ben"));
    let first = task("first");
    for task in [&first, &task("second")] {
        tasks.add(&ann, task).await.expect("kept");
    }
    let refused = tasks.add(&ann, &task("third")).await.expect_err("a refusal");
    assert!(refused.message().contains("you have 2 tasks") && refused.message().contains("delete"), "{refused}");
    tasks.add(&ben, &task("another")).await.expect("each user has a count of their own");
    tasks.delete(&ann, first.id).await.expect("deleted");
    tasks.add(&ann, &task("third")).await.expect("kept");
}

pub async fn task_round_trips(store: &Store) {
    let (tasks, ann) = (store.tasks(), user("ann"));
    let odd = Task {
        description: Some(String::new()),
        due_date: Some(date(-44, 3, 15)),
        priority: Priority::Low,
        ..task("")
    };
    let given = [task("plain"), full("Zoë's naïve ☕ 🦀 \u{202e}"), odd];
    for task in &given {
        tasks.add(&ann, task).await.expect("kept");
    }
    for task in given {
        assert_eq!(tasks.get(&ann, task.id).await.expect("an answer"), Some(task));
    }
    assert_eq!(tasks.get(&ann, task("other").id).await.expect("an answer"), None);
}

pub async fn times_are_truncated_to_microseconds(store: &Store) {
    let (tasks, ann) = (store.tasks(), user("ann"));
    let fine: Timestamp = "2026-11-16T03:04:05.123456789Z".parse().expect("a time");
    let cut: Timestamp = "2026-11-16T03:04:05.123456Z".parse().expect("a time");
    let given = Task { created_at: fine, updated_at: fine, ..task("when") };
    tasks.add(&ann, &given).await.expect("kept");
    let kept = tasks.get(&ann, given.id).await.expect("an answer").expect("the task");
    assert_eq!((kept.created_at, kept.updated_at), (cut, cut));
    let completed = tasks.complete(&ann, given.id, None, fine).await.expect("an answer").expect("the task");
    assert_eq!((completed.completed_at, completed.updated_at), (Some(cut), cut));
    let updated = tasks.update(&ann, given.id, &TaskChanges::default(), fine).await.expect("an answer");
    assert_eq!(updated, tasks.get(&ann, given.id).await.expect("an answer"));
}

pub async fn other_owners_do_not_exist(store: &Store) {
    let (tasks, ann, bob) = (store.tasks(), user("ann"), user("bob"));
    let hers = full("secret plan");
    tasks.add(&ann, &hers).await.expect("kept");

    let everything = TaskFilter::default();
    let title = TaskChanges { title: Some("mine now".to_owned()), ..TaskChanges::default() };
    for stranger in [&bob, &user("Ann"), &user("ann2"), &user("an")] {
        assert_eq!(tasks.get(stranger, hers.id).await.expect("an answer"), None);
        assert_eq!(tasks.update(stranger, hers.id, &title, time(1)).await.expect("an answer"), None);
        for wanted in [None, Some(true), Some(false)] {
            assert_eq!(tasks.complete(stranger, hers.id, wanted, time(1)).await.expect("an answer"), None);
        }
        assert_eq!(tasks.delete(stranger, hers.id).await.expect("an answer"), None);
        assert_eq!(tasks.find(stranger, &texts(&["secret", ""]), 10).await.expect("an answer"), []);
        let page = tasks.list(stranger, &everything, 10, None).await.expect("a page");
        assert_eq!((page.tasks, page.total, page.next), (vec![], 0, None));
    }
    // Not even by taking the same id does he learn of it.
    let his = Task { id: hers.id, ..task("his own") };
    tasks.add(&bob, &his).await.expect("kept");
    assert_eq!(tasks.delete(&bob, his.id).await.expect("an answer"), Some(his));
    assert_eq!(tasks.get(&ann, hers.id).await.expect("an answer"), Some(hers));
}

pub async fn duplicate_id_is_refused(store: &Store) {
    let (tasks, ann) = (store.tasks(), user("ann"));
    let first = task("first");
    tasks.add(&ann, &first).await.expect("kept");
    let again = Task { title: "again".to_owned(), ..first.clone() };
    let error = tasks.add(&ann, &again).await.expect_err("it is there");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(tasks.get(&ann, first.id).await.expect("an answer"), Some(first));
}

pub async fn update_changes_and_clears_fields(store: &Store) {
    let (tasks, ann) = (store.tasks(), user("ann"));
    let before = full("before");
    let bystander = full("bystander");
    tasks.add(&ann, &before).await.expect("kept");
    tasks.add(&ann, &bystander).await.expect("kept");

    let set = TaskChanges {
        title: Some("after".to_owned()),
        priority: Some(Priority::Low),
        tags: Some(texts(&["new"])),
        ..TaskChanges::default()
    };
    let expected = Task {
        title: "after".to_owned(),
        priority: Priority::Low,
        tags: texts(&["new"]),
        updated_at: time(20),
        ..before.clone()
    };
    let updated = tasks.update(&ann, before.id, &set, time(20)).await.expect("an answer");
    assert_eq!(updated.as_ref(), Some(&expected));
    assert_eq!(tasks.get(&ann, before.id).await.expect("an answer"), updated);

    let clear = TaskChanges {
        description: Some(None),
        category: Some(None),
        due_date: Some(None),
        tags: Some(Vec::new()),
        ..TaskChanges::default()
    };
    let expected =
        Task { description: None, category: None, due_date: None, tags: Vec::new(), updated_at: time(21), ..expected };
    let cleared = tasks.update(&ann, before.id, &clear, time(21)).await.expect("an answer");
    assert_eq!(cleared.as_ref(), Some(&expected));
    assert_eq!(tasks.get(&ann, before.id).await.expect("an answer"), cleared);
    assert_eq!(tasks.get(&ann, bystander.id).await.expect("an answer"), Some(bystander));

    let nobody = task("never added").id;
    assert_eq!(tasks.update(&ann, nobody, &set, time(22)).await.expect("an answer"), None);
}

pub async fn updated_task_is_found_by_new_text(store: &Store) {
    let (tasks, ann) = (store.tasks(), user("ann"));
    let given = Task {
        description: Some("oranges".to_owned()),
        category: Some("TestDatabase".to_owned()),
        tags: texts(&["fruit"]),
        ..task("buy apples")
    };
    tasks.add(&ann, &given).await.expect("kept");
    let changes = TaskChanges {
        title: Some("buy pears".to_owned()),
        category: Some(Some("Garden".to_owned())),
        tags: Some(texts(&["tree"])),
        ..TaskChanges::default()
    };
    tasks.update(&ann, given.id, &changes, time(1)).await.expect("an answer");
    for (word, found) in [("pears", 1), ("oranges", 1), ("garden", 1), ("tree", 1), ("apples", 0), ("fruit", 0)] {
        let hits = tasks.find(&ann, &texts(&[word]), 10).await.expect("an answer");
        assert_eq!(hits.len(), found, "{word}");
    }
    for (category, tag, found) in [("garden", "TREE", 1), ("database", "tree", 0), ("garden", "fruit", 0)] {
        let filter =
            TaskFilter { category: Some(category.to_owned()), tag: Some(tag.to_owned()), ..TaskFilter::default() };
        let page = tasks.list(&ann, &filter, 10, None).await.expect("a page");
        assert_eq!(page.total, found, "{category} {tag}");
    }
}

pub async fn concurrent_updates_all_apply(store: &Store) {
    let (tasks, ann) = (store.tasks(), user("ann"));
    let given = task("shared");
    tasks.add(&ann, &given).await.expect("kept");
    let changes = [
        TaskChanges { title: Some("title".to_owned()), ..TaskChanges::default() },
        TaskChanges { description: Some(Some("description".to_owned())), ..TaskChanges::default() },
        TaskChanges { category: Some(Some("category".to_owned())), ..TaskChanges::default() },
        TaskChanges { tags: Some(texts(&["tag"])), ..TaskChanges::default() },
    ];
    let updates = changes.iter().map(|changes| tasks.update(&ann, given.id, changes, time(1)));
    for outcome in join_all(updates).await {
        outcome.expect("an answer").expect("the task");
    }
    let words = texts(&["title", "description", "category", "tag"]);
    let filter = TaskFilter { words, ..TaskFilter::default() };
    assert_eq!(tasks.list(&ann, &filter, 1, None).await.expect("a page").total, 1);
}

pub async fn task_is_completed_and_reopened(store: &Store) {
    let (tasks, ann) = (store.tasks(), user("ann"));
    let given = task("do it");
    tasks.add(&ann, &given).await.expect("kept");
    // What is wanted, when, and what is then so: completed at, updated at.
    let steps = [
        (Some(false), 1, None, 0),
        (Some(true), 2, Some(2), 2),
        (Some(true), 3, Some(2), 2),
        (None, 4, None, 4),
        (None, 5, Some(5), 5),
        (Some(false), 6, None, 6),
    ];
    for (wanted, now, completed, updated) in steps {
        let told = tasks.complete(&ann, given.id, wanted, time(now)).await.expect("an answer");
        let expected = Task { completed_at: completed.map(time), updated_at: time(updated), ..given.clone() };
        assert_eq!(told, Some(expected), "{wanted:?} at {now}");
        assert_eq!(tasks.get(&ann, given.id).await.expect("an answer"), told);
    }
    assert_eq!(tasks.complete(&ann, task("no").id, None, time(9)).await.expect("an answer"), None);
}

pub async fn concurrent_toggles_end_correctly(store: &Store) {
    let (tasks, ann) = (store.tasks(), user("ann"));
    let given = task("switch");
    tasks.add(&ann, &given).await.expect("kept");
    for (rounds, completed) in [(31, true), (32, true), (17, false)] {
        let turns = (0..rounds).map(|_| tasks.complete(&ann, given.id, None, time(1)));
        let told: Vec<bool> = join_all(turns)
            .await
            .into_iter()
            .map(|task| task.expect("an answer").expect("the task").completed_at.is_some())
            .collect();
        // Each saw its own turn: as many ended complete as pending, or one more.
        let complete = told.iter().filter(|complete| **complete).count();
        assert!(complete.abs_diff(rounds - complete) <= 1, "{told:?}");
        let kept = tasks.get(&ann, given.id).await.expect("an answer").expect("the task");
        assert_eq!(kept.completed_at.is_some(), completed, "after {rounds}");
    }
}

pub async fn deleted_task_is_returned_once(store: &Store) {
    let (tasks, ann) = (store.tasks(), user("ann"));
    let (given, bystander) = (full("old"), full("stays"));
    tasks.add(&ann, &given).await.expect("kept");
    tasks.add(&ann, &bystander).await.expect("kept");
    let deletions = join_all((0..8).map(|_| tasks.delete(&ann, given.id))).await;
    let given_back: Vec<Task> = deletions.into_iter().filter_map(|task| task.expect("an answer")).collect();
    assert_eq!(given_back, std::slice::from_ref(&given));
    assert_eq!(tasks.get(&ann, given.id).await.expect("an answer"), None);
    assert_eq!(tasks.get(&ann, bystander.id).await.expect("an answer"), Some(bystander));
}

pub async fn nul_is_refused_without_side_effects(store: &Store) {
    let (tasks, ann) = (store.tasks(), user("ann"));
    let bad = |field: &str| {
        let mut bad = full("fine");
        match field {
            "title" => bad.title = "a\0b".to_owned(),
            "description" => bad.description = Some("\0".to_owned()),
            "category" => bad.category = Some("x\0".to_owned()),
            _ => bad.tags = texts(&["ok", "\0"]),
        }
        bad
    };
    let fields = ["title", "description", "category", "tags"];
    let (good, wrong): (Vec<Task>, Vec<Task>) = fields.iter().map(|field| (task(field), bad(field))).unzip();
    let interleaved: Vec<&Task> = good.iter().zip(&wrong).flat_map(|(good, wrong)| [good, wrong]).collect();
    let outcomes = join_all(interleaved.iter().map(|task| tasks.add(&ann, task))).await;
    for (number, outcome) in outcomes.into_iter().enumerate() {
        match number % 2 {
            0 => outcome.expect("kept"),
            _ => assert_eq!(outcome.expect_err("refused").kind(), ErrorKind::InvalidArgument),
        }
    }
    let change = TaskChanges { title: Some("\0".to_owned()), ..TaskChanges::default() };
    let error = tasks.update(&ann, good[0].id, &change, time(1)).await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let error = tasks.find(&ann, &texts(&["\0"]), 1).await.expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let page = tasks.list(&ann, &TaskFilter::default(), 10, None).await.expect("a page");
    let mut kept = page.tasks;
    kept.reverse();
    assert_eq!(kept, good);
}

pub async fn concurrent_callers_get_their_own_answers(store: &Store) {
    let tasks = store.tasks();
    let owners: Vec<_> = (0..4).map(|number| user(&format!("user{number}"))).collect();
    let given: Vec<_> = (0..200).map(|number| (&owners[number % 4], task(&format!("task {number}")))).collect();
    for outcome in join_all(given.iter().map(|(owner, task)| tasks.add(owner, task))).await {
        outcome.expect("kept");
    }
    let completed = given.iter().map(|(owner, task)| tasks.complete(owner, task.id, Some(true), time(3)));
    for (told, (_, given)) in join_all(completed).await.into_iter().zip(&given) {
        let expected = Task { completed_at: Some(time(3)), updated_at: time(3), ..given.clone() };
        assert_eq!(told.expect("an answer"), Some(expected));
    }
}

pub async fn last_update_is_undone(store: &Store) {
    let (tasks, ann, bob) = (store.tasks(), user("ann"), user("bob"));
    let first = full("first");
    tasks.add(&ann, &first).await.expect("kept");
    let undo = async |owner, second| tasks.undo_update(owner, first.id, time(second)).await;
    assert_eq!(undo(&ann, 9).await.expect_err("never updated").kind(), ErrorKind::InvalidArgument);
    let update = async |title: &str, second| {
        let changes = TaskChanges {
            title: Some(title.to_owned()),
            description: Some(None),
            due_date: Some(None),
            tags: Some(Vec::new()),
            ..TaskChanges::default()
        };
        tasks.update(&ann, first.id, &changes, time(second)).await.expect("an answer").expect("the task")
    };
    let second = update("second", 10).await;
    // Made again, it changes nothing and takes nothing away.
    update("second", 11).await;
    assert_eq!(undo(&bob, 12).await.expect("an answer"), None);
    tasks.complete(&ann, first.id, Some(false), time(13)).await.expect("an answer");
    let undone = undo(&ann, 14).await.expect("an answer").expect("the task");
    assert_eq!(undone, Task { updated_at: time(14), completed_at: None, ..first.clone() });
    assert_eq!(tasks.find(&ann, &texts(&["oranges", "two"]), 10).await.expect("an answer"), [undone], "searched again");
    // Undone twice, the update is back.
    let again = undo(&ann, 15).await.expect("an answer").expect("the task");
    assert_eq!(again, Task { updated_at: time(15), completed_at: None, ..second });
    update("third", 16).await;
    let back = undo(&ann, 17).await.expect("an answer").expect("the task");
    assert_eq!(back, Task { updated_at: time(17), ..again }, "one version is kept");
    tasks.delete(&ann, first.id).await.expect("an answer");
    assert_eq!(undo(&ann, 18).await.expect("an answer"), None);
}
