//! A page of Markdown → its headings, its blocks of code and what a reader shall do with each.

use std::fmt;
use std::path::{Path, PathBuf};

/// Languages of blocks that are only read.
const SHOWN: &[&str] = &["text", "yaml", "json", "toml", "rust", "promql", "dockerfile"];
/// First words of lines that a reader would type.
const TYPED: &[&str] = &[
    "$", "portolan", "kubectl", "helm", "curl", "make", "cargo", "export", "git", "docker", "scripts/", "target/",
    "tools/",
];

/// One page.
#[derive(Debug)]
pub struct Page {
    /// From the repository's root.
    pub path: PathBuf,
    pub text: String,
    pub blocks: Vec<Block>,
}

/// A block between fences.
#[derive(Debug)]
pub struct Block {
    /// The line of the opening fence, from 1.
    pub line: usize,
    /// What stands behind the fence.
    pub info: String,
    pub lines: Vec<String>,
    /// Whether only blank lines stand between the block before and this one.
    pub follows: bool,
}

/// What is done with a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Its commands are run.
    Run(Place, Stay),
    /// Its commands are run by something else.
    Elsewhere,
    /// It is read.
    Shown,
}

/// Where commands run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// On a machine without a cluster.
    Machine,
    /// With a cluster at hand.
    Cluster,
}

/// How long a command lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    Ends,
    /// Until the page ends, or until a command takes its place.
    Background,
}

/// One command of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    pub line: usize,
    pub text: String,
    /// The exit code that it must have.
    pub code: i32,
}

/// What is wrong with a page, and where.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    pub path: PathBuf,
    pub line: usize,
    pub what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.path.display(), self.line, self.what)
    }
}

impl Page {
    pub fn parse(path: &Path, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned(), blocks: blocks(text) }
    }

    pub fn fault(&self, line: usize, what: impl Into<String>) -> Fault {
        Fault { path: self.path.clone(), line, what: what.into() }
    }

    /// Lines outside of blocks, with their numbers from 1.
    pub fn prose(&self) -> impl Iterator<Item = (usize, &str)> {
        let inside = |line: usize| {
            self.blocks.iter().any(|block| (block.line..=block.line + block.lines.len() + 1).contains(&line))
        };
        self.text.lines().enumerate().map(|(index, text)| (index + 1, text)).filter(move |(line, _)| !inside(*line))
    }

    /// Headings outside of blocks: line, level, text.
    pub fn headings(&self) -> Vec<(usize, usize, &str)> {
        let heading = |(line, text): (usize, &'_ str)| {
            let level = text.chars().take_while(|one| *one == '#').count();
            (level > 0 && text[level..].starts_with(' ')).then_some((line, level))
        };
        self.prose()
            .filter_map(|(line, text)| heading((line, text)).map(|(line, level)| (line, level, text[level..].trim())))
            .collect()
    }

    /// Commands that no test would run, and blocks that nobody can tell the use of.
    pub fn faults(&self) -> Vec<Fault> {
        let mut faults = Vec::new();
        for block in &self.blocks {
            match block.usage() {
                Err(why) => faults.push(self.fault(block.line, why)),
                Ok(Use::Shown) => {
                    faults.extend(block.typed().map(|line| self.fault(line, "a command in a block that is not run")));
                }
                Ok(Use::Run(..) | Use::Elsewhere) => {}
            }
        }
        let indented = self.prose().filter(|(_, text)| text.starts_with("    ") && is_typed(text.trim_start()));
        faults.extend(indented.map(|(line, _)| self.fault(line, "a command in an indented block: put it into ```sh")));
        faults.sort_by_key(|fault| fault.line);
        faults
    }
}

impl Block {
    /// What its info string asks for.
    pub fn usage(&self) -> Result<Use, String> {
        let words: Vec<&str> = self.info.split_whitespace().collect();
        match words.split_first() {
            Some((&"sh", ["elsewhere"])) => Ok(Use::Elsewhere),
            Some((&"sh", rest)) if rest.iter().all(|word| ["background", "cluster"].contains(word)) => {
                let place = if rest.contains(&"cluster") { Place::Cluster } else { Place::Machine };
                let stay = if rest.contains(&"background") { Stay::Background } else { Stay::Ends };
                Ok(Use::Run(place, stay))
            }
            Some((language, [])) if SHOWN.contains(language) => Ok(Use::Shown),
            _ => Err(format!(
                "a block is `sh` (background, cluster, elsewhere) or one of {SHOWN:?}, not {:?}",
                self.info
            )),
        }
    }

    /// Its commands: lines that belong together are one, and `# exit N` says how the one before ends.
    pub fn commands(&self) -> Vec<Command> {
        let mut commands: Vec<Command> = Vec::new();
        let mut open: Option<(usize, Vec<&str>)> = None;
        for (index, text) in self.lines.iter().enumerate() {
            if open.is_none() {
                if let (Some(code), Some(last)) = (exit_code(text), commands.last_mut()) {
                    last.code = code;
                }
                if text.trim().is_empty() || text.trim_start().starts_with('#') {
                    continue;
                }
            }
            let (line, mut lines) = open.take().unwrap_or((self.line + 1 + index, Vec::new()));
            lines.push(text);
            if is_complete(&lines) {
                commands.push(Command { line, text: lines.join("\n"), code: 0 });
            } else {
                open = Some((line, lines));
            }
        }
        if let Some((line, lines)) = open {
            commands.push(Command { line, text: lines.join("\n"), code: 0 });
        }
        commands
    }

    /// Lines that begin like something that is typed.
    fn typed(&self) -> impl Iterator<Item = usize> {
        let prompts = self.lines.iter().enumerate().filter(|(_, text)| text.trim_start().starts_with("$ "));
        prompts.map(|(index, _)| self.line + 1 + index)
    }
}

fn exit_code(text: &str) -> Option<i32> {
    text.trim().strip_prefix("# exit ")?.parse().ok()
}

fn is_typed(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    let is_setting = word
        .split_once('=')
        .is_some_and(|(name, _)| !name.is_empty() && name.chars().all(|one| one.is_ascii_uppercase() || one == '_'));
    let spaced = text.split_whitespace().count() > 1;
    is_setting
        || spaced
            && TYPED
                .iter()
                .any(|typed| word == *typed || typed.ends_with('/') && word.starts_with(typed) && !word.ends_with('/'))
}

/// Whether lines are a whole command: no continuation, here-document, quote or compound is open.
fn is_complete(lines: &[&str]) -> bool {
    if lines.last().is_some_and(|line| line.ends_with('\\')) || has_open_document(lines) {
        return false;
    }
    let checked = std::process::Command::new("bash").args(["-n", "-c", &lines.join("\n")]).output().expect("bash runs");
    let said = String::from_utf8_lossy(&checked.stderr);
    !(said.contains("unexpected end of file") || said.contains("unexpected EOF"))
}

fn has_open_document(lines: &[&str]) -> bool {
    let mut delimiter: Option<String> = None;
    for line in lines {
        match &delimiter {
            Some(end) if line.trim() == end => delimiter = None,
            Some(_) => {}
            None => delimiter = document(line),
        }
    }
    delimiter.is_some()
}

/// The word that ends the here-document which a line begins.
fn document(line: &str) -> Option<String> {
    let rest = line.split_once("<<")?.1;
    if rest.starts_with('<') {
        return None;
    }
    let word = rest.trim_start_matches('-').trim_start().trim_start_matches(['\'', '"']);
    let end = word.find(|one: char| !one.is_alphanumeric() && one != '_').unwrap_or(word.len());
    (end > 0).then(|| word[..end].to_owned())
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open: Option<(usize, Block)> = None;
    let mut is_directly_after = false;
    for (index, line) in text.lines().enumerate() {
        let trimmed = line.trim_start();
        match open.take() {
            Some((_, block)) if trimmed.trim_end() == "```" => {
                blocks.push(block);
                is_directly_after = true;
            }
            Some((indent, mut block)) => {
                let cut = line.len() - trimmed.len();
                block.lines.push(line[cut.min(indent)..].to_owned());
                open = Some((indent, block));
            }
            None if trimmed.starts_with("```") => {
                let info = trimmed.trim_start_matches('`').trim().to_owned();
                let follows = is_directly_after;
                open = Some((line.len() - trimmed.len(), Block { line: index + 1, info, lines: Vec::new(), follows }));
            }
            None => is_directly_after &= line.trim().is_empty(),
        }
    }
    blocks.extend(open.map(|(_, block)| block));
    blocks
}

mod tests {
    use super::{Command, Page, Place, Stay, Use};
    use std::path::Path;

    fn page(text: &str) -> Page {
        Page::parse(Path::new("page.md"), text)
    }

    fn commands(text: &str) -> Vec<(String, i32)> {
        page(&format!("```sh\n{text}\n```\n")).blocks[0]
            .commands()
            .into_iter()
            .map(|Command { text, code, .. }| (text, code))
            .collect()
    }

    #[test]
    fn lines_that_belong_together_are_one_command() {
        let found = commands("a \\\n  b\nc <<'EOF'\n  # exit 3\nEOF\n# a remark\nf() {\n  d\n}\necho 'x\ny'\nz");

        let expected = ["a \\\n  b", "c <<'EOF'\n  # exit 3\nEOF", "f() {\n  d\n}", "echo 'x\ny'", "z"];
        assert_eq!(found, expected.map(|text| (text.to_owned(), 0)));
    }

    #[test]
    fn a_remark_after_a_command_says_how_it_ends() {
        assert_eq!(commands("a\n# exit 2\nb"), [("a".to_owned(), 2), ("b".to_owned(), 0)]);
    }

    #[test]
    fn the_words_behind_a_fence_say_what_is_done() {
        let uses = |info: &str| page(&format!("```{info}\nx\n```")).blocks[0].usage().ok();

        assert_eq!(uses("sh"), Some(Use::Run(Place::Machine, Stay::Ends)));
        assert_eq!(uses("sh cluster background"), Some(Use::Run(Place::Cluster, Stay::Background)));
        assert_eq!(uses("sh elsewhere"), Some(Use::Elsewhere));
        assert_eq!(uses("yaml"), Some(Use::Shown));
        for other in ["", "bash", "console", "sh later", "text x"] {
            assert_eq!(uses(other), None, "{other}");
        }
    }

    #[test]
    fn commands_that_nothing_would_run_are_found() {
        let found = page("# Title\n\n    portolan up here\n    kubectl/   a folder\n\n```text\n$ portolan get\nportolan said this\n```\n").faults();

        assert_eq!(found.iter().map(|fault| fault.line).collect::<Vec<_>>(), [3, 7]);
    }

    #[test]
    fn a_block_in_a_list_loses_the_lists_indentation() {
        let page = page("- first\n\n  ```sh\n  a\n    b\n  ```\n\n  ```text\n  c\n  ```\n");

        assert_eq!(page.blocks[0].lines, ["a", "  b"]);
        assert!(page.blocks[1].follows && !page.blocks[0].follows);
    }
}
