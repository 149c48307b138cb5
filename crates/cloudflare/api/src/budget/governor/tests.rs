//! The governor under a paused clock: alone, and beside others who spend the same credential's budget.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::*;
use crate::call::error::ErrorClass;
use crate::call::request::Request;
use crate::client::Client;
use crate::settings::Settings;
use crate::testing::{Answered, Scripted, answer, bad, good, with_header};

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// How the scripted API counts.
#[derive(Clone, Copy, PartialEq)]
enum Counts {
    Fixed,
    Sliding,
}

/// The API's side of a limit of 1,200 in 300 s.
struct Window {
    counts: Counts,
    headers: bool,
    start: Instant,
    taken: VecDeque<Duration>,
    refused: u32,
    /// Requests of ours that were let through, by window.
    ours: Vec<u32>,
    /// And those of others.
    theirs: Vec<u32>,
}

impl Window {
    fn new(counts: Counts, headers: bool) -> Arc<Mutex<Self>> {
        let (start, taken) = (Instant::now(), VecDeque::new());
        Arc::new(Mutex::new(Self { counts, headers, start, taken, refused: 0, ours: vec![0; 4], theirs: vec![0; 4] }))
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn number(&self) -> usize {
        usize::try_from(self.now().as_secs() / 300).unwrap()
    }

    /// Takes one request of the budget if one is left.
    fn take(&mut self) -> bool {
        let (now, counts) = (self.now(), self.counts);
        let over = |taken: &Duration| match counts {
            Counts::Fixed => taken.as_secs() / 300 < now.as_secs() / 300,
            Counts::Sliding => *taken + s(300) <= now,
        };
        while self.taken.front().is_some_and(over) {
            self.taken.pop_front();
        }
        let free = self.taken.len() < 1_200;
        if free {
            self.taken.push_back(now);
        }
        free
    }

    fn take_for_others(&mut self) {
        let (number, taken) = (self.number(), self.take());
        self.theirs[number] += u32::from(taken);
    }

    fn resets_in(&self) -> u64 {
        match self.counts {
            Counts::Fixed => 300 - self.now().as_secs() % 300,
            Counts::Sliding => {
                self.taken.front().map_or(300, |first| (*first + s(300)).saturating_sub(self.now()).as_secs())
            }
        }
    }

    fn answer(&mut self) -> Answered {
        let answer = if self.take() {
            let number = self.number();
            self.ours[number] += 1;
            good(json!({}))
        } else {
            self.refused += 1;
            with_header(bad(429, 971), "retry-after", &self.resets_in().to_string())
        };
        if !self.headers {
            return answer;
        }
        let told = format!(r#""default";r={};t={}"#, 1_200 - self.taken.len(), self.resets_in());
        with_header(with_header(answer, "ratelimit", &told), "ratelimit-policy", r#""default";q=1200;w=300"#)
    }
}

fn client(window: &Arc<Mutex<Window>>) -> Client {
    let window = window.clone();
    Scripted::new(Duration::from_millis(100), move |_| window.lock().unwrap().answer()).client()
}

/// Works without end, `workers` requests at a time.
fn work(client: &Client, lane: Lane, workers: usize) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for _ in 0..workers {
        let client = client.clone();
        tasks.spawn(async move {
            loop {
                if let Err(error) = client.send(lane, &Request::get("/zones", &[])).await {
                    tokio::time::sleep(error.retry_after.unwrap_or_default()).await;
                }
            }
        });
    }
    tasks
}

/// One client that spends steadily and one that spends in bursts of 20, together `spend` requests a window.
fn others(window: &Arc<Mutex<Window>>, spend: u32) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    for (size, pause) in [(1, s(300) / (spend / 2)), (20, s(300) * 20 / (spend / 2))] {
        let window = window.clone();
        tasks.spawn(async move {
            loop {
                for _ in 0..size {
                    window.lock().unwrap().take_for_others();
                }
                tokio::time::sleep(pause).await;
            }
        });
    }
    tasks
}

/// One client that spends `size` requests at once, from `second` on, every `pause` seconds.
fn bursts(window: &Arc<Mutex<Window>>, size: u32, second: u64, pause: u64) -> JoinSet<()> {
    let (mut tasks, window) = (JoinSet::new(), window.clone());
    tasks.spawn(async move {
        tokio::time::sleep(s(second)).await;
        loop {
            for _ in 0..size {
                window.lock().unwrap().take_for_others();
            }
            tokio::time::sleep(s(pause)).await;
        }
    });
    tasks
}

async fn fifteen_minutes(counts: Counts, headers: bool, spend: u32) -> Used {
    let window = Window::new(counts, headers);
    let others = if spend > 0 { others(&window, spend) } else { JoinSet::new() };
    beside(window, others).await
}

/// What became of fifteen minutes.
#[derive(Debug)]
struct Used {
    refused: u32,
    ours: Vec<u32>,
    theirs: Vec<u32>,
}

impl Used {
    /// Our part, in percent, of what others left of each window.
    fn of_the_rest(&self) -> Vec<u32> {
        self.ours.iter().zip(&self.theirs).map(|(ours, theirs)| ours * 100 / (1_200 - theirs)).collect()
    }
}

/// Work without end beside `others`.
async fn beside(window: Arc<Mutex<Window>>, _others: JoinSet<()>) -> Used {
    let client = client(&window);
    let _ours = work(&client, Lane::Change, 16);
    tokio::time::sleep(Duration::from_millis(899_999)).await;
    let window = window.lock().unwrap();
    Used { refused: window.refused, ours: window.ours[..3].to_vec(), theirs: window.theirs[..3].to_vec() }
}

#[tokio::test(start_paused = true)]
async fn beside_others_who_spend_sixty_percent_nothing_is_refused_and_the_rest_is_used() {
    let used = fifteen_minutes(Counts::Fixed, true, 720).await;

    println!("beside a steady client and bursts of 20: {used:?}, {:?} % of the rest", used.of_the_rest());
    assert_eq!(used.refused, 0);
    assert!(used.ours.iter().all(|ours| *ours >= 480 * 8 / 10), "{used:?}");
}

#[tokio::test(start_paused = true)]
async fn once_known_others_are_left_their_part() {
    let used = fifteen_minutes(Counts::Fixed, true, 720).await;

    assert!(used.ours[1..].iter().all(|ours| *ours <= 480), "{used:?}");
    assert!(used.theirs[1..].iter().all(|theirs| *theirs >= 719), "{used:?}");
}

#[tokio::test(start_paused = true)]
async fn others_who_spend_in_large_bursts_are_foreseen_too() {
    for (size, second, pause) in [(720, 1, 300), (100, 7, 42), (100, 30, 42), (60, 3, 25), (40, 0, 17)] {
        let window = Window::new(Counts::Fixed, true);
        let others = bursts(&window, size, second, pause);

        let used = beside(window, others).await;

        println!(
            "bursts of {size} from second {second} every {pause} s: {used:?}, {:?} % of the rest",
            used.of_the_rest()
        );
        assert_eq!(used.refused, 0, "bursts of {size} from second {second} every {pause} s");
        assert!(used.of_the_rest().iter().all(|part| *part >= 80), "{used:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn alone_nearly_everything_is_used_and_nothing_refused() {
    let used = fifteen_minutes(Counts::Fixed, true, 0).await;

    println!("alone: {used:?}");
    assert_eq!(used.refused, 0);
    assert!(used.ours.iter().all(|ours| *ours >= 1_100), "{used:?}");
}

#[tokio::test(start_paused = true)]
async fn without_headers_our_own_requests_are_counted_and_nothing_is_refused() {
    let used = fifteen_minutes(Counts::Fixed, false, 0).await;

    println!("without headers: {used:?}");
    assert_eq!(used.refused, 0);
    assert!(used.ours.iter().all(|ours| *ours >= 1_000), "{used:?}");
}

#[tokio::test(start_paused = true)]
async fn a_sliding_window_refuses_nothing_either() {
    for (headers, spend) in [(true, 720), (true, 0), (false, 0)] {
        let used = fifteen_minutes(Counts::Sliding, headers, spend).await;

        println!("sliding, headers {headers}, others {spend}: {used:?}, {:?} % of the rest", used.of_the_rest());
        assert_eq!(used.refused, 0, "headers {headers}, others {spend}");
        assert!(used.of_the_rest().iter().all(|part| *part >= 80), "{used:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_waits_while_more_than_half_is_left() {
    let window = Window::new(Counts::Fixed, true);
    let client = client(&window);
    let start = Instant::now();

    for _ in 0..100 {
        client.send(Lane::Change, &Request::get("/zones", &[])).await.unwrap();
    }

    assert_eq!(start.elapsed(), Duration::from_millis(100) * 100);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_with_a_pause_stops_the_credential_for_that_long_and_no_other() {
    let mut first = true;
    let api = Scripted::new(Duration::ZERO, move |_| {
        if std::mem::take(&mut first) { with_header(bad(429, 971), "retry-after", "90") } else { good(json!({})) }
    });
    let clients = crate::testing::clients(Settings::default(), api.clone());
    let refused = clients.client(&crate::Credential::token("one"));
    let other = clients.client(&crate::Credential::token("two"));

    let post = Request::new(http::Method::POST, "/zones", &[]);
    let told = refused.send(Lane::Change, &post).await.unwrap_err();
    other.send(Lane::Change, &Request::get("/zones", &[])).await.unwrap();
    assert_eq!((told.class, told.retry_after, api.seen()[1].at), (ErrorClass::RateLimit, Some(s(90)), s(0)));
    tokio::time::sleep(s(30)).await;
    let told = refused.send(Lane::Protect, &post).await.unwrap_err();
    assert!(told.message.ends_with("nothing is asked before 1970-01-01T00:01:00Z"), "{}", told.message);
    tokio::time::sleep(s(30)).await;
    refused.send(Lane::Change, &post).await.unwrap();

    assert_eq!((api.seen()[2].at, api.seen().len()), (s(90), 3), "the rest of the pause is waited for");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_without_a_pause_stops_for_a_minute() {
    let mut answers = vec![good(json!({})), bad(429, 971)];
    let api = Scripted::new(Duration::ZERO, move |_| answers.pop().unwrap());

    let client = api.client();

    let told = client.send(Lane::Protect, &Request::get("/zones", &[])).await.unwrap_err();
    assert_eq!(told.retry_after, Some(s(60)));
    tokio::time::sleep(s(45)).await;
    client.send(Lane::Protect, &Request::get("/zones", &[])).await.unwrap();

    assert_eq!(api.seen()[1].at, s(60));
}

#[tokio::test(start_paused = true)]
async fn drift_takes_at_most_its_share() {
    let window = Window::new(Counts::Fixed, true);
    let client = client(&window);
    let _drift = work(&client, Lane::Drift, 16);

    tokio::time::sleep(s(299)).await;

    assert_eq!(window.lock().unwrap().ours[0], 360);
}

#[tokio::test(start_paused = true)]
async fn changes_overtake_drift_and_protection_overtakes_changes() {
    let api = Scripted::new(Duration::ZERO, |_| with_header(good(json!({})), "ratelimit", r#""default";r=200;t=300"#));
    let client = api.client();
    client.send(Lane::Change, &Request::get("/first", &[])).await.unwrap();
    let mut tasks = JoinSet::new();
    for (lane, path) in [(Lane::Drift, "/drift"), (Lane::Change, "/change"), (Lane::Protect, "/protect")] {
        let client = client.clone();
        tasks.spawn(async move { client.send(lane, &Request::get(path, &[])).await });
        tokio::task::yield_now().await;
    }

    tasks.join_all().await;

    assert_eq!(api.lines()[1..], ["GET /protect", "GET /change", "GET /drift"]);
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_goes_away_gives_its_place_up() {
    let api = Scripted::new(Duration::ZERO, |_| with_header(good(json!({})), "ratelimit", r#""default";r=200;t=300"#));
    let client = api.client();
    client.send(Lane::Change, &Request::get("/first", &[])).await.unwrap();
    let impatient = Duration::from_millis(1);
    let gone = tokio::time::timeout(impatient, client.send(Lane::Change, &Request::get("/gone", &[]))).await;

    client.send(Lane::Change, &Request::get("/next", &[])).await.unwrap();

    assert!(gone.is_err());
    assert_eq!(api.lines(), ["GET /first", "GET /next"]);
}

#[test]
fn the_last_tenth_is_held_back_until_the_last_fifth_of_the_window() {
    let mut governor = Governor::new(Limit::default());
    governor.granted(s(0), Lane::Change);
    governor.answered(s(0), &told(120, 300), false);

    assert_eq!(governor.decide(s(1), Lane::Protect), Decision::Wait(s(240)));
    assert_eq!(governor.decide(s(240), Lane::Protect), Decision::Go);
}

#[test]
fn what_is_in_flight_counts() {
    let mut governor = Governor::new(Limit::default());
    governor.granted(s(0), Lane::Protect);
    governor.answered(s(0), &told(122, 300), false);

    for _ in 0..2 {
        assert_eq!(governor.decide(s(1), Lane::Protect), Decision::Go);
        governor.granted(s(1), Lane::Protect);
    }

    assert_ne!(governor.decide(s(1), Lane::Protect), Decision::Go);
}

#[test]
fn the_spacing_grows_as_the_budget_shrinks() {
    let spacing = |left| {
        let mut governor = Governor::new(Limit::default());
        governor.granted(s(0), Lane::Change);
        governor.answered(s(0), &told(left, 300), false);
        match governor.decide(s(0), Lane::Change) {
            Decision::Go => Duration::ZERO,
            Decision::Wait(until) => until,
        }
    };

    assert_eq!(spacing(601), Duration::ZERO);
    assert!(spacing(540) > Duration::ZERO && spacing(540) < Duration::from_millis(250));
    assert!(spacing(480) >= Duration::from_millis(150));
    assert!(spacing(300) > spacing(480) && spacing(150) > spacing(300));
}

#[test]
fn after_a_reset_a_few_ask_and_the_rest_wait_for_the_answer() {
    let mut governor = Governor::new(Limit::default());
    governor.granted(s(0), Lane::Change);
    governor.answered(s(0), &told(150, 10), false);

    let at = s(12);
    let mut asked = 0;
    while governor.decide(at, Lane::Change) == Decision::Go {
        governor.granted(at, Lane::Change);
        asked += 1;
    }

    assert_eq!(asked, QUESTIONS);
}

#[test]
fn after_a_refusal_one_asks() {
    let mut governor = Governor::new(Limit::default());
    governor.granted(s(0), Lane::Change);
    governor.answered(s(0), &BudgetHeaders { retry_after: Some(s(20)), ..BudgetHeaders::default() }, true);

    assert_eq!(governor.decide(s(1), Lane::Protect), Decision::Wait(s(20)));
    assert_eq!(governor.decide(s(20), Lane::Change), Decision::Go);
    governor.granted(s(20), Lane::Change);
    assert_ne!(governor.decide(s(20), Lane::Change), Decision::Go);
}

#[test]
fn questions_that_nobody_answers_do_not_stop_the_credential() {
    let mut governor = Governor::new(Limit::default());
    for _ in 0..QUESTIONS {
        governor.granted(s(0), Lane::Change);
    }

    assert_eq!(governor.decide(s(1), Lane::Change), Decision::Wait(s(5)));
    assert_eq!(governor.decide(s(5), Lane::Change), Decision::Go);
}

#[test]
fn the_quota_is_learnt_from_the_policy() {
    let mut governor = Governor::new(Limit::default());
    governor.granted(s(0), Lane::Change);

    governor.answered(s(0), &BudgetHeaders { policy: Some((100, s(60))), ..told(99, 60) }, false);

    assert_eq!(governor.budget(s(0)), Budget { limit: 100, left: 99, resets_in: s(61) });
}

fn told(left: u32, resets_in: u64) -> BudgetHeaders {
    BudgetHeaders { left: Some((left, s(resets_in))), ..BudgetHeaders::default() }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_not_the_apis_does_not_free_the_budget() {
    let api = Scripted::new(Duration::ZERO, |_| answer(200, &json!("nonsense")).map(|a| a.map(|_| Bytes::new())));

    let error = api.client().send(Lane::Change, &Request::new(http::Method::POST, "/zones", &[])).await.unwrap_err();

    assert_eq!(error.effect, crate::Effect::Unknown);
    assert_eq!(api.client().budget().limit, 1_200);
}
