//! Two values of one shape → the fields that were added, changed and removed.

use serde_json::{Map, Value};

use super::shape::{Forms, Relation, Shape, ViewedAs};
use crate::ssa::path::PathElement;
use crate::ssa::scalar;
use crate::ssa::set::{FieldSet, SetNode};

/// What differs between two values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    pub(crate) removed: FieldSet,
    pub(crate) modified: FieldSet,
    pub(crate) added: FieldSet,
}

/// Where the values come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueSide {
    /// A struct of the server, which always carries the fields it shows as null: null and absent are one.
    Struct,
    /// JSON as a client sent it.
    Json,
}

impl Comparison {
    /// The differences without those at or below the given fields.
    pub(crate) fn without(self, fields: &FieldSet) -> Self {
        if fields.is_empty() {
            return self;
        }
        Self {
            removed: self.removed.recursive_difference(fields),
            modified: self.modified.recursive_difference(fields),
            added: self.added.recursive_difference(fields),
        }
    }
}

/// Compares two values. Items of lists that have no key are left out.
pub(crate) fn compare(left: &Value, right: &Value, shape: Shape<'_>, source: ValueSide) -> Comparison {
    let found = Walker { source }.walk(Some(left), Some(right), shape);
    Comparison { removed: found.removed.below, modified: found.modified.below, added: found.added.below }
}

/// One kind of difference at a place: of the place itself, and below it.
#[derive(Default)]
struct Mark {
    here: bool,
    below: FieldSet,
}

#[derive(Default)]
struct Compared {
    removed: Mark,
    modified: Mark,
    added: Mark,
}

/// Whether a place was compared as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Depth {
    Leaf,
    Parts,
}

#[derive(Clone, Copy)]
struct Walker {
    source: ValueSide,
}

impl Walker {
    fn walk(self, left: Option<&Value>, right: Option<&Value>, shape: Shape<'_>) -> Compared {
        let mut found = Compared::default();
        let (left_forms, right_forms) = (shape.forms_of(left), shape.forms_of(right));
        let depth = if right.is_none() {
            self.look(left_forms, left, right, shape, &mut found)
        } else if left.is_none() || left_forms == right_forms {
            self.look(right_forms, left, right, shape, &mut found)
        } else {
            let mut as_left = Compared::default();
            self.look(left_forms, left, right, shape, &mut as_left);
            let depth = self.look(right_forms, left, right, shape, &mut found);
            found.join(&as_left);
            depth
        };
        if depth == Depth::Parts {
            found.added.here |= left.is_none();
            found.removed.here |= left.is_some() && right.is_none();
        }
        found
    }

    fn look(
        self,
        forms: Forms,
        left: Option<&Value>,
        right: Option<&Value>,
        shape: Shape<'_>,
        found: &mut Compared,
    ) -> Depth {
        match forms.first() {
            ViewedAs::Map if !shape.map_is_atomic() => {
                let (lefts, rights) = (left.and_then(Value::as_object), right.and_then(Value::as_object));
                if lefts.is_some_and(|map| !map.is_empty()) || rights.is_some_and(|map| !map.is_empty()) {
                    self.maps(lefts, rights, shape, found);
                    return Depth::Parts;
                }
            }
            ViewedAs::List if !matches!(shape.relation(), Relation::Atomic) => {
                let lefts = left.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                let rights = right.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
                if !lefts.is_empty() || !rights.is_empty() {
                    self.lists(lefts, rights, shape, found);
                    return Depth::Parts;
                }
            }
            ViewedAs::Scalar | ViewedAs::Map | ViewedAs::List => {}
        }
        leaf(left, right, found);
        Depth::Leaf
    }

    fn maps(
        self,
        lefts: Option<&Map<String, Value>>,
        rights: Option<&Map<String, Value>>,
        shape: Shape<'_>,
        found: &mut Compared,
    ) {
        let both = lefts.is_some() && rights.is_some();
        for (name, left, right) in zip(lefts, rights) {
            let phantom = matches!((left, right), (None, Some(Value::Null)) | (Some(Value::Null), None));
            if both && phantom && self.source == ValueSide::Struct {
                continue;
            }
            let below = shape.value(name).unwrap_or(Shape::Deduced);
            let part = self.walk(left, right, below);
            found.add(&mut || PathElement::field(name), part);
        }
    }

    fn lists(self, lefts: &[Value], rights: &[Value], shape: Shape<'_>, found: &mut Compared) {
        let mut items: Vec<(PathElement, Side, &Value)> = Vec::with_capacity(lefts.len() + rights.len());
        let sided = lefts.iter().map(|item| (Side::Left, item)).chain(rights.iter().map(|item| (Side::Right, item)));
        items.extend(sided.filter_map(|(side, item)| Some((shape.element_of(item).ok()?, side, item))));
        items.sort_by(|(left, ..), (right, ..)| left.cmp(right));
        for same in items.chunk_by(|(left, ..), (right, ..)| left == right) {
            let of = |wanted: Side| -> Vec<&Value> {
                same.iter().filter(|(_, side, _)| *side == wanted).map(|(.., item)| *item).collect()
            };
            let part = self.items(&of(Side::Left), &of(Side::Right), shape.items());
            found.add(&mut || same[0].0.clone(), part);
        }
    }

    /// Items of one key. Two or more of them on a side are one thing as a whole.
    fn items(self, lefts: &[&Value], rights: &[&Value], shape: Shape<'_>) -> Compared {
        match (lefts, rights) {
            ([] | [_], [] | [_]) => self.walk(lefts.first().copied(), rights.first().copied(), shape),
            ([_, _, ..], [_, _, ..]) => {
                let equal = lefts.len() == rights.len()
                    && lefts.iter().zip(rights).all(|(left, right)| scalar::equals(left, right));
                let modified = Mark { here: !equal, below: FieldSet::default() };
                Compared { modified, ..Compared::default() }
            }
            ([_, _, ..], _) => {
                let mut found = rights.first().map(|right| self.walk(None, Some(right), shape)).unwrap_or_default();
                found.removed.here = true;
                found
            }
            (_, [_, _, ..]) => {
                let mut found = lefts.first().map(|left| self.walk(Some(left), None, shape)).unwrap_or_default();
                found.added.here = true;
                found
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

fn leaf(left: Option<&Value>, right: Option<&Value>, found: &mut Compared) {
    match (left, right) {
        (None, _) => found.added.here = true,
        (Some(_), None) => found.removed.here = true,
        (Some(left), Some(right)) => found.modified.here |= !scalar::equals(left, right),
    }
}

impl Compared {
    /// Takes in what was found at the same place under another form.
    fn join(&mut self, other: &Self) {
        self.removed.join(&other.removed);
        self.modified.join(&other.modified);
        self.added.join(&other.added);
    }

    /// Takes in what was found at one part, in order of the parts' elements.
    fn add(&mut self, element: &mut dyn FnMut() -> PathElement, part: Self) {
        self.removed.add(element, part.removed);
        self.modified.add(element, part.modified);
        self.added.add(element, part.added);
    }
}

impl Mark {
    fn join(&mut self, other: &Self) {
        self.here |= other.here;
        self.below = self.below.union(&other.below);
    }

    fn add(&mut self, element: &mut dyn FnMut() -> PathElement, part: Self) {
        if part.here || !part.below.is_empty() {
            self.below.push(SetNode { element: element(), member: part.here, children: part.below });
        }
    }
}

/// The fields of both maps by name, in order.
pub(super) fn zip<'a>(
    lefts: Option<&'a Map<String, Value>>,
    rights: Option<&'a Map<String, Value>>,
) -> impl Iterator<Item = (&'a str, Option<&'a Value>, Option<&'a Value>)> {
    let mut lefts = lefts.into_iter().flatten().peekable();
    let mut rights = rights.into_iter().flatten().peekable();
    std::iter::from_fn(move || {
        let order = match (lefts.peek(), rights.peek()) {
            (None, None) => return None,
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some((left, _)), Some((right, _))) => left.cmp(right),
        };
        let left = order.is_le().then(|| lefts.next()).flatten();
        let right = order.is_ge().then(|| rights.next()).flatten();
        let name = left.or(right).map(|(name, _)| name.as_str())?;
        Some((name, left.map(|(_, value)| value), right.map(|(_, value)| value)))
    })
}
