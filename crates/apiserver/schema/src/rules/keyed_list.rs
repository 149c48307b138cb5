//! Lists of `list-type: set` and `map`: their order does not count, and `+` replaces what is there already.

use std::fmt;

use cel::ExecutionError;
use cel::common::traits::{Adder, Container, Indexer, Iterable, Iterator, Sizer, Zeroer};
use cel::common::types::{CelInt, CelString, LIST_TYPE, Type};
use cel::common::value::{CowVal, Val};

/// A list whose items are told apart by some of their fields, or by themselves.
#[derive(Clone)]
pub(super) struct KeyedList<'v> {
    items: Vec<Box<dyn Val + 'v>>,
    /// The fields by which items are told apart; none in a set.
    keys: &'v [String],
}

impl<'v> KeyedList<'v> {
    pub(super) fn new(items: Vec<Box<dyn Val + 'v>>, keys: &'v [String]) -> Self {
        Self { items, keys }
    }

    /// Whether two items are the same one, changed or not.
    fn corresponds(&self, left: &dyn Val, right: &dyn Val) -> bool {
        if self.keys.is_empty() {
            return left.equals(right);
        }
        self.keys.iter().all(|key| match (key_of(left, key), key_of(right, key)) {
            (Some(left), Some(right)) => left.equals(right.as_ref()),
            (left, right) => left.is_none() && right.is_none(),
        })
    }
}

fn key_of<'b, 'v>(item: &'b (dyn Val + 'v), key: &str) -> Option<CowVal<'b, 'v>> {
    item.as_indexer()?.get(&CelString::from(key)).ok()
}

impl fmt::Debug for KeyedList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.items.fmt(f)
    }
}

impl Val for KeyedList<'_> {
    fn get_type(&self) -> &Type {
        &LIST_TYPE
    }

    fn cel_type() -> &'static Type {
        &LIST_TYPE
    }

    fn as_adder<'b, 'w>(&'b self) -> Option<&'b (dyn Adder + 'w)>
    where
        Self: 'w,
    {
        Some(self)
    }

    fn as_container(&self) -> Option<&dyn Container> {
        Some(self)
    }

    fn as_indexer<'b, 'w>(&'b self) -> Option<&'b (dyn Indexer + 'w)>
    where
        Self: 'w,
    {
        Some(self)
    }

    fn as_iterable<'b, 'w>(&'b self) -> Option<&'b (dyn Iterable + 'w)>
    where
        Self: 'w,
    {
        Some(self)
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        Some(self)
    }

    fn as_zeroer(&self) -> Option<&dyn Zeroer> {
        Some(self)
    }

    fn equals(&self, other: &dyn Val) -> bool {
        let Some(iterable) = other.as_iterable() else {
            return false;
        };
        let (mut others, mut count) = (iterable.iter(), 0);
        while let Some(other) = others.next() {
            count += 1;
            let same = self.items.iter().find(|item| self.corresponds(item.as_ref(), other));
            if !same.is_some_and(|item| item.equals(other)) {
                return false;
            }
        }
        count == self.items.len()
    }

    fn clone_as_boxed<'w>(&self) -> Box<dyn Val + 'w>
    where
        Self: 'w,
    {
        Box::new(self.clone())
    }
}

impl Adder for KeyedList<'_> {
    fn add<'b, 'w>(&'b self, other: &(dyn Val + 'w)) -> Result<CowVal<'b, 'w>, ExecutionError>
    where
        Self: 'w,
    {
        let name = other.get_type().name().to_owned();
        let iterable = other
            .as_iterable()
            .ok_or_else(|| ExecutionError::no_such_overload("_+_", vec!["list".to_owned(), name]))?;
        let mut items: Vec<Box<dyn Val + 'w>> = self.items.iter().map(|item| item.clone_as_boxed()).collect();
        let mut others = iterable.iter();
        while let Some(other) = others.next() {
            match items.iter().position(|item| self.corresponds(item.as_ref(), other)) {
                Some(at) => items[at] = other.clone_as_boxed(),
                None => items.push(other.clone_as_boxed()),
            }
        }
        Ok(CowVal::owned(KeyedList::<'w> { items, keys: self.keys }))
    }
}

impl Container for KeyedList<'_> {
    fn contains(&self, value: &dyn Val) -> Result<bool, ExecutionError> {
        Ok(self.items.iter().any(|item| item.equals(value)))
    }
}

impl Indexer for KeyedList<'_> {
    fn get<'b, 'w>(&'b self, index: &dyn Val) -> Result<CowVal<'b, 'w>, ExecutionError>
    where
        Self: 'w,
    {
        let number = index.downcast_ref::<CelInt>().map(|number| *number.inner());
        let number = number.ok_or_else(|| ExecutionError::UnexpectedType {
            got: index.get_type().name().to_owned(),
            want: "int".to_owned(),
        })?;
        let found = usize::try_from(number).ok().and_then(|at| self.items.get(at));
        found.map(|item| CowVal::Borrowed(item.as_ref())).ok_or_else(|| ExecutionError::IndexOutOfBounds(number.into()))
    }

    fn steal<'w>(self: Box<Self>, index: &dyn Val) -> Result<Box<dyn Val + 'w>, ExecutionError>
    where
        Self: 'w,
    {
        self.get(index).map(|found| found.clone_as_boxed())
    }
}

impl Iterable for KeyedList<'_> {
    fn iter<'b, 'w>(&'b self) -> Box<dyn Iterator<'b, 'w> + 'b>
    where
        Self: 'w,
    {
        Box::new(Items(self.items.iter()))
    }
}

struct Items<'b, 'v>(std::slice::Iter<'b, Box<dyn Val + 'v>>);

impl<'b, 'w, 'v: 'w> Iterator<'b, 'w> for Items<'b, 'v> {
    fn next(&mut self) -> Option<&'b (dyn Val + 'w)> {
        self.0.next().map(|item| item.as_ref() as &(dyn Val + 'w))
    }
}

impl Sizer for KeyedList<'_> {
    fn size(&self) -> CelInt {
        CelInt::from(i64::try_from(self.items.len()).unwrap_or(i64::MAX))
    }
}

impl Zeroer for KeyedList<'_> {
    fn is_zero_value(&self) -> bool {
        self.items.is_empty()
    }
}
