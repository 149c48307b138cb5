//! Server-side apply as the real server does it: by hand, at random, and by what it answered.

mod ownership;
mod properties;
mod recorded;
