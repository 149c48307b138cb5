//! Numbers every step by which the operator changes or asks the outside, and can stop it before or after any of them.
//!
//! A step is a write to Kubernetes or a request to Cloudflare. Once stopped, the operator gets no answer to anything
//! any more: it is as dead as a process that was killed, and is to be dropped.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use http_body::{Body, Frame};
use tokio::sync::{Notify, watch};
use tower::{BoxError, Layer, Service};

/// Whom a step goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// The cluster; writes alone are steps.
    Kubernetes,
    /// The API.
    Cloudflare,
}

/// One step of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoStep {
    /// Whom it goes to.
    pub system: System,
    /// Method and path.
    pub text: String,
}

/// On which side of a step the operator stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSide {
    /// The step does not happen.
    Before,
    /// The step happens, its answer is not seen.
    After,
}

/// Where the operator stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The number of the step, from 1.
    pub step: usize,
    /// Before or after it.
    pub side: StopSide,
}

/// Counts and stops. Clones share it.
#[derive(Clone, Default)]
pub struct Failpoints {
    shared: Arc<FailpointsInner>,
}

#[derive(Default)]
struct FailpointsInner {
    state: Mutex<FailpointsState>,
    halted: Notify,
    /// How often the cluster went away; whatever is open then, breaks.
    outages: watch::Sender<usize>,
}

#[derive(Default)]
struct FailpointsState {
    steps: Vec<IoStep>,
    stop: Option<Stop>,
    /// Stops at the first step whose text has this in it.
    wanted: Option<(String, StopSide)>,
    halted: bool,
    requests: usize,
    slowness: Duration,
    /// The cluster cannot be reached.
    down: bool,
    /// Answers that an outage broke off.
    broken: usize,
    /// How often the cluster said that a version is too old to go on from.
    expired: usize,
}

impl Failpoints {
    /// The steps since the last [`Failpoints::take`].
    pub fn steps(&self) -> Vec<IoStep> {
        self.state().steps.clone()
    }

    /// The steps so far; counting begins anew.
    pub fn take(&self) -> Vec<IoStep> {
        std::mem::take(&mut self.state().steps)
    }

    /// How many requests of any sort were made, reads of the cluster included. Never counted anew.
    pub fn requests(&self) -> usize {
        self.state().requests
    }

    /// Counts anew and stops the operator at a step.
    pub fn stop_at(&self, stop: Stop) {
        let mut state = self.state();
        state.steps.clear();
        state.stop = Some(stop);
    }

    /// Counts anew and stops the operator at the first step that has `text` in it.
    pub fn stop_on(&self, text: &str, side: StopSide) {
        let mut state = self.state();
        state.steps.clear();
        state.wanted = Some((text.to_owned(), side));
    }

    /// Whether the cluster can be reached by the operator. What is open when it goes away, as watches are, breaks.
    pub fn cluster_down(&self, down: bool) {
        self.state().down = down;
        if down {
            self.shared.outages.send_modify(|outages| *outages += 1);
        }
    }

    /// How many answers of the cluster broke off.
    pub fn broken(&self) -> usize {
        self.state().broken
    }

    /// How often the cluster said that a version is too old to go on from (410).
    pub fn expired(&self) -> usize {
        self.state().expired
    }

    /// Ends when the cluster goes away the next time.
    fn outage(&self) -> BoxFuture<'static, ()> {
        let mut outages = self.shared.outages.subscribe();
        Box::pin(async move {
            if outages.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }

    /// How long the cluster takes to answer the operator; every third answer takes three times as long.
    pub fn slow_cluster(&self, slowness: Duration) {
        self.state().slowness = slowness;
    }

    async fn cluster_takes_its_time(&self) {
        let (slowness, requests) = {
            let state = self.state();
            (state.slowness, state.requests)
        };
        if !slowness.is_zero() {
            tokio::time::sleep(if requests.is_multiple_of(3) { slowness * 3 } else { slowness }).await;
        }
    }

    /// Whether the operator was stopped.
    pub fn is_halted(&self) -> bool {
        self.state().halted
    }

    /// Returns once the operator is stopped.
    pub async fn halted(&self) {
        let halted = self.shared.halted.notified();
        if !self.is_halted() {
            halted.await;
        }
    }

    /// Lets the next operator go on without a stop.
    pub fn open(&self) {
        let mut state = self.state();
        state.stop = None;
        state.wanted = None;
        state.halted = false;
    }

    /// Lets a step happen, unless it is the one to stop at.
    pub async fn step<T>(&self, system: System, text: String, call: impl Future<Output = T>) -> T {
        let number = self.begin(system, text);
        self.pass_by(number, StopSide::Before).await;
        let answer = call.await;
        self.pass_by(number, StopSide::After).await;
        answer
    }

    /// Lets something happen that is no step, unless the operator was stopped.
    pub async fn look<T>(&self, call: impl Future<Output = T>) -> T {
        self.state().requests += 1;
        self.stay_if_halted().await;
        let answer = call.await;
        self.stay_if_halted().await;
        answer
    }

    fn begin(&self, system: System, text: String) -> usize {
        let mut state = self.state();
        state.requests += 1;
        if !state.halted {
            if let Some((_, side)) = state.wanted.take_if(|(wanted, _)| text.contains(wanted.as_str())) {
                state.stop = Some(Stop { step: state.steps.len() + 1, side });
            }
            state.steps.push(IoStep { system, text });
        }
        state.steps.len()
    }

    async fn pass_by(&self, step: usize, side: StopSide) {
        {
            let mut state = self.state();
            if state.stop == Some(Stop { step, side }) && !state.halted {
                state.halted = true;
                self.shared.halted.notify_one();
            }
        }
        self.stay_if_halted().await;
    }

    async fn stay_if_halted(&self) {
        if self.is_halted() {
            std::future::pending::<()>().await;
        }
    }

    fn state(&self) -> MutexGuard<'_, FailpointsState> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Puts the failpoints between the operator and the cluster.
impl<S> Layer<S> for Failpoints {
    type Service = FailpointService<S>;

    fn layer(&self, inner: S) -> FailpointService<S> {
        FailpointService { inner, failpoints: self.clone() }
    }
}

/// A cluster behind the failpoints.
#[derive(Clone)]
pub struct FailpointService<S> {
    inner: S,
    failpoints: Failpoints,
}

impl<S, B, A> Service<Request<B>> for FailpointService<S>
where
    S: Service<Request<B>, Response = Response<A>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + Send,
    A: Send + 'static,
{
    type Response = Response<Breakable<A>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let failpoints = self.failpoints.clone();
        let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
        let text = format!("{} {}", request.method(), request.uri().path());
        // Services do nothing before their future is polled, which is after the failpoints let it through.
        let call = self.inner.call(request);
        Box::pin(async move {
            let call = async {
                failpoints.cluster_takes_its_time().await;
                if failpoints.state().down {
                    return Err("the cluster cannot be reached".into());
                }
                let outage = failpoints.outage();
                let answer = call.await.map_err(Into::<BoxError>::into)?;
                failpoints.note(answer.status());
                Ok(answer.map(|inner| Breakable {
                    inner: Box::pin(inner),
                    outage: Some(outage),
                    failpoints: failpoints.clone(),
                }))
            };
            if reads { failpoints.look(call).await } else { failpoints.step(System::Kubernetes, text, call).await }
        })
    }
}

impl Failpoints {
    fn note(&self, status: StatusCode) {
        self.state().expired += usize::from(status == StatusCode::GONE);
    }

    /// Watches are told by an event.
    fn note_event(&self, text: &[u8]) {
        let said = b"\"code\":410";
        self.state().expired += usize::from(text.windows(said.len()).any(|part| part == said));
    }
}

/// The body of an answer of the cluster, which an outage breaks off.
pub struct Breakable<A> {
    inner: Pin<Box<A>>,
    /// Gone once it broke.
    outage: Option<BoxFuture<'static, ()>>,
    failpoints: Failpoints,
}

impl<A> Body for Breakable<A>
where
    A: Body<Data = Bytes>,
    A::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let Some(outage) = &mut this.outage else { return Poll::Ready(None) };
        if outage.as_mut().poll(context).is_ready() {
            this.outage = None;
            this.failpoints.state().broken += 1;
            return Poll::Ready(Some(Err("the connection to the cluster broke".into())));
        }
        let frame = std::task::ready!(this.inner.as_mut().poll_frame(context));
        if let Some(text) = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()) {
            // Objects are longer than what is said of a version.
            if text.len() < 1000 {
                this.failpoints.note_event(text);
            }
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    async fn two_steps(failpoints: Failpoints, done: Arc<AtomicUsize>) {
        for _ in 0..2 {
            failpoints
                .step(System::Cloudflare, "POST /x".to_owned(), async { done.fetch_add(1, Ordering::Relaxed) })
                .await;
        }
    }

    async fn done_when_stopped(stop: Stop) -> usize {
        let (failpoints, done) = (Failpoints::default(), Arc::new(AtomicUsize::new(0)));
        failpoints.stop_at(stop);
        let operator = tokio::spawn(two_steps(failpoints.clone(), done.clone()));
        failpoints.halted().await;
        operator.abort();
        done.load(Ordering::Relaxed)
    }

    #[tokio::test]
    async fn the_operator_stops_before_and_after_the_chosen_step() {
        assert_eq!(done_when_stopped(Stop { step: 1, side: StopSide::Before }).await, 0);
        assert_eq!(done_when_stopped(Stop { step: 1, side: StopSide::After }).await, 1);
        assert_eq!(done_when_stopped(Stop { step: 2, side: StopSide::Before }).await, 1);
        assert_eq!(done_when_stopped(Stop { step: 2, side: StopSide::After }).await, 2);
    }

    #[tokio::test]
    async fn the_operator_stops_at_the_first_step_that_is_named() {
        let failpoints = Failpoints::default();
        failpoints.stop_on("/y", StopSide::After);
        let step = |text: &str| failpoints.step(System::Cloudflare, text.to_owned(), async {});

        step("GET /x").await;
        assert!(futures::poll!(std::pin::pin!(step("POST /y"))).is_pending());

        assert!(failpoints.is_halted());
        assert_eq!(failpoints.steps().len(), 2);
    }

    #[tokio::test]
    async fn an_outage_breaks_what_is_open_and_refuses_what_is_new() {
        use futures::FutureExt as _;
        use http_body_util::{BodyExt as _, StreamBody};

        let failpoints = Failpoints::default();
        let silent = |_: Request<()>| async {
            Ok::<_, BoxError>(Response::new(StreamBody::new(
                futures::stream::pending::<Result<Frame<Bytes>, BoxError>>(),
            )))
        };
        let mut cluster = failpoints.layer(tower::service_fn(silent));
        let mut open = cluster.call(Request::new(())).await.expect("the cluster is there").into_body();
        assert!(open.frame().now_or_never().is_none(), "nothing happens");

        failpoints.cluster_down(true);

        assert!(open.frame().await.is_some_and(|frame| frame.is_err()), "the watch breaks");
        assert!(open.frame().await.is_none());
        assert!(cluster.call(Request::new(())).await.is_err(), "and none can be opened");
        failpoints.cluster_down(false);
        let mut open = cluster.call(Request::new(())).await.expect("the cluster is back").into_body();
        assert!(open.frame().now_or_never().is_none(), "a new connection holds");
        assert_eq!(failpoints.broken(), 1);
    }

    #[tokio::test]
    async fn a_stopped_operator_gets_no_answers_and_a_new_one_does() {
        let failpoints = Failpoints::default();
        failpoints.stop_at(Stop { step: 1, side: StopSide::Before });
        let stopped = tokio::spawn({
            let failpoints = failpoints.clone();
            async move { failpoints.step(System::Kubernetes, "PATCH /x".to_owned(), async {}).await }
        });
        failpoints.halted().await;
        assert!(futures::poll!(std::pin::pin!(failpoints.look(async {}))).is_pending());

        stopped.abort();
        failpoints.open();

        failpoints.look(async {}).await;
        assert_eq!(failpoints.steps(), [IoStep { system: System::Kubernetes, text: "PATCH /x".to_owned() }]);
    }
}
