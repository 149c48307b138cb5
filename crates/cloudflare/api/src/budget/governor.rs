//! When the next request of a credential may go out: a pure state machine, time is an argument.
//!
//! The API grants a quota of requests in a window (1,200 in 300 s) to everybody who uses the credential together, and tells
//! in each answer what is left. Three things are known here: what is left, what is in flight, and what others spend: the drop
//! between two answers beyond our own requests, which is expected to go on until the reset.
//!
//! - While more than half of our share (the quota without what others take) is left, nothing waits.
//! - Below that, requests are spaced, more and more the less is left, so that the rest lasts until the reset.
//! - The last tenth is held back. Since what is unspent at the reset is lost, the last fifth of a window releases it down to
//!   what others are expected to take until the reset plus a margin (2 % of the quota; their largest burst, if larger, until
//!   the last seconds).
//! - Drift takes at most 30 % of the share in a window. Protection is not spaced, but held back like the rest.
//! - After a refusal (429) nothing goes out before the pause it names, or 60 s.
//! - At the start, after a reset and after a refusal nothing is known: a few requests go out to ask, the rest wait for the
//!   first answer.
//! - Answers without headers: our own requests are counted in a sliding window.
//! - An API whose window slides (what is left does not jump up at the reset it told, or rises before) has no end of a window
//!   to wait for: the last tenth stays, spacing is that of an even spread, and one request in five seconds asks.

use std::{collections::VecDeque, time::Duration};

use crate::budget::rotation::DriftShare;
use crate::call::error::RATE_LIMIT_PAUSE;
use crate::call::headers::BudgetHeaders;

mod others;
#[cfg(test)]
mod tests;

use others::Others;

/// What a request is for; earlier ones go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// Security, and deletes of what is exposed.
    Protect,
    /// What users changed.
    Change,
    /// Looking for changes made elsewhere.
    Drift,
}

impl Lane {
    /// As a metric label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Protect => "protect",
            Self::Change => "change",
            Self::Drift => "drift",
        }
    }
}

/// A quota of requests and the window it is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Requests.
    pub quota: u32,
    /// Time.
    pub window: Duration,
}

impl Default for Limit {
    fn default() -> Self {
        Self { quota: 1_200, window: Duration::from_secs(300) }
    }
}

/// What is left of the budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Requests in a window.
    pub limit: u32,
    /// Requests left, as far as known.
    pub left: u32,
    /// Time until the window ends.
    pub resets_in: Duration,
}

/// Whether a request may go now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may.
    Go,
    /// Not before this time; ask again then, or when an answer came.
    Wait(Duration),
}

#[derive(Clone, Copy, Debug)]
struct BudgetReport {
    left: f64,
    at: Duration,
    resets_at: Duration,
}

#[derive(Clone, Copy, Debug)]
enum BudgetView {
    Unknown,
    Reported(BudgetReport),
    Counting,
}

/// The state of one credential's budget. Times are since any fixed moment.
#[derive(Debug)]
pub struct Governor {
    limit: Limit,
    view: BudgetView,
    own: VecDeque<Duration>,
    drift: VecDeque<Duration>,
    others: Others,
    /// What was left when the last window ended.
    ended: Option<f64>,
    sliding: bool,
    /// The last answer was a refusal.
    refused: bool,
    in_flight: u32,
    blocked_until: Duration,
    last_grant: Option<Duration>,
}

/// Requests that may ask at once while nothing is known.
const QUESTIONS: u32 = 4;
/// The part that is held back.
const RESERVE: f64 = 0.1;
/// The part of a window at whose end the reserve is released.
const RELEASE: f64 = 0.2;
/// What stays beyond the expected use by others, of the quota.
const MARGIN: f64 = 0.02;
/// So near to the reset no burst of others is expected any more.
const LAST_SECONDS: Duration = Duration::from_secs(4);
/// Drift's part of our share.
const DRIFT: f64 = 0.3;
/// Longest spacing: without answers nothing is learnt.
const LONGEST_SPACING: Duration = Duration::from_secs(5);
/// Resets are told in whole seconds.
const ROUNDING: Duration = Duration::from_secs(1);

impl Governor {
    /// A governor that knows nothing yet.
    pub fn new(limit: Limit) -> Self {
        Self {
            limit,
            view: BudgetView::Unknown,
            own: VecDeque::new(),
            drift: VecDeque::new(),
            others: Others::default(),
            ended: None,
            sliding: false,
            refused: false,
            in_flight: 0,
            blocked_until: Duration::ZERO,
            last_grant: None,
        }
    }

    /// Whether a request of `lane` may go at `now`. Changes nothing but forgets what is over.
    pub fn decide(&mut self, now: Duration, lane: Lane) -> Decision {
        portolan_core::waypoint!();
        self.forget(now);
        if now < self.blocked_until {
            return Decision::Wait(self.blocked_until);
        }
        if let (Lane::Drift, Some(until)) = (lane, self.drift_spent()) {
            return Decision::Wait(until);
        }
        match self.view {
            BudgetView::Unknown => self.ask(now),
            BudgetView::Reported(report) => self.by_report(now, lane, report),
            BudgetView::Counting => self.by_count(now, lane),
        }
    }

    /// How long nothing goes out whatever it is for, since the API said so.
    pub fn blocked_for(&self, now: Duration) -> Duration {
        self.blocked_until.saturating_sub(now)
    }

    /// A request goes out.
    pub fn granted(&mut self, now: Duration, lane: Lane) {
        self.in_flight += 1;
        self.last_grant = Some(now);
        self.own.push_back(now);
        if lane == Lane::Drift {
            self.drift.push_back(now);
        }
    }

    /// A grant was not used after all.
    pub fn returned(&mut self, lane: Lane) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.own.pop_back();
        if lane == Lane::Drift {
            self.drift.pop_back();
        }
    }

    /// An answer came; `refused` by the rate limit or not.
    pub fn answered(&mut self, now: Duration, told: &BudgetHeaders, refused: bool) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let Some((quota, window)) = told.policy {
            self.limit = Limit { quota, window };
        }
        if let Some(pause) = told.exhausted_for {
            self.blocked_until = self.blocked_until.max(now + pause);
        }
        self.refused = refused;
        if refused {
            let pause = told.retry_after.unwrap_or(RATE_LIMIT_PAUSE).max(ROUNDING);
            self.blocked_until = self.blocked_until.max(now + pause);
            self.view = BudgetView::Unknown;
            return;
        }
        self.view = match (told.left, self.view) {
            (Some((left, resets_in)), view) => BudgetView::Reported(self.learn(now, left, resets_in, view)),
            (None, BudgetView::Reported(report)) => {
                BudgetView::Reported(BudgetReport { left: report.left - 1.0, ..report })
            }
            (None, BudgetView::Unknown | BudgetView::Counting) => BudgetView::Counting,
        };
    }

    /// No answer came: the API may have counted the request all the same.
    pub fn lost(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if let BudgetView::Reported(report) = &mut self.view {
            report.left -= 1.0;
        }
    }

    /// What is left, for metrics and status.
    pub fn budget(&mut self, now: Duration) -> Budget {
        self.forget(now);
        let (left, resets_at) = match self.view {
            BudgetView::Reported(report) => (self.left_now(now, report), report.resets_at),
            BudgetView::Unknown | BudgetView::Counting => {
                (self.counted_left(), self.own.front().map_or(now, |first| *first + self.limit.window))
            }
        };
        let resets_in = self.blocked_until.max(resets_at).saturating_sub(now);
        Budget { limit: self.limit.quota, left: whole(left), resets_in }
    }

    /// What drift may spend now: its part of a window, less what it spent, and not what is held back.
    pub fn drift_share(&mut self, now: Duration) -> DriftShare {
        let spare = f64::from(self.budget(now).left) - self.reserve();
        let most = (DRIFT * self.share()).max(1.0);
        let left = (most - count(self.drift.len())).min(spare);
        DriftShare { most: whole(most), left: whole(left), window: self.limit.window }
    }

    fn forget(&mut self, now: Duration) {
        let old = |time: &Duration| *time + self.limit.window <= now;
        while self.own.front().is_some_and(old) {
            self.own.pop_front();
        }
        while self.drift.front().is_some_and(old) {
            self.drift.pop_front();
        }
        self.others.forget(now.saturating_sub(self.limit.window));
        if let BudgetView::Reported(report) = self.view
            && now >= report.resets_at
            && !self.sliding
        {
            self.view = BudgetView::Unknown;
            self.ended = Some(report.left);
        }
    }

    /// Takes in what an answer tells. Within a window `r` only falls, so an answer that was overtaken changes nothing.
    fn learn(&mut self, now: Duration, left: u32, resets_in: Duration, view: BudgetView) -> BudgetReport {
        let fresh = BudgetReport { left: f64::from(left), at: now, resets_at: now + resets_in + ROUNDING };
        self.sliding = self.slides(&fresh, resets_in, view);
        let BudgetView::Reported(before) = view else { return fresh };
        if self.sliding {
            self.others.observe(now, now.saturating_sub(before.at), before.left - fresh.left - 1.0);
            return fresh;
        }
        let same_window = fresh.resets_at.abs_diff(before.resets_at) <= 2 * ROUNDING + ROUNDING / 2;
        if !same_window && fresh.left > before.left {
            return fresh;
        }
        let left = fresh.left.min(before.left);
        self.others.observe(now, now.saturating_sub(before.at), before.left - left - 1.0);
        let resets_at = if same_window { before.resets_at.max(fresh.resets_at) } else { fresh.resets_at };
        BudgetReport { left, at: now, resets_at }
    }

    /// Whether the window slides, by what is left now and was before. Answers that overtake each other rise by what is in
    /// flight at most.
    fn slides(&mut self, fresh: &BudgetReport, resets_in: Duration, view: BudgetView) -> bool {
        let ended = self.ended.take();
        let new_window = fresh.left >= 0.9 * self.quota() && resets_in >= self.limit.window.mul_f64(0.9);
        let rose = |before: BudgetReport| fresh.left > before.left + f64::from(self.in_flight) + 2.0;
        let spent = |left: &f64| self.quota() - left;
        match (view, ended.filter(|left| spent(left) >= 0.25 * self.quota())) {
            _ if new_window => false,
            (BudgetView::Reported(before), _) if rose(before) => true,
            (BudgetView::Unknown, Some(left)) => fresh.left < left + spent(&left) / 2.0,
            _ => self.sliding,
        }
    }

    fn ask(&self, now: Duration) -> Decision {
        let plenty = self.counted_left() > self.reserve() && !self.refused;
        let questions = if plenty { QUESTIONS } else { 1 };
        // The answer wakes those who wait; the time only matters if none comes.
        let again = self.last_grant.map_or(now, |last| last + LONGEST_SPACING);
        if self.in_flight < questions || now >= again { Decision::Go } else { Decision::Wait(again) }
    }

    fn by_report(&self, now: Duration, lane: Lane, report: BudgetReport) -> Decision {
        if self.sliding {
            return self.by_slide(now, lane, report);
        }
        let floor = self.floor(now, report);
        if self.left_now(now, report) - 1.0 >= floor {
            return self.spaced(now, lane, self.spacing(now, report));
        }
        // Only the guess of what others took since the last answer forbids it: ask, unless that answer is old.
        let (ask_at, too_late) = (report.at + LONGEST_SPACING, report.at + 2 * LONGEST_SPACING);
        if report.left - 1.0 < floor || self.in_flight > 0 || now >= too_late {
            return Decision::Wait(self.reconsider(now, report));
        }
        if now < ask_at { Decision::Wait(ask_at) } else { Decision::Go }
    }

    fn by_slide(&self, now: Duration, lane: Lane, report: BudgetReport) -> Decision {
        let left = self.left_now(now, report);
        // Where nothing is left others wait for it too; asking at once would be one more of them.
        let pause = if report.left < self.margin(now, report) { LONGEST_SPACING * 6 } else { LONGEST_SPACING };
        let ask_at = report.resets_at.min(report.at + self.limit.window).max(report.at + pause);
        if left - 1.0 >= self.reserve() {
            return self.spaced(now, lane, self.even_spacing(left, left + count(self.own.len())));
        }
        if now >= ask_at && self.in_flight == 0 { Decision::Go } else { Decision::Wait(ask_at.max(now + ROUNDING)) }
    }

    /// What must stay: the reserve, and near the reset only what others will take and the margin.
    fn floor(&self, now: Duration, report: BudgetReport) -> f64 {
        if now < self.release_at(report) {
            return self.reserve();
        }
        self.reserve().min(self.margin(now, report) + self.others.rate() * until(now, report.resets_at))
    }

    fn release_at(&self, report: BudgetReport) -> Duration {
        report.resets_at.saturating_sub(self.limit.window.mul_f64(RELEASE) + ROUNDING)
    }

    /// When the floor is lower: at the release, then step by step until the reset.
    fn reconsider(&self, now: Duration, report: BudgetReport) -> Duration {
        let release_at = self.release_at(report);
        if now < release_at { release_at } else { report.resets_at.min(now + ROUNDING) }
    }

    /// What is left of the last report now: without what is in flight and what others took since.
    fn left_now(&self, now: Duration, report: BudgetReport) -> f64 {
        report.left - f64::from(self.in_flight) - self.others.rate() * until(report.at, now)
    }

    fn spacing(&self, now: Duration, report: BudgetReport) -> Duration {
        let ours = self.left_now(now, report) - self.others.rate() * until(now, report.resets_at);
        let ramp = ramp(ours / self.share());
        let usable = (ours - self.margin(now, report)).max(1.0);
        LONGEST_SPACING.min(Duration::from_secs_f64(ramp * until(now, report.resets_at) / usable))
    }

    fn by_count(&self, now: Duration, lane: Lane) -> Decision {
        let left = self.counted_left();
        if left - 1.0 < self.reserve() {
            return Decision::Wait(self.own.front().map_or(now, |first| *first + self.limit.window));
        }
        self.spaced(now, lane, self.even_spacing(left, self.quota()))
    }

    /// The spacing that spends our share without the reserve in a sliding window.
    fn even_spacing(&self, left: f64, share: f64) -> Duration {
        let even = self.limit.window.as_secs_f64() / (share - self.reserve()).max(1.0);
        LONGEST_SPACING.min(Duration::from_secs_f64(ramp(left / share) * even))
    }

    fn spaced(&self, now: Duration, lane: Lane, spacing: Duration) -> Decision {
        match (lane, self.last_grant) {
            (Lane::Change | Lane::Drift, Some(last)) if now < last + spacing => Decision::Wait(last + spacing),
            _ => Decision::Go,
        }
    }

    fn drift_spent(&self) -> Option<Duration> {
        let most = (DRIFT * self.share()).max(1.0);
        let first = self.drift.front().filter(|_| count(self.drift.len()) + 1.0 > most);
        first.map(|first| *first + self.limit.window)
    }

    /// What others leave us of a whole window; never nothing, so that drift does not stop for good.
    fn share(&self) -> f64 {
        let others = self.others.rate() * self.limit.window.as_secs_f64();
        (self.quota() - others).max(self.quota() * RESERVE)
    }

    fn counted_left(&self) -> f64 {
        self.quota() - count(self.own.len())
    }

    fn quota(&self) -> f64 {
        f64::from(self.limit.quota)
    }

    fn reserve(&self) -> f64 {
        self.quota() * RESERVE
    }

    fn margin(&self, now: Duration, report: BudgetReport) -> f64 {
        let least = self.quota() * MARGIN;
        if now + LAST_SECONDS >= report.resets_at {
            return least;
        }
        least.max(1.25 * self.others.burst()).min(self.reserve())
    }
}

/// No spacing (0) above half, even spacing (1) at a tenth and below.
fn ramp(part_left: f64) -> f64 {
    ((0.5 - part_left) / 0.4).clamp(0.0, 1.0)
}

fn until(from: Duration, to: Duration) -> f64 {
    to.saturating_sub(from).as_secs_f64()
}

#[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 requests")]
fn count(number: usize) -> f64 {
    number as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn whole(number: f64) -> u32 {
    number.max(0.0) as u32
}
