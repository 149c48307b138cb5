//! The live object and the one that replaces it → who owns the fields that changed.

use std::borrow::Cow;
use std::sync::LazyLock;

use portolan_schema::Cursor;
use serde_json::{Map, Value};

use crate::ssa::managed::{self, Managed, ManagedEntry, Operation};
use crate::ssa::set::FieldSet;
use crate::ssa::time::Time;
use crate::ssa::typed::{self, Comparison, Duplicates, Shape, ValueSide};
use crate::ssa::{Context, zero};

/// Fields that nobody owns, because the server sets them or they name the object.
pub(crate) static STRIPPED: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of_fields(&[
        &["apiVersion"],
        &["kind"],
        &["metadata"],
        &["metadata", "name"],
        &["metadata", "namespace"],
        &["metadata", "creationTimestamp"],
        &["metadata", "selfLink"],
        &["metadata", "uid"],
        &["metadata", "clusterName"],
        &["metadata", "generation"],
        &["metadata", "managedFields"],
        &["metadata", "resourceVersion"],
    ])
});

/// Records the owner of what a create, replace or patch changed. `live` is null for a create.
///
/// `managedFields` in the new object count: one empty entry forgets all owners, and so does an empty list where the
/// kind is built in; a malformed list is ignored. Subresources cannot set them.
pub fn update(live: &Value, mut new: Value, context: &Context<'_>) -> Value {
    let mut managed = owners(live, &new, context);
    managed::strip(&mut new);
    let is_create = live.pointer("/metadata/uid").and_then(Value::as_str).unwrap_or_default().is_empty();
    if managed.is_empty() && !is_create {
        return new;
    }
    let old = if live.is_null() { Cow::Owned(empty(&new, context.schema)) } else { bare(live, context.schema) };
    let recorded = record(&old, &zero::completed(&new, context.schema), &mut managed, context);
    if recorded.is_ok() {
        managed.write(&mut new);
    }
    new
}

/// The owners to start from: those that the new object names, else those of the live one.
fn owners(live: &Value, new: &Value, context: &Context<'_>) -> Managed {
    let of_live = || Managed::of(live).unwrap_or_default();
    let named = new.pointer("/metadata/managedFields").filter(|list| {
        // An empty list does not survive the reading of a custom kind's metadata.
        let lost = !zero::is_built_in(context.schema) && list.as_array().is_some_and(Vec::is_empty);
        context.subresource.is_empty() && !lost
    });
    let Some(list) = named else { return of_live() };
    if managed::is_reset(list) {
        return Managed::default();
    }
    Managed::of(new).ok().filter(|managed| !managed.is_empty()).unwrap_or_else(of_live)
}

/// The object without `managedFields`, and complete.
pub(crate) fn bare<'a>(object: &'a Value, schema: Cursor<'_>) -> Cow<'a, Value> {
    let mut object = zero::completed(object, schema);
    if object.pointer("/metadata/managedFields").is_some() {
        managed::strip(object.to_mut());
    }
    object
}

/// The object that a create starts from.
pub(crate) fn empty(object: &Value, schema: Cursor<'_>) -> Value {
    let fields =
        ["apiVersion", "kind"].into_iter().filter_map(|name| Some((name.to_owned(), object.get(name)?.clone())));
    let mut empty = Value::Object(fields.collect::<Map<_, _>>());
    zero::complete(&mut empty, schema);
    empty
}

/// An object that does not fit its schema: its owners are not known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unfit;

/// What changes, as each owner sees it.
#[derive(Clone, Debug)]
pub(crate) struct OwnerChanges {
    /// In the version of the request, without what the endpoint does not let through.
    pub(crate) own: Comparison,
    /// In any other version. The main endpoint of a custom kind lets everything through there.
    pub(crate) other: Comparison,
}

impl OwnerChanges {
    pub(crate) fn new(comparison: Comparison, context: &Context<'_>) -> Self {
        let own = comparison.clone().without(context.reset);
        let lenient = context.subresource.is_empty() && !zero::is_built_in(context.schema);
        Self { other: if lenient { comparison } else { own.clone() }, own }
    }

    /// What the owner of an entry sees.
    pub(crate) fn seen_by(&self, entry: &ManagedEntry, context: &Context<'_>) -> &Comparison {
        if entry.api_version == context.api_version { &self.own } else { &self.other }
    }
}

/// Gives what changed between two complete objects to the manager.
pub(crate) fn record(old: &Value, new: &Value, managed: &mut Managed, context: &Context<'_>) -> Result<(), Unfit> {
    let shape = Shape::resource(context.schema);
    typed::validate(new, shape, Duplicates::Allowed).map_err(|_| Unfit)?;
    typed::validate(old, shape, Duplicates::Allowed).map_err(|_| Unfit)?;
    let source = if zero::is_built_in(context.schema) { ValueSide::Struct } else { ValueSide::Json };
    let changes = OwnerChanges::new(typed::compare(old, new, shape, source), context);
    *managed = reconciled(managed, shape, context);
    take(managed, &changes, context, None);
    give(managed, &changes.own, context);
    managed.cap();
    Ok(())
}

/// The owners by the schema of today, without those of versions that are not the object's.
pub(crate) fn reconciled(managed: &Managed, shape: Shape<'_>, context: &Context<'_>) -> Managed {
    let known = managed.entries.iter().filter(|(_, entry)| is_version_of(&entry.api_version, context.api_version));
    let entries = known.map(|(identifier, entry)| {
        let set = typed::reconcile(&entry.set, shape);
        (identifier.clone(), ManagedEntry { set, ..entry.clone() })
    });
    Managed { entries: entries.collect() }
}

/// Whether both are versions of one kind. Events are one kind in two groups.
fn is_version_of(version: &str, of: &str) -> bool {
    let group = |version: &str| -> String {
        let group = version.split_once('/').map_or("", |(group, _)| group);
        if group == "events.k8s.io" { String::new() } else { group.to_owned() }
    };
    group(version) == group(of)
}

/// Takes the changed and removed fields from everybody but one.
pub(crate) fn take(managed: &mut Managed, changes: &OwnerChanges, context: &Context<'_>, but: Option<&str>) {
    let gone = |seen: &Comparison| seen.modified.union(&seen.added).union(&seen.removed);
    let (own, other) = (gone(&changes.own), gone(&changes.other));
    for (identifier, entry) in &mut managed.entries {
        if but != Some(identifier.as_str()) {
            let same_version = entry.api_version == context.api_version;
            entry.set = entry.set.difference(if same_version { &own } else { &other });
        }
    }
    managed.entries.retain(|_, entry| !entry.set.is_empty());
}

fn give(managed: &mut Managed, changes: &Comparison, context: &Context<'_>) {
    let set = changes.modified.union(&changes.added).difference(&STRIPPED);
    if set.is_empty() {
        return;
    }
    let mut entry = ManagedEntry::new(context.manager, Operation::Update, context.api_version, context.subresource);
    entry.time = Time::parse(context.now);
    let identifier = entry.identifier();
    entry.set = match managed.entries.get(&identifier) {
        Some(previous) => set.union(&previous.set),
        None => set,
    };
    managed.entries.insert(identifier, entry);
}
