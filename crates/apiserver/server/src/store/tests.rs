//! The store on both journals.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc as std_mpsc;
use std::time::{Duration, Instant};

use futures::future::join_all;
use futures::{FutureExt as _, poll};
use proptest::prelude::*;
use proptest::test_runner::{Config as ProptestConfig, RngSeed, TestRunner};
use serde_json::json;
use tempfile::TempDir;

use super::journal::Commit;
use super::*;
use crate::encode::{TypeMeta, body_of, object_of};

const PATIENCE: Duration = Duration::from_secs(30);

fn collection() -> Arc<str> {
    Arc::from("configmaps")
}

fn key(name: &str) -> StoreKey {
    StoreKey::new(&collection(), "default", name)
}

fn body(value: &str) -> ObjectText {
    body_of(json!({"metadata": {"name": "n", "labels": {"value": value}}, "data": {"value": value}}))
}

fn put(name: &str, expect: Expect, value: &str) -> Write {
    Write { key: key(name), expect, change: StoreWrite::Put(body(value)) }
}

fn delete(name: &str, version: u64) -> Write {
    Write { key: key(name), expect: Expect::Version(version), change: StoreWrite::Delete }
}

fn value_of(stored: &StoredObject) -> String {
    let type_meta = TypeMeta { kind: "ConfigMap".to_owned(), api_version: "v1".to_owned() };
    object_of(stored, &type_meta)["data"]["value"].as_str().unwrap().to_owned()
}

fn list(store: &Store, at: Option<u64>) -> Result<BTreeMap<String, (u64, String)>, Compacted> {
    let listing = store.list(&Range { collection: "configmaps", prefix: "default/", after: "", at })?;
    Ok(listing.objects.iter().map(|o| (o.key.name().to_owned(), (o.version, value_of(o)))).collect())
}

/// Every event after a version as kind, name, version and value.
fn events(store: &Store, from: u64) -> Result<Vec<(EventKind, String, u64, String)>, Compacted> {
    let (events, _) = store.watch(&collection(), from)?.ready(usize::MAX)?;
    Ok(events.iter().map(|e| (e.kind, e.object.key.name().to_owned(), e.version(), value_of(&e.object))).collect())
}

/// A store on a file; the directory goes with it.
struct OnFile {
    directory: TempDir,
    store: Option<Store>,
}

impl OnFile {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let store = Some(open(&directory.path().join("data")));
        Self { directory, store }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    /// Closes the store and waits until its writer has let go of the file.
    fn close(&mut self) {
        self.store = None;
        drop(released(&self.path()));
    }

    fn reopen(&mut self) {
        self.close();
        self.store = Some(open(&self.path()));
    }
}

/// The journal of a file, once the thread that wrote it is gone.
fn released(path: &Path) -> SqliteJournal {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match SqliteJournal::open(path) {
            Err(JournalError::Busy { .. }) if Instant::now() < deadline => std::thread::yield_now(),
            other => return other.unwrap(),
        }
    }
}

fn open(path: &Path) -> Store {
    Store::open(Box::new(released(path)), HistoryLimits::default()).unwrap()
}

/// Runs a behaviour in memory and on a file.
async fn on_both(behaviour: impl AsyncFn(&Store)) {
    behaviour(&Store::in_memory()).await;
    let file = OnFile::new();
    behaviour(file.store()).await;
}

#[tokio::test]
async fn versions_grow_by_one_with_every_write_of_any_object() {
    on_both(async |store| {
        let first = store.write(put("a", Expect::Absent, "1")).await.unwrap();
        let second = store.write(put("b", Expect::Absent, "1")).await.unwrap();
        let third = store.write(put("a", Expect::Version(1), "2")).await.unwrap();
        let fourth = store.write(delete("b", 2)).await.unwrap();

        assert_eq!([first.version, second.version, third.version, fourth.version], [1, 2, 3, 4]);
        assert_eq!(store.version(), 4);
    })
    .await;
}

#[tokio::test]
async fn a_write_whose_expectation_fails_changes_nothing_and_shows_what_stands_there() {
    on_both(async |store| {
        store.write(put("a", Expect::Absent, "1")).await.unwrap();

        let taken = store.write(put("a", Expect::Absent, "2")).await.unwrap_err();
        let old = store.write(put("a", Expect::Version(7), "2")).await.unwrap_err();
        let gone = store.write(delete("b", 1)).await.unwrap_err();

        assert!(matches!(taken, WriteError::Unexpected(Some(found)) if found.version == 1));
        assert!(matches!(old, WriteError::Unexpected(Some(found)) if found.version == 1));
        assert!(matches!(gone, WriteError::Unexpected(None)));
        assert_eq!(store.version(), 1);
        assert_eq!(value_of(&store.get(&key("a")).unwrap()), "1");
    })
    .await;
}

#[tokio::test]
async fn a_list_at_an_old_version_shows_what_was_there_then() {
    on_both(async |store| {
        store.write(put("a", Expect::Absent, "1")).await.unwrap();
        store.write(put("b", Expect::Absent, "1")).await.unwrap();
        let then = list(store, None).unwrap();
        store.write(put("a", Expect::Version(1), "2")).await.unwrap();
        store.write(delete("b", 2)).await.unwrap();
        store.write(put("c", Expect::Absent, "1")).await.unwrap();

        assert_eq!(list(store, Some(2)).unwrap(), then);
        assert_eq!(list(store, Some(0)).unwrap(), BTreeMap::new());
        assert_eq!(list(store, None).unwrap().into_keys().collect::<Vec<_>>(), ["a", "c"]);
    })
    .await;
}

#[tokio::test]
async fn compaction_keeps_live_objects_and_refuses_older_versions() {
    on_both(async |store| {
        store.write(put("a", Expect::Absent, "1")).await.unwrap();
        store.write(put("b", Expect::Absent, "1")).await.unwrap();
        store.write(put("a", Expect::Version(1), "2")).await.unwrap();

        store.compact(3);
        store.write(put("c", Expect::Absent, "1")).await.unwrap();

        assert_eq!(list(store, None).unwrap().into_keys().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(list(store, Some(2)).unwrap_err(), Compacted { oldest: 3, current: 4 });
        assert_eq!(events(store, 2).unwrap_err(), Compacted { oldest: 3, current: 4 });
        assert_eq!(events(store, 3).unwrap().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn reopening_brings_back_the_same_objects_and_history() {
    let mut file = OnFile::new();
    file.store().write(put("a", Expect::Absent, "1")).await.unwrap();
    file.store().write(put("b", Expect::Absent, "1")).await.unwrap();
    file.store().write(put("a", Expect::Version(1), "2")).await.unwrap();
    file.store().write(delete("b", 2)).await.unwrap();
    let (now, then, all) = (list(file.store(), None), list(file.store(), Some(2)), events(file.store(), 0));

    file.reopen();

    assert_eq!(file.store().version(), 4);
    assert_eq!((list(file.store(), None), list(file.store(), Some(2)), events(file.store(), 0)), (now, then, all));
    let labels = file.store().get(&key("a")).unwrap().body.labels.clone().unwrap();
    assert_eq!(&*labels, &[("value".into(), "2".into())]);
}

#[tokio::test]
async fn the_version_never_goes_back_after_a_compacted_delete() {
    let mut file = OnFile::new();
    file.store().write(put("a", Expect::Absent, "1")).await.unwrap();
    file.store().write(delete("a", 1)).await.unwrap();
    file.store().compact(2);
    file.reopen();
    assert_eq!(file.store().version(), 2);

    // This commit drops the rows of the object and of its deletion.
    file.store().compact(2);
    file.store().write(put("b", Expect::Absent, "1")).await.unwrap();
    file.store().write(delete("b", 3)).await.unwrap();
    file.store().compact(4);
    let refused = file.store().write(put("b", Expect::Version(3), "2")).await;
    file.reopen();

    assert!(refused.is_err());
    assert_eq!(file.store().version(), 4);
    assert_eq!(file.store().write(put("c", Expect::Absent, "1")).await.unwrap().version, 5);
}

#[tokio::test]
async fn compacted_rows_leave_the_file() {
    let mut file = OnFile::new();
    let mut version = file.store().write(put("a", Expect::Absent, "0")).await.unwrap().version;
    for round in 1..20 {
        version = file.store().write(put("a", Expect::Version(version), &round.to_string())).await.unwrap().version;
    }
    file.store().compact(version);
    file.store().write(put("b", Expect::Absent, "1")).await.unwrap();
    file.close();

    let rows: i64 = rusqlite::Connection::open(file.path())
        .unwrap()
        .query_row("SELECT count(*) FROM revisions", [], |row| row.get(0))
        .unwrap();

    assert_eq!(rows, 2);
}

#[tokio::test]
async fn a_slow_watch_holds_no_events_and_is_told_that_it_fell_behind() {
    let limits = HistoryLimits { events: 10, bytes: 1 << 20 };
    let store = Store::open(Box::new(MemoryJournal), limits).unwrap();
    let mut watch = store.watch(&collection(), 0).unwrap();
    let mut last = store.write(put("a", Expect::Absent, "0")).await.unwrap();
    let first = Arc::downgrade(&last);
    for round in 1..100 {
        last = store.write(put("a", Expect::Version(last.version), &round.to_string())).await.unwrap();
    }

    assert!(first.upgrade().is_none(), "nothing holds the first state any longer");
    assert!(matches!(watch.ready(1000), Err(Compacted { current: 100, .. })));
}

#[tokio::test]
async fn history_is_bounded_by_bytes_as_well() {
    let limits = HistoryLimits { events: 1_000_000, bytes: 100_000 };
    let store = Store::open(Box::new(MemoryJournal), limits).unwrap();
    let text = "x".repeat(10_000);
    let mut last = store.write(put("a", Expect::Absent, &text)).await.unwrap();
    let first = Arc::downgrade(&last);
    for _ in 0..20 {
        last = store.write(put("a", Expect::Version(last.version), &text)).await.unwrap();
    }

    assert!(first.upgrade().is_none());
    assert!(events(&store, 0).is_err());
    assert!(!events(&store, last.version - 1).unwrap().is_empty());
}

/// A journal that counts its commits, waits at a gate and fails on demand.
struct Probe {
    inner: Box<dyn Journal>,
    commits: Arc<AtomicUsize>,
    failing: Arc<AtomicBool>,
    entered: std_mpsc::Sender<()>,
    release: std_mpsc::Receiver<()>,
}

/// What a test holds of a [`Probe`].
struct Controls {
    commits: Arc<AtomicUsize>,
    failing: Arc<AtomicBool>,
    entered: std_mpsc::Receiver<()>,
    release: std_mpsc::Sender<()>,
}

impl Journal for Probe {
    fn recover(&mut self) -> Result<Recovered, JournalError> {
        self.inner.recover()
    }

    fn commit(&mut self, commit: &Commit<'_>) -> Result<(), JournalError> {
        self.entered.send(()).unwrap();
        self.release.recv_timeout(PATIENCE).unwrap();
        if self.failing.load(Ordering::SeqCst) {
            let source = std::io::Error::other("the disk is full");
            return Err(JournalError::Io { step: "writing the data file", source });
        }
        self.commits.fetch_add(1, Ordering::SeqCst);
        self.inner.commit(commit)
    }

    fn blocks(&self) -> bool {
        true
    }
}

fn probed(inner: Box<dyn Journal>) -> (Store, Controls) {
    let (entered, has_entered) = std_mpsc::channel();
    let (release, released) = std_mpsc::channel();
    let (commits, failing) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let controls = Controls { commits: commits.clone(), failing: failing.clone(), entered: has_entered, release };
    let probe = Probe { inner, commits, failing, entered, release: released };
    (Store::open(Box::new(probe), HistoryLimits::default()).unwrap(), controls)
}

#[tokio::test]
async fn no_answer_and_no_event_leaves_before_its_commit_has_returned() {
    let directory = TempDir::new().unwrap();
    let (store, controls) = probed(Box::new(SqliteJournal::open(&directory.path().join("data")).unwrap()));
    let mut watch = store.watch(&collection(), 0).unwrap();
    let mut observer = store.observe();
    let mut write = std::pin::pin!(store.write(put("a", Expect::Absent, "1")));
    assert!(poll!(&mut write).is_pending());
    controls.entered.recv_timeout(PATIENCE).unwrap();

    // The commit is under way: nobody sees anything of it.
    assert!(poll!(&mut write).is_pending());
    assert!(store.get(&key("a")).is_none());
    assert_eq!(store.version(), 0);
    assert!(watch.ready(10).unwrap().0.is_empty());
    assert!(watch.changed().now_or_never().is_none());
    assert!(observer.try_recv().is_err());

    controls.release.send(()).unwrap();
    let answered = tokio::time::timeout(PATIENCE, write).await.unwrap().unwrap();

    assert_eq!(answered.version, 1);
    assert_eq!(controls.commits.load(Ordering::SeqCst), 1);
    assert!(store.get(&key("a")).is_some());
    assert_eq!(watch.ready(10).unwrap().0.len(), 1);
}

#[tokio::test]
async fn writes_that_come_during_a_commit_share_the_next_one() {
    let (store, controls) = probed(Box::new(MemoryJournal));
    let mut first = Box::pin(store.write(put("first", Expect::Absent, "1")));
    assert!(poll!(&mut first).is_pending());
    controls.entered.recv_timeout(PATIENCE).unwrap();
    let mut others: Vec<_> =
        (0..100).map(|n| Box::pin(store.write(put(&format!("n{n}"), Expect::Absent, "1")))).collect();
    for other in &mut others {
        assert!(poll!(other).is_pending());
    }

    controls.release.send(()).unwrap();
    controls.release.send(()).unwrap();
    first.await.unwrap();
    let answers = tokio::time::timeout(PATIENCE, join_all(others)).await.unwrap();

    let versions: Vec<u64> = answers.into_iter().map(|a| a.unwrap().version).collect();
    assert_eq!(versions, (2..=101).collect::<Vec<u64>>());
    assert_eq!(controls.commits.load(Ordering::SeqCst), 2, "101 writes");
}

#[tokio::test]
async fn writes_of_one_commit_see_each_other() {
    let (store, controls) = probed(Box::new(MemoryJournal));
    let mut first = Box::pin(store.write(put("first", Expect::Absent, "1")));
    assert!(poll!(&mut first).is_pending());
    controls.entered.recv_timeout(PATIENCE).unwrap();
    let mut create = Box::pin(store.write(put("a", Expect::Absent, "1")));
    let mut again = Box::pin(store.write(put("a", Expect::Absent, "2")));
    let mut update = Box::pin(store.write(put("a", Expect::Version(2), "3")));
    let mut stale = Box::pin(store.write(delete("a", 2)));
    for write in [&mut create, &mut again, &mut update, &mut stale] {
        assert!(poll!(write).is_pending());
    }

    controls.release.send(()).unwrap();
    controls.release.send(()).unwrap();

    assert_eq!(create.await.unwrap().version, 2);
    assert!(matches!(again.await, Err(WriteError::Unexpected(Some(found))) if found.version == 2));
    assert_eq!(update.await.unwrap().version, 3);
    assert!(matches!(stale.await, Err(WriteError::Unexpected(Some(found))) if found.version == 3));
    assert_eq!(events(&store, 0).unwrap().len(), 3);
}

#[tokio::test]
async fn a_failed_commit_fails_every_write_of_its_batch_and_changes_nothing() {
    let mut file = OnFile::new();
    file.close();
    let (store, controls) = probed(Box::new(SqliteJournal::open(&file.path()).unwrap()));
    let mut first = Box::pin(store.write(put("first", Expect::Absent, "1")));
    assert!(poll!(&mut first).is_pending());
    controls.entered.recv_timeout(PATIENCE).unwrap();
    let mut batch: Vec<_> =
        (0..10).map(|n| Box::pin(store.write(put(&format!("n{n}"), Expect::Absent, "1")))).collect();
    for write in &mut batch {
        assert!(poll!(write).is_pending());
    }
    controls.release.send(()).unwrap();
    first.await.unwrap();
    controls.entered.recv_timeout(PATIENCE).unwrap();
    controls.failing.store(true, Ordering::SeqCst);
    controls.release.send(()).unwrap();

    let answers = tokio::time::timeout(PATIENCE, join_all(batch)).await.unwrap();

    assert!(answers.iter().all(|a| matches!(a, Err(WriteError::Journal(_)))));
    assert_eq!(store.version(), 1);
    assert_eq!(list(&store, None).unwrap().len(), 1);
    assert_eq!(events(&store, 0).unwrap().len(), 1);
    controls.failing.store(false, Ordering::SeqCst);
    controls.release.send(()).unwrap();
    assert_eq!(store.write(put("later", Expect::Absent, "1")).await.unwrap().version, 2);
    drop(store);
    file.reopen();
    assert_eq!(list(file.store(), None).unwrap().into_keys().collect::<Vec<_>>(), ["first", "later"]);
}

#[tokio::test]
async fn the_live_connection_syncs_every_commit_and_writes_ahead() {
    let file = OnFile::new();
    file.store().write(put("a", Expect::Absent, "1")).await.unwrap();
    let log = std::fs::metadata(file.directory.path().join("data-wal")).unwrap().len();
    let header = std::fs::read(file.path()).unwrap();
    let second = TempDir::new().unwrap();
    let journal = SqliteJournal::open(&second.path().join("data")).unwrap();

    // SQLite's file format: read and write versions of 2 are WAL.
    assert_eq!(header[18..20], [2, 2]);
    assert!(log > 0);
    assert_eq!(journal.synchronous().unwrap(), 2);
}

/// A file in the first format, with one object.
fn format_one(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection
        .execute_batch(
            "PRAGMA journal_mode=WAL;
             CREATE TABLE revisions (
                version INTEGER PRIMARY KEY, collection TEXT NOT NULL, path TEXT NOT NULL, body BLOB);
             PRAGMA user_version=1;
             PRAGMA application_id=1347701838;",
        )
        .unwrap();
    let insert = "INSERT INTO revisions VALUES (5, 'configmaps', 'default/a', ?1)";
    connection.execute(insert, [body("1").tail.to_vec()]).unwrap();
}

#[tokio::test]
async fn a_file_of_the_first_format_is_upgraded() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("data");
    format_one(&path);

    let store = open(&path);
    let found = list(&store, None).unwrap();
    store.write(put("b", Expect::Absent, "1")).await.unwrap();
    store.compact(6);
    store.write(put("c", Expect::Absent, "1")).await.unwrap();
    drop(store);
    drop(released(&path));

    assert_eq!(found["a"], (5, "1".to_owned()));
    let connection = rusqlite::Connection::open(&path).unwrap();
    let format: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(format, 2);
    let compacted: i64 = connection.query_row("SELECT value FROM settings", [], |row| row.get(0)).unwrap();
    assert_eq!(compacted, 6);
}

/// Opens a file that must be refused and must not change.
fn refused(path: &Path) -> JournalError {
    let before = std::fs::read(path).unwrap();
    let opened = SqliteJournal::open(path).and_then(|journal| Store::open(Box::new(journal), HistoryLimits::default()));
    let error = opened.err().unwrap_or_else(|| panic!("{} was taken", path.display()));
    assert!(before == std::fs::read(path).unwrap(), "{} was changed", path.display());
    error
}

#[tokio::test]
async fn a_file_of_a_newer_format_is_refused_untouched() {
    let mut file = OnFile::new();
    file.store().write(put("a", Expect::Absent, "1")).await.unwrap();
    file.close();
    rusqlite::Connection::open(file.path()).unwrap().pragma_update(None, "user_version", 99).unwrap();

    let error = refused(&file.path());

    assert!(matches!(error, JournalError::TooNew { found: 99, known: 2, .. }));
    assert!(error.to_string().contains("newer Portolan"), "{error}");
}

#[test]
fn files_of_others_are_refused_untouched() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("data");
    let database = directory.path().join("database");
    rusqlite::Connection::open(&database)
        .unwrap()
        .execute_batch("CREATE TABLE t (a); INSERT INTO t VALUES (1)")
        .unwrap();
    let noise: Vec<u8> = (0..10_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let contents = [
        std::fs::read(&database).unwrap(),
        noise,
        b"hello".to_vec(),
        b"SQLite format 3\0".to_vec(),
        vec![0; 4096],
        [b"SQLite format 3\0".to_vec(), vec![0xff; 8192]].concat(),
    ];
    for content in contents {
        std::fs::write(&path, &content).unwrap();

        let error = refused(&path);

        assert!(matches!(error, JournalError::Foreign { .. } | JournalError::Damaged { .. }), "{error:?}");
        assert!(error.to_string().contains("untouched"), "{error}");
    }
}

const PAGE: usize = 4096;

/// Damages a file of 200 objects, which must then be refused, and be whole again when the damage is undone.
async fn refuses(damage: impl Fn(&mut Vec<u8>)) {
    let mut file = OnFile::new();
    let text = "x".repeat(500);
    join_all((0..200).map(|n| file.store().write(put(&format!("n{n}"), Expect::Absent, &text)))).await;
    file.close();
    let sound = std::fs::read(file.path()).unwrap();
    let mut content = sound.clone();
    damage(&mut content);
    std::fs::write(file.path(), content).unwrap();

    let error = refused(&file.path());

    assert!(matches!(error, JournalError::Damaged { .. }), "{error:?}");
    assert!(error.to_string().contains("untouched"), "{error}");
    std::fs::write(file.path(), &sound).unwrap();
    file.reopen();
    assert_eq!(list(file.store(), None).unwrap().len(), 200);
}

#[tokio::test]
async fn a_file_that_lost_pages_is_refused_untouched() {
    refuses(|content| content.truncate(content.len() / 2 / PAGE * PAGE)).await;
}

#[tokio::test]
async fn a_file_cut_off_inside_a_page_is_refused_untouched() {
    refuses(|content| content.truncate(content.len() - 100)).await;
}

#[tokio::test]
async fn a_file_with_an_overwritten_page_is_refused_untouched() {
    refuses(|content| content[5 * PAGE..6 * PAGE].fill(0xa5)).await;
}

#[tokio::test]
async fn a_file_with_an_overwritten_schema_is_refused_untouched() {
    refuses(|content| content[100..PAGE].fill(0)).await;
}

#[tokio::test]
async fn a_file_with_an_object_that_is_no_json_is_refused_untouched() {
    // In the middle of an object's text, where no structure of SQLite's is.
    refuses(|content| {
        let text = content.windows(100).rposition(|w| w.iter().all(|b| *b == b'x')).unwrap();
        content[text..text + 100].fill(0);
    })
    .await;
}

#[tokio::test]
async fn a_file_in_use_is_refused_and_its_owner_goes_on() {
    let file = OnFile::new();
    file.store().write(put("a", Expect::Absent, "1")).await.unwrap();

    let error = SqliteJournal::open(&file.path()).unwrap_err();

    assert!(matches!(error, JournalError::Busy { .. }), "{error:?}");
    assert!(error.to_string().contains("in use by another process"), "{error}");
    file.store().write(put("b", Expect::Absent, "1")).await.unwrap();
}

/// A step of a random history.
#[derive(Clone, Debug)]
enum Step {
    Put { name: u8, value: u8 },
    Delete { name: u8 },
    Stale { name: u8, behind: u64 },
    Compact { behind: u64 },
    Reopen,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..6_u8, any::<u8>()).prop_map(|(name, value)| Step::Put { name, value }),
        4 => (0..6_u8).prop_map(|name| Step::Delete { name }),
        2 => (0..6_u8, 1..5_u64).prop_map(|(name, behind)| Step::Stale { name, behind }),
        2 => (0..8_u64).prop_map(|behind| Step::Compact { behind }),
        1 => Just(Step::Reopen),
    ]
}

/// What the store should hold: the state after each version.
#[derive(Default)]
struct Model {
    states: Vec<BTreeMap<String, (u64, String)>>,
    events: Vec<(EventKind, String, u64, String)>,
    compacted: u64,
}

impl Model {
    fn now(&self) -> BTreeMap<String, (u64, String)> {
        self.states.last().cloned().unwrap_or_default()
    }

    fn version(&self) -> u64 {
        self.states.len() as u64
    }

    fn at(&self, version: u64) -> BTreeMap<String, (u64, String)> {
        version.checked_sub(1).map_or_else(BTreeMap::new, |n| self.states[usize::try_from(n).unwrap()].clone())
    }

    fn put(&mut self, name: &str, value: &str) {
        let (mut state, version) = (self.now(), self.version() + 1);
        let kind = if state.contains_key(name) { EventKind::Modified } else { EventKind::Added };
        state.insert(name.to_owned(), (version, value.to_owned()));
        self.events.push((kind, name.to_owned(), version, value.to_owned()));
        self.states.push(state);
    }

    fn delete(&mut self, name: &str) {
        let (mut state, version) = (self.now(), self.version() + 1);
        let (_, value) = state.remove(name).unwrap();
        self.events.push((EventKind::Deleted, name.to_owned(), version, value));
        self.states.push(state);
    }

    fn check(&self, store: &Store) {
        assert_eq!(store.version(), self.version());
        assert_eq!(list(store, None).unwrap(), self.now());
        for version in 0..=self.version() {
            let reachable = version >= self.compacted || version == self.version();
            assert_eq!(list(store, Some(version)).ok(), reachable.then(|| self.at(version)), "at {version}");
        }
        let kept: Vec<_> = self.events.iter().filter(|e| e.2 > self.compacted).cloned().collect();
        assert_eq!(events(store, self.compacted).unwrap(), kept);
    }
}

async fn take(step: &Step, model: &mut Model, store: &Store) {
    let name = |n: &u8| format!("n{n}");
    match step {
        Step::Put { name: n, value } => {
            let expect = model.now().get(&name(n)).map_or(Expect::Absent, |(version, _)| Expect::Version(*version));
            store.write(put(&name(n), expect, &value.to_string())).await.unwrap();
            model.put(&name(n), &value.to_string());
        }
        Step::Delete { name: n } => {
            let found = model.now().get(&name(n)).cloned();
            let answer = store.write(delete(&name(n), found.as_ref().map_or(1, |f| f.0))).await;
            assert_eq!(answer.is_ok(), found.is_some());
            if found.is_some() {
                model.delete(&name(n));
            }
        }
        Step::Stale { name: n, behind } => {
            let version = model.now().get(&name(n)).map_or(0, |(version, _)| *version);
            let answer = store.write(put(&name(n), Expect::Version(version + behind), "stale")).await;
            assert!(matches!(answer, Err(WriteError::Unexpected(_))));
        }
        Step::Compact { behind } => {
            let version = model.version().saturating_sub(*behind);
            store.compact(version);
            model.compacted = model.compacted.max(version);
        }
        Step::Reopen => {}
    }
}

/// `PORTOLAN_FUZZ_CASES` times as many cases, from `PORTOLAN_SEED`.
fn runner(cases: u32) -> TestRunner {
    let number = |name: &str, default: u64| std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default);
    let (seed, times) = (number("PORTOLAN_SEED", 1), number("PORTOLAN_FUZZ_CASES", 1));
    let cases = cases.saturating_mul(u32::try_from(times).unwrap_or(u32::MAX));
    println!("{cases} cases, PORTOLAN_SEED={seed}");
    TestRunner::new(ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(seed),
        failure_persistence: None,
        ..ProptestConfig::default()
    })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn random_writes_in_memory_leave_what_a_map_would() {
    let run = |steps: Vec<Step>| {
        let (store, mut model) = (Store::in_memory(), Model::default());
        for step in &steps {
            runtime().block_on(take(step, &mut model, &store));
            model.check(&store);
        }
        Ok(())
    };

    runner(64).run(&proptest::collection::vec(step(), 1..60), run).unwrap();
}

#[test]
fn random_writes_to_a_file_leave_what_a_map_would_across_restarts() {
    let run = |steps: Vec<Step>| {
        let (mut file, mut model) = (OnFile::new(), Model::default());
        for step in &steps {
            runtime().block_on(take(step, &mut model, file.store()));
            if matches!(step, Step::Reopen) {
                // Compaction becomes durable with the next write, so that a restart may know more history, never less.
                runtime().block_on(take(&Step::Put { name: 0, value: 0 }, &mut model, file.store()));
                file.reopen();
            }
            model.check(file.store());
        }
        Ok(())
    };

    runner(12).run(&proptest::collection::vec(step(), 1..40), run).unwrap();
}
