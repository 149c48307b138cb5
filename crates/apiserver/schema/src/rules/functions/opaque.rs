//! Values that CEL only passes on: they can be compared for equality and given to functions.

/// Makes a Rust type a CEL type of that name.
macro_rules! opaque {
    ($type:ty, $static_name:ident, $name:literal) => {
        static $static_name: cel::common::types::Type = cel::common::types::Type::new_unspecified_type($name);

        impl cel::common::value::Val for $type {
            fn get_type(&self) -> &cel::common::types::Type {
                &$static_name
            }

            fn cel_type() -> &'static cel::common::types::Type {
                &$static_name
            }

            fn equals(&self, other: &dyn cel::common::value::Val) -> bool {
                other.downcast_ref::<$type>().is_some_and(|other| other == self)
            }

            fn clone_as_boxed<'v>(&self) -> Box<dyn cel::common::value::Val + 'v> {
                Box::new(self.clone())
            }

            fn as_any(&self) -> Option<&dyn std::any::Any> {
                Some(self)
            }
        }

        impl cel::common::value::StaticVal for $type {}
    };
}

pub(super) use opaque;
