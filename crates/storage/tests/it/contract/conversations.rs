use futures::future::join_all;
use jiff::Timestamp;
use tribune_core::{ErrorKind, UserId};
use tribune_storage::Store;
use tribune_storage::{
    Conversation, ConversationStore, Exchange, MAX_PENDING_CALLS, Message, MessageCursor, PendingCall, StoredAnswer,
};
use uuid::Uuid;

use crate::fixtures::{exchange, pending, time, user};

async fn all_messages(store: &dyn ConversationStore, owner: &UserId, id: Uuid) -> Vec<Message> {
    let page = store.messages(owner, id, 1_000, None).await.expect("an answer").expect("the conversation");
    assert_eq!(page.next, None);
    page.items
}

async fn contents(store: &dyn ConversationStore, owner: &UserId, id: Uuid) -> Vec<String> {
    let messages = all_messages(store, owner, id).await;
    messages.into_iter().map(|message| message.content).collect()
}

pub async fn exchange_round_trips(store: &Store) {
    let (conversations, ann) = (store.conversations(), user("ann"));
    let fine: Timestamp = "2026-11-16T03:04:05.123456789Z".parse().expect("a time");
    let cut: Timestamp = "2026-11-16T03:04:05.123456Z".parse().expect("a time");
    let mut said = exchange(Uuid::now_v7(), "Was kostet ☕?\n'; --", 0);
    said.answer.created_at = fine;
    let told = conversations.record(&ann, &said).await.expect("kept");
    let answer = Message { created_at: cut, ..said.answer.clone() };
    let expected = StoredAnswer { conversation: said.conversation, answer: answer.clone() };
    assert_eq!(told, expected);
    let kept = all_messages(&*conversations, &ann, said.conversation).await;
    assert_eq!(kept, [said.question.clone(), answer]);
    let page = conversations.list(&ann, 10, None).await.expect("a page");
    let listed = Conversation {
        id: said.conversation,
        created_at: said.question.created_at,
        last_activity: cut.max(said.question.created_at),
        message_count: 2,
        preview: Some(said.question.content),
    };
    assert_eq!((page.items, page.next), (vec![listed], None));
}

pub async fn new_conversation_replaces_the_oldest(store: &Store) {
    let (conversations, ann, ben) = (store.conversations_at_most(2), user("ann"), user("ben"));
    let [first, second, third] = std::array::from_fn(|_| Uuid::now_v7());
    conversations.record(&ben, &exchange(Uuid::now_v7(), "another's", 0)).await.expect("kept");
    let asked = Exchange {
        pending: vec![pending("first", 1_000)],
        request_key: Some("first".to_owned()),
        ..exchange(first, "first", 10)
    };
    conversations.record(&ann, &asked).await.expect("kept");
    conversations.record(&ann, &exchange(second, "second", 20)).await.expect("kept");
    conversations.record(&ann, &exchange(second, "more of it", 30)).await.expect("kept");
    assert_eq!(all_messages(&*conversations, &ann, first).await.len(), 2, "there is room");
    conversations.record(&ann, &exchange(third, "third", 40)).await.expect("kept");
    let page = conversations.list(&ann, 10, None).await.expect("a page");
    assert_eq!(page.items.iter().map(|kept| kept.id).collect::<Vec<_>>(), [third, second]);
    assert_eq!(conversations.messages(&ann, first, 10, None).await.expect("an answer"), None);
    assert_eq!(conversations.answer_to(&ann, "first").await.expect("an answer"), None);
    assert_eq!(conversations.list(&ben, 10, None).await.expect("a page").items.len(), 1, "others keep theirs");
}

pub async fn state_has_last_messages(store: &Store) {
    let (conversations, ann, id) = (store.conversations(), user("ann"), Uuid::now_v7());
    assert_eq!(conversations.state(&ann, id, 10).await.expect("an answer"), None);
    for number in 0..2 {
        let said = exchange(id, &format!("question {number}"), number * 10);
        conversations.record(&ann, &said).await.expect("kept");
        let state = conversations.state(&ann, id, 3).await.expect("an answer").expect("the conversation");
        assert_eq!((state.id, state.last_activity), (id, time(number * 10 + 1)));
    }
    for (recent, expected) in [
        (0, &[][..]),
        (1, &["answer to question 1"]),
        (3, &["answer to question 0", "question 1", "answer to question 1"]),
        (9, &["question 0", "answer to question 0", "question 1", "answer to question 1"]),
    ] {
        let state = conversations.state(&ann, id, recent).await.expect("an answer").expect("the conversation");
        let contents: Vec<_> = state.recent.iter().map(|message| message.content.as_str()).collect();
        assert_eq!(contents, expected);
    }
}

pub async fn latest_conversation_is_last_active(store: &Store) {
    let (conversations, ann) = (store.conversations(), user("ann"));
    assert_eq!(conversations.latest(&ann, 10).await.expect("an answer"), None);
    let (first, second) = (Uuid::now_v7(), Uuid::now_v7());
    for (id, second_asked, question) in [(first, 0, "one"), (second, 10, "two"), (first, 20, "three")] {
        conversations.record(&ann, &exchange(id, question, second_asked)).await.expect("kept");
        conversations.record(&user("bob"), &exchange(Uuid::now_v7(), "later", 100)).await.expect("kept");
        let latest = conversations.latest(&ann, 2).await.expect("an answer").expect("a conversation");
        assert_eq!(Some(&latest), conversations.state(&ann, id, 2).await.expect("an answer").as_ref());
        let contents: Vec<_> = latest.recent.into_iter().map(|message| message.content).collect();
        assert_eq!(contents, [question.to_owned(), format!("answer to {question}")]);
    }
}

pub async fn activity_never_goes_back(store: &Store) {
    let (conversations, ann, id) = (store.conversations(), user("ann"), Uuid::now_v7());
    for second in [100, 50] {
        conversations.record(&ann, &exchange(id, "when", second)).await.expect("kept");
    }
    let state = conversations.state(&ann, id, 1).await.expect("an answer").expect("the conversation");
    assert_eq!(state.last_activity, time(101));
}

pub async fn preview_has_hundred_characters(store: &Store) {
    let (conversations, ann, id) = (store.conversations(), user("ann"), Uuid::now_v7());
    conversations.record(&ann, &exchange(id, &"é".repeat(101), 0)).await.expect("kept");
    conversations.record(&ann, &exchange(id, "not this", 5)).await.expect("kept");
    let page = conversations.list(&ann, 1, None).await.expect("a page");
    assert_eq!(page.items[0].preview, Some("é".repeat(100)));
    assert_eq!(page.items[0].message_count, 4);
}

fn keyed(conversation: Uuid, question: &str, key: &str) -> Exchange {
    Exchange { request_key: Some(key.to_owned()), ..exchange(conversation, question, 0) }
}

pub async fn request_is_stored_once(store: &Store) {
    let (conversations, ann, id) = (store.conversations(), user("ann"), Uuid::now_v7());
    assert_eq!(conversations.answer_to(&ann, "key").await.expect("an answer"), None);
    let first = conversations.record(&ann, &keyed(id, "first", "key")).await.expect("kept");
    for elsewhere in [id, Uuid::now_v7()] {
        let again = conversations.record(&ann, &keyed(elsewhere, "again", "key")).await.expect("an answer");
        assert_eq!(again, first);
    }
    assert_eq!(conversations.answer_to(&ann, "key").await.expect("an answer"), Some(first));
    assert_eq!(conversations.answer_to(&ann, "KEY").await.expect("an answer"), None);
    assert_eq!(contents(&*conversations, &ann, id).await, ["first", "answer to first"]);
    assert_eq!(conversations.list(&ann, 10, None).await.expect("a page").items.len(), 1);
    conversations.record(&ann, &keyed(id, "second", "key 2")).await.expect("kept");
    assert_eq!(contents(&*conversations, &ann, id).await.len(), 4);
}

pub async fn concurrent_request_is_stored_once(store: &Store) {
    let (conversations, ann) = (store.conversations(), user("ann"));
    for (round, same_conversation) in [true, false].into_iter().enumerate() {
        let id = Uuid::now_v7();
        let sent: Vec<Exchange> = (0..24)
            .map(|number| {
                let conversation = if same_conversation { id } else { Uuid::now_v7() };
                keyed(conversation, &format!("try {number}"), &format!("key {round}"))
            })
            .collect();
        let answers = join_all(sent.iter().map(|exchange| conversations.record(&ann, exchange))).await;
        let mut answers: Vec<StoredAnswer> = answers.into_iter().map(|answer| answer.expect("an answer")).collect();
        answers.dedup();
        assert_eq!(answers.len(), 1, "all are told the same");
        assert_eq!(all_messages(&*conversations, &ann, answers[0].conversation).await.len(), 2);
        let listed = conversations.list(&ann, 100, None).await.expect("a page").items;
        assert_eq!(listed.len(), round + 1, "nothing is left of those who came too late");
    }
}

pub async fn request_keys_are_per_owner(store: &Store) {
    let (conversations, ann, bob) = (store.conversations(), user("ann"), user("bob"));
    let hers = conversations.record(&ann, &keyed(Uuid::now_v7(), "hers", "key")).await.expect("kept");
    assert_eq!(conversations.answer_to(&bob, "key").await.expect("an answer"), None);
    let his = conversations.record(&bob, &keyed(Uuid::now_v7(), "his", "key")).await.expect("kept");
    assert_ne!(hers, his);
    assert_eq!(conversations.answer_to(&ann, "key").await.expect("an answer"), Some(hers));
    assert_eq!(conversations.answer_to(&bob, "key").await.expect("an answer"), Some(his));
}

pub async fn foreign_conversation_is_not_found(store: &Store) {
    let (conversations, ann, bob, id) = (store.conversations(), user("ann"), user("bob"), Uuid::now_v7());
    conversations.record(&ann, &exchange(id, "hers", 0)).await.expect("kept");
    let before = conversations.state(&ann, id, 10).await.expect("an answer");
    let his = Exchange { pending: vec![pending("evil", 0)], ..keyed(id, "his", "key") };
    let error = conversations.record(&bob, &his).await.expect_err("not his");
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert_eq!(conversations.state(&ann, id, 10).await.expect("an answer"), before);
    assert_eq!(conversations.answer_to(&bob, "key").await.expect("an answer"), None);
    assert_eq!(conversations.latest(&bob, 10).await.expect("an answer"), None);
}

pub async fn one_owner_wins_a_new_id(store: &Store) {
    let conversations = store.conversations();
    let (owners, id) = ([user("ann"), user("bob"), user("cy"), user("di")], Uuid::now_v7());
    let said = exchange(id, "mine", 0);
    let outcomes = join_all(owners.iter().map(|owner| conversations.record(owner, &said))).await;
    let won = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    let lost = outcomes.iter().filter_map(|outcome| outcome.as_ref().err());
    assert!(lost.map(tribune_core::Error::kind).all(|kind| kind == ErrorKind::NotFound));
    assert_eq!(won, 1);
}

pub async fn exchanges_never_interleave(store: &Store) {
    let (conversations, ann, id) = (store.conversations(), user("ann"), Uuid::now_v7());
    let said: Vec<Exchange> = (0..60).map(|number| exchange(id, &format!("question {number}"), number)).collect();
    for outcome in join_all(said.iter().map(|exchange| conversations.record(&ann, exchange))).await {
        outcome.expect("kept");
    }
    let messages = all_messages(&*conversations, &ann, id).await;
    let mut expected = said;
    for pair in messages.chunks(2) {
        let at = expected.iter().position(|exchange| [&exchange.question, &exchange.answer] == [&pair[0], &pair[1]]);
        expected.remove(at.expect("a question, and its own answer, once"));
    }
    assert_eq!(expected, []);
    assert_eq!(conversations.list(&ann, 1, None).await.expect("a page").items[0].message_count, 120);
}

pub async fn messages_page_back_while_more_are_added(store: &Store) {
    let (conversations, ann, id) = (store.conversations(), user("ann"), Uuid::now_v7());
    for number in 0..5 {
        conversations.record(&ann, &exchange(id, &format!("question {number}"), number)).await.expect("kept");
    }
    let expected = contents(&*conversations, &ann, id).await;
    let (mut seen, mut before): (Vec<String>, Option<MessageCursor>) = (Vec::new(), None);
    loop {
        let page = conversations.messages(&ann, id, 3, before).await.expect("an answer").expect("the conversation");
        assert!(page.items.len() <= 3);
        seen.splice(0..0, page.items.into_iter().map(|message| message.content));
        before = page.next;
        if before.is_none() {
            break;
        }
        conversations.record(&ann, &exchange(id, "later", 50)).await.expect("kept");
    }
    assert_eq!(seen, expected);
    for cursor in [1, 0, -1, i64::MIN] {
        let page = conversations.messages(&ann, id, 3, Some(cursor)).await.expect("an answer");
        let page = page.expect("the conversation");
        assert_eq!((page.items, page.next), (vec![], None));
    }
}

pub async fn conversations_page_while_more_are_added(store: &Store) {
    let (conversations, ann) = (store.conversations(), user("ann"));
    // Three each were active at the same moment.
    for number in 0..12 {
        conversations.record(&ann, &exchange(Uuid::now_v7(), "old", number / 3)).await.expect("kept");
    }
    let expected = conversations.list(&ann, 100, None).await.expect("a page").items;
    assert!(expected.is_sorted_by(|a, b| (a.last_activity, a.id) > (b.last_activity, b.id)));
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = conversations.list(&ann, 5, after).await.expect("a page");
        seen.extend(page.items);
        after = page.next;
        if after.is_none() {
            break;
        }
        conversations.record(&ann, &exchange(Uuid::now_v7(), "new", 100)).await.expect("kept");
    }
    assert_eq!(seen, expected);
    assert_eq!(conversations.list(&ann, 14, None).await.expect("a page").next, None, "exactly all");
}

pub async fn other_owners_do_not_exist(store: &Store) {
    let (conversations, ann, bob, id) = (store.conversations(), user("ann"), user("bob"), Uuid::now_v7());
    conversations.record(&ann, &keyed(id, "secret", "key")).await.expect("kept");
    assert_eq!(conversations.latest(&bob, 10).await.expect("an answer"), None);
    assert_eq!(conversations.state(&bob, id, 10).await.expect("an answer"), None);
    assert_eq!(conversations.answer_to(&bob, "key").await.expect("an answer"), None);
    assert_eq!(conversations.messages(&bob, id, 10, None).await.expect("an answer"), None);
    let page = conversations.list(&bob, 10, None).await.expect("a page");
    assert_eq!((page.items, page.next), (vec![], None));
}

pub async fn rejected_exchange_leaves_nothing_behind(store: &Store) {
    let (conversations, ann, id) = (store.conversations(), user("ann"), Uuid::now_v7());
    let mut nul = exchange(id, "fine", 0);
    nul.answer.content = "a\0b".to_owned();
    let long = keyed(id, "fine", &"k".repeat(513));
    let fitting = keyed(Uuid::now_v7(), "fine", &"k".repeat(512));
    let sent = [nul, long, fitting, keyed(id, "fine", "a\0b")];
    let outcomes = join_all(sent.iter().map(|exchange| conversations.record(&ann, exchange))).await;
    let refused: Vec<_> =
        outcomes.iter().map(|outcome| outcome.as_ref().err().map(tribune_core::Error::kind)).collect();
    let wrong = Some(ErrorKind::InvalidArgument);
    assert_eq!(refused, [wrong, wrong, None, wrong]);
    assert_eq!(conversations.state(&ann, id, 10).await.expect("an answer"), None);
    assert_eq!(conversations.list(&ann, 10, None).await.expect("a page").items.len(), 1);
}

fn asking(id: Uuid, second: i64, pending: &[PendingCall]) -> Exchange {
    Exchange { pending: pending.to_vec(), ..exchange(id, "question", second) }
}

/// The calls that the last message asks about.
async fn asked(store: &dyn ConversationStore, owner: &UserId, id: Uuid) -> Vec<PendingCall> {
    store.state(owner, id, 0).await.expect("an answer").expect("the conversation").pending
}

pub async fn pending_calls_are_taken_once(store: &Store) {
    let (conversations, ann, bob) = (store.conversations(), user("ann"), user("bob"));
    let (id, other) = (Uuid::now_v7(), Uuid::now_v7());
    let waiting = [pending("delete x", 1), pending("delete \"y\"", 2)];
    conversations.record(&ann, &asking(id, 0, &waiting)).await.expect("kept");
    conversations.record(&ann, &asking(other, 0, &[])).await.expect("kept");
    assert_eq!(asked(&*conversations, &ann, id).await, waiting);
    let [first, second] = waiting.clone().map(|call| call.id);
    let take = async |owner: &UserId, id: Uuid, calls: &[Uuid], at: i64| {
        conversations.take_pending(owner, id, calls, time(at)).await
    };
    for (owner, id, calls, at, why) in [
        (&bob, id, vec![first], 3, "another user"),
        (&ann, other, vec![first], 3, "another conversation"),
        (&ann, id, vec![first, Uuid::now_v7()], 3, "one of them is unknown"),
        (&ann, id, vec![first, first], 3, "the same twice"),
        (&ann, id, vec![first, second], 61, "one of them has expired"),
    ] {
        let error = take(owner, id, &calls, at).await.expect_err(why);
        assert_eq!(error.kind(), ErrorKind::NotFound, "{why}");
    }
    assert_eq!(asked(&*conversations, &ann, id).await, waiting, "nothing is taken by halves");
    let tries = (0..8).map(|n| if n % 2 == 0 { vec![first, second] } else { vec![second, first] });
    let tries: Vec<Vec<Uuid>> = tries.collect();
    let taken = join_all(tries.iter().map(|calls| take(&ann, id, calls, 3))).await;
    let taken: Vec<Vec<PendingCall>> = taken.into_iter().filter_map(Result::ok).collect();
    assert_eq!(taken, [waiting.to_vec()], "one of them gets both, in order");
    assert_eq!(asked(&*conversations, &ann, id).await, []);
}

pub async fn pending_calls_outlive_later_messages(store: &Store) {
    let (conversations, ann, id) = (store.conversations(), user("ann"), Uuid::now_v7());
    let calls: Vec<PendingCall> = (0..12).map(|number| pending("delete", number)).collect();
    let take =
        async |call: &PendingCall, at: i64| conversations.take_pending(&ann, id, &[call.id], time(at)).await.is_ok();
    conversations.record(&ann, &asking(id, 0, &calls[..4])).await.expect("kept");
    conversations.record(&ann, &asking(id, 5, &[])).await.expect("kept");
    assert_eq!(asked(&*conversations, &ann, id).await, [], "the last message asks about nothing");
    assert!(take(&calls[3], 6).await, "but they wait");
    // The oldest make room for others.
    conversations.record(&ann, &asking(id, 10, &calls[4..])).await.expect("kept");
    assert_eq!(asked(&*conversations, &ann, id).await.len(), MAX_PENDING_CALLS);
    assert!(!take(&calls[2], 12).await && take(&calls[4], 12).await);
    // What has expired goes when another call is stored.
    conversations.record(&ann, &asking(Uuid::now_v7(), 200, &[pending("delete", 200)])).await.expect("kept");
    assert!(!take(&calls[11], 13).await);
}
