//! Who the operator is in the cluster, and what it may do there: the accounts, roles and bindings of the chart.
//!
//! A world's controllers never act as administrators. What they are refused is kept, and a world that ends with a refusal
//! that nobody looked at fails its test: a right is missing in the chart, or a controller asks for what it should not.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Either, Full};
use portolan_core::job::JobRole;
use portolan_install::values::{Crds, ProcessMode};
use portolan_install::{Release, Values, objects};
use serde_json::{Value, json};
use tower::{BoxError, Layer, Service};

use crate::cluster::Cluster;
use crate::job::WorldJob;
use crate::process::OperatorProcess;

/// A role that requests of a world's operator are made in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RoleIdentity {
    /// The name of a `ServiceAccount`, as the API server has it.
    pub(crate) user: String,
    /// The groups of every `ServiceAccount` of its namespace.
    pub(crate) groups: Vec<String>,
}

/// What an installation is called: worlds of other jobs and modes may have been on the same server.
fn full_name(job: &WorldJob, apart: bool) -> String {
    let name = job.definition.sheet.name;
    format!("portolan-{name}-{}", if apart { "roles" } else { "single" })
}

impl WorldJob {
    /// Everything that a chart installs to give rights, for an operator in one process or in several.
    pub fn accounts(&self, apart: bool) -> &[Value] {
        self.once.accounts[usize::from(apart)].get_or_init(|| accounts(self, apart))
    }

    /// The user that a process of the operator is for the API server.
    pub fn user_of(&self, process: OperatorProcess) -> String {
        identity(self, process).user
    }

    /// Whether a process has rights of its own, as one of several.
    pub fn is_part(&self, process: OperatorProcess) -> bool {
        self.definition.sheet.roles.first().is_some_and(|whole| whole.name != process.role)
    }
}

fn accounts(job: &WorldJob, apart: bool) -> Vec<Value> {
    let sheet = &job.definition.sheet;
    let mut values = Values {
        fullname_override: full_name(job, apart),
        crds: Crds { install: false, keep: false },
        controllers: vec![sheet.name.to_owned()],
        ..Values::default()
    };
    values.operator.mode = if apart { ProcessMode::Roles } else { ProcessMode::Single };
    let release =
        Release { name: "world".to_owned(), namespace: job.operator_namespace().to_owned(), version: "0".to_owned() };
    let all = objects(&values, &release, &[sheet]).expect("the world's values are valid");
    let gives_rights = |one: &Value| {
        let kind = one["kind"].as_str().unwrap_or_default();
        kind == "ServiceAccount" || kind.ends_with("Role") || kind.ends_with("RoleBinding")
    };
    all.into_iter().filter(gives_rights).collect()
}

/// Installs the accounts of an operator of one process or several, and waits until the server knows them.
pub(crate) async fn install(cluster: &Cluster, job: &WorldJob, apart: bool) {
    let accounts = job.accounts(apart);
    for object in accounts {
        cluster.apply(object).await;
    }
    for role in accounts.iter().filter(|one| one["kind"].as_str().is_some_and(|kind| kind.ends_with("Role"))) {
        until_granted(cluster, job, role).await;
    }
}

/// A real server learns of roles and bindings by watching them.
async fn until_granted(cluster: &Cluster, job: &WorldJob, role: &Value) {
    let name = role["metadata"]["name"].as_str().unwrap_or_default();
    let user = account(job, name).user;
    let rule = &role["rules"][0];
    let question = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "metadata": {},
        "spec": { "user": user, "resourceAttributes": {
            "group": rule["apiGroups"][0], "resource": rule["resources"][0], "verb": rule["verbs"][0],
            "name": rule["resourceNames"][0], "namespace": role["metadata"]["namespace"],
        } },
    });
    let request = || {
        let body = question.to_string().into_bytes();
        let request = Request::post("/apis/authorization.k8s.io/v1/subjectaccessreviews");
        request.header("content-type", "application/json").body(body).expect("the question is complete")
    };
    while cluster.client().request::<Value>(request()).await.expect("the cluster answers")["status"]["allowed"] != true
    {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

fn account(job: &WorldJob, name: &str) -> RoleIdentity {
    let namespace = job.operator_namespace();
    RoleIdentity {
        user: format!("system:serviceaccount:{namespace}:{name}"),
        groups: vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")],
    }
}

/// The account that a process of the operator runs with.
pub(crate) fn identity(job: &WorldJob, process: OperatorProcess) -> RoleIdentity {
    let name = full_name(job, job.is_part(process));
    match job.definition.sheet.role(process.role).map(|role| role.component) {
        Some(component) if component != JobRole::OPERATOR => account(job, &format!("{name}-{component}")),
        _ => account(job, &name),
    }
}

/// What the operator was refused for want of a right. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Refusals {
    all: Arc<Mutex<Vec<String>>>,
}

impl Refusals {
    /// All since the last time.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.all())
    }

    fn note(&self, request: &str, answer: &[u8]) {
        let status: Value = serde_json::from_slice(answer).unwrap_or_default();
        let causes = status["details"]["causes"].as_array().into_iter().flatten();
        // The same code says that nothing can be made in a namespace that is going, which no right changes.
        if !causes.into_iter().any(|cause| cause["reason"] == "NamespaceTerminating") {
            self.all().push(format!("{request}: {}", status["message"].as_str().unwrap_or_default()));
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<String>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S> Layer<S> for Refusals {
    type Service = Noted<S>;

    fn layer(&self, inner: S) -> Noted<S> {
        Noted { inner, refusals: self.clone() }
    }
}

/// A cluster whose refusals are kept.
#[derive(Clone)]
pub(crate) struct Noted<S> {
    inner: S,
    refusals: Refusals,
}

impl<S, B, A> Service<Request<B>> for Noted<S>
where
    S: Service<Request<B>, Response = Response<A>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    A: http_body::Body<Data = Bytes> + Send + 'static,
    A::Error: Into<BoxError>,
{
    type Response = Response<Either<A, Full<Bytes>>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let (refusals, text) = (self.refusals.clone(), format!("{} {}", request.method(), request.uri().path()));
        let call = self.inner.call(request);
        Box::pin(async move {
            let (parts, body) = call.await.map_err(Into::into)?.into_parts();
            if parts.status != StatusCode::FORBIDDEN {
                return Ok(Response::from_parts(parts, Either::Left(body)));
            }
            let body = body.collect().await.map_err(Into::into)?.to_bytes();
            refusals.note(&text, &body);
            Ok(Response::from_parts(parts, Either::Right(Full::new(body))))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_kept_and_a_namespace_that_is_going_is_none() {
        let refusals = Refusals::default();

        refusals.note("POST /events", br#"{"details":{"causes":[{"reason":"NamespaceTerminating"}]}}"#);
        refusals.note("GET /secrets", br#"{"message":"secrets is forbidden: User \"x\" cannot list"}"#);

        assert_eq!(refusals.take(), [r#"GET /secrets: secrets is forbidden: User "x" cannot list"#]);
        assert!(refusals.take().is_empty());
    }
}
