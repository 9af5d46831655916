use tribune_storage::{AuditEntry, AuditFilter, Store};

use crate::fixtures::time;

fn entry(second: i64, who: &str, action: &str) -> AuditEntry {
    AuditEntry {
        at: time(second),
        who: who.to_owned(),
        peer: Some("203.0.113.7".to_owned()),
        action: action.to_owned(),
        outcome: "ok".to_owned(),
        ids: vec!["docs:beans.md".to_owned()],
        query: None,
        correlation_id: "abc".to_owned(),
    }
}

pub async fn audit_lists_newest_by_user_and_time(store: &Store) {
    let audit = store.audit();
    let entries = vec![entry(1, "ann", "search"), entry(2, "ben", "fetch"), entry(3, "ann", "fetch")];
    audit.append(entries.clone(), time(0)).await.expect("kept");
    let list = async |filter: AuditFilter, limit| audit.list(&filter, limit).await.expect("a list");
    assert_eq!(list(AuditFilter::default(), 10).await, entries);
    assert_eq!(list(AuditFilter::default(), 1).await, entries[2..]);
    let ann = AuditFilter { who: Some("ann".to_owned()), since: Some(time(2)) };
    assert_eq!(list(ann, 10).await, entries[2..]);
    audit.append(Vec::new(), time(3)).await.expect("old entries are deleted");
    assert_eq!(list(AuditFilter::default(), 10).await, entries[2..]);
}

pub async fn audit_keeps_odd_text(store: &Store) {
    let audit = store.audit();
    let odd = AuditEntry { who: "a\0b\r\n'; --".to_owned(), ids: vec!["x\0".to_owned()], ..entry(1, "", "sign in") };
    audit.append(vec![odd], time(0)).await.expect("kept");
    let kept = audit.list(&AuditFilter::default(), 10).await.expect("a list");
    assert_eq!((kept[0].who.as_str(), kept.len()), ("a\u{fffd}b\r\n'; --", 1));
}
