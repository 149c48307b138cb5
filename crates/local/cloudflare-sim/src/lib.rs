//! A strict simulator of the Cloudflare API.
