//! What a written object gets, or is refused for, between its owners and its checks.

use serde_json::Value;

use super::Call;
use crate::classes;
use crate::status::ApiError;

impl Call {
    /// Adds what admission adds to a new object.
    pub(super) fn admit_create(&self, object: &mut Value) -> Result<(), ApiError> {
        classes::admit_create(&self.api, &self.resource, object)?;
        self.resource.admit_create(object);
        if self.resource.is("", "pods") {
            self.place_by_node(object);
        }
        Ok(())
    }

    /// Adds what admission adds to a changed object. Subresources are left alone by the classes.
    pub(super) fn admit_update(&self, new: &mut Value, live: &Value) -> Result<(), ApiError> {
        if self.target.subresource.is_empty() {
            classes::admit_update(&self.api, &self.resource, new)?;
        }
        self.resource.admit_update(new, live);
        Ok(())
    }
}
