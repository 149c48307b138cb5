//! The cloudflare job: networking.cloudflare-operator.io kinds.
