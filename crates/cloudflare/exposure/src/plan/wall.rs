//! Whether the rule of a protected name makes the tunnel's client ask for the application's token.

use portolan_core::{Notice, Problem};
use portolan_publication::reasons;

use super::Planner;
use super::app::AppMatch;
use crate::app::{App, AppWish, Policies};
use crate::wall::Wall;

impl Planner<'_> {
    /// What the rule asks of requests. Refuses a wildcard that was not published before and would be open below the depths
    /// that an application can name.
    pub(super) fn wall(&mut self, wish: Option<&AppWish>, app: &AppMatch) -> Result<Wall, Problem> {
        portolan_core::waypoint!();
        let Some(wish) = wish.filter(|_| self.desired.rule.is_some()) else { return Ok(Wall::Open) };
        let found = match app {
            AppMatch::Found { entry, .. } => Some(&entry.item),
            AppMatch::New | AppMatch::Unwanted => None,
        };
        if let Some(why) = self.passes_without_token(wish, found) {
            self.notices.push(impossible(self.name(), &why));
            return Ok(Wall::Open);
        }
        let audience = found.and_then(App::audience).map(str::to_owned);
        match &self.live.team {
            Some(team) if found.is_none() || audience.is_some() => Ok(Wall::Team { team: team.clone(), audience }),
            _ if self.hostname().is_wildcard() && !self.stood => Err(open_below(self.name())),
            _ => {
                self.notices.push(unavailable(self.name()));
                Ok(Wall::Kept { audience })
            }
        }
    }

    /// Why some requests reach the tunnel without a token though Access let them pass.
    fn passes_without_token(&self, wish: &AppWish, found: Option<&App>) -> Option<String> {
        if wish.bypasses_preflights(found) {
            return Some("preflights pass unasked".to_owned());
        }
        let Policies::Linked { theirs, .. } = &wish.policies else { return None };
        let linked = self.live.policies.iter().filter(|entry| theirs.contains(&entry.id));
        let bypass = linked.into_iter().find(|entry| entry.item.is_bypass())?;
        Some(format!("the reusable policy {:?} lets some pass unasked", bypass.item.name()))
    }
}

fn impossible(hostname: &str, why: &str) -> Notice {
    let message =
        format!("the tunnel does not ask for a token of Access at {hostname}: {why}, and such requests carry none");
    Notice::warning(reasons::SECOND_WALL_IMPOSSIBLE, message)
}

pub(crate) fn unavailable(hostname: &str) -> Notice {
    let message = format!(
        "the tunnel does not ask for a token of Access at {hostname}: {UNREADABLE}; Access alone protects the name"
    );
    Notice::warning(reasons::SECOND_WALL_UNAVAILABLE, message)
}

pub(crate) fn open_below(hostname: &str) -> Problem {
    let message = format!(
        "an application names four depths of a wildcard; below them {hostname} would be open, and {UNREADABLE}, so that the tunnel cannot ask for a token of Access"
    );
    Problem::denied(reasons::PROTECTION_IMPOSSIBLE, message)
}

const UNREADABLE: &str = "the team's name cannot be read (the API token needs Access: Organizations, Identity Providers, and Groups · Read, and the account a Zero Trust organization)";
