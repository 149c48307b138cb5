//! A set of fields of one object, as a tree of path elements.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use crate::ssa::path::PathElement;

/// Fields of an object. A field can be in the set without its parent, and a parent without its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// Sorted by element; each is a member, or has children, or both. Shared, because most operations leave most parts
    /// of a set as they are.
    nodes: Arc<Vec<SetNode>>,
}

/// One element of a [`FieldSet`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetNode {
    pub(crate) element: PathElement,
    /// Whether the field itself is in the set.
    pub(crate) member: bool,
    /// What is in the set below it.
    pub(crate) children: FieldSet,
}

impl FieldSet {
    /// The set of these fields, each given by the names that lead to it.
    pub fn of_fields(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let path: Vec<PathElement> = path.iter().map(|name| PathElement::field(name)).collect();
            set.insert(&path);
        }
        set
    }

    /// Nodes in any order; those of one element become one.
    pub(crate) fn from_unsorted(mut nodes: Vec<SetNode>) -> Self {
        nodes.sort_by(|left, right| left.element.cmp(&right.element));
        nodes.dedup_by(|again, first| {
            let same = again.element == first.element;
            if same {
                first.member |= again.member;
                first.children = first.children.union(&again.children);
            }
            same
        });
        Self { nodes: Arc::new(nodes) }
    }

    /// Nodes in order already.
    pub(crate) fn from_sorted(nodes: Vec<SetNode>) -> Self {
        Self { nodes: Arc::new(nodes) }
    }

    /// Adds a node that comes after all others.
    pub(crate) fn push(&mut self, node: SetNode) {
        debug_assert!(self.nodes.last().is_none_or(|last| last.element < node.element), "nodes come in order");
        Arc::make_mut(&mut self.nodes).push(node);
    }

    /// The nodes, in order.
    pub(crate) fn nodes(&self) -> &[SetNode] {
        &self.nodes
    }

    /// Adds one field, not its parents. The empty path names the whole object, which nobody owns.
    pub fn insert(&mut self, path: &[PathElement]) {
        let [first, rest @ ..] = path else { return };
        let nodes = Arc::make_mut(&mut self.nodes);
        let at = match nodes.binary_search_by(|node| node.element.cmp(first)) {
            Ok(at) => at,
            Err(at) => {
                nodes.insert(at, SetNode { element: first.clone(), member: false, children: Self::default() });
                at
            }
        };
        if rest.is_empty() {
            nodes[at].member = true;
        } else {
            nodes[at].children.insert(rest);
        }
    }

    /// Whether nothing is in the set.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// How many fields are in the set.
    pub fn len(&self) -> usize {
        self.nodes.iter().map(|node| usize::from(node.member) + node.children.len()).sum()
    }

    /// Whether one field is in the set.
    pub fn contains(&self, path: &[PathElement]) -> bool {
        let [first, rest @ ..] = path else { return false };
        self.node(first).is_some_and(|node| if rest.is_empty() { node.member } else { node.children.contains(rest) })
    }

    /// The node of one element.
    pub(crate) fn node(&self, element: &PathElement) -> Option<&SetNode> {
        self.nodes.binary_search_by(|node| node.element.cmp(element)).ok().map(|at| &self.nodes[at])
    }

    /// The node of one named field, without building its element.
    pub(crate) fn field(&self, name: &str) -> Option<&SetNode> {
        let found = self.nodes.binary_search_by(|node| match &node.element {
            PathElement::Field(field) => field.as_str().cmp(name),
            PathElement::Key(_) | PathElement::Value(_) | PathElement::Index(_) => Ordering::Greater,
        });
        found.ok().map(|at| &self.nodes[at])
    }

    /// Fields in either set.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        if self.is_empty() {
            return other.clone();
        }
        self.join(other, &mut |pair| match pair {
            NodePair::Left(node) | NodePair::Right(node) => Some(node.clone()),
            NodePair::Both(left, right) => Some(SetNode {
                element: left.element.clone(),
                member: left.member || right.member,
                children: left.children.union(&right.children),
            }),
        })
    }

    /// Fields in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        if self.is_empty() || other.is_empty() {
            return Self::default();
        }
        self.join(other, &mut |pair| match pair {
            NodePair::Left(_) | NodePair::Right(_) => None,
            NodePair::Both(left, right) => {
                node(&left.element, left.member && right.member, left.children.intersection(&right.children))
            }
        })
    }

    /// Fields that are not in the other set. A field stays when only its parent is in the other set.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        self.join(other, &mut |pair| match pair {
            NodePair::Left(left) => Some(left.clone()),
            NodePair::Right(_) => None,
            NodePair::Both(left, right) => {
                node(&left.element, left.member && !right.member, left.children.difference(&right.children))
            }
        })
    }

    /// Fields that are neither in the other set nor below one of its fields.
    #[must_use]
    pub fn recursive_difference(&self, other: &Self) -> Self {
        if other.is_empty() {
            return self.clone();
        }
        self.join(other, &mut |pair| match pair {
            NodePair::Left(left) => Some(left.clone()),
            NodePair::Right(_) => None,
            NodePair::Both(_, right) if right.member => None,
            NodePair::Both(left, right) => {
                node(&left.element, left.member, left.children.recursive_difference(&right.children))
            }
        })
    }

    /// Fields below which nothing is in the set.
    #[must_use]
    pub fn leaves(&self) -> Self {
        let nodes = self.nodes.iter().filter_map(|entry| {
            node(&entry.element, entry.member && entry.children.is_empty(), entry.children.leaves())
        });
        Self::from_sorted(nodes.collect())
    }

    /// Every field's path: those of one level first, then those below each.
    pub fn paths(&self) -> Vec<Vec<PathElement>> {
        let mut paths = Vec::with_capacity(self.len());
        self.collect_paths(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &mut Vec<PathElement>, paths: &mut Vec<Vec<PathElement>>) {
        for node in self.nodes.iter().filter(|node| node.member) {
            prefix.push(node.element.clone());
            paths.push(prefix.clone());
            prefix.pop();
        }
        for node in self.nodes.iter().filter(|node| !node.children.is_empty()) {
            prefix.push(node.element.clone());
            node.children.collect_paths(prefix, paths);
            prefix.pop();
        }
    }

    /// Walks both sets in order and keeps what `choose` makes of each element.
    fn join(&self, other: &Self, choose: &mut dyn FnMut(NodePair<'_>) -> Option<SetNode>) -> Self {
        let mut nodes = Vec::with_capacity(self.nodes.len());
        let (mut left, mut right) = (self.nodes.iter().peekable(), other.nodes.iter().peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (None, None) => return Self::from_sorted(nodes),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(left), Some(right)) => left.element.cmp(&right.element),
            };
            let pair = match order {
                Ordering::Less => left.next().map(NodePair::Left),
                Ordering::Greater => right.next().map(NodePair::Right),
                Ordering::Equal => left.next().zip(right.next()).map(|(left, right)| NodePair::Both(left, right)),
            };
            nodes.extend(pair.and_then(&mut *choose));
        }
    }
}

enum NodePair<'a> {
    Left(&'a SetNode),
    Right(&'a SetNode),
    Both(&'a SetNode, &'a SetNode),
}

/// A node, unless nothing of it is in the set.
pub(crate) fn node(element: &PathElement, member: bool, children: FieldSet) -> Option<SetNode> {
    (member || !children.is_empty()).then(|| SetNode { element: element.clone(), member, children })
}

/// A path as messages show it.
pub(crate) fn path_text(path: &[PathElement]) -> String {
    path.iter().map(ToString::to_string).collect()
}

impl fmt::Display for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.paths().iter().map(|path| path_text(path)).collect();
        f.write_str(&lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(paths: &[&str]) -> FieldSet {
        let paths: Vec<Vec<&str>> = paths.iter().map(|path| path.split('.').collect()).collect();
        FieldSet::of_fields(&paths.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    #[test]
    fn a_union_has_the_fields_of_both() {
        assert_eq!(set(&["a", "b.c"]).union(&set(&["b", "b.d", "e"])), set(&["a", "b", "b.c", "b.d", "e"]));
    }

    #[test]
    fn an_intersection_has_only_shared_fields() {
        assert_eq!(set(&["a", "b", "b.c", "d.e"]).intersection(&set(&["a", "b.c", "d"])), set(&["a", "b.c"]));
    }

    #[test]
    fn a_difference_leaves_children_of_a_removed_parent() {
        assert_eq!(set(&["a", "a.b", "c"]).difference(&set(&["a"])), set(&["a.b", "c"]));
        assert_eq!(set(&["a", "a.b"]).difference(&set(&["a.b"])), set(&["a"]));
    }

    #[test]
    fn a_recursive_difference_takes_children_along() {
        assert_eq!(set(&["a", "a.b", "a.b.c", "d"]).recursive_difference(&set(&["a.b"])), set(&["a", "d"]));
        assert_eq!(set(&["a.b", "d"]).recursive_difference(&set(&["a"])), set(&["d"]));
    }

    #[test]
    fn leaves_have_nothing_below_them() {
        assert_eq!(set(&["a", "a.b", "c"]).leaves(), set(&["a.b", "c"]));
    }

    #[test]
    fn a_parent_is_not_a_member_because_its_child_is() {
        let set = set(&["a.b"]);

        assert!(set.contains(&[PathElement::field("a"), PathElement::field("b")]));
        assert!(!set.contains(&[PathElement::field("a")]));
        assert!(!set.contains(&[]));
        assert_eq!(set.len(), 1);
    }

    #[test]
    fn paths_list_a_level_before_what_is_below() {
        assert_eq!(set(&["a.x", "a", "b"]).to_string(), ".a\n.b\n.a.x");
    }
}
