//! A live list that is changed in place.
//!
//! The real server removes and appends within the list that it later takes the live order from: an item that comes
//! where another went counts as live. These slots keep that.

use serde_json::Value;

/// A list and what its first slots hold by now.
#[derive(Clone, Debug)]
pub(crate) struct Slots {
    values: Vec<Value>,
    length: usize,
    first_length: usize,
}

impl Slots {
    pub(crate) fn new(list: Vec<Value>) -> Self {
        Self { length: list.len(), first_length: list.len(), values: list }
    }

    /// The list as it is now.
    pub(crate) fn items(&self) -> &[Value] {
        &self.values[..self.length]
    }

    /// As many slots as the list had at first.
    pub(crate) fn first_slots(&self) -> &[Value] {
        &self.values[..self.first_length]
    }

    /// The item there, to be changed.
    pub(crate) fn item_mut(&mut self, at: usize) -> &mut Value {
        &mut self.values[at]
    }

    /// Removes an item; those behind it move up, and the last slot keeps what it held.
    pub(crate) fn remove(&mut self, at: usize) {
        for index in at..self.length - 1 {
            self.values[index] = self.values[index + 1].clone();
        }
        self.length -= 1;
    }

    /// Appends an item, in the place of one that went where there is such a place.
    pub(crate) fn push(&mut self, item: Value) {
        if self.length < self.values.len() {
            self.values[self.length] = item;
        } else {
            self.values.push(item);
        }
        self.length += 1;
    }
}
