//! The zerotrust job's side at Cloudflare: carries tasks out.
