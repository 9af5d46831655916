use super::*;
use notify::event::{DataChange, MetadataKind, ModifyKind, RenameMode};

fn relevance(root: &str, file: bool) -> Relevance {
    Relevance {
        root: root.into(),
        file,
        ignored: Some("/docs/tribune-data/index/docs".into()),
        formats: Formats::default(),
    }
}

#[test]
fn only_document_events_count() {
    let data = EventKind::Modify(ModifyKind::Data(DataChange::Any));
    let renamed = EventKind::Modify(ModifyKind::Name(RenameMode::To));
    let opened = EventKind::Access(AccessKind::Open(AccessMode::Any));
    let closed = EventKind::Access(AccessKind::Close(AccessMode::Write));
    for (kind, path, expected) in [
        (data, "/docs/a.md", true),
        (closed, "/docs/deep/a.jsonl", true),
        (opened, "/docs/a.md", false),
        (data, "/docs/deep/.tribune.toml", true),
        (EventKind::Remove(RemoveKind::File), "/docs/.tribune.toml", true),
        (data, "/docs/.git/.tribune.toml", false),
        (data, "/docs/debug.log", false),
        (data, "/docs/.git/a.md", false),
        (data, "/docs/.a.md.swp", false),
        (renamed, "/docs/.a.md", false),
        (renamed, "/docs/moved in", true),
        (renamed, "/docs/v1.2", true),
        (renamed, "/docs/tribune-data/index/docs/v2/meta.json", false),
        (EventKind::Create(CreateKind::File), "/docs/4913", false),
        (EventKind::Create(CreateKind::Folder), "/docs/v1.2", true),
        (EventKind::Remove(RemoveKind::Folder), "/docs", true),
        (EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any)), "/docs/a.md", true),
    ] {
        let event = Event::new(kind).add_path(path.into());
        assert_eq!(relevance("/docs", false).of(&event), expected, "{kind:?} {path}");
    }
    let of_file = |path: &str| relevance("/docs/one.md", true).of(&Event::new(data).add_path(path.into()));
    assert!(of_file("/docs/one.md") && !of_file("/docs/two.md"));
    assert!(of_file("/docs/.tribune.toml"));
}

#[test]
fn burst_is_one_change_and_flood_is_bounded() {
    let mut changes = Changes::new(Path::new("/nowhere"), None, Formats::default());
    let start = Instant::now();
    let after = |millis| start + Duration::from_millis(millis);
    assert_eq!(changes.quiet_at(), None);
    for millis in [0, 100, 200, 300, 400] {
        changes.note(after(millis));
    }
    assert_eq!(changes.quiet_at(), Some(after(400) + BURST_PAUSE));
    for millis in (500..10_000).step_by(50) {
        changes.note(after(millis));
    }
    assert_eq!(changes.quiet_at(), Some(start + MAX_DELAY));
}

#[tokio::test]
async fn replaced_folder_is_watched_again() {
    let dir = tempfile::tempdir().expect("a folder");
    let docs = dir.path().join("docs");
    let mut changes = Changes::new(&docs, None, Formats::default());
    assert!(changes.check().await && changes.found == Some(None), "gone, and reported once");
    assert!(!changes.check().await);
    std::fs::create_dir(&docs).expect("made");
    assert!(changes.check().await && changes.watcher.is_some());
    assert!(!changes.check().await, "nothing new");
    std::fs::rename(&docs, dir.path().join("away")).expect("moved");
    std::fs::create_dir(&docs).expect("made again");
    assert!(changes.check().await, "the same name and another folder");
    changes.signal.lost.store(true, Ordering::Release);
    assert!(changes.check().await, "made again after a loss");
    std::fs::write(docs.join("a.md"), "alpha").expect("written");
    wait_for_event(&changes).await;
}

/// Until the watcher reports something; only a hang ends this otherwise.
async fn wait_for_event(changes: &Changes) {
    let reported = tokio::time::timeout(Duration::from_secs(60), changes.signal.changed.notified()).await;
    assert!(reported.is_ok(), "the watcher reports nothing");
}

/// Forgets what was reported so far: one action may bring several events.
async fn settle(changes: &Changes) {
    while tokio::time::timeout(BURST_PAUSE, changes.signal.changed.notified()).await.is_ok() {}
}

#[tokio::test]
async fn watcher_reports_every_kind_of_change() {
    use std::fs;
    let dir = tempfile::tempdir().expect("a folder");
    let docs = dir.path().join("docs");
    fs::create_dir(&docs).expect("made");
    let mut changes = Changes::new(&docs, None, Formats::default());
    assert!(changes.check().await);
    let actions: [(&str, &dyn Fn() -> std::io::Result<()>); 7] = [
        ("a new file", &|| fs::write(docs.join("a.md"), "alpha")),
        ("new contents", &|| fs::write(docs.join("a.md"), "bravo")),
        ("another name", &|| fs::rename(docs.join("a.md"), docs.join("b.md"))),
        ("a new folder", &|| fs::create_dir(docs.join("deep"))),
        ("a file in it", &|| fs::write(docs.join("deep/c.md"), "charlie")),
        ("a removed file", &|| fs::remove_file(docs.join("b.md"))),
        ("a removed folder", &|| fs::remove_dir_all(docs.join("deep"))),
    ];
    for (what, action) in actions {
        settle(&changes).await;
        action().unwrap_or_else(|error| panic!("{what}: {error}"));
        wait_for_event(&changes).await;
    }
}
