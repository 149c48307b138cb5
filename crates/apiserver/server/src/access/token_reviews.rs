//! `TokenReview`: a token → whose it is.

use portolan_rbac::user;
use serde_json::{Value, json};

use super::account::{Accepted, ISSUER};
use super::administrator;
use super::reviews::user_info;
use crate::call::Call;
use crate::status::ApiError;

impl Call {
    pub(super) fn whose_token(&self, mut review: Value) -> Result<Value, ApiError> {
        let token = review["spec"]["token"].as_str().unwrap_or_default();
        if token.is_empty() {
            return Err(ApiError::bad_request("token is required for TokenReview in authentication"));
        }
        let audiences = review["spec"]["audiences"].as_array().into_iter().flatten();
        let audiences: Vec<String> = audiences.filter_map(Value::as_str).map(str::to_owned).collect();
        let status = match self.accept(token, &audiences) {
            Ok(accepted) => json!({
                "authenticated": true, "user": user_info(&accepted.user), "audiences": accepted.audiences,
            }),
            Err(error) => json!({"user": {}, "error": error}),
        };
        review["status"] = status;
        Ok(review)
    }

    fn accept(&self, token: &str, audiences: &[String]) -> Result<Accepted, String> {
        // Only the first word of what comes after `Bearer` is a token.
        let token = token.split(' ').next().unwrap_or_default();
        if self.api.access.is_own_token(token) {
            let for_us = audiences.is_empty() || audiences.iter().any(|audience| audience == ISSUER);
            let user = administrator().as_ref().clone();
            let accepted = Accepted { user, audiences: vec![ISSUER.to_owned()] };
            return if for_us { Ok(accepted) } else { Err("invalid bearer token".to_owned()) };
        }
        let mut accepted = self.api.accept_token(token, audiences)?;
        accepted.user.join(user::AUTHENTICATED);
        Ok(accepted)
    }
}
