//! Making an object, patiently: never twice, and never given up because of one bad answer.

use portolan_core::{Entry, Item};
use serde_json::Value;

use super::CollectionHandle;
use crate::budget::governor::Lane;
use crate::cache::snapshot::Snapshot;
use crate::cache::snapshot_store::Freshness;
use crate::call::error::{ApiError, Effect, ErrorClass};
use crate::item::{Op, Written};

/// What became of [`CollectionHandle::create`].
#[derive(Clone, Debug, PartialEq)]
pub enum Created<T> {
    /// Made by this call.
    Made(Entry<T>),
    /// It is there after all: made by a call whose answer was lost, or by somebody else.
    Found(Entry<T>),
}

impl<T> Created<T> {
    /// The object.
    pub fn entry(&self) -> &Entry<T> {
        match self {
            Self::Made(entry) | Self::Found(entry) => entry,
        }
    }
}

impl<T: Item> CollectionHandle<T> {
    /// Makes an object, patiently. A failure that may pass is waited out by the client's policy; before anything is sent
    /// again, and after a refusal because of a duplicate, the collection is listed and `find` looks whether the object is
    /// there. So a server error on the way costs neither the task nor a second object.
    pub async fn create(
        &self,
        lane: Lane,
        body: Value,
        find: impl Fn(&Snapshot<T>) -> Option<Entry<T>>,
    ) -> Result<Created<T>, ApiError> {
        let mut attempt = 0;
        loop {
            let error = match self.write(lane, vec![Op::Create(body.clone())]).await {
                Ok(written) => return made(written),
                Err(error) => error,
            };
            let duplicate = error.class == ErrorClass::Conflict;
            if !duplicate && !self.shared.sender.again(self.retry, &error, attempt).await {
                return Err(error);
            }
            self.refresh(lane, Freshness::Any).await?;
            match self.with(&find) {
                Some(entry) => return Ok(Created::Found(entry)),
                None if duplicate => return Err(error),
                None => attempt += 1,
            }
        }
    }
}

fn made<T>(written: Vec<Written<T>>) -> Result<Created<T>, ApiError> {
    match written.into_iter().next() {
        Some(Written::Stored(entry)) => Ok(Created::Made(entry)),
        _ => Err(ApiError::transient("the answer to a create does not show the object", Effect::Unknown)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::call::retry::RetryPolicy;
    use crate::settings::Settings;
    use crate::testing::{ROUTES, Scripted, TestRecord, answer, bad, clients, good, record};

    const LATENCY: Duration = Duration::from_millis(150);

    /// A collection without batches whose creates fail as the script says.
    fn routes_of(posts: &'static [(bool, u16)]) -> (Arc<Scripted>, Arc<CollectionHandle<TestRecord>>) {
        let mut there: Vec<Value> = Vec::new();
        let mut posts = posts.iter();
        let scripted = Scripted::new(LATENCY, move |seen| {
            if seen.line.starts_with("GET") {
                return answer(200, &json!({"success": true, "result": there, "result_info": {"total_pages": 1}}));
            }
            let (applied, status) = posts.next().copied().unwrap_or((true, 200));
            if applied {
                there.push(record("r1", seen.body["name"].as_str().unwrap(), ""));
            }
            if status == 200 { good(there[0].clone()) } else { bad(status, 1) }
        });
        let clients = clients(Settings::default(), scripted.clone());
        let client = clients.with_retry(RetryPolicy::PATIENT).client(&crate::Credential::token("t"));
        (scripted, client.records(&ROUTES, "acc"))
    }

    async fn created(remote: &CollectionHandle<TestRecord>) -> Result<Created<TestRecord>, ApiError> {
        let find = |snapshot: &Snapshot<TestRecord>| snapshot.by_key("A x").next().cloned();
        remote.create(Lane::Change, json!({"name": "x"}), find).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_create_that_fails_twice_succeeds_after_a_look_each_time() {
        let (scripted, remote) = routes_of(&[(false, 500), (false, 503)]);

        assert!(matches!(created(&remote).await, Ok(Created::Made(_))));

        let seen = scripted.seen();
        let methods: Vec<_> = seen.iter().map(|seen| seen.line.split(' ').next().unwrap()).collect();
        assert_eq!(methods, ["POST", "GET", "POST", "GET", "POST"]);
        assert!(seen[1].at >= Duration::from_secs(5) && seen[3].at >= Duration::from_secs(15));
    }

    #[tokio::test(start_paused = true)]
    async fn a_create_whose_answer_was_lost_is_found_and_not_sent_again() {
        let (scripted, remote) = routes_of(&[(true, 502)]);

        assert!(matches!(created(&remote).await, Ok(Created::Found(entry)) if entry.id == "r1"));

        assert_eq!(scripted.seen().len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn a_duplicate_is_looked_up_at_once() {
        let (scripted, remote) = routes_of(&[(true, 409)]);

        assert!(matches!(created(&remote).await, Ok(Created::Found(_))));

        assert_eq!(scripted.seen()[1].at, LATENCY);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_create_is_sent_once() {
        let (scripted, remote) = routes_of(&[(false, 400)]);

        let error = created(&remote).await.unwrap_err();

        assert_eq!((error.class, scripted.seen().len()), (ErrorClass::Validation, 1));
    }
}
