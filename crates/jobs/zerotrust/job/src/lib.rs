//! The zerotrust job: an annotated HTTPRoute becomes a live, protected name.
