//! What a process has for its jobs: connections and settings, each found by its type.

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// One value of each type. Neither the process nor the engine knows which of them a job looks for.
#[derive(Clone, Default)]
pub struct Provisions(BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>);

impl Provisions {
    /// Puts a value in, in the place of another one of its type.
    pub fn put<T: Any + Send + Sync>(&mut self, value: T) {
        self.0.insert(TypeId::of::<T>(), Arc::new(value));
    }

    /// The same with a value.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(mut self, value: T) -> Self {
        self.put(value);
        self
    }

    /// The value of a type.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }

    /// Settings: those that are there, else the usual ones.
    pub fn settings<T: Any + Send + Sync + Clone + Default>(&self) -> T {
        self.get().cloned().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq)]
    struct Pace(u32);

    #[test]
    fn a_value_is_found_by_its_type_and_the_last_one_counts() {
        let provisions = Provisions::default().with("a line").with(Pace(1)).with(Pace(2));

        assert_eq!((provisions.get(), provisions.get::<&str>()), (Some(&Pace(2)), Some(&"a line")));
    }

    #[test]
    fn settings_that_nobody_gave_are_the_usual_ones() {
        assert_eq!(Provisions::default().settings::<Pace>(), Pace(0));
        assert_eq!(Provisions::default().with(Pace(3)).settings::<Pace>(), Pace(3));
    }
}
