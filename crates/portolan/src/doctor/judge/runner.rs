//! What a runner tells of itself → findings. Pure.

use crate::doctor::check::{PODS, PROGRAMS};
use crate::doctor::finding::{CheckResult, Finding};
use crate::pods_page::RunnerFacts;

const SUBJECT: &str = "pods of portolan up";

pub(super) fn judge(runner: &RunnerFacts) -> Vec<Finding> {
    vec![users(runner), programs(runner)]
}

fn users(runner: &RunnerFacts) -> Finding {
    let shortcomings = runner.shortcomings();
    if shortcomings.is_empty() {
        let message = format!("each pod is a user of its own, and has its files in {}", runner.folder);
        return Finding::new(&PODS, SUBJECT, CheckResult::Ok, message);
    }
    Finding::new(&PODS, SUBJECT, CheckResult::Warning, shortcomings.join("; "))
}

/// A program that is missing matters to pods of its images only.
fn programs(runner: &RunnerFacts) -> Finding {
    let (here, missing): (Vec<_>, Vec<_>) = runner.programs.iter().partition(|program| program.file.is_some());
    let names = |programs: &[&crate::pods_page::ProgramFacts]| -> String {
        programs.iter().map(|program| program.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    if here.is_empty() {
        let message = "no program that stands for an image of pods is on this machine";
        return Finding::new(&PROGRAMS, SUBJECT, CheckResult::Failed, message);
    }
    let mut message = format!("{} can be run", names(&here));
    if !missing.is_empty() {
        message = format!("{message}; {} cannot: not on this machine", names(&missing));
    }
    if runner.pods == "simulate" {
        message.push_str("; pods of other images are simulated");
    }
    Finding::new(&PROGRAMS, SUBJECT, CheckResult::Ok, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pods_page::ProgramFacts;

    fn runner(user: u32) -> RunnerFacts {
        let program = |name: &str, file: Option<&str>| ProgramFacts {
            name: name.to_owned(),
            images: Vec::new(),
            file: file.map(str::to_owned),
        };
        let programs = vec![program("tools", Some("/bin/sh")), program("named", None)];
        RunnerFacts {
            pods: "run".to_owned(),
            user,
            folder: "/data/runner".to_owned(),
            closed: None,
            programs,
            ..RunnerFacts::default()
        }
    }

    #[test]
    fn a_runner_that_is_not_root_is_a_warning_with_what_to_do() {
        let [users, _] = judge(&runner(1000)).try_into().unwrap();

        assert_eq!(users.verdict, CheckResult::Warning);
        assert!(users.message.contains("user 1000") && users.next.is_some_and(|next| next.contains("as root")));
        assert_eq!(judge(&runner(0))[0].verdict, CheckResult::Ok);
    }

    #[test]
    fn programs_that_are_here_and_that_are_not_are_named() {
        let told = &judge(&runner(0))[1];

        assert_eq!(told.verdict, CheckResult::Ok);
        assert_eq!(told.message, "tools can be run; named cannot: not on this machine");
    }
}
