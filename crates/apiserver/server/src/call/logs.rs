//! `GET` of `/log`: what a pod's container wrote, and why there may be nothing.

use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use portolan_schema::{FieldError, Path};
use serde_json::{Value, json};

use super::Call;
use crate::answer::Answer;
use crate::object;
use crate::pod_logs::{LogError, LogRun, LogSource, WantedLines};
use crate::status::ApiError;

impl Call {
    pub(super) async fn log(&self) -> Result<Answer, ApiError> {
        let wanted = self.wanted_log()?;
        let pod = self.live()?;
        let container = container_of(&pod, self.query.get("container"))?;
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        if node.is_empty() {
            // Nothing runs, so nothing was written.
            return Ok(Answer { content_type: "", ..Answer::text(StatusCode::NO_CONTENT, "") });
        }
        let Some(logs) = self.api.pod_logs() else {
            return Err(self.no_runner(&pod, node));
        };
        let run = if self.query.flag("previous") { LogRun::Previous } else { LogRun::Current };
        check_started(&pod, container, run)?;
        let source = LogSource {
            namespace: self.target.namespace.clone(),
            pod: self.target.name.clone(),
            uid: object::meta_text(&pod, "uid").to_owned(),
            container: container.to_owned(),
            run,
            tail_lines: wanted.tail_lines,
        };
        let log = logs.open(source).await.map_err(|error| match error {
            LogError::NotThere(message) => ApiError::bad_request(message),
            LogError::Unreadable(message) => ApiError::internal(message),
        })?;
        Ok(Answer { content_type: "text/plain", ..Answer::stream(wanted.text_of(log)) })
    }

    fn wanted_log(&self) -> Result<WantedLines, ApiError> {
        let number = |name: &str| self.query.number(name);
        let (tail, limit, seconds) = (number("tailLines")?, number("limitBytes")?, number("sinceSeconds")?);
        let since_time = self.query.find("sinceTime").filter(|text| !text.is_empty()).map(read_time).transpose()?;
        let mut errors = Vec::new();
        let root = Path::root();
        let mut refuse = |name: &str, value: Option<i64>, least: i64, detail: &str| {
            if let Some(value) = value.filter(|value| *value < least) {
                errors.push(FieldError::invalid(&root.field(name), &json!(value), detail));
            }
        };
        refuse("tailLines", tail, 0, "must be greater than or equal to 0");
        refuse("limitBytes", limit, 1, "must be greater than 0");
        if since_time.is_none() {
            refuse("sinceSeconds", seconds, 1, "must be greater than 0");
        }
        if since_time.is_some() && seconds.is_some() {
            let detail = "at most one of `sinceTime` or `sinceSeconds` may be specified";
            // The real server names no field, which it shows so.
            errors.push(FieldError { field: "[]".to_owned(), ..FieldError::forbidden(&root, detail) });
        }
        if self.query.find("stream").is_some() {
            errors.push(FieldError::forbidden(&root.field("stream"), "may not be specified"));
        }
        if !errors.is_empty() {
            return Err(ApiError::invalid("", "PodLogOptions", &self.target.name, &errors));
        }
        let since_seconds = seconds.and_then(|s| (self.api.clock)().checked_sub(SignedDuration::from_secs(s)).ok());
        let size = |value: Option<i64>| value.and_then(|value| usize::try_from(value).ok());
        Ok(WantedLines {
            follow: self.query.flag("follow"),
            timestamps: self.query.flag("timestamps"),
            since: since_time.or(since_seconds),
            tail_lines: size(tail),
            limit_bytes: size(limit),
        })
    }

    /// Why nothing of a pod on a node can be had: the node is not there, or nobody runs its pods.
    pub(super) fn no_runner(&self, pod: &Value, node: &str) -> ApiError {
        if let Err(error) = self.check_node(node) {
            return error;
        }
        let name = object::name(pod);
        ApiError::internal(format!(
            "no runner on this server runs pod {name:?} of node {node:?}: start one with `portolan up`"
        ))
    }

    /// A node that is not there is said to be a pod, as the real server says it.
    pub(super) fn check_node(&self, node: &str) -> Result<(), ApiError> {
        let nodes = self.registry.find("", "v1", "nodes");
        let known = nodes.is_some_and(|nodes| self.api.store.get(&nodes.key("", node)).is_some());
        if known { Ok(()) } else { Err(ApiError::not_found(self.resource.about(node))) }
    }
}

/// The container that is meant; it may be left out where there is only one.
pub(super) fn container_of<'a>(pod: &'a Value, given: &'a str) -> Result<&'a str, ApiError> {
    let names = |field: &str| -> Vec<&'a str> {
        pod["spec"][field].as_array().into_iter().flatten().filter_map(|c| c["name"].as_str()).collect()
    };
    let name = object::name(pod);
    let all = [names("initContainers"), names("containers"), names("ephemeralContainers")].concat();
    match (given, names("containers").as_slice()) {
        ("", [only]) => Ok(only),
        ("", []) => Err(ApiError::bad_request(format!("a container name must be specified for pod {name}"))),
        ("", _) => Err(ApiError::bad_request(format!(
            "a container name must be specified for pod {name}, choose one of: [{}]",
            all.join(" ")
        ))),
        (given, _) if all.contains(&given) => Ok(given),
        (given, _) => Err(ApiError::bad_request(format!("container {given} is not valid for pod {name}"))),
    }
}

/// What a kubelet says of a container that has written nothing yet.
fn check_started(pod: &Value, container: &str, run: LogRun) -> Result<(), ApiError> {
    let name = object::name(pod);
    let statuses = ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"];
    let mut all = statuses.iter().flat_map(|field| pod["status"][*field].as_array().into_iter().flatten());
    let Some(status) = all.find(|status| status["name"] == container) else {
        return Err(ApiError::bad_request(format!("container {container:?} in pod {name:?} is not available")));
    };
    let ended_before = !status["lastState"]["terminated"].is_null();
    let state = &status["state"];
    if run == LogRun::Previous {
        let why = format!("previous terminated container {container:?} in pod {name:?} not found");
        return if ended_before { Ok(()) } else { Err(ApiError::bad_request(why)) };
    }
    if !state["running"].is_null() || !state["terminated"].is_null() || ended_before {
        return Ok(());
    }
    let opening = format!("container {container:?} in pod {name:?} is waiting to start");
    Err(ApiError::bad_request(match state["waiting"]["reason"].as_str() {
        None if state["waiting"].is_null() => format!("{opening} - no logs yet"),
        Some("ErrImagePull") => format!("{opening}: image can't be pulled"),
        Some("ImagePullBackOff") => format!("{opening}: trying and failing to pull image"),
        reason => format!("{opening}: {}", reason.unwrap_or_default()),
    }))
}

fn read_time(text: &str) -> Result<Timestamp, ApiError> {
    text.parse().map_err(|_| {
        ApiError::bad_request(format!(
            "parsing time {text:?} as \"2006-01-02T15:04:05Z07:00\": cannot parse {text:?} as \"2006\""
        ))
    })
}
