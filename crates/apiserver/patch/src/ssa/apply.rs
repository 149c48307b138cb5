//! The live object, an applied configuration, and who owns what → the merged object with its owners.

use std::borrow::Cow;

use serde_json::Value;

use crate::ssa::error::{ApplyError, Conflict};
use crate::ssa::last_applied;
use crate::ssa::managed::{Managed, ManagedEntry, Operation};
use crate::ssa::scalar;
use crate::ssa::set::FieldSet;
use crate::ssa::time::Time;
use crate::ssa::typed::{self, Duplicates, Shape, ValueSide};
use crate::ssa::update::{self, OwnerChanges, STRIPPED};
use crate::ssa::{Context, zero};

/// Whether fields are taken from owners who have other values for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// Take them.
    Yes,
    /// Fail with [`ApplyError::Conflicts`].
    No,
}

/// Applies a configuration to the live object.
///
/// For an object that does not exist yet, `live` has `apiVersion`, `kind` and at most a name. The result carries its
/// `managedFields`; it equals `live` when nothing was to change.
pub fn apply(live: &Value, config: &Value, context: &Context<'_>, force: Force) -> Result<Value, ApplyError> {
    check_kind(live, config, context)?;
    let applier = Applier::new(live, config, context)?;
    let outcome = match applier.run(force) {
        Err(ApplyError::Conflicts(conflicts)) if context.manager == last_applied::MANAGER => {
            match last_applied::unresolved(conflicts, live, context) {
                rest if rest.is_empty() => applier.run(Force::Yes),
                rest => Err(ApplyError::Conflicts(rest)),
            }
        }
        outcome => outcome,
    };
    let (mut object, managed) = outcome?;
    if zero::is_built_in(context.schema) {
        zero::drop_nulls(&mut object, context.schema);
    }
    if context.manager == last_applied::MANAGER {
        last_applied::refresh(&mut object, config);
    }
    managed.write(&mut object);
    Ok(object)
}

/// The configuration names the kind and version of the endpoint.
fn check_kind(live: &Value, config: &Value, context: &Context<'_>) -> Result<(), ApplyError> {
    let kind = config.get("kind").and_then(Value::as_str).unwrap_or_default();
    let version = config.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
    let expected = live.get("kind").and_then(Value::as_str).unwrap_or(kind);
    if kind != expected || version != context.api_version {
        return Err(ApplyError::BadRequest(format!("invalid object type: {}", kind_text(version, kind))));
    }
    Ok(())
}

/// `apps/v1, Kind=Deployment`; the core group is empty, as in `/v1, Kind=Pod`.
fn kind_text(version: &str, kind: &str) -> String {
    let slash = if version.contains('/') { "" } else { "/" };
    format!("{slash}{version}, Kind={kind}")
}

/// `default/web; apps/v1, Kind=Deployment`.
fn object_text(object: &Value) -> String {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let kind = kind_text(text("/apiVersion"), text("/kind"));
    format!("{}/{}; {kind}", text("/metadata/namespace"), text("/metadata/name"))
}

struct Applier<'a> {
    context: &'a Context<'a>,
    shape: Shape<'a>,
    /// The live object without `managedFields`, complete.
    live: Cow<'a, Value>,
    config: &'a Value,
    managed: Managed,
}

impl<'a> Applier<'a> {
    fn new(live: &'a Value, config: &'a Value, context: &'a Context<'a>) -> Result<Self, ApplyError> {
        let mut managed =
            Managed::of(live).map_err(|_| ApplyError::Invalid("failed to decode managed fields".to_owned()))?;
        let live = update::bare(live, context.schema);
        if managed.is_empty() {
            let empty = update::empty(&live, context.schema);
            let before = Context { manager: BEFORE_FIRST_APPLY, ..*context };
            // An object that does not fit its schema fails below, with the configuration's own error first.
            let _ = update::record(&empty, &live, &mut managed, &before);
        }
        let shape = Shape::resource(context.schema);
        let applier = Self { context, shape, live, config, managed };
        applier.validate()?;
        Ok(applier)
    }

    fn validate(&self) -> Result<(), ApplyError> {
        if self.config.pointer("/metadata/managedFields").is_some_and(Value::is_array) {
            return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
        }
        typed::validate(self.config, self.shape, Duplicates::Refused).map_err(|problems| {
            let object = object_text(self.config);
            ApplyError::Invalid(format!("failed to create typed patch object ({object}): {problems}"))
        })?;
        typed::validate(&self.live, self.shape, Duplicates::Allowed).map_err(|problems| {
            let object = object_text(&self.live);
            ApplyError::Invalid(format!("failed to create typed live object ({object}): {problems}"))
        })
    }

    fn run(&self, force: Force) -> Result<(Value, Managed), ApplyError> {
        let mut managed = update::reconciled(&self.managed, self.shape, self.context);
        let merged = typed::merge(&self.live, self.config, self.shape);
        let set = typed::field_set(self.config, self.shape).recursive_difference(self.context.reset);
        let mut entry = ManagedEntry::new(
            self.context.manager,
            Operation::Apply,
            self.context.api_version,
            self.context.subresource,
        );
        let identifier = entry.identifier();
        let last = managed.entries.remove(&identifier);
        entry.time = last.as_ref().and_then(|last| last.time.clone());
        entry.set = set;
        managed.entries.insert(identifier.clone(), entry);
        let merged = match &last {
            Some(last) => self.prune(merged, &managed, &identifier, &last.set),
            None => merged,
        };

        let changes = OwnerChanges::new(typed::compare(&self.live, &merged, self.shape, ValueSide::Json), self.context);
        let conflicts = conflicts(&managed, &identifier, &changes, self.context);
        if force == Force::No && !conflicts.is_empty() {
            return Err(ApplyError::Conflicts(conflicts));
        }
        update::take(&mut managed, &changes, self.context, Some(&identifier));
        self.settle(&mut managed, &identifier, !scalar::equals(&self.live, &merged));
        Ok((merged, managed))
    }

    /// Gives the applier's own entry its final form.
    fn settle(&self, managed: &mut Managed, identifier: &str, changed: bool) {
        let Some(entry) = managed.entries.get_mut(identifier) else {
            return;
        };
        entry.set = entry.set.difference(&STRIPPED);
        if changed {
            entry.time = Time::parse(self.context.now);
        }
        if entry.set.is_empty() {
            managed.entries.remove(identifier);
        }
    }

    /// Takes out what the applier owned, no longer applies, and nobody else owns.
    fn prune(&self, merged: Value, managed: &Managed, identifier: &str, last: &FieldSet) -> Value {
        let applied = &managed.entries[identifier].set;
        if last.difference(applied).is_empty() {
            return merged;
        }
        let shape = self.shape;
        let named = |set: &FieldSet| typed::with_named_parents(set, Some(shape));
        let all = named(&typed::field_set(&merged, shape));
        let last = named(last);
        let owned = managed.entries.values().fold(FieldSet::default(), |all, entry| all.union(&entry.set));

        let without_last = typed::remove(&merged, &last, shape);
        let kept = named(&typed::field_set(&without_last, shape)).union(&named(&owned));
        let with_owned = typed::remove(&merged, &all.difference(&kept), shape);
        let kept = named(&typed::field_set(&with_owned, shape));
        typed::remove(&merged, &all.difference(&kept).intersection(&last), shape)
    }
}

const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// What others own of the fields that change.
fn conflicts(managed: &Managed, applier: &str, changes: &OwnerChanges, context: &Context<'_>) -> Vec<Conflict> {
    let others = managed.entries.iter().filter(|(identifier, _)| identifier.as_str() != applier);
    let of_entry = |(_, entry): (&String, &ManagedEntry)| -> Vec<Conflict> {
        let seen = changes.seen_by(entry, context);
        let changed = entry.set.intersection(&seen.modified).union(&entry.set.intersection(&seen.added));
        changed.paths().into_iter().map(|path| Conflict::new(entry, path)).collect()
    };
    others.flat_map(of_entry).collect()
}
