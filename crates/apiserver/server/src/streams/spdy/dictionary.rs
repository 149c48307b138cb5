//! The words that header blocks are compressed against: draft-mbelshe-httpbis-spdy-00, section 2.6.10.1, as of SPDY 3.

/// Words that stand in it with their length before them.
const WORDS: &[&str] = &[
    "options",
    "head",
    "post",
    "put",
    "delete",
    "trace",
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-base",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "retry-after",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "method",
    "get",
    "status",
    "200 OK",
    "version",
    "HTTP/1.1",
    "url",
    "public",
    "set-cookie",
    "keep-alive",
    "origin",
];

/// What follows the words.
const REST: &[&str] = &[
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Au",
    "thoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidd",
    "en404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr Ma",
    "y Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,imag",
    "e/png,image/jpg,image/gif,application/xml,application/xhtml+xml,text/plain,text/javascript,publicpri",
    "vatemax-age=gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.",
];

/// The whole dictionary.
pub(super) fn dictionary() -> Vec<u8> {
    let mut all = Vec::new();
    for word in WORDS {
        let length = u32::try_from(word.len()).expect("words are short");
        all.extend_from_slice(&length.to_be_bytes());
        all.extend_from_slice(word.as_bytes());
    }
    all.extend(REST.iter().flat_map(|part| part.bytes()));
    all
}

/// Adler-32 of RFC 1950, by which a compressed stream names its dictionary.
pub(super) fn checksum(bytes: &[u8]) -> u32 {
    const PRIME: u32 = 65_521;
    let add = |(low, high): (u32, u32), byte: &u8| {
        let low = (low + u32::from(*byte)) % PRIME;
        (low, (high + low) % PRIME)
    };
    let (low, high) = bytes.iter().fold((1, 0), add);
    high << 16 | low
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dictionary_is_the_one_that_every_client_names() {
        assert_eq!(checksum(b"Wikipedia"), 0x11E6_0398);
        assert_eq!(dictionary().len(), 1423);
        assert_eq!(checksum(&dictionary()), 0xE3C6_A7C2);
    }
}
