//! The zerotrust job's kinds, and what an annotated route asks for.
