//! The text of the kubectl case files → command lines.
//!
//! `=== name` opens a case, then `$ arguments` with what kubectl reads on stdin indented below. `$only PATTERN
//! arguments` keeps the lines of the output that match, `$until PATTERN arguments` runs again until a line does;
//! `$begin COUNT arguments` leaves kubectl running once it has printed so many lines, and `$end COUNT` reads on to so
//! many lines and ends it. `$ns` and `$id` are the case's own.
//!
//! On the real server `$ create` and `$ apply` must succeed; `$refused arguments` must not.

use std::sync::LazyLock;

use crate::case::Expects;

/// The case files: name and text.
const FILES: &[(&str, &str)] = &[
    ("kubectl", include_str!("../../cases/kubectl.case")),
    ("kubectl-apply", include_str!("../../cases/kubectl-apply.case")),
    ("kubectl-create", include_str!("../../cases/kubectl-create.case")),
    ("kubectl-explain", include_str!("../../cases/kubectl-explain.case")),
];

/// The cases in the tree.
pub(super) static SCRIPTS: LazyLock<Vec<Script>> = LazyLock::new(|| {
    let parsed = FILES.iter().map(|(file, text)| parse(file, text).expect("tests parse the files"));
    parsed.flatten().collect()
});

/// A case of the file.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub name: String,
    pub commands: Vec<Invocation>,
}

/// One command of a case.
#[derive(Clone, Debug)]
pub(super) struct Invocation {
    pub line: String,
    pub mode: CommandMode,
    pub arguments: Vec<String>,
    pub stdin: String,
    pub expects: Expects,
}

impl Script {
    /// The commands as written.
    pub(super) fn lines(&self) -> Vec<String> {
        self.commands.iter().map(|command| command.line.clone()).collect()
    }
}

/// What is done with the command.
#[derive(Clone, Debug)]
pub(super) enum CommandMode {
    Run,
    Only(String),
    Until(String),
    Begin(usize),
    End(usize),
}

/// The cases of a file; or the line that is no command.
pub(super) fn parse(file: &str, text: &str) -> Result<Vec<Script>, String> {
    let mut scripts: Vec<Script> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let bad = || format!("{file}.case: {line}");
        if let Some(name) = line.strip_prefix("=== ") {
            scripts.push(Script { name: name.to_owned(), commands: Vec::new() });
        } else if let Some(input) = line.strip_prefix("  ") {
            let command = scripts.last_mut().and_then(|script| script.commands.last_mut()).ok_or_else(bad)?;
            command.stdin.push_str(input);
            command.stdin.push('\n');
        } else if line.starts_with('$') {
            let command = invocation(line).ok_or_else(bad)?;
            scripts.last_mut().ok_or_else(bad)?.commands.push(command);
        } else if !line.trim().is_empty() {
            return Err(bad());
        }
    }
    Ok(scripts)
}

fn invocation(line: &str) -> Option<Invocation> {
    let mut words = words(line);
    let word = words.remove(0);
    let mode = match word.as_str() {
        "$" | "$refused" => CommandMode::Run,
        "$only" => CommandMode::Only(words.remove(0)),
        "$until" => CommandMode::Until(words.remove(0)),
        "$begin" => CommandMode::Begin(words.remove(0).parse().ok()?),
        "$end" => CommandMode::End(words.remove(0).parse().ok()?),
        _ => return None,
    };
    let makes = word == "$" && words.first().is_some_and(|first| first == "create" || first == "apply");
    let expects = match word.as_str() {
        "$refused" => Expects::Refusal,
        _ if makes => Expects::Success,
        _ => Expects::Answer,
    };
    Some(Invocation { line: line.to_owned(), mode, arguments: words, stdin: String::new(), expects })
}

/// Words separated by blanks; single quotes hold blanks together.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            other => words.last_mut().expect("there is always one").push(other),
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::{CommandMode, parse, words};

    #[test]
    fn single_quotes_hold_words_together() {
        assert_eq!(words("$ get -o 'jsonpath={.a b}'"), ["$", "get", "-o", "jsonpath={.a b}"]);
    }

    #[test]
    fn commands_have_modes_and_input() {
        let scripts =
            parse("one", "=== one\n$only ^v1 api-versions\n$ create -f -\n  a: b\n").expect("a proper script");

        assert!(matches!(&scripts[0].commands[0].mode, CommandMode::Only(pattern) if pattern == "^v1"));
        assert_eq!(scripts[0].commands[1].stdin, "a: b\n");
    }

    #[test]
    fn the_files_in_the_tree_are_proper() {
        assert!(super::SCRIPTS.len() >= 40);
        let mut names: Vec<&str> = super::SCRIPTS.iter().map(|script| script.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), super::SCRIPTS.len(), "two cases have one name");
    }
}
