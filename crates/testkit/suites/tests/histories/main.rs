//! Worlds that live through seeded histories.

mod attacks;
mod cloudflare;
mod zerotrust;
