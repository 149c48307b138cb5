//! Pages → every command of them run as a reader would, one page after the other.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use super::cluster::Cluster;
use super::elsewhere;
use super::page::{Block, Command, Fault, Page, Place, Stay, Use};
use super::session::Session;
use super::shown;

/// Ports that the documentation names; they must be free.
const PORTS: [u16; 5] = [6440, 8080, 8081, 8787, 8788];

/// What of the repository a reader has at hand.
const AT_HAND: [&str; 3] = ["examples", "charts", "tests/migration"];

/// Commands that stay: how they begin, what they take the place of, and what they say when they can be used.
const STAYING: &[(&str, &str, &[&str])] = &[
    ("portolan up", "portolan", &["objects Ready"]),
    ("portolan apiserver", "portolan", &["Kubernetes API at", "API server"]),
    ("portolan sim", "simulator", &["Simulated Cloudflare API at"]),
    ("portolan run", "controllers", &["Starting the controllers"]),
    ("kubectl", "kubectl", &["\n"]),
];

/// What was run.
#[derive(Debug, Default)]
pub struct Count {
    pub commands: usize,
    pub pages: usize,
    /// Pages that could not be run, with why.
    pub not_run: Vec<String>,
}

/// The programs of a reader.
pub struct Programs {
    pub portolan: PathBuf,
    pub kubectl: Result<PathBuf, String>,
    pub helm: Result<PathBuf, String>,
}

/// Runs all pages; stops at the first command that does not do what its page says.
pub fn run(
    root: &Path,
    pages: &[Page],
    programs: &Programs,
    runtime: &tokio::runtime::Runtime,
) -> Result<Count, Fault> {
    let mut count = Count::default();
    for page in pages {
        let uses: Vec<Use> = page.blocks.iter().filter_map(|block| block.usage().ok()).collect();
        check_elsewhere(page)?;
        if !uses.iter().any(|one| matches!(one, Use::Run(..))) {
            continue;
        }
        if let Some(why) = missing(page, programs) {
            count.not_run.push(format!("{}: {why}", page.path.display()));
            continue;
        }
        let mut reader = Reader::new(root, page, programs, runtime)?;
        match reader.read() {
            Ok(commands) => count.commands += commands,
            Err(Stopped::NotHere(why)) => {
                count.not_run.push(format!("{}: {why}", page.path.display()));
                continue;
            }
            Err(Stopped::Wrong(fault)) => return Err(fault),
        }
        count.pages += 1;
    }
    Ok(count)
}

/// Commands that are not run here must be run where the table says.
fn check_elsewhere(page: &Page) -> Result<(), Fault> {
    for block in page.blocks.iter().filter(|block| block.usage() == Ok(Use::Elsewhere)) {
        for command in block.commands() {
            if elsewhere::place(&command.text).is_none() {
                return Err(
                    page.fault(command.line, format!("{} is run nowhere: add where to elsewhere.rs", command.text))
                );
            }
        }
    }
    Ok(())
}

/// The program that a page needs and that is not here.
fn missing(page: &Page, programs: &Programs) -> Option<String> {
    let has = |word: &str| {
        let runs = page.blocks.iter().filter(|block| matches!(block.usage(), Ok(Use::Run(..))));
        runs.flat_map(|block| &block.lines)
            .any(|line| line.split(|one: char| !one.is_alphanumeric()).any(|part| part == word))
    };
    let kubectl = programs.kubectl.as_ref().err().filter(|_| has("kubectl"));
    kubectl.or_else(|| programs.helm.as_ref().err().filter(|_| has("helm"))).cloned()
}

/// Why a page was not read to its end.
enum Stopped {
    /// Something that it needs cannot be had on this machine.
    NotHere(String),
    /// The page says something that is not so.
    Wrong(Fault),
}

/// Somebody who has a page before them, and types.
struct Reader<'a> {
    page: &'a Page,
    programs: &'a Programs,
    runtime: &'a tokio::runtime::Runtime,
    machine: Option<Session>,
    cluster: Option<(Session, Cluster)>,
    folder: tempfile::TempDir,
}

impl<'a> Reader<'a> {
    fn new(
        root: &Path,
        page: &'a Page,
        programs: &'a Programs,
        runtime: &'a tokio::runtime::Runtime,
    ) -> Result<Self, Fault> {
        for port in PORTS {
            if let Err(error) = TcpListener::bind(("127.0.0.1", port)) {
                return Err(page.fault(1, format!("port {port} is taken, which the documentation names: {error}")));
            }
        }
        let folder = tempfile::tempdir().expect("a temporary folder");
        for name in AT_HAND.iter().filter(|name| root.join(name).exists()) {
            copy(&root.join(name), &folder.path().join("work").join(name));
        }
        let reader = Self { page, programs, runtime, machine: None, cluster: None, folder };
        reader.lay_out_programs();
        Ok(reader)
    }

    fn lay_out_programs(&self) {
        let bin = self.folder.path().join("bin");
        fs::create_dir_all(&bin).expect("a folder can be made");
        let links = [
            ("portolan", Ok(&self.programs.portolan)),
            ("kubectl", self.programs.kubectl.as_ref()),
            ("helm", self.programs.helm.as_ref()),
        ];
        for (name, program) in links {
            if let Ok(program) = program {
                std::os::unix::fs::symlink(program, bin.join(name)).expect("a link can be made");
            }
        }
    }

    /// Types every command of the page; the number of them.
    fn read(&mut self) -> Result<usize, Stopped> {
        let mut count = 0;
        let mut said = String::new();
        for block in &self.page.blocks {
            match block.usage() {
                Ok(Use::Run(place, stay)) => {
                    said.clear();
                    for command in block.commands() {
                        said.push_str(&self.type_in(&command, place, stay)?);
                        count += 1;
                    }
                }
                Ok(Use::Shown) if block.follows && block.info == "text" => self.compare(block, &said)?,
                Ok(Use::Shown | Use::Elsewhere) | Err(_) => said.clear(),
            }
        }
        Ok(count)
    }

    fn type_in(&mut self, command: &Command, place: Place, stay: Stay) -> Result<String, Stopped> {
        let session = self.session(place)?;
        let ran = match stay {
            Stay::Ends => session.run(&command.text),
            Stay::Background => match STAYING.iter().find(|(beginning, ..)| command.text.starts_with(beginning)) {
                Some((_, slot, ready)) => session.start_background(&command.text, slot, ready),
                None => Err("nobody knows what it says when it is ready: add it to STAYING in runner.rs".to_owned()),
            },
        };
        let wrong = match ran {
            Ok(ran) if ran.code == command.code => return Ok(ran.said),
            Ok(ran) => format!("exit code {} instead of {}; it said:\n{}", ran.code, command.code, ran.said),
            Err(why) => why,
        };
        let mut beside = session.background_output();
        beside.extend(self.cluster.iter().map(|(_, cluster)| cluster.logs()));
        Err(Stopped::Wrong(self.page.fault(command.line, format!("{}\n{wrong}\n{beside}", command.text))))
    }

    fn compare(&self, block: &Block, said: &str) -> Result<(), Stopped> {
        match shown::missing(&block.lines, said) {
            None => Ok(()),
            Some(line) => {
                Err(Stopped::Wrong(self.page.fault(block.line, format!("shows {line:?}, but was said:\n{said}"))))
            }
        }
    }

    fn session(&mut self, place: Place) -> Result<&mut Session, Stopped> {
        match place {
            Place::Machine => {
                if self.machine.is_none() {
                    self.machine = Some(self.shell("machine", &[]));
                }
                Ok(self.machine.as_mut().expect("made above"))
            }
            Place::Cluster => {
                if self.cluster.is_none() {
                    // What the page ran without a cluster listens where the cluster's edge shall.
                    self.machine = None;
                    let kubectl = self.programs.kubectl.as_ref().map_err(|why| Stopped::NotHere(why.clone()))?;
                    let cluster =
                        Cluster::start(self.runtime, kubectl, self.folder.path()).map_err(Stopped::NotHere)?;
                    self.cluster = Some((self.shell("cluster", &cluster.variables()), cluster));
                }
                Ok(&mut self.cluster.as_mut().expect("made above").0)
            }
        }
    }

    fn shell(&self, name: &str, more: &[(&'static str, String)]) -> Session {
        let work = self.folder.path().join("work");
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", self.folder.path().join("bin").display());
        let mut variables =
            vec![("PATH", path), ("HOME", self.folder.path().display().to_string()), ("NO_COLOR", "1".to_owned())];
        variables.extend(more.iter().cloned());
        Session::start(&work, self.folder.path().join(name), &variables)
    }
}

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for entry in fs::read_dir(from).expect("a folder can be read").map(|entry| entry.expect("it has entries")) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("a file can be copied");
        }
    }
}
