//! A report → text for a terminal.

use std::fmt::Write as _;

use super::check;
use super::finding::{CheckResult, DoctorReport, Finding};
use crate::colour::{Colours, Tone};

/// How wide the verdicts are.
const WIDTH: usize = 9;

/// The report for people: subject by subject, with what to do below what is not in order.
pub(crate) fn render(report: &DoctorReport, colours: Colours) -> String {
    let mut text = String::new();
    let mut subject = "";
    for finding in &report.0 {
        if finding.subject != subject {
            let gap = if subject.is_empty() { "" } else { "\n" };
            line(&mut text, &format!("{gap}{}", colours.tone(Tone::Strong, &finding.subject)));
            subject = &finding.subject;
        }
        show(&mut text, finding, colours);
    }
    line(&mut text, &format!("\n{}", summary(report)));
    text
}

/// Every check for people: what it means that it is in order, and what to do where it is not.
pub(crate) fn explain(colours: Colours) -> String {
    let mut text = String::new();
    for check in check::all() {
        line(&mut text, &format!("{} ({})", colours.tone(Tone::Strong, check.id), check.title));
        line(&mut text, &format!("  {}\n  else: {}", check.meaning, check.remedy));
    }
    text
}

fn show(text: &mut String, finding: &Finding, colours: Colours) {
    let tone = match finding.verdict {
        CheckResult::Ok => Tone::Good,
        CheckResult::NotKnown | CheckResult::Warning => Tone::Waiting,
        CheckResult::Failed => Tone::Bad,
    };
    let verdict = colours.tone(tone, &format!("{:WIDTH$}", finding.verdict.as_str()));
    line(text, &format!("  {verdict} {}: {}", finding.check.title, finding.message));
    if let Some(next) = &finding.next {
        line(text, &format!("  {:WIDTH$} next: {next}", ""));
    }
}

fn summary(report: &DoctorReport) -> String {
    let counted = CheckResult::ALL.map(|verdict| format!("{} {}", report.count(verdict), verdict.as_str()));
    counted.join(", ")
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::check::{CLOCK, CLUSTER};

    #[test]
    fn subjects_stand_once_and_what_to_do_below_what_is_wrong() {
        let report = DoctorReport(vec![
            Finding::new(&CLUSTER, "cluster", CheckResult::Ok, "answers"),
            Finding::new(&CLOCK, "tenant a/b", CheckResult::Warning, "2 min behind").next("set it"),
        ]);

        let text = render(&report, Colours::Off);

        assert_eq!(
            text,
            "cluster\n  ok        cluster reachable: answers\n\ntenant a/b\n  warning   clock: 2 min behind\n            \
             next: set it\n\n1 ok, 1 warning, 0 failed, 0 not known\n"
        );
        assert!(!report.has_failed());
    }
}
