//! What is kept in memory of a controller's objects: projections, not objects.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use portolan_core::ObjectKey;
use prometheus_client::metrics::counter::Counter;

/// The objects of one controller by key.
#[derive(Clone, Debug)]
pub struct Store<P> {
    /// Boxed, since a tree's nodes are half empty.
    objects: BTreeMap<Arc<ObjectKey>, Box<Projected<P>>>,
    /// Counts those that are looked at one by one: nobody should do that for each change of something else.
    pub(crate) scanned: Counter,
}

/// What is kept of one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Projected<P> {
    /// Its key, of which whoever refers to the object may share the copy.
    pub key: Arc<ObjectKey>,
    /// Tells it from an earlier or later object of the same name.
    pub uid: Box<str>,
    /// The generation that was seen last.
    pub generation: i64,
    /// When it was made: of two objects that claim the same, the older one has it.
    pub created: Option<Timestamp>,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// What its `Ready` condition says.
    pub ready: Option<bool>,
    /// What the kind keeps of it; none for an object that does not parse.
    pub projection: Option<P>,
    /// The newest version that was seen.
    pub(crate) version: u64,
    /// The fingerprint of the state that the last pass began with; 0 before the first.
    pub(crate) passed: u64,
}

impl<P> Default for Store<P> {
    fn default() -> Self {
        Self { objects: BTreeMap::new(), scanned: Counter::default() }
    }
}

impl<P> Store<P> {
    /// One object.
    pub fn get(&self, key: &ObjectKey) -> Option<&Projected<P>> {
        self.objects.get(key).map(Box::as_ref)
    }

    /// All objects, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&ObjectKey, &Projected<P>)> {
        self.objects.iter().map(|(key, object)| (key.as_ref(), object.as_ref())).inspect(|_| {
            self.scanned.inc();
        })
    }

    /// The projections of all objects that parse, by key.
    pub fn projections(&self) -> impl Iterator<Item = (&ObjectKey, &P)> {
        self.iter().filter_map(|(key, object)| Some((key, object.projection.as_ref()?)))
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.objects.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.objects.is_empty()
    }

    pub(crate) fn get_mut(&mut self, key: &ObjectKey) -> Option<&mut Projected<P>> {
        self.objects.get_mut(key).map(Box::as_mut)
    }

    pub(crate) fn remove(&mut self, key: &ObjectKey) -> Option<Projected<P>> {
        self.objects.remove(key).map(|object| *object)
    }

    /// Takes a newer state in; answers false for one that is not newer. A new object of an old name starts afresh.
    pub(crate) fn put(&mut self, mut object: Projected<P>) -> bool {
        if let Some(known) = self.objects.get(&object.key) {
            let counts = object.version != 0 && known.version != 0;
            if counts && object.version <= known.version {
                return false;
            }
            if known.uid == object.uid {
                object.passed = known.passed;
            }
            object.key = Arc::clone(&known.key);
        }
        self.objects.insert(Arc::clone(&object.key), Box::new(object));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> ObjectKey {
        ObjectKey { namespace: Some("team-a".to_owned()), name: name.to_owned() }
    }

    fn object(uid: &str, version: u64) -> Projected<u8> {
        Projected {
            key: Arc::new(key("a")),
            uid: uid.into(),
            generation: 1,
            created: None,
            deleting: false,
            ready: None,
            projection: Some(1),
            version,
            passed: 0,
        }
    }

    #[test]
    fn older_states_are_not_taken_in() {
        let mut store = Store::default();
        assert!(store.put(object("u", 5)));

        assert!(!store.put(object("u", 5)));
        assert!(!store.put(object("u", 4)));
        assert!(store.put(object("u", 6)));
    }

    #[test]
    fn a_new_object_of_an_old_name_starts_afresh() {
        let mut store = Store::default();
        store.put(object("u", 5));
        store.get_mut(&key("a")).unwrap().passed = 9;

        store.put(object("u", 6));
        assert_eq!(store.get(&key("a")).unwrap().passed, 9);
        store.put(object("v", 7));
        assert_eq!(store.get(&key("a")).unwrap().passed, 0);
    }

    #[test]
    fn where_versions_do_not_count_every_state_is_taken_in() {
        let mut store = Store::default();
        store.put(object("u", 0));

        assert!(store.put(object("u", 0)));
    }

    const OBJECTS: usize = 100_000;
    const MEASURE: &str = "PORTOLAN_TEST_MEASURE_STORE";

    /// Bytes that this process holds in memory.
    fn resident_bytes() -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        statm.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
    }

    fn full_store() -> Store<[u8; 100]> {
        let mut store = Store::default();
        for number in 0..OBJECTS {
            let known = Projected {
                key: Arc::new(key(&format!("record-number-{number}"))),
                uid: format!("00000000-0000-0000-0000-{number:012}").into(),
                generation: 1,
                created: Some(Timestamp::UNIX_EPOCH),
                deleting: false,
                ready: Some(true),
                projection: Some([7; 100]),
                version: 1,
                passed: 1,
            };
            store.put(known);
        }
        store
    }

    /// Measured in a process of its own: other tests use memory too.
    #[test]
    fn an_object_costs_less_than_six_hundred_bytes() {
        if std::env::var_os(MEASURE).is_some() {
            let before = resident_bytes();
            let store = full_store();
            println!("\nbytes={}", (resident_bytes() - before) / store.len());
            return;
        }

        let measured = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "dispatch::store::tests::an_object_costs_less_than_six_hundred_bytes", "--nocapture"])
            .env(MEASURE, "1")
            .output()
            .unwrap();

        let text = String::from_utf8(measured.stdout).unwrap();
        let bytes = text.lines().find_map(|line| line.strip_prefix("bytes=")).expect(&text);
        let bytes: usize = bytes.parse().unwrap();
        assert!((200..600).contains(&bytes), "{bytes} bytes an object");
    }
}
