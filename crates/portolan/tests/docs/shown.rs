//! Output as a page shows it, against what a command really said.
//!
//! `…` stands for anything. Lines that the page leaves out are no difference; lines in another order are.

/// The first line of the page that the command did not say.
pub fn missing<'a>(shown: &'a [String], said: &str) -> Option<&'a str> {
    let mut said = said.lines().map(tidy);
    let mut wanted = shown.iter().map(String::as_str).filter(|line| !matches!(line.trim(), "" | "…"));
    wanted.find(|line| !said.any(|real| fits(&tidy(line), &real)))
}

/// A line with single spaces, since the width of columns depends on ids and times.
fn tidy(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn fits(pattern: &str, line: &str) -> bool {
    let mut pieces = pattern.split('…').map(str::trim);
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let pieces: Vec<&str> = pieces.collect();
    let Some((last, middle)) = pieces.split_last() else { return rest.is_empty() };
    for piece in middle {
        match rest.find(piece) {
            Some(at) => rest = &rest[at + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

mod tests {
    use super::missing;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn lines_may_be_left_out_and_parts_of_them() {
        let said = "NAME   AGE\nprod   3s\nHTTP/1.1 302 Found\nlocation: https://login/x?y\n\nbody\n";

        assert_eq!(missing(&lines("NAME  AGE\nprod …\n…\nlocation: …login…\nbody"), said), None);
        assert_eq!(missing(&lines("location: …login"), said), Some("location: …login"));
        assert_eq!(missing(&lines("body\nNAME AGE"), said), Some("NAME AGE"));
        assert_eq!(
            missing(&lines("HTTP/1.1 302"), said),
            Some("HTTP/1.1 302"),
            "a whole line, unless … says otherwise"
        );
    }
}
