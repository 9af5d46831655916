//! `kill -9` in the middle of many changes: what was acknowledged is there, whole, and nothing else.
//!
//! Each round starts two processes that write to one database, each with several callers, and kills both at a
//! moment that nobody chose, once each has been told of a few changes that they are kept. The processes are this test program again: see [`a_process_that_writes`].

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tribune_core::UserId;
use tribune_core::store::{Message, Role, TaskFilter};
use tribune_store::{Place, Store};
use uuid::Uuid;

use crate::home::{Home, Kind};
use crate::things::{exchange, task, time, user};

/// In each of which two processes are killed.
const ROUNDS: u64 = 50;
/// What each process is told before it may be killed.
const HANDFUL: usize = 12;
const PATIENCE: Duration = Duration::from_secs(60);
const PROCESSES: u64 = 2;
const CALLERS: u64 = 6;
const PLACE: &str = "TRIBUNE_TEST_WRITES_TO";
const OWNER: &str = "TRIBUNE_TEST_WRITES_FOR";

/// What a process says on standard output, a line each: before it asks for something, and when it was told that it
/// is kept.
const ASKS: &str = "asks";
const KEPT: &str = "kept";

fn say(what: &str, kind: &str, id: Uuid) {
    let mut out = std::io::stdout().lock();
    // The pipe may be gone a moment before we are.
    let _ = writeln!(out, "{what} {kind} {id}").and_then(|()| out.flush());
}

/// Does nothing unless the tests below start it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_writes() {
    let (Ok(place), Ok(owner)) = (std::env::var(PLACE), std::env::var(OWNER)) else {
        return;
    };
    let place = match place.starts_with("postgres") {
        true => Place::Postgres(place),
        false => Place::Sqlite(place.into()),
    };
    let store = Store::new(place).expect("a store");
    let callers = (0..CALLERS).map(|_| tokio::spawn(write_for_ever(store.clone(), user(&owner))));
    // They end only by an error; then so does the process, and whoever wants to kill it finds it dead.
    futures::future::select_all(callers)
        .await
        .0
        .expect("nobody is turned away");
}

async fn write_for_ever(store: Store, owner: UserId) {
    let (tasks, conversations) = (store.tasks(), store.conversations());
    let conversation = Uuid::now_v7();
    loop {
        let task = task("written");
        say(ASKS, "task", task.id);
        tasks.add(&owner, &task).await.expect("kept");
        say(KEPT, "task", task.id);

        say(ASKS, "completion", task.id);
        tasks
            .complete(&owner, task.id, Some(true), time(1))
            .await
            .expect("kept")
            .expect("the task");
        say(KEPT, "completion", task.id);

        let mut said = exchange(conversation, "question", 0);
        said.answer.content = said.question.id.to_string();
        say(ASKS, "exchange", said.question.id);
        conversations.record(&owner, &said).await.expect("kept");
        say(KEPT, "exchange", said.question.id);
    }
}

#[derive(Default)]
struct Told {
    asked: BTreeMap<String, BTreeSet<Uuid>>,
    kept: BTreeMap<String, BTreeSet<Uuid>>,
}

impl Told {
    fn note(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        // A line that was cut off by the end is none.
        let (&[what, kind, id], true) = (&words[..], line.len() > 40) else {
            return;
        };
        let Ok(id) = Uuid::try_parse(id) else {
            return;
        };
        let told = match what {
            ASKS => &mut self.asked,
            KEPT => &mut self.kept,
            _ => return,
        };
        told.entry(kind.to_owned()).or_default().insert(id);
    }

    /// Everything acknowledged is there, and nothing is that was not asked for.
    fn check(&self, kind: &str, found: &BTreeSet<Uuid>) {
        let none = BTreeSet::new();
        let (asked, kept) = (
            self.asked.get(kind).unwrap_or(&none),
            self.kept.get(kind).unwrap_or(&none),
        );
        let lost: Vec<_> = kept.difference(found).collect();
        assert!(lost.is_empty(), "{kind}: acknowledged and lost: {lost:?}");
        let invented: Vec<_> = found.difference(asked).collect();
        assert!(invented.is_empty(), "{kind}: never asked for: {invented:?}");
    }
}

struct Process {
    child: Child,
    reader: thread::JoinHandle<Told>,
    /// How often it said that something is kept.
    kept: Arc<AtomicUsize>,
}

fn start(place: &Place, owner: &UserId) -> Process {
    let place = match place {
        Place::Sqlite(path) => path.to_str().expect("a path").to_owned(),
        Place::Postgres(url) => url.clone(),
    };
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["killed::a_process_that_writes", "--exact", "--nocapture"])
        .env(PLACE, place)
        .env(OWNER, owner.as_str())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program runs");
    let out = BufReader::new(child.stdout.take().expect("a pipe"));
    let kept = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&kept);
    let reader = thread::spawn(move || {
        let mut told = Told::default();
        for line in out.lines() {
            told.note(&line.expect("UTF-8"));
            counter.store(told.kept.values().map(BTreeSet::len).sum(), Ordering::Release);
        }
        told
    });
    Process { child, reader, kept }
}

fn run_and_kill(place: &Place, owner: &UserId, run_for: Duration) -> Vec<Told> {
    let mut processes: Vec<_> = (0..PROCESSES).map(|_| start(place, owner)).collect();
    let begun = Instant::now();
    while processes
        .iter()
        .any(|process| process.kept.load(Ordering::Acquire) < HANDFUL)
    {
        for process in &mut processes {
            assert_eq!(process.child.try_wait().expect("ours"), None, "it ended by itself");
        }
        assert!(begun.elapsed() < PATIENCE, "nothing is acknowledged");
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(run_for);
    processes.into_iter().map(kill).collect()
}

fn kill(mut process: Process) -> Told {
    assert_eq!(process.child.try_wait().expect("ours"), None, "it ended by itself");
    process.child.kill().expect("ours");
    process.child.wait().expect("it ends");
    process.reader.join().expect("what it said")
}

async fn all_tasks(store: &Store, owner: &UserId, filter: &TaskFilter) -> BTreeSet<Uuid> {
    let (mut found, mut after) = (BTreeSet::new(), None);
    loop {
        let page = store.tasks().list(owner, filter, 1_000, after).await.expect("a page");
        found.extend(page.tasks.iter().map(|task| task.id));
        after = page.next;
        if after.is_none() {
            assert_eq!(page.total, found.len() as u64);
            return found;
        }
    }
}

/// The questions of all conversations, having looked that each is followed by its answer.
async fn all_exchanges(store: &Store, owner: &UserId) -> BTreeSet<Uuid> {
    let page = store.conversations().list(owner, 1_000, None).await.expect("a page");
    assert_eq!(page.next, None);
    let mut questions = BTreeSet::new();
    for conversation in page.items {
        let messages = store
            .conversations()
            .messages(owner, conversation.id, 1_000, None)
            .await
            .expect("an answer");
        let messages = messages.expect("the conversation").items;
        assert_eq!(conversation.message_count, messages.len() as u64);
        assert!(!messages.is_empty(), "a conversation without messages");
        for pair in messages.chunks(2) {
            questions.insert(question_of(pair));
        }
    }
    questions
}

fn question_of(pair: &[Message]) -> Uuid {
    let [question, answer] = pair else {
        panic!("half an exchange: {pair:?}");
    };
    assert_eq!((question.role, answer.role), (Role::User, Role::Assistant));
    assert_eq!(
        answer.content,
        question.id.to_string(),
        "the answer to another question"
    );
    question.id
}

async fn check(home: &Home, owner: &UserId, told: &Told) -> usize {
    let store = home.store();
    let completed = TaskFilter {
        completed: Some(true),
        ..TaskFilter::default()
    };
    told.check("task", &all_tasks(&store, owner, &TaskFilter::default()).await);
    told.check("completion", &all_tasks(&store, owner, &completed).await);
    told.check("exchange", &all_exchanges(&store, owner).await);
    store.close().await;
    told.kept.values().map(BTreeSet::len).sum()
}

async fn survives_being_killed(kind: Kind) {
    let home = Home::of(kind).await;
    home.store().ready().await.expect("ready");
    for round in 0..ROUNDS {
        // Somebody else each time, so that only what this round wrote is looked at.
        let owner = user(&format!("round{round}"));
        let run_for = Duration::from_millis(fastrand::u64(0..150));
        let place = home.place().clone();
        let killed = tokio::task::spawn_blocking({
            let owner = owner.clone();
            move || run_and_kill(&place, &owner, run_for)
        });
        let mut told = Told::default();
        for of_one in killed.await.expect("both are killed") {
            for (all, more) in [(&mut told.asked, of_one.asked), (&mut told.kept, of_one.kept)] {
                for (kind, ids) in more {
                    all.entry(kind).or_default().extend(ids);
                }
            }
        }
        home.settled().await;
        let acknowledged = check(&home, &owner, &told).await;
        assert!(acknowledged >= 2 * HANDFUL, "only {acknowledged}: that proves little");
    }
}

#[tokio::test]
async fn sqlite_survives_being_killed() {
    survives_being_killed(Kind::Sqlite).await;
}

#[tokio::test]
async fn postgres_survives_being_killed() {
    survives_being_killed(Kind::Postgres).await;
}
