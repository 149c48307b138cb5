//! `Accept` → JSON or protocol buffers, as the real server's documents negotiate it.

use http::StatusCode;

/// How a document is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Json,
    Protobuf,
}

/// Which of the two specifications a document follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Specification {
    Version2,
    Version3,
}

impl Encoding {
    pub(super) fn media_type(self, specification: Specification) -> &'static str {
        match (self, specification) {
            (Self::Json, _) => "application/json",
            (Self::Protobuf, Specification::Version2) => "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
            (Self::Protobuf, Specification::Version3) => "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
        }
    }
}

/// The first encoding that the client likes best; or the code of an answer without a body.
pub(super) fn negotiate(header: &str, specification: Specification) -> Result<Encoding, StatusCode> {
    let header = if header.is_empty() { "*/*" } else { header };
    let mut clauses: Vec<Clause<'_>> = header.split(',').filter_map(Clause::parse).collect();
    if clauses.is_empty() && specification == Specification::Version3 {
        // Nothing that could be read was asked for, and nothing is answered.
        return Err(StatusCode::OK);
    }
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality).then(a.stars().cmp(&b.stars())));
    let found = clauses.iter().find_map(|clause| clause.encoding(specification));
    found.ok_or(StatusCode::NOT_ACCEPTABLE)
}

/// One media range with its weight.
struct Clause<'a> {
    kind: &'a str,
    subtype: &'a str,
    quality: f64,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let range = parts.next()?;
        let (kind, subtype) = if range == "*" { ("*", "*") } else { range.split_once('/')? };
        let weight = parts.filter_map(|part| part.split_once('=')).find(|(name, _)| name.trim() == "q");
        let quality = weight.and_then(|(_, value)| value.trim().parse().ok()).unwrap_or(1.0);
        Some(Self { kind: kind.trim(), subtype: subtype.trim(), quality })
    }

    /// How much it leaves open.
    fn stars(&self) -> usize {
        usize::from(self.kind == "*") + usize::from(self.subtype == "*")
    }

    fn encoding(&self, specification: Specification) -> Option<Encoding> {
        let (current, old) = match specification {
            Specification::Version2 => {
                ("com.github.proto-openapi.spec.v2.v1.0+protobuf", "com.github.proto-openapi.spec.v2@v1.0+protobuf")
            }
            Specification::Version3 => {
                ("com.github.proto-openapi.spec.v3.v1.0+protobuf", "com.github.proto-openapi.spec.v3@v1.0+protobuf")
            }
        };
        match (self.kind, self.subtype) {
            ("application" | "*", "json" | "*") => Some(Encoding::Json),
            ("application" | "*", subtype) if subtype == current || subtype == old => Some(Encoding::Protobuf),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version_2(header: &str) -> Result<Encoding, StatusCode> {
        negotiate(header, Specification::Version2)
    }

    #[test]
    fn kubectl_gets_protocol_buffers_under_their_old_name() {
        let old = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

        assert_eq!(version_2(old), Ok(Encoding::Protobuf));
        assert_eq!(negotiate(old, Specification::Version3), Err(StatusCode::NOT_ACCEPTABLE));
    }

    #[test]
    fn the_heaviest_range_that_can_be_written_wins() {
        let pb = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

        assert_eq!(version_2(""), Ok(Encoding::Json));
        assert_eq!(version_2(&format!("*/*;q=0.1, {pb}")), Ok(Encoding::Protobuf));
        assert_eq!(version_2(&format!("{pb};q=0.5, application/json")), Ok(Encoding::Json));
        assert_eq!(version_2("text/html, */*;q=0.1"), Ok(Encoding::Json));
        assert_eq!(version_2("text/html"), Err(StatusCode::NOT_ACCEPTABLE));
    }
}
