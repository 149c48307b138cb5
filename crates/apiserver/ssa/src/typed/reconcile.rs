//! A stored set of fields → the same set for a schema that has changed since: what became atomic is owned as a whole.

use super::shape::{Form, Relation, Shape};
use crate::path::PathElement;
use crate::set::{FieldSet, Node};

/// The set as the schema has it now.
pub(crate) fn reconcile(set: &FieldSet, shape: Shape<'_>) -> FieldSet {
    if shape.forms().first() == Form::Map && shape.is_free_map() {
        return set.clone();
    }
    FieldSet::from_sorted(set.nodes().iter().map(|node| reconcile_node(node, below(shape, &node.element))).collect())
}

fn below<'a>(shape: Shape<'a>, element: &PathElement) -> Option<Shape<'a>> {
    match (shape.forms().first(), element) {
        (Form::Map, PathElement::Field(name)) => shape.value(name),
        (Form::List, _) => Some(shape.items()),
        (Form::Map | Form::Scalar, _) => None,
    }
}

fn reconcile_node(node: &Node, shape: Option<Shape<'_>>) -> Node {
    let Some(shape) = shape.filter(|_| !node.children.is_empty()) else {
        return node.clone();
    };
    let whole = match shape.forms().first() {
        Form::Scalar => return node.clone(),
        Form::Map => !shape.is_free_map() && shape.map_is_atomic(),
        Form::List => matches!(shape.relation(), Relation::Atomic),
    };
    if whole {
        return Node { element: node.element.clone(), member: true, children: FieldSet::default() };
    }
    Node { element: node.element.clone(), member: node.member, children: reconcile(&node.children, shape) }
}
