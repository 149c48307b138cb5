//! Everything that was found out about a route → what is to be done for it, and how it stands. Pure.

use kube::ResourceExt as _;
use portolan_core::{Class, Plan, Problem};
use portolan_engine::Notice;
use portolan_zerotrust_model::state::StatePhase;
use portolan_zerotrust_model::{CloudflareTask, Enabled, TaskResult};
use serde_json::{Map, Value};

use crate::decide::{RecordedState, RouteFacts, RouteGoal, RouteStep, TokenSecret, UnderWay, decide};
use crate::outputs::{self, Trouble};
use crate::recover::{self, Recovery};
use crate::route_context::{RouteContext, is_leftover, removal_credential};
use crate::route_status::RouteStatus;
use crate::state_index::StoredState;

/// What is to be done for a route.
pub(crate) struct RoutePlan {
    /// What is done, in order.
    pub(crate) steps: Vec<RouteStep>,
    /// Annotations that have to change.
    pub(crate) outputs: Option<Map<String, Value>>,
    /// Why the last step could not be done, as long as there is something to do.
    pub(crate) stuck: Option<Problem>,
    /// What would change at Cloudflare, where nothing may be applied.
    pub(crate) remote: Plan,
}

impl RoutePlan {
    /// A problem that stops a step, where it is another one than before. What may pass stops nothing.
    pub(crate) fn newly_stopped<'a>(&self, problem: &'a Problem) -> Option<&'a Problem> {
        Some(problem).filter(|problem| problem.class != Class::Transient && self.stuck.as_ref() != Some(*problem))
    }
}

impl RouteContext {
    /// What is to be done now.
    pub(crate) fn plan(&self) -> RoutePlan {
        portolan_core::waypoint!();
        let facts = self.facts();
        // Where nothing is to be done any more, nothing stops it.
        let stuck = self.stuck.clone().filter(|_| !decide(&facts).is_empty());
        let outputs = self.outputs(stuck.as_ref());
        let steps = decide(&RouteFacts { outputs_differ: outputs.is_some(), ..facts });
        RoutePlan { steps, outputs, stuck, remote: Plan::default() }
    }

    /// The annotations that have to change.
    fn outputs(&self, stuck: Option<&Problem>) -> Option<Map<String, Value>> {
        // An object that is going needs no annotations any more.
        let route = self.route.as_ref().filter(|_| !self.input.as_ref().is_some_and(|input| input.deleting))?;
        let state = self.known.as_ref().map(|known| &known.state).filter(|_| !self.is_leaving());
        let mut wanted = outputs::wanted(state, self.trouble(stuck).as_ref());
        if self.recovery.keeps_annotations() {
            wanted.extend(recover::ids(route.annotations()));
        }
        outputs::difference(route.annotations(), &wanted)
    }

    fn trouble(&self, stuck: Option<&Problem>) -> Option<Trouble> {
        if let Some(problem) = &self.problem {
            return Some(Trouble::of(problem));
        }
        let failed = self.failure().map(|failure| Trouble::failed(&failure.sentence));
        let without = || {
            let (reason, message) = self.without_record()?;
            Some(Trouble::of(&Problem::waiting(reason, message)))
        };
        failed.or_else(|| stuck.map(Trouble::of)).or_else(without)
    }

    /// What a decision rests on, with annotations as they should be.
    fn facts(&self) -> RouteFacts {
        let wish = match (&self.wanted, &self.input) {
            (Some(wanted), Some(input)) => RouteGoal::Published {
                hash: wanted.hash.clone(),
                uid: input.uid.clone(),
                account: wanted.spec.account_id.clone().unwrap_or_default(),
            },
            _ if self.is_leaving() => RouteGoal::Absent,
            _ => RouteGoal::Unclear,
        };
        RouteFacts {
            wish,
            recorded: self.known.as_ref().map(|known| recorded(known)),
            task: self.task.as_ref().map(|task| under_way(task, self)),
            removal: self.removal.as_ref().map(|task| under_way(task, self)),
            secret: self.secret,
            drifted: self.drifted,
            lost: self.lost(),
            outputs_differ: false,
            loses: self.loses(),
            recovered: matches!(self.recovery, Recovery::Found(_)),
        }
    }

    /// How the route stands, for its tenant and templates.
    pub(crate) fn standing(&self, plan: &RoutePlan) -> Option<RouteStatus> {
        let asks = self.input.as_ref().is_some_and(|input| !input.deleting && input.enabled() != Enabled::No);
        if !asks && self.is_clean() {
            return None;
        }
        let task = self.failure().filter(|_| self.problem.is_none());
        let limited = task.as_ref().is_some_and(|failure| failure.limited);
        let problem = self.problem.as_ref().map(|problem| (problem.reason, problem.message.clone()));
        let failure = problem.or_else(|| task.map(|failure| (failure.reason, failure.message)));
        let stuck = || plan.stuck.as_ref().map(|problem| (problem.reason, problem.message.clone()));
        let failure = failure.or_else(stuck).or_else(|| self.without_record());
        let tenant = self.tenant.clone().or_else(|| self.known.as_ref().and_then(|known| known.state.tenant.clone()));
        Some(RouteStatus {
            tenant,
            templates: self.templates.clone(),
            settled: failure.is_none() && plan.steps.is_empty() && self.task.is_none(),
            failure,
            limited,
            without_zone: self
                .wanted
                .as_ref()
                .is_some_and(|wanted| wanted.spec.zone_id.as_deref().is_none_or(str::is_empty)),
        })
    }

    /// The same after a problem stopped a step.
    pub(crate) fn standing_after(&self, plan: &RoutePlan, stopped: Option<&Problem>) -> Option<RouteStatus> {
        let standing = self.standing(plan);
        match stopped {
            None => standing,
            Some(problem) => standing.map(|one| {
                let failure = Some((problem.reason, problem.message.clone()));
                RouteStatus { failure, limited: false, settled: false, ..one }
            }),
        }
    }

    /// What is wrong with the route and was not told yet.
    pub(crate) fn news(&self, plan: &RoutePlan, stopped: Option<&Problem>) -> Vec<Notice> {
        let (mut news, mut told) = (Vec::new(), self.told.clone());
        let mut all = vec![self.standing(plan)];
        all.extend(stopped.map(|_| self.standing_after(plan, stopped)));
        for failure in all.into_iter().map(|standing| standing.and_then(|one| one.failure)) {
            if let Some((reason, message)) = failure.clone().filter(|_| failure != told) {
                news.push(Notice::warning(reason, message));
            }
            told = failure;
        }
        news
    }
}

fn recorded(known: &StoredState) -> RecordedState {
    let state = &known.state;
    RecordedState {
        hash: state.hash.clone(),
        uid: state.uid.clone().unwrap_or_default(),
        account: state.footprint.account_id.clone(),
        empty: state.footprint.is_empty(),
        leftovers: state.leftovers.iter().map(|leftover| leftover.footprint.account_id.clone()).collect(),
        deleting: state.phase == StatePhase::Deleting,
        forget: known.forget,
        has_secret: state.token_secret_name.is_some(),
        unclean: known.unclean,
        untold: state.templates.is_none(),
    }
}

fn under_way(task: &CloudflareTask, subject: &RouteContext) -> UnderWay {
    let status = task.status.as_ref();
    let result = status.and_then(|status| status.result.as_ref()).map(TaskResult::footprint);
    let recorded = subject.known.as_ref().map(|known| &known.state.footprint);
    let asked = task.spec.operations.as_ref().and_then(|one| one.service_token.as_ref()?.secret_present);
    UnderWay {
        phase: task.phase(),
        marked: status.is_some_and(|status| status.phase.is_some()),
        current: task.is_current(),
        hash: task.hash().unwrap_or_default().to_owned(),
        knows_more: result.is_some_and(|result| !result.is_empty() && recorded != Some(&result)),
        intends: status.is_some_and(|status| status.intended_at.is_some())
            || (task.is_older() && task.unreported().is_some()),
        // A task that asks for nothing new does not bring lost credentials back.
        suits_token: !(asked == Some(true) && subject.secret == TokenSecret::Lost),
        leftover: is_leftover(task),
        older: task.is_older(),
        recredited: subject.known.as_ref().is_some_and(|known| {
            let credential = removal_credential(&known.state, is_leftover(task));
            credential.is_some() && credential != task.spec.credential_secret_ref
        }),
    }
}
