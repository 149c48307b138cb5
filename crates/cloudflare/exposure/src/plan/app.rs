//! The Access application and its policies: names resolved, the application found or made, everything else refused.

use portolan_cloudflare_api::Entry;
use portolan_core::{Action, Change, Notice, Problem, reasons as core_reasons};
use portolan_publication::{Intent, reasons};
use serde_json::json;

use super::Planner;
use crate::app::{App, AppDifference, AppWish, Made, Policies, policy_shown};
use crate::changes;
use crate::inventory::AppHeld;
use crate::live::Live;
use crate::plan_context::PlanContext;
use crate::quota::Counted;
use crate::step::{ExposureStep, Work};

/// What stands for the name.
pub(super) enum AppMatch {
    /// No application is wanted.
    Unwanted,
    /// There is none yet.
    New,
    /// It is ours, or becomes ours.
    Found { entry: Entry<App>, adopted: bool, taken: bool },
}

impl AppMatch {
    /// Whether the application still stands for another name, and follows.
    pub(super) fn follows(&self, name: &str) -> bool {
        match self {
            Self::Found { entry, .. } => entry.item.domain() != name,
            Self::Unwanted | Self::New => false,
        }
    }
}

impl Planner<'_> {
    /// The wanted application, names of policies and groups resolved.
    pub(super) fn app_wish(&mut self) -> Result<Option<AppWish>, Problem> {
        portolan_core::waypoint!();
        let Some(access) = &self.desired.access else { return Ok(None) };
        let own = self.own_wishes(access)?;
        let theirs = self.linked_policies(access)?;
        let policies = if theirs.is_empty() { Policies::Inline(own) } else { Policies::Linked { theirs, own } };
        Ok(Some(AppWish {
            hostname: self.hostname().clone(),
            name: access.name.clone(),
            settings: access.settings.clone(),
            policies,
            // Whoever finds one that stands knows better; one that is made is ours.
            adopted: false,
        }))
    }

    /// Finds the application of the name, or refuses.
    pub(super) fn app(&mut self, wish: Option<&AppWish>) -> Result<AppMatch, Problem> {
        self.find_app();
        let Some(wish) = wish else { return Ok(AppMatch::Unwanted) };
        self.choose_app();
        let here: Vec<&Entry<App>> = self.live.apps.iter().filter(|entry| entry.item.domain() == self.name()).collect();
        if let Some(held) = &self.held.app {
            if let Some(other) = here.iter().find(|entry| entry.id != held.id) {
                return Err(conflict(other));
            }
            let entry = self.live.app(&held.id).cloned();
            return Ok(entry.map_or(AppMatch::New, |entry| AppMatch::Found {
                entry,
                adopted: held.adopted,
                taken: false,
            }));
        }
        match here.first() {
            None => {
                self.check_room(Counted::Apps)?;
                Ok(AppMatch::New)
            }
            Some(entry) => self.take_app(wish, entry),
        }
    }

    /// A recorded application that is gone, or that somebody pointed elsewhere, is forgotten; one that an earlier attempt
    /// made for another name is ours.
    fn find_app(&mut self) {
        let live = self.live;
        self.held
            .old_apps
            .retain(|app| live.app(&app.id).is_some_and(|entry| Some(entry.item.domain()) == app.hostname));
        let Some(held) = &self.held.app else {
            // One that stands at the wanted name is judged when it is taken.
            let here = self.live.apps.iter().any(|entry| entry.item.domain() == self.name());
            let judged = here && self.desired.access.is_some();
            let unrecorded = unrecorded_app(self.live, self.context).next().filter(|_| !judged);
            self.held.app = unrecorded.map(|entry| AppHeld {
                id: entry.id.clone(),
                hostname: Some(entry.item.domain()),
                policy_ids: Vec::new(),
                adopted: false,
            });
            return;
        };
        let domain = self.live.app(&held.id).map(|entry| entry.item.domain());
        let known = |domain: &String| {
            held.hostname.as_ref().is_none_or(|name| name == domain)
                || domain == self.name()
                || self.names.contains(domain)
        };
        match domain {
            Some(domain) if known(&domain) => {
                if let Some(held) = &mut self.held.app {
                    held.hostname = Some(domain);
                }
            }
            Some(domain) => {
                self.notices.push(Notice::warning(
                    core_reasons::RELEASED,
                    format!("the Access application {} now stands for {domain}; it is no longer managed", held.id),
                ));
                self.held.app = None;
            }
            None => self.held.app = None,
        }
    }

    /// An application that stands at the name already is the one. One that stands for another name follows the name, unless
    /// the new name is open: then it gets an application of its own at once, and the other goes with the name that it
    /// protects. One that existed before us never follows: whoever made it still protects the other name with it.
    fn choose_app(&mut self) {
        let name = self.name();
        let at = |app: &AppHeld| app.hostname.as_deref() == Some(name);
        if let Some(index) = self.held.old_apps.iter().position(at) {
            let here = self.held.old_apps.remove(index);
            let other = self.held.app.replace(here);
            self.held.old_apps.extend(other);
        } else if self.held.app.as_ref().is_some_and(|app| !at(app) && (app.adopted || self.held.publishes(name))) {
            let other = self.held.app.take();
            self.held.old_apps.extend(other);
        }
    }

    fn take_app(&mut self, wish: &AppWish, entry: &Entry<App>) -> Result<AppMatch, Problem> {
        let elsewhere = self.context.elsewhere.app_ids.contains(&entry.id);
        let intended = unrecorded_app(self.live, self.context).any(|unrecorded| unrecorded.id == entry.id);
        let made = Made { token_id: self.held.token.as_ref().map(|token| token.id.as_str()), own_ids: &[] };
        let equal = || wish.difference(&entry.item, made) == AppDifference::None;
        let adopted = match (elsewhere, intended) {
            (false, true) => false,
            (false, false) if self.desired.adopt || equal() => true,
            (true, _) | (false, false) => return Err(conflict(entry)),
        };
        if adopted {
            self.notices.push(Notice::normal(
                core_reasons::ADOPTED,
                format!(
                    "the Access application {} existed already and is now managed; it will not be deleted",
                    entry.item.domain()
                ),
            ));
        }
        self.held.app = Some(AppHeld {
            id: entry.id.clone(),
            hostname: Some(entry.item.domain()),
            policy_ids: Vec::new(),
            adopted,
        });
        Ok(AppMatch::Found { entry: entry.clone(), adopted, taken: adopted })
    }

    /// A name that is open today and shall be protected is closed at once; what its policies need is made afterwards.
    pub(super) fn early_app(&self, app: &AppMatch, wish: Option<&AppWish>, waits: bool) -> Option<ExposureStep> {
        let wish = wish?;
        if !matches!(app, AppMatch::New) || !waits || !self.held.publishes(self.name()) {
            return None;
        }
        let closed = wish.closed();
        let after = closed.create(Made::default());
        let change = Change::create(changes::app(self.account(), self.name(), None), after, "the name is open");
        Some(ExposureStep::new(change, Work::CreateApp { wish: closed }))
    }

    pub(super) fn app_steps(
        &mut self,
        app: AppMatch,
        wish: Option<&AppWish>,
        early: bool,
        own_ids: &[Option<String>],
    ) -> Option<ExposureStep> {
        let wish = wish?;
        let token_id = self.held.token.as_ref().map(|token| token.id.clone());
        let known: Vec<String> = own_ids.iter().map(|id| id.clone().unwrap_or_else(|| "(new)".to_owned())).collect();
        let made = Made { token_id: token_id.as_deref(), own_ids: &known };
        let target = |id: Option<&str>| changes::app(self.account(), self.name(), id);
        match app {
            AppMatch::Unwanted => None,
            AppMatch::New if early => {
                let change = Change::update(target(None), json!({"policies": "(closed)"}), wish.create(made), "");
                let work = Work::UpdateApp { id: String::new(), found: None, wish: wish.clone() };
                Some(ExposureStep::new(change, work))
            }
            AppMatch::New => {
                let change = Change::create(target(None), wish.create(made), "");
                Some(ExposureStep::new(change, Work::CreateApp { wish: wish.clone() }))
            }
            AppMatch::Found { entry, adopted, taken } => {
                let wish = AppWish { adopted, ..wish.clone() };
                let difference = wish.difference(&entry.item, made);
                let target = target(Some(&entry.id));
                let action = if taken { Action::Adopt } else { Action::Update };
                self.app_update(entry, wish, difference, made).map(|(before, after, work)| {
                    ExposureStep::new(Change::update(target, before, after, "").as_action(action), work)
                })
            }
        }
    }

    /// The look at an application of which nothing has to be written: before the name is published, and before one that
    /// nobody recorded counts as the name's.
    pub(super) fn confirmation(&self, app: &AppMatch, wish: Option<&AppWish>, publishes: bool) -> Option<ExposureStep> {
        let AppMatch::Found { entry, adopted, taken } = app else { return None };
        if !publishes && self.recorded_app.as_ref() == Some(&entry.id) {
            return None;
        }
        let wish = AppWish { adopted: *adopted, ..wish?.clone() };
        Some(ExposureStep { changes: Vec::new(), work: Work::ConfirmApp { id: entry.id.clone(), wish, taken: *taken } })
    }

    /// What is written to an application that stands; nothing where it is as wanted.
    fn app_update(
        &mut self,
        entry: Entry<App>,
        wish: AppWish,
        difference: AppDifference,
        made: Made<'_>,
    ) -> Option<(serde_json::Value, serde_json::Value, Work)> {
        match difference {
            AppDifference::None => {
                if let Some(held) = &mut self.held.app {
                    held.policy_ids = match &wish.policies {
                        Policies::Inline(_) => wish.inline_ids(&entry.item.policies()).unwrap_or_default(),
                        Policies::Linked { .. } => made.own_ids.to_vec(),
                    };
                }
                None
            }
            AppDifference::Policy { id, body } => {
                let before = entry.item.policies().iter().find(|policy| policy["id"] == id.as_str()).map(policy_shown);
                let mut after = body.clone();
                after["id"] = json!(id);
                let work = Work::UpdateApp { id: entry.id, found: Some(entry.item), wish };
                Some((before.unwrap_or_default(), after, work))
            }
            AppDifference::App => {
                let after = wish.update(&entry.item, made);
                let before = entry.item.shown();
                Some((before, after, Work::UpdateApp { id: entry.id, found: Some(entry.item), wish }))
            }
        }
    }
}

/// Applications that an earlier attempt made without recording them.
pub(crate) fn unrecorded_app<'a>(live: &'a Live, context: &'a PlanContext) -> impl Iterator<Item = &'a Entry<App>> {
    let ours = |entry: &&Entry<App>, intent: &Intent| {
        intent.hostnames.contains(&entry.item.domain())
            && intent.apps.contains(entry.item.name())
            && entry.item.is_made_since(intent.since)
            && !context.elsewhere.app_ids.contains(&entry.id)
    };
    live.apps.iter().filter(move |entry| context.intent.as_ref().is_some_and(|intent| ours(entry, intent)))
}

fn conflict(entry: &Entry<App>) -> Problem {
    let name = entry.item.name();
    Problem::denied(
        reasons::ACCESS_APP_CONFLICT,
        format!(
            "the Access application {name:?} (id {}) stands for {} and is not managed here; remove it, or say adopt: \"true\" to take it over",
            entry.id,
            entry.item.domain()
        ),
    )
}
