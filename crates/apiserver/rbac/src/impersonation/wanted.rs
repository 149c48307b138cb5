//! `Impersonate-*` headers → the user that is asked for.

use std::fmt::Write as _;

use portolan_schema::go::quote;

use crate::user::User;

/// One header, its name in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// Such as `impersonate-user`.
    pub name: &'a str,
    /// Its value.
    pub value: &'a str,
}

/// The user that the headers ask for, as they say it; none where they ask for nobody.
///
/// # Errors
/// The sentence about headers that name no user but something of one.
pub fn wanted<'a>(headers: impl IntoIterator<Item = Header<'a>>) -> Result<Option<User>, String> {
    let mut user = User::default();
    for Header { name, value } in headers {
        match name.strip_prefix("impersonate-") {
            Some("user") if user.name.is_empty() => value.clone_into(&mut user.name),
            Some("uid") if user.uid.is_empty() => value.clone_into(&mut user.uid),
            Some("group") => user.groups.push(value.to_owned()),
            Some(other) => {
                if let Some(key) = other.strip_prefix("extra-") {
                    user.extra.entry(unescaped(key)).or_default().push(value.to_owned());
                }
            }
            None => {}
        }
    }
    match user {
        user if !user.name.is_empty() => Ok(Some(user)),
        user if user == User::default() => Ok(None),
        user => Err(format!("requested {} without impersonating a user name", printed(&user))),
    }
}

/// Keys are percent-encoded; one that is not properly so is taken as it is.
fn unescaped(key: &str) -> String {
    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        if *first == b'%' {
            let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
            let Some(Ok(byte)) = digits.map(|digits| u8::from_str_radix(digits, 16)) else {
                return key.to_owned();
            };
            bytes.push(byte);
            rest = &tail[2..];
        } else {
            bytes.push(*first);
            rest = tail;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `%#v` of Go's struct of a user.
fn printed(user: &User) -> String {
    let list = |items: &[String]| {
        let items: Vec<String> = items.iter().map(|item| quote(item)).collect();
        format!("[]string{{{}}}", items.join(", "))
    };
    let groups = if user.groups.is_empty() { "[]string(nil)".to_owned() } else { list(&user.groups) };
    let mut extra = "map[string][]string".to_owned();
    if user.extra.is_empty() {
        extra.push_str("(nil)");
    } else {
        let pairs: Vec<String> =
            user.extra.iter().map(|(key, values)| format!("{}:{}", quote(key), list(values))).collect();
        write!(extra, "{{{}}}", pairs.join(", ")).expect("a string takes any text");
    }
    format!("&user.DefaultInfo{{Name:\"\", UID:{}, Groups:{groups}, Extra:{extra}}}", quote(&user.uid))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(headers: &[(&str, &str)]) -> Result<Option<User>, String> {
        wanted(headers.iter().map(|(name, value)| Header { name, value }))
    }

    #[test]
    fn headers_name_user_groups_uid_and_extra() {
        let user = read(&[
            ("impersonate-user", "bob"),
            ("impersonate-group", "a"),
            ("impersonate-group", "b"),
            ("impersonate-extra-example.com%2fkey", "v"),
            ("accept", "*/*"),
        ]);

        let user = user.unwrap().unwrap();
        assert_eq!((user.name.as_str(), user.groups.len()), ("bob", 2));
        assert_eq!(user.extra["example.com/key"], ["v"]);
    }

    #[test]
    fn nobody_is_asked_for_without_headers() {
        assert_eq!(read(&[("accept", "*/*")]), Ok(None));
    }

    #[test]
    fn groups_without_a_user_are_refused() {
        assert_eq!(
            read(&[("impersonate-group", "foo"), ("impersonate-extra-k", "v")]).unwrap_err(),
            "requested &user.DefaultInfo{Name:\"\", UID:\"\", Groups:[]string{\"foo\"}, \
             Extra:map[string][]string{\"k\":[]string{\"v\"}}} without impersonating a user name"
        );
    }
}
