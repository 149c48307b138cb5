//! Where a container believes its volumes are, and where they are → texts in which the one stands for the other.
//!
//! A process of this machine sees this machine's files. What it is told of the paths of its mounts is made to name the folders
//! that stand for them: in its command, arguments, variables and working directory.

/// A mount: the path that the container knows, and the folder that stands for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountedPath {
    /// As the pod says it, without a slash at its end.
    pub inside: String,
    /// On this machine.
    pub outside: String,
}

impl MountedPath {
    /// A mount. The root of all files cannot be one.
    pub fn new(inside: &str, outside: &str) -> Option<Self> {
        let inside = inside.trim_end_matches('/');
        let inside = if inside.starts_with('/') { inside.to_owned() } else { format!("/{inside}") };
        (inside.len() > 1).then(|| Self { inside, outside: outside.trim_end_matches('/').to_owned() })
    }
}

/// The text with the paths of mounts replaced. A path is replaced where it stands alone or goes on with `/`, and where nothing
/// before it makes it the end of another path: `/etc/app` is not in `/etc/application`, nor in `/opt/etc/app`.
pub fn substituted(text: &str, mounts: &[MountedPath]) -> String {
    let mut done = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        let (before, path) = rest.split_at(at);
        done.push_str(before);
        let is_start = !done.ends_with(is_of_path);
        let fitting = mounts.iter().filter(|mount| is_start && begins(path, &mount.inside));
        if let Some(mount) = fitting.max_by_key(|one| one.inside.len()) {
            done.push_str(&mount.outside);
            rest = &path[mount.inside.len()..];
            // What goes on is of this path, which is done.
            let (more, after) = rest.split_at(rest.find(|c| !is_of_path(c)).unwrap_or(rest.len()));
            done.push_str(more);
            rest = after;
        } else {
            done.push('/');
            rest = &path[1..];
        }
    }
    done + rest
}

/// What may stand before a slash in a path. A colon, a comma and `=` may not: they part paths in arguments.
fn is_of_path(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '~' | '+' | '@' | '%')
}

fn begins(path: &str, inside: &str) -> bool {
    path.strip_prefix(inside).is_some_and(|rest| rest.chars().next().is_none_or(|c| c == '/' || !is_of_path(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> String {
        let mounts = [("/etc/app", "/pods/1/config"), ("/etc/app/tls", "/pods/1/tls"), ("/data/", "/claims/data")];
        let mounts: Vec<MountedPath> =
            mounts.iter().filter_map(|(inside, outside)| MountedPath::new(inside, outside)).collect();
        substituted(text, &mounts)
    }

    #[test]
    fn paths_of_mounts_are_replaced_wherever_an_argument_may_have_them() {
        assert_eq!(of("/etc/app/main.conf"), "/pods/1/config/main.conf");
        assert_eq!(of("--config=/etc/app"), "--config=/pods/1/config");
        assert_eq!(of("a:/data:/etc/app/x,y"), "a:/claims/data:/pods/1/config/x,y");
        assert_eq!(
            of("cat '/etc/app/x' > /data/y; ls /data"),
            "cat '/pods/1/config/x' > /claims/data/y; ls /claims/data"
        );
    }

    #[test]
    fn the_longest_mount_wins() {
        assert_eq!(of("/etc/app/tls/key /etc/app/tlsx"), "/pods/1/tls/key /pods/1/config/tlsx");
    }

    #[test]
    fn other_paths_stay() {
        for text in ["/etc/application", "/opt/etc/app", "/etc", "/", "", "etc/app", "/database", "x/data"] {
            assert_eq!(of(text), text);
        }
        assert_eq!(of("https://example.com/data"), "https://example.com/data");
    }

    #[test]
    fn the_root_of_all_files_is_no_mount() {
        assert_eq!(MountedPath::new("/", "/pods/1"), None);
        assert_eq!(MountedPath::new("data", "/p").map(|mount| mount.inside), Some("/data".to_owned()));
    }
}
