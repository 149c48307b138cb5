//! JSON of a schema as `OpenAPI` v3 writes it → a tree of [`Node`]s in one arena, so that recursive kinds need no special care.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::constraints::Constraints;
use crate::rules::SchemaRule;

/// A place in a schema's arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

/// The JSON type that a schema asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Type {
    /// As schemas write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    /// The type of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Object, Self::Array, Self::String, Self::Integer, Self::Number, Self::Boolean]
            .into_iter()
            .find(|candidate| candidate.name() == name)
    }

    /// The type of a value; `null` counts as an object.
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Null | Value::Object(_) => Self::Object,
            Value::Array(_) => Self::Array,
            Value::String(_) => Self::String,
            Value::Bool(_) => Self::Boolean,
            Value::Number(number) if number.is_i64() => Self::Integer,
            Value::Number(_) => Self::Number,
        }
    }
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListType {
    /// Replaced as a whole.
    Atomic,
    /// Scalars, each at most once.
    Set,
    /// Objects told apart by `x-kubernetes-list-map-keys`.
    Map,
}

/// `x-kubernetes-map-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapType {
    /// Each key has its own owner.
    Granular,
    /// Replaced as a whole.
    Atomic,
}

/// What `additionalProperties` says about keys without a property of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Additional {
    /// Nothing was said.
    #[default]
    Unset,
    /// `false`: no other keys.
    Closed,
    /// `true`: anything.
    Open,
    /// Every other key's value follows this schema.
    Values(NodeId),
}

/// One place of a schema.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a keyword of its own")]
pub struct Node {
    /// `type`; absent on int-or-string and preserve-unknown nodes.
    pub type_: Option<Type>,
    /// `format`, such as `int32` or `date-time`.
    pub format: Option<String>,
    /// Whether `null` is a value of its own.
    pub nullable: bool,
    /// Named fields.
    pub properties: BTreeMap<String, NodeId>,
    /// Fields that must be there.
    pub required: Vec<String>,
    /// The rest of an object's keys.
    pub additional: Additional,
    /// A list's items.
    pub items: Option<NodeId>,
    /// `x-kubernetes-preserve-unknown-fields`.
    pub preserve_unknown: bool,
    /// `x-kubernetes-embedded-resource`.
    pub embedded_resource: bool,
    /// `x-kubernetes-int-or-string` (or the format of that name).
    pub int_or_string: bool,
    /// `x-kubernetes-list-type`.
    pub list_type: Option<ListType>,
    /// `x-kubernetes-list-map-keys`.
    pub list_map_keys: Vec<String>,
    /// `x-kubernetes-map-type`.
    pub map_type: Option<MapType>,
    /// `x-kubernetes-patch-merge-key`, for strategic merge patches of built-in kinds.
    pub patch_merge_key: Option<String>,
    /// `x-kubernetes-patch-strategy`.
    pub patch_strategy: Option<String>,
    /// The name of the definition that this node is, or was copied from.
    pub definition: Option<Arc<str>>,
    /// `default`.
    pub default: Option<Value>,
    /// The value keywords.
    pub constraints: Option<Box<Constraints>>,
    /// `x-kubernetes-validations`.
    pub rules: Vec<Arc<SchemaRule>>,
    /// Whether this node or one below it has rules.
    pub rules_below: bool,
}

impl Node {
    /// Whether `additionalProperties` was given.
    pub fn has_additional(&self) -> bool {
        self.additional != Additional::Unset
    }
}

/// A schema that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// A `$ref` leads nowhere.
    #[error("schema refers to {0:?}, which is not defined")]
    UnknownReference(String),
    /// A part of the schema has the wrong JSON type.
    #[error("{at}: {what}")]
    Malformed {
        /// The keyword.
        at: String,
        /// What was expected.
        what: String,
    },
}

/// A whole schema: nodes and the root of each named definition.
#[derive(Clone, Debug)]
pub struct Schema {
    nodes: Vec<Node>,
    definitions: BTreeMap<String, NodeId>,
    root: NodeId,
}

impl Schema {
    /// Reads one schema without references, as CRDs carry it.
    pub fn parse(schema: &Value) -> Result<Self, SchemaError> {
        let mut builder = Builder {
            schema: Schema { nodes: Vec::new(), definitions: BTreeMap::new(), root: NodeId(0) },
            open: Vec::new(),
        };
        builder.schema.root = builder.node(schema)?;
        Ok(builder.schema)
    }

    /// Reads many named schemas that may refer to each other by `#/components/schemas/NAME` or just `NAME`.
    pub fn parse_definitions(definitions: &Map<String, Value>) -> Result<Self, SchemaError> {
        let mut builder = Builder {
            schema: Schema { nodes: Vec::new(), definitions: BTreeMap::new(), root: NodeId(0) },
            open: Vec::new(),
        };
        for name in definitions.keys() {
            let id = builder.push(Node::default());
            builder.schema.definitions.insert(name.clone(), id);
        }
        for (name, schema) in definitions {
            let id = builder.schema.definitions[name];
            builder.fill(id, schema)?;
            builder.schema.nodes[id.0 as usize].definition = Some(name.as_str().into());
        }
        builder.finish()?;
        Ok(builder.schema)
    }

    /// A schema that takes any object and keeps every field.
    pub fn anything() -> Self {
        let root = Node { type_: Some(Type::Object), preserve_unknown: true, ..Node::default() };
        Self { nodes: vec![root], definitions: BTreeMap::new(), root: NodeId(0) }
    }

    /// The root of [`Schema::parse`].
    pub fn root(&self) -> Cursor<'_> {
        Cursor { schema: self, id: self.root }
    }

    /// A named definition of [`Schema::parse_definitions`].
    pub fn definition(&self, name: &str) -> Option<Cursor<'_>> {
        self.definitions.get(name).map(|&id| Cursor { schema: self, id })
    }

    /// The place of an id that came from this schema.
    pub fn at(&self, id: NodeId) -> Cursor<'_> {
        Cursor { schema: self, id }
    }
}

/// A place in a schema, to walk down from beside a value.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    schema: &'a Schema,
    id: NodeId,
}

impl<'a> Cursor<'a> {
    /// The node here.
    pub fn node(self) -> &'a Node {
        &self.schema.nodes[self.id.0 as usize]
    }

    /// Its id, to come back with [`Schema::at`].
    pub fn id(self) -> NodeId {
        self.id
    }

    /// Whether this is a custom resource's schema, which says nothing of `metadata`.
    pub fn is_custom(self) -> bool {
        self.schema.definitions.is_empty()
    }

    /// Another place of the same schema.
    pub fn sibling(self, id: NodeId) -> Cursor<'a> {
        self.schema.at(id)
    }

    /// The schema of a named field; of any other key where the object is a map; `None` where it is unknown.
    pub fn child(self, name: &str) -> Option<Cursor<'a>> {
        self.property(name).or_else(|| self.values())
    }

    /// The schema of a named field only.
    pub fn property(self, name: &str) -> Option<Cursor<'a>> {
        self.node().properties.get(name).map(|&id| self.schema.at(id))
    }

    /// The schema of a map's values.
    pub fn values(self) -> Option<Cursor<'a>> {
        match self.node().additional {
            Additional::Values(id) => Some(self.schema.at(id)),
            Additional::Unset | Additional::Closed | Additional::Open => None,
        }
    }

    /// The schema of a list's items.
    pub fn items(self) -> Option<Cursor<'a>> {
        self.node().items.map(|id| self.schema.at(id))
    }
}

struct Builder {
    schema: Schema,
    /// Nodes that stand for a `$ref`, copied from their target once every definition is read.
    open: Vec<(NodeId, String)>,
}

impl Builder {
    fn push(&mut self, node: Node) -> NodeId {
        let id = NodeId(u32::try_from(self.schema.nodes.len()).expect("a schema has fewer than 2^32 nodes"));
        self.schema.nodes.push(node);
        id
    }

    fn node(&mut self, schema: &Value) -> Result<NodeId, SchemaError> {
        if let Some(name) = schema.as_object().and_then(reference) {
            // A bare reference shares the definition's node.
            let own_words = schema.as_object().is_some_and(|o| o.keys().any(|k| k == "default" || k.starts_with("x-")));
            if !own_words && let Some(&id) = self.schema.definitions.get(name) {
                return Ok(id);
            }
        }
        let id = self.push(Node::default());
        self.fill(id, schema)?;
        Ok(id)
    }

    fn fill(&mut self, id: NodeId, schema: &Value) -> Result<(), SchemaError> {
        let Some(object) = schema.as_object() else {
            return Err(SchemaError::Malformed { at: "schema".to_owned(), what: "must be an object".to_owned() });
        };
        let mut node = structural(object);
        if let Some(name) = reference(object) {
            self.open.push((id, name.to_owned()));
        }
        if let Some(properties) = object.get("properties").and_then(Value::as_object) {
            for (name, property) in properties {
                let child = self.node(property)?;
                node.properties.insert(name.clone(), child);
            }
        }
        if let Some(items) = object.get("items").filter(|i| i.is_object()) {
            node.items = Some(self.node(items)?);
        }
        self.junctors(&mut node, object)?;
        node.additional = match object.get("additionalProperties") {
            None => Additional::Unset,
            Some(Value::Bool(false)) => Additional::Closed,
            Some(Value::Bool(true)) => Additional::Open,
            Some(values) => Additional::Values(self.node(values)?),
        };
        node.rules_below = self.has_rules_below(&node);
        self.schema.nodes[id.0 as usize] = node;
        Ok(())
    }

    fn has_rules_below(&self, node: &Node) -> bool {
        let values = match node.additional {
            Additional::Values(id) => Some(id),
            Additional::Unset | Additional::Closed | Additional::Open => None,
        };
        let all_of = node.constraints.iter().flat_map(|c| &c.all_of);
        let mut children = node.properties.values().chain(&node.items).chain(&values).chain(all_of);
        !node.rules.is_empty() || children.any(|id| self.schema.nodes[id.0 as usize].rules_below)
    }

    fn junctors(&mut self, node: &mut Node, object: &Map<String, Value>) -> Result<(), SchemaError> {
        if reference(object).is_some() || !["allOf", "anyOf", "oneOf", "not"].iter().any(|k| object.contains_key(*k)) {
            return Ok(());
        }
        let [all_of, any_of, one_of] =
            [self.nodes(object, "allOf")?, self.nodes(object, "anyOf")?, self.nodes(object, "oneOf")?];
        let not = object.get("not").filter(|n| n.is_object()).map(|n| self.node(n)).transpose()?;
        let constraints = node.constraints.get_or_insert_default();
        **constraints = Constraints { all_of, any_of, one_of, not, ..std::mem::take(&mut **constraints) };
        Ok(())
    }

    fn nodes(&mut self, object: &Map<String, Value>, keyword: &str) -> Result<Vec<NodeId>, SchemaError> {
        let schemas = object.get(keyword).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        schemas.iter().map(|schema| self.node(schema)).collect()
    }

    fn finish(&mut self) -> Result<(), SchemaError> {
        for (id, name) in std::mem::take(&mut self.open) {
            let target = *self.schema.definitions.get(&name).ok_or(SchemaError::UnknownReference(name))?;
            let own = self.schema.nodes[id.0 as usize].clone();
            let mut node = self.schema.nodes[target.0 as usize].clone();
            node.default = own.default.or(node.default);
            node.list_type = own.list_type.or(node.list_type);
            node.map_type = own.map_type.or(node.map_type);
            node.patch_strategy = own.patch_strategy.or(node.patch_strategy);
            node.patch_merge_key = own.patch_merge_key.or(node.patch_merge_key);
            self.schema.nodes[id.0 as usize] = node;
        }
        Ok(())
    }
}

/// The name behind `$ref`, also where a document wraps it in an `allOf` of one.
fn reference(schema: &Map<String, Value>) -> Option<&str> {
    let direct = schema.get("$ref").and_then(Value::as_str);
    let wrapped = || match schema.get("allOf").and_then(Value::as_array).map(Vec::as_slice) {
        Some([only]) => only.get("$ref").and_then(Value::as_str),
        _ => None,
    };
    direct.or_else(wrapped).map(|name| name.rsplit('/').next().unwrap_or(name))
}

/// The keywords that need no children.
fn structural(object: &Map<String, Value>) -> Node {
    let text = |key: &str| object.get(key).and_then(Value::as_str);
    let flag = |key: &str| object.get(key).and_then(Value::as_bool).unwrap_or(false);
    let texts = |key: &str| -> Vec<String> {
        object
            .get(key)
            .and_then(Value::as_array)
            .map(|l| l.iter().filter_map(Value::as_str).map(str::to_owned).collect())
            .unwrap_or_default()
    };
    Node {
        type_: text("type").and_then(Type::named),
        format: text("format").map(str::to_owned),
        nullable: flag("nullable"),
        required: texts("required"),
        preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
        embedded_resource: flag("x-kubernetes-embedded-resource"),
        int_or_string: flag("x-kubernetes-int-or-string") || text("format") == Some("int-or-string"),
        list_type: text("x-kubernetes-list-type").and_then(|t| match t {
            "atomic" => Some(ListType::Atomic),
            "set" => Some(ListType::Set),
            "map" => Some(ListType::Map),
            _ => None,
        }),
        list_map_keys: texts("x-kubernetes-list-map-keys"),
        map_type: text("x-kubernetes-map-type").and_then(|t| match t {
            "granular" => Some(MapType::Granular),
            "atomic" => Some(MapType::Atomic),
            _ => None,
        }),
        patch_merge_key: text("x-kubernetes-patch-merge-key").map(str::to_owned),
        patch_strategy: text("x-kubernetes-patch-strategy").map(str::to_owned),
        default: object.get("default").cloned(),
        constraints: Constraints::parse(object),
        rules: SchemaRule::parse_all(object),
        ..Node::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn references_share_or_copy_their_definition() {
        let definitions = json!({
            "Tree": {"type": "object", "properties": {
                "leaf": {"type": "string"},
                "left": {"$ref": "#/components/schemas/Tree"},
                "right": {"allOf": [{"$ref": "#/components/schemas/Tree"}], "default": {}},
            }},
        });

        let schema = Schema::parse_definitions(definitions.as_object().unwrap()).unwrap();

        let tree = schema.definition("Tree").unwrap();
        let deep = tree.property("left").and_then(|t| t.property("right")).and_then(|t| t.property("leaf"));
        assert_eq!(deep.unwrap().node().type_, Some(Type::String));
        assert_eq!(tree.property("right").unwrap().node().default, Some(json!({})));
        assert_eq!(tree.property("left").unwrap().id(), tree.id());
        assert_eq!(tree.property("right").unwrap().node().definition.as_deref(), Some("Tree"));
    }

    #[test]
    fn an_unknown_reference_is_an_error() {
        let definitions = json!({"A": {"type": "object", "properties": {"b": {"$ref": "#/components/schemas/B"}}}});

        let error = Schema::parse_definitions(definitions.as_object().unwrap()).unwrap_err();

        assert_eq!(error, SchemaError::UnknownReference("B".to_owned()));
    }
}
