//! Why bytes are no object. The texts are those of the real server.

use thiserror::Error;

/// Why a body could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ProtobufError {
    /// There is nothing.
    #[error("empty data")]
    Empty,
    /// The four bytes that every body begins with are not there.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Prefix,
    /// There is nothing after the four bytes.
    #[error("empty body")]
    EmptyBody,
    /// A value ends after its bytes do.
    #[error("unexpected EOF")]
    End,
    /// A number has more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A length is negative, or reaches beyond what can be counted.
    #[error("proto: negative length found during unmarshaling")]
    Length,
    /// A group ends that did not begin.
    #[error("proto: unexpected end of group")]
    EndOfGroup,
    /// A group ends where a message's field is expected.
    #[error("proto: {message}: wiretype end group for non-group")]
    GroupInMessage {
        /// The message that was read.
        message: &'static str,
    },
    /// A field's number is not positive.
    #[error("proto: {message}: illegal tag {number} (wire type {tag})")]
    Tag {
        /// The message that was read.
        message: &'static str,
        /// The field's number.
        number: i32,
        /// The whole tag.
        tag: u64,
    },
    /// A field of the message has another wire type.
    #[error("proto: wrong wireType = {wire_type} for field {field}")]
    WireType {
        /// The wire type that was found.
        wire_type: u8,
        /// The field's name in Go.
        field: String,
    },
    /// A field that is not known has a wire type that is not known either.
    #[error("proto: illegal wireType {0}")]
    UnknownWireType(u8),
    /// There is no such kind.
    #[error("no kind {kind:?} is registered for version {api_version:?}")]
    Kind {
        /// The version that was named, as `apps/v1`.
        api_version: String,
        /// The kind that was named.
        kind: String,
    },
    /// A field that holds JSON holds something else.
    #[error("invalid JSON in a raw field: {0}")]
    Json(String),
    /// A number or text is neither.
    #[error("impossible IntOrString.Type")]
    IntOrString,
    /// A time is in no year that can be written.
    #[error("a time is out of range: {0} seconds")]
    Time(i64),
    /// Messages within messages, too many of them.
    #[error("messages are nested too deeply")]
    Depth,
    /// More values than any object has.
    #[error("the object has too many values")]
    Size,
}
