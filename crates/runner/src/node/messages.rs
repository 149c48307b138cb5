//! What a container leaves when it ends: a file of its own, or the end of its output (`kuberuntime/kuberuntime_container.go`,
//! `getTerminationMessage`).

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use k8s_openapi::api::core::v1::Container;

use super::output::WhichRun;
use super::worker::PodWorker;
use crate::machine::files::message_file;
use crate::machine::logs::OutputLine;
use crate::pod::containers::uid;

/// What is shown of a message.
const LONGEST_MESSAGE: u64 = 4096;
/// What is shown of the end of the output.
const LONGEST_OUTPUT: usize = 2048;
const MOST_LINES: usize = 80;

/// Where the container believes its message file is.
pub(super) fn message_path(container: &Container) -> &str {
    let path = container.termination_message_path.as_deref().filter(|path| !path.is_empty());
    path.unwrap_or("/dev/termination-log")
}

impl PodWorker {
    /// An empty message file for the container's next run. Its folder is the runner's: no link can take its place.
    pub(super) fn message_file(&self, container: &Container) -> io::Result<PathBuf> {
        let (pod, restarts) = (uid(&self.pod), self.record.container(&container.name).restarts);
        let path = self.context.folders.run(pod, &container.name, restarts).join("message");
        message_file(&path, self.file_owner())?;
        Ok(path)
    }

    /// What the container left; the end of its output where it failed without a word and asks for that.
    pub(super) fn last_message(&self, container: &str, exit_code: i32) -> Option<String> {
        let written = self.files.get(container).and_then(|files| end_of(&files.message).ok()).unwrap_or_default();
        if !written.is_empty() {
            return Some(written);
        }
        let policy = self.container(container)?.termination_message_policy;
        if exit_code == 0 || policy.as_deref() != Some("FallbackToLogsOnError") {
            return None;
        }
        let output = self.context.outputs.lines(uid(&self.pod), container, WhichRun::Current, Some(MOST_LINES));
        Some(end_of_output(&output.ok()??.0)).filter(|text| !text.is_empty())
    }
}

/// The end of a file that may be of any size.
fn end_of(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    file.seek(SeekFrom::Start(size.saturating_sub(LONGEST_MESSAGE)))?;
    let mut text = Vec::new();
    file.take(LONGEST_MESSAGE).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

fn end_of_output(lines: &[OutputLine]) -> String {
    let mut text: Vec<u8> = Vec::new();
    for line in lines {
        text.extend_from_slice(&line.text);
        text.push(b'\n');
    }
    String::from_utf8_lossy(&text[text.len().saturating_sub(LONGEST_OUTPUT)..]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pod::testing::at;
    use bytes::Bytes;

    #[test]
    fn of_a_long_message_the_end_is_shown() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("message");
        std::fs::write(&path, format!("{}end", "x".repeat(10_000))).unwrap();

        let told = end_of(&path).unwrap();

        assert!(told.len() == 4096 && told.ends_with("xend"), "{}", told.len());
    }

    #[test]
    fn of_much_output_the_end_is_shown() {
        let line = |text: String| OutputLine { time: at(0), text: Bytes::from(text) };
        let lines: Vec<OutputLine> = (0..80).map(|number| line(format!("{number:099}"))).collect();

        let told = end_of_output(&lines);

        assert!(told.len() == 2048 && told.ends_with("079\n"), "{told}");
        assert_eq!(end_of_output(&lines[..1]).len(), 100);
    }
}
