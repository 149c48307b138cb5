//! Worlds on a paused clock: every kind's lifecycle, the scenarios of both jobs, what they cost, and taking over.

mod former;
mod lifecycle;
mod migration;
mod scale;
mod scenarios;
mod two_tokens;
mod world;
mod zerotrust;
