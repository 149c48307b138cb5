//! Service tokens: the secret is persisted before anything else happens.

use http::Method;
use jiff::Timestamp;
use portolan_cloudflare_api::{ApiError, Entry, Op, Request, collections};
use portolan_core::{Problem, reasons as core_reasons, rfc3339, user_text};
use secrecy::SecretString;
use serde_json::{Value, json};

use super::{Fault, StepEffect, StepRun};
use crate::inventory::TokenHeld;
use crate::journal::{Journal, NewCredential};
use crate::token::ServiceToken;

const ROTATE: &str = "/accounts/{account_id}/access/service_tokens/{token_id}/rotate";
const REFRESH: &str = "/accounts/{account_id}/access/service_tokens/{token_id}/refresh";

impl<J: Journal> StepRun<'_, J> {
    pub(super) async fn create_token(
        &mut self,
        name: &str,
        duration: &str,
        rotation: Option<&String>,
    ) -> Result<StepEffect, Fault> {
        let tokens = self.tokens();
        let body = json!({"name": name, "duration": duration});
        let request = collections::SERVICE_TOKENS.create(self.account(), &body);
        let answer = match tokens.make(async || self.client.send(self.lane(), &request).await).await {
            Ok(answer) => answer,
            Err(error) => {
                return Err(self.token_refused(&error, &format!("creating service token {}", user_text(name))).await);
            }
        };
        self.token_created = true;
        self.keep_credential(answer, None, rotation).await
    }

    pub(super) async fn rotate_token(
        &mut self,
        id: &str,
        keep_until: Option<Timestamp>,
        rotation: Option<&String>,
    ) -> Result<StepEffect, Fault> {
        let body = match keep_until {
            Some(end) => json!({"previous_client_secret_expires_at": rfc3339(end)}),
            None => json!({}),
        };
        let request = Request::new(Method::POST, ROTATE, &[self.account(), id]).with_body(body).masked();
        let answer = match self.client.send(self.lane(), &request).await {
            Ok(answer) => answer,
            Err(error) => return Err(self.token_refused(&error, &format!("rotating service token {id}")).await),
        };
        self.keep_credential(answer, Some(id), rotation).await
    }

    /// Nothing goes on before the secret is safe: it is shown only once.
    async fn keep_credential(
        &mut self,
        answer: Value,
        id: Option<&str>,
        rotation: Option<&String>,
    ) -> Result<StepEffect, Fault> {
        let text = |field: &str| answer.get(field).and_then(Value::as_str).map(str::to_owned);
        let known = self.held.token.as_ref().and_then(|token| token.client_id.clone());
        let token_id = text("id").or_else(|| id.map(str::to_owned));
        let (Some(token_id), Some(client_id), Some(secret)) =
            (token_id, text("client_id").or(known), text("client_secret"))
        else {
            self.tokens().invalidate();
            return Err(Problem::transient(
                core_reasons::API_ERROR,
                "the answer does not show the service token's credentials; its secret is renewed",
            )
            .into());
        };
        self.held.token = Some(TokenHeld {
            id: token_id.clone(),
            client_id: Some(client_id.clone()),
            rotation: rotation.cloned(),
            adopted: self.held.token.as_ref().is_some_and(|token| token.adopted),
        });
        self.learn_token(&token_id, answer);
        let new = NewCredential { token_id, client_id, client_secret: SecretString::from(secret) };
        self.journal.credential(new).await?;
        Ok(StepEffect::Planned)
    }

    /// The snapshot keeps what a list would show; a part that the answer leaves out is taken from what was known.
    fn learn_token(&self, id: &str, answer: Value) {
        let known = self.tokens().with(|tokens| tokens.get(id).map(|entry| entry.item.clone()));
        let Some(Entry { item, .. }) = Entry::<ServiceToken>::read(answer) else { return self.tokens().invalidate() };
        let item = match known {
            Some(known) => ServiceToken {
                name: if item.name.is_empty() { known.name } else { item.name },
                client_id: item.client_id.or(known.client_id),
                duration: item.duration.or(known.duration),
                created_at: item.created_at.or(known.created_at),
                expires_at: item.expires_at.or(known.expires_at),
            },
            None => item,
        };
        self.tokens().learn(&Entry { id: id.to_owned(), item });
    }

    /// Without an id it is the one that was made in this run.
    pub(super) async fn update_token(&mut self, id: &str, name: &str, duration: &str) -> Result<StepEffect, Fault> {
        let made = self.held.token.as_ref().map(|token| token.id.clone()).unwrap_or_default();
        let planned = !id.is_empty();
        let id = if planned { id } else { made.as_str() };
        if planned && self.is_named_already(id, name, duration).await? {
            return Ok(StepEffect::Nothing);
        }
        let body = json!({"name": name, "duration": duration});
        let op = Op::Update { id: id.to_owned(), body };
        match self.tokens().write(self.lane(), vec![op]).await {
            Ok(_) => Ok(StepEffect::Planned),
            Err(error) => Err(self.fault(&error, &format!("changing service token {name}"))),
        }
    }

    /// Whether a token that its plan saw under another name has the wanted one by now: the worker that made it may have given
    /// it its name since, which a listing for another task may show already, or only the token itself.
    async fn is_named_already(&self, id: &str, name: &str, duration: &str) -> Result<bool, Fault> {
        let is_one = |entry: &Entry<ServiceToken>| entry.item.name == name && entry.item.has_duration(duration);
        let is_known = || self.tokens().with(|tokens| tokens.get(id).is_some_and(is_one));
        // What is known to have the name needs another duration only: nobody else gives it that.
        if is_known() || self.tokens().with(|tokens| tokens.get(id).is_none_or(|entry| entry.item.name == name)) {
            return Ok(is_known());
        }
        let read = self.client.send(self.lane(), &collections::SERVICE_TOKENS.get(self.account(), id)).await;
        let answer = read.map_err(|error| self.fault(&error, &format!("looking at service token {name}")))?;
        self.learn_token(id, answer);
        Ok(is_known())
    }

    pub(super) async fn refresh_token(&mut self, id: &str) -> Result<StepEffect, Fault> {
        let request = Request::new(Method::POST, REFRESH, &[self.account(), id]).masked();
        match self.client.send(self.lane(), &request).await {
            Ok(answer) => {
                self.learn_token(id, answer);
                Ok(StepEffect::Planned)
            }
            Err(error) => Err(self.token_refused(&error, &format!("renewing service token {id}")).await),
        }
    }

    pub(super) async fn delete_token(&mut self, id: &str) -> Result<StepEffect, Fault> {
        match self.tokens().write(self.lane(), vec![Op::delete(id)]).await {
            Ok(_) => {
                self.held.token = None;
                Ok(StepEffect::Planned)
            }
            Err(error) => Err(self.fault(&error, &format!("deleting service token {id}"))),
        }
    }

    /// After a refusal nobody knows which tokens there are.
    async fn token_refused(&self, error: &ApiError, doing: &str) -> Fault {
        let tokens = self.tokens();
        tokens.invalidate();
        self.fault_of_post(error, doing).await
    }
}
