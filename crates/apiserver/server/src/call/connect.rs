//! `/exec`, `/attach`, `/portforward` and `/proxy`: who may connect into which pod, and what the connection then carries.

use std::sync::Arc;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use http::StatusCode;
use http::header::HeaderMap;
use hyper::upgrade::{OnUpgrade, Upgraded};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::Call;
use super::logs::container_of;
use crate::answer::Answer;
use crate::object;
use crate::pod_logs::{LogRun, LogSource, PodLogs};
use crate::pod_streams::{ExecOrder, ExecSession, PodPort, PodStreams, StreamRefusal};
use crate::status::ApiError;
use crate::streams::{
    ExecPlan, ForwardChannels, Link, PortForward, StreamProtocol, StreamPurpose, exec_channels, exec_streams,
    forward_channels, forward_streams, handshake, run_exec,
};

/// Ports that one WebSocket forwards; each has two of its 255 channels.
const MOST_PORTS: usize = 100;

/// A request that asks for another protocol on its connection.
pub(crate) struct Upgrade {
    pub(crate) headers: HeaderMap,
    /// None where the connection can carry nothing else: in process, and HTTP/2.
    pub(crate) connection: Option<OnUpgrade>,
    /// Turns true when the server stops.
    pub(crate) stopping: watch::Receiver<bool>,
}

/// What a connection into a pod is for.
enum Connection {
    Exec { order: ExecOrder, plan: ExecPlan, runner: Arc<dyn PodStreams> },
    Attach { source: LogSource, plan: ExecPlan, logs: Arc<dyn PodLogs> },
    Forward { ports: Vec<u16>, forward: PortForward },
}

impl Call {
    pub(super) fn connect(&mut self, subresource: &str) -> Result<Answer, ApiError> {
        let word = subresource.split('/').next().unwrap_or_default();
        if word == "proxy" {
            return Err(self.no_proxy());
        }
        // A GET is a WebSocket's way to create (`pkg/registry/core/pod/rest/authorize.go`).
        self.confirm_connect()?;
        let pod = self.live()?;
        let container = match word {
            "portforward" => String::new(),
            _ => container_of(&pod, self.query.get("container"))?.to_owned(),
        };
        let name = self.target.name.clone();
        let node = pod["spec"]["nodeName"].as_str().filter(|node| !node.is_empty());
        let unassigned = || ApiError::bad_request(format!("pod {name} does not have a host assigned"));
        let node = node.ok_or_else(unassigned)?;
        self.check_node(node)?;
        let connection = match word {
            "exec" => self.exec(&pod, node, container)?,
            "attach" => self.attach(&pod, node, container)?,
            _ => self.port_forward(&pod, node)?,
        };
        self.upgrade(connection)
    }

    fn no_proxy(&self) -> ApiError {
        let name = self.target.name.rsplit(':').next_back().unwrap_or_default();
        let key = self.resource.key(&self.target.namespace, name);
        let Some(stored) = self.api.store.get(&key) else {
            return ApiError::not_found(self.resource.about(name));
        };
        if self.api.object(&self.resource, &stored)["status"]["podIP"].is_null() {
            return ApiError::bad_request("address not allowed");
        }
        ApiError::not_implemented(
            "the embedded API does not serve pods/proxy; connect to the pod's own address, which is on this machine, or use \
             `kubectl port-forward`",
        )
    }

    fn exec(&self, pod: &Value, node: &str, container: String) -> Result<Connection, ApiError> {
        let runner = self.api.pod_streams().ok_or_else(|| self.no_runner(pod, node))?;
        check_runs(pod, &container)?;
        let plan = self.exec_plan()?;
        let command: Vec<String> = self.query.all("command").map(str::to_owned).collect();
        if command.is_empty() {
            return Err(ApiError::bad_request("you must specify at least one command for the container"));
        }
        let order = ExecOrder {
            namespace: self.target.namespace.clone(),
            pod: self.target.name.clone(),
            uid: object::meta_text(pod, "uid").to_owned(),
            container,
            command,
            has_input: plan.has_input,
            has_terminal: plan.has_terminal,
        };
        Ok(Connection::Exec { order, plan, runner })
    }

    /// What a container writes from now on. Programs that stand for containers have no input.
    fn attach(&self, pod: &Value, node: &str, container: String) -> Result<Connection, ApiError> {
        let logs = self.api.pod_logs().ok_or_else(|| self.no_runner(pod, node))?;
        check_runs(pod, &container)?;
        let plan = self.exec_plan()?;
        let source = LogSource {
            namespace: self.target.namespace.clone(),
            pod: self.target.name.clone(),
            uid: object::meta_text(pod, "uid").to_owned(),
            container,
            run: LogRun::Current,
            tail_lines: Some(0),
        };
        Ok(Connection::Attach { source, plan, logs })
    }

    fn port_forward(&self, pod: &Value, node: &str) -> Result<Connection, ApiError> {
        let runner = self.api.pod_streams().ok_or_else(|| self.no_runner(pod, node))?;
        let phase = pod["status"]["phase"].as_str().unwrap_or_default();
        if phase != "Running" {
            let name = &self.target.name;
            return Err(ApiError::bad_request(format!("unable to forward ports: pod {name} is {phase}, not Running")));
        }
        let target = PodPort {
            namespace: self.target.namespace.clone(),
            pod: self.target.name.clone(),
            uid: object::meta_text(pod, "uid").to_owned(),
            address: pod["status"]["podIP"].as_str().unwrap_or_default().to_owned(),
            port: 0,
        };
        Ok(Connection::Forward { ports: self.ports()?, forward: PortForward { runner, pod: target } })
    }

    /// Which streams are asked for, as `kubelet/pkg/cri/streaming/remotecommand` reads them.
    fn exec_plan(&self) -> Result<ExecPlan, ApiError> {
        let has_terminal = self.query.flag("tty");
        let plan = ExecPlan {
            has_input: self.query.flag("stdin"),
            has_output: self.query.flag("stdout"),
            // A terminal has no errors of its own.
            has_errors: self.query.flag("stderr") && !has_terminal,
            has_terminal,
        };
        if plan.has_input || plan.has_output || plan.has_errors {
            return Ok(plan);
        }
        Err(ApiError::bad_request("you must specify at least 1 of stdin, stdout, stderr"))
    }

    /// The ports that a WebSocket's channels are for; SPDY names them with its streams.
    fn ports(&self) -> Result<Vec<u16>, ApiError> {
        let bad = |text: &str| ApiError::bad_request(format!("invalid port {text:?}"));
        let texts = self.query.all("ports").flat_map(|texts| texts.split(','));
        let ports: Vec<u16> = texts
            .map(|text| text.parse().ok().filter(|port| *port > 0).ok_or_else(|| bad(text)))
            .collect::<Result<_, _>>()?;
        if ports.len() > MOST_PORTS {
            return Err(ApiError::bad_request(format!("at most {MOST_PORTS} ports are forwarded at once")));
        }
        Ok(ports)
    }

    /// Agrees on a protocol, and serves it once the answer is out.
    fn upgrade(&mut self, connection: Connection) -> Result<Answer, ApiError> {
        let required = || ApiError::bad_request("Upgrade request required");
        let Upgrade { headers, connection: upgrading, stopping } = self.upgrade.take().ok_or_else(required)?;
        let agreed = handshake(&headers, connection.purpose())?;
        connection.check(agreed.protocol)?;
        let upgrading = upgrading.ok_or_else(|| {
            ApiError::bad_request("this connection carries nothing but requests: connect with TLS and HTTP/1.1")
        })?;
        let place = self
            .api
            .streams
            .clone()
            .try_acquire_owned()
            .map_err(|_| ApiError::too_many_requests("too many connections into pods are open: end one of them"))?;
        tokio::spawn(async move {
            match upgrading.await {
                Ok(upgraded) => connection.serve(upgraded, agreed.protocol, stopping).await,
                Err(error) => tracing::debug!(%error, "A connection was not upgraded"),
            }
            drop(place);
        });
        let mut answer = Answer::empty(StatusCode::SWITCHING_PROTOCOLS);
        for (name, value) in agreed.headers {
            answer = answer.with(name, &value);
        }
        Ok(answer)
    }
}

/// A kubelet knows containers that run.
fn check_runs(pod: &Value, container: &str) -> Result<(), ApiError> {
    let statuses = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
    let mut all = statuses.iter().flat_map(|field| pod["status"][*field].as_array().into_iter().flatten());
    if all.any(|status| status["name"] == json!(container) && !status["state"]["running"].is_null()) {
        return Ok(());
    }
    Err(ApiError::internal(format!("unable to upgrade connection: container not found ({container:?})")))
}

impl Connection {
    fn purpose(&self) -> StreamPurpose {
        match self {
            Self::Exec { .. } | Self::Attach { .. } => StreamPurpose::Exec,
            Self::Forward { .. } => StreamPurpose::Forward,
        }
    }

    fn check(&self, protocol: StreamProtocol) -> Result<(), ApiError> {
        match (self, protocol) {
            (Self::Forward { ports, .. }, StreamProtocol::Channels) if ports.is_empty() => {
                Err(ApiError::bad_request("query parameter \"ports\" is required"))
            }
            _ => Ok(()),
        }
    }

    async fn serve(self, upgraded: Upgraded, protocol: StreamProtocol, mut stopping: watch::Receiver<bool>) {
        let link = match protocol {
            StreamProtocol::Channels | StreamProtocol::TunnelledSpdy => Link::messages(upgraded).await,
            StreamProtocol::Spdy => Link::bytes(upgraded),
        };
        let served = async {
            match self {
                Self::Exec { order, plan, runner } => exec_by(link, protocol, plan, runner.exec(order)).await,
                Self::Attach { source, plan, logs } => exec_by(link, protocol, plan, attached(logs, source)).await,
                Self::Forward { ports, forward } if protocol == StreamProtocol::Channels => {
                    let channels = ForwardChannels::of(link, ports.len());
                    forward_channels(channels, ports, forward).await;
                }
                Self::Forward { forward, .. } => forward_streams(link, forward).await,
            }
        };
        tokio::select! {
            () = served => {}
            // An error means that the server is gone, which is as good as stopping.
            _ = stopping.wait_for(|stop| *stop) => {}
        }
    }
}

/// Runs a session on the streams of a client. It begins once they all are there.
async fn exec_by(
    link: Link,
    protocol: StreamProtocol,
    plan: ExecPlan,
    session: impl Future<Output = Result<ExecSession, StreamRefusal>>,
) {
    let link = match protocol {
        StreamProtocol::Spdy => exec_streams(link, plan).await,
        StreamProtocol::Channels | StreamProtocol::TunnelledSpdy => Some(exec_channels(link, plan).await),
    };
    if let Some(link) = link {
        run_exec(session.await, link).await;
    }
}

/// The log of a container as the session of a program.
async fn attached(logs: Arc<dyn PodLogs>, source: LogSource) -> Result<ExecSession, StreamRefusal> {
    let log = logs.open(source).await.map_err(|error| StreamRefusal(error.to_string()))?;
    let lines = log.coming.map(|line| Bytes::from([&line.text[..], b"\n"].concat()));
    let output: BoxStream<'static, Bytes> = lines.boxed();
    Ok(ExecSession {
        input: None,
        output,
        errors: stream::empty().boxed(),
        resize: None,
        end: Box::pin(std::future::ready(Ok(0))),
    })
}
