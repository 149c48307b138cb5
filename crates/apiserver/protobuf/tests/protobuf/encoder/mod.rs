//! The inverse of the decoder, from the same table: random objects as Go writes them, and their bytes.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// Deeper down only what must be there is there.
const DEPTH: usize = 6;

/// Numbers from a seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed | 1)
    }

    /// A number below `end`.
    fn below(&mut self, end: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33).unwrap() % end
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }
}

/// The generated data.
pub(crate) struct Table(Value);

impl Table {
    pub(crate) fn read() -> &'static Self {
        static TABLE: LazyLock<Table> =
            LazyLock::new(|| Table(serde_json::from_str(include_str!("../../../data/messages.json")).unwrap()));
        &TABLE
    }

    /// One of the kinds: its version, its name and its message.
    pub(crate) fn kind(&self, random: &mut Random) -> (String, String, String) {
        let kinds = self.0["kinds"].as_object().unwrap();
        let (name, message) = kinds.iter().nth(random.below(kinds.len())).unwrap();
        let (api_version, kind) = name.rsplit_once('/').unwrap_or(("v1", name));
        (api_version.to_owned(), kind.to_owned(), message.as_str().unwrap().to_owned())
    }

    /// A body with a message in it.
    pub(crate) fn body(&self, api_version: &str, kind: &str, message: &[u8]) -> Vec<u8> {
        let types = [bytes_field(1, api_version.as_bytes()), bytes_field(2, kind.as_bytes())].concat();
        [b"k8s\0".to_vec(), bytes_field(1, &types), bytes_field(2, message)].concat()
    }

    fn fields(&self, message: &str) -> impl Iterator<Item = (u32, &str, &str, &str)> {
        let fields = self.0["messages"][message]["fields"].as_object().into_iter().flatten();
        fields.map(|(number, row)| {
            let text = |index: usize| row[index].as_str().unwrap();
            (number.parse().unwrap(), text(0), text(1), text(2))
        })
    }

    fn form(&self, message: &str) -> &str {
        self.0["messages"][message]["form"].as_str().unwrap_or_default()
    }

    /// The type of a message's field.
    fn type_of(&self, message: &str, number: u32) -> &str {
        self.fields(message).find(|field| field.0 == number).unwrap().3
    }

    /// A random message, as JSON.
    pub(crate) fn sample(&self, message: &str, random: &mut Random, depth: usize) -> Value {
        let seconds = i64::try_from(random.below(2_000_000_000)).unwrap();
        match self.form(message) {
            "time" => json!(Timestamp::from_second(seconds).unwrap().to_string()),
            "microTime" => {
                let time = Timestamp::new(seconds, i32::try_from(random.below(1_000_000)).unwrap() * 1000).unwrap();
                json!(time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string())
            }
            "quantity" => json!(random.pick(&["0", "1", "100m", "1Gi", "-2"])),
            "intOrString" => random.pick(&[json!(0), json!(-3), json!(8080), json!(""), json!("50%")]),
            "raw" => random.pick(&[json!({"a": [1, null]}), json!("text"), json!(7), json!({})]),
            "items" => json!(["a", ""]),
            "schemaOrBool" if random.below(2) == 0 => json!(random.below(2) == 0),
            "schemaOrStrings" if random.below(2) == 0 => json!(["a"]),
            "schemaOrSchemas" if random.below(2) == 0 => self.value(self.type_of(message, 2), random, depth),
            "schemaOrBool" => self.value(self.type_of(message, 2), random, depth),
            "schemaOrStrings" | "schemaOrSchemas" => self.value(self.type_of(message, 1), random, depth),
            _ => Value::Object(self.object(message, random, depth)),
        }
    }

    fn object(&self, message: &str, random: &mut Random, depth: usize) -> Map<String, Value> {
        let mut object = Map::new();
        for (_, name, emit, kind) in self.fields(message) {
            let there = depth < DEPTH && random.below(4) == 0;
            let value = match (emit, kind.strip_prefix('@')) {
                (_, Some(inner)) if name.is_empty() => {
                    object.extend(self.object(inner, random, depth + 1));
                    continue;
                }
                ("a", Some(inner)) => self.sample(inner, random, depth + 1),
                _ if there => self.value(kind, random, depth + 1),
                ("a", None) => zero(kind),
                ("n", _) => Value::Null,
                _ => continue,
            };
            let empty = [json!(""), json!(0), json!(false)].contains(&value);
            if emit != "o" || !empty {
                object.insert(name.to_owned(), value);
            }
        }
        object
    }

    fn value(&self, kind: &str, random: &mut Random, depth: usize) -> Value {
        if let Some(item) = kind.strip_prefix("[]") {
            return (0..=random.below(2)).map(|_| self.value(item, random, depth)).collect();
        }
        if let Some(item) = kind.strip_prefix("{}") {
            let keys = ["", "key", "ünïcode"].into_iter().skip(random.below(2));
            return Value::Object(keys.map(|key| (key.to_owned(), self.value(item, random, depth))).collect());
        }
        match kind {
            "string" => json!(random.pick(&["", "a", "☃ \"\n"])),
            "bool" => json!(random.below(2) == 0),
            "int32" => json!(random.pick(&[0, 1, -1, i32::MAX, i32::MIN])),
            "int64" => json!(random.pick(&[0, 1, -1, i64::MAX, i64::MIN])),
            "double" => random.pick(&[json!(0), json!(-3), json!(0.25)]),
            "bytes" => json!(random.pick(&["", "AAH+", "eA=="])),
            message => self.sample(&message[1..], random, depth),
        }
    }

    /// The bytes of a message.
    pub(crate) fn encode(&self, message: &str, value: &Value) -> Vec<u8> {
        let one = |number: u32, value: &Value| self.field(self.type_of(message, number), number, value);
        match (self.form(message), value) {
            ("time" | "microTime", value) => {
                let time: Timestamp = value.as_str().unwrap().parse().unwrap();
                [number_field(1, time.as_second()), number_field(2, time.subsec_nanosecond().into())].concat()
            }
            ("intOrString", Value::String(_)) => [number_field(1, 1), one(3, value)].concat(),
            ("intOrString", _) => [number_field(1, 0), one(2, value)].concat(),
            ("raw", value) => bytes_field(1, value.to_string().as_bytes()),
            ("schemaOrBool", Value::Object(_)) => [number_field(1, 1), one(2, value)].concat(),
            ("schemaOrStrings" | "schemaOrSchemas", Value::Array(_)) => one(2, value),
            ("", _) => self.fields(message).flat_map(|field| self.named(field, value)).collect(),
            _ => one(1, value),
        }
    }

    fn named(&self, (number, name, _, kind): (u32, &str, &str, &str), object: &Value) -> Vec<u8> {
        match object.get(name) {
            _ if name.is_empty() => self.field(kind, number, object),
            None | Some(Value::Null) => Vec::new(),
            Some(value) => self.field(kind, number, value),
        }
    }

    fn field(&self, kind: &str, number: u32, value: &Value) -> Vec<u8> {
        if let Some(item) = kind.strip_prefix("[]") {
            return value.as_array().unwrap().iter().flat_map(|value| self.field(item, number, value)).collect();
        }
        if let Some(item) = kind.strip_prefix("{}") {
            let entry = |(key, value): (&String, &Value)| {
                bytes_field(number, &[bytes_field(1, key.as_bytes()), self.field(item, 2, value)].concat())
            };
            return value.as_object().unwrap().iter().flat_map(entry).collect();
        }
        match kind {
            "string" => bytes_field(number, value.as_str().unwrap().as_bytes()),
            "bool" => number_field(number, value.as_bool().unwrap().into()),
            "int32" | "int64" => number_field(number, value.as_i64().unwrap()),
            "double" => [varint(u64::from(number) << 3 | 1), value.as_f64().unwrap().to_le_bytes().to_vec()].concat(),
            "bytes" => bytes_field(number, &BASE64_STANDARD.decode(value.as_str().unwrap()).unwrap()),
            message => bytes_field(number, &self.encode(&message[1..], value)),
        }
    }
}

fn zero(kind: &str) -> Value {
    match kind {
        "string" => json!(""),
        "bool" => json!(false),
        "int32" | "int64" | "double" => json!(0),
        _ => Value::Null,
    }
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(u8::try_from(value & 0x7F).unwrap() | 0x80);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).unwrap());
    bytes
}

fn number_field(number: u32, value: i64) -> Vec<u8> {
    [varint(u64::from(number) << 3), varint(value.cast_unsigned())].concat()
}

/// A field with a length and as many bytes.
pub(crate) fn bytes_field(number: u32, bytes: &[u8]) -> Vec<u8> {
    [varint(u64::from(number) << 3 | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}
