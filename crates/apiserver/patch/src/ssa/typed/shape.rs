//! A place of a schema as ownership sees it: may it be a scalar, a list, a map, and which parts of it have owners of
//! their own. Where the schema says nothing, maps are granular and lists atomic.

use portolan_schema::node::Additional;
use portolan_schema::{Cursor, ListType, MapType, Type};
use serde_json::Value;

use super::object_meta;
use crate::ssa::path::PathElement;
use crate::ssa::zero;

/// A place of a schema.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape<'a> {
    /// The schema says what is here.
    Known(DescribedPlace<'a>),
    /// Nothing is said: maps are granular, lists atomic.
    Deduced,
    /// An item of a list without items' schema: atomic whatever it is.
    Untyped,
}

/// A place that the schema describes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DescribedPlace<'a> {
    cursor: Cursor<'a>,
    /// Whether unknown fields are kept here because a schema above says so.
    preserving: bool,
    /// Whether this is a whole resource, with `metadata` of its own.
    resource: bool,
    /// Whether the schema is that of a built-in kind.
    built_in: bool,
}

/// The forms that a value may have at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forms {
    scalar: bool,
    list: bool,
    map: bool,
}

/// The form under which a value is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ViewedAs {
    Scalar,
    List,
    Map,
}

/// The scalars that a schema tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scalar {
    Numeric,
    Text,
    Boolean,
    Any,
}

/// How the items of a list are told apart.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Relation<'a> {
    Atomic,
    Set,
    Keyed(&'a [String]),
}

impl Forms {
    const ANY: Self = Self { scalar: true, list: true, map: true };
    const SCALAR: Self = Self { scalar: true, list: false, map: false };
    const LIST: Self = Self { scalar: false, list: true, map: false };
    const MAP: Self = Self { scalar: false, list: false, map: true };

    /// Whether a list is among them.
    pub(crate) fn has_list(self) -> bool {
        self.list
    }

    /// The form to look at when several are allowed: a map before a scalar before a list.
    pub(crate) fn first(self) -> ViewedAs {
        if self.map {
            ViewedAs::Map
        } else if self.scalar {
            ViewedAs::Scalar
        } else {
            ViewedAs::List
        }
    }
}

impl<'a> Shape<'a> {
    /// The shape of a whole object.
    pub(crate) fn resource(cursor: Cursor<'a>) -> Self {
        Self::Known(DescribedPlace {
            cursor,
            preserving: cursor.node().preserve_unknown,
            resource: true,
            built_in: zero::is_built_in(cursor),
        })
    }

    /// The forms that are allowed here.
    pub(crate) fn forms(self) -> Forms {
        match self {
            Self::Deduced | Self::Untyped => Forms::ANY,
            Self::Known(known) => match known.cursor.node().type_ {
                None => Forms::ANY,
                Some(Type::Object) => Forms::MAP,
                Some(Type::Array) => Forms::LIST,
                Some(Type::String | Type::Integer | Type::Number | Type::Boolean) => Forms::SCALAR,
            },
        }
    }

    /// The forms that are left once the value is known; all of them for null, and for a value that is not allowed.
    pub(crate) fn forms_of(self, value: Option<&Value>) -> Forms {
        let allowed = self.forms();
        match value {
            Some(Value::Bool(_) | Value::Number(_) | Value::String(_)) if allowed.scalar => Forms::SCALAR,
            Some(Value::Array(_)) if allowed.list => Forms::LIST,
            Some(Value::Object(_)) if allowed.map => Forms::MAP,
            _ => allowed,
        }
    }

    /// The form under which a value is looked at.
    pub(crate) fn form_of(self, value: &Value) -> ViewedAs {
        self.forms_of(Some(value)).first()
    }

    /// The scalar that is allowed here.
    pub(crate) fn scalar(self) -> Scalar {
        let Self::Known(known) = self else { return Scalar::Any };
        let node = known.cursor.node();
        match (node.type_, node.format.as_deref()) {
            (Some(Type::Integer | Type::Number), _) => Scalar::Numeric,
            (Some(Type::Boolean), _) => Scalar::Boolean,
            (Some(Type::String), None | Some("" | "byte")) => Scalar::Text,
            _ => Scalar::Any,
        }
    }

    /// Whether a map here has one owner as a whole.
    pub(crate) fn map_is_atomic(self) -> bool {
        match self {
            Self::Known(known) => known.cursor.node().map_type == Some(MapType::Atomic),
            Self::Deduced => false,
            Self::Untyped => true,
        }
    }

    /// How the items of a list here are told apart.
    pub(crate) fn relation(self) -> Relation<'a> {
        let Self::Known(known) = self else {
            return Relation::Atomic;
        };
        let node = known.cursor.node();
        match (node.list_type, node.patch_strategy.as_deref()) {
            (Some(ListType::Map), _) if !node.list_map_keys.is_empty() => Relation::Keyed(&node.list_map_keys),
            (Some(ListType::Map | ListType::Set), _) => Relation::Set,
            (None, Some("merge" | "merge,retainKeys")) => match &node.patch_merge_key {
                Some(key) => Relation::Keyed(std::slice::from_ref(key)),
                None => Relation::Set,
            },
            (Some(ListType::Atomic) | None, _) => Relation::Atomic,
        }
    }

    /// The shape of a list's items.
    pub(crate) fn items(self) -> Self {
        match self {
            Self::Known(known) => known.cursor.items().map_or(Self::Untyped, |cursor| known.below(cursor)),
            Self::Deduced | Self::Untyped => Self::Untyped,
        }
    }

    /// The shape of a field that the schema names.
    pub(crate) fn field(self, name: &str) -> Option<Self> {
        let Self::Known(known) = self else { return None };
        let own = known.resource.then(|| object_meta::field(name)).flatten();
        match own {
            Some(cursor) => {
                Some(Self::Known(DescribedPlace { cursor, preserving: false, resource: false, built_in: false }))
            }
            None => known.cursor.property(name).map(|cursor| known.below(cursor)),
        }
    }

    /// The shape of any field: a named one, or one that maps and free objects may have. `None` where it is not known.
    pub(crate) fn value(self, name: &str) -> Option<Self> {
        match self {
            Self::Deduced => Some(Self::Deduced),
            Self::Untyped => Some(Self::Untyped),
            Self::Known(known) => self.field(name).or_else(|| known.other_values()),
        }
    }

    /// Whether the schema names no fields and lets any in, so that changes of the schema leave owners alone.
    pub(crate) fn is_free_map(self) -> bool {
        match self {
            Self::Deduced => true,
            Self::Untyped => false,
            Self::Known(known) => {
                let no_fields = known.cursor.node().properties.is_empty() && !known.resource;
                let scalar_values = |shape: Self| match shape {
                    Self::Deduced => true,
                    Self::Untyped => false,
                    Self::Known(_) => shape.forms().scalar && shape.scalar() == Scalar::Any,
                };
                no_fields && known.other_values().is_some_and(scalar_values)
            }
        }
    }

    /// The path element of a list's item, or why it has none.
    pub(crate) fn element_of(self, item: &Value) -> Result<PathElement, String> {
        match self.relation() {
            Relation::Atomic => Err("invalid indexing of non-associative list".to_owned()),
            Relation::Set => set_element(item),
            Relation::Keyed(keys) => self.keyed_element(keys, item),
        }
    }

    fn keyed_element(self, keys: &[String], item: &Value) -> Result<PathElement, String> {
        let fields = match item {
            Value::Object(fields) => fields,
            Value::Null => return Err("associative list with keys may not have a null element".to_owned()),
            _ => return Err("associative list with keys may not have non-map elements".to_owned()),
        };
        let value_of = |key: &String| fields.get(key).or_else(|| self.items().default_of(key));
        let mut found: Vec<(String, Value)> =
            keys.iter().filter_map(|key| Some((key.clone(), value_of(key)?.clone()))).collect();
        if found.is_empty() {
            let keys: Vec<String> = keys.iter().map(|key| crate::ssa::scalar::quoted(key)).collect();
            return Err(format!(
                "associative list with keys has an element that omits all key fields [{}] \
                 (and doesn't have default values for any key fields)",
                keys.join(" ")
            ));
        }
        found.sort_by(|(left, _), (right, _)| left.cmp(right));
        Ok(PathElement::Key(found))
    }

    fn default_of(self, name: &str) -> Option<&'a Value> {
        let Self::Known(known) = self else { return None };
        known.cursor.property(name)?.node().default.as_ref().filter(|default| !default.is_null())
    }
}

fn set_element(item: &Value) -> Result<PathElement, String> {
    let problem = match item {
        Value::Object(_) => "associative list without keys has an element that's a map type",
        Value::Array(_) => "not supported: associative list with lists as elements",
        Value::Null => "associative list without keys has an element that's an explicit null",
        Value::Bool(_) | Value::Number(_) | Value::String(_) => return Ok(PathElement::Value(item.clone())),
    };
    Err(problem.to_owned())
}

impl<'a> DescribedPlace<'a> {
    fn below(self, cursor: Cursor<'a>) -> Shape<'a> {
        let node = cursor.node();
        let says_nothing = node.properties.is_empty() && node.additional == Additional::Unset;
        if self.built_in && node.type_ == Some(Type::Object) && says_nothing {
            // An object of any kind inside a built-in one, such as the data of a ControllerRevision.
            return Shape::Untyped;
        }
        Shape::Known(Self {
            cursor,
            preserving: self.preserving || node.preserve_unknown,
            resource: node.embedded_resource,
            built_in: self.built_in,
        })
    }

    /// The shape of fields that are not named.
    fn other_values(self) -> Option<Shape<'a>> {
        let node = self.cursor.node();
        match node.additional {
            Additional::Unset if self.preserving || (node.properties.is_empty() && !self.resource) => {
                Some(Shape::Deduced)
            }
            Additional::Unset | Additional::Closed => None,
            Additional::Open => Some(Shape::Deduced),
            Additional::Values(_) => self.cursor.values().map(|cursor| self.below(cursor)),
        }
    }
}
