//! The lifecycle suite: what every kind must do, whatever it is. Each check gets a world of its own.
//!
//! Checks of objects that own something at Cloudflare are in `owned`, those of objects that only look in
//! `observed`. A check is a sentence that holds for a sample, or a panic that says where it does not.

mod adoption;
mod change;
mod crashes;
mod credentials;
mod deletion;
pub mod observed;
mod singleton;
mod throttling;

use futures::FutureExt as _;
use futures::future::LocalBoxFuture;

use crate::sample::{Observed, Owned, Single};
use crate::world::{Builder, World};

/// Whether a check did anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckOutcome {
    /// It held.
    Ran,
    /// The sample has nothing that it could be tried with.
    Nothing,
}

/// A check that came to its end ran.
impl From<()> for CheckOutcome {
    fn from((): ()) -> Self {
        Self::Ran
    }
}

/// How many checks ran, and how many had nothing to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckTally {
    /// Those that ran.
    pub ran: usize,
    /// Those whose sample had nothing to try.
    pub nothing: usize,
}

impl CheckTally {
    /// Counts one more.
    pub fn add(&mut self, outcome: CheckOutcome) {
        match outcome {
            CheckOutcome::Ran => self.ran += 1,
            CheckOutcome::Nothing => self.nothing += 1,
        }
    }
}

impl std::ops::AddAssign for CheckTally {
    fn add_assign(&mut self, other: Self) {
        self.ran += other.ran;
        self.nothing += other.nothing;
    }
}

/// A check: its name, and the check itself.
pub struct LifecycleCheck<S> {
    /// The sentence.
    pub name: &'static str,
    /// Runs it; the builder says on what.
    pub run: for<'a> fn(&'a Builder, &'a S) -> LocalBoxFuture<'a, CheckOutcome>,
}

macro_rules! checks {
    ($sample:ty: $($path:ident :: $name:ident),+ $(,)?) => {
        &[$(LifecycleCheck::<$sample> {
            name: stringify!($name),
            run: |builder, sample| Box::pin($path::$name(builder, sample).map(CheckOutcome::from)),
        }),+]
    };
}

/// What holds for every object that owns something at Cloudflare.
pub const OWNED: &[LifecycleCheck<Owned>] = checks![Owned:
    change::it_is_created_after_its_finalizer_and_says_so,
    change::at_rest_it_costs_no_write_over_ten_passes,
    change::drift_is_repaired_with_one_write,
    change::a_changed_spec_is_written_once,
    change::what_cannot_change_in_place_is_replaced,
    change::gone_remotely_it_is_made_again,
    deletion::it_goes_with_its_object,
    deletion::deleting_what_is_gone_already_succeeds,
    deletion::refused_deletes_keep_the_finalizer,
    deletion::orphaned_it_stays,
    throttling::too_many_requests_are_obeyed,
    throttling::a_lost_answer_makes_no_second_one,
    adoption::the_same_made_by_hand_is_taken_over_and_released,
    adoption::something_else_is_left_alone_until_adopted,
    adoption::foreign_marks_are_respected,
    adoption::of_two_that_want_the_same_the_older_has_it,
    credentials::missing_credentials_are_waited_for,
    credentials::refused_credentials_are_asked_rarely_and_at_once_when_changed,
    credentials::a_rotated_token_is_used_at_once,
];

/// What holds for every object that only looks.
pub const OBSERVED: &[LifecycleCheck<Observed>] = checks![Observed:
    observed::it_is_ready_once_what_it_looks_for_is_there,
    observed::at_rest_it_costs_no_write_over_ten_passes,
    observed::deleting_it_changes_nothing_at_cloudflare,
    observed::refused_credentials_are_said_and_forgotten_when_changed,
];

/// What holds for every object that changes what there is one of.
pub const SINGLE: &[LifecycleCheck<Single>] = checks![Single:
    singleton::only_what_is_mentioned_is_written,
    singleton::at_rest_it_costs_no_write_over_ten_passes,
    singleton::drift_is_put_right_with_one_write,
    singleton::what_is_not_mentioned_is_left_as_others_make_it,
    singleton::of_two_the_older_has_it,
    singleton::the_younger_has_it_once_the_older_is_gone,
    singleton::deletion_leaves_it_as_it_is,
    singleton::faults_pass,
    singleton::forbidden_it_says_so_and_goes_on_when_allowed,
];

pub use crashes::{ACTS, Act, crash_points};
pub use singleton::single_crash_points;

/// Ten passes and ten looks for drift over an object that is as wanted write nothing anywhere.
async fn ten_passes_write_nothing(world: &World, id: &str, label: &str) {
    for pass in 0..10 {
        world.cluster.annotate(id, "portolan.dev/reconcile-at", &pass.to_string()).await;
        world.settle().await;
        world.drift_pass().await;
        world.settle().await;
    }
    assert_eq!(world.writes(), [""; 0], "{label}");
    assert_eq!(world.cluster_writes(), [""; 0], "{label}");
}

/// A world in which the sample is settled.
pub(crate) async fn settled(builder: &Builder, sample: &Owned) -> World {
    let world = builder.clone().start().await;
    world.cluster.apply(&(sample.manifest)()).await;
    world.until_ready(&sample.id(), "True/Synced").await;
    world.settle().await;
    world.forget();
    world
}

/// What stands at Cloudflare for the sample.
pub(crate) fn remote(world: &World, sample: &Owned) -> serde_json::Value {
    let mut standing = sample.standing(world);
    assert_eq!(standing.len(), 1, "{}: one object stands for it: {standing:#?}", sample.label);
    standing.remove(0)
}

/// The id of what stands at Cloudflare for the sample.
pub(crate) fn remote_id(world: &World, sample: &Owned) -> String {
    remote(world, sample)["id"].as_str().unwrap_or_default().to_owned()
}
