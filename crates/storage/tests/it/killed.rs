//! `kill -9` during many changes: everything acknowledged is there, complete, and nothing else.
//!
//! Each round starts two processes that write to one database, each with several callers, and kills both at a random
//! moment after each has got some acknowledgements. The processes are this test program: see [`writing_process`].

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tribune_core::UserId;
use tribune_storage::{Backend, Store};
use tribune_storage::{Message, Role, TaskFilter};
use uuid::Uuid;

use crate::fixtures::{exchange, task, time, user};
use crate::test_database::{Kind, TestDatabase};

/// The number of acknowledgements of each process before it is killed.
const HANDFUL: usize = 12;
const PATIENCE: Duration = Duration::from_secs(120);
const PROCESSES: u64 = 2;
const CALLERS: u64 = 6;
const PLACE: &str = "TRIBUNE_TEST_WRITES_TO";
const OWNER: &str = "TRIBUNE_TEST_WRITES_FOR";

/// What a process prints, one line each: before a change, and after its acknowledgement.
const REQUESTED: &str = "requested";
const ACKNOWLEDGED: &str = "acknowledged";

fn report(what: &str, kind: &str, id: Uuid) {
    let mut out = std::io::stdout().lock();
    // The pipe may close before this process is killed.
    let _ = writeln!(out, "{what} {kind} {id}").and_then(|()| out.flush());
}

/// Does nothing unless the tests below start it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writing_process() {
    let (Ok(place), Ok(owner)) = (std::env::var(PLACE), std::env::var(OWNER)) else {
        return;
    };
    let place = match place.starts_with("postgres") {
        true => Backend::Postgres(place),
        false => Backend::Sqlite(place.into()),
    };
    let store = Store::new(place).expect("a store");
    let callers = (0..CALLERS).map(|_| tokio::spawn(write_for_ever(store.clone(), user(&owner))));
    // A caller ends only by an error, which ends the process and fails the test.
    futures::future::select_all(callers).await.0.expect("nobody is turned away");
}

async fn write_for_ever(store: Store, owner: UserId) {
    let (tasks, conversations) = (store.tasks(), store.conversations());
    let conversation = Uuid::now_v7();
    loop {
        let task = task("written");
        report(REQUESTED, "task", task.id);
        tasks.add(&owner, &task).await.expect("kept");
        report(ACKNOWLEDGED, "task", task.id);

        report(REQUESTED, "completion", task.id);
        tasks.complete(&owner, task.id, Some(true), time(1)).await.expect("kept").expect("the task");
        report(ACKNOWLEDGED, "completion", task.id);

        let mut said = exchange(conversation, "question", 0);
        said.answer.content = said.question.id.to_string();
        report(REQUESTED, "exchange", said.question.id);
        conversations.record(&owner, &said).await.expect("kept");
        report(ACKNOWLEDGED, "exchange", said.question.id);
    }
}

#[derive(Default)]
struct WriteLog {
    requested: BTreeMap<String, BTreeSet<Uuid>>,
    acknowledged: BTreeMap<String, BTreeSet<Uuid>>,
}

impl WriteLog {
    fn add(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        // A line that the kill cut off does not count.
        let (&[what, kind, id], true) = (&words[..], line.len() > 40) else {
            return;
        };
        let Ok(id) = Uuid::try_parse(id) else {
            return;
        };
        let log = match what {
            REQUESTED => &mut self.requested,
            ACKNOWLEDGED => &mut self.acknowledged,
            _ => return,
        };
        log.entry(kind.to_owned()).or_default().insert(id);
    }

    /// Everything acknowledged is stored, and nothing that was not requested.
    fn check(&self, kind: &str, found: &BTreeSet<Uuid>) {
        let none = BTreeSet::new();
        let (requested, acknowledged) =
            (self.requested.get(kind).unwrap_or(&none), self.acknowledged.get(kind).unwrap_or(&none));
        let lost: Vec<_> = acknowledged.difference(found).collect();
        assert!(lost.is_empty(), "{kind}: acknowledged and lost: {lost:?}");
        let invented: Vec<_> = found.difference(requested).collect();
        assert!(invented.is_empty(), "{kind}: never asked for: {invented:?}");
    }
}

struct Process {
    child: Child,
    reader: thread::JoinHandle<WriteLog>,
    /// The number of acknowledgements so far.
    acknowledged: Arc<AtomicUsize>,
}

fn start(place: &Backend, owner: &UserId) -> Process {
    let place = match place {
        Backend::Sqlite(path) => path.to_str().expect("a path").to_owned(),
        Backend::Postgres(url) => url.clone(),
    };
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["killed::writing_process", "--exact", "--nocapture"])
        .env(PLACE, place)
        .env(OWNER, owner.as_str())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program runs");
    let out = BufReader::new(child.stdout.take().expect("a pipe"));
    let acknowledged = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&acknowledged);
    let reader = thread::spawn(move || {
        let mut log = WriteLog::default();
        for line in out.lines() {
            log.add(&line.expect("UTF-8"));
            counter.store(log.acknowledged.values().map(BTreeSet::len).sum(), Ordering::Release);
        }
        log
    });
    Process { child, reader, acknowledged }
}

fn run_and_kill(place: &Backend, owner: &UserId, run_for: Duration) -> Vec<WriteLog> {
    let mut processes: Vec<_> = (0..PROCESSES).map(|_| start(place, owner)).collect();
    let begun = Instant::now();
    while processes.iter().any(|process| process.acknowledged.load(Ordering::Acquire) < HANDFUL) {
        for process in &mut processes {
            assert_eq!(process.child.try_wait().expect("ours"), None, "it ended by itself");
        }
        assert!(begun.elapsed() < PATIENCE, "nothing is acknowledged");
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(run_for);
    processes.into_iter().map(kill).collect()
}

fn kill(mut process: Process) -> WriteLog {
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
        let messages = store.conversations().messages(owner, conversation.id, 1_000, None).await.expect("an answer");
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
    assert_eq!(answer.content, question.id.to_string(), "the answer to another question");
    question.id
}

async fn check(database: &TestDatabase, owner: &UserId, log: &WriteLog) -> usize {
    let store = database.store();
    let completed = TaskFilter { completed: Some(true), ..TaskFilter::default() };
    log.check("task", &all_tasks(&store, owner, &TaskFilter::default()).await);
    log.check("completion", &all_tasks(&store, owner, &completed).await);
    log.check("exchange", &all_exchanges(&store, owner).await);
    store.close().await;
    log.acknowledged.values().map(BTreeSet::len).sum()
}

/// In each of which two processes are killed; more of them with `./test --soak`.
fn rounds() -> u64 {
    if std::env::var_os("TRIBUNE_SOAK").is_some() { 50 } else { 5 }
}

async fn survives_being_killed(kind: Kind) {
    let database = TestDatabase::new(kind).await;
    database.store().ready().await.expect("ready");
    for round in 0..rounds() {
        // Somebody else each time, so that only what this round wrote is looked at.
        let owner = user(&format!("round{round}"));
        let run_for = Duration::from_millis(fastrand::u64(0..150));
        let place = database.place().clone();
        let killed = tokio::task::spawn_blocking({
            let owner = owner.clone();
            move || run_and_kill(&place, &owner, run_for)
        });
        let mut log = WriteLog::default();
        for of_one in killed.await.expect("both are killed") {
            for (all, more) in [(&mut log.requested, of_one.requested), (&mut log.acknowledged, of_one.acknowledged)] {
                for (kind, ids) in more {
                    all.entry(kind).or_default().extend(ids);
                }
            }
        }
        database.wait_for_clients_to_go().await;
        let acknowledged = check(&database, &owner, &log).await;
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
