//! What went wrong with a call, classified by HTTP status and numeric error codes. Texts decide only where Access has one code for
//! everything: 12130, whose text tells a limit from a bad body, and 9999 for an account without Access.

use std::{fmt, time::Duration};

use portolan_core::{Problem, reasons};

/// Access' code of every request that it does not take: a name outside of the account's active zones, an unknown tag or policy,
/// precedences that are not unique, a limit that is reached.
const ACCESS_REFUSED: u64 = 12130;
/// What Access says where an account has as many as it may have:
/// <https://developers.cloudflare.com/cloudflare-one/account-limits/>.
const ACCESS_FULL: &str = "maximum number of";
/// What Access says of a name that lies in no active zone of the account.
const OUTSIDE_OF_ZONES: &str = "domain does not belong to zone";
/// Code and text of an account that has no Zero Trust organisation; seen with status 403 and with 404.
const NOT_ENABLED: (u64, &str) = (9999, "access.api.error.not_enabled");
/// Codes of refusals because of a policy, group or token that is not there, or for reasons that only the text tells.
const MAY_NAME_MISSING: [u64; 3] = [11020, ACCESS_REFUSED, 12135];

/// Pause after a refusal by the rate limit that names none.
pub const RATE_LIMIT_PAUSE: Duration = Duration::from_secs(60);

/// What kind of answer it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// The object is not there.
    NotFound,
    /// Something with the same key is there already.
    Conflict,
    /// The credential is refused or lacks a permission.
    Auth,
    /// The request itself is wrong: nothing but another body helps.
    Validation,
    /// A limit of the account or plan leaves no room.
    Quota,
    /// Too many requests.
    RateLimit,
    /// It may work next time: 5xx, timeouts, broken connections, unreadable answers.
    Transient,
    /// Anything else.
    Unknown,
}

/// Whether the call may have changed something all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Surely not applied.
    None,
    /// May have been applied: look before repeating.
    Unknown,
}

/// A call that did not succeed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// Its class.
    pub class: ErrorClass,
    /// HTTP status, where an answer came.
    pub status: Option<u16>,
    /// Numeric codes of the answer, outermost first.
    pub codes: Vec<u64>,
    /// What the API said, without secrets, at most 512 characters.
    pub message: String,
    /// JSON pointers into the request that the answer blames, such as `/posts/3`.
    pub pointers: Vec<String>,
    /// Pause that the API asked for.
    pub retry_after: Option<Duration>,
    /// Whether it may have been applied.
    pub effect: Effect,
}

impl ApiError {
    /// A failure without an answer of the API.
    pub(crate) fn transient(message: impl Into<String>, effect: Effect) -> Self {
        Self {
            class: ErrorClass::Transient,
            status: None,
            codes: Vec::new(),
            message: message.into(),
            pointers: Vec::new(),
            retry_after: None,
            effect,
        }
    }

    /// A write that this process may not send.
    pub(crate) fn read_only() -> Self {
        Self {
            class: ErrorClass::Auth,
            ..Self::transient("this process only reads from Cloudflare, so the write was not sent", Effect::None)
        }
    }

    /// A write that whoever asked for it may not send any more.
    pub(crate) fn lapsed() -> Self {
        Self::transient("the right to write ran out before the write was sent", Effect::None)
    }

    /// Something known to be gone.
    pub(crate) fn gone(id: &str) -> Self {
        Self { class: ErrorClass::NotFound, ..Self::transient(format!("{id} is no longer there"), Effect::None) }
    }

    /// Whether the answer carries this code.
    pub fn has_code(&self, code: u64) -> bool {
        self.codes.contains(&code)
    }

    /// Whether the account has no Zero Trust organisation, so that there is no Access in it.
    pub fn is_access_not_enabled(&self) -> bool {
        self.has_code(NOT_ENABLED.0) && self.message.contains(NOT_ENABLED.1)
    }

    /// Whether Access refuses a name because no active zone of the account holds it.
    pub fn is_outside_of_zones(&self) -> bool {
        self.has_code(ACCESS_REFUSED) && self.message.contains(OUTSIDE_OF_ZONES)
    }

    /// Whether Access may have refused a body because something that it names is gone: only a fresh look can tell.
    pub fn may_name_missing(&self) -> bool {
        let undecided = matches!(self.class, ErrorClass::Validation | ErrorClass::NotFound);
        undecided && !self.is_outside_of_zones() && MAY_NAME_MISSING.iter().any(|code| self.has_code(*code))
    }

    /// The problem that a reconcile ends with; `doing` completes "Cloudflare refused …" (`"creating A www.example.com"`).
    pub fn problem(&self, doing: &str) -> Problem {
        let message = format!("{doing}: {self}");
        if self.is_access_not_enabled() {
            return Problem::denied(reasons::ZERO_TRUST_NOT_ENABLED, format!("{message}; {ENABLE_ZERO_TRUST}"));
        }
        match self.class {
            ErrorClass::Auth => Problem::denied(reasons::CREDENTIALS_DENIED, message),
            ErrorClass::Conflict => Problem::denied(reasons::CONFLICT_ERROR, message),
            ErrorClass::Quota => self.quota_exceeded(&message),
            ErrorClass::Validation => Problem::invalid(reasons::INVALID_CONFIG, message),
            ErrorClass::RateLimit => Problem::transient(reasons::RATE_LIMITED, message)
                .with_retry_after(self.retry_after.unwrap_or(RATE_LIMIT_PAUSE)),
            ErrorClass::NotFound => Problem::transient(reasons::NOT_FOUND, message),
            ErrorClass::Transient | ErrorClass::Unknown => self.api_error(message),
        }
    }

    /// Others may make room, and limits are raised, without a word: it is tried again without a change.
    fn quota_exceeded(&self, message: &str) -> Problem {
        let advice = "delete some that are not needed, or ask Cloudflare for a higher limit; it is tried again every five minutes";
        let problem = Problem::denied(reasons::QUOTA_EXCEEDED, format!("{message}; {advice}"));
        Problem { retry_after: self.retry_after, ..problem }
    }

    fn api_error(&self, message: String) -> Problem {
        let problem = Problem::transient(reasons::API_ERROR, message);
        match self.retry_after {
            Some(pause) => problem.with_retry_after(pause),
            None => problem,
        }
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ApiError {}

/// What somebody does whose account has no Zero Trust organisation.
pub const ENABLE_ZERO_TRUST: &str =
    "open Zero Trust in the Cloudflare dashboard (https://one.dash.cloudflare.com) and choose a team name and a plan";

/// The class of an answer. Statuses that say it all come first, since codes are only unique within a product of the API;
/// codes decide where the status is a plain success or refusal, and `text` where a code says nothing.
pub fn classify(status: u16, codes: &[u64], text: &str) -> ErrorClass {
    match status {
        429 => return ErrorClass::RateLimit,
        408 | 425 | 500..=599 => return ErrorClass::Transient,
        _ => {}
    }
    // Neither does the credential lack a right nor is an object known to be gone, whatever the status.
    if codes.contains(&NOT_ENABLED.0) && text.contains(NOT_ENABLED.1) {
        return ErrorClass::Unknown;
    }
    if codes.contains(&ACCESS_REFUSED) && text.contains(ACCESS_FULL) {
        return ErrorClass::Quota;
    }
    if let Some(class) = codes.iter().find_map(|code| by_code(*code)) {
        return class;
    }
    match status {
        401 | 403 => ErrorClass::Auth,
        404 | 410 => ErrorClass::NotFound,
        409 => ErrorClass::Conflict,
        400 | 413 | 414 | 415 | 422 => ErrorClass::Validation,
        _ => ErrorClass::Unknown,
    }
}

fn by_code(code: u64) -> Option<ErrorClass> {
    match code {
        // 7003: the path names an object that cannot exist.
        7003 | 10006 | 11021 | 81044 => Some(ErrorClass::NotFound),
        // DNS: A/AAAA/CNAME stand in each other's way, or the record is there; tunnel name; R2 bucket; Access application.
        81053..=81058 | 1013 | 10004 | 11010 => Some(ErrorClass::Conflict),
        ACCESS_REFUSED => Some(ErrorClass::Validation),
        // Bad or missing headers count as a bad credential: that is what they carry.
        6003 | 9103 | 9106 | 9109 | 10000 | 10001 => Some(ErrorClass::Auth),
        // Records of a zone; rules of a phase.
        81045 | 20021 => Some(ErrorClass::Quota),
        971 | 10429 => Some(ErrorClass::RateLimit),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use portolan_core::Class;

    #[test]
    fn status_and_code_name_the_class() {
        let cases = [
            (404, vec![], ErrorClass::NotFound),
            (400, vec![81044], ErrorClass::NotFound),
            (404, vec![11021], ErrorClass::NotFound),
            (409, vec![], ErrorClass::Conflict),
            (400, vec![81057], ErrorClass::Conflict),
            (400, vec![81058], ErrorClass::Conflict),
            (400, vec![1013], ErrorClass::Conflict),
            (400, vec![81053], ErrorClass::Conflict),
            (400, vec![81054], ErrorClass::Conflict),
            (409, vec![11010], ErrorClass::Conflict),
            (400, vec![11010], ErrorClass::Conflict),
            (400, vec![12130], ErrorClass::Validation),
            (403, vec![9109], ErrorClass::Auth),
            (401, vec![], ErrorClass::Auth),
            (403, vec![10000], ErrorClass::Auth),
            (400, vec![6003], ErrorClass::Auth),
            (200, vec![9109], ErrorClass::Auth),
            (400, vec![9005], ErrorClass::Validation),
            (422, vec![], ErrorClass::Validation),
            (400, vec![81045], ErrorClass::Quota),
            (404, vec![12135], ErrorClass::NotFound),
            (400, vec![12139], ErrorClass::Validation),
            (429, vec![10000], ErrorClass::RateLimit),
            (400, vec![971], ErrorClass::RateLimit),
            (503, vec![], ErrorClass::Transient),
            (418, vec![], ErrorClass::Unknown),
        ];
        for (status, codes, class) in cases {
            assert_eq!(classify(status, &codes, ""), class, "{status} {codes:?}");
        }
    }

    fn refused(status: u16, code: u64, message: &str) -> ApiError {
        let class = classify(status, &[code], message);
        ApiError { class, status: Some(status), codes: vec![code], ..ApiError::transient(message, Effect::None) }
    }

    #[test]
    fn texts_tell_the_refusals_of_access_apart() {
        let of = |text: &str| refused(400, 12130, &format!("access.api.error.invalid_request: {text}"));

        let full = of("maximum number of applications has been reached");
        assert_eq!((full.class, full.may_name_missing()), (ErrorClass::Quota, false));
        let outside = of("domain does not belong to zone");
        assert!(outside.is_outside_of_zones() && !outside.may_name_missing());
        assert_eq!(outside.class, ErrorClass::Validation);
        let tag = of("tags contain a tag that does not exist");
        assert_eq!((tag.class, tag.may_name_missing()), (ErrorClass::Validation, true));
        assert!(!refused(400, 9005, "maximum number of things").may_name_missing());
        assert_eq!(refused(400, 9005, "maximum number of things").class, ErrorClass::Validation);
    }

    #[test]
    fn an_account_without_access_is_neither_a_bad_token_nor_an_empty_collection() {
        for status in [400, 403, 404] {
            let error = refused(status, 9999, "access.api.error.not_enabled: Access is not enabled.");

            assert_eq!(error.class, ErrorClass::Unknown, "{status}");
            let problem = error.problem("listing Access applications");
            assert_eq!((problem.class, problem.reason), (Class::Denied, reasons::ZERO_TRUST_NOT_ENABLED));
            assert!(problem.message.contains("choose a team name"), "{}", problem.message);
        }
        assert_eq!(refused(403, 9999, "something else").class, ErrorClass::Auth);
    }

    #[test]
    fn a_server_error_is_transient_whatever_code_it_carries() {
        assert_eq!(classify(500, &[81044], ""), ErrorClass::Transient);
    }

    #[test]
    fn a_rate_limit_becomes_a_transient_problem_with_its_pause() {
        let error = ApiError { class: ErrorClass::RateLimit, ..ApiError::transient("slow down", Effect::None) };

        let problem = error.problem("listing records of example.com");

        assert_eq!((problem.class, problem.retry_after), (Class::Transient, Some(RATE_LIMIT_PAUSE)));
        assert_eq!(problem.message, "listing records of example.com: slow down");
    }

    #[test]
    fn a_refused_body_waits_for_the_user_and_a_refused_token_is_tried_slowly() {
        let of = |class| ApiError { class, ..ApiError::transient("no", Effect::None) }.problem("x").class;

        assert_eq!(of(ErrorClass::Validation), Class::Invalid);
        assert_eq!(of(ErrorClass::Auth), Class::Denied);
        assert_eq!(of(ErrorClass::Conflict), Class::Denied);
    }
}
