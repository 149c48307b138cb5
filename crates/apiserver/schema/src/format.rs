//! The `format`s of strings that Kubernetes checks; every other format is only a remark.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use regex::Regex;

/// A checked string format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the formats'")]
pub enum StringFormat {
    BsonObjectId,
    Byte,
    Cidr,
    CreditCard,
    Date,
    DateTime,
    Duration,
    Email,
    HexColor,
    Hostname,
    Ipv4,
    Ipv6,
    Isbn,
    Isbn10,
    Isbn13,
    LongName,
    Mac,
    Password,
    RgbColor,
    ShortName,
    Ssn,
    Uri,
    Uuid,
    Uuid3,
    Uuid4,
    Uuid5,
}

impl StringFormat {
    /// The format of that name; dashes do not count.
    pub fn named(name: &str) -> Option<Self> {
        Some(match name.replace('-', "").as_str() {
            "bsonobjectid" => Self::BsonObjectId,
            "byte" => Self::Byte,
            "cidr" => Self::Cidr,
            "creditcard" => Self::CreditCard,
            "date" => Self::Date,
            "datetime" => Self::DateTime,
            "duration" => Self::Duration,
            "email" => Self::Email,
            "hexcolor" => Self::HexColor,
            "hostname" => Self::Hostname,
            "ipv4" => Self::Ipv4,
            "ipv6" => Self::Ipv6,
            "isbn" => Self::Isbn,
            "isbn10" => Self::Isbn10,
            "isbn13" => Self::Isbn13,
            "k8slongname" => Self::LongName,
            "mac" => Self::Mac,
            "password" => Self::Password,
            "rgbcolor" => Self::RgbColor,
            "k8sshortname" => Self::ShortName,
            "ssn" => Self::Ssn,
            "uri" => Self::Uri,
            "uuid" => Self::Uuid,
            "uuid3" => Self::Uuid3,
            "uuid4" => Self::Uuid4,
            "uuid5" => Self::Uuid5,
            _ => return None,
        })
    }

    /// Whether a text has this format.
    pub fn accepts(self, text: &str) -> bool {
        match self {
            Self::BsonObjectId => text.len() == 24 && text.bytes().all(|c| c.is_ascii_hexdigit()),
            Self::Byte => BASE64.is_match(text),
            Self::Cidr => is_cidr(text),
            Self::CreditCard => is_credit_card(text),
            Self::Date => is_date(text),
            Self::DateTime => is_date_time(text),
            Self::Duration => crate::duration::parse_lenient(text).is_some(),
            Self::Email => is_email(text),
            Self::HexColor => HEX_COLOR.is_match(text),
            Self::Hostname => is_hostname(text),
            Self::Ipv4 => text.contains('.') && parse_ip(text).is_some(),
            Self::Ipv6 => text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
            Self::Isbn => is_isbn10(text) || is_isbn13(text),
            Self::Isbn10 => is_isbn10(text),
            Self::Isbn13 => is_isbn13(text),
            Self::LongName => crate::names::dns1123_subdomain(text).is_empty(),
            Self::Mac => is_mac(text),
            Self::Password => true,
            Self::RgbColor => RGB_COLOR.is_match(text),
            Self::ShortName => crate::names::dns1123_label(text).is_empty(),
            Self::Ssn => text.len() == 11 && SSN.is_match(text),
            Self::Uri => is_request_uri(text),
            Self::Uuid => UUID.is_match(text),
            Self::Uuid3 => UUID3.is_match(text),
            Self::Uuid4 => UUID4.is_match(text),
            Self::Uuid5 => UUID5.is_match(text),
        }
    }
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("the patterns of this file compile")
}

static BASE64: LazyLock<Regex> =
    LazyLock::new(|| pattern("^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})$"));
static HEX_COLOR: LazyLock<Regex> = LazyLock::new(|| pattern("^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$"));
static RGB_COLOR: LazyLock<Regex> = LazyLock::new(|| {
    let part = r"(0|[1-9][0-9]?|1[0-9][0-9]?|2[0-4][0-9]|25[0-5])";
    let space = r"[\t\n\f\r ]*";
    pattern(&format!(r"^rgb\({space}{part}{space},{space}{part}{space},{space}{part}{space}\)$"))
});
static SSN: LazyLock<Regex> = LazyLock::new(|| pattern("^[0-9]{3}[- ]?[0-9]{2}[- ]?[0-9]{4}$"));
static HOSTNAME: LazyLock<Regex> = LazyLock::new(|| {
    let c = r"a-zA-Z0-9\p{S}\p{L}";
    pattern(&format!(
        r"^([{c}]((-?[{c}]{{0,62}})?)|([{c}](([-{c}]{{0,61}}[{c}])?)(\.)){{1,}}([a-zA-Z\p{{L}}]){{2,63}})$"
    ))
});
static CREDIT_CARD: LazyLock<Regex> = LazyLock::new(|| {
    pattern(
        "^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35[0-9]{3})[0-9]{11})$",
    )
});
static UUID: LazyLock<Regex> = LazyLock::new(|| uuid("[0-9a-f]{4}", "[0-9a-f]{4}"));
static UUID3: LazyLock<Regex> = LazyLock::new(|| uuid("3[0-9a-f]{3}", "[0-9a-f]{4}"));
static UUID4: LazyLock<Regex> = LazyLock::new(|| uuid("4[0-9a-f]{3}", "[89ab][0-9a-f]{3}"));
static UUID5: LazyLock<Regex> = LazyLock::new(|| uuid("5[0-9a-f]{3}", "[89ab][0-9a-f]{3}"));

fn uuid(version: &str, variant: &str) -> Regex {
    pattern(&format!("(?i)^[0-9a-f]{{8}}-?[0-9a-f]{{4}}-?{version}-?{variant}-?[0-9a-f]{{12}}$"))
}

/// An address; IPv4 may have leading zeros.
fn parse_ip(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return text.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    let mut octets = [0u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next().filter(|p| !p.is_empty() && p.bytes().all(|c| c.is_ascii_digit()))?;
        *octet = part.parse().ok()?;
    }
    parts.next().is_none().then(|| IpAddr::V4(Ipv4Addr::from(octets)))
}

fn is_cidr(text: &str) -> bool {
    let Some((address, length)) = text.split_once('/') else {
        return false;
    };
    let Some(address) = parse_ip(address) else { return false };
    let plain = !length.is_empty() && length.bytes().all(|c| c.is_ascii_digit());
    let most = if address.is_ipv4() { 32 } else { 128 };
    plain && length.parse::<u32>().is_ok_and(|length| length <= most)
}

fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let sum: u32 = digits
        .bytes()
        .rev()
        .enumerate()
        .map(|(at, digit)| {
            let digit = u32::from(digit - b'0');
            if at % 2 == 0 { digit } else { digit * 2 / 10 + digit * 2 % 10 }
        })
        .sum();
    CREDIT_CARD.is_match(&digits) && sum.is_multiple_of(10)
}

fn isbn_digits(text: &str) -> Vec<u8> {
    text.bytes().filter(|c| !c.is_ascii_whitespace() && *c != b'-').collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = isbn_digits(text);
    let [first @ .., last] = digits.as_slice() else {
        return false;
    };
    if first.len() != 9 || !first.iter().all(u8::is_ascii_digit) || !(last.is_ascii_digit() || *last == b'X') {
        return false;
    }
    let sum: u32 = (1..).zip(first).map(|(at, c)| at * u32::from(c - b'0')).sum();
    let last = if *last == b'X' { 10 } else { u32::from(last - b'0') };
    (sum + 10 * last).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = isbn_digits(text);
    if digits.len() != 13 || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let sum: u32 = digits[..12].iter().enumerate().map(|(at, c)| [1, 3][at % 2] * u32::from(c - b'0')).sum();
    u32::from(digits[12] - b'0') == (10 - sum % 10) % 10
}

fn is_date(text: &str) -> bool {
    let form = text.len() == 10
        && text.bytes().enumerate().all(|(at, c)| if at == 4 || at == 7 { c == b'-' } else { c.is_ascii_digit() });
    form && text.parse::<jiff::civil::Date>().is_ok()
}

fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    is_date(date) && has_time_form(time)
}

fn has_time_form(time: &str) -> bool {
    static TIME: LazyLock<Regex> =
        LazyLock::new(|| pattern("^([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))$"));
    TIME.captures(time).is_some_and(|found| &found[1] <= "23" && &found[2] <= "59" && &found[3] <= "59")
}

/// `name@host`, alone or as `Some One <name@host>`; not the whole of RFC 5322.
fn is_email(text: &str) -> bool {
    let text = text.trim();
    let address = match text.strip_suffix('>') {
        Some(rest) => match rest.rsplit_once('<') {
            Some((_, address)) => address,
            None => return false,
        },
        None => text,
    };
    let Some((local, host)) = address.rsplit_once('@') else {
        return false;
    };
    let atom = |part: &str| {
        !part.is_empty()
            && part.chars().all(|c| c.is_alphanumeric() || !c.is_ascii() || "!#$%&'*+-/=?^_`{|}~".contains(c))
    };
    let quoted = local.len() > 2 && local.starts_with('"') && local.ends_with('"');
    let literal = host.starts_with('[') && host.ends_with(']');
    (quoted || local.split('.').all(atom)) && (literal || host.split('.').all(atom))
}

fn is_hostname(text: &str) -> bool {
    HOSTNAME.is_match(text) && text.len() <= 255 && text.split('.').all(|label| label.len() <= 63)
}

/// 6, 8 or 20 octets as `01:23:…`, `01-23-…` or `0123.4567.…`.
fn is_mac(text: &str) -> bool {
    let separator = match text.as_bytes() {
        [_, _, separator @ (b':' | b'-'), ..] => *separator,
        [_, _, _, _, b'.', ..] => b'.',
        _ => return false,
    };
    let (width, groups): (usize, &[usize]) = if separator == b'.' { (4, &[3, 4, 10]) } else { (2, &[6, 8, 20]) };
    let parts: Vec<&str> = text.split(char::from(separator)).collect();
    groups.contains(&parts.len()) && parts.iter().all(|p| p.len() == width && p.bytes().all(|c| c.is_ascii_hexdigit()))
}

/// An absolute URI or an absolute path, as in a request line.
pub fn is_request_uri(text: &str) -> bool {
    crate::url::Url::parse_request(text).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, good: &[&str], bad: &[&str]) {
        let format = StringFormat::named(name).unwrap();
        for text in good {
            assert!(format.accepts(text), "{name} should take {text:?}");
        }
        for text in bad {
            assert!(!format.accepts(text), "{name} should refuse {text:?}");
        }
    }

    #[test]
    fn formats_take_and_refuse_what_the_real_server_does() {
        check(
            "date-time",
            &["2024-01-02T03:04:05Z", "2024-01-02t03:04:05.123+01:00"],
            &["2024-01-02", "2024-13-02T03:04:05Z", "x"],
        );
        check("date", &["2024-02-29"], &["2023-02-29", "24-02-29"]);
        check("duration", &["1h", "22 ns", "1.5s", "3 weeks"], &["", "x"]);
        check("ipv4", &["1.2.3.4", "010.0.0.1"], &["1.2.3", "::1", "256.1.1.1"]);
        check("ipv6", &["::1", "fe80::1"], &["1.2.3.4", "::x"]);
        check("cidr", &["10.0.0.0/8", "fd00::/64"], &["10.0.0.0", "10.0.0.0/33"]);
        check("hostname", &["example.com", "a-b.example.org"], &["-a.example.com", "a_b"]);
        check("email", &["a@b.c", "A B <a@b.c>"], &["a", "a@", "@b"]);
        check("mac", &["01:23:45:67:89:ab", "0123.4567.89ab"], &["01:23", "0123456789ab"]);
        check("uuid", &["123e4567-e89b-12d3-a456-426614174000"], &["123"]);
        check("uuid4", &["9b2b4b0e-5a7c-4f5e-9f0a-0d6f0a1b2c3d"], &["123e4567-e89b-12d3-a456-426614174000"]);
        check("byte", &["aGVsbG8="], &["a", "%"]);
        check("uri", &["http://a.b/c?d", "/path"], &["a.b", ""]);
        check("isbn", &["0321751043", "978-0321751041"], &["123"]);
        check("creditcard", &["4111 1111 1111 1111"], &["4111 1111 1111 1112"]);
        check("ssn", &["123-45-6789"], &["123456789"]);
        check("hexcolor", &["#FFF", "a0b1c2"], &["#FF"]);
        check("rgbcolor", &["rgb(1, 2,255)"], &["rgb(1,2)"]);
        check("k8s-short-name", &["a-b"], &["a.b", "A"]);
        check("k8s-long-name", &["a.b"], &["a_b"]);
        check("bsonobjectid", &["507f1f77bcf86cd799439011"], &["507f"]);
        check("password", &["anything"], &[]);
    }

    #[test]
    fn other_formats_are_unknown() {
        assert_eq!(StringFormat::named("int32"), None);
    }
}
