//! The specification's scenarios, by their numbers, and what belongs to no kind alone.

mod access;
mod api_client;
mod bad_input;
mod canary;
mod contract;
mod credentials;
mod dns_records;
mod domains;
mod private_network;
mod removal;
mod sharing;
mod zone_ids;
