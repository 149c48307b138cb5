//! The image of a container → the program of this machine that stands for it.
//!
//! Only what the table names is run: an image is nothing that could be unpacked here, and a name in a command is looked up among
//! the program's own names only, never on the user's PATH.

/// A program that stands for images.
#[derive(Debug, PartialEq, Eq)]
pub struct LocalProgram {
    /// Its name, for messages.
    pub name: &'static str,
    /// Repositories of images that it stands for; `*` at the beginning stands for any registry and folders.
    images: &'static [&'static str],
    /// Where it is.
    pub source: ProgramSource,
    /// How paths of mounts are made to work.
    pub paths: PathRule,
}

/// Where a program is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProgramSource {
    /// The runner's own executable, with these arguments before all others.
    Own(&'static [&'static str]),
    /// The first of these folders that has it; what the command names must be it.
    Installed {
        /// Its file name.
        file: &'static str,
        /// Arguments where the pod gives none.
        usual: &'static [&'static str],
    },
    /// A set of small tools: the command names one of them.
    Applets {
        /// Their names.
        names: &'static [&'static str],
        /// The command where the pod gives none.
        usual: &'static [&'static str],
    },
}

/// How paths of mounts are made to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathRule {
    /// Command, arguments and variables name the folders that stand for the mounts.
    Substituted,
    /// The program's own configuration names them as well: it is given a copy in which they are replaced.
    SubstitutedInFiles,
}

/// Small tools. A shell is among them, so this is no wall: a pod can do what its user may on this machine.
const APPLETS: &[&str] = &[
    "sh", "ash", "sleep", "true", "false", "echo", "printf", "cat", "env", "printenv", "date", "id", "pwd", "ls",
    "test", "touch", "mkdir", "rm", "rmdir", "cp", "mv", "ln", "head", "tail", "wc", "grep", "sed", "sort", "uniq",
    "tr", "cut", "seq", "stat", "readlink", "kill", "yes", "dd", "hostname", "uname", "whoami",
];

/// All of them; the first that stands for an image is taken.
pub const PROGRAMS: &[LocalProgram] = &[
    LocalProgram {
        name: "portolan",
        images: &["*portolan"],
        source: ProgramSource::Own(&[]),
        paths: PathRule::Substituted,
    },
    LocalProgram {
        name: "echo server",
        images: &["*portolan-echo", "*echo-server", "*http-echo", "*whoami"],
        source: ProgramSource::Own(&["pod-echo"]),
        paths: PathRule::Substituted,
    },
    LocalProgram {
        name: "tools",
        images: &["*busybox", "*alpine", "*debian", "*ubuntu", "*bash"],
        source: ProgramSource::Applets { names: APPLETS, usual: &["sh"] },
        paths: PathRule::Substituted,
    },
    LocalProgram {
        name: "pause",
        images: &["*pause"],
        source: ProgramSource::Applets { names: &["sleep"], usual: &["sleep", "infinity"] },
        paths: PathRule::Substituted,
    },
    LocalProgram {
        name: "named",
        images: &["*bind9", "*bind", "*named"],
        source: ProgramSource::Installed { file: "named", usual: &["-g"] },
        paths: PathRule::SubstitutedInFiles,
    },
    LocalProgram {
        name: "cloudflared",
        images: &["*cloudflared"],
        source: ProgramSource::Installed { file: "cloudflared", usual: &["version"] },
        paths: PathRule::Substituted,
    },
];

/// Why a container has no program.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// No entry stands for the image.
    #[error(
        "no program of this machine stands for image {image:?}: there are programs for {known}; `--pods simulate` lets such pods be Ready without running them"
    )]
    NoProgram {
        /// The image.
        image: String,
        /// The names of the programs that there are.
        known: String,
    },
    /// The command names something that the program is not.
    #[error("exec: {command:?}: the program for this image is {program}, which has no such command: there is {known}")]
    NoCommand {
        /// The first word of the command.
        command: String,
        /// The program.
        program: &'static str,
        /// The commands that there are.
        known: String,
    },
}

/// What to execute for a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The executable.
    pub executable: Executable,
    /// Its arguments.
    pub arguments: Vec<String>,
}

/// An executable, as far as it can be said without looking for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Executable {
    /// The runner's own.
    Own,
    /// A file of this name in one of the system's folders.
    Named(String),
}

/// The program that stands for an image.
pub fn program_of(image: &str) -> Result<&'static LocalProgram, ProgramError> {
    let repository = repository(image);
    PROGRAMS.iter().find(|program| program.images.iter().any(|pattern| fits(pattern, repository))).ok_or_else(|| {
        let names: Vec<&str> = PROGRAMS.iter().map(|program| program.name).collect();
        ProgramError::NoProgram { image: image.to_owned(), known: names.join(", ") }
    })
}

/// The image without its tag and digest: `docker.io/library/busybox:1.36` → `docker.io/library/busybox`.
fn repository(image: &str) -> &str {
    let without_digest = image.split('@').next().unwrap_or(image);
    match without_digest.rsplit_once(':') {
        // A colon before a slash is a port.
        Some((before, tag)) if !tag.contains('/') => before,
        _ => without_digest,
    }
}

/// Whether a repository fits a pattern; what `*` stands for ends with a slash, or is nothing.
fn fits(pattern: &str, repository: &str) -> bool {
    match pattern.strip_prefix('*') {
        None => pattern == repository,
        Some(name) => repository.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('/')),
    }
}

impl LocalProgram {
    /// What to execute for a command and arguments of a container, either of which may be empty.
    pub fn invocation(&self, command: &[String], arguments: &[String]) -> Result<Invocation, ProgramError> {
        let with = |executable, before: &[&str], given: &[String]| {
            let before = before.iter().map(|text| (*text).to_owned());
            Invocation { executable, arguments: before.chain(given.iter().cloned()).collect() }
        };
        match self.source {
            ProgramSource::Own(before) => {
                let more = self.after_own_name(command, "portolan")?;
                Ok(with(Executable::Own, before, &[more, arguments].concat()))
            }
            ProgramSource::Installed { file, usual } => {
                let more = [self.after_own_name(command, file)?, arguments].concat();
                let before = if more.is_empty() { usual } else { &[] };
                Ok(with(Executable::Named(file.to_owned()), before, &more))
            }
            ProgramSource::Applets { names, usual } => self.applet(names, usual, command, arguments),
        }
    }

    /// What follows the program's own name in a command, which may be a path.
    fn after_own_name<'c>(&self, command: &'c [String], file: &str) -> Result<&'c [String], ProgramError> {
        match command.split_first() {
            None => Ok(&[]),
            Some((first, rest)) if file_name(first) == file || file_name(first) == self.name => Ok(rest),
            // The built-in server stands for servers with names of their own.
            Some((_, rest)) if self.source == ProgramSource::Own(&["pod-echo"]) => Ok(rest),
            Some((first, _)) => Err(self.no_command(first.clone(), &[file])),
        }
    }

    fn no_command(&self, command: String, known: &[&str]) -> ProgramError {
        ProgramError::NoCommand { command, program: self.name, known: known.join(", ") }
    }

    fn applet(
        &self,
        names: &[&str],
        usual: &[&str],
        command: &[String],
        arguments: &[String],
    ) -> Result<Invocation, ProgramError> {
        let mut words: Vec<String> = command.iter().chain(arguments).cloned().collect();
        if words.is_empty() {
            words = usual.iter().map(|word| (*word).to_owned()).collect();
        }
        let first = words.remove(0);
        let name = file_name(&first);
        if !names.contains(&name) {
            return Err(self.no_command(first, names));
        }
        // The small shell of these images is the system's.
        let file = if name == "ash" { "sh" } else { name };
        Ok(Invocation { executable: Executable::Named(file.to_owned()), arguments: words })
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(image: &str) -> &'static str {
        program_of(image).map_or("none", |program| program.name)
    }

    #[test]
    fn images_are_known_by_their_repository_whatever_registry_tag_and_digest() {
        let images = [
            "busybox",
            "busybox:1.36",
            "docker.io/library/busybox:latest",
            "localhost:5000/busybox",
            "busybox@sha256:00",
        ];

        assert_eq!(images.map(program), ["tools"; 5]);
        assert_eq!(program("cloudflare/cloudflared:2024.1.0"), "cloudflared");
        assert_eq!(program("internetsystemsconsortium/bind9:9.18"), "named");
    }

    #[test]
    fn images_without_a_program_are_told_with_what_there_is() {
        assert_eq!(["nginx", "notbusybox", "busybox-extras", ""].map(program), ["none"; 4]);
        let told = program_of("nginx:1").unwrap_err().to_string();
        assert!(told.contains("\"nginx:1\"") && told.contains("named") && told.contains("--pods simulate"), "{told}");
    }

    fn invoked(image: &str, command: &[&str], arguments: &[&str]) -> Result<String, ProgramError> {
        let owned = |texts: &[&str]| -> Vec<String> { texts.iter().map(|text| (*text).to_owned()).collect() };
        let invocation = program_of(image)?.invocation(&owned(command), &owned(arguments))?;
        let first = match invocation.executable {
            Executable::Own => "OWN".to_owned(),
            Executable::Named(name) => name,
        };
        Ok([vec![first], invocation.arguments].concat().join(" "))
    }

    #[test]
    fn a_command_names_one_of_the_tools() {
        assert_eq!(invoked("busybox", &["/bin/sh", "-c"], &["echo hi"]).unwrap(), "sh -c echo hi");
        assert_eq!(invoked("busybox", &[], &["sleep", "5"]).unwrap(), "sleep 5");
        assert_eq!(invoked("alpine", &["ash"], &[]).unwrap(), "sh");
        assert_eq!(invoked("busybox", &[], &[]).unwrap(), "sh");
        assert_eq!(invoked("registry.k8s.io/pause:3.9", &[], &[]).unwrap(), "sleep infinity");
    }

    #[test]
    fn other_commands_are_refused() {
        let told = invoked("busybox", &["curl", "x"], &[]).unwrap_err().to_string();
        let opening =
            "exec: \"curl\": the program for this image is tools, which has no such command: there is sh, ash, sleep,";
        assert!(told.starts_with(opening), "{told}");
        let named = invoked("bind9", &["bash"], &[]).unwrap_err().to_string();
        assert!(named.ends_with("which has no such command: there is named"), "{named}");
        assert!(invoked("portolan", &["bash"], &[]).is_err());
        assert!(invoked("pause", &["sh"], &[]).is_err());
    }

    #[test]
    fn a_program_of_its_own_takes_arguments_with_and_without_its_name() {
        assert_eq!(
            invoked("portolan", &["/usr/bin/portolan", "run"], &["--log", "json"]).unwrap(),
            "OWN run --log json"
        );
        assert_eq!(invoked("portolan", &[], &["crds"]).unwrap(), "OWN crds");
        assert_eq!(invoked("bind9", &["named"], &["-c", "/etc/named.conf"]).unwrap(), "named -c /etc/named.conf");
        assert_eq!(invoked("bind9", &[], &[]).unwrap(), "named -g");
        assert_eq!(invoked("traefik/whoami", &["/whoami"], &["--port", "80"]).unwrap(), "OWN pod-echo --port 80");
    }
}
