//! `portolan why`: one name, told by every job whose objects ask for it, down to what answers for it.

mod render;

use portolan_cloudflare_sim::DECISION_PATH;
use portolan_core::{Hostname, NameStory, Problem};
use portolan_engine::{JobDefinition, NameQuestion, NameTeller};
use serde_json::{Map, Value, json};

use crate::failure::{Failure, Outcome};
use crate::server::Server;

pub(crate) use render::render;

/// All that is known of a name.
pub(crate) struct Told {
    pub(crate) hostname: String,
    /// What each job tells, with what asks for names in it.
    pub(crate) stories: Vec<(NameTeller, Vec<NameStory>)>,
    /// What a simulated edge answers to somebody who is not logged in.
    pub(crate) edge: Option<Value>,
}

impl Told {
    /// The same for programs.
    pub(crate) fn to_json(&self) -> Value {
        let mut all = Map::from_iter([("hostname".to_owned(), json!(self.hostname))]);
        for (teller, stories) in &self.stories {
            all.insert(teller.askers.to_owned(), stories.iter().map(|story| story.facts.clone()).collect());
        }
        all.extend(self.edge.clone().map(|edge| ("edge".to_owned(), edge)));
        Value::Object(all)
    }
}

/// Asks the jobs about a name. `edge` is asked what it answers, where there is one.
pub(crate) async fn tell(
    server: &Server,
    jobs: &[&JobDefinition],
    namespace: &str,
    hostname: &str,
    edge: Option<&str>,
) -> Outcome<Told> {
    let hostname = Hostname::parse(hostname).map_or_else(|_| hostname.to_owned(), |name| name.as_str().to_owned());
    let (mut stories, mut known) = (Vec::new(), Vec::new());
    for job in jobs {
        let Some(teller) = job.names else { continue };
        let question = NameQuestion { client: server.client(), namespace, hostname: &hostname };
        let answer = (teller.tell)(question).await.map_err(|problem| unread(job, problem))?;
        if !answer.stories.is_empty() {
            stories.push((teller, answer.stories));
        }
        known.push((teller, answer.known));
    }
    if stories.is_empty() {
        return Err(unknown(&known, &hostname));
    }
    let edge = match edge {
        Some(edge) => ask(edge, &hostname).await,
        None => None,
    };
    Ok(Told { hostname, stories, edge })
}

fn unread(job: &JobDefinition, problem: Problem) -> Failure {
    let next = format!("check that the kubeconfig may list what the job {} works with, and events", job.sheet.name);
    Failure::new(problem.message).next(next)
}

fn unknown(known: &[(NameTeller, Vec<String>)], hostname: &str) -> Failure {
    let or = |words: &mut dyn Iterator<Item = &'static str>| portolan_core::text::join_or(words.collect::<Vec<_>>());
    let failure = Failure::new(format!("no {} asks for {hostname}", or(&mut known.iter().map(|(one, _)| one.asker))));
    let names: Vec<String> = known
        .iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(teller, names)| format!("{} ask for {}", teller.askers, portolan_core::text::join_some(names, 10)))
        .collect();
    if names.is_empty() {
        return failure.next(or(&mut known.iter().map(|(one, _)| one.hint)));
    }
    failure.next(names.join("; "))
}

/// What the edge would answer to somebody who is not logged in.
async fn ask(edge: &str, hostname: &str) -> Option<Value> {
    let host = hostname.strip_prefix("*.").map_or_else(|| hostname.to_owned(), |rest| format!("any.{rest}"));
    let client = reqwest::Client::builder().no_proxy().build().ok()?;
    let answer = client.get(format!("{edge}{DECISION_PATH}")).header("host", host).send().await.ok()?;
    answer.json().await.ok()
}
