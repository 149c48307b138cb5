//! Sources' operations → one batch body, and its answer or refusal → what became of each. Pure.

use serde_json::{Map, Value, json};

use crate::call::error::ApiError;
use crate::item::Op;

/// The lists of a batch, in the order in which the API applies them.
const LISTS: [&str; 3] = ["deletes", "patches", "posts"];

/// Where an operation stands in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spot {
    list: &'static str,
    index: usize,
}

/// A batch body and where each operation stands in it.
#[derive(Debug)]
pub(crate) struct Assembled {
    pub(crate) body: Value,
    spots: Vec<Spot>,
}

/// Puts operations together.
pub(crate) fn assemble<'a>(ops: impl Iterator<Item = &'a Op>) -> Assembled {
    portolan_core::waypoint!();
    let mut body = Map::new();
    let mut spots = Vec::new();
    for op in ops {
        let (list, value) = entry(op);
        let values = body.entry(list).or_insert_with(|| json!([])).as_array_mut().expect("only lists are put in");
        spots.push(Spot { list, index: values.len() });
        values.push(value);
    }
    Assembled { body: Value::Object(body), spots }
}

fn entry(op: &Op) -> (&'static str, Value) {
    match op {
        Op::Delete { id, .. } => (LISTS[0], json!({"id": id})),
        Op::Update { id, body } => (LISTS[1], with_id(id, body)),
        Op::Create(body) => (LISTS[2], body.clone()),
    }
}

fn with_id(id: &str, body: &Value) -> Value {
    let mut body = body.clone();
    if let Value::Object(fields) = &mut body {
        fields.insert("id".to_owned(), Value::from(id));
    }
    body
}

impl Assembled {
    /// The part of the answer for each operation, in the order in which they were put in; null where the answer has none.
    /// Objects that existed are found by their id, new ones by their place.
    pub(crate) fn take_apart(&self, mut result: Value) -> Vec<Value> {
        let complete = |list: &str| {
            let asked = self.spots.iter().filter(|spot| spot.list == list).count();
            result[list].as_array().is_some_and(|answers| answers.len() == asked)
        };
        let usable: Vec<&str> = LISTS.into_iter().filter(|list| complete(list)).collect();
        let answer = |spot: &Spot| {
            if usable.contains(&spot.list) { self.answer(spot, &mut result) } else { Value::Null }
        };
        self.spots.iter().map(answer).collect()
    }

    fn answer(&self, spot: &Spot, result: &mut Value) -> Value {
        let id = self.body[spot.list][spot.index].get("id").filter(|_| spot.list != "posts");
        let answers = result[spot.list].as_array_mut().expect("complete lists only");
        match answers.get(spot.index) {
            Some(there) if id.is_none() || there.get("id") == id => answers[spot.index].take(),
            _ => answers.iter_mut().find(|answer| answer.get("id") == id).map(Value::take).unwrap_or_default(),
        }
    }

    /// Which operations a refusal blames, by pointers such as `/posts/3/content`, `posts.3` or `#/posts[3]`.
    pub(crate) fn blamed(&self, error: &ApiError) -> Vec<usize> {
        let named: Vec<Spot> = error.pointers.iter().filter_map(|pointer| spot(pointer)).collect();
        let blamed = self.spots.iter().enumerate().filter(|(_, spot)| named.contains(spot));
        blamed.map(|(index, _)| index).collect()
    }
}

fn spot(pointer: &str) -> Option<Spot> {
    let mut parts = pointer.split(['/', '.', '[', ']', '#']).filter(|part| !part.is_empty());
    let list = parts.find_map(|part| LISTS.into_iter().find(|list| *list == part))?;
    Some(Spot { list, index: parts.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::error::Effect;

    fn ops() -> Vec<Op> {
        vec![
            Op::Create(json!({"name": "a"})),
            Op::delete("1"),
            Op::Update { id: "2".to_owned(), body: json!({"ttl": 60}) },
            Op::Create(json!({"name": "b"})),
        ]
    }

    #[test]
    fn a_batch_holds_each_operation_in_its_list() {
        assert_eq!(
            assemble(ops().iter()).body,
            json!({
                "deletes": [{"id": "1"}],
                "patches": [{"id": "2", "ttl": 60}],
                "posts": [{"name": "a"}, {"name": "b"}],
            })
        );
    }

    #[test]
    fn each_operation_finds_its_answer() {
        let result = json!({"deletes": [{"id": "1"}], "patches": [{"id": "2"}],
            "posts": [{"id": "8"}, {"id": "9"}]});

        let answers = assemble(ops().iter()).take_apart(result);

        let ids: Vec<_> = answers.iter().map(|answer| answer["id"].as_str().unwrap()).collect();
        assert_eq!(ids, ["8", "1", "2", "9"]);
    }

    #[test]
    fn changed_objects_are_found_by_id_in_any_order() {
        let ops = [2, 1].map(|id| Op::Update { id: id.to_string(), body: json!({}) });

        let answers = assemble(ops.iter()).take_apart(json!({"patches": [{"id": "1", "n": 1}, {"id": "2", "n": 2}]}));

        assert_eq!(answers, [json!({"id": "2", "n": 2}), json!({"id": "1", "n": 1})]);
    }

    #[test]
    fn a_list_that_is_not_complete_answers_nothing() {
        let answers = assemble(ops().iter()).take_apart(json!({"posts": [{"id": "8"}]}));

        assert!(answers.iter().all(Value::is_null));
    }

    #[test]
    fn a_pointer_names_the_operation() {
        let batch = assemble(ops().iter());
        let blamed = |pointer: &str| {
            batch.blamed(&ApiError { pointers: vec![pointer.to_owned()], ..ApiError::transient("x", Effect::None) })
        };

        assert_eq!(blamed("/posts/1/content"), [3]);
        assert_eq!(blamed("posts[0]"), [0]);
        assert_eq!(blamed("#/deletes/0"), [1]);
        assert!(blamed("/posts/7").is_empty());
        assert!(blamed("/name").is_empty());
    }
}
