//! A stored set of fields → the same set for a schema that has changed since: what became atomic is owned as a whole.

use super::shape::{Relation, Shape, ViewedAs};
use crate::ssa::path::PathElement;
use crate::ssa::set::{FieldSet, SetNode};

/// The set as the schema has it now.
pub(crate) fn reconcile(set: &FieldSet, shape: Shape<'_>) -> FieldSet {
    if shape.forms().first() == ViewedAs::Map && shape.is_free_map() {
        return set.clone();
    }
    FieldSet::from_sorted(set.nodes().iter().map(|node| reconcile_node(node, below(shape, &node.element))).collect())
}

fn below<'a>(shape: Shape<'a>, element: &PathElement) -> Option<Shape<'a>> {
    match (shape.forms().first(), element) {
        (ViewedAs::Map, PathElement::Field(name)) => shape.value(name),
        (ViewedAs::List, _) => Some(shape.items()),
        (ViewedAs::Map | ViewedAs::Scalar, _) => None,
    }
}

fn reconcile_node(node: &SetNode, shape: Option<Shape<'_>>) -> SetNode {
    let Some(shape) = shape.filter(|_| !node.children.is_empty()) else {
        return node.clone();
    };
    let whole = match shape.forms().first() {
        ViewedAs::Scalar => return node.clone(),
        ViewedAs::Map => !shape.is_free_map() && shape.map_is_atomic(),
        ViewedAs::List => matches!(shape.relation(), Relation::Atomic),
    };
    if whole {
        return SetNode { element: node.element.clone(), member: true, children: FieldSet::default() };
    }
    SetNode { element: node.element.clone(), member: node.member, children: reconcile(&node.children, shape) }
}
