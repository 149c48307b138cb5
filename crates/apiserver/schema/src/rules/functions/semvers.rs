//! `semver("1.2.3").isLessThan(semver("2.0.0"))`.

use std::cmp::Ordering;

use cel::common::types::{CelBool, CelInt, CelString};
use cel::{DeclarationError, Env, ExecutionError, add_member_overload, add_overload};

use super::failure;
use super::opaque::opaque;

#[derive(Clone, Debug)]
struct Semver {
    numbers: [u64; 3],
    pre: Vec<String>,
}

impl Semver {
    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let (rest, build) = text.split_once('+').map_or((text, None), |(rest, build)| (rest, Some(build)));
        let (core, pre) = rest.split_once('-').map_or((rest, None), |(core, pre)| (core, Some(pre)));
        let parts: Vec<&str> = core.split('.').collect();
        let [major, minor, patch] = parts.as_slice() else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let numbers = [number(major, "major")?, number(minor, "minor")?, number(patch, "patch")?];
        identifiers(build, false)?;
        Ok(Self { numbers, pre: identifiers(pre, true)? })
    }

    /// `v1.2` and `01.2` are taken as `1.2.0`.
    fn parse_lenient(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let end = text.find(['-', '+']).unwrap_or(text.len());
        let (core, rest) = text.split_at(end);
        let mut parts: Vec<String> = core
            .split('.')
            .map(|part| match part.trim_start_matches('0') {
                "" if !part.is_empty() => "0".to_owned(),
                trimmed => trimmed.to_owned(),
            })
            .collect();
        if parts.len() < 3 && !rest.is_empty() {
            return Err("Short version cannot contain PreRelease/Build meta data".to_owned());
        }
        parts.resize(parts.len().max(3), "0".to_owned());
        Self::parse(&format!("{}{rest}", parts.join(".")))
    }

    fn order(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => order_of_pre(&self.pre, &other.pre),
        })
    }
}

impl PartialEq for Semver {
    fn eq(&self, other: &Self) -> bool {
        self.order(other) == Ordering::Equal
    }
}

opaque!(Semver, SEMVER, "kubernetes.Semver");

fn order_of_pre(left: &[String], right: &[String]) -> Ordering {
    for (a, b) in left.iter().zip(right) {
        let order = match (a.parse::<u64>(), b.parse::<u64>()) {
            (Ok(a), Ok(b)) => a.cmp(&b),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => a.cmp(b),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    left.len().cmp(&right.len())
}

fn number(part: &str, which: &str) -> Result<u64, String> {
    if part.is_empty() || !part.bytes().all(|c| c.is_ascii_digit()) {
        return Err(format!("Invalid character(s) found in {which} number \"{part}\""));
    }
    if part.len() > 1 && part.starts_with('0') {
        let name = format!("{}{}", which[..1].to_uppercase(), &which[1..]);
        return Err(format!("{name} number must not contain leading zeroes \"{part}\""));
    }
    part.parse().map_err(|_| format!("strconv.ParseUint: parsing \"{part}\": value out of range"))
}

fn identifiers(text: Option<&str>, pre: bool) -> Result<Vec<String>, String> {
    let Some(text) = text else { return Ok(Vec::new()) };
    text.split('.')
        .map(|part| {
            let named = !part.is_empty() && part.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-');
            let padded = pre && part.len() > 1 && part.starts_with('0') && part.bytes().all(|c| c.is_ascii_digit());
            match (named, padded) {
                (true, false) => Ok(part.to_owned()),
                (true, true) => Err(format!("Numeric PreRelease version must not contain leading zeroes \"{part}\"")),
                (false, _) if pre => Err(format!("Invalid character(s) found in prerelease \"{part}\"")),
                (false, _) => Err(format!("Invalid character(s) found in build meta data \"{part}\"")),
            }
        })
        .collect()
}

pub(super) fn declare(env: &mut Env) -> Result<(), DeclarationError> {
    add_overload!(env, fn semver: (CelString<'_>) -> Result<Semver>, name = "semver")?;
    add_overload!(env, fn lenient: (CelString<'_>, CelBool) -> Result<Semver>, name = "semver")?;
    add_overload!(env, fn is_semver: (CelString<'_>) -> CelBool, name = "isSemver")?;
    add_overload!(env, fn is_lenient: (CelString<'_>, CelBool) -> CelBool, name = "isSemver")?;
    add_member_overload!(env, fn is_greater_than: (Semver, Semver) -> CelBool)?;
    add_member_overload!(env, fn is_less_than: (Semver, Semver) -> CelBool)?;
    add_member_overload!(env, fn compare_to: (Semver, Semver) -> CelInt)?;
    add_member_overload!(env, fn major: (Semver) -> CelInt)?;
    add_member_overload!(env, fn minor: (Semver) -> CelInt)?;
    add_member_overload!(env, fn patch: (Semver) -> CelInt)?;
    Ok(())
}

fn read(text: &str, normalised: bool) -> Result<Semver, String> {
    if normalised { Semver::parse_lenient(text) } else { Semver::parse(text) }
}

fn semver(text: &CelString<'_>) -> Result<Semver, ExecutionError> {
    Semver::parse(text.inner()).map_err(failure)
}

fn lenient(text: &CelString<'_>, normalised: &CelBool) -> Result<Semver, ExecutionError> {
    read(text.inner(), *normalised.inner()).map_err(failure)
}

fn is_semver(text: &CelString<'_>) -> CelBool {
    Semver::parse(text.inner()).is_ok().into()
}

fn is_lenient(text: &CelString<'_>, normalised: &CelBool) -> CelBool {
    read(text.inner(), *normalised.inner()).is_ok().into()
}

fn is_greater_than(this: &Semver, other: &Semver) -> CelBool {
    (this.order(other) == Ordering::Greater).into()
}

fn is_less_than(this: &Semver, other: &Semver) -> CelBool {
    (this.order(other) == Ordering::Less).into()
}

fn compare_to(this: &Semver, other: &Semver) -> CelInt {
    (this.order(other) as i64).into()
}

fn major(this: &Semver) -> CelInt {
    component(this, 0)
}

fn minor(this: &Semver) -> CelInt {
    component(this, 1)
}

fn patch(this: &Semver) -> CelInt {
    component(this, 2)
}

fn component(this: &Semver, index: usize) -> CelInt {
    i64::try_from(this.numbers[index]).unwrap_or(i64::MAX).into()
}
