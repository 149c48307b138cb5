//! The Cloudflare API as values, and a client that treats calls as a scarce resource.
