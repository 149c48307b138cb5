//! Kubeconfig → a server to talk to: plain requests with their answers, and watches as a stream of JSON events.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use futures::{AsyncBufReadExt, Stream, TryStreamExt};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use tower::limit::ConcurrencyLimitLayer;

use crate::failure::{Failure, Outcome};

/// Where the kubeconfig is looked for last: beside the data of `portolan apiserver`.
pub(crate) const LOCAL_KUBECONFIG: &str = ".portolan/kubeconfig";
/// An answer (not a watch) that takes longer than this is given up.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);
/// Requests that wait for their answer at once.
const REQUESTS_AT_ONCE: usize = 32;

/// Which server to talk to.
#[derive(Args, Clone, Debug)]
pub(crate) struct ConnectArgs {
    /// Kubeconfig of the server. Without it: $KUBECONFIG, else .portolan/kubeconfig
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// Context of the kubeconfig, where not its current one
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

/// A server that answers Kubernetes requests.
#[derive(Clone)]
pub(crate) struct Server {
    client: kube::Client,
    address: String,
    origin: String,
}

/// One request, as a value.
pub(crate) struct ServerRequest<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) accept: &'a str,
    pub(crate) content_type: &'a str,
    pub(crate) body: Vec<u8>,
}

/// A successful answer.
pub(crate) struct ServerReply {
    pub(crate) status: StatusCode,
    pub(crate) body: Value,
}

/// Why there is no successful answer.
#[derive(Debug)]
pub(crate) enum CallError {
    /// The server understood and refused, with a `Status`.
    Refused { code: u16, reason: String, message: String },
    /// No answer came, or none that can be read.
    Failed(Failure),
}

impl<'a> ServerRequest<'a> {
    /// A read of `path`.
    pub(crate) fn get(path: &'a str) -> Self {
        let json = "application/json";
        Self { method: Method::GET, path, accept: json, content_type: json, body: Vec::new() }
    }

    fn into_request(self) -> Outcome<Request<Vec<u8>>> {
        Request::builder()
            .method(self.method)
            .uri(self.path)
            .header(ACCEPT, self.accept)
            .header(CONTENT_TYPE, self.content_type)
            .body(self.body)
            .map_err(|error| {
                Failure::new(format!("{:?} is no request path: {error}", self.path))
                    .next("check the names given on the command line")
            })
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Failed(failure) => failure,
            CallError::Refused { code, reason, message } => {
                let next = advice(code, &reason, &message);
                let failure = Self::new(message);
                match next {
                    Some(next) => failure.next(next),
                    None => failure,
                }
            }
        }
    }
}

/// What to do about a refusal, where its code says so.
fn advice(code: u16, reason: &str, message: &str) -> Option<&'static str> {
    match (code, reason) {
        (401, _) => Some("the token is not this server's; use the kubeconfig in its data directory"),
        (404, _) => Some("check the name and the namespace (-n NAMESPACE, or -A for all with `get`)"),
        (409, "Conflict") if message.contains("has been modified") => Some(
            "take metadata.resourceVersion out of the file, which is that of an older state, or fetch the object anew",
        ),
        (409, "Conflict") => Some("another manager owns these fields; --force-conflicts takes them over with `apply`"),
        (422, _) => Some("correct the fields named above and apply again"),
        (429, _) => Some("the server is busy; try again shortly"),
        _ => None,
    }
}

/// A client that opens few connections however many requests wait: each costs tens of kilobytes here, and more on the
/// server. A watch counts only until it is answered.
fn frugal_client(config: kube::Config) -> Result<kube::Client, kube::Error> {
    let limit = ConcurrencyLimitLayer::new(REQUESTS_AT_ONCE);
    Ok(kube::client::ClientBuilder::try_from(config)?.with_layer(&limit).build())
}

impl Server {
    /// Reads the kubeconfig and prepares a client. No request is sent yet.
    pub(crate) async fn connect(args: &ConnectArgs) -> Outcome<Self> {
        let (kubeconfig, origin) = read_kubeconfig(args)?;
        let options = KubeConfigOptions { context: args.context.clone(), ..KubeConfigOptions::default() };
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(|error| {
            Failure::new(format!("kubeconfig {origin} cannot be used: {}", chain(&error)))
                .next("check its current-context, or name one with --context")
        })?;
        let address = config.cluster_url.to_string();
        let client = frugal_client(config)
            .map_err(|error| Failure::new(format!("kubeconfig {origin} cannot be used: {}", chain(&error))))?;
        Ok(Self { client, address, origin })
    }

    /// As [`connect`](Self::connect), and inside a cluster that cluster's own server before the local kubeconfig.
    pub(crate) async fn connect_anywhere(args: &ConnectArgs) -> Outcome<Self> {
        let named = args.kubeconfig.is_some() || std::env::var_os("KUBECONFIG").is_some_and(|value| !value.is_empty());
        if named || !is_in_cluster() {
            return Self::connect(args).await;
        }
        let config = kube::Config::incluster().map_err(|error| {
            Failure::new(format!("this looks like a pod, but its cluster cannot be used: {}", chain(&error)))
                .next("mount the pod's service account, or name a kubeconfig with --kubeconfig")
        })?;
        let address = config.cluster_url.to_string();
        let client = frugal_client(config)
            .map_err(|error| Failure::new(format!("the pod's cluster cannot be used: {}", chain(&error))))?;
        Ok(Self { client, address, origin: "of this pod".to_owned() })
    }

    /// A server that is already connected, as the embedded one in this process.
    pub(crate) fn of_client(client: kube::Client, address: impl Into<String>) -> Self {
        Self { client, address: address.into(), origin: "none".to_owned() }
    }

    /// The client for typed requests.
    pub(crate) fn client(&self) -> &kube::Client {
        &self.client
    }

    /// The server's URL.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Where its address was found.
    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// The namespace of the kubeconfig's context, `default` where it names none.
    pub(crate) fn default_namespace(&self) -> &str {
        self.client.default_namespace()
    }

    /// Sends one request. Warnings of the server go to standard error.
    pub(crate) async fn call(&self, call: ServerRequest<'_>) -> Result<ServerReply, CallError> {
        let request = call.into_request().map_err(CallError::Failed)?;
        tokio::time::timeout(ANSWER_TIMEOUT, self.exchange(request)).await.unwrap_or_else(|_| {
            Err(CallError::Failed(
                Failure::new(format!("{} gave no answer for {} s", self.address, ANSWER_TIMEOUT.as_secs()))
                    .next("look at the server's log, then try again"),
            ))
        })
    }

    async fn exchange(&self, request: Request<Vec<u8>>) -> Result<ServerReply, CallError> {
        let response = self.client.send(request.map(Into::into)).await.map_err(|error| self.unreachable(&error))?;
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.map_err(|error| self.unreachable(&error))?.to_bytes();
        print_warnings(&parts.headers);
        if parts.status.is_success() {
            let body = serde_json::from_slice(&bytes)
                .map_err(|error| CallError::Failed(Failure::new(format!("the answer is not JSON: {error}"))))?;
            return Ok(ServerReply { status: parts.status, body });
        }
        Err(refusal(parts.status, &bytes))
    }

    /// The object at `path`, or nothing where there is none.
    pub(crate) async fn find(&self, path: &str) -> Outcome<Option<Value>> {
        match self.call(ServerRequest::get(path)).await {
            Ok(answer) => Ok(Some(answer.body)),
            Err(CallError::Refused { code: 404, .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Makes a namespace unless it is there.
    pub(crate) async fn make_namespace(&self, name: &str) -> Outcome {
        let collection = "/api/v1/namespaces";
        if self.find(&format!("{collection}/{}", crate::kinds::segment(name))).await?.is_some() {
            return Ok(());
        }
        let object = serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let call = ServerRequest {
            method: Method::POST,
            body: object.to_string().into_bytes(),
            ..ServerRequest::get(collection)
        };
        self.call(call).await?;
        Ok(())
    }

    /// A watch: its events as they come, until the server ends it.
    pub(crate) async fn watch(
        &self,
        path: &str,
        accept: &str,
    ) -> Outcome<impl Stream<Item = Outcome<Value>> + Unpin + use<>> {
        let request = ServerRequest { accept, ..ServerRequest::get(path) }.into_request()?;
        let lines = self.client.request_stream(request).await.map_err(|error| match error {
            kube::Error::Api(status) => {
                Failure::from(CallError::Refused { code: status.code, reason: status.reason, message: status.message })
            }
            error => self.unreachable(&error).into(),
        })?;
        let broken = |error: std::io::Error| {
            Failure::new(format!("the watch broke off: {error}"))
                .next("the server stopped, or the network did; start again")
        };
        Ok(Box::pin(lines.lines().map_err(broken).and_then(|line| async move {
            serde_json::from_str(&line).map_err(|error| Failure::new(format!("a watch event is not JSON: {error}")))
        })))
    }

    /// The sentence for a server that cannot be reached.
    fn unreachable(&self, error: &(dyn std::error::Error + 'static)) -> CallError {
        CallError::Failed(
            Failure::new(format!("no answer from {} (kubeconfig {}): {}", self.address, self.origin, chain(error)))
                .next(
                    "start the server with `portolan apiserver` or `portolan up`, or name another one with --kubeconfig or KUBECONFIG",
                ),
        )
    }
}

/// Whether this process runs in a pod.
pub(crate) fn is_in_cluster() -> bool {
    std::env::var_os("KUBERNETES_SERVICE_HOST").is_some_and(|value| !value.is_empty())
}

fn read_kubeconfig(args: &ConnectArgs) -> Outcome<(Kubeconfig, String)> {
    if let Some(path) = &args.kubeconfig {
        return read_file(path);
    }
    let from_environment = Kubeconfig::from_env().map_err(|error| {
        Failure::new(format!("KUBECONFIG cannot be read: {}", chain(&error))).next("correct or unset KUBECONFIG")
    })?;
    if let Some(kubeconfig) = from_environment {
        return Ok((kubeconfig, "$KUBECONFIG".to_owned()));
    }
    let local = Path::new(LOCAL_KUBECONFIG);
    if local.exists() {
        return read_file(local);
    }
    Err(Failure::new(format!("no server to talk to: there is no {LOCAL_KUBECONFIG} here and KUBECONFIG is not set"))
        .next("start one with `portolan up` or `portolan apiserver` in this folder, or name another one with --kubeconfig"))
}

fn read_file(path: &Path) -> Outcome<(Kubeconfig, String)> {
    let shown = path.display();
    let kubeconfig = Kubeconfig::read_from(path).map_err(|error| {
        Failure::new(format!("kubeconfig {shown} cannot be read: {}", chain(&error)))
            .next("give the path of a kubeconfig; `portolan apiserver` writes one into its data directory")
    })?;
    Ok((kubeconfig, shown.to_string()))
}

/// An error and its causes, each said once.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

fn print_warnings(headers: &HeaderMap) {
    for value in headers.get_all("warning") {
        if let Some(text) = value.to_str().ok().and_then(warning_text) {
            eprintln!("Warning: {text}");
        }
    }
}

/// The quoted text of a warning header: `299 - "unknown field \"a\""`.
fn warning_text(header: &str) -> Option<String> {
    let (_, quoted) = header.split_once('"')?;
    let text = quoted.strip_suffix('"').unwrap_or(quoted);
    Some(text.replace("\\\"", "\"").replace("\\\\", "\\"))
}

fn refusal(status: StatusCode, bytes: &[u8]) -> CallError {
    let body: Value = serde_json::from_slice(bytes).unwrap_or_default();
    let text = |key: &str| body[key].as_str().map(str::to_owned);
    CallError::Refused {
        code: status.as_u16(),
        reason: text("reason").unwrap_or_default(),
        message: text("message").unwrap_or_else(|| format!("the server answered {status} without saying why")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_header_loses_its_quoting() {
        assert_eq!(warning_text(r#"299 - "unknown field \"spec.a\"""#).as_deref(), Some(r#"unknown field "spec.a""#));
    }

    #[test]
    fn a_refusal_without_a_status_body_still_says_the_code() {
        let failure: Failure = refusal(StatusCode::BAD_GATEWAY, b"<html>").into();

        assert!(failure.to_string().contains("502"), "{failure}");
    }

    #[test]
    fn an_older_state_in_a_file_is_told_apart_from_a_conflict_of_fields() {
        let body = br#"{"kind":"Status","reason":"Conflict","message":"Operation cannot be fulfilled on httproutes \"a\": the object has been modified; please apply your changes to the latest version and try again"}"#;
        let failure: Failure = refusal(StatusCode::CONFLICT, body).into();

        let told = failure.to_string();
        assert!(told.contains("resourceVersion") && !told.contains("--force-conflicts"), "{told}");
    }

    #[test]
    fn a_conflict_tells_how_to_take_the_fields_over() {
        let body = br#"{"kind":"Status","reason":"Conflict","message":"conflict with \"a\""}"#;
        let failure: Failure = refusal(StatusCode::CONFLICT, body).into();

        assert!(failure.to_string().contains("--force-conflicts"), "{failure}");
    }
}
