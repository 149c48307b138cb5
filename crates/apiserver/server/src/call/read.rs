//! `GET` of one object.

use http::StatusCode;

use super::Call;
use super::list::check_version;
use crate::answer::Answer;
use crate::api;
use crate::negotiate::{ObjectForm, TextFormat};
use crate::status::ApiError;

impl Call {
    pub(super) fn get(&self) -> Result<Answer, ApiError> {
        check_version(self.query.get("resourceVersion"), self.api.store.version())?;
        let key = self.resource.key(&self.target.namespace, &self.target.name);
        let stored =
            self.api.store.get(&key).ok_or_else(|| ApiError::not_found(self.resource.about(&self.target.name)))?;
        if self.accepted.shape == ObjectForm::Object
            && self.accepted.format == TextFormat::Json
            && !self.query.flag("pretty")
        {
            let mut text = Vec::with_capacity(stored.body.tail.len() + 128);
            api::write_shown(&mut text, &self.resource, &stored, Some(&self.resource.type_meta()));
            text.push(b'\n');
            return Ok(Answer::json(StatusCode::OK, text));
        }
        Ok(self.show(StatusCode::OK, &self.api.object(&self.resource, &stored)))
    }
}
