//! What is to be done for one route's name: what is wanted, recorded and under way → steps. Pure.
//!
//! At most one task of each action is under way for a name. A task that a worker has is never touched: its result is
//! awaited, recorded, and only then comes the next. So nothing that a worker made is ever forgotten.

use portolan_zerotrust_model::Phase;

#[cfg(test)]
mod tests;

/// What shall become of a route's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RouteGoal {
    /// It is published like this.
    Published {
        /// The hash of everything that it is made from.
        hash: String,
        /// The route's uid.
        uid: String,
        /// The account that it is published in.
        account: String,
    },
    /// Nobody can tell: what stands stays.
    Unclear,
    /// It is taken down: the route is gone, is going, or no longer asks.
    Absent,
}

/// What is recorded for the name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct RecordedState {
    /// The hash that was executed last.
    pub(crate) hash: String,
    /// The uid of the route that it was executed for.
    pub(crate) uid: String,
    /// The account that it stands in.
    pub(crate) account: Option<String>,
    /// Whether nothing stands at Cloudflare.
    pub(crate) empty: bool,
    /// Accounts in which something of an earlier tenant still stands.
    pub(crate) leftovers: Vec<Option<String>>,
    /// Whether it is being taken down.
    pub(crate) deleting: bool,
    /// Whether the user says that it is to be forgotten as it is.
    pub(crate) forget: bool,
    /// Whether a Secret of ours holds a token's credentials.
    pub(crate) has_secret: bool,
    /// Whether it holds what no state may hold.
    pub(crate) unclean: bool,
    /// Whether it does not say which templates took part.
    pub(crate) untold: bool,
}

/// A task that is under way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct UnderWay {
    /// Where it stands.
    pub(crate) phase: Phase,
    /// Whether its status was ever written.
    pub(crate) marked: bool,
    /// Whether its status is about its present spec.
    pub(crate) current: bool,
    /// The hash of its spec.
    pub(crate) hash: String,
    /// Whether it knows of things at Cloudflare that the state does not.
    pub(crate) knows_more: bool,
    /// Whether it may have made things that nobody knows of.
    pub(crate) intends: bool,
    /// Whether it still asks for what is wanted of the token's Secret.
    pub(crate) suits_token: bool,
    /// Whether it takes down what an earlier tenant left.
    pub(crate) leftover: bool,
    /// Whether an older operator made it: its worker is gone, and nobody else carries it out.
    pub(crate) older: bool,
    /// Whether it is to be carried out with another credential than it says.
    pub(crate) recredited: bool,
}

/// The Secret with a token's credentials.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TokenSecret {
    /// No token is wanted.
    #[default]
    Unwanted,
    /// It is there and whole.
    Whole,
    /// It is missing or was edited.
    Lost,
}

/// Everything that a decision rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct RouteFacts {
    pub(crate) wish: RouteGoal,
    pub(crate) recorded: Option<RecordedState>,
    /// The task that makes the name stand.
    pub(crate) task: Option<UnderWay>,
    /// The task that takes it down.
    pub(crate) removal: Option<UnderWay>,
    pub(crate) secret: TokenSecret,
    /// Whether something at Cloudflare is not as it was left.
    pub(crate) drifted: bool,
    /// Whether another route has the name that the task tries to get.
    pub(crate) lost: bool,
    /// Whether the annotations on the route are not what they should be.
    pub(crate) outputs_differ: bool,
    /// Whether what is wanted takes a name down that stands, or leaves it without the protection that it has.
    pub(crate) loses: bool,
    /// Whether nothing is recorded, though something is proven to be ours.
    pub(crate) recovered: bool,
}

/// One thing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RouteStep {
    /// Takes secrets out of a state that an older operator wrote.
    Scrub,
    /// Records what is proven to be ours, though its state was lost.
    Recover,
    /// Records what a task of an older operator knows, and notes what it may have made besides.
    TakeOver,
    /// Records what an older operator was about to take down, and its task goes.
    TakeOverRemoval,
    /// Moves what stands in another account aside, to be taken down after the new one stands.
    SetAside,
    /// Takes what was moved aside back: the name returns to that account.
    TakeBack,
    /// Makes a task that makes the name stand.
    Queue,
    /// Gives the task that waits a new spec.
    Requeue,
    /// Says that the task waits.
    MarkPending,
    /// Records what a task knows, though it is not done.
    Harvest,
    /// Records a task's result: Secret, state, annotations; then the task goes.
    Collect,
    /// The task is no longer wanted.
    DropTask,
    /// The task that takes the name down is no longer wanted.
    CancelRemoval,
    /// Asks whether so much may be taken down or left unprotected.
    AskToLose,
    /// Asks whether so much may be deleted, and records that it will be.
    BeginRemoval,
    /// Makes a task that takes the name down.
    QueueRemoval,
    /// Turns the task that makes the name stand into one that takes it down.
    ConvertTask,
    /// Makes a task that takes down what an earlier tenant left.
    QueueLeftover,
    /// Says that the removal waits.
    MarkRemovalPending,
    /// Gives the removal that waits another credential.
    RecreditRemoval,
    /// What was to be taken down is gone: records that, and the task goes.
    FinishRemoval,
    /// What an earlier tenant left is gone.
    FinishLeftover,
    /// Nothing stands any more: Secret and state go.
    Forget,
    /// The token is gone: so goes its Secret.
    DropSecret,
    /// Records which templates took part in what stands.
    NoteTemplates,
    /// Writes the annotations on the route.
    Outputs,
}

impl RouteStep {
    /// Whether there may be more to do at once. What a task was made for waits for a worker.
    pub(crate) fn leads_on(self) -> bool {
        match self {
            Self::Queue
            | Self::Requeue
            | Self::MarkPending
            | Self::QueueRemoval
            | Self::ConvertTask
            | Self::QueueLeftover
            | Self::MarkRemovalPending
            | Self::RecreditRemoval
            | Self::AskToLose
            | Self::BeginRemoval
            | Self::SetAside
            | Self::TakeBack
            | Self::Outputs => false,
            Self::Scrub
            | Self::Recover
            | Self::TakeOver
            | Self::TakeOverRemoval
            | Self::Harvest
            | Self::Collect
            | Self::DropTask
            | Self::CancelRemoval
            | Self::FinishRemoval
            | Self::FinishLeftover
            | Self::Forget
            | Self::DropSecret
            | Self::NoteTemplates => true,
        }
    }
}

/// What is to be done now. What has to wait for a worker is decided when the worker has said something.
pub(crate) fn decide(facts: &RouteFacts) -> Vec<RouteStep> {
    portolan_core::waypoint!();
    let mut steps = Vec::new();
    if facts.recorded.as_ref().is_some_and(|recorded| recorded.unclean) {
        steps.push(RouteStep::Scrub);
    }
    if facts.recovered {
        return vec![RouteStep::Recover];
    }
    steps.extend(match &facts.wish {
        _ if facts.removal.as_ref().is_some_and(|removal| removal.older) => vec![RouteStep::TakeOverRemoval],
        wish if facts.task.as_ref().is_some_and(|task| task.older) => take_over(facts, wish),
        RouteGoal::Published { hash, uid, account } => publish(facts, hash, uid, account),
        RouteGoal::Unclear => keep(facts),
        RouteGoal::Absent => unpublish(facts),
    });
    // What stands stays until the budget allows that it goes, whatever makes it go.
    let begins = |step: &RouteStep| matches!(step, RouteStep::SetAside | RouteStep::Queue | RouteStep::Requeue);
    if facts.loses && steps.iter().any(begins) {
        steps.insert(0, RouteStep::AskToLose);
    }
    // While nothing else happens, the route says how it stands.
    if steps.is_empty() && facts.outputs_differ && facts.wish != RouteGoal::Absent {
        steps.push(RouteStep::Outputs);
    }
    steps
}

/// A task that an older operator left: what it knows is recorded, and it becomes one of ours or goes.
fn take_over(facts: &RouteFacts, wish: &RouteGoal) -> Vec<RouteStep> {
    let Some(task) = &facts.task else { return Vec::new() };
    match (wish, task.phase, task.intends) {
        (RouteGoal::Published { .. }, _, _) => vec![RouteStep::TakeOver, RouteStep::Requeue],
        // It was never begun, or is taken over and waits until it is clear what is wanted.
        (RouteGoal::Unclear, Phase::Pending, _) => Vec::new(),
        (RouteGoal::Unclear, _, true) => vec![RouteStep::TakeOver],
        (RouteGoal::Absent, _, true) if facts.removal.is_none() => vec![RouteStep::TakeOver, RouteStep::ConvertTask],
        (RouteGoal::Unclear | RouteGoal::Absent, _, _) => vec![RouteStep::TakeOver, RouteStep::DropTask],
    }
}

fn publish(facts: &RouteFacts, hash: &str, uid: &str, account: &str) -> Vec<RouteStep> {
    if let Some(removal) = facts.removal.as_ref().filter(|removal| !removal.leftover) {
        return if removal.intends { finish(facts, removal) } else { revive(removal) };
    }
    if let Some(task) = &facts.task {
        return follow(facts, task, Some(hash));
    }
    let recorded = facts.recorded.as_ref();
    let is_as_wanted = recorded.is_some_and(|one| one.hash == hash && one.uid == uid && !one.deleting);
    if !is_as_wanted || facts.drifted || facts.secret == TokenSecret::Lost {
        let mut steps = move_accounts(recorded, account);
        if steps.contains(&RouteStep::TakeBack) && facts.removal.is_some() {
            // What is about to be taken back is being taken down: that ends first.
            return follow_leftovers(facts);
        }
        steps.push(RouteStep::Queue);
        return steps;
    }
    let mut steps = follow_leftovers(facts);
    if facts.secret == TokenSecret::Unwanted && recorded.is_some_and(|one| one.has_secret) {
        steps.push(RouteStep::DropSecret);
    }
    // The hash says so: what stands was made with the templates of now.
    if steps.is_empty() && recorded.is_some_and(|one| one.untold) {
        steps.push(RouteStep::NoteTemplates);
    }
    steps
}

/// What stands in an account that the name leaves is set aside; what was set aside in the one that it comes to is
/// taken back.
fn move_accounts(recorded: Option<&RecordedState>, account: &str) -> Vec<RouteStep> {
    let Some(recorded) = recorded else { return Vec::new() };
    let mut steps = Vec::new();
    if !recorded.empty && recorded.account.as_deref().is_some_and(|there| there != account) {
        steps.push(RouteStep::SetAside);
    }
    if recorded.leftovers.iter().any(|there| there.as_deref() == Some(account)) {
        steps.push(RouteStep::TakeBack);
    }
    steps
}

/// The name is wanted again while it is being taken down.
fn revive(removal: &UnderWay) -> Vec<RouteStep> {
    match removal.phase {
        Phase::InProgress => Vec::new(),
        Phase::Completed if removal.current => vec![RouteStep::FinishRemoval],
        Phase::Pending | Phase::Failed | Phase::Completed => vec![RouteStep::CancelRemoval],
    }
}

/// A removal goes on to its end, also where the name is wanted again but the removal alone knows what nobody recorded: it
/// would stand there for ever as somebody else's.
fn finish(facts: &RouteFacts, removal: &UnderWay) -> Vec<RouteStep> {
    match removal.phase {
        Phase::Completed if removal.current && removal.leftover => vec![RouteStep::FinishLeftover],
        Phase::Completed if removal.current => vec![RouteStep::FinishRemoval],
        Phase::Pending | Phase::Failed if removal.recredited => vec![RouteStep::RecreditRemoval],
        Phase::Pending if !removal.marked => vec![RouteStep::MarkRemovalPending],
        Phase::Failed if facts.drifted => vec![RouteStep::MarkRemovalPending],
        Phase::Pending | Phase::InProgress | Phase::Failed | Phase::Completed => Vec::new(),
    }
}

/// A task is under way: waits for it, collects it, or gives it what is wanted now.
fn follow(facts: &RouteFacts, task: &UnderWay, hash: Option<&str>) -> Vec<RouteStep> {
    let suits = hash.is_none_or(|hash| task.hash == hash) && task.suits_token;
    match task.phase {
        Phase::InProgress => Vec::new(),
        Phase::Completed if task.current => vec![RouteStep::Collect],
        Phase::Pending if suits && !task.marked => vec![RouteStep::MarkPending],
        Phase::Failed if suits && facts.drifted => vec![RouteStep::MarkPending],
        Phase::Pending | Phase::Failed | Phase::Completed if suits => Vec::new(),
        Phase::Pending | Phase::Failed | Phase::Completed if task.knows_more => {
            vec![RouteStep::Harvest, RouteStep::Requeue]
        }
        Phase::Pending | Phase::Failed | Phase::Completed => vec![RouteStep::Requeue],
    }
}

fn follow_leftovers(facts: &RouteFacts) -> Vec<RouteStep> {
    match &facts.removal {
        Some(removal) => match removal.phase {
            Phase::Completed if removal.current => vec![RouteStep::FinishLeftover],
            Phase::Pending | Phase::Failed if removal.recredited => vec![RouteStep::RecreditRemoval],
            Phase::Pending if !removal.marked => vec![RouteStep::MarkRemovalPending],
            Phase::Pending | Phase::InProgress | Phase::Completed | Phase::Failed => Vec::new(),
        },
        None if facts.recorded.as_ref().is_some_and(|one| !one.leftovers.is_empty()) => vec![RouteStep::QueueLeftover],
        None => Vec::new(),
    }
}

/// Nobody can tell what is wanted: what was done is recorded, and nothing new begins.
fn keep(facts: &RouteFacts) -> Vec<RouteStep> {
    match (&facts.task, &facts.removal) {
        (Some(task), _) if facts.lost && !(task.phase == Phase::Completed && task.current) => give_up(task),
        (Some(task), _) => follow(facts, &UnderWay { suits_token: true, ..task.clone() }, None),
        (None, Some(removal)) if removal.intends && !removal.leftover && !stands(facts) => finish(facts, removal),
        (None, Some(removal)) if !removal.leftover => revive(removal),
        (None, _) => follow_leftovers(facts),
    }
}

/// Whether something of the name is known to be at Cloudflare.
fn stands(facts: &RouteFacts) -> bool {
    facts.recorded.as_ref().is_some_and(|recorded| !recorded.empty)
}

/// A task is no longer wanted: what it knows is recorded, and what it may have made besides is looked for.
fn abandon(facts: &RouteFacts, task: &UnderWay) -> Vec<RouteStep> {
    if task.phase == Phase::InProgress {
        return Vec::new();
    }
    let mut steps: Vec<RouteStep> = task.knows_more.then_some(RouteStep::Harvest).into_iter().collect();
    let uncertain = task.intends && task.phase != Phase::Completed && facts.removal.is_none();
    steps.push(if uncertain { RouteStep::ConvertTask } else { RouteStep::DropTask });
    steps
}

/// Another route has the name: the task goes, and what it made stays recorded for the next name.
fn give_up(task: &UnderWay) -> Vec<RouteStep> {
    match task.phase {
        Phase::InProgress => Vec::new(),
        Phase::Pending | Phase::Failed | Phase::Completed if task.knows_more => {
            vec![RouteStep::Harvest, RouteStep::DropTask]
        }
        Phase::Pending | Phase::Failed | Phase::Completed => vec![RouteStep::DropTask],
    }
}

fn unpublish(facts: &RouteFacts) -> Vec<RouteStep> {
    if let Some(task) = &facts.task {
        return abandon(facts, task);
    }
    let forget = facts.recorded.as_ref().is_some_and(|recorded| recorded.forget);
    if let Some(removal) = &facts.removal {
        return match removal.phase {
            Phase::Pending | Phase::Failed | Phase::Completed if forget => {
                vec![RouteStep::CancelRemoval, RouteStep::Forget]
            }
            _ => finish(facts, removal),
        };
    }
    match &facts.recorded {
        None if facts.outputs_differ => vec![RouteStep::Outputs],
        None => Vec::new(),
        Some(recorded) if recorded.forget => vec![RouteStep::Forget],
        Some(recorded) if !recorded.empty => vec![RouteStep::BeginRemoval, RouteStep::QueueRemoval],
        Some(recorded) if !recorded.leftovers.is_empty() => vec![RouteStep::QueueLeftover],
        Some(_) => vec![RouteStep::Forget],
    }
}
