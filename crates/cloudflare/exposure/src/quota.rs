//! What is counted of a publication: a refusal for want of room → the problem of others who ask for more, and a limit that
//! comes near → a sentence for the user.

use portolan_cloudflare_api::{ApiError, NearlyFull};
use portolan_core::{Notice, Problem, reasons as core_reasons};

/// Something of which an account, a zone or an application may have only so many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Counted {
    /// Access applications of an account.
    Apps,
    /// Service tokens of an account.
    Tokens,
    /// Reusable Access policies of an account.
    Policies,
    /// DNS records of a zone.
    Records,
    /// Domains of an Access application.
    Domains,
}

impl Counted {
    /// How users call them.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Apps => "Access applications",
            Self::Tokens => "service tokens",
            Self::Policies => "reusable Access policies",
            Self::Records => "DNS records",
            Self::Domains => "domains",
        }
    }

    /// Who has them.
    fn owner(self) -> &'static str {
        match self {
            Self::Apps | Self::Tokens | Self::Policies => "the account",
            Self::Records => "the zone",
            Self::Domains => "the Access application",
        }
    }
}

/// What somebody is told who would ask for more while a refusal still holds.
pub(crate) fn exceeded(what: Counted, refusal: &ApiError) -> Problem {
    refusal.problem(&format!("{} may not have more {}", what.owner(), what.noun()))
}

/// What somebody is told whose object brought the limit near.
pub(crate) fn nearly_reached(what: Counted, near: NearlyFull) -> Notice {
    let NearlyFull { used, limit } = near;
    let message = format!(
        "{} has {used} {}, and may have {limit} as far as known: delete some that are not needed, ask Cloudflare for a higher limit, or tell of one that it granted with --cloudflare-limits",
        what.owner(),
        what.noun()
    );
    Notice::warning(core_reasons::QUOTA_NEARLY_REACHED, message)
}
