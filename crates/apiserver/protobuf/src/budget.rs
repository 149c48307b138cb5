//! How much one body may cost: two bytes can stand for an object with many fields.

use crate::error::ProtobufError;

/// Messages within messages; the JSON reader has the same limit.
const MOST_LEVELS: usize = 128;
/// Values of one object. A body that is not made to hurt stays far below.
const MOST_VALUES: usize = 500_000;

/// What is left.
#[derive(Debug)]
pub(crate) struct Budget {
    levels: usize,
    values: usize,
}

impl Budget {
    pub(crate) fn new() -> Self {
        Self { levels: MOST_LEVELS, values: MOST_VALUES }
    }

    /// Pays for a value.
    pub(crate) fn pay(&mut self) -> Result<(), ProtobufError> {
        self.values = self.values.checked_sub(1).ok_or(ProtobufError::Size)?;
        Ok(())
    }

    /// Goes a level down for as long as `work` takes.
    pub(crate) fn below<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, ProtobufError>,
    ) -> Result<T, ProtobufError> {
        self.pay()?;
        self.levels = self.levels.checked_sub(1).ok_or(ProtobufError::Depth)?;
        let result = work(self);
        self.levels += 1;
        result
    }
}
