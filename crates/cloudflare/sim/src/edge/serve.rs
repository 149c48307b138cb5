//! The edge at work: in process, and on a socket.

use std::{convert::Infallible, io};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Either, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use tokio::net::ToSocketAddrs;

use super::{
    decision::{self, EdgeAccess, EdgeDecision, EdgeOutcome},
    failure,
    origin::{OriginAddress, Origins},
    page,
    request::EdgeRequest,
};
use crate::{
    Serving, Simulator,
    access::{service_token::SERVICE_TOKENS, view::mark_seen},
    serve::listen,
};

/// The largest body that is taken, as on the smallest plan.
const LARGEST: usize = 100 << 20;

/// Where the edge tells what it would answer, for the name in `Host` and the path in `?path=`, as JSON.
pub const DECISION_PATH: &str = "/cdn-cgi/decision";

/// The edge of a simulator: HTTP for the names that are published in it. Clones share connections to origins.
#[derive(Clone, Debug)]
pub struct Edge {
    simulator: Simulator,
    origins: Origins,
}

/// What the edge answered, and why.
#[derive(Clone, Debug)]
pub struct EdgeAnswer {
    /// HTTP status.
    pub status: u16,
    /// Headers of the answer.
    pub headers: HeaderMap,
    /// Body of the answer.
    pub body: Bytes,
    /// How it came to that.
    pub decision: EdgeDecision,
}

impl EdgeAnswer {
    /// Where the answer sends the visitor.
    pub fn location(&self) -> Option<&str> {
        self.headers.get(header::LOCATION).and_then(|value| value.to_str().ok())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// An origin's answer goes on as it comes.
type OriginBody = Either<Full<Bytes>, reqwest::Body>;

impl Simulator {
    /// What the edge does with a request, found without any I/O.
    pub fn decide(&self, request: &EdgeRequest) -> EdgeDecision {
        decision::decide(&self.lock(), request)
    }

    /// The edge's answer to `GET https://{host}{path}`. Sockets are used only where an origin is asked.
    pub async fn ask(&self, host: &str, path: &str, headers: &[(&str, &str)]) -> EdgeAnswer {
        self.edge().ask(EdgeRequest::get(host, path, headers)).await
    }

    /// The edge of this simulator.
    pub fn edge(&self) -> Edge {
        Edge { simulator: self.clone(), origins: Origins::default() }
    }
}

impl Edge {
    /// Says where an origin is that rules call by a name which is not known here.
    pub fn origin(mut self, origin: OriginAddress) -> Self {
        self.origins.add(origin);
        self
    }

    /// Listens on an address; port 0 chooses a free one.
    pub async fn serve(&self, address: impl ToSocketAddrs) -> io::Result<Serving> {
        let edge = self.clone();
        listen(address, move |request| {
            let edge = edge.clone();
            async move { Ok::<_, Infallible>(edge.respond(request).await) }
        })
        .await
    }

    /// The answer to a request without a body.
    pub async fn ask(&self, request: EdgeRequest) -> EdgeAnswer {
        let (mut decision, response) = self.answer(&request, Bytes::new()).await;
        let (parts, body) = response.into_parts();
        let body = match body.collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) => {
                decision.outcome = failure::origin(format!("the origin's answer broke off: {error}"));
                Bytes::new()
            }
        };
        EdgeAnswer { status: parts.status.as_u16(), headers: parts.headers, body, decision }
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<OriginBody> {
        let (parts, body) = request.into_parts();
        let Some(asked) = EdgeRequest::read(&parts.method, &parts.uri, &parts.headers) else {
            return finish(page::nameless().map(whole));
        };
        if asked.path == DECISION_PATH {
            return finish(self.explain(asked).map(whole));
        }
        match Limited::new(body, LARGEST).collect().await {
            Ok(body) => self.answer(&asked, body.to_bytes()).await.1,
            Err(error) => finish(unread(error.as_ref()).map(whole)),
        }
    }

    fn explain(&self, mut request: EdgeRequest) -> Response<Bytes> {
        let query = crate::call::parse_query(request.query.as_deref().unwrap_or_default());
        let path = query.into_iter().find(|(name, _)| name == "path").map(|(_, path)| path);
        (request.path, request.query) = (path.unwrap_or_else(|| "/".to_owned()), None);
        let decision = serde_json::to_string(&self.simulator.decide(&request)).expect("decisions are plain JSON");
        crate::answer::json_response(200, Bytes::from(decision))
    }

    async fn answer(&self, request: &EdgeRequest, body: Bytes) -> (EdgeDecision, Response<OriginBody>) {
        let mut decision = self.simulator.decide(request);
        self.note_token(&decision);
        let response = match page::answer(&decision) {
            Some(response) => response.map(whole),
            None => match self.forward(&decision, request, body).await {
                Ok(response) => response,
                Err(reason) => {
                    decision.outcome = failure::origin(reason);
                    page::answer(&decision).unwrap_or_default().map(whole)
                }
            },
        };
        let EdgeDecision { host, path, .. } = &decision;
        tracing::debug!(host, path, status = response.status().as_u16(), "Answered at the edge");
        (decision, finish(response))
    }

    /// A token that opened a door has been seen.
    fn note_token(&self, decision: &EdgeDecision) {
        let EdgeAccess::Granted { identity: Some(id), .. } = &decision.access else { return };
        let mut state = self.simulator.lock();
        if let Some(account) = state.scope_with(&SERVICE_TOKENS, id) {
            mark_seen(&mut state, &account, id);
        }
    }

    async fn forward(
        &self,
        decision: &EdgeDecision,
        request: &EdgeRequest,
        body: Bytes,
    ) -> Result<Response<OriginBody>, String> {
        let EdgeOutcome::Origin { service } = &decision.outcome else { return Err("there is no origin".to_owned()) };
        let rule = decision.rule.as_ref().ok_or_else(|| format!("no rule leads to {service}"))?;
        let mut response = self.origins.send(rule, request, &decision.access, body).await?;
        for name in [header::CONNECTION, header::TRANSFER_ENCODING, header::UPGRADE] {
            response.headers_mut().remove(name);
        }
        Ok(response.map(Either::Right))
    }
}

fn whole(body: Bytes) -> OriginBody {
    Either::Left(Full::new(body))
}

/// The header by which the edge is known.
fn finish(mut response: Response<OriginBody>) -> Response<OriginBody> {
    response.headers_mut().insert(header::SERVER, HeaderValue::from_static("cloudflare"));
    response
}

fn unread(error: &(dyn std::error::Error + 'static)) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(format!("{error}\n")));
    *response.status_mut() =
        if error.is::<LengthLimitError>() { StatusCode::PAYLOAD_TOO_LARGE } else { StatusCode::BAD_REQUEST };
    response
}
