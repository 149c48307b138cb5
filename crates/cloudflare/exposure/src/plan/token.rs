//! The service token: made once, given a new secret when the old one is lost or a user asks, kept alive.

use portolan_cloudflare_api::Entry;
use portolan_core::{Action, Change, Mark, Notice, Problem};
use portolan_publication::{Part, Rotate, Token, reasons};
use serde_json::json;

use super::Planner;
use crate::changes;
use crate::inventory::TokenHeld;
use crate::live::Live;
use crate::plan_context::PlanContext;
use crate::policy::{NAME_LIMIT, is_marked};
use crate::quota::Counted;
use crate::step::{ExposureStep, Work};
use crate::token::ServiceToken;

impl Planner<'_> {
    pub(super) fn token(&mut self) -> Result<Vec<ExposureStep>, Problem> {
        portolan_core::waypoint!();
        if self.held.token.as_ref().is_some_and(|held| self.live.token(&held.id).is_none()) {
            self.held.token = None;
        }
        let Some(wanted) = &self.desired.token else {
            self.find_unwanted_token();
            return Ok(Vec::new());
        };
        let recorded = self.held.token.clone().and_then(|held| self.live.token(&held.id).map(|entry| (held, entry)));
        match (recorded, unrecorded_token(self.live, self.context, &self.desired.mark)) {
            (Some((held, entry)), _) => Ok(self.keep_token(wanted, &held, entry)),
            (None, Some(entry)) => Ok(self.take_token(wanted, entry)),
            (None, None) => self.create_token(wanted),
        }
    }

    /// A token that an earlier attempt made has to go, where none is wanted any more.
    fn find_unwanted_token(&mut self) {
        if self.held.token.is_some() {
            return;
        }
        if let Some(entry) = unrecorded_token(self.live, self.context, &self.desired.mark) {
            let client_id = entry.item.client_id.clone();
            self.held.token = Some(TokenHeld { id: entry.id.clone(), client_id, rotation: None, adopted: false });
        }
    }

    fn create_token(&mut self, wanted: &Token) -> Result<Vec<ExposureStep>, Problem> {
        self.check_room(Counted::Tokens)?;
        self.notices.extend(self.unclaimed(wanted));
        let target = changes::token(self.account(), &wanted.name, None);
        let change = Change::create(target, changes::token_shown(&wanted.name, &wanted.duration), "");
        let work = Work::CreateToken {
            name: self.desired.mark.write(&wanted.name, NAME_LIMIT),
            duration: wanted.duration.clone(),
            rotation: request(wanted),
        };
        Ok(vec![ExposureStep::new(change, work)])
    }

    /// A token that is made in this run loses the mark once it is recorded, and the name is live.
    pub(super) fn name_token(&self, made: &[ExposureStep]) -> Option<ExposureStep> {
        let wanted = self.desired.token.as_ref()?;
        let (name, duration) = (wanted.name.clone(), wanted.duration.clone());
        let makes = |step: &ExposureStep| matches!(step.work, Work::CreateToken { .. });
        let work = Work::UpdateToken { id: String::new(), name, duration };
        made.iter().any(makes).then_some(ExposureStep { changes: Vec::new(), work })
    }

    /// Tells of a token that may be left from an earlier attempt, or be another cluster's: it is left alone.
    fn unclaimed(&self, wanted: &Token) -> Option<Notice> {
        let intent = self.context.intent.as_ref()?;
        let mut tokens = self.live.tokens.iter();
        let left = tokens.find(|entry| {
            entry.item.name == wanted.name
                && entry.item.is_made_since(intent.since)
                && !self.context.elsewhere.token_ids.contains(&entry.id)
        })?;
        let message = format!(
            "the account has another service token {:?} (id {}), of which nobody here knows whose it is; it is left alone, delete it if nobody uses it",
            wanted.name, left.id
        );
        Some(Notice::warning(reasons::SERVICE_TOKEN_UNCLAIMED, message))
    }

    /// Its secret was shown to nobody who kept it.
    fn take_token(&mut self, wanted: &Token, entry: &Entry<ServiceToken>) -> Vec<ExposureStep> {
        let held = TokenHeld {
            id: entry.id.clone(),
            client_id: entry.item.client_id.clone(),
            rotation: request(wanted),
            adopted: false,
        };
        let step = self.rotate(wanted, &held, None, "an earlier attempt made it, and its secret is lost");
        self.held.token = Some(held);
        let mut steps = vec![step];
        steps.extend(self.token_lives(wanted, entry));
        steps
    }

    fn keep_token(&mut self, wanted: &Token, held: &TokenHeld, entry: &Entry<ServiceToken>) -> Vec<ExposureStep> {
        if let Some(token) = &mut self.held.token {
            token.client_id = entry.item.client_id.clone().or(token.client_id.take());
        }
        let asked = wanted.rotate.as_ref().filter(|rotate| held.rotation.as_ref() != Some(&rotate.request));
        let mut steps = Vec::new();
        match asked {
            _ if !self.context.secret_present => steps.push(self.rotate(wanted, held, None, "its secret is lost")),
            Some(asked) => steps.push(self.rotate(wanted, held, Some(asked), "a new secret was asked for")),
            None => {}
        }
        steps.extend(self.token_lives(wanted, entry));
        steps
    }

    fn rotate(&self, wanted: &Token, held: &TokenHeld, asked: Option<&Rotate>, why: &str) -> ExposureStep {
        let keep_until = asked.and_then(|rotate| {
            let overlap = jiff::SignedDuration::try_from(rotate.overlap).ok().filter(|overlap| !overlap.is_zero())?;
            self.context.now.checked_add(overlap).ok()
        });
        let target = changes::token(self.account(), &wanted.name, Some(&held.id));
        let change = Change::update(target, json!({"client_secret": "(old)"}), json!({"client_secret": "(new)"}), why);
        let rotation = request(wanted).or_else(|| held.rotation.clone());
        ExposureStep::new(change, Work::RotateToken { id: held.id.clone(), keep_until, rotation })
    }

    fn token_lives(&self, wanted: &Token, entry: &Entry<ServiceToken>) -> Option<ExposureStep> {
        let target = changes::token(self.account(), &wanted.name, Some(&entry.id));
        let shown = |duration: &str| changes::token_shown(&wanted.name, duration);
        let before = entry.item.duration.as_deref().unwrap_or_default();
        let same = entry.item.has_duration(&wanted.duration);
        if !same || entry.item.name != wanted.name {
            let change = Change::update(target, shown(before), shown(&wanted.duration), "");
            let work = Work::UpdateToken {
                id: entry.id.clone(),
                name: wanted.name.clone(),
                duration: wanted.duration.clone(),
            };
            return Some(ExposureStep::new(change, work));
        }
        entry.item.ends_soon(self.context.now).then(|| {
            let before = json!({"expires_at": entry.item.expires_at});
            let change = Change::update(target, before, json!({"expires_at": "(later)"}), "it ends soon");
            ExposureStep::new(change, Work::RefreshToken { id: entry.id.clone() })
        })
    }

    /// Removing the token, once no policy names it any more.
    pub(super) fn remove_token(&mut self) -> Option<ExposureStep> {
        if self.desired.token.is_some() {
            return None;
        }
        let held = self.held.token.clone()?;
        if held.adopted {
            self.notices.push(super::released(Part::Token, &held.id));
            self.held.token = None;
            return None;
        }
        let entry = self.live.token(&held.id)?;
        Some(token_gone(self.account(), entry, "no longer wanted"))
    }
}

/// A token that an earlier attempt made without recording it: it still carries our mark, which no other cluster writes. Times
/// tell nothing here: clocks differ, and somebody else may make a token of the same name at any moment.
pub(crate) fn unrecorded_token<'a>(
    live: &'a Live,
    context: &PlanContext,
    mark: &Mark,
) -> Option<&'a Entry<ServiceToken>> {
    let free = |entry: &&Entry<ServiceToken>| !context.elsewhere.token_ids.contains(&entry.id);
    let marked = |entry: &&Entry<ServiceToken>| is_marked(&entry.item.name, mark);
    let older = |entry: &&Entry<ServiceToken>| {
        let intent = context.intent.as_ref();
        intent.is_some_and(|intent| {
            intent.older_token.as_ref() == Some(&entry.item.name) && entry.item.is_made_since(intent.since)
        })
    };
    let mut free = live.tokens.iter().filter(free);
    free.clone().find(marked).or_else(|| free.find(older))
}

fn request(wanted: &Token) -> Option<String> {
    wanted.rotate.as_ref().map(|rotate| rotate.request.clone())
}

pub(crate) fn token_gone(account_id: &str, entry: &Entry<ServiceToken>, why: &str) -> ExposureStep {
    let target = changes::token(account_id, &entry.item.name, Some(&entry.id));
    let before = changes::token_shown(&entry.item.name, entry.item.duration.as_deref().unwrap_or_default());
    ExposureStep::new(Change::delete(target, before, why), Work::DeleteToken { id: entry.id.clone() })
}

/// Tells that something which existed before us stays.
pub(crate) fn released(part: Part, id: &str) -> Notice {
    let noun = match part {
        Part::Rule => "tunnel rule",
        Part::Record => "DNS record",
        Part::App => "Access application",
        Part::Token => "service token",
        Part::Redirect => "redirect rule",
    };
    Notice::normal(
        portolan_core::reasons::RELEASED,
        format!(
            "the {noun} {id} existed before it was managed; it stays, and is no longer managed ({})",
            Action::Release.as_str()
        ),
    )
}
