//! A value → the set of its fields, as its applier owns them.

use serde_json::{Map, Value};

use super::shape::{Relation, Shape, ViewedAs};
use crate::ssa::path::PathElement;
use crate::ssa::set::{self, FieldSet, SetNode};

/// Every leaf of the value, every item of its lists and every key of its maps.
pub(crate) fn field_set(value: &Value, shape: Shape<'_>) -> FieldSet {
    walk(value, shape).children
}

/// A value's own membership and what is below it.
struct Membership {
    member: bool,
    children: FieldSet,
}

impl Membership {
    fn leaf() -> Self {
        Self { member: true, children: FieldSet::default() }
    }

    fn parts(children: FieldSet) -> Self {
        Self { member: false, children }
    }
}

fn walk(value: &Value, shape: Shape<'_>) -> Membership {
    match (shape.form_of(value), value) {
        (ViewedAs::Scalar, _) => Membership::leaf(),
        (ViewedAs::Map, _) if shape.map_is_atomic() => Membership::leaf(),
        (ViewedAs::Map, Value::Object(fields)) => Membership::parts(map_fields(fields, shape)),
        (ViewedAs::List, _) if matches!(shape.relation(), Relation::Atomic) => Membership::leaf(),
        (ViewedAs::List, Value::Array(items)) => Membership::parts(list_items(items, shape)),
        (ViewedAs::Map | ViewedAs::List, _) => Membership::parts(FieldSet::default()),
    }
}

fn map_fields(fields: &Map<String, Value>, shape: Shape<'_>) -> FieldSet {
    let mut nodes = Vec::with_capacity(fields.len());
    for (name, value) in fields {
        let named = shape.field(name);
        let found = walk(value, named.or_else(|| shape.value(name)).unwrap_or(Shape::Deduced));
        let empty = value.is_null() || value.as_object().is_some_and(Map::is_empty);
        let member = found.member || empty || named.is_none();
        if member || !found.children.is_empty() {
            nodes.push(SetNode { element: PathElement::field(name), member, children: found.children });
        }
    }
    FieldSet::from_sorted(nodes)
}

/// Items that share a key are owned as one, whatever is in them.
fn list_items(items: &[Value], shape: Shape<'_>) -> FieldSet {
    let mut elements: Vec<(PathElement, &Value)> =
        items.iter().filter_map(|item| Some((shape.element_of(item).ok()?, item))).collect();
    elements.sort_by(|(left, _), (right, _)| left.cmp(right));
    let nodes = elements.chunk_by(|(left, _), (right, _)| left == right).map(|same| {
        let children = match same {
            [(_, item)] => walk(item, shape.items()).children,
            _ => FieldSet::default(),
        };
        SetNode { element: same[0].0.clone(), member: true, children }
    });
    FieldSet::from_sorted(nodes.collect())
}

/// The set with the named fields above each of its fields: `a.b.c` brings `a` when `a` is named by the schema, and not
/// `a.b` when that is a key of a map.
pub(crate) fn with_named_parents(set: &FieldSet, shape: Option<Shape<'_>>) -> FieldSet {
    let forms = shape.map(|shape| (shape, shape.forms()));
    let nodes = set.nodes().iter().filter_map(|node| {
        let (named, below) = match (&node.element, forms) {
            (PathElement::Field(name), Some((shape, forms))) if forms.first() == ViewedAs::Map => {
                (shape.field(name).is_some(), shape.value(name))
            }
            (PathElement::Key(_), Some((shape, forms))) if forms.has_list() => (false, Some(shape.items())),
            _ => (false, None),
        };
        let parent = named && !node.children.is_empty();
        set::node(&node.element, node.member || parent, with_named_parents(&node.children, below))
    });
    FieldSet::from_sorted(nodes.collect())
}
